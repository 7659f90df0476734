"""The Nested LSTM of any depth (depth 1 is the LSTM), unrolled by one autograd function with a derived backward.

The time loops keep only what a step must wait for; each weight's gradient is one product over all steps.
"""

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.base import State, look_up, product
from nlstm_lab.cells.fast import (
    backward_is_watched,
    compiling,
    differentiate,
    memory,
    saves_plainly,
)
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTMCell
from nlstm_lab.cells.precision import exact_kernels, exact_products, product_type, times

# On a GPU torch advises the caller, who is always one of our modules, to lay out the weights as those of its own. They
# are a cell's, each in its place; the results are the same, and no user could act upon it.
warnings.filterwarnings("ignore", "RNN module weights are not part of", UserWarning, r"nlstm_lab\.cells\.fast\.")

Tensors = tuple[Tensor, ...]

LARGEST_ONE_HOT = 100  # beyond, the look-up that only our own loop has saves more than the kernel does
UNSAVED_STEPS = 64  # without gradients, the steps whose gates are held at a time
WEIGHED_STEPS = 25  # in the backward, those whose deeper gradients are held until their product with the input is taken


# -- the pointwise halves of a step, forward and backward: pure functions of tensors [B, H]. Pre-activations come as one
# row of blocks [i | f | g | o]. A level k has the memory c_k, outermost first.


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


# -- the affine maps between them, and all steps


class Level(NamedTuple):
    """One affine map of the nest, rows [i | f | g | o], and its candidate; x_t's share comes apart, for all steps."""

    weight: Tensor
    bias: Tensor | None
    tanh: bool


def levels(cell: Any) -> list[Level] | None:
    """The maps of a cell, outermost first, or None when another memory function is nested somewhere."""
    chain: list[Level] = []
    while type(cell) in (LSTMCell, NestedLSTMCell):
        plain = type(cell) is LSTMCell
        tanh = plain or cell.candidate == "tanh"
        inner = chain and Level(torch.cat((cell.weight_ih, cell.weight_hh), 1), cell.bias, tanh)
        chain.append(inner or Level(cell.weight_hh, None, tanh))
        if plain:
            return chain
        cell = cell.memory
    return chain if type(cell) is Addition else None


def unroll(cell: NestedLSTMCell | LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """A layer of Nested LSTM cells over all steps: `nlstm_lab.cells.fast.unroll`."""
    chain = levels(cell)
    if chain is None:
        return None
    keep = torch.is_grad_enabled()
    tanh = tuple(level.tanh for level in chain)
    options = Options(tanh, product_type(state[0]), compiling.wanted(x.device), keep)
    tensors = [tensor for level in chain for tensor in (level.weight, level.bias)]
    looked_up = not x.is_floating_point() and x.numel() >= cell.input_size  # fewer symbols cost less one by one
    table = _table(cell.weight_ih, cell.bias) if looked_up else None
    pieces = []
    for piece in [x] if keep else torch.split(x, UNSAVED_STEPS):
        source = _share(cell, piece, options.dtype) if table is None else table
        from_input = source, piece, cell.weight_ih, cell.bias
        outputs = Unrolled.apply(options, *from_input, *state, *tensors)  # type: ignore[no-untyped-call]
        hidden, *state = outputs
        pieces.append(hidden)
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces), tuple(state)


