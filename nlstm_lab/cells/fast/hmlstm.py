"""The HM-LSTM, all layers over all steps, by one autograd function with a derived backward.

A layer's step is one product, of h of the layer, z h of the layer below and z h of the layer above side by side, and
one run of pointwise functions; each weight's gradient is one product over many steps.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nlstm_lab.cells.base import State
from nlstm_lab.cells.fast import (
    backward_is_watched,
    compiling,
    differentiate,
    is_uniform,
    memory,
    saves_plainly,
    sparse,
)
from nlstm_lab.cells.fast.hmlstm_pointwise import Kind, Named, Tensors, act, act_backward
from nlstm_lab.cells.fast.hmlstm_tape import Backward, Columns, Options, Tape
from nlstm_lab.cells.fast.nested import UNSAVED_STEPS
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell
from nlstm_lab.cells.precision import exact_products, product_type, times


def read(
    unit: HMLSTM, x: Tensor, states: list[State], boundaries: bool
) -> tuple[Tensor, list[State], Tensor | None, Tensor | None] | None:
    """All layers over all steps, x [T, B, features] or symbols [T, B]: `nlstm_lab.cells.fast.read`.

    None for cells of another class, dropout, several types or devices, and where a hook takes what is saved.
    """
    if not boundaries and (done := sparse.read(unit, x, states)) is not None:
        return *done, None, None
    cells = [cell for cell in unit.cells if type(cell) is HMLSTMCell]
    if len(cells) < unit.num_layers or (unit.dropout and unit.training) or not x.numel():
        return None
    tensors = [tensor for state in states for tensor in state] + [t for cell in cells for t in cell.parameters()]
    if not is_uniform((*tensors, cells[0].slope), x):
        return None
    keep = torch.is_grad_enabled()
    if keep and not saves_plainly():
        return None
    kinds = tuple(_kind(cell, k == 0) for k, cell in enumerate(cells))
    options = Options(kinds, unit.all_layers, product_type(states[0][0]), compiling.wanted(x.device), keep)
    pieces = []
    for piece in [x] if keep else x.split(UNSAVED_STEPS):
        given = [part for cell in cells for part in _parameters(cell)]
        first = [part for state in states for part in state]
        oracle = Oracle(unit)
        own = piece, *oracle.state_dict(keep_vars=True).values()
        output, *found = Unrolled.apply(options, oracle, cells[0].project(piece), *first, *given, *own)  # type: ignore[no-untyped-call]
        states = [tuple(found[3 * k : 3 * k + 3]) for k in range(len(cells))]
        pieces.append((output, *found[-2:]))
    output, z, z_tilde = pieces[0] if len(pieces) == 1 else map(torch.cat, zip(*pieces, strict=True))
    return output, states, z, z_tilde


def _kind(cell: HMLSTMCell, bottom: bool) -> Kind:
    return Kind(
        bottom=bottom,
        top=cell.top,
        top_down=cell.weight_th is not None,
        hard=cell.selection == "hard",
        sample=cell.boundary == "sample",
        soft=cell.boundary == "soft",
        identity=cell.straight_through == "identity" and cell.boundary != "soft",
        hidden=cell.detect_from == "hidden",
        detect_on_copy=cell.detect_on_copy,
        reset=cell.reset,
        threshold=cell.threshold,
        limit=cell.gradient_limit,
        bias=cell.bias is not None,
        epsilon=None if cell.norm is None else cell.norm.eps,
        epsilon_c=None if cell.norm_c is None else cell.norm_c.eps,
    )


def _parameters(cell: HMLSTMCell) -> tuple[Tensor | None, ...]:
    """By `NAMES`: one matrix for h of the layer itself, of the layer below and of the layer above, and the rest."""
    below = [cell.weight_ih] if not cell.takes_input else []
    above = [cell.weight_th] if cell.weight_th is not None else []
    norms = None if cell.norm is None else cell.norm.weight
    norm_c = (None, None) if cell.norm_c is None else (cell.norm_c.weight, cell.norm_c.bias)
    return torch.cat((cell.weight_hh, *below, *above), 1), cell.bias, norms, *norm_c, cell.weight_z, cell.slope


class Oracle(nn.Module):
    """The readable step, layer by layer, with boundaries [T, B, L - 1] where they were found: what `Unrolled` gives."""

    def __init__(self, unit: HMLSTM) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, x: Tensor, first: Sequence[Tensor], boundaries: Tensor) -> Tensors:
        states: list[State] = list(zip(first[::3], first[1::3], first[2::3], strict=True))
        output, last, z, z_tilde = self.unit.detect(x, states, boundaries)
        return output, *itertools.chain(*last), z, z_tilde


class Unrolled(torch.autograd.Function):
    """All steps: the output, each layer's last h, c and z, and z and z~ of every layer and step [T, L, B].

    Given the input's share of the lowest pre-activations [T, B, 4H (+1)], then h, c and z of each layer before the
    first step, then the parameters of each (`NAMES`). The input and what the unit itself holds follow; they are there
    for the oracle alone, which serves where the backward is itself differentiated or vectorized.
    """

    @staticmethod
    def forward(ctx: Any, options: Options, oracle: Oracle, projected: Tensor, *tensors: Tensor | None) -> Tensors:
        kinds, dtype, xs = options.kinds, options.dtype, projected.contiguous()
        layers = options.layers(tensors)
        T, B = xs.shape[:2]
        output, hidden, first = _hidden(xs, layers[0]["h"].shape[1], options)
        tapes = []
        for kind, layer, h, h_0 in zip(kinds, layers, hidden, first, strict=True):
            widths = layer["weight"].shape[1], layer["gamma"].shape[0] if "gamma" in layer else 0
            tapes.append(Tape.empty(kind, T, h_0, widths, dtype))
            tapes[-1].see(h)
            tapes[-1].start(layer["h"], layer["c"], layer["z"])
        for lower, upper in itertools.pairwise(tapes):
            if lower.kind.top_down:
                lower.section("above")[0] = upper.h[0] * lower.scalars[0, 0]
        # as `torch.bernoulli` draws, step by step and layer by layer
        draws: Any = {"dtype": xs.dtype, "device": xs.device}
        chance = torch.rand(T, len(kinds) - 1, B, **draws) if kinds[0].sample else None
        run = compiling.Runners(options.compile)
        steps = [_forward_steps(k, tapes, layers, xs, chance) for k in range(len(kinds))]
        maps = [times(layer["weight"].t(), dtype, B) for layer in layers]
        factors = [tape.factors.unbind() for tape in tapes]
        with exact_products(xs.device):
            for t in range(T):
                for k, one in enumerate(steps):
                    gives, takes = next(one.rows)
                    inputs = maps[k](factors[k][t]), *takes
                    run(act, k, gives, inputs, takes=one.takes, gives=one.gives, kind=one.kind)
        last = [part.clone() for tape in tapes for part in (tape.h[T], tape.c[T], tape.scalars[T, 0, :, 0])]
        z = torch.stack([tape.scalars[1:, 0, :, 0] for tape in tapes], 1)
        z_tilde = torch.stack([tape.scalars[:T, 2, :, 0] for tape in tapes], 1)
        if options.keep:
            ctx.options, ctx.oracle, ctx.tapes = options, oracle, tapes
            ctx.save_for_backward(chance, *tensors)
        else:
            for tape in tapes:
                tape.give()
        # detached: the tapes keep `output` itself, which would own this function, and so the tapes, for ever
        return output.detach(), *last, z, z_tilde

    @staticmethod
    def backward(ctx: Any, d_output: Tensor, *grads: Tensor) -> tuple[Tensor | None, ...]:
        options, tapes = ctx.options, ctx.tapes
        chance, *tensors = ctx.saved_tensors
        if backward_is_watched((d_output, *grads)):
            return _differentiated(ctx.oracle, tapes, tensors, (d_output, *grads))
        layers, count = options.layers(tensors), len(tapes)
        work = [
            Backward(tape, layer, grads[3 * k : 3 * k + 3], k == 0, options)
            for k, (tape, layer) in enumerate(zip(tapes, layers, strict=True))
        ]
        d_outputs = _d_outputs(d_output, tapes, options)
        run = compiling.Runners(options.compile)
        steps = [_backward_steps(k, work, d_outputs[k], grads[-2:], chance) for k in range(count)]
        with exact_products(d_output.device):
            for t in reversed(range(tapes[0].T)):
                for k in reversed(range(count)):
                    one = steps[k]
                    gives, takes = next(one.rows)
                    run(act_backward, k, gives, takes, takes=one.takes, gives=one.gives, kind=one.kind)
                    work[k].step(t)
        first = [part for k in range(count) for part in work[k].first(work[k - 1] if k else None, tapes[k + 1 :])]
        parameters = [part for one in work for part in one.parameters()]
        d_projected = work[0].d_summed.to(d_output.dtype)
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            for tape in tapes:
                tape.give()
        memory.give(*(layer.d_summed for layer in work[1:]))
        return None, None, d_projected, *first, *parameters, *[None] * (len(tensors) - len(first) - len(parameters))


def _differentiated(
    oracle: Oracle, tapes: list[Tape], tensors: Sequence[Any], grads: Tensors
) -> tuple[Tensor | None, ...]:
    """The gradients by functions that autograd follows: of the first states, the input and what the unit holds."""
    count, names = 3 * len(tapes), list(oracle.state_dict())
    first, given, (x, *own) = tensors[:count], tensors[count : -len(names) - 1], tensors[-len(names) - 1 :]
    z = torch.stack([tape.scalars[1:, 0, :, 0] for tape in tapes[:-1]] or [tapes[0].scalars[1:, 0, :, 0]], 2)
    with torch.enable_grad():
        outputs = functional_call(oracle, dict(zip(names, own, strict=True)), (x, first, z))
    found = differentiate(outputs, [*first, x, *own], grads)
    return None, None, None, *found[:count], *[None] * len(given), *found[count:]


def _hidden(like: Tensor, size: int, options: Options) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor]]:
    """The output, and h of each layer at every step [T, B, size] and before, laid out alike."""
    (T, B), count = like.shape[:2], len(options.kinds)
    if options.all_layers:
        output = like.new_empty(T, B, count * size)
        return output, output.split(size, 2), like.new_empty(B, count * size).split(size, 1)
    hidden = [like.new_empty(T, B, size) for _ in range(count)]
    return hidden[-1], hidden, [like.new_empty(B, size) for _ in range(count)]


def _d_outputs(d_output: Tensor, tapes: list[Tape], options: Options) -> list[Tensors]:
    """The output's gradient of every layer and step: zero for a layer that is not in it."""
    size, T = tapes[0].size, tapes[0].T
    if options.all_layers:
        return [part.unbind() for part in d_output.contiguous().split(size, 2)]
    none = torch.zeros_like(d_output[0], memory_format=torch.contiguous_format)
    return [(none,) * T] * (len(tapes) - 1) + [d_output.contiguous().unbind()]


