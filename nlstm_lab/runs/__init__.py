"""The only reader and writer of `data/runs`: one folder for each experiment, scale and seed.

A run is done when `result.json` is there, and it is written last.

What these arguments mean wherever they are taken:

    name: The experiment, or its name.
    experiment: A row of a table at one scale.
    folder: Where a run's record lies.
    result: What its `result.json` holds.
    pattern: A shell pattern of experiments' names.
    scale: smoke, small or paper; None for any, or the largest recorded one.
    seed: The run's seed.
    seeds: The runs' seeds.
    runs: Recorded runs.
    device: auto, cpu or cuda.
    precision: fp32 or bf16, of the products in training.
    progress: Show a progress bar.
"""

import shutil
import sys
import warnings
from typing import Any

import pandas as pd
from safetensors import SafetensorError
from safetensors.torch import save_file

from nlstm_lab import cells, models, paths, training
from nlstm_lab.cells.fast.computing import Precision
from nlstm_lab.datasets.base import Task
from nlstm_lab.errors import TrainingFailed, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.runs import records
from nlstm_lab.runs.attempt import Attempt, PartialRun, check_patience, settled, unfinished
from nlstm_lab.runs.run import Run, check_seed, command, folder_of, load, name_of, resolve
from nlstm_lab.runs.tables import benchmark, dead_shares, describe_runs, failures, histories, outlook, recorded, table
from nlstm_lab.settings import RECORDED_AS
from nlstm_lab.training.state import COLUMNS, GOES_ON

__all__ = ["PartialRun", "Run", "benchmark", "dead_shares", "describe_runs", "ensure", "failures", "histories", "load",
           "outlook", "recorded", "resolve", "table", "unfinished"]  # fmt: skip


def ensure(
    name: str | Experiment,
    seed: int = 0,
    scale: str | None = None,
    device: str = "auto",
    *,
    precision: Precision = "fp32",
    again: bool = False,
    patience: int | None = None,
    finish: bool = False,
    progress: bool = True,
) -> Run:
    """Load a run, or train it (going on where an earlier attempt stopped) and save it.

    Where another process is training the run already, this waits for its end and loads what it has recorded.

    Args:
        device, precision: Of a training; a record that is there counts whatever it was made with.
        again: Train although there is a record, which stays until the new one takes its place.
        patience: The run ends when its validation loss has not improved for so many epochs, and its record says so.
        finish: Without a patience, a run that one has ended goes on to its last epoch; otherwise its record is loaded.

    Raises:
        UsageError: This machine lacks the device or precision.
        StaleRun: The record is of another configuration, or of a text file that holds another text by now.

    >>> import nlstm_lab as lab
    >>> run = lab.runs.ensure("ptb_char_nlstm", seed=0, scale="small")  # recorded: loaded at once
    >>> run.name, run.model().recurrent.hidden_size
    ('ptb_char_nlstm/small-seed0', 150)
    """
    experiment, seed = resolve(name, scale), check_seed(seed)
    check_patience(experiment, patience)
    with cells.precision(precision):  # refuses what this machine cannot do
        where = training.find_device(device)
    if not again and (run := settled(experiment, seed, patience, finish)):
        return run
    if experiment.scale == "paper" and "ipykernel" in sys.modules:
        warnings.warn(
            f"{experiment.name} at paper scale may take hours to days; `{command(experiment, seed)}` trains it in a "
            "terminal, and whatever was trained here goes on there",
            stacklevel=2,
        )
    how = {"seed": seed, "device": where, "precision": precision, "patience": patience, "progress": progress}
    _train(experiment, again, finish, how)
    return load(experiment, seed)


def _train(experiment: Experiment, again: bool, finish: bool, how: dict[str, Any]) -> None:
    seed, patience = how["seed"], how["patience"]
    task: Task = experiment.load()
    ends = models.Interface.of(task)
    try:
        network = models.build(experiment.model, ends, seed=seed, name=experiment.name)
    except (TypeError, ValueError) as error:  # a variation that its cell type refuses
        raise UsageError(f"{experiment.name} cannot be built: {error}") from error
    attempt = Attempt(folder_of(experiment, seed))
    with paths.locked(attempt.folder, f"another process is training {name_of(experiment, seed)}"):
        if not again and settled(experiment, seed, patience, finish):
            return  # another process has finished it before this one held the lock
        attempt.begin(experiment, task.fingerprint, again)
        made = {
            **{"experiment": experiment.name, "scale": experiment.scale, "seed": seed},
            "config_digest": experiment.digest(),
            "parameters": models.parameter_count(network),
            "interface": ends.record(),
            "data_sha256": task.fingerprint,
            **{"precision": how["precision"], "patience": patience, "epochs": experiment.training.epochs},
            **records.provenance(how["device"]),
        }
        try:
            fit = training.fit(network, task, experiment.training, checkpoint=attempt.checkpoint, **how)
        except TrainingFailed as error:
            attempt.fail({**made, "what": error.what, "update": error.update}, experiment)
            raise
        _record(attempt, experiment, fit, made)


def _record(attempt: Attempt, experiment: Experiment, fit: training.TrainingResult, made: dict[str, Any]) -> None:
    """Write the record and publish it."""
    history = pd.DataFrame(fit.history, columns=list(COLUMNS))
    half = {name: value.half().contiguous().cpu() for name, value in fit.weights.items()}
    measured = {
        "epochs_run": fit.epochs,
        "best_epoch": fit.best_epoch,
        "weights_sha256": models.digest({name: value.float() for name, value in half.items()}),
        "metrics": records.summary(history),
        "seconds": round(fit.seconds, 1),
        "tokens_per_second": round(fit.tokens_per_second),
        "machines": fit.machines,
    }
    with paths.writing(attempt.folder, f"; the training is done and kept; {GOES_ON}"):
        shutil.rmtree(attempt.record, ignore_errors=True)  # what a killed process began to write
        records.write_json(attempt.record / "config.json", experiment.config())
        with paths.atomic(attempt.record / "history.csv") as partial:
            history.rename(columns=RECORDED_AS).to_csv(partial, index=False)
        with paths.atomic(attempt.record / "weights.safetensors") as partial:
            try:
                save_file(half, partial)
            except SafetensorError as error:  # its words for what the system said
                raise OSError(str(error)) from error
        attempt.publish({**made, **measured})
