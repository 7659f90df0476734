"""Faster ways to unroll cells of exactly some classes over time; each equals the oracle, the loop over `Cell.recur`.

States and weights are fp32 or fp64; products of fp32 may be taken in bf16, and pointwise functions may be compiled.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nlstm_lab.cells.checks import autocasts
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import choice, held

Precision = Literal["fp32", "bf16"]
Function = Callable[..., tuple[Tensor, ...]]
Runner = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]  # buffers, inputs, results beyond buffers

_precision: ContextVar[Precision] = ContextVar("precision", default="fp32")
_asked: ContextVar[bool] = ContextVar("compiled", default=False)
_compiled: dict[tuple[Any, ...], Runner] = {}
# A cell, x and its first state, to h of every step and the last state; or a network whose layers step together, x, the
# first states and whether z is wanted, to output, last states, z and z~ [T, layers, B]. None where it does not serve.
WAYS: dict[type, Callable[..., Any]] = {}  # filled by `cells`, for objects of exactly these classes
_enabled: ContextVar[bool] = ContextVar("fast", default=True)


def disabled() -> AbstractContextManager[None]:
    """Run every cell through the oracle while the block runs."""
    return held(_enabled, False)


def unroll(unit: Any, x: Tensor, *states: Any) -> Any:
    """All steps of a cell or network, x [T, B, features] or symbols [T, B], by its fast way.

    None where there is none: for another class, type or device, an empty batch, tensors that are not plain, and under
    everything that must see the single operations. UsageError: none, and the products are to be taken in bf16.
    """
    if torch.compiler.is_compiling() or not _enabled.get():
        return None
    watched = torch._C._get_tracing_state() is not None or autocasts(x.device) or is_transformed()
    serves = type(unit) in WAYS and not watched and 0 not in x.shape[:2] and _is_plain(x)
    if (found := WAYS[type(unit)](unit, x, *states) if serves else None) is None and _precision.get() == "bf16":
        raise UsageError(f"{type(unit).__name__} has no bf16 products, or not as it is used here: use fp32")
    return found


def is_transformed() -> bool:
    return torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has values here, and is of no subclass, as fake ones are."""
    return type(tensor) in (Tensor, nn.Parameter) and tensor.device.type in ("cpu", "cuda")


def is_uniform(tensors: tuple[Tensor, ...], x: Tensor) -> bool:
    """Whether everything is plain, on one device and in one type, fp32 or fp64."""
    dtype = tensors[0].dtype
    return (
        dtype in (torch.float32, torch.float64)
        and all(map(_is_plain, (x, *tensors)))
        and (x.dtype == dtype or not x.is_floating_point())
        and all(t.dtype == dtype and t.device == x.device for t in tensors)
    )


def compiled(on: bool = True) -> AbstractContextManager[None]:
    """Compile the pointwise functions of the fast paths that run forward in the block, where there is a compiler."""
    return held(_asked, on)


def compiles(device: torch.device) -> bool:
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


def runner(compile: bool, function: Function, /, **static: Any) -> Runner:
    """Make what writes the first results of `function(*inputs, **static)` into buffers, and returns the others.

    No buffer is an input as well, and every call has the layouts of the first.
    """
    made: list[Runner] = []

    def run(buffers: Sequence[Tensor], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        if not compile:
            results = function(*inputs, **static)
            torch._foreach_copy_(list(buffers), list(results[: len(buffers)]))
            return results[len(buffers) :]
        if not made:
            layouts = tuple((t.shape, t.stride(), t.dtype, t.device) for t in (*buffers, *inputs))
            key = (function, *sorted(static.items()), len(buffers), layouts)
            if key not in _compiled:
                _compiled[key] = _compile(lambda *tensors: function(*tensors, **static), buffers, inputs)
            made.append(_compiled[key])
        return made[0](buffers, inputs)

    return run


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


@contextmanager
def precision(name: Precision) -> Iterator[None]:
    """Compute the products of the fast paths in `name`, "fp32" or "bf16", while the block runs.

    The backward follows the forward, but for that of cuDNN's kernels, which is exact inside the block alone.

    Raises:
        UsageError: The name is another, or "bf16" on a machine without hardware for it.
    """
    choice(name, "precision", Precision)
    if name == "bf16" and not (has_bf16(torch.device("cpu")) or has_bf16(torch.device("cuda"))):
        raise UsageError("this machine has no bf16 instructions, so bf16 would be slower by far: use fp32")
    with held(_precision, name), exact_kernels():
        yield


@contextmanager
def exact_kernels() -> Iterator[None]:
    """Have cuDNN's recurrent kernels keep fp32 accuracy while the block runs, forward and backward."""
    kernels: Any = torch.backends.cudnn.rnn
    before = kernels.fp32_precision
    kernels.fp32_precision = "ieee"  # global to the process
    try:
        yield
    finally:
        kernels.fp32_precision = before


def has_bf16(device: torch.device) -> bool:
    """Whether bf16 products run in hardware there; in software they are 40 to 500 times slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()


def product_type(like: Tensor) -> torch.dtype:
    """The type of the factors of a product whose operands are stored as `like`."""
    if _precision.get() == "bf16" and like.dtype == torch.float32:
        if has_bf16(like.device):
            return torch.bfloat16
        raise UsageError(f"{like.device.type} has no bf16 instructions here: use fp32")
    return like.dtype
