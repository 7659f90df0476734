"""The stages of the layers that the one unroll computes: Nested LSTMs (depth 1: LSTMs), LayerNorm LSTMs, HM-LSTMs."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nlstm_lab.cells.base import State, gates, product
from nlstm_lab.cells.baselines import LayerNormLSTMCell
from nlstm_lab.cells.fast import exact_kernels, is_uniform, product_type, sparse
from nlstm_lab.cells.fast.unrolled import Stage, Tensors, pays, unrolled
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell, Kind, act
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell

# On a GPU torch advises the caller, who is always one of our modules, to lay out the weights as those of its own. They
# are a cell's, each in its place; the results are the same, and no user could act upon it.
warnings.filterwarnings("ignore", "RNN module weights are not part of", UserWarning, r"nlstm_lab\.cells\.fast\.")

LARGEST_ONE_HOT = 100  # beyond, the look-up that only our own loop has saves more than the kernel does
Level = tuple[bool, bool]  # whether a level's candidate is tanh (or the identity of section 4), and has a bias


def enter(kind: Level, product: Tensor, *tensors: Tensor) -> Tensors:
    """The way in, one level, given its bias and c: its o, and x~ = i * g and h~ = f * c for the next level."""
    *bias, c = tensors
    i, f, g, o = gates(product + bias[0] if bias else product, None, kind[0])
    return o, i * g, f * c  # equations 8, 7


def leave(kind: Level, product: Tensor, *tensors: Tensor) -> Tensors:
    """The innermost level and the way out: each level's memory, innermost first, and h.

    Takes its bias and memory, then o of the other levels, innermost first.
    """
    bias, (memory, *outer) = tensors[: kind[1]], tensors[kind[1] :]
    i, f, g, o = gates(product + bias[0] if bias else product, None, kind[0])
    memory = f * memory + i * g  # equations 9, 12
    given = []
    for emit in (o, *outer):
        given.append(memory)
        memory = emit * memory.tanh()  # equations 14, 15, 6
    return *given, memory


def unroll(cell: NestedLSTMCell | LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """A layer of Nested LSTM cells over all steps: `nlstm_lab.cells.fast.unroll`.

    None where another memory function is nested somewhere, and where the readable steps are faster.
    """
    if not is_uniform((*state, *cell.parameters()), x) or not pays(state[0]):
        return None
    chain: list[Any] = [cell]
    while type(chain[-1]) is NestedLSTMCell:
        chain.append(chain[-1].memory)
    if type(chain[-1]) is Addition:
        chain.pop()
    elif type(chain[-1]) is not LSTMCell:
        return None
    last, H, stages, trained = len(chain) - 1, cell.hidden_size, [], {}
    for k, level in enumerate(chain):
        kind = type(level) is LSTMCell or level.candidate == "tanh", k > 0 and level.bias is not None
        if kind[1]:
            trained[f"bias {k}"] = level.bias
        takes = (*([f"bias {k}"] if kind[1] else []), f"c {k}")
        factor = (f"x {k}", f"h {k}") if k else ("h",)
        if k < last:
            stages.append(Stage(enter, kind, factor, takes, {f"o {k}": H, f"x {k + 1}": H, f"h {k + 1}": H}))
        else:
            gives = {**{f"c {j}": H for j in reversed(range(k + 1))}, "h": H}
            stages.append(Stage(leave, kind, factor, (*takes, *(f"o {j}" for j in reversed(range(k)))), gives))
    weights = [cell.weight_hh, *(torch.cat((level.weight_ih, level.weight_hh), 1) for level in chain[1:])]
    first = dict(zip(("h", *(f"c {k}" for k in range(last + 1))), state, strict=True))
    (hidden,), ended = unrolled(stages, ["h"], first, weights, trained, x, share, (cell.weight_ih, cell.bias))
    return hidden, tuple(ended)


def share(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The input's share of a product, W x + b, of factors in the fast path's type."""
    dtype = product_type(weight)
    if x.dtype == dtype or not x.is_floating_point():
        return product(x, weight, bias)
    found = product(x.to(dtype), weight.to(dtype)).to(x.dtype)
    return found if bias is None else found + bias


def normalized_share(x: Tensor, weight: Tensor, gain: Tensor, bias: Tensor | None) -> Tensor:
    return F.layer_norm(share(x, weight), gain.shape, gain) + (0 if bias is None else bias)


def normalized(kind: None, share: Tensor, read: Tensor, c: Tensor, gain: Tensor, shift: Tensor) -> Tensors:
    """A layer-normalized step: c and h, given the norm of the last h's product, c, and what the norm of c has."""
    i, f, g, o = gates(share + read)
    c = f * c + i * g
    return c, o * torch.tanh(F.layer_norm(c, gain.shape, gain, shift))


def norm(kind: None, product: Tensor, gain: Tensor) -> Tensors:
    """The norm of a product, which the next step reads."""
    return (F.layer_norm(product, gain.shape, gain),)


