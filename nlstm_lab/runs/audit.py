"""What can be recomputed of a record: its result from its history; its scores and dead cells from its weights."""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product

import pandas as pd
import torch

from nlstm_lab.errors import DamagedFile, MissingData
from nlstm_lab.runs import records
from nlstm_lab.runs.run import Run
from nlstm_lab.runs.tables import SHARE
from nlstm_lab.training import evaluate
from nlstm_lab.training.liveness import shares

KEY = ["evaluation", "metric", "split"]
# what the half precision of weights may change: a share of a score; points of accuracy, by a few predictions near a
# tie; a share of the cells
ROUNDING, POINTS, CELLS = 5e-4, 0.05, 0.02


@dataclass(frozen=True)
class Audited:
    """What became of a run's record: how many scores were recomputed, why none was, and what does not agree."""

    recomputed: int
    lacking: str
    wrong: list[str]


def audit(run: Run, weights: bool = True) -> Audited:
    """Recompute a run's result from its history and, where asked for and possible, its `weights`."""
    recorded = {tuple(row[name] for name in KEY): row for row in run.result["metrics"]}
    wrong: list[str] = []

    def compare(source: str, key: tuple[str, ...], ours: float, was: float, room: float) -> None:
        if not abs(ours - was) <= room:
            wrong.append(f"{run.name}: its {source} {key} {ours:.7g}, recorded is {was:.7g}")

    try:
        summary = records.summary(run.history)
    except DamagedFile as error:
        return Audited(0, "history is damaged", [f"{run.name}: {error}"])
    for row in summary:
        key = tuple(row[name] for name in KEY)
        was = recorded.get(key, {"value": math.nan, "epoch": math.nan})
        compare("history has", key, row["value"], was["value"], 1e-6 * abs(was["value"]))
        compare("history has the epoch of", key, row["epoch"], was["epoch"], 0)
    compare("history has", ("rows of its result",), len(summary), len(run.result["metrics"]), 0)
    by = "nll_nats" if run.experiment.training.select_by == "loss" else "top1_accuracy_pct"
    chosen = next((row["epoch"] for row in summary if row["metric"] == by), math.nan)
    compare("history has", ("best epoch",), chosen, run.result["best_epoch"], 0)
    if not run.has_weights:
        return Audited(0, "weights are not kept", wrong)
    try:
        network = run.model()
    except DamagedFile as error:
        return Audited(0, "weights are damaged", [*wrong, f"{run.name}: {error}"])
    if not weights:
        return Audited(0, "weights were left out", wrong)
    try:
        task = run.experiment.task.load()
    except MissingData:
        return Audited(0, "data is not on this machine", wrong)
    best = run.result["best_epoch"]
    known = {key: row["value"] for key, row in recorded.items() if row["epoch"] == best}
    for evaluation, split in product(task.evaluations, ("valid", "test")):
        batches = islice(task.evaluate(split, evaluation), run.experiment.training.batches_per_reading)
        for metric, value in evaluate(network, batches, torch.device("cpu"), task.metric).items():
            if (was := known.get((evaluation, metric, split))) is not None:
                room = max(ROUNDING * abs(was), POINTS if "accuracy" in metric else 0)
                compare("weights give", (evaluation, metric, split), value, was, room)
    dead = shares(network, next(iter(task.evaluate("valid", task.evaluations[0]))).inputs)
    for row in run.history[(run.history["epoch"] == best) & run.history["metric"].str.fullmatch(SHARE)].itertuples():
        compare("weights give", (row.evaluation, row.metric, row.split), dead.get(row.metric, 0), row.value, CELLS)
    return Audited(sum(key[2] != "train" for key in known), "", wrong)


def from_histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The table of these runs (`nlstm_lab.runs.table`), computed from their histories instead of their results."""
    rows = []
    for run in runs:
        which = {"experiment": run.experiment.name, "scale": run.experiment.scale, "seed": run.seed, "state": run.state}
        with suppress(DamagedFile):  # which `audit` names
            rows += [{**which, **row} for row in records.summary(run.history)]
    return pd.DataFrame(rows, columns=["experiment", "scale", "seed", "state", *KEY, "epoch", "value"])