class Steps(NamedTuple):
    """One layer's steps: the names of what its function takes and gives, and both step by step."""

    kind: Kind
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    rows: Iterator[tuple[Tensors, Tensors]]


def _forward_steps(k: int, tapes: list[Tape], layers: list[Named], xs: Tensor, chance: Tensor | None) -> Steps:
    tape, kind, T = tapes[k], tapes[k].kind, tapes[k].T
    takes: Columns = {name: [part] * T for name, part in layers[k].items() if name not in ("h", "c", "z", "weight")}
    takes |= {name: tape.saved[name] for name in ("h", "c", "flush")}
    takes |= {"projected": xs.unbind()} if kind.bottom else {"below": tapes[k - 1].saved["z"]}
    if chance is not None and not kind.top:
        takes["chance"] = chance[:, k, :, None].unbind()
    gives = {name: tape.saved[name] for name in GIVEN if name in tape.saved}
    gives |= {"h": tape.saved["h_new"], "c": tape.saved["c_new"], "own": tape.section("own")[1:].unbind()}
    if k and tapes[k - 1].kind.top_down:
        gives["downward"] = tapes[k - 1].section("above")[1:].unbind()
    if not kind.top:
        gives["upward"] = tapes[k + 1].section("below")[:-1].unbind()
    rows = zip(zip(*gives.values(), strict=True), zip(*takes.values(), strict=True), strict=True)
    return Steps(kind, ("product", *takes), tuple(gives), rows)


