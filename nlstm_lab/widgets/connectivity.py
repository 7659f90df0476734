"""ConnectivityExplorer: which earlier characters a prediction depends on, for several networks (Madsen's article)."""

import warnings
from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np
import traitlets
import xarray as xr
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import Scale, connectivity_sentence
from nlstm_lab.figures.style import in_order, look
from nlstm_lab.models import Network
from nlstm_lab.probes.input_gradients import CHUNK, Mode, connectivity
from nlstm_lab.runs import Run
from nlstm_lab.widgets.base import LabWidget, Step, clamped, quietly
from nlstm_lab.widgets.reading import noticed

LARGEST = 1000  # characters of a window: what a browser holds whole
TARGETS = {"true": "the true word", "predicted": "the likeliest word", "given": "one word"}
MODES = {"l2": "size of the gradient", "as_coded": "its square", "gradient_x_input": "gradient times input"}


class ConnectivityExplorer(LabWidget):
    """One sentence read by several networks: point at a character, and see what its prediction depends on.

    Another target or mode is computed when it is first chosen. Texts above `LARGEST` characters are read in windows. A
    link [...](#connectivity-WORD) in the notebook's text selects the first letter of that word; -2 behind it that of
    the second one, and -2-3 its third letter.

    Args:
        networks: By model ("gru", "lstm", "nlstm", ...), networks that predict at every character, or their runs.
        text: What they read; characters that a network does not know are mapped to the nearest that it does.
        at: The position that is selected at first; None for the middle.
        target: "true", "predicted", or "given" with a `word`.
        mode: "l2", "as_coded" (its square), or "gradient_x_input", which has signs.
        scale: "row", "figure" or "log", as in `lab.figures.connectivity_sentence`.
        word: The word that is the "given" target.

    Raises:
        UsageError: There is no network, or one is not autoregressive; the text is empty; the position, target, mode or
            word is unknown.
    """

    title = "What a prediction depends on"
    caption = "What the prediction at character {at} of “{text}” depends on; target {target}, {mode}, scale {scale}."
    snippet = (
        "lab.widgets.ConnectivityExplorer({networks}, {text}, at={at}, target={target}, mode={mode}, scale={scale}, "
        "word={word}).figure()"
    )
    scripts: ClassVar[tuple[str, ...]] = ("connectivity.js",)
    inputs: ClassVar[tuple[str, ...]] = ("text", "target", "word", "mode")
    looks: ClassVar[tuple[str, ...]] = ("at", "target", "mode", "scale", "locked")

    text = traitlets.Unicode().tag(sync=True)
    target = traitlets.Enum(list(TARGETS)).tag(sync=True)
    word = traitlets.Unicode().tag(sync=True)
    mode = traitlets.Enum(list(MODES)).tag(sync=True)
    scale = traitlets.Enum(["row", "figure", "log"]).tag(sync=True)
    at = traitlets.Int().tag(sync=True)
    locked = traitlets.Bool(False).tag(sync=True)
    about = traitlets.Dict().tag(sync=True)  # `packing.described`, and how many windows there are
    matrices = traitlets.Dict().tag(sync=True)  # by "target word mode": networks and codes of `packing.packed`

    def __init__(
        self,
        networks: Mapping[str, Network | Run],
        text: str,
        at: int | None = None,
        target: str = "true",
        mode: Mode = "l2",
        scale: Scale = "log",
        word: str = "",
    ) -> None:
        if not networks:
            raise UsageError("there is nothing to compare: hand in at least one network")
        self.made_of = {name: one for name, one in networks.items() if isinstance(one, Run)}
        self.networks = {name: one if isinstance(one, Network) else one.model() for name, one in networks.items()}
        self._measured: dict[tuple[str, ...], dict[str, xr.Dataset]] = {}  # by target, word and mode
        self._of = text
        place = len(text) // 2 if at is None else at
        if text and not 0 <= place < len(text):
            raise UsageError(f"there is no position {place}: the text has the positions 0 to {len(text) - 1}")
        super().__init__(text=text, target=target, word=word, mode=mode, scale=scale, at=place)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        data = self._read(given, step)
        windows = max(int(one.attrs["windows"]) for one in data.values())
        read = ["".join(map(str, one["read"].values)) for one in data.values()]
        return {
            "about": {**described(data), "windows": windows, "longest": LARGEST, "targets": TARGETS, "modes": MODES},
            "matrices": {" ".join(each): packed(matrix) for each, matrix in self._measured.items()},
            "notice": "; ".join(filter(None, dict.fromkeys(noticed(given["text"], each) for each in read))),
            **clamped(self, given, "at", len(read[0]) - 1),
        }

    def _read(self, given: dict[str, Any], step: Step = quietly) -> dict[str, xr.Dataset]:
        """The connectivity of a choice, by network; it is measured once, and that of other texts is forgotten."""
        text, target = given["text"], given["target"]
        # the square is computed from the norm
        mode = "l2" if given["mode"] == "as_coded" else given["mode"]
        key = target, given["word"] if target == "given" else "", mode
        measured = self._measured if text == self._of else {}
        if key not in measured:
            if target == "given" and not given["word"]:
                raise UsageError("which word is the target? type it into the field beside the target")
            asked: dict[str, Any] = {"given": key[1]} if target == "given" else {"target": target}
            asked |= {"mode": mode, "unknown": "map", "window": LARGEST, "chunk": CHUNK}
            done, total, found = 0, max(len(text) * len(self.networks), 1), {}
            for name in in_order(self.networks):

                def read(positions: int, doing: str = f"{look(name).label}: {TARGETS[target]}, {MODES[mode]}") -> None:
                    nonlocal done
                    done += positions
                    step(done / total, doing)

                with warnings.catch_warnings():  # the widget itself tells of windows
                    warnings.simplefilter("ignore", UserWarning)
                    found[name] = connectivity(self.networks[name], text, done=read, **asked)
            measured = {**measured, key: found}
        self._measured, self._of = measured, text
        return measured[key]

    def draw(self) -> Figure:
        return connectivity_sentence(self.data(), self.at, cast(Scale, self.scale))

    def data(self) -> dict[str, xr.Dataset]:
        """What is shown, by model, as `lab.probes.connectivity` returns it."""
        measured = self._read(self.settled)
        if self.settled["mode"] != "as_coded":
            return measured
        squares = {name: one.assign(connectivity=one["connectivity"] ** 2) for name, one in measured.items()}
        return {name: one.assign_attrs(mode="as_coded") for name, one in squares.items()}

    def shown(self) -> dict[str, Any]:
        """Where Python is absent, every target and mode must be there already: they are computed now."""
        self._read(self.settled)
        for target, mode in product(("true", "predicted"), ("l2", "gradient_x_input")):
            self._read({**self.settled, "target": target, "mode": mode})
        return {**super().shown(), "matrices": {" ".join(key): packed(each) for key, each in self._measured.items()}}


