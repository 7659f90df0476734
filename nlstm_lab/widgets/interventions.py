"""InterventionLab and PatchLab: what the network predicts when a memory is ablated, or put into another reading."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from matplotlib.figure import Figure
from traitlets import Bool, Enum, Int, Unicode

from nlstm_lab import probes
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import KINDS, patch_map
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.style import MONO, PAGE, glyph
from nlstm_lab.probes.edits import BEFORE
from nlstm_lab.probes.interventions import masked, refuse_sampling
from nlstm_lab.probes.reading import encode, hidden_names, hidden_states, memory_states, names, reading, rows, states_at
from nlstm_lab.settings import choice, counted
from nlstm_lab.widgets.base import Step, clamped
from nlstm_lab.widgets.reading import Array, Given, ReadingWidget, next_symbols, of_trace, surprise

DISTANCE = 60  # predictions that are made after an ablation: few networks remember it longer
SHOWN = 12  # characters before the moment, in a figure
OTHER = "the company said it had agreed to buy the rest of the stock in the first quarter of the year "
EFFECT = 0.1  # nats that the differing word must move the preference by: less cannot be shared out
COMMON = 120  # characters that both texts of a patch may end with: the work grows with the square
ABLATIONS = {"zero": "set to zero", "freeze": "frozen", "resample": "resampled from another text"}


class InterventionLab(ReadingWidget):
    """One ablation of one memory, and its effect on every prediction that follows.

    `figure()` draws the surprisal of every prediction, intact and after the ablation, and their divergence.

    Args:
        runs: A run, or several among which the widget chooses; networks of `lab.models.wrap` likewise.
        text: What is read, unknown characters mapped to known ones.
        other: The text whose memory is put in by a resample ablation.
        memory: As a trace calls it, "inner", "layer 2", "h"; None for the innermost or highest.
        kind: "zero", "freeze" (from there on) or "resample": what it is after as many characters of `other`.
        moment: How many characters have been read by then; None for half of them.
        unit: One alone; -1 for all.

    Raises:
        UsageError: There is no such unit or kind; the text has less than two characters, or a network predicts none.
    """

    title = "Intervention lab"
    caption = "Ablation ({kind}) of {memory} in {run}, after {moment} characters of “{text}”; unit {unit} (-1: all)."
    snippet = "lab.widgets.InterventionLab({load}, {text}, other={other}, memory={memory}, kind={kind}, "
    snippet += "moment={moment}, unit={unit}).figure()"
    scripts = ("reading.js", "unitmap.js", "guesses.js", "interventions.js")
    inputs = ("run", "text", "other", "memory", "kind", "moment", "unit", "ranking")
    looks = ("step", "colouring")

    text, other, memory, kind = Unicode(), Unicode(), Unicode(), Enum(tuple(ABLATIONS), "zero")
    moment, unit = Int(), Int()
    ranking = Bool(False)  # whether the units are ablated one by one
    step = Int(-1)  # the character whose prediction is looked at; -1: the ablation's
    colouring = Enum(("loss", "divergence"), "loss")  # what colours the text
    units = Int()

    def __init__(
        self,
        runs: Given,
        text: str,
        *,
        other: str = "",
        memory: str | None = None,
        kind: str = "zero",
        moment: int | None = None,
        unit: int = -1,
    ) -> None:
        state: dict[str, Any] = {"memory": memory or "", "kind": kind, "moment": -1 if moment is None else moment}
        state["other"] = other or OTHER * (1 + len(text) // len(OTHER))
        super().__init__(runs, text=text, unit=unit, ranking=False, **state)
        choice(self.memory if memory is None else memory, "memory", self.memories)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        text, notice = self._networks.read(given["run"], given["text"])
        read, network = self._networks.trace(given["run"], text, step), self._networks[given["run"]]
        memories = [*names(network.recurrent)[::-1], *hidden_names(network.recurrent.num_layers)[::-1]]
        memory = given["memory"] if given["memory"] in memories else memories[0]
        unit, size = given["unit"], network.recurrent.hidden_size
        if size <= unit < self.units:  # a unit of the network that was shown before
            unit = size - 1
        counted(unit, "unit (-1: all)", -1, size - 1)
        if len(text) < 2:
            raise UsageError("an ablation needs a text of at least two characters: type some more")
        refuse_sampling(network)
        asked = {**given, "text": text, "memory": memory, "unit": unit}
        moment = max(given["moment"], 1) if given["moment"] >= 0 else len(text) // 2
        moment = asked["moment"] = min(moment, len(text) - 1)
        changed, divergence = self._departure(asked, read, step)
        costs = self._departure(asked, read, step, each=True)[1].mean(1) if given["ranking"] else np.zeros(0)
        return {
            **of_trace(read),
            **next_symbols(changed, before="ablated_"),
            **{"notice": notice, "memory": memory, "unit": unit, "moment": moment, "ablated_at": moment},
            **clamped(self, step=len(text) - 1),
            "memories": memories,
            "units": size,
            # what comes after the last of these is part of the text, unless the text ends there
            "ablated_surprises": surprise(read, changed, after=moment).tobytes(),
            "divergences": divergence.astype("<f4").tobytes(),  # D(intact | ablated), nats
            "costs": costs.astype("<f4").tobytes(),  # nats a prediction, of each unit ablated alone
        }

    def _departure(self, asked: dict[str, Any], read: Any, step: Step, each: bool = False) -> tuple[Array, Array]:
        """What is predicted after it (or after that of `each` unit alone), log p, and its divergence in nats."""
        network, moment = self._networks[asked["run"]], asked["moment"]
        codes = encode(network, asked["text"])[: moment + DISTANCE]
        where, edit = self._edit({**asked, "unit": -1} if each else asked, step)
        with reading(network):
            state = states_at(network, codes, [moment])
        step(0.9, "reading on after the ablation")
        texts: Any = codes[moment:]
        if each:
            size = network.recurrent.hidden_size
            edit = partial(masked, torch.eye(size, dtype=torch.bool, device=codes.device), edit)
            texts, state = [texts] * size, rows(state, [0] * size)
        logits = probes.run(network, texts, [(where, edit)], [], state=state).logits
        changed = logits.float().log_softmax(-1).cpu().numpy()  # a language model's
        intact = read["log_p"].values[moment : len(codes)]
        return changed, (np.exp(intact) * (intact - changed)).sum(-1).clip(0)

    def _edit(self, asked: dict[str, Any], step: Step) -> tuple[Any, Any]:
        """Where and what the edit is that `probes.run` takes, of a reading that goes on from the moment."""
        moment, kind, units = asked["moment"], asked["kind"], None if asked["unit"] < 0 else [asked["unit"]]
        where = asked["memory"] + BEFORE, slice(None) if kind == "freeze" else 0, units
        if kind != "resample":
            return where, probes.zero if kind == "zero" else probes.freeze()
        words, _ = self._networks.read(asked["run"], asked["other"])
        if len(words) < moment:
            few = f"the other text has {len(words)} characters, and the ablation comes after {moment}"
            raise UsageError(f"{few}: lengthen it, or ablate earlier")
        other = self._networks.trace(asked["run"], words, step)
        held = (memory_states(other) | hidden_states(other))[asked["memory"]].transpose("time", "unit")
        return where, probes.put(torch.tensor(held.values[moment - 1][units or slice(None)]))

    def draw(self) -> Figure:
        memory, unit, kind = (self.settled[name] for name in ("memory", "unit", "kind"))
        at, bits = self.ablated_at, np.frombuffer(self.surprises, "<f4")
        effect = pd.DataFrame({"symbol": self.symbols, "bits": bits}).rename_axis("time")
        for name, held in (("bits_ablated", self.ablated_surprises), ("divergence", self.divergences)):
            values = np.frombuffer(held, "<f4")
            effect[name] = pd.Series(values, np.arange(at, at + len(values)))
        effect = effect[max(at - SHOWN, 0) : at + len(values)].reset_index()
        time = effect["time"]
        figure, axes = subplots(2, 1, width=PAGE, height=2.9, sharex=True)
        upper, lower = axes[:, 0]
        upper.plot(time, effect["bits"], color="#4d4d4d", label="intact")
        upper.plot(time, effect["bits_ablated"], color="#b2182b", label="ablated", linestyle=(0, (3.5, 1.5)))
        upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        upper.set(ylabel="surprisal (bits)", title=f"{memory}{'' if unit < 0 else f', unit {unit},'} {ABLATIONS[kind]}")
        lower.plot(time, effect["divergence"], color="#b2182b")
        lower.set(ylabel="divergence (nats)", ylim=(0, None), xlim=(time.min() - 0.5, time.max() + 0.5))
        for panel in axes[:, 0]:
            panel.axvline(at - 0.5, color="#808080", linewidth=0.6, linestyle=(0, (3, 1.5)))
            panel.grid(axis="y")
            panel.tick_params(axis="x", length=0)
        # the point above each character is of the prediction of the next
        lower.set_xticks(time, [glyph(symbol) for symbol in effect["symbol"]], family=MONO)
        return attach(figure, effect, dict.fromkeys(("bits", "bits_ablated", "divergence"), LIVE))


class PatchLab(ReadingWidget):
    """A patch map of two texts that differ in a word and end alike, with the prediction behind each of its squares.

    `figure()` is `lab.figures.patch_map`.

    Args:
        runs: A run, or several among which the widget chooses; networks of `lab.models.wrap` likewise.
        clean, corrupted: The two texts.
        right, wrong: The next characters whose preference is looked at; by default those whose probability the
            difference between the texts raises and lowers most.

    Raises:
        UsageError: The texts end alike in over `COMMON` characters, or a network predicts no characters.
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

    def __init__(self, runs: Given, clean: str, corrupted: str, *, right: str = "", wrong: str = "") -> None:
        super().__init__(runs, clean=clean, corrupted=corrupted, right=right, wrong=wrong)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        read = [self._networks.read(given["run"], given[name]) for name in ("clean", "corrupted")]
        (clean, _), (corrupted, _) = read
        if len(clean) > COMMON and clean[-COMMON - 1 :] == corrupted[-COMMON - 1 :]:
            raise UsageError(f"the texts end alike in over {COMMON} characters, which takes long: shorten that end")
        ends = xr.concat([self._networks.trace(given["run"], text, step)["log_p"][-1] for text, _ in read], "text")
        symbols = [*map(str, ends["vocabulary"].values)]
        gain = np.exp(ends[0].values) - np.exp(ends[1].values)
        right, wrong = given["right"] or symbols[int(gain.argmax())], given["wrong"] or symbols[int(gain.argmin())]
        found = probes.patch(
            self._networks[given["run"]],
            (clean, corrupted, right, wrong),
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
