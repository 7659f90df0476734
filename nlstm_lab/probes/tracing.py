"""Every state and gate of a network along a text, or several, as a labelled dataset."""

import base64
import io
import math
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from itertools import takewhile
from operator import eq
from typing import Any

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells.base import memories
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import CHUNK, WATCHED, Texts, encode_all, names, reading, state_of, symbols_of

GATES = ("c", "i", "f", "g", "o")
CHOICES = ("z", "active")  # one number a layer and step
IN_MEMORY = 2**29  # bytes; a longer trace lies in an unnamed temporary file, mapped into memory
SHOW_PROGRESS = 10_000  # steps from which on a bar is worth its line

Array = NDArray[np.float32]


def trace(
    model: Network,
    text: Texts,
    *,
    run: str = "",
    predictions: bool = True,
    watch: Callable[[float], None] | None = None,
    known: xr.Dataset | None = None,
) -> xr.Dataset:
    """Read `text` once, in order, from a zero state, and record what happens at every step.

    Several texts, in a list, are read side by side: the trace then has a first dimension `text` with the coordinate
    `length`, and NaN (symbols: "", codes: -1) behind the end of a shorter text. Large arrays are streamed to disk.

    Args:
        predictions: Record log p of every symbol, too.
        known: An earlier trace by this network with the same arguments: what both texts begin with is taken from it.

    Returns:
        Float32 variables: `c`, the state, `i`, `f`, `o`, the gates, and `g`, the candidate (time, memory, unit); `h`,
        the hidden state (time, layer, unit); in units that have them `z`, the boundaries, and `active`, whether a layer
        moves as a whole (time, layer); where there is a vocabulary, `log_p` (time, vocabulary), the natural logarithm
        of the probability of what comes next. Coordinates: symbol (time), what was read; memory, "cell", or "outer" and
        "inner", ..., absent without cells, and `leaks`, true where c_t = f c_{t-1} + i g; layer from 1, unit from 0.
        Attributes: model, run, depth (of nesting).

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
    symbols = symbols_of(model, codes[:, 0])
    arrays, begun = dict[str, Array](), 0
    if known is not None and "symbol" in known.coords and lengths is None and symbols is not None:
        begun = beginning(known["symbol"].values.tolist(), symbols[:-1])  # the last step is always read
    hidden, chunk = len(codes) < SHOW_PROGRESS, CHUNK if watch is None else WATCHED
    with reading(model), tqdm(total=len(codes) - begun, disable=hidden, leave=False, unit=" steps") as bar:
        state = state_of(model, codes[:, 0], known, begun) if known is not None and begun else None
        for start in range(begun, len(codes), chunk):
            x = codes[start : start + chunk]
            output, state, layers = model.trace(x, state)
            values = recorded_values(layers)
            if predictions and model.vocabulary is not None:
                values["log_p"] = torch.log_softmax(model.readout(output).float(), -1)
            arrays = arrays or _empty(values, len(codes))
            for name, value in values.items():
                arrays[name][start : start + len(x)] = value.float().cpu().numpy()
            bar.update(len(x))
            if watch is not None:
                watch((start + len(x)) / len(codes))
    if begun and known is not None:
        for name, array in arrays.items():
            array[:begun] = known[name].values[:begun, None]
    leaks = ["memory.h" not in record for record in memories(layers).values()]
    return labelled(model, arrays, codes, lengths, leaks, run)


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


def _empty(values: dict[str, Tensor], length: int) -> dict[str, Array]:
    """Arrays that are filled along time, on disk where they are too large."""
    shapes = {name: (length, *value.shape[1:]) for name, value in values.items()}
    if 4 * sum(map(math.prod, shapes.values())) <= IN_MEMORY:
        return {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
    arrays: dict[str, Array] = {}
    for name, shape in shapes.items():
        with tempfile.TemporaryFile() as file:  # it has no name, and goes when the array goes
            arrays[name] = np.memmap(file, np.float32, "w+", shape=shape)
    return arrays


def beginning(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many symbols two texts begin with alike."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def labelled(
    model: Network, arrays: dict[str, Array], codes: Tensor, lengths: list[int] | None, leaks: list[bool], run: str
) -> xr.Dataset:
    """Arrays [T, B, ...] of what was recorded as a trace; `lengths` of the texts, None for one alone."""
    along = ("time",) if lengths is None else ("time", "text")
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(GATES, (*along, "memory", "unit"))
    dims |= dict.fromkeys(CHOICES, (*along, "layer"))
    dims |= {"h": (*along, "layer", "unit"), "log_p": (*along, "vocabulary")}
    unit = model.recurrent
    coords: dict[str, object] = {"time": np.arange(len(codes)), "layer": np.arange(1, unit.num_layers + 1)}
    coords["unit"] = np.arange(unit.hidden_size)
    if leaks:
        coords |= {"memory": names(unit), "leaks": ("memory", leaks)}
    texts = [symbols_of(model, codes[:length, k]) for k, length in enumerate(lengths or [len(codes)])]
    if lengths is None:
        arrays = {name: array[:, 0] for name, array in arrays.items()}
        coords |= {} if texts[0] is None else {"symbol": ("time", texts[0])}
    else:
        coords |= {"text": np.arange(len(texts)), "length": ("text", lengths)}
        if texts[0] is not None:
            nothing = -1 if model.vocabulary is None else ""
            padded = [[*(text or ()), *[nothing] * (len(codes) - len(text or ()))] for text in texts]
            coords["symbol"] = (("text", "time"), padded)
        for array in arrays.values():
            for k, length in enumerate(lengths):
                array[length:, k] = np.nan
    if "log_p" in arrays and model.vocabulary and arrays["log_p"].shape[-1] == len(model.vocabulary):
        coords["vocabulary"] = list(model.vocabulary.symbols)
    data = {name: (dims[name], array) for name, array in arrays.items()}
    attributes = {"model": model.name, "run": run, "depth": len(leaks) // unit.num_layers}
    return Trace(data, coords, attributes).transpose("text", "time", ..., missing_dims="ignore")


UNITS, STEPS = 24, 160  # of each memory, and of the text, that the picture has


class Trace(xr.Dataset):  # type: ignore[no-untyped-call]
    """A dataset whose first lines in a notebook say what was read, with a picture of the memories."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        full = super()._repr_html_()
        if "h" not in self or self.sizes.get("time", 0) == 0:
            return full
        names = [*map(str, self["memory"].values)] if "c" in self else [f"h {k}" for k in self["layer"].values]
        first = self.isel(text=0) if "text" in self.dims else self
        read = "".join(map(str, first["symbol"].values[:STEPS])) if "symbol" in first.coords else ""
        texts = f"{self.sizes['text']} texts of up to " if "text" in self.dims else ""
        about = f"{self.attrs.get('run') or self.attrs.get('model', '')}: {texts}{self.sizes['time']} steps"
        size = f"{', '.join(names)}, {self.sizes['unit']} units each"
        return (
            f"<p><b>{escape(about)}</b>; {escape(size)}</p><pre>{escape(read)}</pre>"
            f'<img alt="tanh of the states, a band a memory" style="width: 100%; max-width: 50em; height: '
            f'{4 * len(names)}em; image-rendering: pixelated" src="data:image/png;base64,{_picture(first)}">'
            f"<details><summary>variables</summary>{full}</details>"
        )


def _picture(trace: xr.Dataset) -> str:
    """The first units of each memory, a band each, against time: a PNG."""
    from matplotlib import image  # here, as nothing else draws

    states: xr.DataArray = np.tanh(trace["c"]) if "c" in trace else trace["h"]  # type: ignore[assignment]
    values = np.nan_to_num(states.transpose(..., "unit", "time").values[:, :UNITS, :STEPS])
    bands = np.pad(values, ((0, 0), (0, 1), (0, 0))).reshape(-1, values.shape[-1])
    file = io.BytesIO()
    image.imsave(file, bands, vmin=-1, vmax=1, cmap="RdBu", format="png")
    return base64.b64encode(file.getvalue()).decode()
