"""What notebooks measure at length of recorded runs: each study is a committed record, or is measured and recorded.

A study is known by the digest of the weights, the place of the text in its corpus, and its parameters; neither the
corpus nor a minute of computing is needed where the record is there.
"""

from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from nlstm_lab.datasets.excerpt import Excerpt, Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import (
    context,
    decoding,
    horizons,
    interventions,
    jacobians,
    lags,
    memorization,
    published,
    timescales,
)
from nlstm_lab.probes.baselines import shuffled, untrained
from nlstm_lab.probes.reading import encode, hidden_names, names, reading
from nlstm_lab.probes.records import ensure, find
from nlstm_lab.probes.tracing import trace

Order = Literal["in order", "characters", "words"]

SKIP = 1000  # steps at the start that no statistics look at: a network comes from its zero state
MOMENTS = 100  # at which a memory is cut
DISTANCE = 100  # predictions after a cut, characters that a gradient comes back
# what a text of the Treebank varies in: it has no quotation marks, and no brackets but those of <unk>
TOLD = (*decoding.NUMBERS, "word_class")
SINGLY = 20  # moments at which single cells are cut, and predictions after each
PLACES = 10  # positions of each text whose connectivity stands for all
KNOWN = 6  # characters of a word, up to which the article draws accuracy
POINTS = 150  # of a published training curve


def state_timescales(
    model: Network, excerpt: Excerpt, order: Order = "in order", trained: bool = True, seed: int = 0
) -> pd.DataFrame:
    """The autocorrelation timescales of every cell on a text (`timescales.state_timescales`), one row a cell and value.

    order: the text as it is, or its characters or words shuffled from `seed`. trained: False for the same network
    with its parameters drawn anew. The two baselines keep raw and tanh values alone.
    """

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        text = text if order == "in order" else shuffled(text, order, seed)
        network = model if trained else untrained(model, seed)
        plain = order == "in order" and trained
        values = tuple(timescales.VALUES) if plain else ("raw", "tanh")
        return timescales.state_timescales(trace(network, text, predictions=False), values, skip=SKIP)

    return ensure("timescales", measure, **_timescales_of(model, excerpt, order, trained, seed))


def known_timescales(model: Network, excerpt: Excerpt, seed: int = 0) -> pd.DataFrame | None:
    """What `state_timescales` has recorded of this network and text, or None: nothing is measured."""
    return find("timescales", **_timescales_of(model, excerpt, "in order", True, seed))


def _timescales_of(model: Network, excerpt: Excerpt, order: Order, trained: bool, seed: int) -> dict[str, Any]:
    """What a record of timescales is known by."""
    return {"weights": model, "text": str(excerpt), "order": order, "trained": trained, "skip": SKIP, "seed": seed}


def gate_timescales(model: Network, excerpt: Excerpt) -> pd.DataFrame:
    """-1 / ln f of every cell, and the local persistence of every memory, one row a cell.

    Columns as `timescales.gate_timescales`, and `persistence`: the mean over time of the diagonal of
    dc_t / dc_{t-1}, which all memories have.
    """

    def measure() -> pd.DataFrame:
        read = trace(model, excerpt.read(), predictions=False)
        read = read.isel(time=slice(SKIP, None))
        told = timescales.gate_timescales(read)
        local = jacobians.persistence(model, read).mean("time")
        told["persistence"] = [float(local.sel(memory=m, unit=u)) for m, u in zip(told.memory, told.unit, strict=True)]
        return told

    return ensure("gates", measure, weights=model, text=str(excerpt), skip=SKIP)


