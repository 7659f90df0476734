"""Where the layers of an HM-RNN end a segment, and what they do about it (equations 2, 8 and 9)."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nlstm_lab.cells.hierarchical import HierarchicalRNN, MultiscaleCell
from nlstm_lab.cells.hmlstm import HMLSTM, Operation
from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.probes.reading import CHUNK, WATCHED, Text, called, encode, predicts_symbols, reading, symbols_of
from nlstm_lab.probes.records import ensure, read
from nlstm_lab.settings import above_zero

OPERATIONS = tuple(operation.name for operation in Operation)  # by their codes: COPY, UPDATE, FLUSH
LAYERWISE = ("z", "z_tilde", "operation", "norm")
DIGITS = 4  # of what goes through JSON


def boundaries(
    model: Network,
    text: Text | Excerpt,
    *,
    threshold: float | None = None,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Read `text` once, in order, from a zero state, and record the boundaries of every layer at every step.

    Args:
        text: Characters, codes [T], points of the pen [T, 3], or an excerpt, which is read from a record.
        threshold: A number lets z be z~ > threshold (equation 9) however it was trained; None reads as it was trained.
        watch: Called with the share that is read, now and then; may raise to end the reading.

    Returns:
        Dimensions time (coordinate `symbol` where characters or codes are read) and layer (1, 2, ...); at every step
        `z`, 1 where a segment ends (soft ones between 0 and 1; 0 in the top layer, which has no detector); `z_tilde`,
        the detector's value before the threshold; `operation`, codes of `OPERATIONS`; `norm`, the Euclidean norm of h;
        and (time) `surprise`: -log2 p of what was read, in bits (of the density, for points), NaN at the first step
        and where the network predicts something else. Attributes: `described`. UsageError where the network has no
        detectors or cannot read the text, or the threshold is outside (0, 1).

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_hmlstm_step", scale="small").model()
    >>> values = boundaries(model, "the old man said that he would not sell")
    >>> dict(values.z.sizes), values.attrs["boundary"]
    ({'time': 39, 'layer': 3}, 'step')
    """
    if isinstance(text, Excerpt) and threshold is None:  # known by its place: the record holds its symbols
        table = ensure("boundaries", lambda: rows_of(boundaries(model, text.read())), weights=model, text=str(text))
        return from_rows(table, model)
    return together(model, [read(text)], threshold, watch)[0]


def together(
    model: Network,
    texts: Sequence[Text],
    threshold: float | None = None,
    watch: Callable[[float], None] | None = None,
) -> list[xr.Dataset]:
    """`boundaries` of several texts of any lengths, read side by side, each from a zero state."""
    attributes = described(model, threshold)
    model.require_weights()
    model = model if threshold is None else _cut(model, threshold)
    coded = [encode(model, text) for text in texts]
    codes = pad_sequence(coded)  # what is read behind a text's end is left out again
    chunks: list[dict[str, Tensor]] = []
    size = CHUNK if watch is None else WATCHED
    vectors = codes.is_floating_point() and model.density is None
    foretells = model.density is not None or (not vectors and predicts_symbols(model))
    state, nats = None, [torch.full((1, len(coded)), float("nan"))]
    with reading(model):
        for start in range(0, len(codes), size):
            if watch is not None:
                watch(start / len(codes))
            x, next_ones = codes[start : start + size], codes[start + 1 : start + size + 1]
            output, state, layers = model.trace(x, state)
            chunks.append({name: torch.stack([_of_layer(name, layer) for layer in layers], 1) for name in LAYERWISE})
            if foretells and len(next_ones):
                nats.append(model.nats(model.readout(output[: len(next_ones)]), next_ones).float().cpu())
            else:
                nats.append(torch.full(next_ones.shape[:2], float("nan")))
    arrays = {name: torch.cat([chunk[name] for chunk in chunks]).cpu().numpy() for name in LAYERWISE}
    if attributes["boundary"] == "given":
        last, acts = np.pad(arrays["z"][:-1], ((1, 0), (0, 0), (0, 0))), arrays["operation"] == Operation.UPDATE
        arrays["operation"][acts & (last > 0)] = Operation.FLUSH  # what acts on the step after a boundary flushes
        arrays["z"] *= arrays["operation"] != Operation.COPY  # a layer holds its z until it acts again
    surprise = (torch.cat(nats) / math.log(2)).numpy()
    found = []
    for k, one in enumerate(coded):
        own = {name: array[: len(one), :, k] for name, array in arrays.items()}
        found.append(_dataset(own, surprise[: len(one), k], symbols_of(model, one), attributes))
    return found


def described(model: Network, threshold: float | None) -> dict[str, Any]:
    """The attributes of such a dataset: model, boundary ("step", "sample", "soft" or "given"),
    threshold and slope (0.5 and None where given); UsageError as `boundaries` raises it."""
    check_network(model)
    recurrent, named = model.recurrent, called(model)
    threshold = None if threshold is None else above_zero(threshold, "the threshold of z", 1)
    if not isinstance(recurrent, HMLSTM | HierarchicalRNN) or recurrent.num_layers < 2:
        raise UsageError(f"{named} has no boundaries: choose an HM-LSTM or a hierarchical RNN of two layers at least")
    attributes = {"model": model.name}
    if isinstance(recurrent, HierarchicalRNN):
        if threshold is not None:
            raise UsageError(f"{named} has no detectors, its boundaries are given: it takes no threshold")
        return attributes | {"boundary": "given", "threshold": 0.5, "slope": None}
    cell: Any = recurrent.cells[0]
    decided = {"boundary": cell.boundary, "threshold": cell.threshold}
    decided = decided if threshold is None else {"boundary": "step", "threshold": threshold}
    return attributes | decided | {"slope": None if model.missing_weights else recurrent.slope}


