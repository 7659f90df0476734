"""The pointwise halves of a Nested LSTM step, forward and backward: pure functions of tensors [B, H].

Pre-activations come as one row of blocks [i | f | g | o]. A level k has the memory c_k, outermost first.
"""

from torch import Tensor

Tensors = tuple[Tensor, ...]


def gates_of(product: Tensor, addend: Tensor, tanh: bool) -> Tensors:
    """i, f, g, o of one level: equations 1, 2, 4 (tanh, or the identity of section 4) and 5."""
    i, f, g, o = (product + addend).chunk(4, 1)
    return i.sigmoid(), f.sigmoid(), g.tanh() if tanh else g, o.sigmoid()


def enter(product: Tensor, addend: Tensor, memory: Tensor, *, tanh: bool) -> Tensors:
    """The way in, one level: its gates, and the x~ = i * g and h~ = f * c of equations 8 and 7 for the next level."""
    i, f, g, o = gates_of(product, addend, tanh)
    return i, f, g, o, i * g, f * memory


def leave(product: Tensor, addend: Tensor, memory: Tensor, *outer: Tensor, tanh: bool, copies: int) -> Tensors:
    """The innermost level and the way out; `outer` are the o of the other levels, outermost first.

    Gives the innermost i, f, g, o, then each level's memory, innermost first, and `copies` of h (one that users see,
    and one in the type of the next product).
    """
    i, f, g, o = gates_of(product, addend, tanh)
    memory = f * memory + i * g  # equations 9, 12
    out: list[Tensor] = []
    for emit in (o, *reversed(outer)):
        out.append(memory)
        memory = emit * memory.tanh()  # equations 14, 15, 6
    return i, f, g, o, *out, *[memory] * copies


def leave_backward(d_product: Tensor, d_hidden: Tensor, memory: Tensor, *rest: Tensor, tanh: bool) -> Tensors:
    """Backward of `leave`, where h received `d_product` from the next step and `d_hidden` from outside.

    `rest` holds the innermost i, f, g, and then, outermost level first, o, c, and the gradient of c that the next step
    sent. Gives the innermost blocks of i, f, g, the gradient of the innermost `memory` of the step before, and the
    block of each level's o, outermost first.
    """
    i, f, g, *levels = rest
    gradient, d_outputs = d_product + d_hidden, []
    for o, new, d_memory in zip(levels[::3], levels[1::3], levels[2::3], strict=True):
        squashed = new.tanh()  # cheaper to compute again than to keep
        d_outputs.append(gradient * squashed * o * (1 - o))
        gradient = d_memory + gradient * o * (1 - squashed * squashed)
    return *_gates_backward(gradient, gradient, memory, i, f, g, tanh), gradient * f, *d_outputs


def enter_backward(d_z: Tensor, memory: Tensor, i: Tensor, f: Tensor, g: Tensor, *, tanh: bool) -> Tensors:
    """Backward of `enter`, without o: the blocks of i, f, g, and the gradient of `memory`, the step before's."""
    d_x, d_h = d_z.to(memory.dtype).chunk(2, 1)
    return *_gates_backward(d_x, d_h, memory, i, f, g, tanh), d_h * f


def _gates_backward(d_x: Tensor, d_h: Tensor, memory: Tensor, i: Tensor, f: Tensor, g: Tensor, tanh: bool) -> Tensors:
    """The blocks of i, f, g, given the gradients of i * g and of f * memory."""
    d_g = d_x * i
    return d_x * g * i * (1 - i), d_h * memory * f * (1 - f), d_g * (1 - g * g) if tanh else d_g
