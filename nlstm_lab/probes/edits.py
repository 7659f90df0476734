"""What replaces values in a reading, and where: the grammar of edits."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.errors import UsageError

Edit = Callable[[Tensor], Tensor]  # values [B, units] of one step to what replaces them
Where = str | tuple[Any, ...]  # a name, (name, time) or (name, time, units)
Edits = Mapping[Where, Edit] | Sequence[tuple[Where, Edit]]
BEFORE = " before"  # behind the name of a state: as the step reads it
PREACTIVATION = "preactivation"


def zero(values: Tensor) -> Tensor:
    """An edit: nothing is left.

    Args:
        values: The values that are replaced.
    """
    return torch.zeros_like(values)


@dataclass
class PlainEdit:
    """An edit that is plain data: it can be saved, and begins anew in each reading."""

    kind: Literal["put", "freeze", "scale"]
    value: Any = None
    held: Tensor | None = None

    def __call__(self, values: Tensor) -> Tensor:
        if self.kind == "scale":
            return torch.mul(values, self.value)
        if self.kind == "freeze":
            self.held = values if self.held is None else self.held
            return self.held
        new = torch.as_tensor(self.value, dtype=values.dtype, device=values.device)
        try:
            return new.expand_as(values)
        except RuntimeError:
            raise UsageError(f"put: {list(new.shape)} does not fit {list(values.shape)}, [texts, units]") from None

    def at(self, owner: str, step: int, units: Sequence[int] | None) -> Edit:
        """The same, of a labelled array what it has of this memory or layer, step and units."""
        if not isinstance(self.value, xr.DataArray):
            return self
        array, layer = self.value, re.match("layer ([0-9]+)", owner)
        asked = {"memory": owner, "layer": int(layer[1]) if layer else 1, "time": step, "unit": units}
        try:
            for name, place in asked.items():
                if name in array.dims and place is not None:
                    array = array.sel({name: place})
        except KeyError:
            raise UsageError(f"put: the array has no {name} {place}, which is to be replaced") from None
        if set(array.dims) - {"text", "unit"}:
            raise UsageError(f"put: an array has the dimensions memory or layer, time, text and unit, not {array.dims}")
        return PlainEdit("put", array.transpose("text", "unit", missing_dims="ignore").values)


def put(new: Tensor | xr.DataArray | float) -> Edit:
    """An edit: `new` replaces what is there.

    Args:
        new: The new values, broadcast to [B, units]; or an array of a trace, of which each place takes what has its
            memory (or layer), step and units; a state "before" a step is that of the step before.
    """
    return PlainEdit("put", new)


def scale(factor: float) -> Edit:
    """An edit: what is there is multiplied.

    Args:
        factor: By what.
    """
    return PlainEdit("scale", factor)


def freeze() -> Edit:
    """An edit: what is there at the first of its steps is put back at all others."""
    return PlainEdit("freeze")


def edits_to_json(edits: Edits) -> str:
    """Write edits that are plain data (zero, put, scale and freeze) as JSON.

    Args:
        edits: As `run` takes them.

    Raises:
        UsageError: An edit is a function of one's own.
    """
    written = []
    for where, edit in pairs(edits):
        name, time, units = parts(where)
        if edit is not zero and not isinstance(edit, PlainEdit):
            raise UsageError(f"the edit of {name!r} is a function: zero, put, scale and freeze can be written")
        value = getattr(edit, "value", None)
        if isinstance(value, xr.DataArray):
            value = value.reset_coords(drop=True).to_dict()
        value = np.asarray(value).tolist() if isinstance(value, Tensor | np.ndarray) else value
        places = {"name": name, "time": _written(time), "units": _written(units)}
        written.append(places | {"edit": getattr(edit, "kind", "zero"), "value": value})
    return json.dumps(written)


def edits_from_json(text: str) -> list[tuple[Where, Edit]]:
    """Read what `edits_to_json` wrote.

    Args:
        text: JSON.
    """
    found: list[tuple[Where, Edit]] = []
    for each in json.loads(text):
        time, units = (slice(*one["slice"]) if isinstance(one, dict) else one for one in (each["time"], each["units"]))
        value = xr.DataArray.from_dict(each["value"]) if isinstance(each["value"], dict) else each["value"]
        found.append(((each["name"], time, units), zero if each["edit"] == "zero" else PlainEdit(each["edit"], value)))
    return found


def _written(asked: Any) -> Any:
    if isinstance(asked, slice):
        return {"slice": [asked.start, asked.stop, asked.step]}
    return [int(each) for each in asked] if isinstance(asked, Iterable) else asked


def pairs(edits: Edits) -> Iterable[tuple[Where, Edit]]:
    return edits.items() if isinstance(edits, Mapping) else edits


def parts(where: Where) -> tuple[str, Any, Any]:
    """The name, time and units of a place; None for all."""
    place = (where,) if isinstance(where, str) else where
    if not isinstance(place, tuple) or len(place) not in (1, 2, 3) or not isinstance(place[0], str):
        raise UsageError(f"an edit is made at a name, (name, time) or (name, time, units), not {where!r}")
    return (*place, None, None)[:3]


def chosen(edit: Edit, units: Sequence[int] | None, where: str) -> Edit:
    """The edit of the chosen units, which refuses what it must not return."""
    if units is None:
        return lambda values: checked(edit(values), values, where)
    index = list(units)

    def on_units(values: Tensor) -> Tensor:
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


def whole(asked: Any, size: int, message: str, from_end: bool = False) -> list[int]:
    """The numbers below `size` that an int, a slice, a range or a list of ints asks for; None asks for all."""
    if asked is None or isinstance(asked, slice):
        found = list(range(size)[asked or slice(None)])
    else:
        found = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    sound = all(isinstance(each, Integral) and not isinstance(each, bool) for each in found)
    lowest = -size if from_end else 0
    if not found or not sound or not all(lowest <= each < size for each in found):
        raise UsageError(f"{message} 0 to {size - 1}, at least one of them, by int, slice or list")
    return [int(each) % size for each in found]
