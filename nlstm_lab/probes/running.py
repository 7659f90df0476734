"""Read with edits: any state, gate or pre-activation, at any time, is seen and replaced while a network reads."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import xarray as xr
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells import Cell, Hook, Recurrent
from nlstm_lab.cells.base import memories
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.edits import BEFORE, PREACTIVATION, Edit, Edits, PlainEdit, checked, chosen, pairs, parts, whole
from nlstm_lab.probes.reading import Texts, component, encode_all, evaluating, hidden_names, names, rows
from nlstm_lab.probes.tracing import SHOW_PROGRESS, labelled, recorded_values


def changed(unit: Recurrent, state: Any, name: str, edit: Edit) -> Any:
    """A copy of a packed state [.., B, ..] in which the part of that name is edited; UsageError as `run`."""
    old = component(unit, state, name)
    state = rows(state, range(len(old)))
    component(unit, state, name).copy_(checked(edit(old), old, name))
    return state


@dataclass(frozen=True)
class Reading:
    """What a network computed along a text, or several, edited or not.

    Attributes:
        logits: [T, V], with several texts [B, T, V]; None where the network has no readout.
        values: The kept variables of the trace as tensors, [T, B, memory, unit] (h: layer for memory).
        trace: The same, labelled (`lab.probes.trace`).
    """

    logits: Tensor | None
    values: dict[str, Tensor]
    label: Callable[[dict[str, Any]], xr.Dataset] = field(repr=False)

    @property
    def trace(self) -> xr.Dataset:
        arrays = {name: value.detach().float().cpu().numpy().copy() for name, value in self.values.items()}
        return self.label(arrays)


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

    What an edit puts in a state, a gate or a pre-activation is what the rest of that step and all later ones go on
    with. A state is also edited "before" a step: then that step reads the new value, and the one before it computed
    with the old. An edit that returns what it was given changes nothing.

    Args:
        model: The network, one of `lab.models.wrap` too.
        text: One text, or a list of texts that are read side by side.
        edits: Functions of values [B, units] by where they are made: a name, (name, time) or (name, time, units).
            Names are those of memories ("inner", "layer 2", "cell") and hidden states ("h", "layer 2 h"), with
            " before" behind them or not; of gates behind a memory's name ("inner f"; of cells without memories "r" or
            "layer 2 r"); of pre-activations ("inner preactivation f"). A time is a step, from the end where it is
            negative, a slice that may be open, or several steps; units are one, a slice, or several. Slices and lists
            are no keys of a dict: hand in pairs, [(where, edit), ...]. Edits of one place are made in their order.
            Those that are plain data (zero, put, scale, freeze) are saved by `edits_to_json`.
        keep: Variables of the trace that are kept, all by default; [] for the logits alone.
        gradients: Whether the logits and values can be differentiated, by whatever the edits bring in.
        state: The packed state with which the first step begins; None for zeros.

    Returns:
        Logits, values and trace.

    Raises:
        UsageError: There is no such name, time or unit, or an edit returns another shape or type, or NaN.
    """
    codes, lengths = encode_all(model, text)
    plan = Plan(model, codes.shape[:2], edits or {})
    kept: list[dict[str, Tensor]] = []
    hidden = []
    with evaluating(model), torch.set_grad_enabled(gradients):
        for step in tqdm(range(len(codes)), disable=len(codes) < SHOW_PROGRESS, leave=False, unit=" steps"):
            output, state, layers = plan.read(step, codes[step : step + 1], state)
            values = recorded_values(layers)
            if missing := [name for name in keep or () if name not in values]:
                known = ", ".join(values)
                raise UsageError(f"there is no {missing[0]!r} to keep in this network; there are: {known}")
            kept.append({name: values[name] for name in (values if keep is None else keep)})
            hidden.append(output)
        logits = None if model.readout is None else model.readout(torch.cat(hidden))
    if logits is not None:
        logits = logits[:, 0] if lengths is None else logits.transpose(0, 1)
    stacked = {name: torch.cat([values[name] for values in kept]) for name in kept[0]}
    leaks = [not record.get("memory") for record in memories(layers).values()]
    return Reading(logits, stacked, lambda arrays: labelled(model, arrays, codes, lengths, leaks, ""))


def _hook(edits: Mapping[str, Sequence[Edit]], seen: set[str]) -> Hook:
    """Makes the edits of one layer at one step, by the names that its cell shows, which it notes."""

    def hook(name: str, value: Tensor) -> Tensor:
        seen.add(name)
        for edit in edits.get(name, ()):
            value = edit(value)
        return value

    return hook


