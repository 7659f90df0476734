"""What notebooks ask of recorded HM-RNNs and their boundaries: committed records, or measured and recorded.

As `studies`: known by the digest of the weights, the place of the text (or of the lines of handwriting), parameters.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.datasets.corpora import SPLITS
from nlstm_lab.datasets.excerpt import Excerpt, Lines
from nlstm_lab.datasets.handwriting import Handwriting, trajectory
from nlstm_lab.models import Network
from nlstm_lab.probes import flushing, segments
from nlstm_lab.probes.boundaries import boundaries as read
from nlstm_lab.probes.boundaries import described, from_rows, rows_of, together
from nlstm_lab.probes.reading import reading
from nlstm_lab.probes.records import digest, ensure
from nlstm_lab.probes.updates import updates as counted
from nlstm_lab.probes.writing import density_of

PIECE = 500  # characters that are judged in one piece, from a zero state, side by side with the others
MOMENTS, DISTANCE = 60, 20  # at which a FLUSH is turned, and predictions after that
PEN_WINDOWS = {name: segments.WINDOWS[name] for name in ("0", "±1")}
Readings = tuple[list[xr.Dataset], list[dict[str, segments.Flags]], dict[str, segments.Window]]


def boundaries(model: Network, excerpt: Excerpt) -> xr.Dataset:
    """`lab.probes.boundaries` of an excerpt that may be quoted: the record holds its symbols."""
    table = ensure("boundaries", lambda: rows_of(read(model, excerpt.read())), weights=model, text=str(excerpt))
    return from_rows(table, described(model, None, None, model.name))


def scores(model: Network, excerpt: Excerpt | Lines, seed: int = 0) -> pd.DataFrame:
    """`segments.judged` against what a text ends, or against the pen's being lifted."""
    return ensure(
        "boundary_scores",
        lambda: segments.judged(*_readings(model, excerpt), seed=seed),
        **_key(model, excerpt),
        seed=seed,
    )


def operations(model: Network, excerpt: Excerpt | Lines) -> pd.DataFrame:
    """`segments.operations`: every operation's count and share, one row a layer and operation."""
    return ensure("operations", lambda: segments.operations(_readings(model, excerpt)[0]), **_key(model, excerpt))


def updates(model: Network, excerpt: Excerpt | Lines) -> pd.DataFrame:
    """`updates.updates` over all readings: updates and multiply-adds, one row a layer."""

    def measure() -> pd.DataFrame:
        parts = [counted(model, found) for found in _readings(model, excerpt)[0]]
        return pd.concat(parts).groupby("layer").sum().reset_index()

    return ensure("updates", measure, **_key(model, excerpt))


def lengths(model: Network, excerpt: Excerpt | Lines) -> pd.DataFrame:
    """`segments.lengths`: how long segments are, beside those that the truths make."""

    def measure() -> pd.DataFrame:
        readings, truths, _ = _readings(model, excerpt)
        return segments.lengths(readings, truths)

    return ensure("segment_lengths", measure, **_key(model, excerpt))


def since_flush(model: Network, excerpt: Excerpt | Lines) -> pd.DataFrame:
    """`segments.since_flush`: the surprise of what comes next against the steps since a FLUSH."""
    return ensure("since_flush", lambda: segments.since_flush(_readings(model, excerpt)[0]), **_key(model, excerpt))


def flushes(model: Network, excerpt: Excerpt) -> pd.DataFrame:
    """`flushing.flushes` of every layer that has a detector."""

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        return pd.concat(
            [
                flushing.flushes(model, text, k, moments=MOMENTS, distance=DISTANCE)
                for k in range(1, model.unit.num_layers)
            ]
        )

    return ensure("flushes", measure, weights=model, text=str(excerpt), moments=MOMENTS, distance=DISTANCE)


def _key(model: Network, excerpt: Excerpt | Lines) -> dict[str, Any]:
    return {"weights": model, "text": str(excerpt), "piece": PIECE}


def written(model: Network, lines: Lines) -> xr.Dataset:
    """`lab.probes.boundaries` of one line of handwriting, with the pen's place `x`, `y` [time] in the tablet's units
    (y grows downward) and `lifted` [time], 1 where the pen is lifted after the point."""

    def measure() -> pd.DataFrame:
        (points,) = lines.read()
        return rows_of(read(model, points)).assign(**pen(points))

    table = ensure("written", measure, weights=model, text=str(lines))
    found = from_rows(table, described(model, None, None, model.name))
    return found.assign({name: ("time", table[name]) for name in ("x", "y", "lifted")})


def floored(model: Network, lines: Lines) -> pd.DataFrame:
    """What of a mixture density's weight lies at the smallest deviation allowed (`MixtureDensity.at_floor`).

    One row: `share`, the mean over all predictions, from 0 to 1, and `points`, their number.
    """

    def measure() -> pd.DataFrame:
        density = density_of(model)
        with reading(model):
            told = torch.cat([density.at_floor(model(line[:-1, None])[0]).flatten() for line in lines.read()])
        return pd.DataFrame([{"share": told.mean().item(), "points": len(told)}])

    return ensure("floored", measure, weights=model, text=str(lines))


def pen(points: Tensor) -> dict[str, np.ndarray]:
    """Normalized points [T, 3] as `x`, `y`, whole units of the tablet, and `lifted`, [T] each."""
    scale = pen_scale()
    path = trajectory(points, scale["mean"].to_numpy(), scale["deviation"].to_numpy())
    x, y = np.round(path - path.min(0)).astype(int).T
    return {"x": x, "y": y, "lifted": points[:, 2].numpy().astype(int)}


def pen_scale() -> pd.DataFrame:
    """What normalized offsets are multiplied by and what is added: rows x and y, columns mean and deviation."""
    config = Handwriting()

    def measure() -> pd.DataFrame:
        task = config.load()
        return pd.DataFrame({"axis": ["x", "y"], "mean": task.mean, "deviation": task.deviation})

    return ensure("pen_scale", measure, task="iamondb", minimum=config.minimum, seed=config.seed)


def raw_units() -> pd.DataFrame:
    """What is added to a line's mean log-likelihood in normalized units to have it in the tablet's: split, nats."""
    config = Handwriting()

    def measure() -> pd.DataFrame:
        task = config.load()
        return pd.DataFrame([{"split": split, "nats": task.raw_units_nats(split)} for split in SPLITS])

    return ensure("raw_units", measure, task="iamondb", minimum=config.minimum, seed=config.seed)


def _readings(model: Network, excerpt: Excerpt | Lines) -> Readings:
    """Pieces of a text, or lines, as the network reads them, their truths, and the windows to judge within."""
    return _read_once(_Known(digest(model), model), excerpt)


@dataclass(frozen=True)
class _Known:
    """A network that is known as in a record: by its weights, as they are now."""

    weights: str
    model: Network = field(compare=False)


@lru_cache(maxsize=16)  # every study of a network reads the same
def _read_once(known: _Known, excerpt: Excerpt | Lines) -> Readings:
    model = known.model
    if isinstance(excerpt, Lines):
        lines = excerpt.read()
        truths = [{"pen-ups": line[:, 2].numpy() > 0} for line in lines]
        return together(model, lines), truths, dict(PEN_WINDOWS)
    text = excerpt.read()
    cuts = range(0, len(text), PIECE)
    whole = segments.text_truths(text)
    truths = [{name: flags[start : start + PIECE] for name, flags in whole.items()} for start in cuts]
    return together(model, [text[start : start + PIECE] for start in cuts]), truths, dict(segments.WINDOWS)
