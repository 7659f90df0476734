"""What is known of a word while it is written: how often it is suggested, and when."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from nlstm_lab.datasets import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.completion import likeliest_codes
from nlstm_lab.probes.reading import reading
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.texts import LONGEST, Words, encode_leniently, outputs_of, vocabulary_of, words_of

TOPS = 3  # suggestions that may hold the word
SHORTEST = 4  # characters of a word whose repetition is looked at
BATCH = 32  # texts side by side
Array = NDArray[Any]


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
    texts = read(texts)
    longest = max(map(len, texts), default=0) + 1  # a word may be known whole, where no space is before it
    hits, counted, everything = np.zeros((TOPS, longest)), np.zeros(longest, int), np.zeros(longest, int)
    for said, is_word, hit in _readings(model, texts):
        right = hit.cumsum(1).T  # among the first, the first two, ...
        for top in range(TOPS):
            hits[top] += np.bincount(said.known, right[top], longest)
        counted += np.bincount(said.known[is_word], minlength=longest)
        everything += np.bincount(said.known, minlength=longest)
    known = np.flatnonzero(counted)
    places = pd.MultiIndex.from_product([range(1, TOPS + 1), known], names=["top", "known"])
    frame = pd.DataFrame({"accuracy_pct": (100 * hits / np.maximum(counted, 1))[:, known].ravel()}, index=places)
    frame["accuracy_unmasked_pct"] = (100 * hits / np.maximum(everything, 1))[:, known].ravel()
    return frame.assign(counted=np.tile(counted[known], TOPS), all=np.tile(everything[known], TOPS)).reset_index()


@recorded("repetition")
def repetition(model: Network, texts: Sequence[str] | Sequences) -> pd.DataFrame:
    """Count how many characters of a word must be read until it is suggested, the first time and the second.

    Does a network remember what it has read? (The draft's second observation, of many words.) A word is suggested where
    it is among the three likeliest, and one that never is counts as one character more than it has.

    Args:
        texts: As `context_accuracy` takes them.

    Returns:
        A row for each word of at least `SHORTEST` characters that the network knows and that comes twice in a text:
        text, word, first, second.
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


def _readings(model: Network, texts: Sequence[str]) -> Iterator[tuple[Words, Array, Array]]:
    """A text's words, whether the network knows each position's [T], and where it is suggested [T, TOPS]."""
    names, vocabulary = model.words, vocabulary_of(model)
    if names is None:
        raise UsageError(f"{model.name or 'this network'} predicts no words: take one that does")
    if not texts or not all(0 < len(text) <= LONGEST for text in texts):
        raise UsageError(f"at least one text is needed, and each of 1 to {LONGEST} characters")
    codes, device = {name: code for code, name in enumerate(names)}, model.device
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        # what comes after a text's end changes nothing before it
        inputs = torch.nn.utils.rnn.pad_sequence([encode_leniently(vocabulary, text)[0] for text in batch]).to(device)
        with reading(model):
            logits = model(inputs)[0]
            top = likeliest_codes(logits, outputs_of(model, logits.shape[-1]), TOPS)[1].cpu().numpy()
        for column, text in enumerate(batch):
            said = words_of(text)
            true = np.array([codes.get(word, -1) for word in said.word])
            hit = top[: len(text), column] == true[:, None]
            # of fewer words than `TOPS` there is no further one that may be right
            yield said, true >= 0, np.pad(hit, ((0, 0), (0, TOPS - hit.shape[1])))
