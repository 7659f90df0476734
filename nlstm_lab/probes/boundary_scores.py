"""Boundaries judged: against a truth within a window, each counting once, beside detectors that know nothing.

Whole texts are read in pieces, and what is measured is recorded. What the ladder of notebook 21 changes, its criterion
and its predictions were written down before the runs (`data/targets/protocol.md`).
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from string import punctuation
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from nlstm_lab.datasets import Excerpt, Lines
from nlstm_lab.datasets.text import PHRASE, WORD, NestedLanguage
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.interventions import continuations, effect, predictions
from nlstm_lab.probes.reading import encode_symbols, reading, rows, states_at
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import intervals
from nlstm_lab.probes.segmentation import boundaries, together, updates
from nlstm_lab.statistics import mutual_information

Flags = NDArray[np.bool_]  # [T], true where a segment ends
Window = tuple[int, int]  # how many steps a boundary may come before the true one, and after it
Truths = Sequence[Mapping[str, Flags]]  # of each text
Readings = Sequence[xr.Dataset]  # `boundaries` of each text

DRAWS = 10  # of detectors that are drawn: random ones, and phases of periodic ones
WINDOWS: Mapping[str, Window] = {"0": (0, 0), "±1": (1, 1), "or one after": (0, 1)}
NETWORK = "network"
PIECE = 500  # characters that are judged in one piece, from a zero state, side by side with the others
MOMENTS, DISTANCE = 60, 20  # at which a FLUSH is turned, at most, and predictions after that
LIMIT = 0.05  # of F1 above chance: boundaries whose interval ends below it do not fall on words
KINDS = {"withheld": 1.0, "forced": 0.0}  # what z was before it was turned


def agreement(predicted: Sequence[Flags], true: Sequence[Flags], within: Window = (0, 0)) -> tuple[float, float, float]:
    """Precision, recall and F1 of boundaries against the true ones of the same texts, each matched with one at most;
    NaN where that divides by zero."""
    hits = sum(matched(mine, theirs, within) for mine, theirs in zip(predicted, true, strict=True))
    fired, there = (int(sum(flags.sum() for flags in many)) for many in (predicted, true))
    parts = ((hits, fired), (hits, there), (2 * hits, fired + there))
    precision, recall, f1 = (part / whole if whole else math.nan for part, whole in parts)
    return precision, recall, f1


def matched(predicted: Flags, true: Flags, within: Window = (0, 0)) -> int:
    """The largest number of pairs of a boundary and a true one within the window, none used twice."""
    if predicted.shape != true.shape:
        raise UsageError(f"boundaries of {len(predicted)} steps cannot be judged against a truth of {len(true)} steps")
    if within == (0, 0):
        return int((predicted & true).sum())
    late = np.flatnonzero(predicted)[:, None] - np.flatnonzero(true)
    possible = csr_array((-within[0] <= late) & (late <= within[1]))
    return int((maximum_bipartite_matching(possible) >= 0).sum())


def text_truths(symbols: Sequence[str]) -> dict[str, Flags]:
    """Where in a text there are spaces (line ends are), first and last characters of words, punctuation marks."""
    space = np.array([symbol.isspace() for symbol in symbols], bool)
    return {
        "spaces": space,
        "word starts": ~space & np.concatenate([[True], space[:-1]]),
        "word ends": ~space & np.concatenate([space[1:], [True]]),
        "punctuation": np.array([symbol in punctuation for symbol in symbols], bool),
    }


def known_truths(text: Excerpt) -> dict[str, Flags]:
    """Where words and phrases of a known text end (both do where a phrase or the split does), and where they begin."""
    assert isinstance(text.corpus, NestedLanguage)
    begins = np.append(text.corpus.load().boundaries[text.split], PHRASE)[text.start : text.start + text.length + 1]
    begun = {"word": begins >= WORD, "phrase": begins > WORD}
    ends = {f"{name} ends": flags[1:] for name, flags in begun.items()}
    return ends | {f"{name} starts": flags[:-1] for name, flags in begun.items()}


def fires(data: xr.Dataset, layer: int) -> Flags:
    """Where z of a layer (1, 2, ...) says that a segment ends; soft boundaries beyond the threshold do."""
    return np.asarray(data["z"].sel(layer=layer).values > data.attrs["threshold"])


def _detecting(readings: Readings) -> list[int]:  # all layers but the top one
    return readings[0]["layer"].values[:-1].tolist()  # type: ignore[no-any-return]


def rivals(fired: Sequence[Flags], surprise: Sequence[NDArray[Any]], seed: int = 0) -> dict[str, list[list[Flags]]]:
    """Detectors that fire as often as the network's: at random, periodically, and where least was expected."""
    generator = np.random.default_rng(seed)
    random = [[generator.permutation(flags) for flags in fired] for _ in range(DRAWS)]
    periodic = [[_periodic(flags, generator.random()) for flags in fired] for _ in range(DRAWS)]
    knowing_nothing = {"random": random, "periodic": periodic}
    if all(np.isnan(one).all() for one in surprise):
        return knowing_nothing
    bits = np.concatenate([np.nan_to_num(one, nan=-np.inf) for one in surprise])
    chosen = np.zeros(len(bits), bool)
    chosen[np.argsort(-bits, kind="stable")[: int(sum(flags.sum() for flags in fired))]] = True
    ends = np.cumsum([len(one) for one in surprise])[:-1]
    return knowing_nothing | {"surprise": [np.split(chosen, ends)]}