def _cut(model: Network, threshold: float) -> Network:
    """A copy whose detectors have this threshold, and which shares the weights, computed ones too."""
    computed = [each for part in model.modules() for each in vars(part).values() if isinstance(each, Tensor)]
    model = copy.deepcopy(model, {id(one): one for one in (*model.parameters(), *model.buffers(), *computed)})
    for cell in cast(Any, model.recurrent.cells):
        cell.boundary, cell.threshold = "step", threshold
    return model


def _of_layer(name: str, layer: dict[str, Tensor]) -> Tensor:
    """What one layer's record says, [T, B]; of a layer whose boundaries are given the operation without its FLUSHes."""
    if name == "norm":
        return cast(Tensor, torch.linalg.vector_norm(layer["h"].float(), dim=-1))
    if name == "operation":  # not active is COPY's 0, active UPDATE's 1
        return layer["operation" if name in layer else "active"].to(torch.int8)
    return layer[name if name in layer else "z"].float()


def _dataset(
    arrays: dict[str, Any], surprise: Any, symbols: list[Any] | None, attributes: dict[str, Any]
) -> xr.Dataset:
    length, layers = arrays["z"].shape
    coords: dict[str, Any] = {"time": np.arange(length), "layer": np.arange(1, layers + 1)}
    if symbols is not None:
        coords["symbol"] = ("time", symbols)
    data = {name: (("time", "layer"), arrays[name]) for name in LAYERWISE}
    return xr.Dataset({**data, "surprise": ("time", np.asarray(surprise, np.float32))}, coords, attributes)


def plain(data: xr.Dataset) -> dict[str, Any]:
    """`boundaries` as plain JSON values, for a browser: the attributes, `symbols` (None for points) and `surprise`
    (None where there is none), and `layers`, the lowest first: layer, z, z_tilde, operation (its name) and norm."""

    def rounded(values: Any) -> list[float | None]:
        return [None if math.isnan(value) else round(value, DIGITS) for value in values.values.tolist()]

    layers = []
    for number in data["layer"].values.tolist():
        one = data.sel(layer=number)
        values = {name: rounded(one[name]) for name in ("z", "z_tilde", "norm")}
        layers.append({"layer": number, **values, "operation": [OPERATIONS[code] for code in one["operation"].values]})
    symbols = data["symbol"].values.tolist() if "symbol" in data.coords else None
    return {**data.attrs, "symbols": symbols, "surprise": rounded(data["surprise"]), "layers": layers}


def updates(model: Network, data: xr.Dataset) -> pd.DataFrame:
    """What each layer did along a text, read as `data`, and what that costs beside doing it at every step."""
    table = []
    for k, cell in enumerate(model.recurrent.cells):
        assert isinstance(cell, MultiscaleCell)
        operation, (rows, units) = data["operation"].values[:, k], cell.weight_hh.shape
        acts, steps = operation != Operation.COPY, len(operation)
        number, anew = int(acts.sum()), int((operation == Operation.FLUSH).sum())
        heard = number if k == 0 else int((data["z"].values[:, k - 1] > 0).sum())
        below, own, above = (0 if w is None else w.numel() for w in (cell.weight_ih, cell.weight_hh, cell.weight_th))
        # where boundaries are given, a new segment has h of the layer above in the place of its own
        kept = number - (anew if data.attrs["boundary"] == "given" else 0)
        stands = int((acts[:-1] & ~acts[1:]).sum()) * (rows - 4 * units) * units  # of a new h, at its first COPY
        counts = {"layer": k + 1, "steps": steps, "updates": number, "flushes": anew}
        costs = {"sparse": heard * below + kept * own + anew * above + stands, "dense": steps * (below + own + above)}
        table.append(counts | costs | {"stack": steps * 4 * units * (cell.input_size + units)})
    return pd.DataFrame(table)


def rows_of(data: xr.Dataset) -> pd.DataFrame:
    """`boundaries` as a table with one row a step, for a committed record: symbol, surprise, z_1, z_tilde_1, ..."""
    columns: dict[str, Any] = {"symbol": data["symbol"].values} if "symbol" in data.coords else {}
    columns["surprise"] = data["surprise"].values
    for number in data["layer"].values.tolist():
        columns |= {f"{name}_{number}": data[name].sel(layer=number).values for name in LAYERWISE}
    return pd.DataFrame(columns)


def from_rows(table: pd.DataFrame, model: Network) -> xr.Dataset:
    """The dataset again, from its rows and the network that was read with."""
    layers = sum(str(name).startswith("norm_") for name in table)
    arrays = {name: np.stack([table[f"{name}_{k + 1}"] for k in range(layers)], 1) for name in LAYERWISE}
    arrays = {name: x.astype(np.int8 if name == "operation" else np.float32) for name, x in arrays.items()}
    symbols = list(table["symbol"]) if "symbol" in table else None
    return _dataset(arrays, table["surprise"], symbols, described(model, None))
