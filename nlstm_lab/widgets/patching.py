"""PatchLab: two texts, and which memory carries what they differ in."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from traitlets import Enum, Int, Unicode

from nlstm_lab import probes
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import KINDS, patch_map
from nlstm_lab.widgets.base import Step, clamped
from nlstm_lab.widgets.reading import Given, ReadingWidget, next_symbols

LONGEST = 120  # characters that both texts may end with: the work grows with the square
EFFECT = 0.1  # nats that the differing word must move the preference by: less cannot be shared out


class PatchLab(ReadingWidget):
    """A patch map of two texts that differ in a word and end alike, with the prediction behind each of its squares.

    `figure()` is `lab.figures.patch_map`.

    Args:
        runs: A run, or several among which the widget chooses; networks of `lab.models.wrap` likewise.
        clean, corrupted: The two texts.
        right, wrong: The next characters whose preference is looked at; by default those whose probability the
            difference between the texts raises and lowers most.

    Raises:
        UsageError: The texts end alike in over `LONGEST` characters, or a network predicts no characters.
    """

    title = "Patch lab"
    caption = "Memories of {run} after “{clean}”, put into its reading of “{corrupted}”."
    snippet = "lab.widgets.PatchLab({load}, {clean}, {corrupted}, right={right}, wrong={wrong}).figure()"
    scripts = ("reading.js", "guesses.js", "patching.js")
    inputs = ("run", "clean", "corrupted", "right", "wrong")
    looks = ("memory", "step", "kind")

    clean, corrupted, right, wrong = Unicode(), Unicode(), Unicode(), Unicode()
    memory, step = Int(), Int()  # the row and the column of the square that is looked at
    kind = Enum(tuple(KINDS), "patched")

    memories: list[str]
    symbols: list[str]
    preferences: list[float]

    def __init__(self, runs: Given, clean: str, corrupted: str, *, right: str = "", wrong: str = "") -> None:
        super().__init__(runs, clean=clean, corrupted=corrupted, right=right, wrong=wrong)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        read = [self._networks.read(given["run"], given[name]) for name in ("clean", "corrupted")]
        texts = [text for text, _ in read]
        if all(text[-LONGEST - 1 :] == texts[0][-LONGEST - 1 :] and len(text) > LONGEST for text in texts):
            raise UsageError(f"the texts end alike in over {LONGEST} characters, which takes long: shorten that end")
        ends = xr.concat([self._networks.trace(given["run"], text, step)["log_p"][-1] for text in texts], "text")
        symbols = [*map(str, ends["vocabulary"].values)]
        gain = np.exp(ends[0].values) - np.exp(ends[1].values)
        right, wrong = given["right"] or symbols[int(gain.argmax())], given["wrong"] or symbols[int(gain.argmin())]
        found = probes.patch(
            self._networks[given["run"]],
            (*texts, right, wrong),
            watch=lambda share: step(share, "patching each memory at each character"),
        )
        squares = found["log_p"].values.reshape(-1, len(symbols))
        return {
            **next_symbols(np.concatenate([ends.values, squares])),  # after the clean and the corrupted text; squares'
            **clamped(self, step=found.sizes["time"] - 1, memory=found.sizes["memory"] - 1),
            "notice": "; ".join(dict.fromkeys(notice for _, notice in read if notice)),
            "answers": [right, wrong],
            "preferences": [float(found["clean"]), float(found["corrupted"])],  # nats
            "symbols": [*map(str, found["symbol"].values)],  # of the common end
            "memories": [*map(str, found["memory"].values)],
            "vocabulary": symbols,
            **{kind: found[kind].values.astype("<f4").tobytes() for kind in KINDS},  # [memory, time], nats
        }

    def draw(self) -> Figure:
        if not abs(self.preferences[0] - self.preferences[1]) >= EFFECT:
            raise UsageError("the two texts hardly differ in this preference: there is nothing to restore")
        shape = len(self.memories), len(self.symbols)
        arrays = {name: np.frombuffer(getattr(self, name), "<f4").reshape(shape) for name in KINDS}
        coords = {"memory": self.memories, "symbol": ("time", self.symbols)}
        data: dict[str, Any] = {name: (("memory", "time"), each) for name, each in arrays.items()}
        return patch_map(xr.Dataset(data | {"effect": self.preferences[0] - self.preferences[1]}, coords))
