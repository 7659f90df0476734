"""Boundaries of recorded networks, judged: every measurement is read from its record, or made and recorded."""

from dataclasses import dataclass, field
from functools import lru_cache

import pandas as pd
import xarray as xr

from nlstm_lab.datasets.excerpt import Excerpt, KnownText, Lines
from nlstm_lab.models import Network
from nlstm_lab.probes.records import digest, read, recorded
from nlstm_lab.studies.boundaries import segments
from nlstm_lab.studies.boundaries.flushing import flushes
from nlstm_lab.studies.boundaries.measure import together
from nlstm_lab.studies.boundaries.updates import updates

PIECE = 500  # characters that are judged in one piece, from a zero state, side by side with the others
MOMENTS, DISTANCE = 60, 20  # at which a FLUSH is turned, and predictions after that
PEN_WINDOWS = {name: segments.WINDOWS[name] for name in ("0", "±1")}
Readings = tuple[list[xr.Dataset], list[dict[str, segments.Flags]], dict[str, segments.Window]]


@recorded("boundary_scores", by=["seed"], piece=PIECE)
def segment_scores(model: Network, text: Excerpt | KnownText | Lines, seed: int = 0) -> pd.DataFrame:
    """Judge boundaries by what a text ends, or by the pen's being lifted (`segments.judged`).

    Args:
        model: The network that reads.
        text: What it reads.
        seed: Of the detectors that are drawn.

    Returns:
        The columns of `segments.judged`.
    """
    return segments.judged(*_readings(model, text), seed=seed)


@recorded("boundary_information", by=["seed"], piece=PIECE)
def boundary_information(model: Network, text: Excerpt | KnownText, seed: int = 0) -> pd.DataFrame:
    """Measure what boundaries tell of what a text ends, in bits a character (`segments.information`)."""
    readings, truths, _ = _readings(model, text)
    return segments.information(readings, truths, seed)


@recorded("word_alignment", by=["seed"], piece=PIECE)
def word_alignment(model: Network, text: Excerpt | KnownText, seed: int = 0) -> pd.DataFrame:
    """Judge the first layer's boundaries against words, by the criterion of the protocol.

    Args:
        model: The network that reads.
        text: What it reads: F1 is at a space or the character after it, in a known language at the ends of words.
        seed: Of what is drawn at random.

    Returns:
        One row: rate (boundaries a step) and base (true ones), f1 and chance (of a random detector of the same rate);
        bits, what z and the ends of words share given the current symbol, and shuffled, the same after z was permuted
        among the steps of each symbol.
    """
    readings, truths, windows = _readings(model, text)
    truth, within = ("word ends", "0") if isinstance(text, KnownText) else ("spaces", "or one after")
    of_truth = [{truth: of_text[truth]} for of_text in truths]
    scores = segments.attained(segments.judged(readings, of_truth, {within: windows[within]}, seed))
    bits, shuffled = segments.beyond_symbol(readings, [of_text["word ends"] for of_text in truths], seed)
    row = scores[scores["layer"] == 1][["rate", "base", "f1", "chance"]]
    return row.assign(bits=bits, shuffled=shuffled)


@recorded("operations", piece=PIECE)
def operation_shares(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count every operation and its share of the steps, one row a layer and operation (`segments.operations`)."""
    return segments.operations(_readings(model, text)[0])


@recorded("updates", piece=PIECE)
def update_costs(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count updates and multiply-adds over all pieces, one row a layer (`updates`)."""
    counts = [updates(model, boundaries) for boundaries in _readings(model, text)[0]]
    return pd.concat(counts).groupby("layer").sum().reset_index()


@recorded("segment_lengths", piece=PIECE)
def length_counts(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count how long segments are, beside those that the truths make (`segments.lengths`)."""
    readings, truths, _ = _readings(model, text)
    return segments.lengths(readings, truths)


@recorded("since_flush", piece=PIECE)
def surprisal_since_flush(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Measure the surprisal of what comes next against the steps since a FLUSH (`segments.since_flush`)."""
    return segments.since_flush(_readings(model, text)[0])


@recorded("flushes", moments=MOMENTS, distance=DISTANCE)
def flush_effects(model: Network, text: Excerpt) -> pd.DataFrame:
    """Withhold and force a FLUSH in every layer that has a detector (`flushes`)."""
    characters, layers = read(text), range(1, model.recurrent.num_layers)
    return pd.concat([flushes(model, characters, k, moments=MOMENTS, distance=DISTANCE) for k in layers])


def _readings(model: Network, text: Excerpt | KnownText | Lines) -> Readings:
    """Pieces of a text, or lines, as the network reads them, their truths, and the windows to judge within."""
    return _read_once(_Known(digest(model), model), text)


@dataclass(frozen=True)
class _Known:
    """A network that is known as in a record: by its weights, as they are now."""

    weights: str
    model: Network = field(compare=False)


@lru_cache(maxsize=16)  # every measurement of a network reads the same
def _read_once(known: _Known, place: Excerpt | KnownText | Lines) -> Readings:
    model = known.model
    if isinstance(place, Lines):
        lines = place.read()
        truths = [{"pen-ups": line[:, 2].numpy() > 0} for line in lines]
        return together(model, lines), truths, dict(PEN_WINDOWS)
    text = place.read()
    cuts = range(0, len(text), PIECE)
    whole = segments.text_truths(text) if isinstance(place, Excerpt) else segments.known_truths(place)
    truths = [{name: flags[start : start + PIECE] for name, flags in whole.items()} for start in cuts]
    return together(model, [text[start : start + PIECE] for start in cuts]), truths, dict(segments.WINDOWS)
