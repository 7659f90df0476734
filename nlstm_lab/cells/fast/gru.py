"""The GRU: reset after the candidate's matrix by torch's own kernel, reset before it by an autograd function.

As in the Nested LSTM's function, the loops keep what a step must wait for: two products, h with the matrix of r and u,
and r * h with the candidate's, and the pointwise functions after each.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.base import State, product
from nlstm_lab.cells.fast import backward_is_watched, compiling, differentiate, memory, saves_plainly, serves
from nlstm_lab.cells.fast.fused import fused_input
from nlstm_lab.cells.fast.pointwise import Tensors
from nlstm_lab.cells.gru import GRUCell
from nlstm_lab.cells.precision import exact_kernels, exact_products, product_type, times


@serves(GRUCell)
def unroll(cell: GRUCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """A GRU layer over all steps: `nlstm_lab.cells.fast.unroll`."""
    dtype = product_type(state[0])
    if cell.reset == "after":
        dense = fused_input(cell, x)
        if dense is None or dtype == torch.bfloat16:
            return None
        weights: list[Tensor] = [cell.weight_ih, cell.weight_hh]
        if cell.bias is not None and cell.bias_hh is not None:
            weights += [cell.bias, cell.bias_hh]
        first = state[0].contiguous().unsqueeze(0)  # cuDNN refuses any other
        with exact_kernels():
            hidden, h = torch._VF.gru(dense, first, weights, cell.bias is not None, 1, 0.0, True, False, False)
        return hidden, (h[0],)
    options = Options(dtype, compiling.wanted(x.device), torch.is_grad_enabled())
    from_input = cell.project(x), x, cell.weight_ih, cell.bias
    hidden, h = Unrolled.apply(options, *from_input, state[0], cell.weight_hh)  # type: ignore[no-untyped-call]
    return hidden, (h,)


def reset(product: Tensor, addend: Tensor, h: Tensor) -> Tensors:
    """r, u, and r * h for the candidate's product."""
    r, u = (product + addend).sigmoid().chunk(2, 1)
    return r, u, r * h


def renew(product: Tensor, addend: Tensor, u: Tensor, h: Tensor, *, copies: int) -> Tensors:
    """The candidate g, and `copies` of the new h."""
    g = (product + addend).tanh()
    return g, *[(1 - u) * g + u * h] * copies


def renew_backward(d_product: Tensor, d_hidden: Tensor, d_kept: Tensor, u: Tensor, g: Tensor, h: Tensor) -> Tensors:
    """The pre-activations' gradients of g and u, and what h gets through u.

    h' received `d_product` and `d_kept` from the next step and `d_hidden` from outside.
    """
    gradient = d_product + d_kept + d_hidden
    return gradient * (1 - u) * (1 - g * g), gradient * (h - g) * u * (1 - u), gradient * u


def reset_backward(d_z: Tensor, d_kept: Tensor, r: Tensor, h: Tensor) -> Tensors:
    """The pre-activation's gradient of r, and what h gets through u and through r * h."""
    d_z = d_z.to(h.dtype)
    return d_z * h * r * (1 - r), d_kept + d_z * r


class Options(NamedTuple):
    """The type of the products' factors, compiling or not, and keeping what the backward needs or not."""

    dtype: torch.dtype
    compile: bool
    keep: bool