FULL = 32767  # the code of a position's largest connectivity


def described(data: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """What does not depend on target and mode, as JSON values; data: by model, the connectivity of one text."""
    first = data[in_order(data)[0]]
    networks = [
        {
            "name": name,
            "label": look(name).label,
            "colour": look(name).colour,
            "read": [str(symbol) for symbol in data[name]["read"].values],
            "predictions": data[name]["prediction"].values.tolist(),
            "probabilities": np.round(data[name]["probability"].values, 5).tolist(),
        }
        for name in in_order(data)
    ]
    places = {name: first[name].values.tolist() for name in ("word", "word_start", "known", "window")}
    return {"symbols": [str(symbol) for symbol in first["symbol"].values], **places, "networks": networks}


def packed(data: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """The matrices of one target and mode: `networks`, in the order of `described`, and all of their `codes` (int16).

    The future is not sent. A number is the square root of its share of the position's largest, with its sign.
    """
    about, codes = [], []
    for name in in_order(data):
        values, window = data[name]["connectivity"].values, data[name]["window"].values
        largest = np.max(np.abs(values), axis=1)  # NaN where nothing was computed
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(values / largest[:, None])
        inside = np.arange(values.shape[1]) <= (np.arange(len(values)) - window)[:, None]
        codes.append(np.rint(FULL * np.sign(share) * np.sqrt(np.abs(share)))[inside])
        target = [str(word) for word in data[name]["target"].values]
        about.append({"target": target, "p": _numbers(data[name]["p"].values, 4), "largest": _numbers(largest, 6)})
    return {"networks": about, "codes": np.concatenate(codes).astype("<i2").tobytes()}


def _numbers(values: np.ndarray, digits: int) -> list[float | None]:
    """As JSON knows them, to so many digits."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
