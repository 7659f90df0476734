"""The arrays that Madsen's article was drawn from, in the form of our own probes, where a data folder has them."""

import io
import json
from typing import Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr

from nlstm_lab.datasets import registry
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.texts import words_of
from nlstm_lab.studies.connectivity import lags
from nlstm_lab.studies.connectivity.measure import labelled

Unit = Literal["gru", "lstm", "nlstm"]
CELL_TYPES: tuple[Unit, ...] = get_args(Unit)
KNOWN = 6  # characters of a word, up to which the article draws accuracy
POINTS = 150  # of a published training curve


def published_connectivity(unit: Unit) -> xr.Dataset:
    """The article's connectivity on its sentence of 198 characters, as `connectivity` returns ours.

    The files hold the sum of squares; the L2 norm is its square root. The target's probability p is known
    where it is among the three likeliest, which are published to three decimals, and NaN elsewhere.

    UsageError: another unit. MissingData: no data folder has the arrays. DamagedFile: they are not
    as published.
    """
    if unit not in CELL_TYPES:
        raise UsageError(f"the article has {', '.join(map(repr, CELL_TYPES))}, not {unit!r}")
    rows = json.loads(_read(f"connectivity_{unit}.json"))
    squares = np.array([row["connectivity"] for row in rows], dtype=float)
    prediction = np.array([row["predict"] for row in rows], dtype=object)
    probability = np.array([row["probability"] for row in rows], dtype=float)
    text, target = "".join(row["char"] for row in rows), [row["target"] for row in rows]
    hit = prediction == np.array(target)[:, None]
    piece = {"connectivity": np.sqrt(squares), "prediction": prediction, "probability": probability}
    piece |= {"p": np.where(hit.any(1), (hit * probability).sum(1), np.nan)}
    piece |= {"target": target, "window": np.zeros(len(text), int)}
    return labelled([piece], text, text, words_of(text), {"model": f"{unit}, as published", "mode": "l2"})


def _read(name: str) -> bytes:
    """One of the files, verified."""
    names = [file.name for file in registry.get("madsen").files]
    return dict(zip(names, registry.contents("madsen"), strict=True))[name]


def published_lags() -> pd.DataFrame:
    """The reach of the published connectivity, as `connectivity_lags` of one text, with the column model."""

    def measure() -> pd.DataFrame:
        frames = {unit: lags.measure(published_connectivity(unit)) for unit in CELL_TYPES}
        return pd.concat([frame.assign(model=unit) for unit, frame in frames.items()], ignore_index=True)

    return _as_ours(ensure("published_lags", measure, source="the published article, connectivity, L2 norm"))


def published_accuracy() -> pd.DataFrame:
    """The published accuracy of up to `KNOWN` characters: model, top, known, accuracy_pct."""

    def measure() -> pd.DataFrame:
        rows = [
            (model, top, known, 100 * accuracy)
            for model, tops in json.loads(_read("word-length-results.json")).items()
            for top, values in enumerate(tops, 1)
            for known, accuracy in enumerate(values[: KNOWN + 1])
        ]
        return pd.DataFrame(rows, columns=["model", "top", "known", "accuracy_pct"])

    return _as_ours(ensure("published_accuracy", measure, source="the published article, accuracy", known=KNOWN))


def published_training() -> pd.DataFrame:
    """The published training curves, smoothed as published, at `POINTS` mini-batches: model, split, update, seconds,
    value (nats)."""

    def measure() -> pd.DataFrame:
        names = {"dataset": "split", "step": "update", "sec": "seconds", "loss smooth": "value"}
        curves = pd.read_csv(io.BytesIO(_read("autocomplete-training.csv"))).rename(columns=names)
        steps = np.sort(curves["update"].unique())
        wanted = np.unique(np.searchsorted(steps, np.geomspace(1, steps[-1], POINTS)).clip(max=len(steps) - 1))
        curves = curves[curves["update"].isin(steps[wanted])]
        return curves[["model", "split", "update", "seconds", "value"]]

    return _as_ours(ensure("published_training", measure, source="the published article, training", points=POINTS))


def _as_ours(frame: pd.DataFrame) -> pd.DataFrame:
    """Models by the names that figures know: the article's LSTM has two layers."""
    names = {"GRU": "gru", "LSTM": "stacked_lstm", "lstm": "stacked_lstm", "Nested LSTM": "nlstm"}
    return frame.assign(model=frame["model"].replace(names))