def unroll_layer_norm(cell: LayerNormLSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """A layer of layer-normalized LSTM cells over all steps: `nlstm_lab.cells.fast.unroll`."""
    if not is_uniform((*state, *cell.parameters()), x) or not pays(state[0]):
        return None
    H, norm_c, source = cell.hidden_size, cell.norm_c, (cell.weight_ih, cell.norm_ih.weight, cell.bias)
    trained: dict[str, Tensor] = {"gain": norm_c.weight, "shift": norm_c.bias, "gain of h": cell.norm.weight}
    stages = [  # the two products are normalized apart, so the first stage sees the input's share alone
        Stage(normalized, None, (), ("read", "c", "gain", "shift"), {"c": H, "h": H}),
        Stage(norm, None, ("h",), ("gain of h",), {"read": 4 * H}),
    ]
    first = {"read": cell.norm(state[0] @ cell.weight_hh.t()), "c": state[1]}
    weights = cell.weight_hh[:, :0], cell.weight_hh
    (hidden,), ended = unrolled(stages, ["h"], first, weights, trained, x, normalized_share, source)
    return hidden, (hidden[-1], ended[1])


def unroll_lstm(cell: LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """An LSTM layer over all steps; the kernel has no fp64, and its bf16 keeps the cell state in bf16."""
    symbols = not x.is_floating_point()
    if not is_uniform((*state, *cell.parameters()), x):
        return None
    if product_type(state[0]) != torch.float32 or (symbols and cell.input_size > LARGEST_ONE_HOT):
        return unroll(cell, x, state)
    dense = product(x, torch.eye(cell.input_size, dtype=cell.like.dtype, device=x.device)) if symbols else x
    weights: list[Tensor] = [cell.weight_ih, cell.weight_hh]
    if cell.bias is not None:
        weights += [cell.bias, torch.zeros_like(cell.bias)]
    first = [tensor.contiguous().unsqueeze(0) for tensor in state]  # cuDNN refuses any other
    with exact_kernels():
        hidden, h, c = torch._VF.lstm(dense, first, weights, cell.bias is not None, 1, 0.0, True, False, False)
    return hidden, (h[0], c[0])


def step(names: tuple[tuple[str, ...], tuple[str, ...], Kind], product: Tensor, *tensors: Tensor) -> Tensors:
    """`act` by the names of what it takes and gives: also up, what the layer above reads, and down, the layer below."""
    takes, gives, kind = names
    taken: dict[str, Any] = dict(zip(takes, tensors, strict=True))
    below = taken.setdefault("below", torch.ones_like(taken["flush"]))
    copy = (1 - taken["flush"]) * (1 - below)
    h, c, z, z_tilde = act(kind, product, **taken, copy=copy)
    given = {"h": h, "c": c, "z": z, "z_tilde": z_tilde, "down": below * h, "up": z * h}
    return tuple(given[name] for name in gives)


def unroll_hmlstm(
    recurrent: HMLSTM, x: Tensor, states: list[State], boundaries: bool = False
) -> tuple[Tensor, list[State], Tensor | None, Tensor | None] | None:
    """All layers over all steps, x [T, B, features] or symbols [T, B]: `nlstm_lab.cells.fast.unroll`.

    None for cells of another class, dropout, several types or devices, and where the readable steps are faster.
    """
    if not boundaries and (done := sparse.read(recurrent, x, states)) is not None:
        return *done, None, None
    cells = [cell for cell in recurrent.cells if type(cell) is HMLSTMCell]
    if len(cells) < recurrent.num_layers or (recurrent.dropout and recurrent.training):
        return None
    tensors = [tensor for state in states for tensor in state] + [t for cell in cells for t in cell.parameters()]
    if not is_uniform((*tensors, cells[0].slope), x) or not pays(states[0][0]):
        return None
    count = len(cells)
    trained = {f"{name} {k}": value for k, cell in enumerate(cells) for name, value in cell.pointwise().items()}
    products = [(cell.weight_hh, cell.weight_ih if k else None, cell.weight_th) for k, cell in enumerate(cells)]
    weights = [torch.cat([weight for weight in three if weight is not None], 1) for three in products]
    first: dict[str, Tensor] = {}
    for k, (h, c, z) in enumerate(states):
        first |= {f"h {k}": h, f"c {k}": c, f"z {k}": z[:, None]}
    for k in range(count - 1):
        if cells[k].weight_th is not None:  # it reads the layer above
            first[f"down {k}"] = first[f"z {k}"] * first[f"h {k + 1}"]
    outputs = [f"h {k}" for k in range(0 if recurrent.all_layers else count - 1, count)]
    outputs += [f"{name} {k}" for name in ("z", "z_tilde") for k in range(count)]
    sampled = [f"chance {k}" for k in range(count - 1) if cells[0].boundary == "sample"]
    constants = ["slope", *sampled] if count > 1 else []

    def given(share: Tensor) -> list[Tensor]:
        T, B = share.shape[:2]  # drawn as by the readable steps: step by step, layer by layer
        draws = share.new_empty(T, count - 1, B, 1).uniform_().unbind(1) if sampled else ()
        return [*([cells[0].slope.expand(T)] if constants else []), *draws]

    stages, source = [_stage(cells, k) for k in range(count)], (cells[0].weight_ih,)
    found, last = unrolled(stages, outputs, first, weights, trained, x, product, source, constants, given)
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
    names = tuple(takes), tuple(name.split()[0] for name in gives), cell.kind()
    return Stage(step, names, factor, tuple(takes.values()), gives)
