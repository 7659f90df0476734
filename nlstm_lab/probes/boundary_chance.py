"""Boundaries judged against a truth within a window, each counting once, and against detectors that know nothing."""

import math
from collections.abc import Mapping, Sequence
from string import punctuation
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.stats.contingency import crosstab

from nlstm_lab.datasets import KnownText
from nlstm_lab.datasets.text import WORD
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.segmentation import OPERATIONS

Flags = NDArray[np.bool_]  # [T], true where a segment ends
Window = tuple[int, int]  # how many steps a boundary may come before the true one, and after it

LONGEST = 20  # steps since a FLUSH
DRAWS = 10  # of detectors that are drawn: random ones, and phases of periodic ones
WINDOWS: Mapping[str, Window] = {"0": (0, 0), "±1": (1, 1), "or one after": (0, 1)}
NETWORK = "network"


class Agreement(NamedTuple):
    """NaN where nothing was found (precision) or nothing is true (recall)."""

    precision: float
    recall: float
    f1: float


def agreement(predicted: Sequence[Flags], true: Sequence[Flags], within: Window = (0, 0)) -> Agreement:
    """How well boundaries meet the true ones of the same texts, each matched with one at most."""
    hits = sum(matched(mine, theirs, within) for mine, theirs in zip(predicted, true, strict=True))
    fired, there = (int(sum(flags.sum() for flags in many)) for many in (predicted, true))
    precision, recall = hits / fired if fired else math.nan, hits / there if there else math.nan
    return Agreement(precision, recall, 2 * hits / (fired + there) if fired + there else math.nan)


def matched(predicted: Flags, true: Flags, within: Window = (0, 0)) -> int:
    """The largest number of pairs of a boundary and a true one within the window, none used twice."""
    if predicted.shape != true.shape:
        raise UsageError(f"boundaries of {len(predicted)} steps cannot be judged against a truth of {len(true)} steps")
    if within == (0, 0):
        return int((predicted & true).sum())
    here, there = np.flatnonzero(predicted).tolist(), np.flatnonzero(true).tolist()
    before, after = within
    hits = i = j = 0
    while i < len(here) and j < len(there):
        late = here[i] - there[j]
        if -before <= late <= after:
            hits, i, j = hits + 1, i + 1, j + 1
        elif late < 0:
            i += 1
        else:
            j += 1
    return hits


def text_truths(symbols: Sequence[str]) -> dict[str, Flags]:
    """Where in a text there are spaces (line ends are), first and last characters of words, punctuation marks."""
    space = np.array([symbol.isspace() for symbol in symbols], bool)
    mark = np.array([symbol in punctuation for symbol in symbols], bool)
    return {
        "spaces": space,
        "word starts": ~space & np.concatenate([[True], space[:-1]]),
        "word ends": ~space & np.concatenate([space[1:], [True]]),
        "punctuation": mark,
    }


def known_truths(text: KnownText) -> dict[str, Flags]:
    """Where in a known text a word or a phrase (whose ends are ends of words, too) ends, and where one begins."""
    begins = text.language.load().boundaries[text.split][: text.length + 1]
    begun = {"word": begins >= WORD, "phrase": begins > WORD}
    ends = {f"{name} ends": flags[1:] for name, flags in begun.items()}
    return ends | {f"{name} starts": flags[:-1] for name, flags in begun.items()}


def fires(data: xr.Dataset, layer: int) -> Flags:
    """Where z of a layer (1, 2, ...) says that a segment ends; soft boundaries beyond the threshold do."""
    threshold = data.attrs["threshold"]
    return np.asarray(data["z"].sel(layer=layer).values > (0.5 if threshold is None else threshold))


def rivals(
    fired: Sequence[Flags], surprise: Sequence[NDArray[np.floating[Any]]], seed: int = 0
) -> dict[str, list[list[Flags]]]:
    """Detectors that fire as often as the network's: at random, periodically, and where least was expected."""
    generator = np.random.default_rng(seed)
    random = [[generator.permutation(flags) for flags in fired] for _ in range(DRAWS)]
    periodic = [[_periodic(flags, generator.random()) for flags in fired] for _ in range(DRAWS)]
    number = int(sum(flags.sum() for flags in fired))
    if all(np.isnan(one).all() for one in surprise):
        return {"random": random, "periodic": periodic}
    bits = np.concatenate([np.nan_to_num(one, nan=-np.inf) for one in surprise])
    chosen = np.zeros(len(bits), bool)
    chosen[np.argsort(-bits, kind="stable")[:number]] = True
    ends = np.cumsum([len(one) for one in surprise])[:-1]
    return {"random": random, "periodic": periodic, "surprise": [np.split(chosen, ends)]}


def _periodic(flags: Flags, phase: float) -> Flags:
    """As many boundaries as `flags` has, as evenly spread as steps allow."""
    passed = np.floor(np.arange(len(flags) + 1) * (flags.sum() / max(len(flags), 1)) + phase)
    return np.asarray(np.diff(passed) > 0)


