"""Connectivity as a browser takes it: names and words as JSON values, the lower triangles of the matrices as bytes.

The future is not sent: a position has as many numbers as there are characters in its window up to itself. Each is
kept as the square root of its share of the position's largest, in sixteen bits with its sign: three digits hold for
whatever is not weaker than a ten thousandth of the largest.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.style import in_order, look

FULL = 32767  # the code of a position's largest connectivity


def described(data: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """What does not hang on target and mode, as JSON values.

    data: by model, what `lab.probes.connectivity` gave, all of one text. Returns symbols (as given), read (as read by
    each network), word, word_start and known (of every position), window (where a position's window starts), and for
    each of `networks`: name, label, colour, predictions [T][3] and probabilities [T][3].
    """
    names = in_order(data)
    if not names:
        raise UsageError("there is nothing to compare: hand in at least one network")
    first = data[names[0]]
    shared = {name: first[name].values.tolist() for name in ("word", "word_start", "known", "window")}
    return {
        "symbols": [str(symbol) for symbol in first["symbol"].values],
        **shared,
        "networks": [
            {
                "name": name,
                "label": look(name).label,
                "colour": look(name).colour,
                "read": [str(symbol) for symbol in data[name]["read"].values],
                "predictions": data[name]["prediction"].values.tolist(),
                "probabilities": np.round(data[name]["probability"].values, 5).tolist(),
            }
            for name in names
        ],
    }


def packed(data: Mapping[str, xr.Dataset]) -> tuple[list[dict[str, Any]], bytes]:
    """The matrices of one target and mode: about each network as JSON values, and all of their numbers.

    Returns for each network, in the order of `described`, target (the word asked for, "" for none), p (its
    probability, or None) and largest (of each position, None where nothing was asked for); and the networks' codes
    (int16, little endian), one after the other, position by position.
    """
    about, arrays = [], []
    for name in in_order(data):
        codes, largest = _codes(data[name])
        arrays.append(codes)
        about.append(
            {
                "target": [str(word) for word in data[name]["target"].values],
                "p": [None if np.isnan(p) else float(f"{p:.4g}") for p in data[name]["p"].values],
                "largest": [None if np.isnan(size) else float(f"{size:.6g}") for size in largest],
            }
        )
    return about, np.concatenate(arrays).astype("<i2").tobytes()


def _codes(one: xr.Dataset) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """The codes of one network's matrix, one position after the other, and each position's largest size."""
    values, window = one["connectivity"].values, one["window"].values
    place = np.arange(len(values)) - window
    inside = np.arange(values.shape[1]) <= place[:, None]
    size = np.abs(values)
    largest = np.max(size, axis=1)  # NaN where nothing was asked for
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.nan_to_num(np.sqrt(size / largest[:, None]))
    return np.rint(FULL * share * np.sign(np.nan_to_num(values)))[inside].astype(np.int16), largest
