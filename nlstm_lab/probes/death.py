"""What becomes of the inner memory under one setting after another, and what that costs: frames out of histories.

The criteria were written down before the runs (`data/targets/protocol.md`).
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from nlstm_lab import models, training
from nlstm_lab.cells.memories import memories
from nlstm_lab.experiments import Experiment
from nlstm_lab.models import Interface
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.tracing import trace
from nlstm_lab.runs import dead_shares
from nlstm_lab.runs.run import resolve
from nlstm_lab.statistics import Compared, compare, t_interval
from nlstm_lab.training.liveness import JUDGED, liveness
from nlstm_lab.training.loop import EARLY as FIRST

ALIVE, HALF = 0.25, 0.5  # at most so many dead on average, and the interval below; it dies where the interval is above
EARLY, LATER = 10, 0.25  # it dies later where so many fewer, as a share of all cells, are dead after so many updates
LEARNED = 0.3  # BPC above the symbols' entropy: a network whose training loss is higher is not judged


def remedy_outcomes(history: pd.DataFrame, after: Mapping[str, int], printed: str) -> pd.DataFrame:
    """Tell what the inner memory has come to under each setting.

    Args:
        history: `lab.runs.histories({setting: runs, ...})` of runs of one task.
        after: For each setting the logged update of the first epoch that it is judged at.
        printed: The setting that the others are compared with, at the same update and seed.

    Returns:
        One row a setting and seed: setting, seed, update, latched, silent and dead (shares of all cells), bpc (the
        training loss of the updates since the logged one before), gain (bpc minus that of `printed`; NaN where it has
        no such run), and later (how many fewer are dead after ten updates than in `printed` on average, as a share).
    """
    shares = dead_shares(history, updates=sorted(set(after.values())))
    early = history[(history["split"] == "early") & (history["metric"] == "bpc")]
    losses = early.set_index(["setting", "seed", "update"])["value"]
    rows = shares[(shares["memory"] == "inner") & (shares["update"] == shares["setting"].map(after))]
    keys = pd.MultiIndex.from_frame(rows[["setting", "seed", "update"]])
    bpc = losses.reindex(keys).to_numpy()
    other = losses.loc[printed].reindex(keys.droplevel("setting")).to_numpy()
    found = rows[["setting", "seed", "update", "latched", "silent", "dead"]].assign(bpc=bpc, gain=bpc - other)
    first = dead_shares(history, updates=[EARLY]).query("memory == 'inner'")
    at_first = first.set_index(["setting", "seed"])["dead"].reindex(keys.droplevel("update")).to_numpy()
    later = first.loc[first["setting"] == printed, "dead"].mean() - at_first
    return found.assign(later=later).reset_index(drop=True)


def remedy_verdicts(outcomes: pd.DataFrame, entropy: float) -> pd.DataFrame:
    """Judge each setting, in the order of `outcomes`, by the criteria of the protocol.

    Args:
        outcomes: Of `remedy_outcomes`.
        entropy: Of the symbols' frequencies, in bits.

    Returns:
        Index setting; columns seeds, dead, low and high (mean and t interval over seeds), gain, gain_low and gain_high
        likewise, verdict: "alive", "dies", "dies later", "inconclusive", or "not trained" where the loss is too high to
        judge it.
    """
    rows = []
    for setting, seeds in outcomes.groupby("setting", sort=False):
        dead, gain = t_interval(seeds["dead"]), t_interval(seeds["gain"])
        trained = seeds["bpc"].mean() < entropy + LEARNED
        verdict = "inconclusive" if trained else "not trained"
        if trained and dead.mean <= ALIVE and dead.high < HALF:
            verdict = "alive"
        elif trained and dead.low > HALF:
            verdict = "dies later" if seeds["later"].mean() >= LATER else "dies"
        rows.append((setting, len(seeds), *dead, *gain, verdict))
    columns = ["setting", "seeds", "dead", "low", "high", "gain", "gain_low", "gain_high", "verdict"]
    return pd.DataFrame(rows, columns=columns).set_index("setting")


def doubling_slope(shares: pd.DataFrame, by: str, update: int) -> Compared:
    """Measure how the share of dead cells rises with each doubling of a setting after an update: is it above 0?

    Args:
        shares: Columns seed, update, dead and `by`.
        by: The column of the setting, such as the width.
        update: After which; values that have none there, and seeds that not every other value has, are left out.

    Returns:
        Over seeds, each one's least-squares slope on the setting's log2.
    """
    wide = shares[shares["update"] == update].pivot(index=by, columns="seed", values="dead").dropna(axis=1)
    slopes = np.polyfit(np.log2(wide.index), wide.to_numpy(), 1)[0]
    return compare(dict(zip(wide.columns, slopes, strict=True)), dict.fromkeys(wide.columns, 0.0), paired=True)


UPDATES = (*FIRST, 1500, 2000, 3000)
LETTERS = "asl"  # alive, silent, latched
LEVELS = 32  # of tanh c between 0 and 1


def first_updates(
    name: str | Experiment, text: str, seed: int = 0, scale: str | None = None, updates: Sequence[int] = UPDATES
) -> pd.DataFrame:
    """Train a network and read a text after each of some updates; recorded.

    The record holds no weights. The training is that of the run with this seed: same data, order and start.

    Args:
        name: An experiment whose cell type has memory cells, or its name.
        scale: Of the experiment; None for the largest that has runs.
        updates: After which the text is read; those beyond the end of the training are left out.

    Returns:
        One row an update: `update`; `bits`, the surprisal of each character after the first, separated by spaces;
        `lives/<memory>`, a letter of `LETTERS` a cell, judged on the first validation batch as in a run's history; and
        `cells`, tanh c of the innermost memory, which `unpacked_cells` reads.
    """
    experiment = resolve(name, scale)
    about = {"config": experiment.digest(), "seed": seed, "text": text, "updates": list(updates)}
    return ensure("first_updates", lambda: _watched(experiment, text, seed, updates), **about)


def _watched(experiment: Experiment, text: str, seed: int, updates: Sequence[int]) -> pd.DataFrame:
    task = experiment.load()
    network = models.build(experiment.model, Interface.of(task), seed=seed, name=experiment.name)
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
    return pd.DataFrame(rows)


def unpacked_cells(record: pd.DataFrame) -> NDArray[np.int8]:
    """The innermost memory's cells of a record of `first_updates` [update, unit, time], in `LEVELS` of tanh c."""
    rows = [np.frombuffer(zlib.decompress(base64.b64decode(cells)), np.int8) for cells in record["cells"]]
    return np.stack(rows).reshape(len(rows), len(str(record.iloc[0].filter(like="lives/").iloc[-1])), -1)