def _periodic(flags: Flags, phase: float) -> Flags:
    """As many boundaries as `flags` has, as evenly spread as steps allow."""
    passed = np.floor(np.arange(len(flags) + 1) * (flags.sum() / max(len(flags), 1)) + phase)
    return np.asarray(np.diff(passed) > 0)


def judged(readings: Readings, truths: Truths, windows: Mapping[str, Window] = WINDOWS, seed: int = 0) -> pd.DataFrame:
    """z of every layer with a detector, and its rivals, against every truth: rate and base (boundaries and true ones a
    step), precision, recall and f1, one row a layer, truth, window and detector."""
    rows: list[dict[str, Any]] = []
    for layer in _detecting(readings):
        fired = [fires(reading, layer) for reading in readings]
        detectors = {NETWORK: [fired], **rivals(fired, [reading["surprise"].values for reading in readings], seed)}
        for truth in truths[0]:
            true = [of_text[truth] for of_text in truths]
            for (window, within), (detector, drawn) in product(windows.items(), detectors.items()):
                scores = np.array([agreement(one, true, within) for one in drawn]).mean(0)
                about = {"layer": layer, "truth": truth, "within": window, "detector": detector}
                shares = {"rate": np.concatenate(drawn[0]).mean(), "base": np.concatenate(true).mean()}
                rows.append(about | shares | dict(zip(("precision", "recall", "f1"), scores, strict=True)))
    return pd.DataFrame(rows)


def beyond_symbol(readings: Readings, true: Flags, seed: int = 0) -> tuple[float, float]:
    """The bits a step that z of layer 1 and a truth share given the current symbol, and what chance leaves of them."""
    whole, generator = xr.concat(readings, "time"), np.random.default_rng(seed)
    z, symbols = fires(whole, 1), np.unique(whole["symbol"].values, return_inverse=True)[1]
    shuffled = z.copy()
    for symbol in np.unique(symbols):
        shuffled[symbols == symbol] = generator.permutation(z[symbols == symbol])
    alone = mutual_information(symbols, true)
    given, by_chance = (mutual_information(2 * symbols + flags, true) - alone for flags in (z, shuffled))
    return given, by_chance


@recorded("boundary_scores", by=["seed"], piece=PIECE)
def segment_scores(model: Network, text: Excerpt | Lines, seed: int = 0) -> pd.DataFrame:
    """Judge boundaries by what ends in a text, or by the lifted pen, beside detectors that know nothing: `judged`."""
    return judged(*_readings(model, text), seed=seed)


@recorded("boundary_information", by=["seed"], piece=PIECE)
def boundary_information(model: Network, text: Excerpt, seed: int = 0) -> pd.DataFrame:
    """Measure what boundaries tell of what a text ends, in bits a character.

    Returns:
        One row a layer and truth: bits; beside them what the same boundaries `shuffled` share, what the current
        `symbol` does, and the truth's own `entropy`; rate and base.
    """
    readings, truths, _ = _readings(model, text)
    whole, generator, table = xr.concat(readings, "time"), np.random.default_rng(seed), []
    for layer, name in product(_detecting(readings), truths[0]):
        z, true = fires(whole, layer), np.concatenate([of_text[name] for of_text in truths])
        row = {"layer": layer, "truth": name, "bits": mutual_information(z, true)}
        row["shuffled"] = mutual_information(generator.permutation(z), true)
        row["symbol"], row["entropy"] = mutual_information(whole["symbol"].values, true), mutual_information(true, true)
        table.append(row | {"rate": z.mean(), "base": true.mean()})
    return pd.DataFrame(table)


@recorded("word_alignment", by=["seed"], piece=PIECE)
def word_alignment(model: Network, text: Excerpt, seed: int = 0) -> pd.DataFrame:
    """Judge the first layer's boundaries against words, by the criterion of the protocol.

    Returns:
        One row: rate (boundaries a step) and base (true ones), f1 (at a space or the character after it, in a known
        language at the ends of words) and chance (of a random detector of the same rate); bits, what z and the ends of
        words share given the current symbol, and shuffled, the same after z was permuted among the steps of a symbol.
    """
    readings, truths, windows = _readings(model, text)
    truth, within = ("word ends", "0") if isinstance(text.corpus, NestedLanguage) else ("spaces", "or one after")
    scores = judged(readings, [{truth: one[truth]} for one in truths], {within: windows[within]}, seed)
    scores = scores[scores["layer"] == 1].set_index("detector")
    bits, shuffled = beyond_symbol(readings, np.concatenate([one["word ends"] for one in truths]), seed)
    row = scores.loc[[NETWORK], ["rate", "base", "f1"]]
    return row.assign(chance=scores["f1"]["random"], bits=bits, shuffled=shuffled)


