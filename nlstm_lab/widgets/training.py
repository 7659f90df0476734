"""TrainingExplorer: every cell of the innermost memory along one sentence, after each of the first updates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from traitlets import Enum, Int, List, Unicode, validate

from nlstm_lab.errors import UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.figures.activations import cell_activations
from nlstm_lab.probes.death import LEVELS, first_updates, unpacked_cells
from nlstm_lab.runs.run import resolve
from nlstm_lab.settings import counted
from nlstm_lab.widgets.base import LabWidget
from nlstm_lab.widgets.reading import INITIALIZATION

SHOWN = 25  # cells of a figure


class TrainingExplorer(LabWidget):
    """The innermost memories of networks initialized differently, side by side; a slider over the updates.

    All is read from the records of `lab.probes.first_updates`; what is not recorded is trained first. `figure()` is
    `lab.figures.cell_activations` of about `SHOWN` cells after the update.

    Args:
        experiments: Whose networks are shown, of one size.
        text: What they read after each update.
        seed: Of all of them.
        scale: Of the experiments; None for the largest that has runs.
        update: Shown first; the nearest that is recorded.
        unit: Shown first.

    Raises:
        UsageError: There is no experiment, or their networks differ in size; there is no such unit.
    """

    title = "The memory in training"
    caption = "The innermost memory of {experiments}, seed {seed}, along “{text}” after {update} updates: "
    caption += "tanh c of all cells in the order in which they die, and the shares of saturated and constant cells on "
    caption += "validation text."
    snippet = "lab.widgets.TrainingExplorer({experiments}, {text}, seed={seed}, scale={scale}, update={update}, "
    snippet += "unit={unit}).figure()"
    scripts = ("training.js",)
    looks = ("update", "unit", "step", "colouring")

    experiments, text, seed, scale = List(Unicode()), Unicode(), Int(), Unicode()
    update, unit, step = Int(), Int(), Int()  # the third: the character that is looked at
    colouring = Enum(("unit", "surprisal"), "unit")  # of the text
    updates = List(Int())

    def __init__(
        self,
        experiments: Sequence[str | Experiment],
        text: str,
        *,
        seed: int = 0,
        scale: str | None = None,
        update: int = 20,
        unit: int = 0,
    ) -> None:
        every = [resolve(one, scale) for one in experiments]
        found = [first_updates(one, text, seed) for one in every]
        updates = sorted(set.intersection(*(set(record["update"]) for record in found)) if found else set())
        records = [record[record["update"].isin(updates)] for record in found]
        cells = [unpacked_cells(record) for record in records]
        if len({one.shape for one in cells}) != 1:
            raise UsageError("the experiments must be at least one, with networks of one size")
        unit = counted(unit, "unit", 0, cells[0].shape[1] - 1)
        starts, named = [INITIALIZATION[one.model.output_bias] for one in every], [one.name for one in every]
        shown = {"text": text, "symbols": list(text), "seed": seed, "update": update, "unit": unit, "updates": updates}
        super().__init__(
            **shown,
            experiments=named,
            scale=every[0].scale,
            labels=starts if len(set(starts)) == len(starts) else named,
            cells=np.stack(cells).tobytes(),  # i1 [experiment, update, unit, time], in LEVELS of tanh c
            levels=LEVELS,
            # by memory, a string of letters an update
            lives=[
                record.filter(like="lives/").rename(columns=lambda name: name[6:]).to_dict("list") for record in records
            ],
            bits=[[[*map(float, bits.split())] for bits in record["bits"]] for record in records],  # of what comes next
        )

    @validate("update")
    def _recorded(self, proposal: Any) -> int:
        updates = self.updates or [proposal["value"]]
        return int(min(updates, key=lambda known: abs(known - proposal["value"])))

    def draw(self) -> Figure:
        shape = len(self.labels), len(self.updates), -1, len(self.symbols)
        cells = np.frombuffer(self.cells, np.int8).reshape(shape)[:, self.updates.index(self.update)]
        c = np.arctanh(np.clip(cells / LEVELS, -0.999, 0.999))[::-1]  # the last one is drawn first
        symbol = r"\tilde{c}_t" if "inner" in self.lives[0] else "c_t"
        coords = {"symbol": ("time", self.symbols), "memory": self.labels[::-1]}
        trace = xr.Dataset({"c": (("memory", "unit", "time"), c, {"symbol": symbol})}, coords)
        return cell_activations(trace, range(0, c.shape[1], max(1, c.shape[1] // SHOWN)), "tanh")