def cuts(
    model: Network, excerpt: Excerpt, kinds: tuple[interventions.Kind, ...] = ("zero", "swap"), seed: int = 0
) -> pd.DataFrame:
    """What is lost when each memory, and each hidden state, is cut: one row a memory, kind and distance.

    Columns: memory, kind, distance, `kl` and `loss_increase` (means over `MOMENTS` moments spread evenly over the
    text, nats a prediction). A swap takes the memory from as far into the text's second half. UsageError: the text
    ends before a half has moments behind its start.
    """

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        half = len(text) // 2
        moments = _spread(half, MOMENTS, DISTANCE)
        frames = []
        for memory in [*names(model.unit), *hidden_names(model.unit.num_layers)]:
            for kind in kinds:
                other = text[half:] if kind == "swap" else None
                cut = interventions.intervene(
                    model, text[:half], kind, memory, moments=moments, distance=DISTANCE, other=other, seed=seed
                )
                frame = cut.mean("moment").to_dataframe().reset_index()
                frame["loss_increase"] = frame["loss_cut"] - frame["loss"]
                frames.append(frame[["distance", "kl", "loss_increase"]].assign(memory=memory, kind=kind))
        return pd.concat(frames, ignore_index=True)

    return ensure("cuts", measure, weights=model, text=str(excerpt), kinds=list(kinds), seed=seed)


def _spread(half: int, count: int, distance: int) -> list[int]:
    """Moments of a text's first half, behind its start, each with so many predictions after it."""
    last = half - distance - 2
    if last < SKIP:
        needed = 2 * (SKIP + distance + 2)
        raise UsageError(f"an excerpt of {2 * half} characters is too short for cuts: read at least {needed}")
    return [int(moment) for moment in np.linspace(SKIP, last, count)]


def contents(model: Network, excerpt: Excerpt, seed: int = 0) -> pd.DataFrame:
    """What each memory, and each hidden state, tells of a text linearly (`decoding.decode`), one row a property.

    condition: "trained", and "untrained" for the same network with its parameters drawn anew from `seed`. The labels
    start where the statistics do, so that of the first characters the word before is not known.
    """
    both = {"trained": True, "untrained": False}
    told = [_contents(model, excerpt, trained, seed).assign(condition=name) for name, trained in both.items()]
    return pd.concat(told, ignore_index=True)


def _contents(model: Network, excerpt: Excerpt, trained: bool, seed: int) -> pd.DataFrame:

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        read = trace(model if trained else untrained(model, seed), text, predictions=False)
        return decoding.decode(read.isel(time=slice(SKIP, None)), text[SKIP:], TOLD)

    known = {"trained": trained, "names": TOLD, "skip": SKIP, "seed": seed}
    return ensure("contents", measure, weights=model, text=str(excerpt), **known)


def single_cells(model: Network, excerpt: Excerpt) -> pd.DataFrame:
    """What a swap of each single cell costs (`interventions.attribute`): one row a cell.

    Columns: memory, unit, `kl` and `loss_increase`. Both are means over `SINGLY` moments spread evenly over the
    text's first half, and as many predictions after each, in nats. As in `cuts`, a cell is given what it holds as far
    into the second half. UsageError: the text ends before a half has moments behind its start.
    """

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        half = len(text) // 2
        moments = _spread(half, SINGLY, SINGLY)
        swap: dict[str, Any] = {"kind": "swap", "other": text[half:], "moments": moments, "distance": SINGLY}
        cut = [interventions.attribute(model, text[:half], memory, **swap) for memory in names(model.unit)]
        return pd.concat(cut, ignore_index=True)

    return ensure("single_cells", measure, weights=model, text=str(excerpt), moments=SINGLY, distance=SINGLY)


def horizon(model: Network, excerpt: Excerpt, positions: int = 500) -> pd.DataFrame:
    """The loss against how much context the network was allowed to see: columns context, loss (nats, mean)."""

    def measure() -> pd.DataFrame:
        loss = horizons.horizon(model, excerpt.read(), positions=positions)
        return loss.mean("position").to_dataframe().reset_index()

    return ensure("horizon", measure, weights=model, text=str(excerpt), positions=positions)


def context_accuracy(model: Network, sequences: Sequences) -> pd.DataFrame:
    """Accuracy by the number of characters known (`context.context_accuracy`), one row a top and number."""
    return ensure(
        "context_accuracy",
        lambda: context.context_accuracy(model, sequences.read()),
        weights=model,
        text=str(sequences),
    )


