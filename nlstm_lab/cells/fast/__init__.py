"""Faster ways to unroll cells of exactly some classes over time; each equals the oracle, the loop over `Cell.recur`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from nlstm_lab.cells.base import State
from nlstm_lab.cells.checks import autocasts
from nlstm_lab.settings import held

Layer = Callable[[Any, Tensor, State], tuple[Tensor, State] | None]
# network, input, first states and whether z is wanted, to output, last states, and z and z~ [T, layers, B]
Network = Callable[[Any, Tensor, list[State], bool], tuple[Tensor, list[State], Any, Any] | None]

LAYERS: dict[type, Layer] = {}  # filled by `cells`: cells of exactly these classes, unrolled
NETWORKS: dict[type, Network] = {}  # networks of exactly these classes, all layers together
_enabled: ContextVar[bool] = ContextVar("fast", default=True)


def disabled() -> AbstractContextManager[None]:
    """Run every cell through the oracle while the block runs."""
    return held(_enabled, False)


def unroll(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """One layer over all steps, x [T, B, features] or symbols [T, B] to h [T, B, hidden_size] and the last state.

    None where there is no fast way: for another cell, type or device, an empty batch, tensors that are not plain, and
    under everything that must see the single operations.
    """
    way = LAYERS.get(type(cell)) if _enabled.get() and not _operations_are_watched(x.device) else None
    uniform = way is not None and 0 not in x.shape[:2] and is_uniform((*state, *cell.parameters()), x)
    return way(cell, x, state) if way is not None and uniform else None


def read(network: Any, x: Tensor, states: list[State], boundaries: bool = False) -> tuple[Any, Any, Any, Any] | None:
    """All layers of a network whose layers step together; None where there is no fast way, as above.

    Returns output and last states; z and z~ [T, layers, B] are sure where `boundaries` are asked for.
    """
    reader = NETWORKS.get(type(network)) if _enabled.get() and not _operations_are_watched(x.device) else None
    plain = all(map(_is_plain, (x, *(part for state in states for part in state))))
    return reader(network, x, states, boundaries) if reader is not None and plain else None


def _operations_are_watched(device: torch.device) -> bool:
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or autocasts(device)
        or _is_transformed()
    )


def _is_transformed() -> bool:
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


def backward_is_watched(grads: Sequence[Tensor]) -> bool:
    """Whether the backward that runs is itself differentiated or vectorized, which one that fills buffers cannot be."""
    batched = any(map(torch._C._functorch.is_legacy_batchedtensor, grads))  # of autograd.grad(is_grads_batched=True)
    return torch.is_grad_enabled() or batched or _is_transformed()


def differentiate(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor | None], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """In a backward: autograd's gradient of each input that needs one, where the derived backward cannot serve."""
    needed = [x for x in inputs if x is not None and x.requires_grad]
    grads = [grad for output, grad in zip(outputs, grads, strict=True) if output.requires_grad]
    outputs = [output for output in outputs if output.requires_grad]
    create = torch.is_grad_enabled()
    gradients = iter(torch.autograd.grad(outputs, needed, grads, create_graph=create, allow_unused=True))
    return [next(gradients) if x is not None and x.requires_grad else None for x in inputs]
