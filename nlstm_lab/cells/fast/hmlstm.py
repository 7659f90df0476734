"""The HM-LSTM, all layers over all steps at once.

A layer's step is one product, of h of the layer, z h of the layer below and z h of the layer above side by side, and
one pure function of it.
"""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nlstm_lab.cells.base import State
from nlstm_lab.cells.fast import compiling, is_uniform, sparse
from nlstm_lab.cells.fast.unrolled import UNSAVED_STEPS, Plan, Stage, Tensors, Unrolled, pays
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell
from nlstm_lab.cells.precision import product_type


class Kind(NamedTuple):
    """What a layer is, by its place and by the choices of `HMLSTM`; what its function takes, and what it gives."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    top: bool
    hard: bool
    boundary: str
    identity: bool
    detect_on_copy: bool
    reset: bool
    threshold: float
    limit: float | None
    epsilon: float | None  # of the gates' norm, None without
    epsilon_c: float | None  # of the cell's


def act(kind: Kind, product: Tensor, *tensors: Tensor) -> Tensors:
    """A layer's step, given its product [i | f | g | o] and, where the detector is a row of it, its score.

    Takes h, c and z (flush) of the step before; z of the layer below; the parameters bias, gamma, gamma_c, bias_c,
    weight_z and slope; chance, the draws of sampled boundaries. Gives h, c, z and z~; up, what the layer above reads
    of h, and down, what the layer below does at its next step. Boundaries are [B, 1].
    """
    x = dict(zip(kind.takes, tensors, strict=True))
    h, c, flush, size = x["h"], x["c"], x["flush"], x["h"].shape[1]
    below = x["below"] if "below" in x else torch.ones_like(flush)
    copy = (1 - flush) * (1 - below)
    if kind.epsilon is not None:
        width = x["gamma"].shape[0]
        normed = F.layer_norm(product[:, :width], (width,), x["gamma"], None, kind.epsilon)
        product = torch.cat((normed, product[:, width:]), 1)
    summed = product + x["bias"] if "bias" in x else product
    if kind.limit is not None and summed.requires_grad:
        summed.register_hook(partial(torch.clamp, min=-kind.limit, max=kind.limit))
    i, f, g, o = summed[:, : 4 * size].chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()  # equation 4
    updated = f * c + i * g
    flushed = i * g if kind.reset else updated
    if kind.hard:
        c = torch.where(flush > 0, flushed, torch.where(below > 0, updated, c))
    else:
        c = (1 - flush) * below * updated + copy * c + flush * flushed  # equation 2
    inside = c if kind.epsilon_c is None else F.layer_norm(c, (size,), x["gamma_c"], x["bias_c"], kind.epsilon_c)
    emitted = o * inside.tanh()
    h = torch.where(copy > 0, h, emitted) if kind.hard else copy * h + (1 - copy) * emitted  # equation 3
    given = {"h": h, "c": c, "z": torch.zeros_like(flush), "z_tilde": torch.zeros_like(flush), "down": below * h}
    if not kind.top:
        score = (h * x["weight_z"]).sum(1, keepdim=True) if "weight_z" in x else summed[:, -1:]
        z_tilde = ((x["slope"] * score + 1) / 2).clamp(0, 1)  # equation 8
        z = z_tilde
        if kind.boundary != "soft":
            fires = (z_tilde.detach() > x.get("chance", kind.threshold)).to(h.dtype)  # equation 9
            carrier = score if kind.identity else z_tilde
            z = fires + (carrier - carrier.detach())  # the carrier's gradient
        z = z if kind.detect_on_copy else z * (1 - copy)
        given |= {"z": z, "z_tilde": z_tilde, "up": z * h}
    return tuple(given[name] for name in kind.gives)


def read(
    unit: HMLSTM, x: Tensor, states: list[State], boundaries: bool
) -> tuple[Tensor, list[State], Tensor | None, Tensor | None] | None:
    """All layers over all steps, x [T, B, features] or symbols [T, B]: `nlstm_lab.cells.fast.read`.

    None for cells of another class, dropout, several types or devices, and where the readable steps are faster.
    """
    if not boundaries and (done := sparse.read(unit, x, states)) is not None:
        return *done, None, None
    cells = [cell for cell in unit.cells if type(cell) is HMLSTMCell]
    if len(cells) < unit.num_layers or (unit.dropout and unit.training) or not x.numel():
        return None
    tensors = [tensor for state in states for tensor in state] + [t for cell in cells for t in cell.parameters()]
    if not is_uniform((*tensors, cells[0].slope), x) or not pays(states[0][0], dtype := product_type(states[0][0])):
        return None
    count, keep = len(cells), torch.is_grad_enabled()
    trained: dict[str, Tensor] = {}
    stages, weights = [], []
    for k, cell in enumerate(cells):
        own = _parameters(cell)
        trained |= {f"{name} {k}": value for name, value in own.items()}
        stages.append(_stage(cells, k, tuple(own)))
        weights.append(
            torch.cat([w for w in (cell.weight_hh, cell.weight_ih if k else None, cell.weight_th) if w is not None], 1)
        )
    carried = [f"{name} {k}" for k in range(count) for name in ("h", "c", "z")]
    carried += [f"down {k}" for k in range(count - 1) if cells[k].weight_th is not None]
    wanted = [f"h {k}" for k in range(0 if unit.all_layers else count - 1, count)]
    wanted += [f"{name} {k}" for name in ("z", "z_tilde") for k in range(count)]
    sampled = [f"chance {k}" for k in range(count - 1) if cells[0].boundary == "sample"]
    constants = ("slope", *sampled) if count > 1 else ()
    options = dtype, compiling.wanted(x.device), keep
    plan = Plan(tuple(stages), tuple(carried), tuple(wanted), tuple(trained), constants, *options)
    pieces = []
    for piece in [x] if keep else x.split(UNSAVED_STEPS):
        source = cells[0].project(piece)
        T, B = source.shape[:2]
        first = [part if part.dim() == 2 else part[:, None] for state in states for part in state]
        first += [states[k][2][:, None] * states[k + 1][0] for k in range(count - 1) if cells[k].weight_th is not None]
        # as `torch.bernoulli` draws, step by step and layer by layer
        draws = torch.rand(T, count - 1, B, 1, dtype=source.dtype, device=source.device).unbind(1) if sampled else ()
        given = source, piece, cells[0].weight_ih, None, *first, *weights, *trained.values()
        slope = [cells[0].slope.expand(T)] if constants else []
        found = Unrolled.apply(plan, *given, *slope, *draws)  # type: ignore[no-untyped-call]
        hidden, found = found[: -len(carried) - 2 * count], found[-len(carried) - 2 * count :]
        z, z_tilde = (torch.stack([part[..., 0] for part in found[at : at + count]], 1) for at in (0, count))
        last = found[2 * count : 5 * count]
        states = [(last[3 * k], last[3 * k + 1], last[3 * k + 2][:, 0]) for k in range(count)]
        pieces.append((hidden[0] if len(hidden) == 1 else torch.cat(hidden, 2), z, z_tilde))
    output, z, z_tilde = pieces[0] if len(pieces) == 1 else map(torch.cat, zip(*pieces, strict=True))
    return output, states, z, z_tilde


def _parameters(cell: HMLSTMCell) -> dict[str, Tensor]:
    """What a layer's function takes at every step, by its names."""
    norms = {} if cell.norm is None else {"gamma": cell.norm.weight}
    if cell.norm_c is not None:
        norms |= {"gamma_c": cell.norm_c.weight, "bias_c": cell.norm_c.bias}
    own = {"bias": cell.bias, **norms, "weight_z": cell.weight_z}
    return {name: value for name, value in own.items() if value is not None}


