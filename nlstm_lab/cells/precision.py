"""What the fast paths' products are computed in: exact fp32, or bf16 with fp32 states and master weights.

On a CPU with AVX-512, or without MKL, fp32 products go to oneDNN, up to twice as fast, where it keeps fp32 accuracy.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.settings import held

Precision = Literal["fp32", "bf16"]
MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # "bf16" sends fp32 products to oneDNN

_current: ContextVar[Precision] = ContextVar("precision", default="fp32")


@contextmanager
def precision(name: Precision) -> Iterator[None]:
    """Compute the products of the fast paths in `name` while the block runs.

    The backward follows the forward, but for that of cuDNN's kernels, which is exact inside the block alone.

    Args:
        name: "fp32" or "bf16".

    Raises:
        UsageError: The name is another, or "bf16" on a machine without hardware for it.
    """
    if name not in get_args(Precision):
        raise UsageError(f"precision must be one of {get_args(Precision)}, not {name!r}")
    if name == "bf16" and not (has_bf16(torch.device("cpu")) or has_bf16(torch.device("cuda"))):
        raise UsageError("this machine has no bf16 instructions, so bf16 would be slower by far: use fp32")
    with held(_current, name), exact_kernels():
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
    if _current.get() == "bf16" and like.dtype == torch.float32:
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


@cache
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
