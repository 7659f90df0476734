"""One attempt at a run: by itself, in a folder beside the record's place, published whole by a rename.

<experiment>/.attempt-small-seed0/   config.json (and the sha256 of data and of code of one's own), checkpoint.pt,
                                     again where it was begun anew, record/ once training is done
<experiment>/small-seed0/            what record/ becomes, with .checkpoint.pt where a rule ended it (`settled`); or
                                     failed.json, which says that training could not go on
"""

import filecmp
import math
import shutil
import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors.torch import save

from nlstm_lab import cells, experiments, models, paths, training
from nlstm_lab.cells.fast import Precision
from nlstm_lab.datasets import corpora
from nlstm_lab.errors import DamagedFile, FinishedRun, LabError, MissingRun, StaleRun, TrainingFailed, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.models.network import code_of
from nlstm_lab.runs import records
from nlstm_lab.runs.run import Run, command, each, folder_of, is_known, load, matches, name_of, resolve
from nlstm_lab.settings import RECORDED_AS, check_seed, counted, recorded_as
from nlstm_lab.training.state import COLUMNS, GOES_ON, Progress, peek


class Attempt:
    """The files of an attempt at `folder`'s record."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder.with_name(f".attempt-{folder.name}")
        self.checkpoint, self.record = self.path / "checkpoint.pt", self.path / "record"
        self.kept = folder / ".checkpoint.pt"  # of a recorded run that a rule has ended

    def begin(self, experiment: Experiment, data: str, again: bool) -> None:
        """Go on with the attempt that is there, or start one; one begun otherwise: anew (`again`), or StaleRun.

        With `again` only an attempt goes on that was begun with it.
        """
        config, anew, differing = self.path / "config.json", self.path / "again", ""
        beside = {"data_sha256": data} | code_of(experiment.model.cell_type)
        if config.exists():
            try:
                differing = records.difference(records.read(config, records.CONFIG), experiment, beside)
            except DamagedFile:
                differing = f"its {config.name} is damaged"
        if differing and not again:
            raise StaleRun(
                f"the unfinished attempt {self.path} cannot go on: {differing}; start anew with --again, or bring "
                "back what it was begun with"
            )
        with paths.writing(self.path, f"; nothing was begun; {GOES_ON}"):
            if differing or (again and self.path.exists() and not anew.exists()):
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
            if again:
                anew.touch()
            if self.kept.exists() and not again and not self.checkpoint.exists():
                copy(self.kept, self.checkpoint)
            records.write_json(config, experiment.config() | beside)

    def is_untouched(self) -> bool:
        """Whether nothing was trained beyond the recorded run that a rule has ended."""
        return self.kept.exists() and filecmp.cmp(self.kept, self.checkpoint, shallow=False)

    def publish(self) -> None:
        """The record takes its place, and the one it replaces goes."""
        replaced = self.path / "replaced"
        if self.folder.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            self.folder.rename(replaced)
        self.record.rename(self.folder)
        paths.flush(self.folder.parent)  # or a power cut could take the new name, once the checkpoint is gone
        (self.path / "config.json").unlink()  # first: an attempt without it is none, if the rest stays
        shutil.rmtree(self.path)

    def fail(self, failure: dict[str, Any], experiment: Experiment) -> None:
        """Record that training could not go on, unless a run is recorded; the attempt stays as it is."""
        if not (self.folder / "result.json").exists():
            with paths.writing(self.folder, f"; that training could not go on is not recorded; {GOES_ON}"):
                records.write_json(self.folder / "failed.json", failure)
                records.write_json(self.folder / "config.json", experiment.config())


def copy(source: Path, target: Path) -> None:
    with paths.atomic(target) as partial:
        shutil.copyfile(source, partial)


def settled(experiment: Experiment, seed: int, patience: int | None, finish: bool) -> Run | None:
    """Load the recorded run; None where there is something to train, as of a run that a rule has ended (`ensure`)."""
    try:
        run = load(experiment, seed)
    except MissingRun:
        return None
    again = f"`{command(experiment, seed)} --again`"
    text = getattr(experiment.task, "corpus", None)
    own = text is not None and text not in corpora.NAMES and Path(text).expanduser().is_file()
    if own and experiment.load().fingerprint != run.result["data_sha256"]:
        raise StaleRun(
            f"{run.name} was trained on another text than {text} holds now; train it anew with {again}, or bring the "
            "text back"
        )
    recorded, ended = run.result.get("patience") or 0, run.state != "done"
    if not ended and patience not in (None, recorded):
        raise FinishedRun(f"{run.name} is finished, so no rule can end it: leave out the patience, or train --again")
    if not ended or not (finish if patience is None else patience > recorded):
        return run
    attempt = Attempt(run.folder)
    if not attempt.kept.exists() and not attempt.checkpoint.exists():
        raise LabError(
            f"{run.name} has {run.state}, and cannot go on: its checkpoint, which is not committed, is not here; "
            f"{again} trains it anew, --patience {recorded} leaves it as it is"
        )
    return None


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
        patience: The run ends when what chooses its best epoch has not improved for so many, and its record says so.
        finish: Without a patience, a run that one has ended goes on to its last epoch; otherwise its record is loaded.

    Raises:
        UsageError: This machine lacks the device or precision.
        StaleRun: The record is of another configuration, or of a text file that holds another text by now.

    >>> import nlstm_lab as lab
    >>> run = lab.runs.ensure("ptb_char_nlstm", seed=0, scale="small")  # recorded: loaded at once
    >>> run.name, run.model().recurrent.hidden_size
    ('ptb_char_nlstm/small-seed0', 150)
    """
    seed = check_seed(seed)
    experiment = resolve(name, scale, seed)
    if patience is not None:
        patience = counted(patience, "patience", 1, experiment.training.epochs)
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
    how = {"device": where, "precision": precision, "progress": progress}
    _train(experiment, seed, patience, again, finish, how)
    return load(experiment, seed)