def _stage(cells: list[HMLSTMCell], k: int, parameters: tuple[str, ...]) -> Stage:
    cell, size = cells[k], cells[k].hidden_size
    names = {"h": f"h {k}", "c": f"c {k}", "flush": f"z {k}"} | ({"below": f"z {k - 1}"} if k else {})
    names |= {name: f"{name} {k}" for name in parameters}
    gives = {"h": size, "c": size, "z": 1, "z_tilde": 1}
    if not cell.top:
        names |= {"slope": "slope"} | ({"chance": f"chance {k}"} if cell.boundary == "sample" else {})
        gives["up"] = size
    reads_above = cells[k - 1].weight_th is not None if k else False
    gives |= {"down": size} if reads_above else {}
    kind = Kind(
        takes=tuple(names),
        gives=tuple(gives),
        top=cell.top,
        hard=cell.selection == "hard",
        boundary=cell.boundary,
        identity=cell.straight_through == "identity",
        detect_on_copy=cell.detect_on_copy,
        reset=cell.reset,
        threshold=cell.threshold,
        limit=cell.gradient_limit,
        epsilon=None if cell.norm is None else cell.norm.eps,
        epsilon_c=None if cell.norm_c is None else cell.norm_c.eps,
    )
    factor = (f"h {k}", *([f"up {k - 1}"] if k else []), *([f"down {k}"] if cell.weight_th is not None else []))
    given = {f"{name} {k - 1 if name == 'down' else k}": width for name, width in gives.items()}
    return Stage(act, kind, factor, tuple(names.values()), given)
