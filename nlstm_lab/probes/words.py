"""Which words a network suggests while a text is written: how often the right one, when, and for any text."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlstm_lab.cells import fast
from nlstm_lab.datasets import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import reading as wording
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.settings import counted

TOPS = 3  # suggestions that may hold the word
SHORTEST = 4  # characters of a word whose repetition is looked at
BATCH = 32  # texts side by side
REMEMBERED = 256  # prefixes whose states a Completer keeps
Array = NDArray[Any]


class Completion(NamedTuple):
    """A `word` (or character) and its `probability` among everything that the network predicts."""

    word: str
    probability: float


class Completer:
    """Complete words while somebody types: `completer(text)` reads only what is new since an earlier call.

    Of a long text the last words within 200 characters are read, from a zero state. Where reading starts moves on by
    half of that, so that it seldom moves. The network must not change meanwhile: a new one needs a new Completer.

    >>> import nlstm_lab as lab
    >>> completer = Completer(lab.runs.load("autocomplete_gru", scale="small").model())
    >>> [word for word, probability in completer("the united stat")][:2]
    ['states', 'state']
    """

    def __init__(self, model: Network) -> None:
        self.model, self.vocabulary = model, wording.vocabulary_of(model)
        self._after = lru_cache(REMEMBERED)(self._read)

    def __call__(self, text: str, k: int = 3) -> list[Completion]:
        """The `k` likeliest words for what is being typed, likeliest first: `text` is any prefix, also an empty one.

        The article's sequences begin with a space: one is put before a text without.
        """
        k = counted(k, "k")
        if not wording.string(text) or (self.model.words is not None and not text.startswith(" ")):
            text = f" {text}"
        half = wording.LONGEST // 2
        start = max(-(-(len(text) - wording.LONGEST) // half) * half, 0)
        if start:  # a space far behind would leave little to read; how far may not depend on what is typed
            start = max(text.find(" ", start, start + half // 2 + 1), start)
        with wording.reading(self.model), fast.disabled():  # whose preparations do not pay for a single step
            logits = self.model.readout(self._after(text[start:])[0])
        (suggestions,) = likeliest(logits, wording.outputs_of(self.model, logits.shape[-1]), k)
        return suggestions

    def _read(self, text: str) -> tuple[Tensor, Any]:
        """h after the last character, [1, hidden_size], and the state, on from where the text without it ended."""
        state = self._after(text[:-1])[1] if len(text) > 1 else None
        output, state = self.model.read(wording.encode(self.model, text[-1])[:, None], state)
        return output[-1], state


def likeliest_codes(scores: Tensor, names: Sequence[str], k: int) -> tuple[Tensor, Tensor]:
    """The `k` highest of scores [..., outputs] and their codes, [..., k] each; <eos> and <unknown> are no words."""
    no_words = [code for code, name in enumerate(names) if re.fullmatch("<.+>", name)]
    scores = scores.index_fill(-1, torch.tensor(no_words, dtype=torch.long, device=scores.device), -torch.inf)
    values, indices = scores.topk(min(k, len(names) - len(no_words)), dim=-1)
    return values, indices


def likeliest(logits: Tensor, names: Sequence[str], k: int) -> list[list[Completion]]:
    """For every row of logits [T, outputs] the `k` likeliest words."""
    values, codes = likeliest_codes(torch.softmax(logits.double(), -1), names, k)
    rows = zip(codes.tolist(), values.tolist(), strict=True)
    return [[Completion(names[code], p) for code, p in zip(*row, strict=True)] for row in rows]


@recorded("context_accuracy")
def context_accuracy(model: Network, texts: Sequence[str] | Sequences) -> pd.DataFrame:
    """Count how often the word is among the 1, 2 and 3 likeliest, by the number of its characters that were read.

    Args:
        texts: Each read from a zero state, of at most 200 characters; or `lab.datasets.Sequences(...)`.

    Returns:
        Columns top, known, accuracy_pct (over the words that the network knows, as its loss counts),
        accuracy_unmasked_pct (over all words, as the article counts: an unknown word is never right) and the numbers of
        both: counted, all.
    """
    frames = [
        pd.DataFrame(hit.cumsum(1), columns=range(1, TOPS + 1)).assign(known=said.known, counted=is_word, all=1)
        for said, is_word, hit in _readings(model, read(texts))
    ]
    # of the hits among the first, the first two, ...
    sums = pd.concat(frames).groupby("known").sum().query("counted > 0")
    frame = sums.melt(["counted", "all"], var_name="top", value_name="hits", ignore_index=False).reset_index()
    frame = frame.astype({"top": int}).assign(accuracy_pct=100 * frame["hits"] / frame["counted"])
    frame["accuracy_unmasked_pct"] = 100 * frame["hits"] / frame["all"]
    return frame[["top", "known", "accuracy_pct", "accuracy_unmasked_pct", "counted", "all"]]


@recorded("repetition")
def repetition(model: Network, texts: Sequence[str] | Sequences) -> pd.DataFrame:
    """Count how many characters of a word must be read until it is suggested, the first time and the second.

    Does a network remember what it has read? (The draft's second observation, of many words.) A word is suggested where
    it is among the three likeliest, and one that never is counts as one character more than it has.

    Returns:
        A row for each word of at least `SHORTEST` characters that the network knows and that comes twice in a text of
        `texts`: text, word, first, second.
    """
    rows = []
    for number, (said, is_word, hit) in enumerate(_readings(model, read(texts))):
        seen: dict[str, list[int]] = {}
        for start in np.unique(said.start):
            word, places = said.word[start], said.start == start
            if is_word[start] and len(word) >= SHORTEST:
                suggested = said.known[places][hit[places].any(1)]
                seen.setdefault(word, []).append(int(suggested.min(initial=len(word) + 1)))
        rows += [(number, word, *needed[:2]) for word, needed in seen.items() if len(needed) > 1]
    return pd.DataFrame(rows, columns=["text", "word", "first", "second"])


def _readings(model: Network, texts: Sequence[str]) -> Iterator[tuple[wording.Words, Array, Array]]:
    """A text's words, whether the network knows each position's [T], and where it is suggested [T, TOPS]."""
    wording.vocabulary_of(model)
    if model.words is None:
        raise UsageError(f"{wording.called(model)} predicts no words: take one that does")
    if not texts or not all(0 < len(wording.string(text)) <= wording.LONGEST for text in texts):
        raise UsageError(f"at least one text is needed, and each of 1 to {wording.LONGEST} characters")
    codes = {name: code for code, name in enumerate(model.words)}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded, _ = wording.encode_all(model, [*batch])
        with wording.reading(model):  # what comes after a text's end changes nothing before it
            logits = model(encoded)[0]
            names = wording.outputs_of(model, logits.shape[-1])
            top = likeliest_codes(logits, names, TOPS)[1].cpu().numpy()
        for column, text in enumerate(batch):
            said = wording.words_of(text)
            true = np.array([codes.get(word, -1) for word in said.word])
            hit = top[: len(text), column] == true[:, None]
            # of fewer words than `TOPS` there is no further one that may be right
            yield said, true >= 0, np.pad(hit, ((0, 0), (0, TOPS - hit.shape[1])))
