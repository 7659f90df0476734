"""What each unit does along a long text: where it is highest and lowest, what it follows, who is its counterpart.

A unit's value is tanh of its memory cell, or its hidden state where there are no cells.
"""

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.datasets import Excerpt
from nlstm_lab.models import Network
from nlstm_lab.probes.decoding import labels
from nlstm_lab.probes.reading import BURN_IN, Text, memory_states, seen, skipped
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import shuffled, untrained
from nlstm_lab.probes.tracing import trace
from nlstm_lab.settings import choice, counted

PASSAGES = 10  # where a unit is highest, and as many where it is lowest
BEFORE, AFTER = 24, 8  # characters around each of these places; no two passages of a kind are nearer than that
BINS = 20  # of the histogram
BASELINE = 10_000  # characters that the baselines, and the networks that are compared, read
RAREST = 20  # steps at which a label must hold, and at which it must not
TIED = 1e-4  # a difference of values that counts as none
STILL = 0.01  # a change of tanh c that counts as none
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of values from a unit's lowest to its highest

Array = NDArray[Any]


def unit_labels(text: str) -> dict[str, NDArray[np.bool_]]:
    """Label each character of a text by properties that a unit may follow, [T] each.

    >>> {name: int(holds.sum()) for name, holds in unit_labels("a cat of N").items() if holds.any()}
    {'space': 3, 'word start': 4, 'inside a word': 3, 'vowel': 3, 'number': 1, 'after a function word': 6}
    """
    known = labels(text)
    place = known["position_in_word"].to_numpy()
    holds = {
        "space": [character == " " for character in text],
        "line end": [character == "\n" for character in text],
        "word start": place == 1,
        "inside a word": place > 1,
        "late in a word": place > 5,
        "vowel": [character in "aeiou" for character in text],
        "number": [character.isdigit() or character == "N" for character in text],
        "sign": [not (character.isalnum() or character.isspace()) for character in text],
        "in a quotation": known["in_quotation"],
        "in <unk>": known["in_bracket"],
        "after a function word": known["word_class"] == "function",
    }
    return {name: np.asarray(each, bool) for name, each in holds.items()}


@recorded("units", by=["burn_in", "seed"])
def units(model: Network, text: Text | Excerpt, burn_in: int = BURN_IN, seed: int = 0) -> pd.DataFrame:
    """Measure what each unit of each memory does along a sequence, one row a unit.

    Args:
        text: Characters, an excerpt, or codes [T] or vectors [T, features], which have no labels.

    Returns:
        Columns memory, unit; `low` and `high`, its extremes; `histogram`, of `BINS` bins from the one to the other, a
        letter each, a the emptiest and j the fullest; `label`, of `unit_labels` the one by which its values differ
        most, with `effect`, the difference of the means where it holds and where not in standard deviations,
        `shuffled`, the same for the same unit on shuffled characters, and `untrained`, the size that 95 % of the units
        of an untrained network stay below; `still_since`, from which step on it stays within `STILL` of its last value;
        `places`, the steps where it is highest and then those where it is lowest, and `courses`, its values around
        each, as `DIGITS`.
    """
    words = read(text)
    traced = trace(model, words, predictions=False)
    skipped(traced, burn_in, BEFORE + AFTER + 1)
    states = values_of(traced)
    cells = pd.MultiIndex.from_product([states, traced["unit"].values], names=["memory", "unit"])
    table = pd.DataFrame({"label": "", "effect": np.nan, "untrained": np.nan, "shuffled": np.nan}, cells)
    if isinstance(words, str):  # vectors have no labels
        short, mixed = words[:BASELINE], shuffled(words[:BASELINE], "characters", seed)
        effects = _effects(states, words, burn_in)
        fresh = _effects(values_of(trace(untrained(model, seed), short, predictions=False)), short, burn_in)
        control = _effects(values_of(trace(model, mixed, predictions=False)), mixed, burn_in)
        if len(effects.columns):
            table["label"] = effects.abs().idxmax(axis=1)
            usual = fresh.abs().groupby("memory").transform("quantile", 0.95)
            rows = pd.MultiIndex.from_frame(table["label"].reset_index())
            for name, each in (("effect", effects), ("untrained", usual), ("shuffled", control)):
                table[name] = each.stack().reindex(rows).to_numpy()
    courses = pd.DataFrame([_course(values, burn_in) for each in states.values() for values in each.T], cells)
    return table.join(courses).reset_index()


def passages(model: Network, text: Text | Excerpt, memory: str, unit: int = 0, k: int = PASSAGES) -> pd.DataFrame:
    """Find where a unit is highest and lowest along a text.

    Args:
        text: What is read.
        memory: A memory or hidden state.
        unit: Its number.
        k: Passages of each kind, none of which overlap; those of one value are spread over the text.

    Returns:
        One row a passage: `extreme` ("highest" or "lowest"), `place` (step), `value` (tanh c, or h), `before`, `symbol`
        and `after`, the text around; and `ties`, how many steps of the text have that value.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> found = lab.probes.passages(model, lab.probes.free_text()[:2000], "inner", 7, k=2)
    >>> found.extreme.tolist(), bool(found.value[0] > found.value[2])
    (['highest', 'highest', 'lowest', 'lowest'], True)
    """
    traced = trace(model, read(text), predictions=False)
    skipped(traced, 0, BEFORE + AFTER + 1)
    every = seen(traced)
    choice(memory, "memory", every)
    unit, k = counted(unit, "unit", 0, traced.sizes["unit"] - 1), counted(k, "k")
    values = every[memory][:, unit].astype(np.float64)
    symbols = [str(symbol) for symbol in traced["symbol"].values] if "symbol" in traced.coords else [""] * len(values)
    found = []
    for extreme, sign in (("highest", 1), ("lowest", -1)):
        for at in _places(sign * values, 0, k, spread=True):
            tied = int((np.abs(values - values[at]) < TIED).sum())
            around = ("".join(symbols[at - BEFORE : at]), symbols[at], "".join(symbols[at + 1 : at + AFTER]))
            found.append((extreme, at, values[at], *around, tied))
    return pd.DataFrame(found, columns=["extreme", "place", "value", "before", "symbol", "after", "ties"])


