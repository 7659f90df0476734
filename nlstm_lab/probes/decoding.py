"""What a memory carries: linear probes for properties of the text, judged on held-out text.

The score must be read beside its control, the same probe for the same labels shifted along the text by half its length:
they keep their frequencies and their rhythm, and lose what they have to do with the memory.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.interventions import spread, unit_ablations
from nlstm_lab.probes.reading import BURN_IN, called, encode_symbols, names, seen, skipped, string
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import untrained
from nlstm_lab.probes.tracing import trace
from nlstm_lab.settings import check_trace

Array = NDArray[Any]

NUMBERS = ("position_in_word", "since_space")  # ridge regression, scored by R squared
CLASSES = ("in_quotation", "in_bracket", "word_class")  # logistic regression, scored by balanced accuracy
# what a text of the Treebank varies in: it has no quotation marks, and no brackets but those of <unk>
VARYING = (*NUMBERS, "word_class")
MOMENTS = 20  # at which single cells are ablated, and predictions after each
PENALTY = 1e-3  # on the squared weights, a step of text and a standardized unit
HELD_OUT = 0.2  # the last part of the text
RAREST = 20  # a class must occur so often, in training and in test text, to be classified

OPENING, CLOSING = "([{<", ")]}>"
FUNCTION_WORDS = """
a an the this that these those and or but nor if because as while of in on at by for with from to into about over under
after before between through during against i you he she it we they him her them his its our their my your who which
what is are was were be been being am has have had do does did will would can could may might shall should must not no
so than then there here when where
"""


def labels(text: str) -> pd.DataFrame:
    """Label each character of a text by properties that a reader knows when it has been read.

    Returns:
        One row a character: position_in_word, which letter of its word it is, from 1, 0 outside words; since_space,
        characters since the last white space, 0 on it; in_quotation, behind an odd number of quotation marks on a line;
        in_bracket, after an opening bracket that no closing one has matched; word_class, of the last word that is
        complete: 'function' (a closed list), 'number' (it has a digit, or is the N that stands for one), 'ing', 'ed',
        'ly' by its ending, else 'other' (as before the first).
    """
    symbols, steps = pd.Series([*text], dtype=object), np.arange(len(text))
    opened = symbols.isin([*OPENING]).astype(int).cumsum() - symbols.isin([*CLOSING]).astype(int).cumsum()
    marks = symbols == '"'
    classes = np.full(len(text), "other", dtype=object)
    for match in re.finditer(r"\S+", text):
        classes[match.end() :] = _class(match.group().lower())
    return pd.DataFrame(
        {
            "position_in_word": steps - _last([not character.isalnum() for character in text]),
            "since_space": steps - _last([character.isspace() for character in text]),
            "in_quotation": ~marks & (marks.groupby((symbols == "\n").cumsum()).cumsum() % 2 == 1),
            # a closing bracket that none has opened counts for nothing
            "in_bracket": opened - opened.cummin().clip(upper=0) > 0,
            "word_class": classes.astype(str),
        }
    )


def decode(trace: xr.Dataset, text: str, wanted: tuple[str, ...] = (*NUMBERS, *CLASSES)) -> pd.DataFrame:
    """Measure how well each property of the text is decoded from each memory, linearly.

    A probe reads tanh c of all of a memory's cells, or a hidden state; it is judged on the last `HELD_OUT` of the text.

    Args:
        text: The text that was traced.
        wanted: Labels to decode (`labels`).

    Returns:
        One row a memory and property: memory, label, metric, `score`, `control`, `chance` (what knows nothing scores),
        reason. Scores are R squared for numbers, balanced accuracy for classes; NaN with a reason where the text does
        not vary in a property or a memory does not move. UsageError where another text was traced, or too short a one.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = "the company said that it would not sell the old bank " * 20
    >>> scores = lab.probes.decode(lab.probes.trace(model, text), text, ("since_space",))
    >>> scores.metric.tolist(), scores.memory.tolist()
    (['r_squared', 'r_squared', 'r_squared'], ['outer', 'inner', 'h'])
    """
    check_trace(trace)
    symbols = trace["symbol"].values.astype(str).tolist() if "symbol" in trace.coords else [*text]
    if len(string(text)) != trace.sizes["time"] or symbols != [*text]:
        raise UsageError("the text is not the one that was traced: it must be the trace's symbols, not codes")
    if unknown := set(wanted) - {*NUMBERS, *CLASSES}:
        raise UsageError(f"properties are {', '.join((*NUMBERS, *CLASSES))}, not {unknown.pop()!r}")
    known, split, rows = labels(text), int(len(text) * (1 - HELD_OUT)), []
    if split < 1:
        raise UsageError(f"a text of {len(text)} characters is too short: a probe is fitted on its first part")
    for memory, states in seen(trace).items():
        x = _standardized(states.astype(np.float64), split)
        for name in wanted:
            number = name in NUMBERS
            classes, y = np.unique(known[name], return_inverse=True)
            y = known[name].to_numpy() if number else y
            metric, chance = ("r_squared", 0.0) if number else ("balanced_accuracy", 1 / len(classes))
            row: dict[str, Any] = {"memory": memory, "label": name, "metric": metric}
            row |= {"score": np.nan, "control": np.nan, "chance": chance}
            if not (reason := _reason(x, y, split, number)):
                fit = _r_squared if number else _balanced_accuracy
                row |= {"score": fit(x, y, split), "control": fit(x, np.roll(y, len(y) // 2), split)}
            rows.append(row | {"reason": reason})
    return pd.DataFrame(rows)


def _standardized(x: Array, split: int) -> Array:
    """Mean 0 and deviation 1 on the first part, without units that do not move there, and a constant column."""
    mean, deviation = x[:split].mean(0), x[:split].std(0)
    moving = ~(deviation <= 1e-6)  # what is not finite stays, and is reported
    return np.hstack([(x[:, moving] - mean[moving]) / deviation[moving], np.ones((len(x), 1))])


def _reason(x: Array, y: Array, split: int, number: bool) -> str:
    """Why there is nothing to decode, or nothing."""
    if not np.isfinite(x).all():
        return "not finite"
    if x.shape[1] == 1:
        return "the memory does not move"
    shifted = np.roll(y, len(y) // 2)  # as the control's are
    halves = (y[:split], y[split:], shifted[:split], shifted[split:])
    if number:
        return "" if all(half.std() > 0 for half in halves) else "the text does not vary in this"
    rarest = min(np.bincount(cumulative, minlength=y.max() + 1).min() for cumulative in halves)
    if y.max() == 0:
        return "the text does not vary in this"
    return "" if rarest >= RAREST else f"a class is met less than {RAREST} times in one part of the text"


def _r_squared(x: Array, y: Array, split: int) -> float:
    """Ridge regression, by its normal equations."""
    train, test = x[:split], x[split:]
    penalty = PENALTY * split * np.eye(x.shape[1])
    penalty[-1, -1] = 0  # the constant is free
    weights = np.linalg.solve(train.T @ train + penalty, train.T @ y[:split])
    return float(1 - ((y[split:] - test @ weights) ** 2).mean() / y[split:].var())


def _balanced_accuracy(x: Array, y: Array, split: int) -> float:
    """Logistic regression with classes weighted alike, by L-BFGS."""
    train, targets = torch.from_numpy(x[:split]), torch.from_numpy(y[:split]).long()
    number = int(y.max()) + 1
    weight = len(targets) / (number * torch.bincount(targets, minlength=number).double())
    zeros = torch.zeros(x.shape[1], number, dtype=torch.float64)
    weights = fitted(zeros, lambda weights: F.cross_entropy(train @ weights, targets, weight), PENALTY, 100)
    logits = x[split:] @ weights.numpy()
    right = logits.argmax(1) == y[split:]
    return float(np.mean([right[y[split:] == k].mean() for k in range(number)]))


def fitted(weights: Tensor, loss: Callable[[Tensor], Tensor], penalty: float, steps: int) -> Tensor:
    """Weights from which a loss and a penalty on their squares, but those of the constant, are least, by L-BFGS."""
    weights = weights.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def penalized() -> Tensor:
        optimizer.zero_grad()
        total = loss(weights) + penalty * (weights[:-1] ** 2).sum()
        total.backward()
        return total

    with torch.enable_grad():
        optimizer.step(penalized)
    return weights.detach()


def _last(marks: list[bool]) -> Array:
    """For each step the last marked one, -1 before the first."""
    return np.maximum.accumulate(np.where(marks, np.arange(len(marks)), -1))


@cache
def _class(word: str) -> str:
    word = word.strip("()[]{}<>,;:.!?'`\"-")
    if word in FUNCTION_WORDS.split():
        return "function"
    if word == "n" or any(character.isdigit() for character in word):
        return "number"
    return next((ending for ending in ("ing", "ed", "ly") if len(word) > 4 and word.endswith(ending)), "other")


@recorded("contents", by=["trained", "burn_in", "seed"], names=VARYING)
def contents(
    model: Network, text: str | Excerpt, trained: bool = True, burn_in: int = BURN_IN, seed: int = 0
) -> pd.DataFrame:
    """Decode linearly what each memory, and each hidden state, holds of a text: the columns of `decode`.

    Args:
        trained: False for the same network with its parameters drawn anew from `seed`.
    """
    words: str = read(text)
    traced = trace(model if trained else untrained(model, seed), words, predictions=False)
    return decode(skipped(traced, burn_in), words[burn_in:], VARYING)


@recorded("single_cells", moments=MOMENTS, distance=MOMENTS)
def cell_cuts(model: Network, text: str | Excerpt) -> pd.DataFrame:
    """Measure what resampling each single cell costs (`unit_ablations`), one row a cell.

    Args:
        text: What is read; a cell is given what it holds as far into the second half.

    Returns:
        Columns memory, unit, `kl` and `loss_increase`: in nats, means over `MOMENTS` moments that are spread over the
        text's first half, and as many predictions after each; UsageError where that half is too short for them.
    """
    codes = encode_symbols(model, read(text))
    if not names(model.recurrent):
        raise UsageError(f"{called(model)} has no memory cells; of hidden units, use unit_ablations")
    half = len(codes) // 2
    how: dict[str, Any] = {"other": codes[half:], "moments": spread(half, MOMENTS, MOMENTS), "distance": MOMENTS}
    frames = [unit_ablations(model, codes[:half], memory, **how) for memory in names(model.recurrent)]
    return pd.concat(frames, ignore_index=True)
