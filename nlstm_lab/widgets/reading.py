"""The networks among which a user chooses, and reading a text with one: what was read last is kept."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import traitlets
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab import probes
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures.style import look
from nlstm_lab.models import Interface, Network
from nlstm_lab.probes.reading import predicts_symbols
from nlstm_lab.probes.texts import encode_leniently
from nlstm_lab.probes.tracing import beginning
from nlstm_lab.runs import Run, load
from nlstm_lab.runs.run import seeds_of
from nlstm_lab.runs.tables import run_columns
from nlstm_lab.widgets import pages
from nlstm_lab.widgets.base import LabWidget, Step, quietly
from nlstm_lab.widgets.runs import RunBrowser

START = {"zero": "baseline initialization", "log_frequencies": "initialized at the log-frequencies"}
Given = Run | Network | RunBrowser | Iterable[Run | Network]
LIKELIEST = 5  # characters that are shown of a prediction
KEPT = 4  # traces
LONGEST = 1000  # characters that a browser answers about at once
SAID = 80  # characters of a changed text that are repeated
Array = NDArray[Any]


class Networks:
    """Runs and networks by name, and what they read; a run's weights are read when it is first chosen."""

    def __init__(self, given: Given) -> None:
        self._read: dict[str, Network] = {}
        self._traces: OrderedDict[tuple[str, str], xr.Dataset] = OrderedDict()
        self.offer(given)

    def offer(self, given: Given) -> None:
        """Offer these, and no others."""
        if isinstance(given, Run | Network):
            each: list[Run | Network] = [given]
        elif isinstance(given, RunBrowser):
            each = [run for run in given.chosen() if run.has_weights and _foretells(run)]
        else:
            each = [one for one in given if isinstance(one, Network) or one.has_weights]
        if not each:
            raise UsageError("no run that predicts the characters of a text has its weights: hand one in, or pick one")
        name, times = Counter(one.name for one in each).most_common(1)[0]
        if times > 1:
            raise UsageError(f"{times} networks are called {name!r}, and a name chooses one: name them apart")
        self.given = {one.name: one for one in each}

    @property
    def runs(self) -> dict[str, Run]:
        """What was given as recorded runs, by name."""
        return {name: one for name, one in self.given.items() if isinstance(one, Run)}

    @property
    def titles(self) -> dict[str, dict[str, str]]:
        """By name: its label, as figures call it, and its twin, which differs in the start of its output bias alone."""
        known = {
            name: {**run_columns(one), "experiment": one.experiment.name.partition("+")[2]}
            for name, one in self.runs.items()
        }
        several = len({one["scale"] for one in known.values()}) > 1
        labels = {}
        for name, one in known.items():
            labels[name] = f"{look(one['model']).label}, {START[one['start']]}, seed {one['seed']}"
            labels[name] += f", {one['scale']} scale" if several else ""
        for label, times in Counter(labels.values()).items():
            if times > 1:  # variations of one experiment: what tells them apart
                same = [name for name in labels if labels[name] == label]
                flags = {name: self.runs[name].experiment.name.split("+")[1:] for name in same}
                common = set.intersection(*(set(each) for each in flags.values()))
                own = {name: ", ".join(flag for flag in each if flag not in common) for name, each in flags.items()}
                labels |= {name: f"{label}; {text}" if text else label for name, text in own.items()}
        shared = Counter(labels.values())
        titles = {name: {"label": name, "twin": ""} for name in self.given}
        for name, mine in known.items():
            if shared[labels[name]] == 1:  # a label chooses one
                alike = {other: one for other, one in known.items() if one | {"start": mine["start"]} == mine}
                twins = [other for other in alike if other != name]
                titles[name] = {"label": labels[name], "twin": twins[0] if len(twins) == 1 else ""}
        return titles

    def __getitem__(self, name: str) -> Network:
        """The network of that name; UsageError: it was not given."""
        if name not in self.given:
            raise UsageError(f"there is no run {name!r} to choose here; there is {', '.join(self.given)}")
        one = self.given[name]
        if isinstance(one, Network):
            return one
        if name not in self._read:
            self._read[name] = _laid_out(one.model())
        return self._read[name]

    def read(self, run: str, text: str) -> tuple[str, str]:
        """Change a text as `leniently` does; UsageError: it is empty, or the network predicts no characters."""
        network = self[run]
        if network.vocabulary is None or not predicts_symbols(network):
            raise UsageError(f"{run} does not predict the characters of a text: choose a network that does")
        return leniently(network.vocabulary, text)

    def trace(self, run: str, text: str, step: Step = quietly) -> xr.Dataset:
        """`lab.probes.trace` of the run named so; the text is one that `read` returned."""
        if (run, text) in self._traces:
            self._traces.move_to_end((run, text))
        else:
            # who types changes little: what an earlier text began with is not read again
            others = [other for name, other in self._traces if name == run]
            nearest = max(others, key=lambda other: beginning(other, text), default=None)
            self._traces[run, text] = probes.trace(
                self[run],
                text,
                run=run,
                watch=lambda share: step(share, f"{run} reads the text"),
                known=None if nearest is None else self._traces[run, nearest],
            )
            if len(self._traces) > KEPT:
                self._traces.popitem(last=False)
        return self._traces[run, text]

    def siblings(self, name: str) -> dict[str, Network]:
        """The networks of a run's experiment whose weights are kept, by name; none of a network of one's own."""
        one = self.given[name]
        if not isinstance(one, Run):
            return {}
        every = [load(one.experiment, seed) for seed in seeds_of(one.experiment)]
        return {run.name: run.model() for run in every if run.has_weights}


