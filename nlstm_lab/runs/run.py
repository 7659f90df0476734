"""One recorded run: where it lies, its record, its history, its weights."""

import contextlib
import filecmp
import fnmatch
import hashlib
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from nlstm_lab import experiments, models, paths
from nlstm_lab.errors import WAY_OUT, DamagedFile, LabError, MissingRun, StaleRun, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.models.saving import RUN_NAME, WEIGHTS, read_weights
from nlstm_lab.runs import records
from nlstm_lab.settings import SCALES, check_seed, choice
from nlstm_lab.training.updating import find_device

LONGEST = 120  # characters of a folder's name that is the experiment's whole name


@dataclass(frozen=True, repr=False)
class Run:
    """One trained network: its record, its history, its weights."""

    folder: Path
    experiment: Experiment
    seed: int
    result: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Run {self.name}, {self.state}>"

    @property
    def name(self) -> str:
        """`experiment/scale-seed0`, as figures name it in their metadata."""
        return name_of(self.experiment, self.seed)

    @property
    def state(self) -> str:
        """How far it got: "done", or "16 of 35 epochs, by early stopping"."""
        return records.state(self.result)

    @property
    def has_weights(self) -> bool:
        """Whether its weights are kept here."""
        return (self.folder / WEIGHTS).exists()

    @cached_property
    def history(self) -> pd.DataFrame:
        """Long format: epoch, update, split, evaluation, metric, value."""
        epochs = self.result.get("epochs_run", self.experiment.training.epochs)
        return records.read_history(self.folder / "history.csv", self.result, epochs)

    def model(self, device: str = "cpu") -> models.Network:
        """Build the network with the weights of its best validation epoch, in eval mode; needs no data set.

        Where they are not kept, the network still finds what was recorded of it; only its reading raises MissingRun.
        DamagedFile: the file is damaged, or holds other weights than recorded.
        """
        try:
            ends = models.Interface.from_record(self.result["interface"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFile(f"{self.folder}/result.json lacks what the network reads ({error}); {WAY_OUT}") from error
        network = models.build(self.experiment.model, ends, seed=self.seed, name=self.name)
        if not self.has_weights:
            why = f"the weights of {self.name} are not kept here (its record is); train it again with "
            why += f"`{command(self.experiment, self.seed)} --again`"
            network.missing_weights = self.result.get("weights_sha256", ""), why
            return network.to("meta").eval()
        return read_weights(network, self.folder / WEIGHTS, self.result).to(find_device(device))


def name_of(experiment: Experiment, seed: int) -> str:
    return RUN_NAME.format(experiment=experiment.name, scale=experiment.scale, seed=seed)


def command(experiment: Experiment, seed: int) -> str:
    """What trains a run, as typed into a shell."""
    return f"nlstm-lab train {shlex.quote(experiment.name)} --scale {experiment.scale} --seed {seed}"


def folder_of(experiment: str, scale: str, seed: int) -> Path:
    """A run's folder. A variation may hold any path; a folder's name holds no slash, and of a long one a digest."""
    name = quote(experiment, safe="+=,")
    if len(name) > LONGEST and not os.path.isdir(paths.runs() / name):
        readable = re.sub(r"[^\w+=,.-]+", "_", re.sub(r"[^+=]*/", "", experiment))  # of a path its last part
        cut = readable.encode()[: LONGEST // 2].decode(errors="ignore")
        name = f"{cut}-{hashlib.sha256(experiment.encode()).hexdigest()[:12]}"
    return paths.runs() / name / f"{scale}-seed{seed}"


def seeds_of(experiment: Experiment) -> list[int]:
    """The seeds whose runs are recorded."""
    folder = folder_of(experiment.name, experiment.scale, 0).parent
    found = (re.fullmatch(rf"{experiment.scale}-seed(0|[1-9]\d*)", name) for name in records.listed(folder))
    # a folder that cannot be read counts, and whoever loads the run says so
    return sorted(int(one[1]) for one in found if one and not os.path.exists(folder / one[0] / "failed.json"))


def each(named: str, scale: str | None, read: Callable[[Path], Any]) -> list[Any]:
    """What `read` makes of each run's folder whose name matches: not None, and not what it refuses; a known scale."""
    choice(scale, "scale", (None, *SCALES))
    found = []
    for experiment in records.listed(paths.runs()):
        with or_left_out():
            for name in records.listed(paths.runs() / experiment):
                if re.fullmatch(named, name):
                    with or_left_out(), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                        found.append(read(paths.runs() / experiment / name))
    return [one for one in found if one is not None]


@contextlib.contextmanager
def or_left_out() -> Iterator[None]:
    """One run that is damaged or was made otherwise is left out with a warning, and hides no other."""
    try:
        yield
    except LabError as error:
        warnings.warn(f"left out: {error}", stacklevel=3)


def matches(name: str, at: str, pattern: str, scale: str | None) -> bool:
    """Whether an experiment of that name `at` a scale is asked for."""
    return (name == pattern or fnmatch.fnmatchcase(name, pattern)) and scale in (None, at)


def is_known(name: str) -> bool:
    """Whether a record's run can be loaded: not if its experiment is your own, or its cell type and not imported."""
    cell_types = re.findall(r"\+(?:cell_type|unit)=([^+]+)", name)
    return bool(experiments.scales(name)) and models.CELL_TYPES.keys() >= set(cell_types)


def resolve(name: str | Experiment, scale: str | None, seed: int | None = None) -> Experiment:
    """Find an experiment from its name; without a scale at the largest where that seed, or any, is recorded, or small.

    UsageError: there is no such experiment or scale, or an Experiment is of another scale.
    """
    if isinstance(name, Experiment):
        if scale not in (None, name.scale):
            raise UsageError(f"{name.name} is given at {name.scale} scale, not {scale!r}: leave scale out")
        return name
    if not isinstance(name, str):
        raise UsageError(f"name must be that of an experiment, or an Experiment, not {name!r}")
    if scale is None:
        found = {one: seeds_of(experiments.get(name, one)) for one in experiments.scales(name)}
        known = [one for one, seeds in found.items() if (seeds if seed is None else seed in seeds)]
        scale = known[-1] if known else "small"
    return experiments.get(name, scale)


def load(name: str | Experiment, seed: int = 0, scale: str | None = None) -> Run:
    """Load a recorded run.

    Args:
        name: Of an experiment, or one of your own.
        seed: Of the run.
        scale: "smoke", "small" or "paper"; None for the largest at which the seed is recorded.

    Raises:
        MissingRun: There is none.
        StaleRun: Its configuration is not today's.
        DamagedFile: Its files are damaged, another run's, or a copy.
    """
    seed = check_seed(seed)
    experiment = resolve(name, scale, seed)
    folder = folder_of(experiment.name, experiment.scale, seed)
    try:
        return run_of(experiment, seed, result_of(folder))
    except (FileNotFoundError, NotADirectoryError):
        found = "is begun" if folder.with_name(f".attempt-{folder.name}").exists() else ""
        found = "has failed" if (folder / "failed.json").exists() else found
        raise MissingRun(
            f"no run of {experiment.name} with seed {seed} at {experiment.scale} scale is recorded"
            f"{found and f', though one {found} (see `nlstm-lab runs`)'}; train it with `{command(experiment, seed)}`"
        ) from None


def result_of(folder: Path) -> dict[str, Any]:
    """The result of the run at `folder`; DamagedFile: it is another run's, or copies a run of a lower seed."""
    result = records.read_result(folder / "result.json")
    check_place(folder / "result.json", result)
    for name in records.listed(folder.parent):
        lower = re.fullmatch(rf"{result['scale']}-seed(\d+)", name)
        if lower and int(lower[1]) < result["seed"]:
            with contextlib.suppress(OSError):  # of the other one
                if filecmp.cmp(folder / "history.csv", folder.parent / name / "history.csv", shallow=False):
                    raise DamagedFile(f"{folder} has the history of {name}, so it is a copy; {WAY_OUT}")
    return result


def check_place(file: Path, record: dict[str, Any]) -> None:
    """DamagedFile: the record in `file` is of another run than its folder."""
    name, scale, seed = record["experiment"], record["scale"], record["seed"]
    if not 0 <= seed <= 2**63 or file.parent != folder_of(name, scale, seed):
        raise DamagedFile(
            f"{file} is of {name} at {scale} scale with seed {seed}, which is not what its folder is for; {WAY_OUT}"
        )


def run_of(experiment: Experiment, seed: int, result: dict[str, Any]) -> Run:
    """The run that has this result; raises as `load`."""
    folder = folder_of(experiment.name, experiment.scale, seed)
    try:
        config = records.read(folder / "config.json", records.CONFIG)
    except FileNotFoundError as error:
        raise DamagedFile(f"{folder / 'config.json'} is missing; {WAY_OUT}") from error
    if differing := records.difference(config, experiment):
        raise StaleRun(
            f"{folder.parent.name}/{folder.name} was trained with another configuration: {differing}; train it anew "
            f"with `{command(experiment, seed)} --again`, or turn the experiment back"
        )
    return Run(folder, experiment, seed, result)