def values_of(traced: xr.Dataset) -> dict[str, Array]:
    """tanh of each memory's cells, or the hidden states where there are none, [T, unit]."""
    every = seen(traced)
    return {name: every[name] for name in memory_states(traced) or every}


def _effects(states: dict[str, Array], text: str, burn_in: int) -> pd.DataFrame:
    """The standardized difference of each unit's means, a row a unit and a column a label; near 0 of what is still."""
    x = np.concatenate([values[burn_in:] for values in states.values()], 1).astype(np.float64)
    found = {name: holds[burn_in:] for name, holds in unit_labels(text).items()}
    found = {name: there for name, there in found.items() if min(there.sum(), (~there).sum()) >= RAREST}
    cells = pd.MultiIndex.from_product([states, range(x.shape[1] // len(states))], names=["memory", "unit"])
    return pd.DataFrame({name: contrast(x, there) for name, there in found.items()}, cells)


def contrast(x: Array, there: Array) -> Array:
    """By how many standard deviations the mean of x [T, ...] is higher where `there` [T] holds than elsewhere."""
    pooled = np.sqrt((there.mean() * x[there].var(0)) + ((~there).mean() * x[~there].var(0)))
    return np.asarray((x[there].mean(0) - x[~there].mean(0)) / np.maximum(pooled, STILL / 10))


def _course(values: Array, burn_in: int) -> dict[str, Any]:
    """Extremes, histogram, places and passages of one unit."""
    values = values.astype(np.float64)
    low, high = float(values[burn_in:].min()), float(values[burn_in:].max())
    counts = np.histogram(values[burn_in:], BINS, (low, max(high, low + 1e-6)))[0]
    histogram = "".join("abcdefghij"[int(9 * count / counts.max() + 0.5)] for count in counts)
    places = [*_places(values, burn_in), *_places(-values, burn_in)]
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    digits = np.rint(np.clip(share, 0, 1) * (len(DIGITS) - 1)).astype(int)
    courses = " ".join("".join(DIGITS[k] for k in digits[at - BEFORE : at + AFTER]) for at in places)
    moved = np.flatnonzero(np.abs(values - values[-1]) > STILL)
    course = {"low": low, "high": high, "histogram": histogram, "still_since": int(moved[-1]) + 1 if len(moved) else 0}
    return course | {"places": " ".join(map(str, places)), "courses": courses}


def _places(values: Array, burn_in: int, count: int = PASSAGES, spread: bool = False) -> list[int]:
    """The steps of the highest values, apart from each other and from the ends; equal ones in order, or spread."""
    first, last = max(burn_in, BEFORE), len(values) - AFTER
    order = np.argsort(-values[first:last], kind="stable")
    if spread:
        level = np.rint(values[first:last] / TIED)
        highest = np.flatnonzero(level == level[order[0]]) if len(order) else order
        evenly = highest[np.linspace(0, len(highest) - 1, count).round().astype(int)] if len(highest) else highest
        order = np.concatenate([evenly, order[np.argsort(-level[order], kind="stable")]])
    found: list[int] = []
    for step in first + order:
        if all(abs(step - other) >= BEFORE + AFTER for other in found):
            found.append(int(step))
        if len(found) == count:
            break
    return found


@recorded("counterparts")
def counterparts(models: list[Network], text: Excerpt) -> pd.DataFrame:
    """Match each unit with the one of the same memory in each other network that goes with it most, on `BASELINE`
    characters: network and other (positions in `models`), memory, unit, `counterpart` and `r`, the correlation."""
    traces = (trace(model, read(text)[:BASELINE], predictions=False) for model in models)
    every = [{name: _standardized(x[BURN_IN:]) for name, x in values_of(traced).items()} for traced in traces]
    frames = []
    for (one, states), (other, others) in permutations(enumerate(every), 2):
        for memory, x in states.items():
            every_r = pd.DataFrame(x.T @ others[memory] / len(x)).rename_axis("unit")
            match = every_r.abs().idxmax(axis=1).rename("counterpart").reset_index()
            r = every_r.to_numpy()[match["unit"], match["counterpart"]].round(3)
            frames.append(match.assign(network=one, other=other, memory=memory, r=r))
    return pd.concat(frames, ignore_index=True)


def _standardized(x: Array) -> Array:
    """Mean 0 and deviation 1; 0 of what does not move."""
    spread = x.std(0)
    return np.where(spread > STILL / 10, (x - x.mean(0)) / np.maximum(spread, STILL / 10), 0)