def on_words(aligned: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Judge over seeds whether boundaries fall on words, by the criterion of the protocol.

    Args:
        aligned: `word_alignment` of several runs, one row a seed.
        by: Columns that tell settings apart.

    Returns:
        By setting: seeds; rate; `f1`, above chance, and `bits`, above shuffled, with the ends of their t intervals;
        verdict: "yes" where both intervals lie above 0, "no" where that of F1 ends below `LIMIT`, else "inconclusive".
    """
    table = aligned.groupby([*by], sort=False, dropna=False).agg(seeds=("seed", "size"), rate=("rate", "mean"))
    for name, chance in (("f1", "chance"), ("bits", "shuffled")):
        found = intervals(aligned.assign(above=aligned[name] - aligned[chance]), "above", by).set_index([*by])
        table[[name, f"{name} low", f"{name} high"]] = found[["mean", "low", "high"]]
    yes, no = (table["f1 low"] > 0) & (table["bits low"] > 0), table["f1 high"] < LIMIT
    return table.assign(verdict=np.select([yes, no], ["yes", "no"], "inconclusive"))


@recorded("updates", piece=PIECE)
def update_costs(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count what each layer did over all pieces, and what that costs beside doing it at every step.

    Returns:
        One row a layer: layer, steps; updates, the steps at which it did not COPY, and of these `flushes`;
        multiply-adds of the layers' matrices with states: `sparse`, where a layer that copies computes nothing and one
        that acts reads what equations 5 to 7 let through; `dense`, all at every step; `stack`, an LSTM of equal size.
    """
    counts = [updates(model, boundaries) for boundaries in _readings(model, text)[0]]
    return pd.concat(counts).groupby("layer").sum().reset_index()


def _readings(model: Network, text: Excerpt | Lines) -> tuple[Readings, Truths, Mapping[str, Window]]:
    """Pieces of a text, or lines, as the network reads them, their truths, and the windows to judge within."""
    if isinstance(text, Lines):
        lines = text.read()
        truths = [{"pen-ups": line[:, 2].numpy() > 0} for line in lines]
        return together(model, lines), truths, {name: WINDOWS[name] for name in ("0", "±1")}
    if not isinstance(text, Excerpt):
        raise UsageError(f"text must be an excerpt (lab.datasets.Excerpt) or lines, not {text!r}"[:100])
    symbols = text.read()
    cuts = range(0, len(symbols), PIECE)
    whole = known_truths(text) if isinstance(text.corpus, NestedLanguage) else text_truths(symbols)
    truths = [{name: flags[start : start + PIECE] for name, flags in whole.items()} for start in cuts]
    return together(model, [symbols[start : start + PIECE] for start in cuts]), truths, WINDOWS


@recorded("flushes", moments=MOMENTS, distance=DISTANCE)
def flush_effects(model: Network, text: str | Excerpt) -> pd.DataFrame:
    """Turn z_{t-1} of each layer with a detector before step t, at moments spread over a text, and read on beside it.

    Returns:
        One row a layer, kind and distance (0 is the prediction at step t itself): kl, the divergence of the turned
        network's prediction from the intact one's, and loss_increase, both in nats and means over the moments; number,
        how many, `MOMENTS` or as many as the text has. Kinds: withheld, z was 1 and is made 0, so that in the place of
        a FLUSH comes an UPDATE or a COPY (equation 2), and nothing comes down (equation 6); forced, z was 0 and is made
        1. UsageError where no step function decides on boundaries, or the text is too short.
    """
    words: str = read(text)
    data, codes = boundaries(model, words), encode_symbols(model, words)
    if data.attrs["boundary"] != "step":
        raise UsageError(f"a step function must decide on a withheld FLUSH; here it is {data.attrs['boundary']}")
    if len(codes) < DISTANCE + 3:
        raise UsageError(f"the text must have {DISTANCE + 3} characters or more, not {len(codes)}")
    frames = []
    for layer, (kind, was) in product(_detecting([data]), KINDS.items()):
        possible = np.flatnonzero(fires(data, layer)[: len(codes) - DISTANCE - 1] == was) + 1  # z_{t-1} from t = 1 on
        chosen = possible[np.linspace(0, len(possible) - 1, min(MOMENTS, len(possible))).astype(int)].tolist()
        table = pd.DataFrame({"layer": layer, "kind": kind, "number": len(chosen), "distance": range(DISTANCE)})
        frames.append(table.assign(kl=np.nan, loss_increase=np.nan))
        if chosen:
            with reading(model):
                state = states_at(model, codes, chosen)
                other = rows(state, range(len(chosen)))
                other[2][layer - 1] = 1 - other[2][layer - 1]
                x, targets = continuations(codes, chosen, DISTANCE)
                loss, turned, kl = effect(predictions(model, x, state), predictions(model, x, other), targets)
            frames[-1] = table.assign(kl=kl.mean(1), loss_increase=(turned - loss).mean(1))
    return pd.concat(frames, ignore_index=True)
