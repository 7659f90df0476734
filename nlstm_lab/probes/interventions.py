"""What is lost when a memory is ablated at a moment, and how far back a network looks.

A memory is named as in a trace, a hidden state `h` or `layer 2 h`. Losses and divergences are in nats a prediction;
distance 0 is the first prediction after the moment.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.edits import Edit, changed, put, zero
from nlstm_lab.probes.reading import (
    BURN_IN,
    Text,
    called,
    component,
    encode,
    encode_symbols,
    every_name,
    reading,
    rows,
    states_at,
)
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.settings import counted, counts

KINDS = ("zero", "swap")  # as records call an ablation and a resample ablation
MOMENTS = 100  # at which a memory is ablated
DISTANCE = 100  # predictions after an ablation
ROWS = 64  # texts that are continued side by side


def intervene(
    model: Network,
    text: Text,
    memory: str,
    *,
    moments: Sequence[int],
    distance: int = 100,
    other: Text | None = None,
) -> xr.Dataset:
    """Ablate a memory at each of the moments (each in a reading of its own), and read on for `distance` symbols.

    Args:
        memory: A memory ("inner") or hidden state ("layer 2 h"), as a trace names them.
        moments: How many symbols are read before each ablation, from 1 on.
        distance: How many predictions are compared: the first, at 0, is made by the next symbol that is read.
        other: For a resample ablation, which puts in the state after as many symbols of this text; None for zeros.

    Returns:
        `loss` (intact), `loss_ablated` and `kl`, the divergence of the ablated prediction from the intact one,
        D(intact | ablated), each (moment, distance).

    Raises:
        UsageError: The network lacks the memory, does not predict the symbols that it reads, or samples its boundaries;
            a moment is too early or too late, or the text `other` is too short.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = "the company said that it would not sell the old bank " * 20
    >>> found = lab.probes.intervene(model, text, "inner", moments=[300, 500], distance=20)
    >>> dict(found.kl.sizes), bool(found.kl.max() > 0.01)
    ({'moment': 2, 'distance': 20}, True)
    """
    (effects,) = _effects(model, text, memory, moments, distance, other)
    arrays = ((("moment", "distance"), each.T) for each in effects)
    data = dict(zip(("loss", "loss_ablated", "kl"), arrays, strict=True))
    coords = {"moment": list(moments), "distance": np.arange(distance)}
    return xr.Dataset(data, coords, {"model": model.name, "memory": memory})


def unit_ablations(
    model: Network,
    text: Text,
    memory: str,
    *,
    moments: Sequence[int],
    distance: int = 20,
    other: Text | None = None,
) -> pd.DataFrame:
    """Ablate each unit of a memory alone, at each moment: a unit whose past nothing reads has no effect.

    Args:
        memory, moments, distance, other: As of `intervene`.

    Returns:
        One row a unit: memory, unit, `kl` and `loss_increase`, means over moments and the `distance` predictions that
        follow.
    """
    pieces = _effects(model, text, memory, moments, distance, other, each=True)
    kl = np.mean([kl.mean(0) for _, _, kl in pieces], 0)
    more = np.mean([(after - before).mean(0) for before, after, _ in pieces], 0)
    return pd.DataFrame({"memory": memory, "unit": np.arange(len(kl)), "kl": kl, "loss_increase": more})


def refuse_sampling(model: Network) -> None:
    """UsageError where boundaries are sampled: the intact and the ablated reading would differ in their draws."""
    if any(getattr(cell, "boundary", "") == "sample" and not cell.top for cell in model.recurrent.cells):
        raise UsageError(f"{called(model)} samples its boundaries: set its cells' `boundary` to 'step'")


def _effects(
    model: Network, text: Text, memory: str, moments: Any, distance: int, other: Text | None, each: bool = False
) -> list[tuple[np.ndarray, ...]]:
    """Loss intact, loss ablated and divergence [distance, rows] of moments side by side; or, moment by moment, of the
    ablations of `each` unit alone."""
    codes, size = encode_symbols(model, text), model.recurrent.hidden_size
    refuse_sampling(model)
    distance = counted(distance, "distance", 1, len(codes) - 2)
    moments = counts(moments, "moments", 1, len(codes) - distance - 1)
    held = codes if other is None else encode(model, other, "other")
    if len(held) < max(moments):
        raise UsageError(f"`other` must have at least {max(moments)} symbols, as many as are read, not {len(held)}")
    mask = torch.eye(size, device=codes.device) > 0 if each else torch.ones(1, 1, dtype=torch.bool, device=codes.device)
    found: list[tuple[np.ndarray, ...]] = []
    with reading(model):
        states = states_at(model, codes, moments)
        donors = states if other is None else states_at(model, held, moments)
        every = range(len(moments))
        for batch in [[k] * size for k in every] if each else [[*every]]:
            x, targets = continuations(codes, [moments[k] for k in batch], distance)
            alone = 1 if each else len(batch)  # the intact reading is one for all units
            intact = predictions(model, x[:, :alone], rows(states, batch[:alone])).expand(-1, len(batch), -1)
            state, donor = rows(states, batch), rows(donors, batch)
            edit = zero if other is None else put(component(model.recurrent, donor, memory))
            state = changed(model.recurrent, state, memory, partial(masked, mask, edit))
            found.append(effect(intact, predictions(model, x, state), targets))
    return found


def continuations(codes: Tensor, moments: Sequence[int], distance: int) -> tuple[Tensor, Tensor]:
    """What is read from each moment on, and what is to be predicted, [distance, moments] each."""
    index = torch.arange(distance, device=codes.device)[:, None] + torch.tensor(moments, device=codes.device)
    return codes[index], codes[index + 1]


def predictions(model: Network, x: Tensor, state: Any) -> Tensor:
    """log p of what comes next, [T, B, V]."""
    return torch.log_softmax(model(x, state)[0].float(), -1)


def masked(mask: Tensor, edit: Edit, values: Tensor) -> Tensor:
    """An edit of those values alone for which the mask [B, units] holds."""
    return torch.where(mask, edit(values), values)


def effect(intact: Tensor, ablated: Tensor, targets: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss intact, loss ablated and divergence, [distance, moments] each."""
    losses = (-log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1).cpu().numpy() for log_p in (intact, ablated))
    kl = (intact.exp() * (intact - ablated)).sum(-1).clamp(min=0)
    return (*losses, kl.cpu().numpy())  # type: ignore[return-value]


