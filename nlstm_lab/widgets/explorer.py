"""CellExplorer: what each unit of each memory does along a text of the reader's own."""

from typing import Any

import numpy as np
import traitlets
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import nn

from nlstm_lab import probes
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import NestedLSTMCell
from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures.activations import activation_frame, cell_activations
from nlstm_lab.models import Network
from nlstm_lab.probes import decoding
from nlstm_lab.probes.reading import hidden_states, memory_states
from nlstm_lab.probes.unit_statistics import contrast, values_of
from nlstm_lab.widgets.base import Step, clamped
from nlstm_lab.widgets.reading import Given, ReadingWidget, of_trace
from nlstm_lab.widgets.units import quoted, recorded

GATES = ("i", "f", "g", "o")
LIVES = ("alive", "silent", "latched", "not finite")
RUNNING = 3  # networks that a page runs itself, at most
LARGEST = 500_000  # parameters that a page holds of a network: a megabyte
FIRST = "since_space"  # what the unit that is shown first follows
LABELS = ("position_in_word", "since_space", "in_quotation", "in_bracket")
QUOTED = 5000  # characters of the free text
LONG = Excerpt("ptb", "valid", 30_000)  # where timescales were measured: a few hundred characters hold none

Array = NDArray[Any]


class CellExplorer(ReadingWidget):
    """The text coloured by a unit of every memory, and all about that unit.

    A click on a square of a map opens its unit's page; so does a link [...](#unit-inner-106) in the notebook's text.
    `figure()` is `lab.figures.cell_activations` of the unit that is shown.

    Args:
        runs: A run, or several among which the widget chooses; networks of `lab.models.wrap` likewise.
        text: What is read first; unknown characters are mapped to known ones, and at most `LONGEST` are read.
        unit: Shown first; None for that of the innermost memory that follows the distance from the last space best.
        values: Shown first: "printed" (as in figures 3 and 4 of Nested LSTMs), "tanh" or "raw".
        timescales: The excerpt whose recorded timescales and unit pages are shown, where there are any.

    Raises:
        UsageError: There is no such unit; the text is empty, or a network predicts no characters.
    """

    title = "Cell explorer"
    caption = "Unit {unit} of every memory of {run} along “{text}”."
    snippet = "lab.widgets.CellExplorer({load}, {text}, unit={unit}, values={values}).figure()"
    scripts = (
        *("reading.js", "traces.js", "unitmap.js", "unitpage.js"),
        *("span.js", "forward.js", "guesses.js", "explorer.js"),
    )
    inputs = ("run", "text", "span")
    looks = ("run", "text", "unit", "page", "step", "values", "rule", "ranked", "characters", "span")

    text = traitlets.Unicode().tag(sync=True)
    span = traitlets.List(traitlets.Int()).tag(sync=True)  # first and last character of a phrase, or nothing

    # what is looked at, which the browser changes alone
    unit = traitlets.Int().tag(sync=True)
    values = traitlets.Enum(("printed", "tanh", "raw"), "printed").tag(sync=True)
    page = traitlets.Int(-1).tag(sync=True)  # the memory whose unit's page is open
    step = traitlets.Int(0).tag(sync=True)  # the character that is looked at
    rule = traitlets.Unicode().tag(sync=True)  # how units are ranked
    ranked = traitlets.Unicode().tag(sync=True)  # the memory whose units are ranked
    characters = traitlets.Unicode("aeiou").tag(sync=True)  # of the rule "follows these characters"

    # results
    squashed = traitlets.List(traitlets.Bool()).tag(sync=True)  # which of them are printed through tanh
    units = traitlets.Int().tag(sync=True)
    states = traitlets.Bytes().tag(sync=True)  # f2 [memory, unit, time]
    gates = traitlets.Bytes().tag(sync=True)  # f2 [gate, memory, unit, time]; empty without memory cells
    lives = traitlets.Bytes().tag(sync=True)  # u1 [memory, unit], positions in LIVES, on this text
    known = traitlets.Bytes().tag(sync=True)  # f4 [raw and tanh, timescale and low and high, memory, unit], or empty
    reasons = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)  # why a timescale is not known
    known_on = traitlets.Unicode().tag(sync=True)
    pages = traitlets.Dict().tag(sync=True)  # `units.recorded`
    passages = traitlets.Dict().tag(sync=True)  # of `unit` by memory, in the text that is shipped; see `_quoted`
    contrasts = traitlets.Bytes().tag(sync=True)  # f4 [CONDITIONS, memory, unit] of the span, or empty
    labels = traitlets.Bytes().tag(sync=True)  # f4 [LABELS and surprise, time]
    surprises = traitlets.Bytes().tag(sync=True)  # f4 [time], bits of what came next

    def __init__(
        self,
        runs: Given,
        text: str,
        *,
        unit: int | None = None,
        values: str = "printed",
        timescales: Excerpt | None = LONG,
    ) -> None:
        self._known, self._fresh = dict[str, dict[str, Any]](), dict[str, Network]()
        self._excerpt = timescales
        super().__init__(runs, text=text, span=[], unit=unit or 0, values=values)
        if unit is None:
            self.rule, self.unit = FIRST, self._following(FIRST)
        elif not 0 <= unit < self.units:
            raise UsageError(f"unit must be one of 0 to {self.units - 1}, not {unit}")

    @traitlets.validate("unit", "step")
    def _one(self, proposal: Any) -> int:
        """A linked widget may mean all units, or no character: that changes nothing here."""
        chosen, trait = proposal["value"], proposal["trait"].name
        return int(chosen if chosen >= 0 else getattr(self, trait))

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        text, notice = self._networks.read(given["run"], given["text"])
        trace = self._networks.trace(given["run"], text, step)
        memories, states = _states(trace)
        of_text = of_trace(trace)
        labels = decoding.labels(text)[list(LABELS)].to_numpy("<f4").T.tobytes()
        return {
            **of_text,
            "notice": notice,
            "memories": memories,
            "units": states.shape[1],
            "states": _half(states),
            "labels": labels + of_text["surprises"],
            **self._of_cells(trace, memories),
            **clamped(self, given, "unit", states.shape[1] - 1),
            **clamped(self, given, "step", len(text) - 1),
            **self._span(given["run"], text, given["span"], memories),
            **self._recorded(given["run"], memories, states.shape[1]),
        }

    def _recorded(self, run: str, memories: list[str], size: int) -> dict[str, Any]:
        if run not in self._known:
            self._known[run] = recorded(self._networks, run, self._excerpt, memories, size)
        return self._known[run]

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        if content == "passages":
            self.passages = self._quoted()
        else:
            super()._on_message(widget, content, buffers)

    def _quoted(self) -> dict[str, Any]:
        """Where the shown unit is highest and lowest in the text that is shipped: the corpus is not here."""
        network, text = self._networks[self.settled["run"]], probes.free_text()[:QUOTED]
        try:
            found = {name: probes.passages(network, text, name, self.unit).to_dict("records") for name in self.memories}
        except LabError:  # the network does not know its letters
            found = {}
        return {"unit": self.unit, "on": f"{QUOTED:,} characters of Wikipedia's “Apollo 11”", "found": found}

    def _span(self, run: str, text: str, span: list[int], memories: list[str]) -> dict[str, Any]:
        """How much each unit differs inside the span from outside: of the network, untrained, and on shuffled text."""
        if len(span) != 2 or not 0 <= span[0] <= span[1] < len(text) or span[1] - span[0] + 1 == len(text):
            return {"span": [], "contrasts": b""}
        if run not in self._fresh:
            self._fresh[run] = probes.untrained(self._networks[run])
        fresh = probes.trace(self._fresh[run], text, predictions=False)
        mixed = self._networks.trace(run, probes.shuffled(text, "characters"))
        traces = (self._networks.trace(run, text), fresh, mixed)
        inside = (np.arange(len(text)) >= span[0]) & (np.arange(len(text)) <= span[1])
        found = [[contrast(values_of(trace)[memory], inside) for memory in memories] for trace in traces]
        return {"contrasts": np.array(found, "<f4").tobytes()}

    def _following(self, label: str) -> int:
        """The living unit of the first memory that goes best with a label, as the browser ranks them."""
        states = np.frombuffer(self.states, "<f2").astype(float).reshape(len(self.memories), self.units, -1)[0]
        states = np.tanh(states) if self.squashed[0] and self.values != "raw" else states
        wanted = np.frombuffer(self.labels, "<f4").reshape(len(LABELS) + 1, -1)[LABELS.index(label)]
        alive = np.flatnonzero((np.frombuffer(self.lives, np.uint8)[: self.units] == 0) & (states.std(1) > 1e-6))
        return int(alive[np.abs(np.corrcoef(states[alive], wanted)[-1, :-1]).argmax()]) if len(alive) else 0

    def _of_cells(self, trace: xr.Dataset, memories: list[str]) -> dict[str, Any]:
        """What only memory cells have: gates, a life, and how the paper prints them."""
        if "c" not in trace:
            many = len(memories)
            return {"gates": b"", "lives": bytes(many * trace.sizes["unit"]), "squashed": [False] * many}
        cells = trace.sel(memory=memories).transpose("memory", "unit", "time", ...)
        gates = np.stack([cells[gate].values for gate in GATES])
        lives = probes.classes(trace).pivot(index="memory", columns="unit", values="life").loc[memories]
        printed = activation_frame(trace.isel(time=slice(1)), 1).set_index("memory")["quantity"]
        return {
            "gates": _half(gates),
            "lives": lives.map(LIVES.index).to_numpy(np.uint8).tobytes(),
            "squashed": [str(printed[memory]).startswith(r"$\tanh") for memory in memories],
        }

    def shown(self) -> dict[str, Any]:
        """With the passages of the shown unit alone, and with the networks that a page can run itself."""
        shown, rows = self.settled["run"], [m * self.units + self.unit for m in range(len(self.memories))]
        state = super().shown()
        networks: dict[str, Any] = {}
        for run in filter(None, dict.fromkeys([shown, self.titles[shown]["twin"], *self.runs])):
            network = self._networks[run]
            about = portable(network)
            if about is None or len(networks) == RUNNING:
                continue
            trace = self._networks.trace(run, self._networks.read(run, self.settled["text"])[0])
            memories, states = _states(trace)
            records = self._recorded(run, memories, states.shape[1])
            records = {**records, "pages": quoted(records["pages"], rows if run == shown else [])}
            fresh = (portable(probes.untrained(network)) or about)["data"]
            fresh = next((other for other, each in networks.items() if each["fresh"] == fresh), fresh)  # of twins once
            squashed = self._of_cells(trace, memories)["squashed"]
            networks[run] = about | {"records": records, "memories": memories, "squashed": squashed, "fresh": fresh}
        state |= {"pages": quoted(self.pages, rows)}
        if self.pages and not self.pages["text"]:
            state["passages"] = self._quoted()
        if shown in networks:
            return {**state, "networks": networks, "runs": list(networks)}
        return {**state, "_looks": {name: kind for name, kind in self._looked().items() if name not in self.inputs}}

    def draw(self) -> Figure:
        run, text = self.settled["run"], self.settled["text"]
        trace = self._networks.trace(run, self._networks.read(run, text)[0])
        if "c" in trace:
            return cell_activations(trace, [self.unit], self.values)  # type: ignore[arg-type]
        hidden, states = _states(trace)
        axes = ("memory", "unit", "time")
        cells = xr.DataArray(states[::-1], {"memory": hidden[::-1]}, axes, attrs={"symbol": "h_t"})
        return cell_activations(trace.assign(c=cells), [self.unit], "raw")