class Plan:
    """Which edits are made before and inside each step of a reading, shape [steps, texts]."""

    def __init__(self, model: Network, shape: Sequence[int], edits: Edits) -> None:
        self.model, self.unit, self.batch = model, model.recurrent, shape[1]
        self.at_entry: dict[int, list[tuple[str, Edit]]] = defaultdict(list)
        self.inside: dict[tuple[int, int], dict[str, list[Edit]]] = defaultdict(dict)
        self.wanted: dict[int, list[tuple[str, int, int, str]]] = defaultdict(list)
        for where, edit in pairs(edits):
            name, time, units = parts(where)
            if not callable(edit):
                raise UsageError(f"the edit of {name!r} must be a function of values [B, units], not {edit!r}")
            edit = replace(edit) if isinstance(edit, PlainEdit) else edit  # nothing is held from an earlier reading
            message = f"{name!r} cannot be edited at {time}: the text has the steps"
            steps = whole(time, shape[0], message, from_end=True)
            if units is not None:
                units = whole(units, self.unit.hidden_size, f"units of {name!r} must be chosen from")
            owners = [each for each in names(self.unit) if f"{name} ".startswith(f"{each} ")]
            owner, late = max(owners, key=len, default=name), name.endswith(BEFORE)
            for step in steps:
                made = edit.at(owner, step - late, units) if isinstance(edit, PlainEdit) else edit
                self._plan(name, step, chosen(made, units, f"{name!r} at step {step}"))

    @property
    def first(self) -> int:
        """The first step with an edit, or a step after all."""
        return min([*self.at_entry, *(step for step, _ in self.inside)], default=2**62)

    def read(self, step: int, x: Tensor, state: Any) -> tuple[Tensor, Any, list[dict[str, Any]]]:
        """One step of a network with the edits made: output, state, and what each layer computed."""
        state = self.before(step, state)
        seen = [set[str]() for _ in self.unit.cells]
        hooks = [_hook(self.inside.get((step, k), {}), names) for k, names in enumerate(seen)]
        output, state, layers = self.model.trace(x, state, hooks)
        self.check(step, seen)
        return output, state, layers

    def _plan(self, name: str, step: int, edit: Edit) -> None:
        if name.endswith(BEFORE):
            self.at_entry[step].append((name.removesuffix(BEFORE), edit))
            return
        layer, depth, quantity = self._found(name)
        if quantity.startswith(f"{PREACTIVATION} "):
            edit, quantity = self._of_gate(name, layer, depth, quantity.split()[1], edit), PREACTIVATION
        if quantity in self._cell(layer, depth).shown:
            raise UsageError(f"{name!r} cannot be edited: its cell shows it, and goes on without it")
        self.inside[step, layer].setdefault("memory." * depth + quantity, []).append(edit)
        self.wanted[step].append((name, layer, depth, quantity))

    def _found(self, name: str) -> tuple[int, int, str]:
        """Layer, depth and recorded name of what `name` says."""
        memories, layers = names(self.unit), self.unit.num_layers
        owners = {"": (0, 0)} if layers == 1 else {f"layer {k + 1}": (k, 0) for k in range(layers)}
        owners |= {memory: divmod(k, len(memories) // layers) for k, memory in enumerate(memories)}
        if name in memories:
            return *owners[name], "c"
        if memories and name.rpartition(" ")[2] == "c":  # of which memory?
            raise UsageError(self._lacks(name, []))
        owner = max((each for each in owners if name.startswith(f"{each} " if each else "")), key=len, default=None)
        if owner is None:
            raise UsageError(self._lacks(name, []))
        return *owners[owner], name[len(owner) :].strip()

    def _of_gate(self, name: str, layer: int, depth: int, gate: str, edit: Edit) -> Edit:
        gates = getattr(self._cell(layer, depth), "gates", ())
        if gate not in gates:
            raise UsageError(self._lacks(name, [f"{PREACTIVATION} {each}" for each in gates]))
        start = gates.index(gate) * self.unit.hidden_size
        return chosen(edit, range(start, start + self.unit.hidden_size), name)

    def _cell(self, layer: int, depth: int) -> Cell:
        cell: Any = self.unit.cells[layer]
        for _ in range(depth):
            cell = cell.memory
        return cell  # type: ignore[no-any-return]

    def _lacks(self, name: str, there: Iterable[str]) -> str:
        known = [*names(self.unit), *hidden_names(self.unit.num_layers), *there]
        return f"{type(self.unit).__name__} has no {name!r}; it has: {', '.join(known)}"

    def before(self, step: int, state: Any) -> Any:
        if step not in self.at_entry:
            return state
        if state is None:
            state = self.unit._pack([cell.initial_state(self.batch) for cell in self.unit.cells], unbatched=False)
        for name, edit in self.at_entry[step]:
            state = changed(self.unit, state, name, edit)
        return state

    def check(self, step: int, seen: Sequence[set[str]]) -> None:
        """UsageError where an edit of this step was not made."""
        for name, layer, depth, quantity in self.wanted.get(step, ()):
            if "memory." * depth + quantity not in seen[layer]:
                there = [each.removeprefix("memory." * depth) for each in seen[layer]]
                there = sorted(each for each in there if "." not in each and each not in ("c", "h"))
                raise UsageError(self._lacks(name, there))
