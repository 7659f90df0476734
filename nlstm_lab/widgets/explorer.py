"""CellExplorer: what each unit of each memory does along a text of the reader's own."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from torch import nn
from traitlets import Dict, Enum, Int, List, Unicode, validate

from nlstm_lab import probes
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import NestedLSTMCell
from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import LabError
from nlstm_lab.figures.activations import cell_activations
from nlstm_lab.models import Network
from nlstm_lab.probes import decoding
from nlstm_lab.probes.reading import hidden_names, hidden_states, memory_states, names
from nlstm_lab.probes.seeds import as_trained
from nlstm_lab.probes.slowness import timescales
from nlstm_lab.probes.tracing import GATES
from nlstm_lab.probes.unit_statistics import BEFORE, contrast, counterparts, units, values_of
from nlstm_lab.runs import Run, load
from nlstm_lab.runs.run import seeds_of
from nlstm_lab.settings import counted
from nlstm_lab.training.liveness import CLASSES
from nlstm_lab.widgets.base import Step, clamped
from nlstm_lab.widgets.reading import Array, Given, Networks, ReadingWidget, of_trace

LIVES = (*CLASSES, "not finite")
RUNNING = 3  # networks that a page runs itself, at most
LARGEST = 500_000  # parameters that a page holds of a network: a megabyte
FIRST = "since_space"  # what the unit that is shown first follows
INPUTS = 6  # coordinates that are drawn
LABELS = ("position_in_word", "since_space", "in_quotation", "in_bracket")
QUOTED = 5000  # characters of the free text
COLUMNS = ["low", "high", "histogram", "label", "effect", "untrained", "shuffled", "still_since", "places", "courses"]
LONG = Excerpt("ptb", "valid", 30_000)  # where timescales were measured: a few hundred characters hold none


class CellExplorer(ReadingWidget):
    """The text coloured by a unit of every memory, and all about that unit.

    A click on a square of a map opens its unit's page; so does a link [...](#unit-inner-106) in the notebook's text.
    `figure()` is `lab.figures.cell_activations` of the unit that is shown.

    Args:
        runs: A run, or several among which the widget chooses; networks of `lab.models.wrap` likewise.
        text: What is read first; unknown characters are mapped to known ones, and at most `LONGEST` are read. Where a
            network reads vectors [T, D] or codes [T]: an array, or several by name, among which the widget chooses; or
            the name of a sequence of the run's task, which by default are offered.
        unit: Shown first; None for that of the innermost memory that follows the distance from the last space best, or
            of vectors the first coordinate.
        values: Shown first: "printed" (as in figures 3 and 4 of Nested LSTMs), "tanh" or "raw".

    Raises:
        UsageError: There is no such unit; the text is empty, or a network predicts no characters.
    """

    title = "Cell explorer"
    caption = "Unit {unit} of every memory of {run} along “{text}”."
    snippet = "lab.widgets.CellExplorer({load}, {text}, unit={unit}, values={values}).figure()"
    scripts = tuple(f"{name}.js" for name in
                    ("reading", "traces", "unitmap", "unitpage", "span", "forward", "guesses", "explorer"))  # fmt: skip
    inputs = ("run", "text", "span")
    looks = ("run", "text", "unit", "page", "step", "values", "rule", "ranked", "characters", "span")

    text, sequences = Unicode(), List(Unicode())  # the first: a text, or which of the second is read
    span = List(Int())  # first and last character of a phrase, or nothing
    unit, step = Int(), Int()  # the second: the character that is looked at
    values = Enum(("printed", "tanh", "raw"), "printed")
    page = Int(-1)  # the memory whose unit's page is open
    rule, ranked = Unicode(), Unicode()  # how units are ranked, and those of which memory
    characters = Unicode("aeiou")  # of the rule "follows these characters"
    passages = Dict()  # of `unit` by memory, in the text that is shipped; see `_quoted`

    def __init__(
        self, runs: Given, text: str | Any | Mapping[str, Any] = "", *, unit: int | None = None, values: str = "printed"
    ) -> None:
        self._recorded = cache(lambda run: recorded(self._networks, run))
        self._untrained = cache(lambda run: probes.untrained(self._networks[run]))
        if not isinstance(text, str):
            self.snippet = self.snippet.replace("{text}", "sequences[{text}]")
        super().__init__(runs, text, text=text if isinstance(text, str) else "", span=[], unit=unit or 0, values=values)
        if unit is None:
            self.rule = FIRST if FIRST in self.followed else next(iter(self.followed), "")
            self.unit = self._following(self.rule) if self.rule else 0
        else:
            counted(unit, "unit", 0, self.units - 1)

    @validate("unit", "step")
    def _one(self, proposal: Any) -> int:
        """A linked widget may mean all units, or no character: that changes nothing here."""
        chosen, trait = proposal["value"], proposal["trait"].name
        return int(chosen if chosen >= 0 else getattr(self, trait))

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        text, notice = self._networks.read(given["run"], given["text"])
        trace = self._networks.trace(given["run"], text, step)
        memories, states = _states(trace)
        content, of_text = self._networks.content(given["run"], text), of_trace(trace)
        if isinstance(content, str):
            followed, labels = [*LABELS], decoding.labels(text)[[*LABELS]].to_numpy("<f4").T
        else:
            labels = content.float().cpu().numpy().reshape(len(content), -1).T[: INPUTS * (content.dim() == 2)]
            followed = [f"input {k}" for k in range(len(labels))]
        return {
            **of_text,
            "notice": notice,
            "memories": memories,
            "units": states.shape[1],
            "states": _half(states),  # [memory, unit, time]
            "followed": followed + ["surprise"] * bool(of_text["surprises"]),
            "labels": labels.tobytes() + of_text["surprises"],  # f4 [followed, time]
            **_of_cells(trace, memories),
            **clamped(self, unit=states.shape[1] - 1, step=trace.sizes["time"] - 1),
            **self._span(given["run"], text, given["span"], memories),
            **self._recorded(given["run"]),
        }

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        if content == "passages":
            self.passages = self._quoted()
        else:
            super()._on_message(widget, content, buffers)

    def _quoted(self) -> dict[str, Any]:
        """Where the shown unit is highest and lowest in the text that is shipped."""
        network, text = self._networks[self.settled["run"]], probes.free_text()[:QUOTED]
        try:
            found = {name: probes.passages(network, text, name, self.unit).to_dict("records") for name in self.memories}
        except LabError:  # the network does not know its letters
            found = {}
        return {"unit": self.unit, "on": f"{QUOTED:,} characters of Wikipedia's “Apollo 11”", "found": found}

    def _span(self, run: str, text: str, span: list[int], memories: list[str]) -> dict[str, Any]:
        """How much each unit differs inside the span from outside: of the network, untrained, and on shuffled text."""
        content = self._networks.content(run, text)
        length = len(content)
        if len(span) != 2 or not 0 <= span[0] <= span[1] < length or span[1] - span[0] + 1 == length:
            return {"span": [], "contrasts": b""}
        order = np.random.default_rng(0).permutation(length)
        mixed = probes.shuffled(text, "characters") if content is text else content[order]
        others = ((self._untrained(run), content), (self._networks[run], mixed))
        traces = [self._networks.trace(run, text), *(probes.trace(*each, predictions=False) for each in others)]
        inside = (np.arange(length) >= span[0]) & (np.arange(length) <= span[1])
        found = [[contrast(values_of(trace)[memory], inside) for memory in memories] for trace in traces]
        return {"contrasts": np.array(found, "<f4").tobytes()}  # [condition, memory, unit]

    def _following(self, label: str) -> int:
        """The living unit of the first memory that goes best with a label, as the browser ranks them."""
        states = np.frombuffer(self.states, "<f2").astype(float).reshape(len(self.memories), self.units, -1)[0]
        states = np.tanh(states) if self.squashed[0] and self.values != "raw" else states
        wanted = np.frombuffer(self.labels, "<f4").reshape(len(self.followed), -1)[self.followed.index(label)]
        alive = np.flatnonzero((np.frombuffer(self.lives, np.uint8)[: self.units] == 0) & (states.std(1) > 1e-6))
        return int(alive[np.abs(np.corrcoef(states[alive], wanted)[-1, :-1]).argmax()]) if len(alive) else 0

    def shown(self) -> dict[str, Any]:
        """With the passages of the shown unit alone, and with the networks that a page can run itself."""
        counted(self.unit, "unit", 0, self.units - 1)
        shown, rows = self.settled["run"], [m * self.units + self.unit for m in range(len(self.memories))]
        state = super().shown() | {"pages": quoted(self.pages, rows)}
        if self.pages and not self.pages["text"]:
            state["passages"] = self._quoted()
        networks: dict[str, Any] = {}
        for run in filter(None, dict.fromkeys([shown, self.titles[shown]["twin"], *self.runs])):
            about = None if self.sequences or len(networks) == RUNNING else portable(self._networks[run])
            if about is not None:
                records = self._recorded(run)
                records = {**records, "pages": quoted(records["pages"], rows if run == shown else [])}
                fresh = portable(self._untrained(run)) or about
                networks[run] = {**about, "records": records, "fresh": fresh["data"]}
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


def _of_cells(trace: xr.Dataset, memories: list[str]) -> dict[str, Any]:
    """What only memory cells have: gates [gate, memory, unit, time]; lives [memory, unit]; whether printed by tanh."""
    if "c" not in trace:
        many = len(memories)
        return {"gates": b"", "lives": bytes(many * trace.sizes["unit"]), "squashed": [False] * many}
    cells = trace.sel(memory=memories).transpose("memory", "unit", "time", ...)
    lives = probes.classes(trace).pivot(index="memory", columns="unit", values="life").loc[memories]
    shown = [cells[gate] if gate in cells else np.nan * cells["c"] for gate in GATES[1:]]  # a cell may have no o
    return {
        "gates": _half(np.stack([gate.values for gate in shown])),
        "lives": lives.map(LIVES.index).to_numpy(np.uint8).tobytes(),
        "squashed": cells["leaks"].values.tolist(),
    }


def _half(x: Array) -> bytes:
    """Half precision is enough for a shade and three digits; what is larger stays the largest."""
    return np.clip(x, -65504, 65504).astype("<f2").tobytes()


def portable(network: Network) -> dict[str, Any] | None:
    """What `forward.js` reads a text with; None of a large network, or of one that it cannot compute: it knows LSTM
    layers and Nested LSTMs of one layer and two memories, with one-hot characters and a dense readout."""
    cells: list[Any] = list(network.recurrent.cells)
    nested = len(cells) == 1 and isinstance(cells[0], NestedLSTMCell) and type(cells[0].memory) is LSTMCell
    vocabulary, readout, known = network.vocabulary, network.readout, nested or all(type(c) is LSTMCell for c in cells)
    if vocabulary is None or network.embedding is not None or not isinstance(readout, nn.Linear) or not known:
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


def recorded(networks: Networks, run: str) -> dict[str, Any]:
    """What is recorded of every unit on a long text: timescales (`known`, f4 [raw and tanh, number, memory, unit]; why
    there is none; on what), and a page a unit."""
    found: dict[str, Any] = {"known": b"", "reasons": [], "known_on": "", "pages": {}}
    network, one, recurrent = networks[run], networks.given[run], networks[run].recurrent
    memories = (names(recurrent) or hidden_names(recurrent.num_layers))[::-1]
    rows = pd.MultiIndex.from_product([memories, range(recurrent.hidden_size)], names=["memory", "unit"])
    long = as_trained(one, LONG) if isinstance(one, Run) else LONG
    on = f"{LONG.length:,} characters of {LONG.corpus} ({LONG.split})"
    if (record := timescales.find(network, long, seed=getattr(one, "seed", 0))) is not None:
        ordered = [record[record["value"] == value].set_index(rows.names).loc[rows] for value in ("raw", "tanh")]
        numbers = np.stack([frame[["timescale", "low", "high"]].to_numpy().T for frame in ordered])
        found["reasons"] = [frame["reason"].tolist() for frame in ordered]
        found |= {"known": numbers.astype("<f4").tobytes(), "known_on": on}
    if (record := units.find(network, long)) is not None:
        pages: dict[Any, Any] = record.set_index(rows.names).loc[rows, COLUMNS].replace({np.nan: None}).to_dict("list")
        if (ablated := decoding.cell_cuts.find(network, long)) is not None:
            pages.update(ablated.set_index(rows.names).loc[rows, ["kl", "loss_increase"]].to_dict("list"))
        pages |= {"on": on, "before": BEFORE, "text": "", "counterparts": [[] for _ in rows]}
        with suppress(LabError):  # the corpus is not here
            pages["text"] = long.read()
        every = [load(one.experiment, seed) for seed in seeds_of(one.experiment)] if isinstance(one, Run) else []
        kept = [each for each in every if each.has_weights]
        record = counterparts.find([each.model() for each in kept], long) if len(kept) > 1 else None
        if record is not None:
            own: Any = record[(record["network"] == [each.name for each in kept].index(one.name)) & (record["r"] != 0)]
            for row in own.itertuples():
                alike = [kept[row.other].name, int(row.counterpart), row.r]
                pages["counterparts"][rows.get_loc((row.memory, row.unit))].append(alike)
        found["pages"] = pages
    return found


def quoted(pages: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The same with the passages of these rows alone: a page that leaves this machine must not carry the corpus."""
    if not pages:
        return {}
    places = [int(place) for row in shown for place in pages["places"][row].split()]
    length = len(pages["courses"][0].split()[0])
    passages = {str(at): pages["text"][at - pages["before"] :][:length] for at in places if pages["text"]}
    return {**pages, "text": "", "passages": passages}
