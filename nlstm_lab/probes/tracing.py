"""Every state and gate of a network along a text, or several, as a labelled dataset."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells.base import memories
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import CHUNK, WATCHED, Texts, encode_all, names, reading, symbols_of

GATES = ("c", "i", "f", "g", "o")
CHOICES = ("z", "active")  # one number a layer and step
SHOW_PROGRESS = 10_000  # steps from which on a bar is worth its line

Array = NDArray[np.float32]


def trace(
    model: Network,
    text: Texts,
    *,
    predictions: bool = True,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Read `text` once, in order, from a zero state, and record what happens at every step.

    Several texts, in a list, are read side by side: the trace then has a first dimension `text` with the coordinate
    `length`, and NaN (symbols: "", codes: -1) behind the end of a shorter text.

    Args:
        predictions: Record log p of every symbol, too.

    Returns:
        Float32 variables: `c`, the state, `i`, `f`, `o`, the gates, and `g`, the candidate (time, memory, unit); `h`,
        the hidden state (time, layer, unit); where there are any `z`, the boundaries, and `active`, whether a layer
        moves as a whole (time, layer); where there is a vocabulary, `log_p` (time, vocabulary), the natural logarithm
        of the probability of what comes next. Coordinates: symbol (time), what was read; memory, "cell", or "outer" and
        "inner", ..., absent without cells, and `leaks`, true where c_t = f c_{t-1} + i g; layer from 1, unit from 0.
        Attributes: model, depth (of nesting).

    Raises:
        UsageError: The network does not know a character.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said")
    >>> dict(trace.c.sizes), trace.memory.values.tolist()
    ({'time': 16, 'memory': 2, 'unit': 150}, ['outer', 'inner'])
    >>> inner = trace.c.sel(memory="inner", unit=7)  # one cell along the text
    """
    codes, lengths = encode_all(model, text)
    arrays, state = dict[str, Array](), None
    hidden, chunk = len(codes) < SHOW_PROGRESS, CHUNK if watch is None else WATCHED
    with reading(model), tqdm(total=len(codes), disable=hidden, leave=False, unit=" steps") as bar:
        for start in range(0, len(codes), chunk):
            x = codes[start : start + chunk]
            output, state, layers = model.trace(x, state)
            values = recorded_values(layers)
            if predictions and model.vocabulary is not None:
                values["log_p"] = torch.log_softmax(model.readout(output).float(), -1)
            arrays = arrays or {
                name: np.empty((len(codes), *each.shape[1:]), np.float32) for name, each in values.items()
            }
            for name, value in values.items():
                arrays[name][start : start + len(x)] = value.float().cpu().numpy()
            bar.update(len(x))
            if watch is not None:
                watch((start + len(x)) / len(codes))
    return labelled(model, arrays, codes, lengths, layers)


def recorded_values(layers: list[dict[str, Any]]) -> dict[str, Tensor]:
    """What a chunk recorded, by the trace's variables: [T, B, memory, unit], [T, B, layer, unit] and [T, B, layer]."""
    named = list(memories(layers).values())
    recorded = [gate for gate in GATES if named and all(gate in record for record in named)]
    values = {gate: torch.stack([record[gate] for record in named], 2) for gate in recorded}
    values["h"] = torch.stack([record["h"] for record in layers], 2)
    for choice in CHOICES:
        if all(choice in record and record[choice].dim() == 2 for record in layers):  # not a clock's, of every unit
            values[choice] = torch.stack([record[choice] for record in layers], 2)
    return values


def labelled(
    model: Network, arrays: dict[str, Array], codes: Tensor, lengths: list[int] | None, layers: list[Any]
) -> xr.Dataset:
    """Arrays [T, B, ...] of what was recorded of `layers` as a trace; `lengths` of the texts, None for one alone."""
    recurrent, leaks = model.recurrent, ["memory.h" not in record for record in memories(layers).values()]
    coords: dict[str, Any] = {"time": np.arange(len(codes)), "layer": np.arange(1, recurrent.num_layers + 1)}
    coords["unit"] = np.arange(recurrent.hidden_size)
    if leaks:
        coords |= {"memory": names(recurrent), "leaks": ("memory", leaks)}
    symbols: Any = [symbols_of(model, text) for text in codes.unbind(1)]
    symbols = None if symbols[0] is None else np.transpose(symbols)  # [T, B]
    along: tuple[str, ...] = ("time",)
    if lengths is None:
        arrays = {name: array[:, 0] for name, array in arrays.items()}
        symbols = None if symbols is None else symbols[:, 0]
    else:
        along, ended = ("time", "text"), np.arange(len(codes))[:, None] >= np.array(lengths)
        coords |= {"text": np.arange(len(lengths)), "length": ("text", lengths)}
        for array in arrays.values():
            array[ended] = np.nan
        if symbols is not None:
            symbols = np.where(ended, -1 if model.vocabulary is None else "", symbols)
    if symbols is not None:
        coords["symbol"] = (along, symbols)
    if "log_p" in arrays and model.vocabulary and arrays["log_p"].shape[-1] == len(model.vocabulary):
        coords["vocabulary"] = list(model.vocabulary.symbols)
    dims = dict.fromkeys(GATES, ("memory", "unit")) | dict.fromkeys(CHOICES, ("layer",))
    dims |= {"h": ("layer", "unit"), "log_p": ("vocabulary",)}
    data = {name: ((*along, *dims[name]), array) for name, array in arrays.items()}
    attributes = {"model": model.name, "depth": len(leaks) // recurrent.num_layers}
    return xr.Dataset(data, coords, attributes).transpose("text", "time", ..., missing_dims="ignore")
