"""BoundaryExplorer: where the layers of an HM-LSTM end a segment, and whether words end there."""

from typing import Any

import xarray as xr
from matplotlib.figure import Figure
from traitlets import Dict, Enum, Float, Int, Unicode

from nlstm_lab.figures.boundaries import hidden_norms
from nlstm_lab.probes.reading import vocabulary_of
from nlstm_lab.probes.segmentation import boundaries, described, plain
from nlstm_lab.widgets.base import Step, clamped
from nlstm_lab.widgets.reading import Given, ReadingWidget, leniently

LONGEST = 10_000  # characters
THRESHOLDS = [round(0.05 * k, 2) for k in range(1, 20)]  # of a page without Python


class BoundaryExplorer(ReadingWidget):
    """A text with z, operation and norm of every layer and the surprise at every character; the threshold moves.

    Another threshold is another reading: until Python has read the text anew, what follows the first changed z is drawn
    faint. A page without Python holds readings at `THRESHOLDS`.

    Args:
        runs: An HM-LSTM or a hierarchical RNN over characters, or its run; or several by their names, among which
            the widget chooses.
        text: What it reads, at most `LONGEST` characters; unknown ones are mapped to the nearest that it knows.
        threshold: Of its detectors (equation 9); None as it was trained. Another slope of the hard sigmoid moves the
            same cut, of its argument at (2 threshold - 1) / slope.

    Raises:
        UsageError: No layer finds or is given boundaries; there is no network; the text is empty; the threshold is not
            inside (0, 1).
    """

    title = "Learned boundaries"
    caption = "Boundaries in “{text}”; threshold {threshold}."
    snippet = "lab.widgets.BoundaryExplorer({load}, {text}, threshold={threshold}).figure()"
    scripts = ("agreement.js", "reading.js", "boundaries.js")
    inputs = ("run", "text", "threshold")
    looks = ("at", "truth", "within", "threshold")

    text, at, threshold = Unicode(), Int(), Float(None, allow_none=True)
    truth = Enum(["spaces", "word starts", "word ends", "punctuation"], "spaces")
    within = Enum(["0", "±1", "or one after"], "0")
    trained = Dict()  # boundary, threshold and slope

    def __init__(self, runs: Given, text: str, threshold: float | None = None) -> None:
        super().__init__(runs, text=text, threshold=threshold, readings=[], titles={})

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        network = self._networks[given["run"]]
        text, notice = leniently(vocabulary_of(network), given["text"], LONGEST)
        chosen = {name: given[name] for name in self.inputs}
        data = self._read(**chosen, watch=lambda share: step(share, "the network reads the text"))
        return {
            "reading": plain(data),
            "trained": described(network, None),
            "notice": notice,
            **clamped(self, at=len(text) - 1),
        }

    def _read(self, run: str, text: str, **how: Any) -> xr.Dataset:
        read, _ = leniently(vocabulary_of(self._networks[run]), text, LONGEST)
        return boundaries(self._networks[run], read, **how)

    def draw(self) -> Figure:
        return hidden_norms(self._read(**self.settled))

    def shown(self) -> dict[str, Any]:
        """With the readings that a page offers: as it was trained, then at every threshold."""
        state = super().shown()
        if self.trained["boundary"] != "given":
            read = (self._read(state["run"], state["text"], threshold=each) for each in (None, *THRESHOLDS))
            state["readings"] = [*map(plain, read)]
        return state