def _train(experiment: Experiment, seed: int, patience: int | None, again: bool, finish: bool, how: Any) -> None:
    task = experiment.load()
    ends = models.Interface.of(task)
    try:
        network = models.build(experiment.model, ends, seed=seed, name=experiment.name)
    except (TypeError, ValueError) as error:  # a variation that its cell type refuses
        raise UsageError(f"{experiment.name} cannot be built: {error}") from error
    attempt = Attempt(folder_of(experiment.name, experiment.scale, seed))
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
            fit = training.fit(
                network, task, experiment.training, checkpoint=attempt.checkpoint, seed=seed, patience=patience, **how
            )
        except LabError as error:
            if isinstance(error, TrainingFailed):
                attempt.fail({**made, "what": error.what, "update": error.update}, experiment)
            elif not attempt.checkpoint.exists() or attempt.is_untouched():  # refused before anything was trained
                shutil.rmtree(attempt.path)
            raise
        _record(attempt, experiment, fit, network, made)


def _record(attempt: Attempt, experiment: Experiment, fit: Progress, network: models.Network, made: Any) -> None:
    """Write the record, its result last, and publish it."""
    history = pd.DataFrame(fit.history, columns=list(COLUMNS))
    weights = {name: value.contiguous().cpu() for name, value in network.state_dict().items()}
    half = {name: value.half() for name, value in weights.items()}
    # what is too large for half precision would be infinite
    half |= {name: weights[name] for name, value in half.items() if not value.isfinite().all()}
    result = {
        **made,
        "epochs_run": fit.epoch,
        "best_epoch": fit.best_epoch,
        "weights_sha256": models.digest({name: value.float() for name, value in half.items()}),
        "metrics": [recorded_as(row) for row in records.summary(history)],
        "seconds": round(fit.seconds, 1),
        "tokens_per_second": round(fit.rate()),
        "machines": fit.machines,
    }
    with paths.writing(attempt.folder, f"; the training is done and kept; {GOES_ON}"):
        shutil.rmtree(attempt.record, ignore_errors=True)  # what a killed process began to write
        records.write_json(attempt.record / "config.json", experiment.config())
        with paths.atomic(attempt.record / "history.csv") as partial:
            history.rename(columns=RECORDED_AS).to_csv(partial, index=False)
        with paths.atomic(attempt.record / "weights.safetensors") as partial:
            partial.write_bytes(save(half))  # safetensors would hide the system's reason
        if records.state(result) != "done":  # so that it can go on from there
            copy(attempt.checkpoint, attempt.record / attempt.kept.name)
        records.write_json(attempt.record / "result.json", result)
        attempt.publish()


@dataclass(frozen=True)
class PartialRun(Run):
    """A run that is not done, as far as it was when its checkpoint was last written. Its weights cannot be read.

    Args:
        progress: Epochs, updates, history.
        saved: When its checkpoint was written, in seconds since 1970; 0 where there is none yet.
    """

    progress: Progress
    saved: float

    @property
    def state(self) -> str:
        return f"{self.progress.epoch} of {self.experiment.training.epochs} epochs, under way"

    @cached_property
    def history(self) -> pd.DataFrame:
        """As of `Run`, as far as it is."""
        return pd.DataFrame(self.progress.history, columns=list(COLUMNS))

    @property
    def hours_left(self) -> float:
        """Hours to the last epoch at the pace so far; NaN before the first update."""
        return (self.progress.updates / (self.progress.update or math.nan) - 1) * self.progress.seconds / 3600

    def model(self, device: str = "cpu") -> models.Network:
        raise MissingRun(
            f"{self.name} is not done ({self.state}), and its weights cannot be read yet: `nlstm-lab runs` says how "
            f"far it is, and `{command(self.experiment, self.seed)}` goes on where it was stopped"
        )


def unfinished(pattern: str = "*", scale: str | None = None) -> list[PartialRun]:
    """List runs that match and are not done, whether they train or were stopped, and that can go on."""
    return each(r"\.attempt-\w+-seed\d+", scale, lambda folder: _begun(folder, pattern, scale))


def _begun(folder: Path, pattern: str, scale: str | None) -> PartialRun | None:
    """The run of an attempt, if it matches and can go on."""
    config = records.read(folder / "config.json", records.CONFIG)
    name, at, seed = config["name"], config["scale"], int(folder.name.rpartition("-seed")[2])
    if not matches(name, at, pattern, scale) or not is_known(name):
        return None
    experiment, attempt = experiments.get(name, at), Attempt(folder_of(name, at, seed))
    if attempt.path != folder:
        raise DamagedFile(f"{folder} is an attempt at {name}, whose place is another; remove it")
    beside = code_of(experiment.model.cell_type)
    if "data_sha256" in config:
        beside["data_sha256"] = config["data_sha256"]
    if (attempt.folder / "failed.json").exists() or records.difference(config, experiment, beside):
        return None
    progress = peek(attempt.checkpoint) or Progress()
    result = {
        "parameters": experiments.parameters(experiment),
        **{"best_epoch": progress.best_epoch, "seconds": round(progress.seconds, 1)},
        "tokens_per_second": round(progress.rate()),
        "metrics": records.summary(pd.DataFrame(progress.history, columns=list(COLUMNS))),
    }
    saved = attempt.checkpoint.stat().st_mtime if attempt.checkpoint.exists() else 0.0
    return PartialRun(folder, experiment, seed, result, progress, saved)
