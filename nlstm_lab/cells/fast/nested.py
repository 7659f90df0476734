"""The Nested LSTM of any depth (depth 1 is the LSTM), unrolled by one autograd function with a derived backward.

The time loops keep only what a step must wait for: one product a level, and two runs of pointwise functions around
it. The input's products come for all steps at once from `Cell.project`; the gates are saved, and each weight's gradient
is one product over all steps.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.fast import State, pointwise, serves
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell
from nlstm_lab.cells.precision import exact_products, product_type
from nlstm_lab.errors import UsageError

UNSAVED_STEPS = 64  # without gradients, the steps whose gates are held at a time


class Level(NamedTuple):
    """One affine map of the nest, rows [i | f | g | o], and its candidate; the outermost one's input has its share in."""

    weight: Tensor
    bias: Tensor | None
    tanh: bool


def levels(cell: Any) -> list[Level] | None:
    """The maps of a cell, outermost first, or None when another memory function is nested somewhere."""
    found: list[Level] = []
    while type(cell) in (LSTMCell, NestedLSTMCell):
        parts = (cell.weight_ih, cell.weight_hh)
        tanh = type(cell) is LSTMCell or cell.candidate == "tanh"
        found.append(
            Level(torch.cat(parts, 1), cell.bias, tanh) if found else Level(cell.weight_hh, None, tanh)
        )
        cell = Addition if type(cell) is LSTMCell else cell.memory
    return found if cell is Addition or type(cell) is Addition else None


@serves(NestedLSTMCell)
def unroll(cell: NestedLSTMCell | LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """A layer of Nested LSTM cells over all steps: `nlstm_lab.cells.fast.unroll`."""
    found = levels(cell)
    if found is None:
        return None
    tensors = [tensor for level in found for tensor in (level.weight, level.bias)]
    candidates = tuple(level.tanh for level in found)
    dtype = product_type(state[0])
    if torch.is_grad_enabled():
        hidden, *memories = Unrolled.apply(candidates, dtype, cell.project(x), *state, *tensors)
        return hidden, (hidden[-1], *memories)
    pieces = []
    for piece in x.split(UNSAVED_STEPS):
        hidden, *memories = Unrolled.apply(candidates, dtype, cell.project(piece), *state, *tensors)
        state = (hidden[-1], *memories)
        pieces.append(hidden)
    return torch.cat(pieces), state


class Unrolled(torch.autograd.Function):
    """All steps of a nest: (h of all steps, the last memories), from x's share of the outermost pre-activations.

    The tensors given are projected [T, B, 4H]; h_0 and each memory [B, H], outermost first; then weight and bias of
    each level. `dtype` is the products': all else stays in the type of `projected`.
    """

    @staticmethod
    def forward(
        ctx: Any, candidates: tuple[bool, ...], dtype: torch.dtype, projected: Tensor, *tensors: Tensor
    ) -> State:
        depth = len(candidates)
        first, weights, biases = tensors[: depth + 1], tensors[depth + 1 :: 2], tensors[depth + 2 :: 2]
        T, B, rows = projected.shape
        H = rows // 4

        def saved(width: int, count: int, dtype: torch.dtype = projected.dtype) -> list[Tensor]:
            return [projected.new_empty(T, B, width, dtype=dtype) for _ in range(count)]

        hidden, memories, squashed = saved(H, 1)[0], saved(H, depth), saved(H, depth)
        gates, z = saved(4 * H, depth), saved(2 * H, depth - 1, dtype)
        maps = [weight.t().to(dtype).contiguous() for weight in weights]
        addends = [projected.new_zeros(rows) if bias is None else bias for bias in biases]
        product = projected.new_empty(B, rows, dtype=dtype)
        step = [[buffer.unbind() for buffer in group] for group in (memories, squashed, gates, z)]
        hs, xs = hidden.unbind(), projected.unbind()
        h, *last = first
        with exact_products(projected.device):
            for t in range(T):
                c, s, a, zs = ([views[t] for views in group] for group in step)
                torch.mm(h.to(dtype), maps[0], out=product)
                for k in range(depth - 1):
                    addend = addends[k] if k else xs[t]
                    pointwise.enter(product, addend, last[k], a[k], zs[k], candidates[k])
                    torch.mm(zs[k], maps[k + 1], out=product)
                addend = addends[-1] if depth > 1 else xs[t]
                pointwise.leave(product, addend, last[-1], a, c, s, hs[t], candidates[-1])
                h, last = hs[t], c
        ctx.candidates, ctx.dtype = candidates, dtype
        ctx.save_for_backward(hidden, *first, *weights, *memories, *squashed, *gates, *z)
        return hidden, *(memory[-1].clone() for memory in memories)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise UsageError(
                "the fast path has no second derivative: unroll inside nlstm_lab.cells.fast.disabled() for create_graph"
            )
        candidates, dtype = ctx.candidates, ctx.dtype
        depth = len(candidates)
        hidden, h_0, *rest = ctx.saved_tensors
        first, weights, memories, squashed, gates, z = (
            rest[k * depth : (k + 1) * depth] for k in range(6)
        )
        T, B, H = hidden.shape
        d_hidden, d_memories = grads[0].unbind(), [grad.clone() for grad in grads[1:]]
        d_gates = [torch.empty_like(g, dtype=dtype) for g in gates]
        maps = [weight.to(dtype) for weight in weights]
        last = [(c_0, *memory.unbind()) for c_0, memory in zip(first, memories, strict=True)]
        step = [[buffer.unbind() for buffer in group] for group in (gates, squashed, d_gates)]
        d_h = torch.zeros_like(h_0)
        d_z, d_last = hidden.new_empty(B, 2 * H, dtype=dtype), hidden.new_empty(B, H, dtype=dtype)
        with exact_products(hidden.device):
            for t in reversed(range(T)):
                a, s, d = ([views[t] for views in group] for group in step)
                d_h += d_hidden[t]
                pointwise.leave_backward(d_h, d_memories, last[-1][t], a, s, d, candidates[-1])
                for k in reversed(range(depth - 1)):
                    torch.mm(d[k + 1], maps[k + 1], out=d_z)
                    pointwise.enter_backward(d_z, last[k][t], a[k], d[k], d_memories[k], candidates[k])
                d_h.copy_(torch.mm(d[0], maps[0], out=d_last))
            d_weights = [d_gates[0][1:].flatten(0, 1).t() @ hidden[:-1].flatten(0, 1).to(dtype)]
            d_weights[0] += d_gates[0][0].t() @ h_0.to(dtype)
            d_weights += [
                d.flatten(0, 1).t() @ inside.flatten(0, 1) for d, inside in zip(d_gates[1:], z, strict=True)
            ]
        d_tensors: list[Tensor | None] = []
        for k, d_weight in enumerate(d_weights):
            d_bias = d_gates[k].sum((0, 1), dtype=hidden.dtype) if ctx.needs_input_grad[5 + depth + 2 * k] else None
            d_tensors += [d_weight.to(hidden.dtype), d_bias]
        return None, None, d_gates[0].to(hidden.dtype), d_h, *d_memories, *d_tensors