def _foretells(run: Run) -> bool:
    """`predicts_symbols` of a run, without reading its weights."""
    ends = Interface.from_record(run.result["interface"])
    if ends.vocabulary is None or ends.per_sequence or not isinstance(ends.output, Symbols):
        return False
    symbols = ends.vocabulary.symbols
    return ends.output.size == len(symbols) and ends.output.names in (None, symbols)


def _laid_out(network: Network) -> Network:
    """The same network, its matrices lying the other way round in memory: a step then takes half as long."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.data = parameter.data.t().contiguous().t()
    return network


def leniently(vocabulary: Vocabulary, text: str, longest: int = LONGEST) -> tuple[str, str]:
    """The text as it is read, and what was changed for that: characters that are not known, and its length."""
    cut = text[:longest]
    read = encode_leniently(vocabulary, cut, "map")[1]
    return read, noticed(text, cut, read)


def noticed(text: str, cut: str, read: str) -> str:
    """What was changed before a text was read, in words; "" where nothing was."""
    said = [f"read as “{read if len(read) <= SAID else read[: SAID - 1] + '…'}”"] if read != cut else []
    return "; ".join(said + [f"cut to {len(cut):,} characters"] * (len(cut) < len(text)))


class ReadingWidget(LabWidget):
    """A widget whose user chooses among the networks that read: `runs`, by name or picked in a RunBrowser."""

    run = traitlets.Unicode().tag(sync=True)
    runs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    titles = traitlets.Dict().tag(sync=True)  # of each run: `Networks.titles`

    # results
    symbols = traitlets.List(traitlets.Unicode()).tag(sync=True)
    memories = traitlets.List(traitlets.Unicode()).tag(sync=True)  # innermost (or highest) first
    vocabulary = traitlets.List(traitlets.Unicode()).tag(sync=True)
    likely = traitlets.Bytes().tag(sync=True)  # i2 [time, LIKELIEST]
    chances = traitlets.Bytes().tag(sync=True)  # f4 [time, LIKELIEST]

    def __init__(self, runs: Given, **state: Any) -> None:
        self._networks = Networks(runs)
        self.made_of = self._networks.runs
        names = list(self._networks.given)
        super().__init__(run=names[0], runs=names, titles=self._networks.titles, **state)
        if isinstance(runs, RunBrowser):
            runs.observe(self._follow, "picked")
            self.observe(lambda change: change.new is None and runs.unobserve(self._follow, "picked"), "comm")

    def _follow(self, change: Any) -> None:
        """Offer what is picked in the browser now."""
        before = self._networks.given
        with self.hold_sync():
            try:
                self._networks.offer(change.owner)
                if self.run not in self._networks.given:
                    self.run = next(iter(self._networks.given))
                self.error = ""
            except LabError as error:
                self._networks.given, self.error = before, str(error)
            self.runs, self.titles = list(self._networks.given), self._networks.titles
            self.made_of = self._networks.runs
            self.paper = pages.about(self)


def next_symbols(log_p: Array, before: str = "") -> dict[str, bytes]:
    """The traits `likely` and `chances` (with what stands before their names) of log p [time, vocabulary]."""
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
    """The traits of what was read, and of what was predicted at each step."""
    log_p = trace["log_p"].values
    return {
        "symbols": [str(symbol) for symbol in trace["symbol"].values],
        "vocabulary": [str(symbol) for symbol in trace["vocabulary"].values],
        "surprises": surprise(trace, log_p).tobytes(),
        **next_symbols(log_p),
    }
