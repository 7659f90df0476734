"""Faster ways to unroll cells of exactly some classes over time; each equals the oracle, the loop over `Cell.recur`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from nlstm_lab.cells.checks import autocasts
from nlstm_lab.settings import held

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
    everything that must see the single operations.
    """
    if torch.compiler.is_compiling() or not _enabled.get() or (way := WAYS.get(type(unit))) is None:
        return None
    watched = torch._C._get_tracing_state() is not None or autocasts(x.device) or is_transformed()
    return None if watched or 0 in x.shape[:2] or not _is_plain(x) else way(unit, x, *states)


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
