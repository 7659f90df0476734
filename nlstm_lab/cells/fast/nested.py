"""The Nested LSTM of any depth (depth 1 is the LSTM), unrolled over all steps at once."""

import warnings
from typing import Any

import torch
from torch import Tensor

from nlstm_lab.cells.base import State, gates, product
from nlstm_lab.cells.fast import is_uniform
from nlstm_lab.cells.fast.computing import exact_kernels, product_type
from nlstm_lab.cells.fast.unrolled import Plan, Stage, Tensors, pays, unrolled
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell

# On a GPU torch advises the caller, who is always one of our modules, to lay out the weights as those of its own. They
# are a cell's, each in its place; the results are the same, and no user could act upon it.
warnings.filterwarnings("ignore", "RNN module weights are not part of", UserWarning, r"nlstm_lab\.cells\.fast\.")

LARGEST_ONE_HOT = 100  # beyond, the look-up that only our own loop has saves more than the kernel does
Kind = tuple[bool, bool]  # whether a level's candidate is tanh (or the identity of section 4), and has a bias


def enter(kind: Kind, product: Tensor, *tensors: Tensor) -> Tensors:
    """The way in, one level, given its bias and c: its o, and x~ = i * g and h~ = f * c for the next level."""
    *bias, c = tensors
    i, f, g, o = gates(product + bias[0] if bias else product, None, kind[0])
    return o, i * g, f * c  # equations 8, 7


def leave(kind: Kind, product: Tensor, *tensors: Tensor) -> Tensors:
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
    carried = ("h", *(f"c {k}" for k in range(last + 1)))
    plan = Plan.of(stages, carried, ("h",), trained, (), like=state[0])

    def share(x: Tensor) -> Tensor:
        """`cell.project(x)`, a product of the plan's type."""
        if x.dtype == plan.dtype or not x.is_floating_point():
            return cell.project(x)
        found = product(x.to(plan.dtype), cell.weight_ih.to(plan.dtype)).to(x.dtype)
        return found if cell.bias is None else found + cell.bias

    source = cell.weight_ih, cell.bias
    (hidden,), ended = unrolled(plan, share, x, source, state, weights, trained.values())
    return hidden, tuple(ended)


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
