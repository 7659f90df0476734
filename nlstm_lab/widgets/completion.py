"""AutocompleteDemo: what several networks take for the next word, side by side, while somebody types."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
import traitlets
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.style import MONO, PAGE, in_order, look
from nlstm_lab.models import Network
from nlstm_lab.probes.texts import LONGEST, encode_leniently
from nlstm_lab.probes.words import Completer
from nlstm_lab.runs import Run
from nlstm_lab.widgets.base import LabWidget, Step

SHOWN = 90  # characters of the text, its last, above a figure


class AutocompleteDemo(LabWidget):
    """Type, and see the likeliest words of every network as you type (Madsen's article, its first figure).

    A network maps characters that it does not know to the nearest that it does, and reads the last words of a long
    text, within `LONGEST` characters. A page without Python holds `text` and every prefix of it: one walks along it
    instead of typing.

    Args:
        networks: By model ("gru", "lstm", "nlstm", ...), networks that predict at every character, or their runs.
        text: To begin with.
        k: How many words each network shows.

    Raises:
        UsageError: There is no network, or one does not predict at every character; k is below 1.
    """

    title = "Autocomplete"
    caption = "What the networks take for the next word after “{text}”."
    snippet = "lab.widgets.AutocompleteDemo({networks}, {text}).figure()"
    scripts: ClassVar[tuple[str, ...]] = ("completion.js",)
    inputs: ClassVar[tuple[str, ...]] = ("text", "at")
    looks: ClassVar[tuple[str, ...]] = ("at",)

    text = traitlets.Unicode().tag(sync=True)
    at = traitlets.Int().tag(sync=True)  # the caret: what stands before it is read
    # of each network: label, colour, and whether words (or characters) are predicted
    networks: traitlets.List[Any] = traitlets.List().tag(sync=True)
    # of each network: {"read": as it was read, "words": [[word, p], ...]}
    suggestions: traitlets.List[Any] = traitlets.List().tag(sync=True)
    # `suggestions` for every caret, where there is no Python
    prefixes: traitlets.List[Any] = traitlets.List().tag(sync=True)
    longest = traitlets.Int(LONGEST).tag(sync=True)

    def __init__(self, networks: Mapping[str, Network | Run], text: str = "the study of gram", k: int = 5) -> None:
        if not networks:
            raise UsageError("there is nothing to compare: hand in at least one network")
        self.k, self.made_of = k, {name: one for name, one in networks.items() if isinstance(one, Run)}
        models = {name: one.model() if isinstance(one, Run) else one for name, one in networks.items()}
        self.completers = {name: Completer(models[name], unknown="map") for name in in_order(models)}
        described = [
            {"label": look(name).label, "colour": look(name).colour, "whole": each.model.words is not None}
            for name, each in self.completers.items()
        ]
        super().__init__(text=text, at=len(text), networks=described)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        at = min(max(given["at"], 0), len(given["text"]))
        return {"at": at, "suggestions": [self._complete(name, given["text"][:at]) for name in self.completers]}

    def _complete(self, name: str, text: str) -> dict[str, Any]:
        completer = self.completers[name]
        words = [[word, round(p, 5)] for word, p in completer(text, self.k)]
        read = encode_leniently(completer.vocabulary, text, "map")[1] if text else ""
        return {"read": read, "words": words}

    def draw(self) -> Figure:
        rows = [
            (name, place, word, p)
            for name, one in zip(self.completers, self.suggestions, strict=True)
            for place, (word, p) in enumerate(one["words"], 1)
        ]
        table = pd.DataFrame(rows, columns=["model", "place", "word", "probability"])
        text = self.settled["text"][: self.settled["at"]].replace("\n", " ").strip()
        figure, axes = subplots(1, len(self.completers), width=PAGE, height=0.8 + 0.17 * self.k, sharex=True)
        words = {"family": MONO, "parse_math": False, "x": 0.01, "ha": "left"}
        figure.suptitle(f"{text if len(text) <= SHOWN else '…' + text[-SHOWN:]}▏", **words)
        for panel, name in zip(axes[0], self.completers, strict=True):
            here = table[table["model"] == name]
            panel.barh(here["place"], here["probability"], color=look(name).colour, alpha=0.35)
            for place, word, p in here[["place", "word", "probability"]].itertuples(index=False):
                panel.text(0.015, place, word, va="center_baseline", parse_math=False)
                panel.text(1, place, f"{100 * p:.1f} %", va="center_baseline", ha="right")
            panel.set_title(look(name).label, color=look(name).colour, fontweight="bold")
            panel.set(xlim=(0, 1), ylim=(self.k + 0.6, 0.4), yticks=[], xlabel="probability among all words")
        return attach(figure, table, {"probability": LIVE})

    def shown(self) -> dict[str, Any]:
        """With what every prefix of the text is completed to."""
        text = self.settled["text"]
        prefixes = [[self._complete(name, text[:at]) for name in self.completers] for at in range(len(text) + 1)]
        return {**super().shown(), "prefixes": prefixes}
