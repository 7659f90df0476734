"""How far connectivity reaches: each text's profile over lags, mean lag, share within the word; over texts and seeds.

Every measurement is a tidy frame with a row for each text, place ("all", "word start": no character of the word is
known yet, "within word"), quantity and lag (NaN but for profiles), and its value. Every position counts the same,
whatever its gradient's size: its connectivities are shares of their own sum.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.datasets.excerpt import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.statistics import bootstrap
from nlstm_lab.studies.connectivity.measure import connectivity

LAGS = 100  # characters back in a lag profile
PLACES = 10  # positions of each text whose connectivity stands for all
KEYS = ["where", "quantity", "lag"]
Array = NDArray[np.float64]


def positions(data: xr.Dataset) -> pd.DataFrame:
    """A row for each position of `connectivity(...)` whose target has a code and hangs on anything at all.

    time; known (characters of the word); mean_lag (characters back, weighted by connectivity); share_in_word (from
    the space before the word on); total (the sum of its connectivities; signs are dropped).
    """
    values, lags = np.abs(data["connectivity"].values), _lags(data)
    total = np.nansum(values, axis=1)
    kept = (total > 0) & np.isfinite(values).all(1)
    shares = values[kept] / total[kept, None]
    inside = lags <= (data["time"] - data["word_start"]).values[:, None]
    frame = pd.DataFrame({"time": data["time"].values, "known": data["known"].values})[kept]
    sums = {"mean_lag": (shares * lags[kept]).sum(1), "share_in_word": (shares * inside[kept]).sum(1)}
    return pd.DataFrame(frame.assign(**sums, total=total[kept]).reset_index(drop=True))


def profile(data: xr.Dataset, lags: int = LAGS) -> Array:
    """The share of each position's connectivity at lags 0 to `lags`, [positions, lags + 1], rows as in `positions`.

    NaN at lags that reach beyond the start of the text.

    Args:
        data: `connectivity` of one text.
        lags: Distances in characters.
    """
    kept, distance = np.isin(data["time"], positions(data)["time"]), _lags(data)
    values = np.abs(data["connectivity"].values)[kept]
    last = distance[kept, 0]  # the place in the window: the lag of its first character
    source = last[:, None] - np.arange(lags + 1)
    measured = np.take_along_axis(values, np.maximum(source, 0), 1) / values.sum(1, keepdims=True)
    return np.where(source < 0, np.nan, measured)


def _lags(data: xr.Dataset) -> NDArray[np.int_]:
    """How far back each source lies, [time, source]; negative in the future."""
    place = (data["time"] - data["window"]).values
    return np.asarray(place[:, None] - np.arange(data.sizes["source"]))


def measure(data: xr.Dataset, lags: int = LAGS) -> pd.DataFrame:
    """One text's frame: where, quantity ("mean_lag", "share_in_word", "share_at_lag"), lag, value."""
    rows, shares = positions(data), profile(data, lags)
    start = (rows["known"] == 0).to_numpy()
    frames = []
    for where, chosen in (("all", np.full(len(rows), True)), ("word start", start), ("within word", ~start)):
        if not chosen.any():
            continue
        scalars = rows.loc[chosen, ["mean_lag", "share_in_word"]].mean()
        some = np.isfinite(shares[chosen]).any(0)
        frames.append(pd.DataFrame({"where": where, "quantity": scalars.index, "lag": np.nan, "value": scalars.values}))
        along = {"lag": np.flatnonzero(some).astype(float), "value": np.nanmean(shares[chosen][:, some], axis=0)}
        frames.append(pd.DataFrame({"where": where, "quantity": "share_at_lag", **along}))
    if not frames:
        raise UsageError("nothing can be measured: no position of the text has a target that the network predicts")
    return pd.concat(frames, ignore_index=True)


def survey(
    model: Network,
    texts: Sequence[str],
    *,
    lags: int = LAGS,
    places: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """`measure` of the connectivity of every text, one under the other, with the column `text` (0, 1, ...).

    Args:
        lags: Distances in characters.
        places: So many positions of each text, drawn from `seed`, stand for all of them (None), which cost as much as
            so many matrices: keep the frame with `ensure`. A text without a word that the network knows at those
            positions has no rows.
    """
    if not texts:
        raise UsageError("a survey needs at least one text")
    draw = np.random.default_rng(seed)
    at = [sorted(draw.permutation(len(text))[:places].tolist()) for text in texts]
    measured = [connectivity(model, text, at=chosen) for text, chosen in zip(texts, at, strict=True)]
    frames = [measure(data, lags).assign(text=number) for number, data in enumerate(measured) if len(positions(data))]
    if not frames:
        raise UsageError("nothing can be measured: no position of the texts has a target that the network predicts")
    return pd.concat(frames, ignore_index=True)


def within_seed(frame: pd.DataFrame, resamples: int = 1000) -> pd.DataFrame:
    """Means over one network's texts with bootstrap intervals (from three texts on).

    frame: measurements with the column `text`. Returns where, quantity, lag, mean, low, high, texts.
    """
    rows = []
    for key, group in frame.groupby(KEYS, dropna=False, sort=False):
        interval = bootstrap(group["value"], resamples=resamples)
        rows.append([*key, *interval, len(group)])
    return pd.DataFrame(rows, columns=[*KEYS, "mean", "low", "high", "texts"])


@recorded("lags", by=["seed"], places=PLACES)
def connectivity_lags(model: Network, texts: Sequence[str] | Sequences, seed: int = 0) -> pd.DataFrame:
    """Measure how far the connectivity of the true word reaches, in its L2 norm (`survey`).

    Args:
        model: The network that reads.
        texts: What it reads, each from a zero state.
        seed: Of the `PLACES` positions of each text that stand for all.

    Returns:
        One row a place ("all", "word start", "within word"), quantity ("mean_lag", "share_in_word", "share_at_lag")
        and lag: value, the mean over texts, with its bootstrap interval (low, high), and the number of texts.
    """
    return within_seed(survey(model, read(texts), places=PLACES, seed=seed)).rename(columns={"mean": "value"})