def _states(trace: xr.Dataset) -> tuple[list[str], Array]:
    """The memories, innermost or highest first, and their states [memory, unit, time]; h where there are no cells."""
    states = memory_states(trace) or hidden_states(trace)
    memories = [*states][::-1]
    return memories, np.stack([states[memory].transpose("unit", "time").values for memory in memories])


def _half(x: Array) -> bytes:
    """Half precision is enough for a shade and three digits; what is larger stays the largest."""
    return np.clip(x, -65504, 65504).astype("<f2").tobytes()


def portable(network: Network) -> dict[str, Any] | None:
    """What `forward.js` reads a text with; None of a large network, or of one that it cannot compute: it knows LSTM
    layers and Nested LSTMs of one layer and two memories, with one-hot characters and a dense readout."""
    cells: list[Any] = list(network.recurrent.cells)
    nested = len(cells) == 1 and isinstance(cells[0], NestedLSTMCell) and type(cells[0].memory) is LSTMCell
    plain = all(type(cell) is LSTMCell for cell in cells)
    vocabulary, readout = network.vocabulary, network.readout
    dense = isinstance(readout, nn.Linear) and network.embedding is None
    if vocabulary is None or not dense or not (nested or plain):
        return None
    every = [each for cell in cells for each in (cell, *([cell.memory] if nested else []))]
    matrices = [matrix for each in every for matrix in (each.weight_ih, each.weight_hh, each.bias)]
    matrices += [readout.weight, readout.bias]
    fits = sum(matrix.numel() for matrix in network.parameters()) <= LARGEST
    if any(matrix is None for matrix in matrices) or not fits or len(vocabulary) != cells[0].input_size:
        return None
    values = np.concatenate([matrix.detach().float().cpu().numpy().ravel() for matrix in matrices])
    return {
        "units": network.recurrent.hidden_size,
        "layers": len(cells),
        "nested": nested,
        "tanh": nested and cells[0].candidate == "tanh",
        "symbols": list(vocabulary.symbols),
        "data": values.astype("<f2").tobytes(),
    }