GIVEN = ("i", "f", "g", "o", "normed", "scale", "score", "z_tilde", "z")  # by a step, as its tape names them


def _backward_steps(
    k: int, work: list[Backward], d_output: Tensors, grads: Sequence[Tensor], chance: Tensor | None
) -> Steps:
    """Last step first."""
    one, kind, T = work[k], work[k].tape.kind, work[k].tape.T
    takes: Columns = one.takes() | {"d_output": d_output}
    if k:
        lower = work[k - 1]
        takes["below"] = lower.tape.saved["z"]
        if lower.tape.kind.top_down:
            takes["d_downward"] = lower.part("above")
    if not kind.top:
        upper = work[k + 1]
        takes |= {"d_upward": upper.part("below", 0), "d_below": [upper.d_under] * T}
        takes |= {name: grad[:, k, :, None].unbind() for name, grad in zip(("d_z", "d_detected"), grads, strict=True)}
        if kind.top_down:
            takes |= {"d_above": one.part("above"), "h_above": upper.tape.saved["h_new"]}
        if chance is not None:
            takes["chance"] = chance[:, k, :, None].unbind()
    gives = one.gives()
    rows = [*zip(zip(*gives.values(), strict=True), zip(*takes.values(), strict=True), strict=True)]
    return Steps(kind, tuple(takes), tuple(gives), reversed(rows))
