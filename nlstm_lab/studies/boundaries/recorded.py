"""Boundaries of recorded networks, judged: every measurement is read from its record, or made and recorded."""

from dataclasses import dataclass, field
from functools import lru_cache

import pandas as pd
import xarray as xr

from nlstm_lab.datasets.excerpt import Excerpt, Lines
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


@recorded("boundary_scores", by=["piece", "seed"])
def segment_scores(model: Network, text: Excerpt | Lines, piece: int = PIECE, seed: int = 0) -> pd.DataFrame:
    """Judge boundaries by what a text ends, or by the pen's being lifted (`segments.judged`).

    Args:
        model: The network that reads.
        text: What it reads.
        piece: Characters that are read in one piece.
        seed: Of the detectors that are drawn.

    Returns:
        The columns of `segments.judged`.
    """
    return segments.judged(*_readings(model, text, piece), seed=seed)


@recorded("boundary_information", by=["piece", "seed"])
def boundary_information(model: Network, text: Excerpt, piece: int = PIECE, seed: int = 0) -> pd.DataFrame:
    """Measure what boundaries tell of what a text ends, in bits a character (`segments.information`)."""
    readings, truths, _ = _readings(model, text, piece)
    return segments.information(readings, truths, seed)


@recorded("operations", by=["piece"])
def operation_shares(model: Network, text: Excerpt | Lines, piece: int = PIECE) -> pd.DataFrame:
    """Count every operation and its share of the steps, one row a layer and operation (`segments.operations`)."""
    return segments.operations(_readings(model, text, piece)[0])


@recorded("updates", by=["piece"])
def update_costs(model: Network, text: Excerpt | Lines, piece: int = PIECE) -> pd.DataFrame:
    """Count updates and multiply-adds over all pieces, one row a layer (`updates`)."""
    counts = [updates(model, boundaries) for boundaries in _readings(model, text, piece)[0]]
    return pd.concat(counts).groupby("layer").sum().reset_index()


@recorded("segment_lengths", by=["piece"])
def length_counts(model: Network, text: Excerpt | Lines, piece: int = PIECE) -> pd.DataFrame:
    """Count how long segments are, beside those that the truths make (`segments.lengths`)."""
    readings, truths, _ = _readings(model, text, piece)
    return segments.lengths(readings, truths)


@recorded("since_flush", by=["piece"])
def surprisal_since_flush(model: Network, text: Excerpt | Lines, piece: int = PIECE) -> pd.DataFrame:
    """Measure the surprisal of what comes next against the steps since a FLUSH (`segments.since_flush`)."""
    return segments.since_flush(_readings(model, text, piece)[0])


@recorded("flushes", by=["moments", "distance"])
def flush_effects(model: Network, text: Excerpt, moments: int = MOMENTS, distance: int = DISTANCE) -> pd.DataFrame:
    """Withhold and force a FLUSH in every layer that has a detector (`flushes`)."""
    characters, layers = read(text), range(1, model.recurrent.num_layers)
    return pd.concat([flushes(model, characters, k, moments=moments, distance=distance) for k in layers])


def _readings(model: Network, text: Excerpt | Lines, piece: int) -> Readings:
    """Pieces of a text, or lines, as the network reads them, their truths, and the windows to judge within."""
    return _read_once(_Known(digest(model), model), text, piece)


@dataclass(frozen=True)
class _Known:
    """A network that is known as in a record: by its weights, as they are now."""

    weights: str
    model: Network = field(compare=False)


@lru_cache(maxsize=16)  # every measurement of a network reads the same
def _read_once(known: _Known, place: Excerpt | Lines, piece: int) -> Readings:
    model = known.model
    if isinstance(place, Lines):
        lines = place.read()
        truths = [{"pen-ups": line[:, 2].numpy() > 0} for line in lines]
        return together(model, lines), truths, dict(PEN_WINDOWS)
    text = place.read()
    cuts = range(0, len(text), piece)
    whole = segments.text_truths(text)
    truths = [{name: flags[start : start + piece] for name, flags in whole.items()} for start in cuts]
    return together(model, [text[start : start + piece] for start in cuts]), truths, dict(segments.WINDOWS)
