"""What notebooks measure at length of recorded runs: each study is a committed record, or is measured and recorded.

A study is known by the digest of the weights, the place of the text in its corpus, and its parameters; neither the
corpus nor a minute of computing is needed where the record is there.
"""

from typing import Any, Literal

import numpy as np
import pandas as pd

from nlstm_lab.datasets.excerpt import Excerpt
from nlstm_lab.models import Network
from nlstm_lab.probes import interventions, jacobians, timescales
from nlstm_lab.probes.baselines import shuffled, untrained
from nlstm_lab.probes.reading import hidden_names, names
from nlstm_lab.probes.records import ensure, find
from nlstm_lab.probes.tracing import trace

Order = Literal["in order", "characters", "words"]

SKIP = 1000  # steps at the start that no statistics look at: a network comes from its zero state
MOMENTS = 100  # at which a memory is cut
DISTANCE = 100  # predictions after a cut


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
    text, nats a prediction). A swap takes the memory from as far into the text's second half.
    """

    def measure() -> pd.DataFrame:
        text = excerpt.read()
        half = len(text) // 2
        moments = np.linspace(SKIP, half - DISTANCE - 2, MOMENTS).astype(int).tolist()
        frames = []
        for memory in [*names(model.unit), *hidden_names(model.unit)]:
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


def horizon(model: Network, excerpt: Excerpt, positions: int = 500) -> pd.DataFrame:
    """The loss against how much context the network was allowed to see: columns context, loss (nats, mean)."""

    def measure() -> pd.DataFrame:
        loss = interventions.horizon(model, excerpt.read(), positions=positions)
        return loss.mean("position").to_dataframe().reset_index()

    return ensure("horizon", measure, weights=model, text=str(excerpt), positions=positions)