def repetition(model: Network, sequences: Sequences) -> pd.DataFrame:
    """Characters read until a word is suggested, the first and the second time (`context.repetition`): one row a word
    that comes twice, in so many texts."""
    return ensure("repetition", lambda: context.repetition(model, sequences.read()), weights=model, text=str(sequences))


def connectivity_lags(model: Network, sequences: Sequences, seed: int = 0) -> pd.DataFrame:
    """How far the connectivity of the true word reaches, in its L2 norm (`lags.survey`), at `PLACES` of each text.

    One row a place ("all", "word start", "within word"), quantity ("mean_lag", "share_in_word", "share_at_lag") and
    lag: value, the mean over texts, with its bootstrap interval (low, high), and the number of texts.
    """

    def measure() -> pd.DataFrame:
        surveyed = lags.survey(model, sequences.read(), places=PLACES, seed=seed)
        return lags.within_seed(surveyed).rename(columns={"mean": "value"})

    return ensure("lags", measure, weights=model, text=str(sequences), places=PLACES, seed=seed)


def gradients(model: Network, sequences: Sequences, seed: int = 0) -> pd.DataFrame:
    """How gradients shrink with the distance (`memorization.gradient_by_distance`), one row a layer and distance.

    Read are the first `DISTANCE` characters of each sequence. condition: "trained", and "as initialized" for the same
    network with its parameters drawn anew. value: the mean over texts of log10 of the norm.
    """
    both = {"as initialized": False, "trained": True}
    told = [_gradients(model, sequences, trained, seed).assign(condition=name) for name, trained in both.items()]
    return pd.concat(told, ignore_index=True)


def _gradients(model: Network, sequences: Sequences, trained: bool, seed: int) -> pd.DataFrame:

    def measure() -> pd.DataFrame:
        network = model if trained else untrained(model, seed)
        codes = [encode(network, text[:DISTANCE]) for text in sequences.read() if len(text) >= DISTANCE]
        with reading(network):
            inputs = network.inputs(torch.stack(codes, 1))
        found = memorization.gradient_by_distance(network.unit, inputs.clone(), seed=seed)
        return found.groupby(lags.KEYS, sort=False)["value"].mean().reset_index()

    return ensure("gradients", measure, weights=model, text=str(sequences), trained=trained, seed=seed)


def published_lags() -> pd.DataFrame:
    """The reach of the published connectivity, as `connectivity_lags` of one text, with the column model."""

    def measure() -> pd.DataFrame:
        found = {unit: lags.measure(published.published_connectivity(unit)) for unit in published.UNITS}
        return pd.concat([frame.assign(model=unit) for unit, frame in found.items()], ignore_index=True)

    return _as_ours(ensure("published_lags", measure, source="the published article, connectivity, L2 norm"))


def published_accuracy() -> pd.DataFrame:
    """The published accuracy of up to `KNOWN` characters: model, top, known, accuracy_pct."""

    def measure() -> pd.DataFrame:
        told = published.published_accuracy()
        return told[told["known"] <= KNOWN]

    return _as_ours(ensure("published_accuracy", measure, source="the published article, accuracy", known=KNOWN))


def published_training() -> pd.DataFrame:
    """The published training curves, smoothed as published, at `POINTS` mini-batches: model, split, update, seconds,
    value (nats)."""

    def measure() -> pd.DataFrame:
        told = published.published_training().rename(
            columns={"dataset": "split", "step": "update", "sec": "seconds", "loss smooth": "value"}
        )
        steps = np.sort(told["update"].unique())
        wanted = np.unique(np.searchsorted(steps, np.geomspace(1, steps[-1], POINTS)).clip(max=len(steps) - 1))
        told = told[told["update"].isin(steps[wanted])]
        return told[["model", "split", "update", "seconds", "value"]]

    return _as_ours(ensure("published_training", measure, source="the published article, training", points=POINTS))


def _as_ours(frame: pd.DataFrame) -> pd.DataFrame:
    """Models by the names that figures know: the article's LSTM has two layers."""
    names = {"GRU": "gru", "LSTM": "stacked_lstm", "lstm": "stacked_lstm", "Nested LSTM": "nlstm"}
    return frame.assign(model=frame["model"].replace(names))
