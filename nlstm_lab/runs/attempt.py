"""One attempt at a run: by itself, in a folder beside the record's place, published by a rename with the result last.

<experiment>/.attempt-small-seed0/   config.json (and the data's sha256), checkpoint.pt, record/ once training is done
<experiment>/small-seed0/            what record/ becomes; without result.json it still counts as an attempt, unless
                                     failed.json says that training could not go on; .checkpoint.pt where a rule ended
                                     it (`settled`)
"""

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, LabError, MissingRun, StaleRun, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.runs import records
from nlstm_lab.runs.run import Run, command, folder_of, load
from nlstm_lab.training.checkpoint import writing


@dataclass(frozen=True)
class Attempt:
    """Where the files of an attempt at `folder`'s record lie."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder.with_name(f".attempt-{self.folder.name}")

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def kept(self) -> Path:
        """The checkpoint of a recorded run that a rule has ended."""
        return self.folder / ".checkpoint.pt"

    @property
    def record(self) -> Path:
        return self.path / "record"

    def begin(self, experiment: Experiment, data: str, again: bool) -> None:
        """Go on with the attempt that is there, or start one. data: the fingerprint of what the task reads.

        StaleRun: the one that is there was begun otherwise, unless it is to be `again`.
        """
        config = self.path / "config.json"
        if config.exists() and (differing := _difference(config, experiment, data)):
            if not again:
                raise StaleRun(
                    f"the unfinished attempt {self.path} cannot go on: {differing}; start anew with --again, or turn "
                    "that back"
                )
            shutil.rmtree(self.path)
        with writing(self.path, "nothing was begun"):
            self.path.mkdir(parents=True, exist_ok=True)
            outcomes = [self.folder / name for name in ("result.json", "failed.json")]
            if self.folder.exists() and not any(file.exists() for file in outcomes):  # stopped while publishing
                shutil.rmtree(self.record, ignore_errors=True)
                self.folder.rename(self.record)
            if self.kept.exists() and not again and not self.checkpoint.exists():
                _copy(self.kept, self.checkpoint)
            records.write_json(config, {**experiment.config(), "data_sha256": data})

    def keep_checkpoint(self) -> None:
        """Put the checkpoint into the record that will be published, so that the run can go on from there."""
        _copy(self.checkpoint, self.record / self.kept.name)

    def publish(self, result: dict[str, Any]) -> None:
        """The record takes its place, the one it replaces goes, and the result is written last."""
        replaced = self.path / "replaced"
        if self.folder.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            self.folder.rename(replaced)
        self.record.rename(self.folder)
        records.write_result(self.folder / "result.json", result)
        paths.flush(self.folder.parent)  # or a power cut could take the new name, once the checkpoint is gone
        shutil.rmtree(self.path)

    def fail(self, failure: dict[str, Any], experiment: Experiment) -> None:
        """Record that training could not go on, unless an earlier one did; the attempt stays as it is."""
        if not (self.folder / "result.json").exists():
            with writing(self.folder, "that training could not go on is not recorded"):
                self.folder.mkdir(parents=True, exist_ok=True)
                records.write_json(self.folder / "failed.json", failure)
                records.write_json(self.folder / "config.json", experiment.config())


def _copy(source: Path, target: Path) -> None:
    with paths.atomic(target) as partial:
        shutil.copyfile(source, partial)


def _difference(file: Path, experiment: Experiment, data: str) -> str:
    """The first thing in which what an attempt was begun with is not today's, as a sentence, or nothing."""
    try:
        config = records.read(file, records.CONFIG)
    except DamagedFile:
        return f"{file.name}, which says what it trains, is damaged"
    then = config.pop("data_sha256", data)  # older attempts lack it
    other = "" if then == data else f"the sha256 of its data was {then!r} and is {data!r}"
    return records.difference(config, experiment) or other


def run_lock(folder: Path) -> AbstractContextManager[None]:
    """Hold the lock of the run at `folder`; a second process says that it waits until the first has ended."""
    return paths.locked(folder, f"another process is training {folder.parent.name}/{folder.name}")


def check_patience(experiment: Experiment, patience: Any) -> None:
    """Check a `patience`.

    Raises:
        UsageError: It is neither None nor a whole number of epochs that the experiment has.
    """
    most = experiment.training.epochs
    if patience is not None and (type(patience) is not int or not 1 <= patience <= most):
        raise UsageError(f"patience must be a whole number from 1 to {most}, the epochs that there are, not {patience}")


def settled(experiment: Experiment, seed: int, patience: int | None, finish: bool) -> Run | None:
    """Load the recorded run; None where there is something to train.

    A longer patience, or none and `finish`, lets a run that a rule has ended go on.

    Raises:
        UsageError: A rule is asked for, and the run is finished without it.
        LabError: It would go on, and its checkpoint is not here.
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
