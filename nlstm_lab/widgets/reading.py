"""Reading a text with one of several networks: progress is shown, and what was read last is kept."""

from collections import OrderedDict
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab import probes
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.reading import predicts_symbols
from nlstm_lab.probes.tracing import beginning
from nlstm_lab.widgets.base import Step
from nlstm_lab.widgets.networks import Networks

LIKELIEST = 5  # characters that are shown of a prediction
KEPT = 4  # traces

Array = NDArray[Any]


class Reader:
    """Traces by run and text."""

    LONGEST = 1000  # characters that a browser answers about at once

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._kept: OrderedDict[tuple[str, str], xr.Dataset] = OrderedDict()

    def trace(self, run: str, text: str, step: Step = lambda share, doing: None) -> xr.Dataset:
        """`lab.probes.trace` of the run named so; UsageError: an empty or too long text, an unknown character,
        a network that does not predict the next character."""
        if len(text) > self.LONGEST:
            raise UsageError(
                f"the text has {len(text)} characters, and a widget shows at most {self.LONGEST}: shorten it, or use "
                "lab.probes.trace"
            )
        if (run, text) in self._kept:
            self._kept.move_to_end((run, text))
        else:
            network = self._networks[run]
            if network.vocabulary is None or not predicts_symbols(network):
                raise UsageError(f"{run} does not predict the characters of a text: choose a network that does")
            # who types changes little: what an earlier text began with is not read again
            others = [other for name, other in self._kept if name == run]
            nearest = max(others, key=lambda other: beginning(other, text), default=None)
            self._kept[run, text] = probes.trace(
                network,
                text,
                run=run,
                watch=lambda share: step(share, f"{run} reads the text"),
                known=None if nearest is None else self._kept[run, nearest],
            )
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._kept[run, text]


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
