"""Read with edits: any state, gate or pre-activation, at any step, is seen and replaced while a network reads."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import xarray as xr
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells import Recurrent
from nlstm_lab.errors import UsageError, hint
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import Texts, component, encode_all, evaluating, every_name, names, reading, rows, whole
from nlstm_lab.probes.tracing import SHOW_PROGRESS, labelled, recorded_values

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
class Put:
    """What `put` returns."""

    value: Any

    def __post_init__(self) -> None:
        try:
            torch.as_tensor(0.0 if isinstance(self.value, xr.DataArray) else self.value)
        except (TypeError, ValueError, RuntimeError):
            raise UsageError(f"put must be given a number or an array of them, not {self.value!r}") from None

    def __call__(self, values: Tensor) -> Tensor:
        new = torch.as_tensor(self.value, dtype=values.dtype, device=values.device)
        try:
            return new.expand_as(values)
        except RuntimeError:
            raise UsageError(f"put: {list(new.shape)} does not fit {list(values.shape)}, [B, units]") from None

    def at(self, owner: str, step: int, units: Sequence[int] | None) -> Edit:
        """The same, of a labelled array what it has of this memory or layer, step and units."""
        if not isinstance(self.value, xr.DataArray):
            return self
        layer = re.match("layer ([0-9]+)", owner)
        asked = {"memory": owner, "layer": int(layer[1]) if layer else 1, "time": step, "unit": units}
        asked = {name: place for name, place in asked.items() if name in self.value.dims and place is not None}
        try:
            array = self.value.sel(asked)
        except KeyError:
            raise UsageError(f"put: the array has no {asked}, which is to be replaced") from None
        if set(array.dims) - {"text", "unit"}:
            raise UsageError(f"put: an array has memory or layer, time, text and unit, not {array.dims}")
        return Put(array.transpose("text", "unit", missing_dims="ignore").values)


@dataclass
class Freeze:
    """What `freeze` returns: it begins anew in each reading."""

    held: Tensor | None = None

    def __call__(self, values: Tensor) -> Tensor:
        self.held = values if self.held is None else self.held
        return self.held


def put(new: Tensor | xr.DataArray | float) -> Edit:
    """An edit: `new` replaces what is there.

    Args:
        new: The new values, broadcast to [B, units]; or an array of a trace, of which each place takes what has its
            memory (or layer), step and units; a state "before" a step is that of the step before.
    """
    return Put(new)


def freeze() -> Edit:
    """An edit: what is there at the first of its steps is put back at all others."""
    return Freeze()


def _pairs(edits: Edits) -> list[tuple[Where, Any]]:
    pairs = list(edits.items() if isinstance(edits, Mapping) else edits if isinstance(edits, Iterable) else [edits])
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise UsageError(f"edits must be functions by place, {{where: edit}} or [(where, edit), ...], not {edits!r}")
    return pairs


def _parts(where: Where) -> tuple[str, Any, Any]:
    """The name, time and units of a place; None for all."""
    place = (where,) if isinstance(where, str) else where
    if not isinstance(place, tuple) or len(place) not in (1, 2, 3) or not isinstance(place[0], str):
        raise UsageError(f"an edit is made at a name, (name, time) or (name, time, units), not {where!r}")
    return (*place, None, None)[:3]


def _chosen(edit: Edit, units: Sequence[int] | None, where: str) -> Edit:
    """The edit of the chosen units, which refuses what it must not return."""
    if units is None:
        return lambda values: _checked(edit(values), values, where)

    def on_units(values: Tensor) -> Tensor:
        old, new = values[..., list(units)], values.clone()
        new[..., list(units)] = _checked(edit(old), old, where)
        return new

    return on_units


def _checked(new: Any, old: Tensor, where: str) -> Tensor:
    if not isinstance(new, Tensor) or new.shape != old.shape or new.dtype != old.dtype:
        said = f"{new.dtype} {list(new.shape)}" if isinstance(new, Tensor) else type(new).__name__
        raise UsageError(f"an edit of {where} must return a tensor {old.dtype} {list(old.shape)}, not {said}")
    if new.isnan().any() and not old.isnan().any():
        raise UsageError(f"an edit of {where} returned NaN: it must return numbers")
    return new


def changed(recurrent: Recurrent, state: Any, name: str, edit: Edit) -> Any:
    """A copy of a packed state [.., B, ..] in which the part of that name is edited; UsageError as `run`."""
    old = component(recurrent, state, name)
    state = rows(state, range(len(old)))
    component(recurrent, state, name).copy_(_checked(edit(old), old, name))
    return state


@dataclass(frozen=True)
class Reading:
    """What a network computed along a text, or several, edited or not."""

    logits: Tensor  # [T, V], with several texts [B, T, V]
    values: dict[str, Tensor]  # the kept variables of the trace, [T, B, memory, unit] (h: layer for memory)
    label: Callable[[dict[str, Any]], xr.Dataset] = field(repr=False)

    @property
    def trace(self) -> xr.Dataset:
        """The values, labelled (`lab.probes.trace`)."""
        return self.label({name: value.detach().float().cpu().numpy().copy() for name, value in self.values.items()})


def run(
    model: Network,
    text: Texts,
    edits: Edits | None = None,
    keep: Sequence[str] | None = None,
    *,
    gradients: bool = False,
    state: Any = None,
) -> Reading:
    """Read `text`, from a zero state or a given one, with every edit made at its place.

    What an edit puts in is what the rest of that step and all later ones go on with. A state is also edited "before" a
    step: then that step reads the new value, and the one before it computed with the old.

    Args:
        model: The network, one of `lab.models.wrap` too.
        text: One text, or a list of texts that are read side by side.
        edits: Functions of values [B, units] by where they are made: a name, (name, time) or (name, time, units).
            Names are those of memories ("inner", "layer 2", "cell") and hidden states ("h", "layer 2 h"), with
            " before" behind them or not; of gates behind a memory's name ("inner f"; of cells without memories "r" or
            "layer 2 r"); of pre-activations ("inner preactivation f"). A time is a step, from the end where it is
            negative (in texts of one length), a slice that may be open, or several steps; units are one, a slice, or
            several. Slices and lists are no keys of a dict: hand in pairs, [(where, edit), ...]. Edits of one place are
            made in their order.
        keep: Variables of the trace that are kept, all by default; [] for the logits alone.
        gradients: Whether the logits and values can be differentiated, by whatever the edits bring in.
        state: The packed state with which the first step begins; None for zeros.

    Returns:
        Logits, values and trace.

    Raises:
        UsageError: There is no such name, time or unit, or an edit returns another shape or type, or NaN.
    """
    codes, lengths = encode_all(model, text)
    state = tuple(state) if isinstance(state, list) else state
    plan, hidden = Plan(model, codes[:1], len(codes), edits or {}, len({*(lengths or ())}) < 2), []
    kept: list[dict[str, Tensor]] = []
    with evaluating(model, gradients), torch.set_grad_enabled(gradients):
        for step in tqdm(range(len(codes)), disable=len(codes) < SHOW_PROGRESS, leave=False, unit=" steps"):
            output, state, layers = plan.read(step, codes[step : step + 1], state)
            values = recorded_values(layers)
            if missing := [name for name in keep or () if name not in values]:
                raise UsageError(f"keep must name some of {', '.join(map(repr, values))}, not {missing[0]!r}")
            kept.append({name: values[name] for name in (values if keep is None else keep)})
            hidden.append(output)
        logits = model.readout(torch.cat(hidden))
    logits = logits[:, 0] if lengths is None else logits.transpose(0, 1)
    for row, length in enumerate(lengths or ()):
        logits[row, length:] = torch.nan  # behind the end of a shorter text
    stacked = {name: torch.cat([values[name] for values in kept]) for name in kept[0]}
    return Reading(logits, stacked, lambda arrays: labelled(model, arrays, codes, lengths, layers))


def _edited(edits: Sequence[tuple[str, Edit]], name: str, value: Tensor) -> Tensor:
    """A hook: the value of that name with its edits made."""
    for where, edit in edits:
        value = edit(value) if where == name else value
    return value


class Plan:
    """Which edits are made before and inside each of the steps of a reading, of which `x` [1, B] is the first; `first`,
    the first step with one, or a step after all."""

    def __init__(self, model: Network, x: Tensor, length: int, edits: Edits, from_end: bool = True) -> None:
        self.model, self.recurrent, self.batch = model, model.recurrent, x.shape[1]
        self.at_entry: dict[int, list[tuple[str, Edit]]] = defaultdict(list)
        self.inside: dict[tuple[int, int], list[tuple[str, Edit]]] = defaultdict(list)
        with reading(model):
            self.shown = [[*record] for record in model.trace(x)[2]]
        for where, edit in _pairs(edits):
            name, time, units = _parts(where)
            if not callable(edit) or edit in (put, freeze):
                ways = "zero, put(...), freeze() or a function of values [B, units]"
                raise UsageError(f"the edit of {name!r} must be {ways}, not {edit!r}")
            edit = Freeze() if isinstance(edit, Freeze) else edit  # which holds nothing of an earlier reading
            said = f"{name!r} cannot be edited at {time}: the text has the steps"
            steps = whole(time, length, said, from_end=from_end)
            if units is not None:
                units = whole(units, self.recurrent.hidden_size, f"units of {name!r} must be chosen from")
            owners = [each for each in names(self.recurrent) if f"{name} ".startswith(f"{each} ")]
            owner, late = max(owners, key=len, default=name), name.endswith(BEFORE)
            layer, shown, gate = (0, "", None) if late else self._place(name)
            for step in steps:
                made = edit.at(owner, step - late, units) if isinstance(edit, Put) else edit
                made = _chosen(made, units, f"{name!r} at step {step}")
                if late:
                    self.at_entry[step].append((name.removesuffix(BEFORE), made))
                else:
                    self.inside[step, layer].append((shown, made if gate is None else _chosen(made, gate, name)))
        self.first = min([*self.at_entry, *(step for step, _ in self.inside)], default=2**62)

    def read(self, step: int, x: Tensor, state: Any) -> tuple[Tensor, Any, list[dict[str, Any]]]:
        """One step of a network with the edits made: output, state, and what each layer computed."""
        if state is None and self.at_entry[step]:
            begun = [cell.initial_state(self.batch) for cell in self.recurrent.cells]
            state = self.recurrent._pack(begun, unbatched=False)
        for name, edit in self.at_entry[step]:
            state = changed(self.recurrent, state, name, edit)
        hooks = [partial(_edited, self.inside.get((step, k), ())) for k in range(self.recurrent.num_layers)]
        return self.model.trace(x, state, hooks)

    def _place(self, name: str) -> tuple[int, str, range | None]:
        """The layer of what `name` says, by which name its cell shows it, and of a pre-activation which part."""
        memories, layers = names(self.recurrent), self.recurrent.num_layers
        owners = {"": (0, 0)} if layers == 1 else {f"layer {k + 1}": (k, 0) for k in range(layers)}
        owners |= {memory: divmod(k, len(memories) // layers) for k, memory in enumerate(memories)}
        owner = max((each for each in owners if f"{name} ".startswith(f"{each} " if each else "")), key=len, default="")
        layer, depth = owners.get(owner, (0, 0))
        path, quantity = "memory." * depth, name[len(owner) :].strip()
        shown = self.shown[layer] if owner in owners else []
        cell: Any = self.recurrent.cells[layer]
        for _ in range(depth):
            cell = cell.memory
        there = [each.removeprefix(path) for each in shown if each.startswith(path)]
        there = [each for each in there if "." not in each and each != "c" and each != PREACTIVATION]
        gates = [*getattr(cell, "gates", ())] if path + PREACTIVATION in shown else []
        asked, _, gate = quantity.partition(" ")
        if asked == PREACTIVATION and gate in gates:
            start = gates.index(gate) * self.recurrent.hidden_size
            return layer, path + PREACTIVATION, range(start, start + self.recurrent.hidden_size)
        quantity = "c" if name in memories else quantity
        if quantity not in [*there, *["c"] * (name in memories)]:
            there = [each for each in there if each != "h"]  # of which every name says the layer
            known = [*every_name(self.recurrent), *there, *(f"{PREACTIVATION} {each}" for each in gates)]
            raise UsageError(f"{type(self.recurrent).__name__} has no {name!r}; {hint(name, known)}")
        if quantity in cell.shown:
            raise UsageError(f"{name!r} cannot be edited: its cell shows it, and goes on without it")
        return layer, path + quantity, None
