"""The HM-LSTM, all layers over all steps: a product a layer and step, and the cell's own pointwise function of it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.base import State
from nlstm_lab.cells.fast import is_uniform, sparse
from nlstm_lab.cells.fast.unrolled import Plan, Stage, Tensors, pays, unrolled
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell, Kind, act


class Names(NamedTuple):
    """What the function of a layer takes and gives, and the layer's kind."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    kind: Kind


def step(names: Names, product: Tensor, *tensors: Tensor) -> Tensors:
    """`act` by names; gives also up, what the layer above reads of h, and down, what the layer below does later."""
    taken: dict[str, Any] = dict(zip(names.takes, tensors, strict=True))
    below = taken.setdefault("below", torch.ones_like(taken["flush"]))
    copy = (1 - taken["flush"]) * (1 - below)
    h, c, z, z_tilde = act(names.kind, product, **taken, copy=copy)
    given = {"h": h, "c": c, "z": z, "z_tilde": z_tilde, "down": below * h, "up": z * h}
    return tuple(given[name] for name in names.gives)


def read(
    unit: HMLSTM, x: Tensor, states: list[State], boundaries: bool = False
) -> tuple[Tensor, list[State], Tensor | None, Tensor | None] | None:
    """All layers over all steps, x [T, B, features] or symbols [T, B]: `nlstm_lab.cells.fast.unroll`.

    None for cells of another class, dropout, several types or devices, and where the readable steps are faster.
    """
    if not boundaries and (done := sparse.read(unit, x, states)) is not None:
        return *done[:2], None, None
    cells = [cell for cell in unit.cells if type(cell) is HMLSTMCell]
    if len(cells) < unit.num_layers or (unit.dropout and unit.training):
        return None
    tensors = [tensor for state in states for tensor in state] + [t for cell in cells for t in cell.parameters()]
    if not is_uniform((*tensors, cells[0].slope), x) or not pays(states[0][0]):
        return None
    count = len(cells)
    trained = {f"{name} {k}": value for k, cell in enumerate(cells) for name, value in cell.pointwise().items()}
    products = [(cell.weight_hh, cell.weight_ih if k else None, cell.weight_th) for k, cell in enumerate(cells)]
    weights = [torch.cat([weight for weight in three if weight is not None], 1) for three in products]
    heard = [k for k in range(count - 1) if cells[k].weight_th is not None]  # layers that read the one above
    carried = [f"{name} {k}" for k in range(count) for name in ("h", "c", "z")] + [f"down {k}" for k in heard]
    wanted = [f"h {k}" for k in range(0 if unit.all_layers else count - 1, count)]
    wanted += [f"{name} {k}" for name in ("z", "z_tilde") for k in range(count)]
    sampled = [f"chance {k}" for k in range(count - 1) if cells[0].boundary == "sample"]
    constants = ("slope", *sampled) if count > 1 else ()
    stages = tuple(_stage(cells, k) for k in range(count))
    plan = Plan.of(stages, carried, wanted, trained, constants, like=states[0][0])
    first = [part if part.dim() == 2 else part[:, None] for state in states for part in state]
    first += [states[k][2][:, None] * states[k + 1][0] for k in heard]

    def given(source: Tensor) -> list[Tensor]:
        T, B = source.shape[:2]  # as `torch.bernoulli` draws, step by step and layer by layer
        draws = source.new_empty(T, count - 1, B, 1).uniform_().unbind(1) if sampled else ()
        return [*([cells[0].slope.expand(T)] if constants else []), *draws]

    source = cells[0].weight_ih, None
    found, last = unrolled(plan, cells[0].project, x, source, first, weights, trained.values(), given)
    hidden, found = found[: -2 * count], found[-2 * count :]
    z, z_tilde = (torch.stack([part[..., 0] for part in found[at : at + count]], 1) for at in (0, count))
    states = [(last[3 * k], last[3 * k + 1], last[3 * k + 2][:, 0]) for k in range(count)]
    return hidden[0] if len(hidden) == 1 else torch.cat(hidden, 2), states, z, z_tilde


def _stage(cells: list[HMLSTMCell], k: int) -> Stage:
    cell, size = cells[k], cells[k].hidden_size
    takes = {"h": f"h {k}", "c": f"c {k}", "flush": f"z {k}"} | ({"below": f"z {k - 1}"} if k else {})
    takes |= {name: f"{name} {k}" for name in cell.pointwise()}
    gives = {f"h {k}": size, f"c {k}": size, f"z {k}": 1, f"z_tilde {k}": 1}
    if not cell.top:
        takes |= {"slope": "slope"} | ({"chance": f"chance {k}"} if cell.boundary == "sample" else {})
        gives |= {f"up {k}": size}
    if k and cells[k - 1].weight_th is not None:
        gives |= {f"down {k - 1}": size}
    factor = (f"h {k}", *([f"up {k - 1}"] if k else []), *([f"down {k}"] if cell.weight_th is not None else []))
    names = Names(tuple(takes), tuple(name.split()[0] for name in gives), cell.kind())
    return Stage(step, names, factor, tuple(takes.values()), gives)
