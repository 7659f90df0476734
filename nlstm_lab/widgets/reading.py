"""The networks among which a user chooses, and reading a text with one: what was read last is kept."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from traitlets import Dict, List, Unicode

from nlstm_lab import probes
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures.style import look
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import encode, mapped_to, predicts_symbols
from nlstm_lab.runs import Run
from nlstm_lab.runs.tables import run_columns
from nlstm_lab.settings import choice
from nlstm_lab.widgets.base import LabWidget, Step, quietly
from nlstm_lab.widgets.runs import RunBrowser, shortened

INITIALIZATION = {"zero": "baseline initialization", "log_frequencies": "initialized to the log-frequencies"}
Given = Run | Network | RunBrowser | Iterable[Run | Network] | Mapping[str, Run | Network]
EXAMPLES = 20  # sequences of a task
LIKELIEST = 5  # characters that are shown of a prediction
KEPT = 4  # traces
LONGEST = 1000  # characters that a browser answers about at once
REPEATED = 80  # characters of a changed text
Array = NDArray[Any]


class Networks:
    """Runs and networks by name, and what they read; a run's weights are read when it is first chosen."""

    def __init__(self, given: Given, text: Any = None) -> None:
        self._read: dict[str, Network] = {}
        self._traces: dict[tuple[str, str], xr.Dataset] = {}  # the last ones
        self.sequences: dict[str, Any] = {}  # what is read in place of a text, by the name that chooses it
        self.offer(given)
        name, first = next(iter(self.given.items()))
        if text is not None and not isinstance(text, str):
            self.sequences = {**text} if isinstance(text, Mapping) else {"sequence": text}
        elif text is not None and self[name].vocabulary is None:
            if not isinstance(first, Run):
                raise UsageError(f"{first.name} reads no characters: hand in the sequence that it reads, as an array")
            self.sequences = examples(first)

    def offer(self, given: Given) -> None:
        """Offer these, and no others."""
        self.offered = given
        if isinstance(given, RunBrowser):
            known = [(run, run.model()) for run in given.chosen() if run.has_weights]
            given = [run for run, one in known if one.vocabulary is not None and predicts_symbols(one)]
        each: Any = given if isinstance(given, Iterable) and not isinstance(given, Run | Network | str) else [given]
        named = [*given.items()] if isinstance(given, Mapping) else [(getattr(one, "name", ""), one) for one in each]
        if wrong := [one for _, one in named if not isinstance(one, Run | Network)]:
            raise UsageError(f"hand in runs, or networks of lab.models.wrap, not {type(wrong[0]).__name__}")
        names = [name for name, one in named if isinstance(one, Network) or one.has_weights]
        if not names:
            raise UsageError("no network that predicts the characters of a text has its weights: hand in, or pick, one")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"several networks are called {twice[0]!r}, and a name chooses one: name them apart")
        self.given: dict[str, Run | Network] = {name: one for name, one in named if name in names}

    @property
    def runs(self) -> dict[str, Run]:
        """The recorded ones among them, by name."""
        return {name: one for name, one in self.given.items() if isinstance(one, Run)}

    @property
    def titles(self) -> dict[str, dict[str, str]]:
        """By name: a label that tells it from the others, and its twin, which differs in the initialization alone."""
        titles = {name: {"label": label, "twin": ""} for name, label in shortened(self.given).items()}
        known = {name: run_columns(run) for name, run in self.runs.items()}
        flags = {name: short.rpartition("/")[0].split("+")[1:] for name, short in shortened(known).items()}
        scales = len({one["scale"] for one in known.values()}) > 1
        parts = {
            name: (INITIALIZATION[one["start"]], look(one["model"]).label, f"seed {one['seed']}",
                   *[f"{one['scale']} scale"] * scales, *flags[name])
            for name, one in known.items()
        }  # fmt: skip
        for name, (start, label, *own) in parts.items():
            if [*parts.values()].count(parts[name]) == 1:  # the label chooses one
                twins = [other for other, one in parts.items() if other != name and one[1:] == parts[name][1:]]
                twin = twins[0] if len(twins) == 1 else ""
                titles[name] = {"label": ", ".join([label, start, *own]), "twin": twin}
        return titles

    def __getitem__(self, name: str) -> Network:
        """The network of that name; UsageError: it was not given."""
        if name not in self._read:
            if name not in self.given and isinstance(self.offered, RunBrowser):
                self.offer(self.offered)  # picked there, and chosen first in a linked widget
            one = self.given[choice(name, "run", self.given)]
            self._read[name] = one if isinstance(one, Network) else one.model()
        return self._read[name]

    def read(self, run: str, text: str) -> tuple[str, str]:
        """Change a text as `leniently` does; UsageError: it is empty, or the network predicts no characters."""
        network = self[run]
        if self.sequences:
            whole = len(encode(network, self.sequences[choice(text, "sequence", self.sequences)], "sequence"))
            return text, f"shortened to {LONGEST:,} steps" if whole > LONGEST else ""
        if network.vocabulary is None or not predicts_symbols(network):
            raise UsageError(f"{run} does not predict the characters of a text: choose a network that does")
        return leniently(network.vocabulary, text)

    def content(self, run: str, text: str) -> Any:
        """What a probe reads: the text, or the codes [T] or vectors [T, D] of the sequence that is called so."""
        return encode(self[run], self.sequences[text])[:LONGEST] if text in self.sequences else text

    def trace(self, run: str, text: str, step: Step = quietly) -> xr.Dataset:
        """`lab.probes.trace` of the run named so; the text is one that `read` returned."""
        if (run, text) not in self._traces:
            doing = "the network reads the text"
            read = probes.trace(self[run], self.content(run, text), watch=lambda share: step(share, doing))
            self._traces = dict([*self._traces.items()][1 - KEPT :]) | {(run, text): read}
        return self._traces[run, text]


