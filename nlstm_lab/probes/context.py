"""What is known of a word while it is written: how often it is suggested, and when one word of one text is.

The published article's figure of accuracy against the characters that are known (0 at the space before the word), and
the draft's two observations on "learning" and "grammar".
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.completion import likeliest_codes
from nlstm_lab.probes.connectivity import connectivity
from nlstm_lab.probes.reading import reading
from nlstm_lab.probes.wording import LONGEST, Words, encode, outputs_of, vocabulary_of, words_of

TOPS = 3  # suggestions that may hold the word
BATCH = 32  # texts side by side
Array = NDArray[Any]


def context_accuracy(model: Network, texts: Sequence[str], words: Sequence[str] | None = None) -> pd.DataFrame:
    """How often the word is among the 1, 2 and 3 likeliest, by the number of its characters that were read.

    texts: each from a zero state, of at most 200 characters, such as `lab.datasets.Sequences(...).read()`. words: the
    names of what is predicted; None for the network's own.

    Returns top, known, accuracy_pct (over the words that the network knows, as its loss counts), accuracy_unmasked_pct
    (over all words, as the article counts: an unknown word is never right) and the numbers of both: counted, all.
    """
    names = words if words is not None else model.words
    if names is None:
        raise UsageError(f"{model.name or 'this network'} predicts no words: hand in `words`, their names")
    if not texts or not all(0 < len(text) <= LONGEST for text in texts):
        raise UsageError(f"at least one text is needed, and each of 1 to {LONGEST} characters")
    longest = max(map(len, texts))
    hits, counted, everything = np.zeros((TOPS, longest)), np.zeros(longest, int), np.zeros(longest, int)
    codes = {name: code for code, name in enumerate(names)}
    with reading(model):
        for start in range(0, len(texts), BATCH):
            for said, found in _read(model, texts[start : start + BATCH], names):
                true = np.array([codes.get(word, -1) for word in said.word])
                right = (found == true[:, None]).cumsum(1).T  # among the first, the first two, ...
                for top in range(TOPS):
                    hits[top] += np.bincount(said.known, right[top], longest)
                counted += np.bincount(said.known[true >= 0], minlength=longest)
                everything += np.bincount(said.known, minlength=longest)
    return _table(hits, counted, everything)


def _read(model: Network, texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[Words, Array]]:
    """The words of each text, and the codes of what is likeliest at each of its positions, [T, TOPS]."""
    vocabulary = vocabulary_of(model)
    read = [encode(vocabulary, text)[0] for text in texts]
    inputs = torch.nn.utils.rnn.pad_sequence(read)  # what comes after a text's end changes nothing before it
    logits: Tensor = model(inputs.to(next(model.parameters()).device))[0]
    found = likeliest_codes(logits, outputs_of(model, names, logits.shape[-1]), TOPS)[1].cpu().numpy()
    for column, text in enumerate(texts):
        yield words_of(text), found[: len(text), column]


def _table(hits: Array, counted: Array, everything: Array) -> pd.DataFrame:
    known = np.flatnonzero(counted)
    rows = [
        (top + 1, place, 100 * hits[top, place] / counted[place], 100 * hits[top, place] / everything[place])
        for top in range(TOPS)
        for place in known
    ]
    frame = pd.DataFrame(rows, columns=["top", "known", "accuracy_pct", "accuracy_unmasked_pct"])
    return frame.assign(counted=np.tile(counted[known], TOPS), all=np.tile(everything[known], TOPS))


def suggested(data: xr.Dataset, word: str) -> pd.DataFrame:
    """What a network knows of a word while it is written: a row for each occurrence and number of known characters.

    occurrence (from 1), known, time, place (1 is likeliest; NaN where it is not among those shown), probability
    (NaN likewise), p (of the word that was asked for, shown or not: NaN where the network does not know it), likeliest
    (the word in first place), suggestions (those shown). UsageError where the text has no such word.
    """
    places = np.flatnonzero(data["word"].values == word)
    if not len(places):
        raise UsageError(f"the word {word!r} is not in the text: choose one of its own")
    shown = data["prediction"].values[places] == word
    found = shown.any(1)
    starts = data["word_start"].values[places]
    columns = {
        "occurrence": np.unique(starts, return_inverse=True)[1] + 1,
        "known": data["known"].values[places],
        "time": places,
        "place": np.where(found, shown.argmax(1) + 1.0, np.nan),
        "probability": np.where(found, (shown * data["probability"].values[places]).sum(1), np.nan),
        "p": data["p"].values[places],
        "likeliest": data["prediction"].values[places, 0],
        "suggestions": [", ".join(row) for row in data["prediction"].values[places]],
    }
    return pd.DataFrame(columns)


def suggestions(model: Network, text: str, word: str) -> pd.DataFrame:
    """`suggested` of what `model` predicts while it reads `text`: one reading, no gradients."""
    return suggested(connectivity(model, text, at=()), word)
