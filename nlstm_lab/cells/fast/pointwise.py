"""The pointwise halves of a Nested LSTM step, forward and backward, written into given buffers.

Gates lie in one row [i | f | g | o]. A level d of the nest has the memory c_d; the innermost memory function is an
LSTM's. Level 0 emits h_t, and a deeper level d emits c_{d-1} (equation 15). The backward halves turn the gradient of
what a half wrote into the gradient of the gates' pre-activations, from the saved values of the gates.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def squash_gates(product: Tensor, addend: Tensor, gates: Tensor, tanh: bool) -> None:
    """Equations 1, 2, 4 (or the identity) and 5 of one level: sigmoid on i, f, o, and tanh on g where asked."""
    torch.add(product, addend, out=gates)
    size = gates.shape[1] // 4
    gates[:, : 2 * size].sigmoid_()
    gates[:, 3 * size :].sigmoid_()
    if tanh:
        gates[:, 2 * size : 3 * size].tanh_()


def enter(product: Tensor, addend: Tensor, memory: Tensor, gates: Tensor, z: Tensor, tanh: bool) -> None:
    """A level's gates, and what it hands to the level inside it: z = [x~ | h~] = [i * g | f * c], equations 7, 8."""
    squash_gates(product, addend, gates, tanh)
    i, f, g, _ = gates.chunk(4, 1)
    x_tilde, h_tilde = z.chunk(2, 1)
    torch.mul(i, g, out=x_tilde)
    torch.mul(f, memory, out=h_tilde)


def leave(
    product: Tensor,
    addend: Tensor,
    memory: Tensor,
    gates: Sequence[Tensor],
    memories: Sequence[Tensor],
    squashed: Sequence[Tensor],
    hidden: Tensor,
    tanh: bool,
) -> None:
    """The innermost level, and the way out: c_{d-1} = o_d * tanh(c_d) and h = o_0 * tanh(c_0), equations 14, 15, 6.

    `gates`, `memories` and `squashed` = tanh(memories) hold one tensor a level, outermost first.
    """
    squash_gates(product, addend, gates[-1], tanh)
    i, f, g, _ = gates[-1].chunk(4, 1)
    torch.mul(f, memory, out=memories[-1])
    memories[-1].addcmul_(i, g)
    for level in reversed(range(len(gates))):
        torch.tanh(memories[level], out=squashed[level])
        emitted = memories[level - 1] if level else hidden
        torch.mul(gates[level].chunk(4, 1)[3], squashed[level], out=emitted)


def leave_backward(
    d_hidden: Tensor,
    d_memories: Sequence[Tensor],
    memory: Tensor,
    gates: Sequence[Tensor],
    squashed: Sequence[Tensor],
    d_gates: Sequence[Tensor],
    tanh: bool,
) -> None:
    """Backward of `leave`: fills the o blocks of `d_gates`, and all of the innermost one.

    `d_memories` come in as the gradients that reach each memory from the next step; the outer ones go out complete,
    the innermost as the gradient that the last step's memory receives.
    """
    emitted, spare = d_hidden, torch.empty_like(d_hidden)
    for level, d_memory in enumerate(d_memories):
        o = gates[level].chunk(4, 1)[3]
        torch.mul(emitted, squashed[level], out=spare)
        _sigmoid_backward(spare, o, grad_input=d_gates[level].chunk(4, 1)[3])
        torch.mul(emitted, o, out=spare)
        _tanh_backward(spare, squashed[level], grad_input=spare)
        d_memory += spare
        emitted = d_memory
    _gates_backward(emitted, emitted, memory, gates[-1], d_gates[-1], tanh)
    emitted *= gates[-1].chunk(4, 1)[1]


def enter_backward(
    d_z: Tensor, memory: Tensor, gates: Tensor, d_gates: Tensor, d_memory: Tensor, tanh: bool
) -> None:
    """Backward of `enter`: fills the i, f, g blocks of `d_gates`, and the gradient of the last step's memory."""
    d_x, d_h = d_z.chunk(2, 1)
    _gates_backward(d_x, d_h, memory, gates, d_gates, tanh)
    torch.mul(d_h, gates.chunk(4, 1)[1], out=d_memory)


def _gates_backward(
    d_x: Tensor, d_h: Tensor, memory: Tensor, gates: Tensor, d_gates: Tensor, tanh: bool
) -> None:
    """Gradients of the pre-activations of i, f, g, from those of x~ = i * g and h~ = f * memory."""
    i, f, g, _ = gates.chunk(4, 1)
    d_i, d_f, d_g, _ = d_gates.chunk(4, 1)
    spare = torch.empty_like(memory)
    _sigmoid_backward(torch.mul(d_x, g, out=spare), i, grad_input=d_i)
    _sigmoid_backward(torch.mul(d_h, memory, out=spare), f, grad_input=d_f)
    if tanh:
        _tanh_backward(torch.mul(d_x, i, out=spare), g, grad_input=d_g)
    else:
        torch.mul(d_x, i, out=d_g)