def examples(run: Run) -> dict[str, Any]:
    """The first sequences of the test split of a run's task, by name."""
    task = run.experiment.load()
    inputs, _, mask, _ = next(iter(task.evaluate("test", task.evaluations[0])))
    lengths = [len(inputs)] * inputs.shape[1] if mask is None or mask.dim() == 1 else mask.sum(0).tolist()
    return {f"test sequence {k}": inputs[:length, k] for k, length in enumerate(lengths[:EXAMPLES])}


def leniently(vocabulary: Vocabulary, text: str, longest: int = LONGEST) -> tuple[str, str]:
    """The text as it is read, and what was changed for that: characters that are not known, and its length."""
    read = mapped_to(vocabulary, text[:longest])
    shown = read if len(read) <= REPEATED else read[: REPEATED - 1] + "…"
    said = f"read as “{shown}”" if read != text[:longest] else ""
    return read, "; ".join(filter(None, [said, f"shortened to {longest:,} characters" * (len(text) > longest)]))


class ReadingWidget(LabWidget):
    """A widget whose user chooses among the networks that read: `runs`, by name or picked in a RunBrowser."""

    run, runs = Unicode(), List(Unicode())
    titles = Dict()  # of each run: `Networks.titles`

    def __init__(self, runs: Given, sequences: Any = None, **state: Any) -> None:
        self._networks = Networks(runs, sequences)
        self.made_of = self._networks.runs
        names = list(self._networks.given)
        if offered := list(self._networks.sequences):
            state |= {"sequences": offered, "text": state["text"] or offered[0]}
        super().__init__(**{"run": names[0], "runs": names, "titles": self._networks.titles} | state)
        if isinstance(runs, RunBrowser):
            runs.observe(self._follow, "picked")
            self.observe(lambda change: change.new is None and runs.unobserve(self._follow, "picked"), "comm")

    def _follow(self, change: Any) -> None:
        """Offer what is picked in the browser now."""
        networks, before = self._networks, self._networks.given
        with self.hold_sync():
            try:
                networks.offer(change.owner)
                if self.run not in networks.given:
                    self.run = next(iter(networks.given))
                self.error = ""
            except LabError as error:
                networks.given, self.error = before, str(error)
            self.runs, self.titles, self.made_of = list(networks.given), networks.titles, networks.runs
            self.paper = self._about()


def next_symbols(log_p: Array, before: str = "") -> dict[str, bytes]:
    """Codes (i2) and chances (f4) of the `LIKELIEST` symbols [time, LIKELIEST] by log p [time, vocabulary]."""
    codes = np.argsort(-log_p, axis=1, kind="stable")[:, :LIKELIEST]
    chances = np.exp(np.take_along_axis(log_p, codes, 1))
    return {f"{before}likely": codes.astype("<i2").tobytes(), f"{before}chances": chances.astype("<f4").tobytes()}


def surprise(trace: xr.Dataset, log_p: Array, after: int = 0) -> Array:
    """Bits of what came next by these predictions, made from step `after` on, f4 [time]; NaN where nothing came."""
    place = {symbol: code for code, symbol in enumerate(trace["vocabulary"].values)}
    codes = [place[symbol] for symbol in trace["symbol"].values[after + 1 :][: len(log_p)]]
    bits = np.full(len(log_p), np.nan, "<f4")
    bits[: len(codes)] = -log_p[np.arange(len(codes)), codes] / np.log(2)
    return bits


def of_trace(trace: xr.Dataset) -> dict[str, Any]:
    """What was read, and what was predicted at each step."""
    symbols = trace["symbol" if "symbol" in trace.coords else "time"].values.astype(str).tolist()
    if not {"symbol", "vocabulary"} <= {*trace.coords}:  # nothing like it is predicted
        return {"symbols": symbols, "vocabulary": [], "surprises": b"", "likely": b"", "chances": b""}
    log_p, vocabulary = trace["log_p"].values, [*map(str, trace["vocabulary"].values)]
    known = {"symbols": symbols, "vocabulary": vocabulary, "surprises": surprise(trace, log_p).tobytes()}
    return known | next_symbols(log_p)
