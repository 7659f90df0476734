"""How far connectivity and gradients reach.

Every position counts the same, whatever its gradient's size: its connectivities are shares of their own sum.
"""

import copy
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from nlstm_lab.cells.base import Cache
from nlstm_lab.cells.hierarchical import HierarchicalRNN
from nlstm_lab.cells.recurrent import Recurrent
from nlstm_lab.datasets import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.input_gradients import connectivity
from nlstm_lab.probes.reading import encode, evaluating, reading, string
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import untrained
from nlstm_lab.statistics import bootstrap

LAGS = 100  # characters back in a lag profile
PLACES = 10  # positions of each text whose connectivity stands for all
DISTANCE = 100  # characters that a gradient comes back
SMALLEST = float(np.finfo(np.float64).tiny)  # what a gradient of exactly 0 counts as
KEYS = ["where", "quantity", "lag"]
Array = NDArray[np.float64]


def positions(data: xr.Dataset) -> pd.DataFrame:
    """A row for each position of `connectivity(...)` that depends on anything: time, known (characters of the word),
    mean_lag (characters back), share_in_word (from the space before it on) and total, the sum of connectivities."""
    values, lags = np.abs(data["connectivity"].values), _lags(data)
    total = np.nansum(values, axis=1)
    kept = (total > 0) & np.isfinite(values).all(1)
    shares = values[kept] / total[kept, None]
    inside = lags <= (data["time"] - data["word_start"]).values[:, None]
    frame = pd.DataFrame({"time": data["time"].values, "known": data["known"].values})[kept]
    sums = {"mean_lag": (shares * lags[kept]).sum(1), "share_in_word": (shares * inside[kept]).sum(1)}
    return pd.DataFrame(frame.assign(**sums, total=total[kept]).reset_index(drop=True))


def profile(data: xr.Dataset, lags: int = LAGS) -> Array:
    """The share of the connectivity at lags 0 to `lags` of each of `positions`, [positions, lags + 1]; NaN beyond the
    start of the text."""
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
    for where, chosen in (("all", start | ~start), ("word start", start), ("within word", ~start)):
        if chosen.any():
            scalars = rows.loc[chosen, ["mean_lag", "share_in_word"]].mean().rename_axis("quantity")
            along = np.flatnonzero(np.isfinite(shares[chosen]).any(0))
            shown = {"lag": along.astype(float), "value": np.nanmean(shares[chosen][:, along], axis=0)}
            frames.append(scalars.reset_index(name="value").assign(where=where, lag=np.nan))
            frames.append(pd.DataFrame(shown).assign(where=where, quantity="share_at_lag"))
    return pd.concat(frames, ignore_index=True)[[*KEYS, "value"]]


@recorded("lags", by=["seed", "places"])
def connectivity_lags(
    model: Network, texts: Sequence[str] | Sequences, seed: int = 0, places: int = PLACES, lags: int = LAGS
) -> pd.DataFrame:
    """Measure how far the connectivity of the true word reaches, in its L2 norm.

    Args:
        texts: What is read, each from a zero state; one without a word that the network knows counts for nothing.
        seed: Of the positions that are drawn.
        places: So many positions of each text stand for all.
        lags: Distances in characters.

    Returns:
        One row a place ("all", "word start", "within word"), quantity ("mean_lag", "share_in_word", "share_at_lag")
        and lag: value, the mean over texts, with its bootstrap interval (low, high), and the number of texts.
    """
    draw = np.random.default_rng(seed)
    some = ((text, sorted(draw.permutation(len(string(text)))[:places].tolist())) for text in read(texts))
    measured = (connectivity(model, text, at=chosen) for text, chosen in some)
    frames = [measure(data, lags) for data in measured if len(positions(data))]
    if not frames:
        raise UsageError("nothing can be measured: no position of the texts has a target that the network predicts")
    rows = []
    for key, group in pd.concat(frames).groupby(KEYS, dropna=False, sort=False):
        rows.append([*key, *bootstrap(group["value"], resamples=1000), len(group)])
    return pd.DataFrame(rows, columns=[*KEYS, "value", "low", "high", "texts"])


def gradient_by_distance(unit: Recurrent, inputs: Tensor, projections: int = 8, seed: int = 0) -> pd.DataFrame:
    """log10 of the norm of d h_T / d x_t and of d h_T / d h_t of every layer, for each sequence and distance T - t.

    Only the gradient with respect to the input compares units: a unit's h is not all that it remembers. The norm is
    Frobenius's, estimated without bias from `projections` random directions v as the mean of |v' J|^2, in float64.
    Inputs are symbols [T, B] or vectors [T, B, features]; h_T is the output at the last step.
    """
    if isinstance(unit, HierarchicalRNN):
        raise UsageError("a hierarchical RNN lacks its boundaries here: ask lab.probes.connectivity")
    unit = copy.deepcopy(unit).double()
    device, number = inputs.device, inputs.shape[1]
    if not inputs.is_floating_point():
        inputs = torch.nn.functional.one_hot(inputs, unit.input_size)
    x = inputs.double().repeat_interleave(projections, dim=1)
    caches = [Cache() for _ in unit.cells]
    with evaluating(unit), torch.enable_grad():
        steps = [step.requires_grad_() for step in x.unbind()]
        output, _ = unit.run(torch.stack(steps), [cell.initial_state(x.shape[1]) for cell in unit.cells], caches)
        directions = torch.randn(output[-1].shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        nodes = [*steps, *(h for cache in caches for h in cache.values["h"])]
        gradients = torch.autograd.grad((output[-1] * directions.to(device)).sum(), nodes, materialize_grads=True)
    squares = torch.stack([gradient.square().sum(-1) for gradient in gradients])  # [layers and input x T, B x v]
    norms = squares.view(len(caches) + 1, len(steps), number, projections).mean(-1).sqrt().cpu().numpy()
    values = np.log10(np.maximum(norms, SMALLEST))[:, ::-1]
    where = ["input", *(f"layer {k + 1}" for k in range(len(caches)))]
    index = pd.MultiIndex.from_product([where, range(len(steps)), range(number)], names=["where", "lag", "text"])
    frame = index.to_frame(index=False).assign(quantity="log10_gradient", value=values.ravel())
    return frame[["text", *KEYS, "value"]]


def gradients(model: Network, texts: Sequence[str] | Sequences, seed: int = 0) -> pd.DataFrame:
    """Measure how gradients shrink with the distance, one row a layer and distance.

    Args:
        texts: Several texts, of which the first `DISTANCE` characters are read.

    Returns:
        Columns where ("input", "layer 1", ...), quantity ("log10_gradient"), lag (the distance), `value`, the mean over
        texts of log10 of the norm, and condition: "trained", or "as initialized", its parameters drawn anew.
    """
    both = {"as initialized": False, "trained": True}
    frames = [_gradients(model, texts, trained, seed).assign(condition=name) for name, trained in both.items()]
    return pd.concat(frames, ignore_index=True)


@recorded("gradients", by=["trained", "seed"])
def _gradients(model: Network, texts: Sequence[str] | Sequences, trained: bool, seed: int) -> pd.DataFrame:
    network = model if trained else untrained(model, seed)
    codes = [encode(network, text[:DISTANCE]) for text in read(texts) if len(string(text)) >= DISTANCE]
    if not codes:
        raise UsageError(f"texts must be strings, one of them of {DISTANCE} characters at least")
    with reading(network):
        inputs = network.inputs(torch.stack(codes, 1))
    frame = gradient_by_distance(network.recurrent, inputs.clone(), seed=seed)
    return frame.groupby(KEYS, sort=False)["value"].mean().reset_index()
