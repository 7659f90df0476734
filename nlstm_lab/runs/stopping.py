"""The stopping rule of a run (`patience`), which belongs to the run and is recorded with what it ended."""

from typing import Any

from nlstm_lab.errors import LabError, MissingRun, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.runs.attempt import Attempt
from nlstm_lab.runs.run import Run, command, folder_of, load


def check(experiment: Experiment, patience: Any) -> None:
    """Raise UsageError unless `patience` is None, or a whole number of epochs that the experiment has."""
    most = experiment.training.epochs
    if patience is not None and (type(patience) is not int or not 1 <= patience <= most):
        raise UsageError(f"patience must be a whole number from 1 to {most}, the epochs that there are, not {patience}")


def settled(experiment: Experiment, seed: int, patience: int | None, finish: bool) -> Run | None:
    """The recorded run, or None where there is something to train.

    A longer patience, or none and `finish`, lets a run that a rule has ended go on. UsageError: a rule is asked for,
    and the run is finished without it; LabError: it would go on, and its checkpoint is not here.
    """
    try:
        run = load(experiment, seed)
    except MissingRun:
        return None
    recorded, by_rule = run.result.get("patience") or 0, run.state != "done"
    if patience and patience != recorded and not by_rule:
        raise UsageError(f"{run.name} is finished, so no rule can end it: leave out the patience, or train --again")
    if not by_rule or not (finish if patience is None else patience > recorded):
        return run
    attempt = Attempt(folder_of(experiment, seed))
    if not attempt.kept.exists() and not attempt.checkpoint.exists():
        raise LabError(
            f"{run.name} has {run.state}, and cannot go on: its checkpoint, which is not committed, is not here; "
            f"`{command(experiment, seed)} --again` trains it anew, --patience {recorded} leaves it as it is"
        )
    return None
