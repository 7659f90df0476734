"""Autocomplete as a function: a text in, the likeliest words out (Madsen's article, its first figure)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.wording import LONGEST, Unknown, encode, outputs_of, special, vectors, vocabulary_of


class Completion(NamedTuple):
    """A word (or character) and its probability among everything that the network predicts."""

    word: str
    probability: float


def complete(
    model: Network,
    text: str,
    words: Sequence[str] | None = None,
    k: int = 3,
    *,
    unknown: Unknown = "refuse",
    window: int = LONGEST,
) -> list[Completion]:
    """The `k` likeliest words for what is being typed, likeliest first.

    text: any prefix, also an empty one. The article's sequences begin with a space: one is put before a text
    without. Of a text longer than `window` the last whole words within it are read, from a zero state.
    words: the names of what is predicted, in the order of their codes; None where that is the next character.
    unknown: what happens to characters outside the vocabulary: "refuse", "map", or "show" (not read).

    UsageError: a network that does not predict at every character, names that are not its, a refused character.
    """
    vocabulary = vocabulary_of(model)
    if k < 1:
        raise UsageError(f"k must be a positive number of words, not {k}")
    if not text or (words is not None and not text.startswith(" ")):
        text = f" {text}"
    start = max(len(text) - window, 0)
    if start and (space := text.find(" ", start)) >= 0:
        start = space
    codes, _ = encode(vocabulary, text[start:], unknown)
    with evaluating(model), torch.inference_mode():
        hidden, _ = model.unit(vectors(model, codes).unsqueeze(1))
        logits = model.readout(hidden[-1])
    (found,) = likeliest(logits, outputs_of(model, words, logits.shape[-1]), k)
    return found


def likeliest(logits: Tensor, names: Sequence[str], k: int) -> list[list[Completion]]:
    """For every row of logits [T, outputs] the `k` likeliest words; <eos> and <unknown> are none."""
    p = torch.softmax(logits.double(), -1)
    no_words = torch.tensor([code for code, name in enumerate(names) if special(name)], device=p.device)
    p = p.index_fill(-1, no_words.long(), -1.0)
    found = p.topk(min(k, len(names) - len(no_words)), dim=-1)
    rows = zip(found.indices.tolist(), found.values.tolist(), strict=True)
    return [
        [Completion(names[code], value) for code, value in zip(codes, values, strict=True)] for codes, values in rows
    ]


@contextmanager
def evaluating(model: Network) -> Iterator[None]:
    """No dropout inside; the network is left as it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
