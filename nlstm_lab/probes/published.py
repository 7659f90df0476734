"""The arrays that Madsen's article was drawn from, in the form of our own probes, where a data folder has them."""

import io
import json
from typing import Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr

from nlstm_lab.datasets import registry
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.attribution import Mode
from nlstm_lab.probes.wording import words_of

Unit = Literal["gru", "lstm", "nlstm"]
UNITS: tuple[Unit, ...] = get_args(Unit)


def published_connectivity(unit: Unit, mode: Mode = "l2") -> xr.Dataset:
    """The article's connectivity on its sentence of 198 characters, as `connectivity` returns ours.

    The files hold the sum of squares (`as_coded`); `l2` is its square root. The target's probability p is known
    where it is among the three likeliest, which are published to three decimals, and NaN elsewhere.

    UsageError: another unit or mode. MissingData: no data folder has the arrays. DamagedFile: they are not
    as published.
    """
    if unit not in UNITS:
        raise UsageError(f"the article has {', '.join(map(repr, UNITS))}, not {unit!r}")
    if mode not in ("l2", "as_coded"):
        raise UsageError(f"the article's arrays have the modes 'l2' and 'as_coded', not {mode!r}")
    rows = json.loads(_read(f"connectivity_{unit}.json"))
    squares = np.array([row["connectivity"] for row in rows], dtype=float)
    prediction = np.array([row["predict"] for row in rows], dtype=object)
    probability = np.array([row["probability"] for row in rows], dtype=float)
    text, target = "".join(row["char"] for row in rows), [row["target"] for row in rows]
    words = words_of(text)
    hit = prediction == np.array(target)[:, None]
    along = {"target": target, "window": np.zeros(len(text), int), "symbol": list(text), "read": list(text)}
    along |= {"word": words.word, "word_start": words.start, "known": words.known}
    return xr.Dataset(
        {
            "connectivity": (("time", "source"), squares if mode == "as_coded" else np.sqrt(squares)),
            "prediction": (("time", "rank"), prediction),
            "probability": (("time", "rank"), probability),
            "p": ("time", np.where(hit.any(1), (hit * probability).sum(1), np.nan)),
        },
        {"time": np.arange(len(text)), **{name: ("time", values) for name, values in along.items()}},
        {"model": f"{unit}, as published", "mode": mode, "memory": "", "windows": 1},
    )


def published_accuracy() -> pd.DataFrame:
    """The article's accuracy by characters known: model, top (1, 2, 3), known, accuracy_pct."""
    table = json.loads(_read("word-length-results.json"))
    rows = [
        (model, top, known, 100 * accuracy)
        for model, tops in table.items()
        for top, values in enumerate(tops, 1)
        for known, accuracy in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["model", "top", "known", "accuracy_pct"])


def published_training() -> pd.DataFrame:
    """The article's training curves of autocomplete: model, dataset, sec, step, loss (nats), loss smooth."""
    return pd.read_csv(io.BytesIO(_read("autocomplete-training.csv")))


def _read(name: str) -> bytes:
    """One of the files, verified."""
    names = [file.name for file in registry.get("madsen").files]
    return dict(zip(names, registry.contents("madsen"), strict=True))[name]
