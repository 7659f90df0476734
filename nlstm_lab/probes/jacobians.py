"""The local persistence of a memory: the diagonal of dc_t / dc_{t-1}, all other parts of the state held.

For a plain cell and for the innermost memory it is the forget gate f (equation 3). For HM-LSTM it is 1 on COPY, f on
UPDATE, 0 on FLUSH. An outer memory c_t = m(h~, x~) hands h~ = f c_{t-1} to the memory function m as its hidden state
(equations 7, 10-15), so that there

    dc_t / dc_{t-1} = J diag(f),    J = dm / dh~,

where h~ reaches the output m = o tanh(c) through every gate of m and, if m nests a further memory n, through n:

    J = diag(o' tanh c) U_o + diag(o (1 - tanh^2 c)) dc/dh~,
    dc/dh~ = diag(f' c_{t-1}) U_f + diag(i' g) U_i + diag(i g') U_g                            for an LSTM,
    and dc/dh~ = J_n diag(f' c_{t-1}) U_f + K_n (diag(i' g) U_i + diag(i g') U_g)                  for a
    nested one;

K = dm / dx~ is the same with the input's matrices W instead of U. U_f is weight_hh's block of the gate f.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.cells.base import Cell, GatedCell
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import liveness

CELLS = 2**24  # Jacobian entries that are held at once


class Factors(NamedTuple):
    """The five diagonal factors of one memory's step, [T, H] each."""

    o: Tensor  # o' tanh c
    out: Tensor  # o (1 - tanh^2 c)
    f: Tensor  # f' c_{t-1}
    i: Tensor  # i' g
    g: Tensor  # i g'


def persistence(model: Network, trace: xr.Dataset) -> xr.DataArray:
    """Compute the local persistence (time, memory, unit) of every cell at every step of `trace` but its first.

    It costs as much as a product of [H, H] matrices a step for each memory but the two innermost.

    Raises:
        UsageError: The unit's memories are none of this project's.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> lab.probes.persistence(model, trace).dims
    ('time', 'memory', 'unit')
    """
    liveness.need(trace)
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
        if len(inside) == 1:
            diagonal = _through_lstm(factors[0], [u.diagonal() for u in inside[0].weight_hh.detach().cpu().chunk(4)])
        else:
            diagonal = _jacobian(inside, factors, hidden=True).diagonal(dim1=-2, dim2=-1)
        yield slice(start - 1, start - 1 + len(diagonal)), diagonal


def _factors(cell: GatedCell, window: xr.Dataset, memory: int) -> Factors:
    """The diagonal factors at every step of a window but its first."""
    values = {name: torch.from_numpy(np.array(window[name].isel(memory=memory))) for name in "cifgo"}
    before = values["c"][:-1]
    c, i, f, g, o = (values[name][1:] for name in "cifgo")
    seen = torch.tanh(c)
    g_slope = torch.ones_like(g) if getattr(cell, "candidate", "tanh") == "identity" else 1 - g**2
    return Factors(o * (1 - o) * seen, o * (1 - seen**2), f * (1 - f) * before, i * (1 - i) * g, i * g_slope)


def _through_lstm(by: Factors, weights: Sequence[Tensor]) -> Tensor:
    """dm/d(hidden or input) of an LSTM from its factors and blocks; full matrices, or their diagonals alone."""
    to_i, to_f, to_g, to_o = weights
    if to_i.dim() == 2:
        by = Factors(*(factor[..., None] for factor in by))
    return by.o * to_o + by.out * (by.f * to_f + by.i * to_i + by.g * to_g)


def _jacobian(inside: list[GatedCell], factors: list[Factors], hidden: bool) -> Tensor:
    """J (or, not `hidden`, K) of a memory function, [T, H, H]."""
    cell, by = inside[0], factors[0]
    weights = (cell.weight_hh if hidden else cell.weight_ih).detach().cpu().chunk(4)  # i, f, g, o
    if len(inside) == 1:
        return _through_lstm(by, weights)
    to_i, to_f, to_g, to_o = weights
    keep, add = (_jacobian(inside[1:], factors[1:], hidden=way) for way in (True, False))
    to_c = keep @ (by.f[..., None] * to_f) + add @ (by.i[..., None] * to_i + by.g[..., None] * to_g)
    return by.o[..., None] * to_o + by.out[..., None] * to_c
