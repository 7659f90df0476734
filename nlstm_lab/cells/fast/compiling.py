"""Pure pointwise functions whose results go into given buffers, eagerly or compiled into one loop, without guards."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from nlstm_lab.settings import held

Function = Callable[..., Sequence[Tensor]]
Runner = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]  # buffers, inputs, results beyond buffers

_asked: ContextVar[bool] = ContextVar("compiled", default=False)
_runners: dict[tuple[Any, ...], Runner] = {}


def compiled(on: bool = True) -> AbstractContextManager[None]:
    """Compile the pointwise functions of the fast paths that run forward in the block, where there is a compiler."""
    return held(_asked, on)


def wanted(device: torch.device) -> bool:
    """Whether the functions are to be compiled; asked in the forward, as the backward may run in another thread."""
    return _asked.get() and not lacking(device.type)


@functools.cache
def lacking(device_type: str) -> str:
    """Why inductor compiles nothing here, found by a trial with one small function, or nothing."""
    try:
        x = torch.zeros(2, device=device_type)
        _compile(lambda y: (y + 1,), [x.clone()], [x])([x.clone()], [x])
    except Exception as error:  # whatever inductor, Triton or a compiler raises
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


class Runners:
    """Runs pointwise functions into buffers, none of them an input as well; each place in the step keeps one layout."""

    def __init__(self, compile: bool) -> None:
        self.compile = compile
        self.places: dict[tuple[Function, int], Runner] = {}

    def __call__(
        self, function: Function, place: int, buffers: Sequence[Tensor], inputs: Sequence[Tensor], /, **static: Any
    ) -> Sequence[Tensor]:
        """Write the first results of `function(*inputs, **static)` into the buffers, and return the others."""
        run = self.places.get((function, place))
        if run is None:
            run = _runner(function, buffers, inputs, static) if self.compile else _eager(function, static)
            self.places[function, place] = run
        return run(buffers, inputs)


def _eager(function: Function, static: dict[str, Any]) -> Runner:
    def run(buffers: Sequence[Tensor], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        results = function(*inputs, **static)
        torch._foreach_copy_(list(buffers), list(results[: len(buffers)]))
        return results[len(buffers) :]

    return run


def _runner(function: Function, buffers: Sequence[Tensor], inputs: Sequence[Tensor], static: dict[str, Any]) -> Runner:
    layouts = tuple((t.shape, t.stride(), t.dtype, t.device) for t in (*buffers, *inputs))
    key = (function, *sorted(static.items()), len(buffers), layouts)
    if key not in _runners:
        _runners[key] = _compile(lambda *tensors: function(*tensors, **static), buffers, inputs)
    return _runners[key]


def _compile(function: Function, buffers: Sequence[Tensor], inputs: Sequence[Tensor]) -> Runner:
    """Trace and compile with tensors of the same layouts whose memory does not overlap, as the buffers' may not."""
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    def graph(*tensors: Tensor) -> Sequence[Tensor]:
        results = function(*tensors[count:])
        for buffer, value in zip(tensors[:count], results, strict=False):
            buffer.copy_(value)
        return [value.contiguous() for value in results[count:]]

    count = len(buffers)
    unchecked: Any = config.patch(size_asserts=False)
    with torch.inference_mode(False), torch.no_grad(), unchecked:
        like = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in (*buffers, *inputs)]
        traced = make_fx(graph, decomposition_table=select_decomp_table(), tracing_mode="fake")(*like)
        code: Any = compile_fx_inner(traced, like)
    call = getattr(code, "current_callable", None) or code
    return lambda buffers, inputs: call([*buffers, *inputs])