def judged(
    readings: Sequence[xr.Dataset],
    truths: Sequence[Mapping[str, Flags]],
    windows: Mapping[str, Window] = WINDOWS,
    seed: int = 0,
) -> pd.DataFrame:
    """z of every layer with a detector, and its rivals, against every truth: rate and base (boundaries and true ones a
    step), precision, recall and f1, one row a layer, truth, window and detector."""
    rows: list[dict[str, Any]] = []
    for layer in readings[0]["layer"].values[:-1].tolist():
        fired = [fires(reading, layer) for reading in readings]
        surprise = [reading["surprise"].values for reading in readings]
        detectors = {NETWORK: [fired], **rivals(fired, surprise, seed)}
        for truth in truths[0]:
            true = [of_text[truth] for of_text in truths]
            for window, within in windows.items():
                for detector, drawn in detectors.items():
                    scores = np.array([agreement(one, true, within) for one in drawn]).mean(0)
                    about = {"layer": layer, "truth": truth, "within": window, "detector": detector}
                    shares = {"rate": _rate(drawn[0]), "base": _rate(true)}
                    rows.append(about | shares | dict(zip(Agreement._fields, scores, strict=True)))
    return pd.DataFrame(rows)


def _rate(flags: Sequence[Flags]) -> float:
    return float(np.concatenate(list(flags)).mean())


def mutual_information(one: NDArray[Any], other: NDArray[Any]) -> float:
    """How many bits two series of labels tell of each other, step by step: their plug-in mutual information."""
    joint = crosstab(one, other).count / len(one)
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log2(joint[there] / apart[there])).sum())


def information(readings: Sequence[xr.Dataset], truths: Sequence[Mapping[str, Flags]], seed: int = 0) -> pd.DataFrame:
    """The bits a step that z of every layer with a detector and a truth share, one row a layer and truth; beside them
    what the same boundaries in another order share, what the current symbol does, and the truth's own entropy."""
    generator, rows = np.random.default_rng(seed), []
    symbols = np.concatenate([reading["symbol"].values for reading in readings])
    for layer in readings[0]["layer"].values[:-1].tolist():
        z = np.concatenate([fires(reading, layer) for reading in readings])
        for name in truths[0]:
            true = np.concatenate([of_text[name] for of_text in truths])
            row = {"layer": layer, "truth": name, "bits": mutual_information(z, true)}
            row["shuffled"] = mutual_information(generator.permutation(z), true)
            row["symbol"], row["entropy"] = mutual_information(symbols, true), mutual_information(true, true)
            rows.append(row | {"rate": z.mean(), "base": true.mean()})
    return pd.DataFrame(rows)


def beyond_symbol(readings: Sequence[xr.Dataset], truth: Sequence[Flags], seed: int = 0) -> tuple[float, float]:
    """The bits a step that z of layer 1 and a truth share given the current symbol, and what chance leaves of them."""
    generator = np.random.default_rng(seed)
    symbols = np.unique(np.concatenate([one["symbol"].values for one in readings]), return_inverse=True)[1]
    z, true = np.concatenate([fires(one, 1) for one in readings]), np.concatenate(list(truth))
    shuffled = z.copy()
    for symbol in np.unique(symbols):
        at = np.flatnonzero(symbols == symbol)
        shuffled[at] = generator.permutation(z[at])
    alone = mutual_information(symbols, true)
    given, by_chance = (mutual_information(2 * symbols + flags, true) - alone for flags in (z, shuffled))
    return given, by_chance


def lengths(readings: Sequence[xr.Dataset], truths: Sequence[Mapping[str, Flags]] = ()) -> pd.DataFrame:
    """How long whole segments are: one row a series ("layer 1", or a truth's name) and length, with their `count`."""
    detected = {
        f"layer {layer}": [fires(reading, layer) for reading in readings]
        for layer in readings[0]["layer"].values[:-1].tolist()
    }
    named = detected | {name: [of_text[name] for of_text in truths] for name in (truths[0] if truths else ())}
    rows = []
    for series, texts in named.items():
        reading = np.concatenate([np.diff(np.flatnonzero(flags)) for flags in texts])
        for length, count in zip(*np.unique(reading, return_counts=True), strict=True):
            rows.append({"series": series, "length": int(length), "count": int(count)})
    return pd.DataFrame(rows, columns=["series", "length", "count"])


def since_flush(readings: Sequence[xr.Dataset]) -> pd.DataFrame:
    """The surprise of what comes next against the steps since a layer's last FLUSH: layer, since, bits, count."""
    frames = []
    for layer in readings[0]["layer"].values[:-1].tolist():
        for reading in readings:
            flushed = reading["operation"].sel(layer=layer).values == OPERATIONS.index("FLUSH")
            last = np.maximum.accumulate(np.where(flushed, np.arange(len(flushed)), -1))
            since = np.where(last < 0, -1, np.arange(len(flushed)) - last)[:-1]
            frames.append(pd.DataFrame({"layer": layer, "since": since, "bits": reading["surprise"].values[1:]}))
    table = pd.concat(frames)
    table = table[(table["since"] >= 0) & (table["since"] <= LONGEST)]
    means = table.groupby(["layer", "since"])["bits"].agg(bits="mean", count="size")
    return means.reset_index()
