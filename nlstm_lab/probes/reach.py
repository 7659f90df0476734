"""How far connectivity reaches: each text's profile over lags, mean lag, share within the word; over texts and seeds.

Every measurement is a tidy frame with a row for each text, place ("all", "word start": no character of the word is
known yet, "within word"), quantity and lag (NaN but for profiles), and its value. Every position counts the same,
whatever its gradient's size: its connectivities are shares of their own sum.
"""

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.statistics import t_interval

LAGS = 100  # characters back in a lag profile
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
    return frame.assign(**sums, total=total[kept]).reset_index(drop=True)


def profile(data: xr.Dataset, lags: int = LAGS) -> Array:
    """The share of each position's connectivity at lags 0 to `lags`, [positions, lags + 1], rows as in `positions`.

    NaN at lags that reach beyond the start of the text.
    """
    kept, distance = positions(data)["time"].values, _lags(data)
    values = np.abs(data["connectivity"].values)[kept]
    last = distance[kept, 0]  # the place in the window: the lag of its first character
    source = last[:, None] - np.arange(lags + 1)
    found = np.take_along_axis(values, np.maximum(source, 0), 1) / values.sum(1, keepdims=True)
    return np.where(source < 0, np.nan, found)


def _lags(data: xr.Dataset) -> NDArray[np.int_]:
    """How far back each source lies, [time, source]; negative in the future."""
    place = (data["time"] - data["window"]).values
    return np.asarray(place[:, None] - np.arange(data.sizes["source"]))


def measure(data: xr.Dataset, lags: int = LAGS) -> pd.DataFrame:
    """One text's frame: where, quantity ("mean_lag", "share_in_word", "share_at_lag"), lag, value."""
    rows, shares = positions(data), profile(data, lags)
    start = (rows["known"] == 0).to_numpy()
    parts = []
    for where, chosen in (("all", np.full(len(rows), True)), ("word start", start), ("within word", ~start)):
        if not chosen.any():
            continue
        scalars = rows.loc[chosen, ["mean_lag", "share_in_word"]].mean()
        some = np.isfinite(shares[chosen]).any(0)
        parts.append(pd.DataFrame({"where": where, "quantity": scalars.index, "lag": np.nan, "value": scalars.values}))
        along = {"lag": np.flatnonzero(some).astype(float), "value": np.nanmean(shares[chosen][:, some], axis=0)}
        parts.append(pd.DataFrame({"where": where, "quantity": "share_at_lag", **along}))
    if not parts:
        raise UsageError("nothing can be measured: no position of the text has a target that the network predicts")
    return pd.concat(parts, ignore_index=True)


def within_seed(frame: pd.DataFrame, resamples: int = 1000, seed: int = 0, confidence: float = 0.95) -> pd.DataFrame:
    """Means over texts with percentile bootstrap intervals: the texts of one network, drawn anew with replacement.

    frame: one network's measurements with a column `text`. Returns where, quantity, lag, mean, low, high, texts.
    """
    table = frame.pivot_table(index="text", columns=KEYS, values="value", dropna=False).dropna(axis=1, how="all")
    values = table.to_numpy()
    there = np.isfinite(values)
    number = len(values)
    drawn = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), resamples).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):  # a lag that none of the drawn texts reaches
        means = drawn @ np.where(there, values, 0) / (drawn @ there)
    low, high = np.nanquantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    columns = {"mean": np.nanmean(values, axis=0), "low": low, "high": high, "texts": there.sum(0)}
    if number < 2:
        columns |= {"low": np.full(len(low), np.nan), "high": np.full(len(high), np.nan)}
    return pd.DataFrame(columns, index=table.columns).reset_index()


def over_seeds(frame: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Means over seeds with Student t intervals (from three seeds on) of each seed's mean over its texts.

    frame: measurements with the columns `seed` and `text`. Returns where, quantity, lag, mean, low, high, seeds.
    """
    each = frame.groupby(["seed", *KEYS], dropna=False, sort=False)["value"].mean().reset_index()
    rows = []
    for key, group in each.groupby(KEYS, dropna=False, sort=False):
        interval = t_interval(group["value"], confidence)
        rows.append([*key, *interval, len(group)])
    return pd.DataFrame(rows, columns=[*KEYS, "mean", "low", "high", "seeds"])


def suggested(data: xr.Dataset, word: str) -> pd.DataFrame:
    """What a network knows of a word while it is written: a row for each occurrence and number of known characters.

    occurrence (from 1), known, time, place (1 is likeliest; NaN where it is not among those shown), probability
    (NaN likewise), likeliest (the word in first place). UsageError where the text has no such word.
    """
    places = np.flatnonzero(data["word"].values == word)
    if not len(places):
        raise UsageError(f"the word {word!r} is not in the text: choose one of its own")
    shown = data["prediction"].values[places] == word
    found = shown.any(1)
    starts = data["word_start"].values[places]
    columns = {
        "occurrence": np.unique(starts, return_inverse=True)[1] + 1,
        "known": data["known"].values[places],
        "time": places,
        "place": np.where(found, shown.argmax(1) + 1.0, np.nan),
        "probability": np.where(found, (shown * data["probability"].values[places]).sum(1), np.nan),
        "likeliest": data["prediction"].values[places, 0],
    }
    return pd.DataFrame(columns)
