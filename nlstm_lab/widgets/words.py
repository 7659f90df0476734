"""AutocompleteDemo and ConnectivityExplorer: networks that predict words, side by side (Madsen's article)."""

import unicodedata
from collections.abc import Mapping
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from traitlets import Bool, Enum, Int, Unicode

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import Shading, connectivity_sentence
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.style import MONO, PAGE, in_order, look
from nlstm_lab.models import Network
from nlstm_lab.probes.lags import LARGEST, Mode, connectivity
from nlstm_lab.probes.reading import LONGEST, mapped_to, vocabulary_of
from nlstm_lab.probes.words import Completer
from nlstm_lab.runs import Run
from nlstm_lab.widgets.base import LabWidget, Step, clamped, quietly
from nlstm_lab.widgets.reading import leniently

SHOWN = 90  # characters of the text, its last, above a figure of completions
WORDS = 5  # that each network shows
TARGETS = {"true": "the true word", "predicted": "the likeliest word", "given": "one word"}
MODES = {"l2": "size of the gradient", "gradient_x_input": "gradient times input"}
ByModel = Mapping[str, Network | Run]  # by model ("gru", "lstm", "nlstm", ...)


def _networks(widget: LabWidget, given: ByModel) -> dict[str, Network]:
    """The networks of a widget, in the order of every figure."""
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, Run | Network) for one in given.values()):
        raise UsageError("hand in at least one network, or its run, by its model: {'lstm': run}")
    widget.made_of = {name: one for name, one in given.items() if isinstance(one, Run)}
    return {name: one if isinstance(one := given[name], Network) else one.model() for name in in_order(given)}


class AutocompleteDemo(LabWidget):
    """Type, and see the likeliest words of every network as you type (Madsen's article, its first figure).

    A network maps characters that it does not know to the nearest that it does, and reads the last words of a long
    text, within `LONGEST` characters. A page without Python holds `text` and every prefix of it: one walks along it
    instead of typing.

    Args:
        networks: By model ("gru", "lstm", "nlstm", ...), networks that predict at every character, or their runs.
        text: To begin with.

    Raises:
        UsageError: There is no network, or one does not predict at every character.
    """

    title = "Autocomplete"
    caption = "What the networks take for the next word after “{text}”."
    snippet = "lab.widgets.AutocompleteDemo({networks}, {text}).figure()"
    scripts = ("completion.js",)
    inputs = ("text", "at")
    looks = ("at",)

    text, at = Unicode(), Int()  # what stands before the caret is read

    def __init__(self, networks: ByModel, text: str = "the study of gram") -> None:
        self.completers = {name: Completer(one) for name, one in _networks(self, networks).items()}
        # `whole`: whether words, not characters, are predicted
        shown = [look(name)._asdict() | {"whole": one.model.words is not None} for name, one in self.completers.items()]
        super().__init__(text=text, at=len(text), compared=shown, longest=LONGEST)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        at = min(max(given["at"], 0), len(given["text"]))
        return {"at": at, "suggestions": self._complete(given["text"][:at])}

    def _complete(self, text: str) -> list[dict[str, Any]]:
        """Of each network the text as it was read, and words with their probabilities."""
        each = [(one, mapped_to(one.vocabulary, text) if text else "") for one in self.completers.values()]
        return [{"read": read, "words": [[word, round(p, 5)] for word, p in one(read, WORDS)]} for one, read in each]

    def draw(self) -> Figure:
        found = zip(self.completers, self.suggestions, strict=True)
        rows = [(name, k, *each) for name, one in found for k, each in enumerate(one["words"], 1)]
        table = pd.DataFrame(rows, columns=["model", "place", "word", "probability"])
        text = self.settled["text"][: self.settled["at"]].replace("\n", " ").strip()
        figure, axes = subplots(1, len(self.completers), width=PAGE, height=0.8 + 0.17 * WORDS, sharex=True)
        words = {"family": MONO, "parse_math": False, "x": 0.01, "ha": "left"}
        figure.suptitle(f"{text if len(text) <= SHOWN else '…' + text[-SHOWN:]}▏", **words)
        for panel, (name, here) in zip(axes[0], table.groupby("model", sort=False), strict=True):
            label, colour = look(str(name))
            panel.barh(here["place"], here["probability"], color=colour, alpha=0.35)
            for place, word, p in here[["place", "word", "probability"]].itertuples(index=False):
                panel.text(0.015, place, word, va="center_baseline", parse_math=False)
                panel.text(1, place, f"{100 * p:.1f} %", va="center_baseline", ha="right")
            panel.set_title(label, color=colour, fontweight="bold")
            panel.set(xlim=(0, 1), ylim=(WORDS + 0.6, 0.4), yticks=[], xlabel="probability among all words")
        return attach(figure, table, {"probability": LIVE})

    def shown(self) -> dict[str, Any]:
        """With what every prefix of the text is completed to."""
        text = self.settled["text"]
        return {**super().shown(), "prefixes": [self._complete(text[:at]) for at in range(len(text) + 1)]}


