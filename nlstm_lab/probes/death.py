"""A network's memory cells along a text, after each of the first updates of its training: watched once, recorded."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from nlstm_lab import models, training
from nlstm_lab.cells.base import memories
from nlstm_lab.errors import UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.models import Interface
from nlstm_lab.probes.forgetting import need
from nlstm_lab.probes.reading import encode_symbols
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.tracing import trace
from nlstm_lab.runs.run import resolve
from nlstm_lab.settings import counts
from nlstm_lab.training.liveness import JUDGED, liveness
from nlstm_lab.training.loop import EARLY as FIRST

UPDATES = (*FIRST, 1500, 2000, 3000)
LETTERS = "asl"  # alive, constant ("silent"), saturated ("latched")
LEVELS = 32  # of tanh c between 0 and 1


def first_updates(
    name: str | Experiment, text: str, seed: int = 0, scale: str | None = None, updates: Sequence[int] = UPDATES
) -> pd.DataFrame:
    """Train a network as the run with this seed was, and read a text after each of some updates; recorded.

    Args:
        name: An experiment whose cell type has memory cells, or its name.
        scale: Of the experiment; None for the largest that has runs.
        updates: After which the text is read; those beyond the end of the training are left out. UsageError: all are.

    Returns:
        One row an update: `update`; `bits`, the surprisal of each character after the first, separated by spaces;
        `lives/<memory>`, a letter of `LETTERS` a cell, judged on the first validation batch as in a run's history; and
        `cells`, tanh c of the innermost memory, which `unpacked_cells` reads.
    """
    experiment = resolve(name, scale)
    about = {"config": experiment.digest(), "seed": seed, "text": text, "updates": counts(updates, "updates", 0)}
    return ensure("first_updates", lambda: _watched(experiment, text, seed, updates), **about)


def _watched(experiment: Experiment, text: str, seed: int, updates: Sequence[int]) -> pd.DataFrame:
    task = experiment.load()
    network = models.build(experiment.model, Interface.of(task), seed=seed, name=experiment.name)
    encode_symbols(network, text)
    need(trace(network, text))
    batch = next(iter(task.evaluate("valid", task.evaluations[0]))).inputs
    rows: list[dict[str, Any]] = []

    def look(update: int) -> None:
        if update in updates:
            network.eval()
            with torch.inference_mode():
                found = memories(network.trace(batch)[2])
            lives = {memory: liveness(*(record[name] for name in JUDGED)) for memory, record in found.items()}
            letters = {f"lives/{memory}": "".join(LETTERS[k] for k in codes) for memory, codes in lives.items()}
            read = trace(network, text)
            codes = [list(read["vocabulary"].values).index(symbol) for symbol in read["symbol"].values[1:]]
            bits = -read["log_p"].values[np.arange(len(codes)), codes] / np.log(2)
            seen = np.tanh(read["c"].isel(memory=-1).transpose("unit", "time").values)
            packed = base64.b64encode(zlib.compress(np.rint(LEVELS * seen).astype(np.int8).tobytes(), 9)).decode()
            shown = {"bits": " ".join(f"{bit:.2f}" for bit in bits), "cells": packed}
            rows.append({"update": update, **letters, **shown})

    config = replace(experiment.training, batches_per_reading=1)  # what an epoch ends with is not looked at
    look(0)
    training.fit(network, task, config, seed=seed, after_update=look)
    if not rows:
        raise UsageError(f"the training has none of the updates {list(updates)}: take some from 0, its start, on")
    return pd.DataFrame(rows)


def unpacked_cells(record: pd.DataFrame) -> NDArray[np.int8]:
    """The innermost memory's cells of a record of `first_updates` [update, unit, time], in `LEVELS` of tanh c."""
    rows = [np.frombuffer(zlib.decompress(base64.b64decode(cells)), np.int8) for cells in record["cells"]]
    return np.stack(rows).reshape(len(rows), len(str(record.iloc[0].filter(like="lives/").iloc[-1])), -1)
