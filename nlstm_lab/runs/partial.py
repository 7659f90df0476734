"""Runs that are not done: read from the checkpoints that training writes every minute and after every epoch."""

import fnmatch
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from nlstm_lab import models, paths
from nlstm_lab.errors import DamagedFile, MissingRun
from nlstm_lab.experiments import get, sizes
from nlstm_lab.runs import records
from nlstm_lab.runs.attempt import Attempt
from nlstm_lab.runs.run import Run, command, folder_of, is_known, or_left_out
from nlstm_lab.settings import UNDER_WAY
from nlstm_lab.training import checkpoint
from nlstm_lab.training.state import COLUMNS, Progress


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
        return f"{self.progress.epoch} of {self.experiment.training.epochs} epochs, {UNDER_WAY}"

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
    """List runs that match and are not done, whether they train at this moment or were stopped.

    Runs that failed, and attempts at another configuration than today's, are passed over: they cannot go on.
    """
    runs = []
    for experiment in records.listed(paths.runs()):
        with or_left_out():
            for name in records.listed(paths.runs() / experiment):
                if re.fullmatch(r"\.attempt-\w+-seed\d+", name):
                    with or_left_out(), suppress(FileNotFoundError):
                        runs += _begun(paths.runs() / experiment / name, pattern, scale)
    return runs


def _begun(folder: Path, pattern: str, scale: str | None) -> list[PartialRun]:
    """The run of an attempt that matches and can go on."""
    config = records.read(folder / "config.json", records.CONFIG)
    config.pop("data_sha256", None)
    attempt = Attempt(folder.with_name(folder.name.removeprefix(".attempt-")))
    failed = (attempt.folder / "failed.json").exists()
    if failed or not fnmatch.fnmatchcase(config["name"], pattern) or scale not in (None, config["scale"]):
        return []
    if not is_known(config["name"]) or records.difference(config, experiment := get(config["name"], config["scale"])):
        return []
    seed = int(attempt.folder.name.rpartition("-seed")[2])
    if attempt.folder != folder_of(experiment, seed):
        raise DamagedFile(f"{folder} is an attempt at {experiment.name}, whose place is another; remove it")
    state = checkpoint.peek(attempt.checkpoint)
    try:
        progress = Progress.read(state.get("progress")) if state else Progress()
    except ValueError as error:
        raise DamagedFile(f"{attempt.checkpoint} is of another version, or damaged: {error}; remove it") from error
    result: dict[str, Any] = {
        "experiment": experiment.name,
        "scale": experiment.scale,
        "seed": seed,
        "parameters": sizes.parameters(experiment),
        "best_epoch": progress.best_epoch,
        "metrics": records.summary(pd.DataFrame(progress.history, columns=list(COLUMNS))),
        "seconds": round(progress.seconds, 1),
        "tokens_per_second": round(progress.rate()),
    }
    saved = attempt.checkpoint.stat().st_mtime if attempt.checkpoint.exists() else 0.0
    return [PartialRun(attempt.path, experiment, seed, result, progress, saved if state else 0.0)]