class Unrolled(torch.autograd.Function):
    """All steps: h of all steps, and the last; projected [T, B, 3H], h_0 [B, H], weight_hh [3H, H].

    x, weight_ih and bias, from which projected comes, are there for `replay` alone, as in the Nested LSTM's function.
    """

    @staticmethod
    def forward(
        ctx: Any,
        options: Options,
        projected: Tensor,
        x: Tensor,
        weight_ih: Tensor,
        bias: Tensor | None,
        first: Tensor,
        weight: Tensor,
    ) -> Tensors:
        dtype, xs, h_0 = options.dtype, projected.contiguous(), first.contiguous()
        T, B, rows = xs.shape
        H = rows // 3
        hidden = xs.new_empty(T, B, H)
        fed = hidden if dtype == xs.dtype else hidden.new_empty(T, B, H, dtype=dtype)  # h as a factor
        tape = memory.take(xs, T, 3, B, H)  # r, u, g
        z = memory.take(xs, T, B, H, dtype=dtype)
        gates, candidate = (times(block.t(), dtype, B) for block in weight.split([2 * H, H]))
        run, h, factor = compiling.Runners(options.compile), h_0, h_0.to(dtype)
        with exact_products(xs.device):
            for t in range(T):
                r, u, g = tape[t].unbind()
                x_gates, x_candidate = xs[t].split([2 * H, H], 1)
                run(reset, 0, [r, u, z[t]], [gates(factor), x_gates, h])
                emitted = [hidden[t]] if fed is hidden else [hidden[t], fed[t]]
                run(renew, 0, [g, *emitted], [candidate(z[t]), x_candidate, u, h], copies=len(emitted))
                h, factor = hidden[t], fed[t]
        if options.keep:
            ctx.options, ctx.owns = options, saves_plainly()
            ctx.save_for_backward(x, weight_ih, bias, tape, z, hidden, h_0, weight)
        else:
            memory.give(tape, z)
        return hidden, h.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight_ih, bias, tape, z, hidden, h_0, weight = ctx.saved_tensors
        dtype, compile, _ = ctx.options
        if backward_is_watched(grads):
            with torch.enable_grad():
                projected = product(x, weight_ih, bias)
                outputs = replay(projected, h_0, weight)
            d_projected, *d_rest = differentiate(outputs, [projected, h_0, weight], grads)
            return None, d_projected, None, None, None, *d_rest
        T, _, B, H = tape.shape
        d_hidden, d_h = grads[0].contiguous(), hidden.new_zeros(B, H, dtype=dtype)
        d_kept, d_next = grads[1].clone(memory_format=torch.contiguous_format), torch.empty_like(h_0)
        d_gates, d_candidate = (memory.take(tape, T, B, width, dtype=dtype) for width in (2 * H, H))
        gates, candidate = (times(block, dtype, B) for block in weight.split([2 * H, H]))
        run = compiling.Runners(compile)
        with exact_products(tape.device):
            for t in reversed(range(T)):
                r, u, g = tape[t].unbind()
                h = hidden[t - 1] if t else h_0
                d_r, d_u = d_gates[t].chunk(2, 1)
                run(renew_backward, 0, [d_candidate[t], d_u, d_next], [d_h, d_hidden[t], d_kept, u, g, h])
                run(reset_backward, 0, [d_r, d_kept], [candidate(d_candidate[t]), d_next, r, h])
                d_h = gates(d_gates[t])
            flat = d_gates.flatten(0, 1).t()
            before = torch.cat((h_0[None], hidden[:-1])).to(dtype).flatten(0, 1)
            d_weight = torch.cat((flat @ before, d_candidate.flatten(0, 1).t() @ z.flatten(0, 1)))
        d_projected = torch.cat((d_gates, d_candidate), 2).to(tape.dtype)
        memory.give(d_gates, d_candidate)
        if ctx.owns and not torch._C._autograd._get_current_graph_task_keep_graph():
            memory.give(tape, z)
        return None, d_projected, None, None, None, d_h.to(tape.dtype) + d_kept, d_weight.to(tape.dtype)


def replay(projected: Tensor, h: Tensor, weight: Tensor) -> Tensors:
    """What `Unrolled` gives, by functions that autograd follows."""
    sizes = [2 * h.shape[1], h.shape[1]]
    gates, candidate = weight.split(sizes)
    hidden = []
    for share in projected.unbind():
        x_gates, x_candidate = share.split(sizes, 1)
        _r, u, z = reset(h @ gates.t(), x_gates, h)
        _g, h = renew(z @ candidate.t(), x_candidate, u, h, copies=1)
        hidden.append(h)
    return torch.stack(hidden), h
