"""One unroll for every layer that is faster than its readable steps.

A step is a row of stages. Each multiplies a factor, some values side by side, with its weight, and hands the product to
a pure function of tensors [B, ...]; values go by name from stage to stage and, where they are carried, from step to
step. The loops keep only what a step must wait for: the input's share comes ready for all steps, a weight's gradient is
one product over all of them, and that of a function is autograd's of the one call, compiled where that is wanted.
"""

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.fast import Function, compiles, is_transformed, product_type, runner

Tensors = tuple[Tensor, ...]
UNSAVED_STEPS = 64  # without gradients, the steps whose values are held at a time
EAGER_FROM = 10_000  # values of a layer's h [B, H] from which on an uncompiled training beats the readable steps


class Stage(NamedTuple):
    """A product, and what a pure function makes of it: `function(kind, product, *takes)` returns what `gives` names."""

    function: Function
    kind: Hashable
    factor: tuple[str, ...]
    takes: tuple[str, ...]
    gives: dict[str, int]  # names and widths, [B, width]


class Schedule(NamedTuple):
    """A layer, or layers that step together, and how to compute them."""

    stages: tuple[Stage, ...]
    carried: tuple[str, ...]  # values that a step takes from the one before
    outputs: tuple[str, ...]  # values that are returned of every step
    trained: tuple[str, ...]  # parameters that every step takes
    constants: tuple[str, ...]  # what has no gradient, [T, ...]
    project: Callable[..., Tensor]  # what makes the input's share
    read: int  # of how many tensors
    dtype: torch.dtype  # of the products' factors
    compile: bool
    keep: bool  # for the backward

    def parts(self, tensors: Sequence[Tensor]) -> list[dict[Any, Tensor]]:
        """What the share is made of, first values, weights, parameters and constants, by name; the rest unnamed."""
        rest = iter(tensors)
        groups = (range(self.read), self.carried, range(len(self.stages)), self.trained, self.constants)
        return [*({name: next(rest) for name in group} for group in groups), dict(enumerate(rest))]

    def is_before(self, s: int, name: str) -> bool:
        """Whether stage `s` sees a value as the step before has left it."""
        return name in self.carried and any(name in stage.gives for stage in self.stages[s:])

    def widths(self) -> dict[str, int]:
        """How wide each value is."""
        return {name: width for stage in self.stages for name, width in stage.gives.items()}

    def kept(self) -> list[str]:
        """The values that are kept beside their places in factors."""
        wanted = {*self.carried, *self.outputs, *(name for stage in self.stages for name in stage.takes)}
        return [name for name in self.widths() if name in wanted]


def pays(h: Tensor) -> bool:
    """Whether a training by an exact `Unrolled` is faster than the readable steps, given h [B, H]."""
    other = product_type(h) != h.dtype or compiles(h.device)
    return not torch.is_grad_enabled() or other or h.numel() >= EAGER_FROM