def unroll_lstm(cell: LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """An LSTM layer over all steps; the kernel has no fp64, and its bf16 keeps the cell state in bf16."""
    symbols = not x.is_floating_point()
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


def _share(cell: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
    """`cell.project(x)`, a product of factors of type `dtype`."""
    if x.dtype == dtype or not x.is_floating_point():
        return cell.project(x)  # type: ignore[no-any-return]
    share = product(x.to(dtype), cell.weight_ih.to(dtype)).to(x.dtype)
    return share if cell.bias is None else share + cell.bias


def _table(weight_ih: Tensor, bias: Tensor | None) -> Tensor:
    """What each symbol adds to the outermost pre-activations, [size, 4H]."""
    table = weight_ih.t().contiguous()
    return table if bias is None else table + bias


class Options(NamedTuple):
    """Each level's candidate (tanh, or the identity), the type of the products' factors, and two choices."""

    tanh: tuple[bool, ...]
    dtype: torch.dtype
    compile: bool
    keep: bool  # for the backward


class Unrolled(torch.autograd.Function):
    """All steps of a nest: h of all steps, and the last state, from x's share of the outermost pre-activations.

    That share is the source [T, B, 4H] or, with symbols [T, B], their rows of the source [size, 4H]. It comes from x,
    weight_ih and bias, which are there for `replay` alone and get their gradients through the source. The tensors that
    follow are h_0 and each memory [B, H], outermost first; then weight and bias of each level. Everything but the
    products' factors stays in the type of the source. What the backward needs is saved where hooks see it.
    """

    @staticmethod
    def forward(
        ctx: Any, options: Options, source: Tensor, x: Tensor, weight_ih: Tensor, bias: Tensor | None, *tensors: Tensor
    ) -> State:
        symbols = x if source.dim() == 2 else None
        depth, dtype = len(options.tanh), options.dtype
        first = [state.contiguous() for state in tensors[: depth + 1]]
        weights, biases = tensors[depth + 1 :: 2], tensors[depth + 2 :: 2]
        source = source.contiguous()
        T, B = source.shape[:2] if symbols is None else symbols.shape
        rows = source.shape[-1]
        H = rows // 4
        looked_up = source.new_empty(0 if symbols is None else B, rows)
        hidden = source.new_empty(T, B, H)
        fed = hidden if dtype == source.dtype else hidden.new_empty(T, B, H, dtype=dtype)  # h as a factor
        tape = memory.take(source, T, depth, 5, B, H)  # of each level i, f, g, o and c
        z = memory.take(source, depth - 1, T, B, 2 * H, dtype=dtype)
        maps = [times(weight.t(), dtype, B) for weight in weights]
        addends = [source.new_zeros(rows) if bias is None else bias for bias in biases]
        run = compiling.Runners(options.compile)
        h, last = first[0].to(dtype), first[1:]
        with exact_products(source.device):
            for t in range(T):
                saved = [level.unbind() for level in tape[t].unbind()]
                addends[0] = source[t] if symbols is None else look_up(source, symbols[t], out=looked_up)
                product = maps[0](h)
                for k, inside in enumerate(z[:, t].unbind()):
                    buffers = [*saved[k][:4], *inside.chunk(2, 1)]
                    run(enter, k, buffers, [product, addends[k], last[k]], tanh=options.tanh[k])
                    product = maps[k + 1](inside)
                emitted = [hidden[t]] if fed is hidden else [hidden[t], fed[t]]
                buffers = [*saved[-1][:4], *(level[4] for level in reversed(saved)), *emitted]
                inputs = [product, addends[-1], last[-1], *(level[3] for level in saved[:-1])]
                run(leave, -1, buffers, inputs, tanh=options.tanh[-1], copies=len(emitted))
                h, last = fed[t], [level[4] for level in saved]
        last = [c.clone() for c in last]
        if options.keep:
            ctx.options, ctx.rows, ctx.owns = options, source.shape[:-1], saves_plainly()
            ctx.save_for_backward(x, weight_ih, bias, fed, tape, z, *first, *weights, *biases)
        else:
            memory.give(tape, z)
        return hidden, hidden[-1].clone(), *last

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight_ih, bias, fed, tape, z, *first = ctx.saved_tensors
        tanh, dtype, compile, _ = ctx.options
        if backward_is_watched(grads):
            with torch.enable_grad():
                table = len(ctx.rows) == 1
                source = _table(weight_ih, bias) if table else product(x, weight_ih, bias)
                outputs = replay(tanh, look_up(source, x) if table else source, first)
            d_source, *d_first = differentiate(outputs, [source, *first], grads)
            inner = len(tanh) + 1
            d_tensors = [d_first[k + at] for k in range(inner, inner + len(tanh)) for at in (0, len(tanh))]
            return None, d_source, None, None, None, *d_first[:inner], *d_tensors
        T, depth, _, B, H = tape.shape
        maps = [times(weight, dtype, B) for weight in first[depth + 1 : 2 * depth + 1]]
        d_hidden, d_h = grads[0].contiguous(), grads[1].to(dtype).clone(memory_format=torch.contiguous_format)
        d_now = [grad.clone(memory_format=torch.contiguous_format) for grad in grads[2:]]
        d_next = [torch.empty_like(d) for d in d_now]
        steps = min(T, WEIGHED_STEPS)
        held = [memory.take(tape, T if k == 0 else steps, B, 4 * H, dtype=dtype) for k in range(depth)]
        blocks = [d.view(-1, B, 4, H) for d in held]
        deeper = range(1, depth)
        d_weights = {k: tape.new_zeros(first[depth + 1 + k].shape) for k in deeper}
        d_biases = {k: tape.new_zeros(4 * H) for k in deeper if ctx.needs_input_grad[7 + depth + 2 * k]}
        run = compiling.Runners(compile)
        with exact_products(tape.device):
            for t in reversed(range(T)):
                place = [t, *[t % steps] * (depth - 1)]
                saved = [level.unbind() for level in tape[t].unbind()]
                last = tape[t - 1, :, 4].unbind() if t else first[1 : depth + 1]
                d = [level[at].unbind(1) for level, at in zip(blocks, place, strict=True)]
                buffers = [*d[-1][:3], d_next[-1], *(level[3] for level in d)]
                levels = [s for k in range(depth) for s in (saved[k][3], saved[k][4], d_now[k])]
                inputs = [d_h, d_hidden[t], last[-1], *saved[-1][:3], *levels]
                run(leave_backward, -1, buffers, inputs, tanh=tanh[-1])
                for k in reversed(range(depth - 1)):
                    d_z = maps[k + 1](held[k + 1][t % steps])
                    inputs = [d_z, last[k], *saved[k][:3]]
                    run(enter_backward, k, [*d[k][:3], d_next[k]], inputs, tanh=tanh[k])
                d_h = maps[0](held[0][t])
                d_now, d_next = d_next, d_now
                if t % steps == 0:
                    end = min(t + steps, T)
                    for k in deeper:
                        add_product(d_weights[k], held[k][: end - t], z[k - 1, t:end])
                    for k, d_bias in d_biases.items():
                        d_bias += held[k][: end - t].sum((0, 1), dtype=tape.dtype)
            d_weight = tape.new_zeros(first[depth + 1].shape)
            add_product(d_weight, held[0][1:], fed[:-1])
            add_product(d_weight, held[0][:1], first[0][None].to(dtype))
        d_tensors = [d_weight, None]  # the source brings the outermost bias
        for k in deeper:
            d_tensors += [d_weights[k], d_biases.get(k)]
        d_source = d_projected = held[0].to(tape.dtype)
        if len(ctx.rows) == 1:
            d_source = torch.ops.aten.embedding_dense_backward(d_projected, x, *ctx.rows, -1, False)
        memory.give(*(d for d in held if d is not d_source))
        if ctx.owns and not torch._C._autograd._get_current_graph_task_keep_graph():
            memory.give(tape, z)
        return None, d_source, None, None, None, d_h.to(tape.dtype), *d_now, *d_tensors


def replay(tanh: tuple[bool, ...], source: Tensor, tensors: list[Any]) -> State:
    """What `Unrolled` gives, by functions that autograd follows; source [T, B, 4H], tensors as it saves them."""
    depth = len(tanh)
    h, *memories = tensors[: depth + 1]
    weights = tensors[depth + 1 : 2 * depth + 1]
    biases = [source.new_zeros(()) if bias is None else bias for bias in tensors[2 * depth + 1 :]]
    hidden = []
    for share in source.unbind():
        outer, gates, addend = [], h @ weights[0].t(), share
        for k in range(depth - 1):
            *_, o, x_tilde, h_tilde = enter(gates, addend, memories[k], tanh=tanh[k])
            outer.append(o)
            gates, addend = torch.cat((x_tilde, h_tilde), 1) @ weights[k + 1].t(), biases[k + 1]
        left = leave(gates, addend, memories[-1], *outer, tanh=tanh[-1], copies=1)
        *memories, h = *left[-2:3:-1], left[-1]
        hidden.append(h)
    return torch.stack(hidden), h, *memories


def add_product(d_weight: Tensor, d_gates: Tensor, inputs: Tensor) -> None:
    """Add a weight's gradient [4H, columns] over some steps, from [T, B, 4H] and [T, B, columns]."""
    gradient = memory.take(inputs, *d_weight.shape)
    torch.mm(d_gates.flatten(0, 1).t(), inputs.flatten(0, 1), out=gradient)
    d_weight += gradient
    memory.give(gradient)
