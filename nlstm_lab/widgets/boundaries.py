"""BoundaryExplorer: where the layers of an HM-LSTM end a segment, and whether words end there."""

import copy
from typing import Any, ClassVar

import traitlets
import xarray as xr
from matplotlib.figure import Figure

from nlstm_lab.models import Network
from nlstm_lab.probes.texts import vocabulary_of
from nlstm_lab.runs import Run
from nlstm_lab.studies.boundaries.draw import ROW, hidden_norms
from nlstm_lab.studies.boundaries.measure import boundaries, described, plain
from nlstm_lab.widgets.base import LabWidget, Step, clamped
from nlstm_lab.widgets.reading import leniently

LONGEST = 10_000  # characters
THRESHOLDS = [round(0.05 * k, 2) for k in range(1, 20)]  # of a page without Python
SLOPES = [1.0, 2.0, 5.0]  # likewise, beside the network's own


class BoundaryExplorer(LabWidget):
    """A text with z, operation and norm of every layer and the surprise at every character; threshold and slope move.

    Another threshold is another reading: until Python has read the text anew, what follows the first changed z is drawn
    faint. A page without Python holds readings at `THRESHOLDS` and `SLOPES`.

    Args:
        network: An HM-LSTM or a hierarchical RNN over characters, or its run.
        text: What it reads, at most `LONGEST` characters; unknown ones are mapped to the nearest that it knows.
        threshold, slope: Of its detectors (equations 8 and 9); None as it was trained.

    Raises:
        UsageError: No layer finds or is given boundaries; the text is empty; the threshold is not inside (0, 1), or
            the slope not positive.
    """

    title = "Learned boundaries"
    caption = "Boundaries in “{text}”; threshold {threshold}, slope {slope}."
    snippet = "lab.widgets.BoundaryExplorer({load}, {text}, threshold={threshold}, slope={slope}).figure()"
    scripts: ClassVar[tuple[str, ...]] = ("agreement.js", "boundaries.js")
    inputs: ClassVar[tuple[str, ...]] = ("text", "threshold", "slope")
    looks: ClassVar[tuple[str, ...]] = ("at", "truth", "within", "threshold", "slope")

    text = traitlets.Unicode().tag(sync=True)
    threshold = traitlets.Float(None, allow_none=True).tag(sync=True)
    slope = traitlets.Float(None, allow_none=True).tag(sync=True)
    at = traitlets.Int().tag(sync=True)
    truth = traitlets.Enum(["spaces", "word starts", "word ends", "punctuation"]).tag(sync=True)
    within = traitlets.Enum(["0", "±1", "or one after"]).tag(sync=True)
    trained = traitlets.Dict().tag(sync=True)  # boundary, threshold and slope
    reading = traitlets.Dict().tag(sync=True)  # `lab.probes.boundaries`, as plain values
    readings: traitlets.List[Any] = traitlets.List().tag(sync=True)  # of a page without Python

    def __init__(
        self, network: Network | Run, text: str, threshold: float | None = None, slope: float | None = None
    ) -> None:
        # a copy: while a threshold is tried, a network that others hold must stay as it is
        self.network = copy.deepcopy(network) if isinstance(network, Network) else network.model()
        self.run = network.name if isinstance(network, Run) else ""
        self.made_of = {self.run: network} if isinstance(network, Run) else {}
        trained = described(self.network, None, None, self.run)
        super().__init__(text=text, threshold=threshold, slope=slope, trained=trained, truth="spaces", within="0")

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        text, notice = leniently(vocabulary_of(self.network), given["text"], LONGEST)
        chosen = {name: given[name] for name in self.inputs} | {"text": text}
        data = self._read(**chosen, watch=lambda share: step(share, "the network reads the text"))
        return {"reading": plain(data), "notice": notice, **clamped(self, given, "at", data.sizes["time"] - 1)}

    def _read(self, text: str, **how: Any) -> xr.Dataset:
        read, _ = leniently(vocabulary_of(self.network), text, LONGEST)
        return boundaries(self.network, read, run=self.run, **how)

    @property
    def data(self) -> xr.Dataset:
        """What is shown, as `lab.probes.boundaries` returns it."""
        return self._read(**self.settled)

    def draw(self) -> Figure:
        return hidden_norms(self.data, row=min(ROW, len(self.reading["symbols"])))

    def shown(self) -> dict[str, Any]:
        """With the readings that a page offers: as it was trained, then at every threshold and slope."""
        state = super().shown()
        if self.trained["boundary"] != "given":
            slopes = sorted({*SLOPES, self.trained["slope"]})
            settings = [{}, *({"threshold": threshold, "slope": slope} for slope in slopes for threshold in THRESHOLDS)]
            state["readings"] = [plain(self._read(state["text"], **how)) for how in settings]
        return state
