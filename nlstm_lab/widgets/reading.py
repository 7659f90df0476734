"""Reading a text with one of several networks: progress is shown, and what was read last is kept."""

from collections import OrderedDict
from typing import Any

import numpy as np
import traitlets
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab import probes
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.reading import predicts_symbols
from nlstm_lab.probes.texts import encode_leniently
from nlstm_lab.probes.tracing import beginning
from nlstm_lab.runs import Run
from nlstm_lab.widgets.base import LabWidget, Step
from nlstm_lab.widgets.networks import Given, Networks

LIKELIEST = 5  # characters that are shown of a prediction
KEPT = 4  # traces
LONGEST = 1000  # characters that a browser answers about at once
SAID = 80  # characters of a changed text that are repeated

Array = NDArray[Any]


def leniently(vocabulary: Vocabulary, text: str, longest: int = LONGEST) -> tuple[str, str]:
    """The text as it is read, and what was changed for that: characters that are not known, and its length."""
    cut = text[:longest]
    read = encode_leniently(vocabulary, cut, "map")[1]
    return read, noticed(text, cut, read)


def noticed(text: str, cut: str, read: str) -> str:
    """What was changed before a text was read, in words; "" where nothing was."""
    said = [f"read as “{read if len(read) <= SAID else read[: SAID - 1] + '…'}”"] if read != cut else []
    return "; ".join(said + [f"cut to {len(cut):,} characters"] * (len(cut) < len(text)))


class Reader:
    """Traces by run and text."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._kept: OrderedDict[tuple[str, str], xr.Dataset] = OrderedDict()

    def read(self, run: str, text: str) -> tuple[str, str]:
        """`leniently` by the run named so; UsageError: an empty text, or a network that predicts no characters."""
        network = self._networks[run]
        if network.vocabulary is None or not predicts_symbols(network):
            raise UsageError(f"{run} does not predict the characters of a text: choose a network that does")
        return leniently(network.vocabulary, text)

    def trace(self, run: str, text: str, step: Step = lambda share, doing: None) -> xr.Dataset:
        """`lab.probes.trace` of the run named so; the text is one that `read` returned."""
        if (run, text) in self._kept:
            self._kept.move_to_end((run, text))
        else:
            # who types changes little: what an earlier text began with is not read again
            others = [other for name, other in self._kept if name == run]
            nearest = max(others, key=lambda other: beginning(other, text), default=None)
            self._kept[run, text] = probes.trace(
                self._networks[run],
                text,
                run=run,
                watch=lambda share: step(share, f"{run} reads the text"),
                known=None if nearest is None else self._kept[run, nearest],
            )
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._kept[run, text]


class ReadingWidget(LabWidget):
    """A widget whose user chooses among the networks that read: `runs`, by name or picked in a RunBrowser."""

    run = traitlets.Unicode().tag(sync=True)
    runs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    titles = traitlets.Dict().tag(sync=True)  # of each run: `Networks.titles`

    def __init__(self, runs: Given, **state: Any) -> None:
        self._networks = Networks(runs)
        self._reader = Reader(self._networks)
        names = self._networks.names
        super().__init__(run=names[0], runs=names, titles=self._networks.titles, **state)
        self._networks.follow(self)

    def made_of(self) -> dict[str, Run]:
        return self._networks.runs


def next_symbols(trace: xr.Dataset) -> tuple[Array, Array]:
    """The codes (i2) and probabilities (f4) of the `LIKELIEST` next characters, [time, LIKELIEST] each."""
    log_p = trace["log_p"].values
    codes = np.argsort(-log_p, axis=1, kind="stable")[:, :LIKELIEST]
    return codes.astype("<i2"), np.exp(np.take_along_axis(log_p, codes, 1)).astype("<f4")


def surprise(trace: xr.Dataset) -> Array:
    """Bits of what came next at each step, f4 [time]; NaN at the last, after which nothing came."""
    place = {symbol: code for code, symbol in enumerate(trace["vocabulary"].values)}
    codes = [place[symbol] for symbol in trace["symbol"].values[1:]]
    bits = -trace["log_p"].values[np.arange(len(codes)), codes] / np.log(2)
    return np.append(bits, np.nan).astype("<f4")
