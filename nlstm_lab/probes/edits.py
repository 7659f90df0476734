"""Edits: functions of values, of states, gates or pre-activations, to what replaces them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nlstm_lab.cells import Recurrent
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.reading import component, rows

Edit = Callable[[Tensor], Tensor]  # values [B, units] of one step to what replaces them
BEFORE = " before"  # behind the name of a state: as the step reads it


def zero(values: Tensor) -> Tensor:
    """An edit: nothing is left.

    Args:
        values: The values that are replaced.
    """
    return torch.zeros_like(values)


def put(new: Tensor | float) -> Edit:
    """An edit: `new`, which is broadcast to [B, units], replaces what is there.

    Args:
        new: The new values [B, units].
    """
    return lambda values: torch.as_tensor(new, dtype=values.dtype, device=values.device).expand_as(values)


def freeze() -> Edit:
    """An edit: what is there at the first of its steps is put back at all others. Make a new one for each place."""
    held: list[Tensor] = []

    def edit(values: Tensor) -> Tensor:
        held.extend([values][len(held) :])
        return held[0]

    return edit


def changed(unit: Recurrent, state: Any, name: str, edit: Edit) -> Any:
    """A copy of a packed state [.., B, ..] in which the part of that name is edited; UsageError as `run`."""
    old = component(unit, state, name)
    state = rows(state, range(len(old)))
    component(unit, state, name).copy_(checked(edit(old), old, name))
    return state


def chosen(edit: Edit, units: Sequence[int] | None, where: str) -> Edit:
    """The edit of the chosen units, which refuses what it must not return."""
    if units is None:
        return lambda values: checked(edit(values), values, where)
    index = list(units)

    def on_units(values: Tensor) -> Tensor:
        if not index or min(index) < 0 or max(index) >= values.shape[-1]:
            raise UsageError(f"units of {where} must be chosen from 0 to {values.shape[-1] - 1}, at least one of them")
        old = values[..., index]
        new = values.clone()
        new[..., index] = checked(edit(old), old, where)
        return new

    return on_units


def checked(new: Any, old: Tensor, where: str) -> Tensor:
    if not isinstance(new, Tensor) or new.shape != old.shape or new.dtype != old.dtype:
        said = f"{new.dtype} {list(new.shape)}" if isinstance(new, Tensor) else type(new).__name__
        raise UsageError(f"an edit of {where} must return a tensor {old.dtype} {list(old.shape)}, not {said}")
    if new.isnan().any() and not old.isnan().any():
        raise UsageError(f"an edit of {where} returned NaN: it must return numbers")
    return new
