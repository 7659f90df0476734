"""How the fast paths compute: products in fp32 or bf16 with fp32 states and weights; pointwise functions, compiled.

On a CPU with AVX-512, or without MKL, fp32 products go to oneDNN, up to twice as fast, where it keeps fp32 accuracy.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.settings import held

Precision = Literal["fp32", "bf16"]
MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # "bf16" sends fp32 products to oneDNN
Function = Callable[..., Sequence[Tensor]]
Runner = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]  # buffers, inputs, results beyond buffers

_precision: ContextVar[Precision] = ContextVar("precision", default="fp32")
_asked: ContextVar[bool] = ContextVar("compiled", default=False)
_compiled: dict[tuple[Any, ...], Runner] = {}


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
    if name not in get_args(Precision):
        raise UsageError(f"precision must be one of {get_args(Precision)}, not {name!r}")
    if name == "bf16" and not (has_bf16(torch.device("cpu")) or has_bf16(torch.device("cuda"))):
        raise UsageError("this machine has no bf16 instructions, so bf16 would be slower by far: use fp32")
    with held(_precision, name), exact_kernels():
        yield


@contextmanager
def _switched(owner: Any, to: str) -> Iterator[None]:
    """Set torch's `fp32_precision`, which is global to the process, while the block runs."""
    before = owner.fp32_precision
    owner.fp32_precision = to
    try:
        yield
    finally:
        owner.fp32_precision = before


def exact_kernels() -> AbstractContextManager[None]:
    """Have cuDNN's recurrent kernels keep fp32 accuracy while the block runs, forward and backward."""
    return _switched(torch.backends.cudnn.rnn, "ieee")


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


def exact_products(device: torch.device) -> AbstractContextManager[None]:
    """Send fp32 products on a CPU to oneDNN while the block runs, where it is the faster library and exact."""
    onednn = device.type == "cpu" and onednn_is_faster() and onednn_is_exact()
    return _switched(MATMUL, "bf16") if onednn else nullcontext()


def times(weight: Tensor, dtype: torch.dtype, rows: int) -> Callable[[Tensor], Tensor]:
    """Make x -> x @ weight for many x [rows, :] of type `dtype`, the weight laid out once."""
    weight = weight.detach().to(dtype)
    wanted = dtype == torch.bfloat16 or (dtype == torch.float32 and onednn_is_faster())
    if weight.device.type != "cpu" or not wanted or not _has_onednn():
        weight = weight.contiguous()
        return lambda x: torch.mm(x, weight)
    library = torch.ops.mkldnn
    packed = library._reorder_linear_weight(weight.t().contiguous(), rows)
    return lambda x: library._linear_pointwise(x, packed, None, "none", [], "")


def onednn_is_faster() -> bool:
    """Whether fp32 products are worth sending to oneDNN: MKL is tuned for some processors with AVX-512 alone."""
    return not torch.backends.mkl.is_available() or torch.backends.cpu.get_cpu_capability() == "AVX512"


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and bool(torch.backends.mkldnn.enabled)


@functools.cache
def onednn_is_exact() -> bool:
    """Whether oneDNN keeps fp32 accuracy when it is allowed bf16: without AMX it does, with AMX it rounds."""
    if not _has_onednn():
        return False
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(*shape, generator=generator) for shape in ((32, 600), (600, 2400)))
    with _switched(MATMUL, "bf16"):
        product = left @ right
    truth = left.double() @ right.double()
    return bool((product - truth).abs().max() < 1e-5 * truth.abs().max())