def unrolled(
    stages: Sequence[Stage],
    outputs: Sequence[str],
    first: dict[str, Tensor],
    weights: Sequence[Tensor],
    trained: dict[str, Tensor],
    x: Tensor,
    project: Callable[..., Tensor],
    source: Sequence[Tensor | None],
    constants: Sequence[str] = (),
    given: Callable[[Tensor], Sequence[Tensor]] = lambda share: (),
) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs of all steps, x [T, B, features] or symbols [T, B], and the last values of those that are carried.

    `first` are these before the first step. `project(x, *source)` is the input's share [T, B, rows] of what the first
    stage sees; `given` makes of that share the `constants`, which have no gradient.
    """
    like, names = next(iter(first.values())), (tuple(first), tuple(outputs), tuple(trained), tuple(constants))
    keep = torch.is_grad_enabled()
    plan = Schedule(tuple(stages), *names, project, 1 + len(source), product_type(like), compiles(like.device), keep)
    pieces, last = [], [*first.values()]
    for piece in [x] if keep else x.split(UNSAVED_STEPS):
        share = project(piece, *source)
        tensors = share, piece, *source, *last, *weights, *trained.values(), *given(share)
        found = Unrolled.apply(plan, *tensors)  # type: ignore[no-untyped-call]
        pieces.append(found[: len(outputs)])
        last = list(found[len(outputs) :])
    return [*pieces[0]] if len(pieces) == 1 else [*map(torch.cat, zip(*pieces, strict=True))], last


class Tape:
    """The values of all steps: place t of `values` is before step t, and T the last; `factors` are what stages see."""

    def __init__(self, plan: Schedule, buffers: Sequence[Tensor]) -> None:
        count = len(plan.stages)
        self.plan, self.T = plan, len(buffers[0])
        self.summed, self.factors = buffers[:count], buffers[count : 2 * count]
        self.values = dict(zip(plan.kept(), buffers[2 * count :], strict=True))
        self.sections = [self.split(s, factor) for s, factor in enumerate(self.factors)]

    def split(self, s: int, factor: Tensor) -> dict[str, Tensor]:
        """The parts of a factor of stage `s` [..., columns] by the names of their values."""
        names, widths = self.plan.stages[s].factor, self.plan.widths()
        return dict(zip(names, factor.split([widths[name] for name in names], -1), strict=True))

    def places(self, name: str) -> list[Tensor]:
        """Everywhere a step writes a value to, [T, B, width]."""
        found = [self.values[name][1:]] if name in self.values else []
        for s, sections in enumerate(self.sections):
            if name in sections:
                found.append(sections[name][1:] if self.plan.is_before(s, name) else sections[name][: self.T])
        return found

    def start(self, first: dict[str, Tensor]) -> None:
        """Write the values before the first step."""
        for name, value in first.items():
            self.values[name][0] = value
            for s, sections in enumerate(self.sections):
                if name in sections and self.plan.is_before(s, name):
                    sections[name][0] = value

    def takes(self, s: int, trained: dict[str, Tensor], constants: dict[str, Tensor]) -> list[Tensors]:
        """What the function of stage `s` takes at every step."""
        columns: list[Sequence[Tensor]] = []
        for name in self.plan.stages[s].takes:
            if name in trained:
                columns.append([trained[name]] * self.T)
            elif name in constants:
                columns.append(constants[name].unbind())
            else:
                seen = self.values[name][:-1] if self.plan.is_before(s, name) else self.values[name][1:]
                columns.append(seen.unbind())
        return list(zip(*columns, strict=True))


class Unrolled(torch.autograd.Function):
    """All steps of a plan, given the input's share of the first product, `source` [T, B, rows].

    It is not kept: what it is made of comes next, for `replay`; then first values, weights, parameters and constants.
    Returned are the outputs [T, B, width] and the last values. What the backward needs is saved where hooks see it.
    """

    @staticmethod
    def forward(ctx: Any, plan: Schedule, source: Tensor, *tensors: Tensor) -> Tensors:
        _, first, weights, trained, constants, _ = plan.parts(tensors)
        (T, B), widths = source.shape[:2], plan.widths()
        summed = [source.new_empty(T, B, len(weight)) for weight in weights.values()]
        factors = [source.new_empty(T + 1, B, weight.shape[1], dtype=plan.dtype) for weight in weights.values()]
        tape = Tape(plan, [*summed, *factors, *(source.new_empty(T + 1, B, widths[name]) for name in plan.kept())])
        tape.start(first)
        steps = []
        for s, stage in enumerate(plan.stages):
            into = [(k, place.unbind()) for k, name in enumerate(stage.gives) for place in tape.places(name)]
            rows = zip(summed[s].unbind(), *(place for _, place in into), strict=True)
            weight = weights[s].t().to(plan.dtype).contiguous()
            order = tuple(k for k, _ in into)
            run = runner(plan.compile, advance, function=stage.function, kind=stage.kind, order=order, shares=not s)
            steps.append((run, weight, factors[s].unbind(), list(rows), tape.takes(s, trained, constants)))
        shares = source.unbind()
        for t in range(T):
            for s, (run, weight, factor, places, takes) in enumerate(steps):
                share = () if s else (shares[t],)
                run(places[t], [factor[t] @ weight, *takes[t], *share])
        if plan.keep:
            ctx.plan = plan
            ctx.save_for_backward(*tensors, *summed, *factors, *tape.values.values())
        # copies: a user may write over them, and what is saved must not own this function
        outputs = [tape.values[name][1:].clone() for name in plan.outputs]
        return *outputs, *(tape.values[name][T].clone() for name in plan.carried)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        made_of, *parts, buffers = (plan := ctx.plan).parts(ctx.saved_tensors)
        batched = any(map(torch._C._functorch.is_legacy_batchedtensor, grads))  # by is_grads_batched=True
        if (create := torch.is_grad_enabled()) or batched or is_transformed():
            # a backward that is itself differentiated or vectorized cannot fill buffers
            with torch.enable_grad():
                # views: what a first state was made of is not this backward's, which may not follow it to a weight
                parts = [{name: tensor.view_as(tensor) for name, tensor in part.items()} for part in parts]
                source = plan.project(*made_of.values())
                pairs = zip(replay(plan, source, *parts), grads, strict=True)
            inputs = [source, *(tensor for part in parts for tensor in part.values())]
            outputs, watched = zip(*((output, grad) for output, grad in pairs if output.requires_grad), strict=True)
            needed = [tensor for tensor in inputs if tensor.requires_grad]
            gradients = iter(torch.autograd.grad(outputs, needed, watched, create_graph=create, allow_unused=True))
            d_source, *d_tensors = [next(gradients) if tensor.requires_grad else None for tensor in inputs]
            return None, d_source, *[None] * len(made_of), *d_tensors
        first, weights, trained, constants = parts
        tape = Tape(plan, list(buffers.values()))
        d_products = [torch.empty_like(summed, dtype=plan.dtype) for summed in tape.summed]
        totals = {name: torch.zeros_like(parameter) for name, parameter in trained.items()}
        outside = {name: grad.unbind() for name, grad in zip(plan.outputs, grads, strict=False)}
        steps = []
        d: dict[str, list[Tensor]] = {name: [] for name in plan.widths()}  # what each consumer of a value sends back
        for s, stage in reversed(list(enumerate(plan.stages))):
            weight, takes = weights[s].to(plan.dtype).contiguous(), tape.takes(s, trained, constants)
            named = [name for name in stage.takes if name not in constants]
            wanted = tuple(name in named for name in stage.takes)
            static = {"function": stage.function, "kind": stage.kind, "wanted": wanted}
            steps.append((s, stage, named, weight, tape.summed[s].unbind(), takes, d_products[s].unbind(), static))
            # as if one more step followed, laid out as what it would send: a compiled function knows one layout
            zeros = [*zip(stage.takes, map(torch.zeros_like, takes[0]), strict=True)]
            zeros += tape.split(s, torch.zeros_like(tape.factors[s][0])).items()
            for name, zero in zeros:
                if plan.is_before(s, name):
                    d[name].append(zero)
        for name, grad in zip(plan.carried, grads[len(plan.outputs) :], strict=True):
            d[name][0].copy_(grad)
        runs: dict[int, Any] = {}
        for t in reversed(range(tape.T)):
            for s, stage, named, weight, summed, takes, d_product, static in steps:
                received = [d[name] + ([outside[name][t]] if name in outside else []) for name in stage.gives]
                d.update({name: [] for name in stage.gives})
                inputs = [summed[t], *takes[t], *(grad for some in received for grad in some)]
                if s not in runs:
                    runs[s] = runner(plan.compile, retreat, counts=tuple(map(len, received)), **static)
                d_takes = runs[s]([d_product[t]], inputs)
                for name, grad in zip(named, d_takes, strict=True):
                    if name in totals:
                        totals[name] += grad
                    else:
                        d[name].append(grad)
                for name, part in tape.split(s, d_product[t] @ weight).items():
                    d[name].append(part)
        d_weights = [
            (d_products[s].flatten(0, 1).t() @ tape.factors[s][:-1].flatten(0, 1)).to(weight.dtype)
            for s, weight in weights.items()
        ]
        d_first = [torch.stack([part.to(value.dtype) for part in d[name]]).sum(0) for name, value in first.items()]
        del steps, d_product, d_products[1:]  # a copy in full precision follows
        d_source = d_products[0].to(tape.summed[0].dtype)
        found = d_source, *[None] * len(made_of), *d_first, *d_weights, *totals.values()
        return None, *found, *[None] * len(constants)


def advance(
    product: Tensor, *tensors: Tensor, function: Function, kind: Hashable, order: tuple[int, ...], shares: bool
) -> Tensors:
    """A stage's step: the product, plus the input's share, and what its function gives, in the order of its places."""
    takes = tensors[:-1] if shares else tensors
    product = product + tensors[-1] if shares else product.to(takes[0].dtype)
    given = function(kind, product, *takes)
    return product, *(given[k] for k in order)


def retreat(
    *tensors: Tensor, function: Function, kind: Hashable, wanted: tuple[bool, ...], counts: tuple[int, ...]
) -> Tensors:
    """Backward of `advance`: the gradients of the product and of what is `wanted` of what the function takes.

    After product and takes come the gradients that each given value has received, so many as `counts` say.
    """
    flags = (True, *wanted)
    takes = [tensor.detach().requires_grad_(flag) for tensor, flag in zip(tensors, flags, strict=False)]
    with torch.enable_grad():
        given = function(kind, *takes)
    received = iter(tensors[len(takes) :])
    outputs, grads = [], []
    for value, count in zip(given, counts, strict=True):
        grad = functools.reduce(torch.add, itertools.islice(received, count))
        if value.requires_grad:
            outputs.append(value)
            grads.append(grad.to(value.dtype))
    inputs = [take for take in takes if take.requires_grad]
    return torch.autograd.grad(outputs, inputs, grads, allow_unused=True, materialize_grads=True)


def replay(plan: Schedule, source: Tensor, first: Any, weights: Any, trained: Any, constants: Any) -> Tensors:
    """What `Unrolled` gives, by functions that autograd follows."""
    values: dict[str, Tensor] = {**first, **trained}
    outputs: dict[str, list[Tensor]] = {name: [] for name in plan.outputs}
    nothing = source[0, :, :0]  # of which a factor may consist
    for t, share in enumerate(source.unbind()):
        values |= {name: value[t] for name, value in constants.items()}
        for s, stage in enumerate(plan.stages):
            product = torch.cat([nothing, *(values[name] for name in stage.factor)], 1) @ weights[s].t()
            given = stage.function(stage.kind, product if s else product + share, *map(values.get, stage.takes))
            values |= zip(stage.gives, given, strict=True)
        for name, steps in outputs.items():
            steps.append(values[name])
    return *map(torch.stack, outputs.values()), *(values[name] for name in plan.carried)
