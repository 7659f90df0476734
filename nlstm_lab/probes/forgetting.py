"""What a memory keeps: its cells that are alive, the persistence of a step, and what is left of what was written.

The local persistence is the diagonal of dc_t / dc_{t-1}, all other parts of the state held. For a plain cell and for
the innermost memory it is the forget gate f (equation 3); for HM-LSTM 1 on COPY, f on UPDATE, 0 on FLUSH. An outer
memory c_t = m(h~, x~) hands h~ = f c_{t-1} to its memory function m as the hidden state (equations 7, 10-15):

    dc_t / dc_{t-1} = J diag(f),    J = dm / dh~ = diag(o' tanh c) U_o + diag(o (1 - tanh^2 c)) dc/dh~,
    dc/dh~ = diag(f' c_{t-1}) U_f + diag(i' g) U_i + diag(i g') U_g                              for an LSTM,
    dc/dh~ = J_n diag(f' c_{t-1}) U_f + K_n (diag(i' g) U_i + diag(i g') U_g)    where m nests a memory n;

K = dm / dx~ is the same with the input's matrices W instead of U. U_f is weight_hh's block of the gate f.

Of c_t = f_t c_{t-1} + i_t g_t, from c_0 = 0, the part written at step s is (f_{s+1} ... f_t) i_s g_s; they sum to c_t.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor, nn

from nlstm_lab.cells.base import Cell, GatedCell
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.edits import whole
from nlstm_lab.probes.reading import code_of
from nlstm_lab.training.liveness import CLASSES, liveness

CELLS = 2**24  # Jacobian entries that are held at once
EXACT = 1e-4  # of the largest state, by which the parts may miss it: gates are float32


def need(trace: xr.Dataset) -> None:
    """Raise UsageError unless the trace has memory cells."""
    if "c" not in trace:
        raise UsageError(f"the unit of {trace.attrs.get('model', '')!r} has no memory cells, only hidden states h")


def classes(trace: xr.Dataset) -> pd.DataFrame:
    """Tell which cells are alive, by the second half of the text as a whole (notebook 93 writes the definition out).

    Returns:
        One row a cell: memory, unit, life: 'alive', 'silent' (its tanh is constant), 'latched' (saturated: it counts)
        or 'not finite', as records call them.

    Raises:
        UsageError: There are no memory cells.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm", scale="small").model()
    >>> lives = classes(lab.probes.trace(model, "the old man said that he would not sell the company"))
    >>> len(lives), lives.query("memory == 'inner'").life.mode().item()  # 2 memories x 150 cells
    (300, 'latched')
    """
    need(trace)
    rows = []
    for memory in trace.memory.values:
        c, i, f, g = (torch.from_numpy(trace[name].sel(memory=memory).values)[:, None] for name in "cifg")
        life = np.array(CLASSES)[liveness(c, i, f, g).numpy()]
        life = np.where(c.isfinite().all(0)[0].numpy(), life, "not finite")
        rows.append(pd.DataFrame({"memory": memory, "unit": trace.unit.values, "life": life}))
    return pd.concat(rows, ignore_index=True)


Factors = tuple[Tensor, ...]  # o' tanh c, o (1 - tanh^2 c), f' c_{t-1}, i' g, i g' of one memory's step, [T, H] each


def persistence(model: Network, trace: xr.Dataset) -> xr.DataArray:
    """Compute the local persistence (time, memory, unit) of every cell at every step of `trace` but its first.

    Raises:
        UsageError: The unit's memories are none of this project's.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> lab.probes.persistence(model, trace).dims
    ('time', 'memory', 'unit')
    """
    need(trace)
    f = trace["f"].isel(time=slice(1, None)).drop_vars("leaks").rename("persistence")
    if "z" in trace:
        return _chosen(trace, f)
    depth, persistence = trace.attrs["depth"], f.copy()
    for k, cell in enumerate(model.recurrent.cells):
        inside = _nest(cell)
        if len(inside) != depth:
            raise UsageError(f"{cell} nests something other than LSTMs: its persistence has no formula here")
        for d in range(depth - 1):
            leak = persistence[:, k * depth + d].values
            for steps, diagonal in _diagonals(inside[d + 1 :], trace, k * depth + d + 1):
                leak[steps] *= diagonal.numpy()
    return persistence


def _chosen(trace: xr.Dataset, f: xr.DataArray) -> xr.DataArray:
    """The persistence of layers that choose when to move, from what they chose."""

    def beside(boundary: xr.DataArray) -> xr.DataArray:  # at every step but the first, a layer for a memory
        return xr.DataArray(boundary.values[1:], dims=("time", "memory"))

    flush = beside(trace["z"].shift(time=1))
    if "active" in trace:  # boundaries are given, and a layer begins anew when it next moves
        active = beside(trace["active"])
        return active * (1 - flush) * f + (1 - active)
    below = beside(trace["z"].shift(layer=1, fill_value=1.0))
    return (1 - flush) * (below * f + (1 - below))  # HM-RNN, equation 2: FLUSH, UPDATE, COPY


def _nest(cell: Cell) -> list[GatedCell]:
    """A cell and the memories inside it, outermost first; nothing if one of them is no LSTM."""
    cells: list[GatedCell] = []
    inside: object = cell
    while isinstance(inside, NestedLSTMCell):
        cells.append(inside)
        inside = inside.memory
    if isinstance(inside, Addition):
        return cells
    return [*cells, inside] if isinstance(inside, LSTMCell) or (not cells and isinstance(inside, GatedCell)) else []


@torch.no_grad()
def _diagonals(inside: list[GatedCell], trace: xr.Dataset, first: int) -> Iterator[tuple[slice, Tensor]]:
    """The diagonal of J of the memory function `inside[0]`, traced as memory number `first`, piece by piece."""
    size = trace.sizes["unit"]
    piece = max(1, CELLS // (size if len(inside) == 1 else size**2))
    for start in range(1, trace.sizes["time"], piece):
        window = trace.isel(time=slice(start - 1, start + piece))
        factors = [_factors(cell, window, first + k) for k, cell in enumerate(inside)]
        if len(inside) > 1:
            diagonal = _jacobian(inside, factors, hidden=True).diagonal(dim1=-2, dim2=-1)
        else:  # that of a sum of diagonal matrices times full ones
            emitted, out, by_f, by_i, by_g = factors[0]
            i, f, g, o = (u.diagonal() for u in inside[0].weight_hh.detach().cpu().chunk(4))
            diagonal = emitted * o + out * (by_f * f + by_i * i + by_g * g)
        yield slice(start - 1, start - 1 + len(diagonal)), diagonal


def _factors(cell: GatedCell, window: xr.Dataset, memory: int) -> Factors:
    """The diagonal factors at every step of a window but its first."""
    values = {name: torch.from_numpy(np.array(window[name].isel(memory=memory))) for name in "cifgo"}
    before = values["c"][:-1]
    c, i, f, g, o = (values[name][1:] for name in "cifgo")
    seen = torch.tanh(c)
    g_slope = torch.ones_like(g) if getattr(cell, "candidate", "tanh") == "identity" else 1 - g**2
    return o * (1 - o) * seen, o * (1 - seen**2), f * (1 - f) * before, i * (1 - i) * g, i * g_slope


def _jacobian(inside: list[GatedCell], factors: list[Factors], hidden: bool) -> Tensor:
    """J (or, not `hidden`, K) of a memory function, [T, H, H]."""
    emitted, out, by_f, by_i, by_g = (factor[..., None] for factor in factors[0])
    weight = inside[0].weight_hh if hidden else inside[0].weight_ih
    to_i, to_f, to_g, to_o = weight.detach().cpu().chunk(4)
    kept, added = by_f * to_f, by_i * to_i + by_g * to_g
    if len(inside) > 1:
        kept, added = (_jacobian(inside[1:], factors[1:], way) @ part for way, part in ((True, kept), (False, added)))
    return emitted * to_o + out * (kept + added)


def retention(
    trace: xr.Dataset,
    memory: str | None = None,
    at: int | slice | Sequence[int] = -1,
    units: int | slice | Sequence[int] | None = None,
    *,
    model: Network | None = None,
    target: str | int | None = None,
) -> xr.Dataset:
    """Take apart what a memory holds by when it was written.

    Args:
        trace: Of one text from its start.
        memory: A memory with a leak of its own: "cell", "inner", "layer 2", ...; None for the innermost or highest.
        at: Steps at which the memory is looked at; negative from the end. All steps of all units need much room.
        units: Units; None for all.
        model: The network, where shares of a logit are asked for.
        target: The symbol or word, or its code, whose logit is shared out.

    Returns:
        Dimensions time (the steps `at`), source and unit: `left`, the share of what was written at step `source` that
        is left, in [0, 1], and `part`, that share of i g; both 0 of later steps. The parts sum to `c` (time, unit).
        With a model `logit` (time, unit), each unit's weight times its h in the last layer, which is no part of what
        one memory holds alone; with the readout's bias they sum to the target's logit.

    Raises:
        UsageError: The memory has no leak of its own, or is changed otherwise; there is no such memory, step or unit.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> found = lab.probes.retention(lab.probes.trace(model, "the old man said"), "inner")
    >>> dict(found.part.sizes), bool(abs(found.part.sum("source") - found.c).max() < 1e-5)
    ({'time': 1, 'source': 16, 'unit': 150}, True)
    """
    need(trace)
    if "text" in trace.dims:
        raise UsageError("trace: retention is of one text: take one, trace.sel(text=0), without what is behind its end")
    known = [str(name) for name in trace["memory"].values]
    leaking = [name for name, leaks in zip(known, trace["leaks"].values, strict=True) if leaks]
    memory = leaking[-1] if memory is None else memory
    if memory not in known:
        raise UsageError(f"memory must be one of {', '.join(map(repr, leaking))}, not {memory!r}")
    if memory not in leaking:
        raise UsageError(
            f"{memory!r} has no leak of its own: what it holds is computed anew at every step from the memory inside, "
            f"so nothing written earlier stays in it; take {' or '.join(map(repr, leaking))}"
        )
    length = trace.sizes["time"]
    steps = whole(at, length, f"at {at}: the trace has the steps", from_end=True)
    chosen = whole(units, trace.sizes["unit"], "units must be chosen from")
    c, i, f, g = (trace[name].sel(memory=memory).values[:, chosen].astype(np.float64) for name in "cifg")
    left = np.zeros((len(steps), max(steps) + 1, len(chosen)), np.float32)
    for row, step in zip(left, steps, strict=True):
        row[step] = 1
        row[:step] = np.cumprod(f[step:0:-1], 0)[::-1]
    part = left * (i * g)[None, : left.shape[1]].astype(np.float32)
    missing = np.abs(part.sum(1, dtype=np.float64) - c[steps]).max() / max(1.0, np.abs(c[steps]).max())
    if not missing < EXACT:
        raise UsageError(
            f"the parts of {memory!r} miss its state by {missing:.0%}: it is changed otherwise than by f c + i g"
        )
    data: dict[str, Any] = {"left": (("time", "source", "unit"), left), "part": (("time", "source", "unit"), part)}
    data["c"] = (("time", "unit"), c[steps])
    if model is not None:
        readout = model.readout
        if not isinstance(readout, nn.Linear) or model.recurrent.output_size != trace.sizes["unit"]:
            raise UsageError("model: a logit is shared out where one linear readout reads the h of the last layer")
        weight = readout.weight[code_of(model, target, readout.out_features)].detach().float().cpu().numpy()
        data["logit"] = (("time", "unit"), trace["h"].isel(layer=-1).values[np.ix_(steps, chosen)] * weight[chosen])
    coords: dict[str, Any] = {"time": steps, "source": np.arange(left.shape[1]), "unit": chosen}
    if "symbol" in trace.coords:
        coords["symbol"] = ("source", trace["symbol"].values[: left.shape[1]])
    return xr.Dataset(data, coords, {"memory": memory, "model": trace.attrs.get("model", "")})
