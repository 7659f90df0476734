"""What can be recomputed of a record: its result from its history, its scores from its weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, product

import pandas as pd
import torch

from nlstm_lab.errors import DamagedFile, MissingData
from nlstm_lab.runs import records
from nlstm_lab.runs.run import Run
from nlstm_lab.runs.tables import VALUE
from nlstm_lab.training import evaluate

ROUNDING = 5e-4  # share of a score by which half-precision weights may change it
POINTS = 0.05  # of accuracy, which a few predictions near a tie change
KEY = ["evaluation", "metric", "split"]


@dataclass(frozen=True)
class Audited:
    """What became of a run's record: how many scores were recomputed, why none was, and what does not agree."""

    run: str
    recomputed: int
    lacking: str
    wrong: list[str]


def audit(run: Run, weights: bool = True) -> Audited:
    """Recompute a run's result from its history and, where asked for and possible, its `weights`."""
    recorded = pd.DataFrame(run.result["metrics"]).set_index(KEY)
    history = pd.DataFrame(records.summary(run.history)).set_index(KEY)
    wrong = _differing(run, history["value"], recorded["value"], 1e-6, "its history has")
    if not run.has_weights:
        return Audited(run.name, 0, "weights are not kept", wrong)
    try:
        run.model()
    except DamagedFile as error:
        return Audited(run.name, 0, "weights are damaged", [*wrong, f"{run.name}: {error}"])
    if not weights:
        return Audited(run.name, 0, "weights were left out", wrong)
    try:
        scores = recomputed(run)
    except MissingData:
        return Audited(run.name, 0, "data is not on this machine", wrong)
    at_weights = recorded[recorded["epoch"] == run.result["best_epoch"]]["value"]
    known = scores[scores.index.isin(at_weights.index)]
    wrong += _differing(run, known, at_weights, ROUNDING, "its weights give")
    return Audited(run.name, len(known), "", wrong)


def recomputed(run: Run) -> "pd.Series[float]":
    """Measure every score of a run's weights on validation and test, by evaluation, metric and split.

    Raises:
        MissingData: The data is not on this machine.
    """
    task, network, training = run.experiment.task.load(), run.model(), run.experiment.training
    rows = []
    for evaluation, split in product(task.evaluations, ("valid", "test")):
        batches = islice(task.evaluate(split, evaluation), training.batches_per_reading)
        values = evaluate(network, batches, torch.device("cpu"), task.metric)
        rows += [(evaluation, metric, split, value) for metric, value in values.items()]
    return pd.DataFrame(rows, columns=[*KEY, "value"]).set_index(KEY)["value"]


def from_histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The table of these runs (`nlstm_lab.runs.table`), computed from their histories instead of their results."""
    rows = [
        {"experiment": run.experiment.name, "scale": run.experiment.scale, "seed": run.seed, "state": run.state, **row}
        for run in runs
        for row in records.summary(run.history)
    ]
    return pd.DataFrame(rows, columns=["experiment", "scale", "seed", "state", *VALUE])


def _differing(run: Run, ours: "pd.Series[float]", recorded: "pd.Series[float]", within: float, what: str) -> list[str]:
    """A sentence for each score that lies further from the recorded one than a share of it."""
    both = pd.DataFrame({"ours": ours, "was": recorded.reindex(ours.index)})
    room = within * both["was"].abs()
    if within == ROUNDING:
        room = room.clip(lower=both.index.get_level_values("metric").str.contains("accuracy") * POINTS)
    differing = both[~((both["ours"] - both["was"]).abs() <= room)]
    return [
        f"{run.name}: {what} {row.Index} {row.ours:.7g}, recorded is {row.was:.7g}" for row in differing.itertuples()
    ]