class ConnectivityExplorer(LabWidget):
    """One sentence read by several networks: point at a character, and see what its prediction depends on.

    Another target or mode is computed when it is first chosen. A text is shortened to `LARGEST` characters. A
    link [...](#connectivity-WORD) in the notebook's text selects the first letter of that word; -2 behind it that of
    the second one, and -2-3 its third letter.

    Args:
        networks: By model ("gru", "lstm", "nlstm", ...), networks that predict at every character, or their runs.
        text: What they read; characters that a network does not know are mapped to the nearest that it does.
        at: The position that is selected at first; None for the middle.
        target: "true", "predicted", or "given" with a `word`.
        mode: "l2", or "gradient_x_input", which has signs.
        scale: "row", "figure" or "log", as in `lab.figures.connectivity_sentence`.
        word: The word that is the "given" target.

    Raises:
        UsageError: There is no network, or one is not autoregressive; the text is empty; the position, target, mode or
            word is unknown.
    """

    title = "What a prediction depends on"
    caption = "What the prediction at character {at} of “{text}” depends on; target {target}, {mode}, scale {scale}."
    snippet = "lab.widgets.ConnectivityExplorer({networks}, {text}, at={at}, target={target}, mode={mode}, "
    snippet += "scale={scale}, word={word}).figure()"
    scripts = ("connectivity.js",)
    inputs = ("text", "target", "word", "mode")
    looks = ("at", "target", "mode", "scale", "locked")

    text, word, at, locked = Unicode(), Unicode(), Int(), Bool(False)
    target, mode, scale = Enum([*TARGETS]), Enum([*MODES]), Enum(["row", "figure", "log"])

    def __init__(
        self,
        networks: ByModel,
        text: str,
        at: int | None = None,
        target: str = "true",
        mode: Mode = "l2",
        scale: Shading = "log",
        word: str = "",
    ) -> None:
        self.networks = _networks(self, networks)
        self._measured: dict[tuple[str, ...], dict[str, xr.Dataset]] = {}  # by text, target, word and mode
        length = len(unicodedata.normalize("NFC", text[:LARGEST]))
        place = length // 2 if at is None else at
        if text and not 0 <= place < length:
            raise UsageError(f"there is no position {place}: the text has the positions 0 to {length - 1}")
        super().__init__(text=text, target=target, word=word, mode=mode, scale=scale, at=place)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        about = described(self._read(given, step))
        read = [leniently(vocabulary_of(one), given["text"], LARGEST)[1] for one in self.networks.values()]
        return {
            "about": {**about, "targets": TARGETS, "modes": MODES},
            "matrices": self._matrices(),
            "notice": "; ".join(filter(None, dict.fromkeys(read))),
            **clamped(self, at=len(about["symbols"]) - 1),
        }

    def _read(self, given: dict[str, Any], step: Step = quietly) -> dict[str, xr.Dataset]:
        """The connectivity of a choice, by network; it is measured once, and that of other texts is forgotten."""
        text, target, mode = given["text"], given["target"], given["mode"]
        key = text, target, given["word"] if target == "given" else "", mode
        if key not in self._measured:
            if target == "given" and not given["word"]:
                raise UsageError("which word is the target? type it into the field beside the target")
            asked: dict[str, Any] = {"given": given["word"]} if target == "given" else {"target": target}
            doing, count = f"{TARGETS[target]}, {MODES[mode]}", len(self.networks)
            found, symbols = {}, ("time", [*unicodedata.normalize("NFC", text[:LARGEST])])  # what was typed is shown
            for k, (name, one) in enumerate(self.networks.items()):

                def watch(share: float, k: int = k, name: str = name) -> None:
                    step((k + share) / count, f"{look(name).label}: {doing}")

                heard = mapped_to(vocabulary_of(one), text[:LARGEST])
                data = connectivity(one, heard, mode=mode, watch=watch, **asked)
                found[name] = data.assign_coords(symbol=symbols)
            self._measured = {other: one for other, one in self._measured.items() if other[0] == text} | {key: found}
        return self._measured[key]

    def _matrices(self) -> dict[str, Any]:
        return {" ".join(key[1:]): packed(each) for key, each in self._measured.items()}

    def draw(self) -> Figure:
        return connectivity_sentence(self._read(self.settled), self.at, cast(Shading, self.scale))

    def shown(self) -> dict[str, Any]:
        """With every target and mode, which Python is asked for elsewhere."""
        self._read(self.settled)
        for target, mode in product(("true", "predicted"), MODES):
            self._read({**self.settled, "target": target, "mode": mode})
        return {**super().shown(), "matrices": self._matrices()}


def described(data: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """What does not depend on target and mode, as JSON values; data: by model, the connectivity of one text."""
    first = next(iter(data.values()))
    networks = [
        {
            **look(name)._asdict(),
            "predictions": one["prediction"].values.tolist(),
            "probabilities": np.round(one["probability"].values, 5).tolist(),
        }
        for name, one in data.items()
    ]
    places = {name: first[name].values.tolist() for name in ("word", "known")}
    return {"symbols": first["symbol"].values.tolist(), **places, "networks": networks}


def packed(data: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """The matrices of one target and mode, network by network in the order of `described`: f4 `p` and `largest`
    [network, time], NaN where there is no target, and f2 `shares` of the largest [network, time, source]."""
    values = np.stack([one["connectivity"].values for one in data.values()])
    largest = np.abs(values).max(-1)
    with np.errstate(invalid="ignore"):
        shares = np.nan_to_num(values / largest[..., None])
    arrays = {"p": np.stack([one["p"].values for one in data.values()]).astype("<f4"), "largest": largest.astype("<f4")}
    held = {name: array.tobytes() for name, array in (arrays | {"shares": shares.astype("<f2")}).items()}
    return {"targets": [one["target"].values.tolist() for one in data.values()], **held}
