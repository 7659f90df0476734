"""Pure pointwise functions whose results go into given buffers, eagerly or compiled into one loop.

Compiling pays where a training repeats one shape for minutes, and costs seconds for each new shape, so a caller asks
for it with `compiled()`. The code is made by inductor (C++ on a CPU, Triton on CUDA) from the same functions that run
eagerly. It is called without the guards of `torch.compile`, which would cost as much as the loop: a `Runner` is looked
up by everything that the code depends on, once for all steps.
"""

import functools
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Sequence[Tensor]]
Runner = Callable[[Sequence[Tensor], Sequence[Tensor]], None]  # buffers, inputs

_asked: ContextVar[bool] = ContextVar("compiled", default=False)
_runners: dict[tuple[Any, ...], Runner] = {}


@contextmanager
def compiled(on: bool = True) -> Iterator[None]:
    """Compile the pointwise functions of the fast paths that run forward in the block, where a compiler
    is present."""
    token = _asked.set(on)
    try:
        yield
    finally:
        _asked.reset(token)


def wanted(device: torch.device) -> bool:
    """Whether the functions are to be compiled; asked in the forward, as the backward may run in another
    thread."""
    return _asked.get() and has_compiler(device.type)


def has_compiler(device_type: str) -> bool:
    """Whether inductor finds here what it needs."""
    return not lacking(device_type)


@functools.cache
def lacking(device_type: str) -> str:
    """What inductor needs and does not find here, or nothing.

    For CUDA Triton, which builds its driver at its first kernel, with a C compiler and Python's headers. For a CPU a
    C++ compiler, Python's headers, and torch in a folder whose path, which goes to the linker without quotes, holds no
    space.
    """
    headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
    if device_type != "cpu":
        from torch.utils._triton import has_triton

        return "Triton" if not has_triton() else "Python's headers" if not headers else _lacking_c_compiler()
    if re.search(r"\s", torch.__file__):
        return "a path to torch without a space"
    return "Python's headers" if not headers else _lacking_cpp_compiler()


def _lacking_c_compiler() -> str:
    """Triton's own search."""
    named = os.environ.get("CC")
    present = any(map(shutil.which, ("gcc", "clang") if named is None else (named,)))
    return "" if present else "a C compiler"


def _lacking_cpp_compiler() -> str:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        return "" if get_cpp_compiler() else "a C++ compiler"
    except InvalidCxxCompiler:
        return "a C++ compiler"


class Runners:
    """Runs pointwise functions into buffers; a function and its place in the step keep one layout over
    all steps.

    A buffer must not be an input as well: compiled code may write it before it reads it.
    """

    def __init__(self, compile: bool) -> None:
        self.compile = compile
        self.places: dict[tuple[Function, int], Runner] = {}

    def __call__(
        self, function: Function, place: int, buffers: Sequence[Tensor], inputs: Sequence[Tensor], **static: Any
    ) -> None:
        """Write `function(*inputs, **static)` into the buffers."""
        run = self.places.get((function, place))
        if run is None:
            run = _runner(function, buffers, inputs, static) if self.compile else _eager(function, static)
            self.places[function, place] = run
        run(buffers, inputs)


def _eager(function: Function, static: dict[str, Any]) -> Runner:
    return lambda buffers, inputs: torch._foreach_copy_(list(buffers), list(function(*inputs, **static)))


def _runner(function: Function, buffers: Sequence[Tensor], inputs: Sequence[Tensor], static: dict[str, Any]) -> Runner:
    layouts = tuple((t.shape, t.stride(), t.dtype, t.device) for t in (*buffers, *inputs))
    key = (function, *sorted(static.items()), len(buffers), layouts)
    if key not in _runners:
        _runners[key] = _compile(functools.partial(function, **static), buffers, inputs)
    return _runners[key]


def _compile(function: Function, buffers: Sequence[Tensor], inputs: Sequence[Tensor]) -> Runner:
    """Trace and compile with tensors of the same layouts whose memory does not overlap, as the buffers'
    may not.

    The code is called as inductor leaves it: what `torch.compile` and its autograd would check at every call, the key
    of the runner has settled.
    """
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    def graph(*tensors: Tensor) -> tuple[()]:
        for buffer, value in zip(tensors[:count], function(*tensors[count:]), strict=True):
            buffer.copy_(value)
        return ()

    count = len(buffers)
    unchecked: Any = config.patch(size_asserts=False)
    with torch.inference_mode(False), torch.no_grad(), unchecked:
        like = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in (*buffers, *inputs)]
        traced = make_fx(graph, decomposition_table=select_decomp_table(), tracing_mode="fake")(*like)
        code: Any = compile_fx_inner(traced, like)
    call = getattr(code, "current_callable", None) or code
    return lambda buffers, inputs: call([*buffers, *inputs])