@recorded("cuts", by=["seed"], kinds=KINDS)
def ablations(model: Network, text: Text | Excerpt, seed: int = 0) -> pd.DataFrame:
    """Measure what is lost when each memory, and each hidden state, is ablated.

    A resample ablation takes the memory from as far into the text's second half.

    Args:
        seed: Of the run, which its record names; nothing is drawn.

    Returns:
        One row a memory, kind and distance: `kl` and `loss_increase`, means over `MOMENTS` moments spread evenly over
        the text, in nats a prediction.

    Raises:
        UsageError: The text ends before a half has moments behind its start.
    """
    codes = encode_symbols(model, read(text))
    half = len(codes) // 2
    how: dict[str, Any] = {"moments": spread(half, MOMENTS, DISTANCE), "distance": DISTANCE}
    frames = []
    for memory in every_name(model.recurrent):
        for kind, other in zip(KINDS, (None, codes[half:]), strict=True):
            found = intervene(model, codes[:half], memory, other=other, **how)
            frame = found.mean("moment").to_dataframe().reset_index()
            frame["loss_increase"] = frame["loss_ablated"] - frame["loss"]
            frames.append(frame[["distance", "kl", "loss_increase"]].assign(memory=memory, kind=kind))
    return pd.concat(frames, ignore_index=True)


def spread(half: int, count: int, distance: int) -> list[int]:
    """Return moments of a text's first half, behind its start, each with so many predictions after it."""
    last = half - distance - 2
    if last < BURN_IN:
        needed = 2 * (BURN_IN + distance + 2)
        raise UsageError(f"{2 * half:,} characters, in two halves, are too short: read at least {needed:,}")
    return [int(moment) for moment in np.linspace(BURN_IN, last, count)]


CONTEXTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # numbers of symbols
POSITIONS = 500  # of a text that are predicted


@recorded("horizon", by=["positions"])
def loss_by_context(
    model: Network, text: Text | Excerpt, contexts: Sequence[int] = CONTEXTS, positions: int = POSITIONS
) -> pd.DataFrame:
    """Measure the mean loss of predicting a symbol from the last so many symbols alone.

    Each reading starts from a zero state `context` symbols before the position; the positions are the same for all
    contexts, evenly spread over the text. Where the loss no longer falls, the network's memory ends.

    Args:
        contexts: Numbers of symbols that are read before a prediction.
        positions: How many positions are predicted.

    Returns:
        Columns context, loss (nats).

    Raises:
        UsageError: There is no context or position, or the text is too short for them.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = "the company said that it would not sell the old bank " * 20
    >>> loss = lab.probes.loss_by_context(model, text, contexts=(1, 5, 20), positions=50).set_index("context").loss
    >>> bool(loss[20] < loss[1])
    True
    """
    codes = encode_symbols(model, read(text))
    positions = counted(positions, "positions", 1, len(codes) - 1)
    contexts = counts(contexts, "contexts", 1, len(codes) - positions)
    where = torch.from_numpy(np.linspace(max(contexts), len(codes) - 1, positions).round().astype(int)).to(codes.device)
    loss = []
    with reading(model):
        for context in contexts:
            x = codes[torch.arange(-context, 0, device=codes.device)[:, None] + where]
            hidden = [model.read(some)[0][-1:] for some in x.split(ROWS, 1)]
            logits = model.readout(torch.cat(hidden, 1))[0].double()
            loss.append(F.cross_entropy(logits, codes[where]).item())
    return pd.DataFrame({"context": contexts, "loss": loss})
