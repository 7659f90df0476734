"""The only reader and writer of `data/runs`: one folder for each experiment, scale and seed.

A run is done when `result.json` is there, and it is written last.
"""

import fnmatch
import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nlstm_lab import cells, experiments, models, paths, training
from nlstm_lab.cells.precision import Precision
from nlstm_lab.datasets.base import Task
from nlstm_lab.errors import DamagedFile, MissingRun, StaleRun, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.runs import records
from nlstm_lab.runs.attempt import Attempt, alone
from nlstm_lab.runs.outlook import outlook
from nlstm_lab.runs.together import curves, dead_shares, histories
from nlstm_lab.training.checkpoint import writing
from nlstm_lab.training.state import COLUMNS

__all__ = [
    "Run",
    "curves",
    "dead_shares",
    "ensure",
    "histories",
    "load",
    "outlook",
    "recorded",
    "resolve",
    "table",
    "training_device",
]


@dataclass(frozen=True)
class Run:
    """One trained network: its record, its history, its weights."""

    folder: Path
    experiment: Experiment
    seed: int
    result: dict[str, Any]

    @property
    def name(self) -> str:
        """`experiment/scale-seed0`, as figures name it in their metadata."""
        return f"{self.experiment.name}/{self.experiment.scale}-seed{self.seed}"

    @property
    def has_weights(self) -> bool:
        """Whether its weights are kept here."""
        return (self.folder / "weights.safetensors").exists()

    @cached_property
    def history(self) -> pd.DataFrame:
        """Long format: epoch, update, split, reader, metric, value."""
        # values as text first: pandas' own reading may be off in the last digit
        text = pd.read_csv(self.folder / "history.csv", dtype={"value": str})
        return text.assign(value=text.value.astype(float))

    def model(self, device: str = "cpu") -> models.Network:
        """The network with the weights of its best validation epoch, in eval mode; needs no data set.

        Committed weights are half precision. Raises MissingRun where none were kept and DamagedFile for a bad file.
        """
        file = self.folder / "weights.safetensors"
        if not self.has_weights:
            raise MissingRun(
                f"the weights of {self.name} are not kept here (its record is); train it again with "
                f"`{command(self.experiment, self.seed)} --again`"
            )
        ends = models.Interface.from_record(self.result["interface"])
        network = models.build(self.experiment.model, ends, seed=self.seed, name=self.name)
        try:
            weights = {name: value.float() for name, value in load_file(file).items()}
            network.load_state_dict(weights)
        except (SafetensorError, RuntimeError) as error:
            raise DamagedFile(f"{file} is damaged or not this network's ({error}); restore it with git") from error
        return network.to(device).eval()


def command(experiment: Experiment, seed: int) -> str:
    """What trains a run, as typed."""
    return f"nlstm-lab train {experiment.name} --scale {experiment.scale} --seed {seed}"


def _folder(experiment: Experiment, seed: int) -> Path:
    """A variation may hold any character, such as a path's slashes; a folder's name may not."""
    return paths.runs() / quote(experiment.name, safe="+=,") / f"{experiment.scale}-seed{seed}"


def resolve(name: str | Experiment, scale: str | None) -> Experiment:
    """An experiment from its name; without a scale, the largest one that has recorded runs."""
    if isinstance(name, Experiment):
        return name
    if scale is not None:
        return experiments.get(name, scale)
    known = [experiments.get(name, known) for known in experiments.scales(name.split("+")[0])]
    recorded = [one for one in known if list(_folder(one, 0).parent.glob(f"{one.scale}-seed*/result.json"))]
    return recorded[-1] if recorded else experiments.get(name, "small")


def load(name: str | Experiment, seed: int = 0, scale: str | None = None) -> Run:
    """A recorded run; raises MissingRun where there is none and StaleRun where its configuration is not today's.

    >>> import nlstm_lab as lab
    >>> run = lab.runs.load("ptb_char_lstm2", seed=3, scale="small")
    >>> run.name, run.result["best_epoch"]
    ('ptb_char_lstm2/small-seed3', 2)
    """
    experiment = resolve(name, scale)
    folder = _folder(experiment, seed)
    try:
        result = records.read_json(folder / "result.json")
        config = records.read_json(folder / "config.json")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingRun(
            f"no run of {experiment.name} with seed {seed} at {experiment.scale} scale is recorded; train it with "
            f"`{command(experiment, seed)}`"
        ) from None
    if differing := records.difference(config, experiment):
        raise StaleRun(
            f"{folder.parent.name}/{folder.name} was trained with another configuration: {differing}; train it anew "
            f"with `{command(experiment, seed)} --again`, or turn the experiment back"
        )
    return Run(folder, experiment, seed, result)


def ensure(
    name: str | Experiment,
    seed: int = 0,
    scale: str | None = None,
    device: str = "auto",
    *,
    precision: Precision = "fp32",
    again: bool = False,
    progress: bool = True,
) -> Run:
    """Load a run, or train it (going on where an earlier attempt stopped) and save it.

    precision, device: of a training; a record that is there counts whatever it was made with. again: train although
    there is a record, which stays until the new one takes its place. Under torchrun all processes call this alike.

    >>> import nlstm_lab as lab
    >>> run = lab.runs.ensure("ptb_char_nlstm", seed=0, scale="small")  # recorded: loaded at once
    >>> run.name, run.model().unit.hidden_size
    ('ptb_char_nlstm/small-seed0', 150)
    """
    experiment = resolve(name, scale)
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed must be an integer of 0 or more, not {seed!r}")
    if not again:
        try:
            return load(experiment, seed)
        except MissingRun:
            pass
    _train(experiment, seed, training_device(device), precision, again, progress)
    return load(experiment, seed)


def training_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device must be auto, cpu or cuda, not {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here; use --device cpu")
    return device


def _train(
    experiment: Experiment, seed: int, device: torch.device, precision: Precision, again: bool, progress: bool
) -> None:
    with cells.precision(precision):
        pass  # refuses what this machine cannot do, before anything is begun
    task: Task = experiment.task.load()
    ends = models.Interface.of(task)
    try:
        network = models.build(experiment.model, ends, seed=seed, name=experiment.name)
    except (TypeError, ValueError) as error:  # a variation that its unit refuses
        raise UsageError(f"{experiment.name} cannot be built: {error}") from error
    attempt = Attempt(_folder(experiment, seed))
    with (
        training.joined(device) as (group, own_device),
        alone(attempt.folder) if group.first else nullcontext(),
    ):
        # another process may have finished it before this one held the lock
        if not group.broadcast(again or not (attempt.folder / "result.json").exists()):
            return
        if group.first:
            attempt.begin(experiment, again)
        fit = training.fit(
            network,
            task,
            experiment.training,
            seed=seed,
            checkpoint=attempt.checkpoint,
            device=own_device,
            precision=precision,
            group=group,
            progress=progress,
        )
        if group.first:
            result = {
                "experiment": experiment.name,
                "scale": experiment.scale,
                "seed": seed,
                "config_digest": experiment.digest(),
                "parameters": models.parameter_count(network),
                "interface": ends.record(),
                "data_sha256": task.fingerprint,
                "precision": precision,
                "processes": group.size,
                **records.provenance(own_device),
            }
            _record(attempt, experiment, fit, result)
        group.broadcast(None)  # nobody looks for the record before it is there


def _record(attempt: Attempt, experiment: Experiment, fit: training.Fit, result: dict[str, Any]) -> None:
    """Write the record and publish it. Numbers are written so that they read back as they were."""
    history = pd.DataFrame(fit.history, columns=list(COLUMNS))
    half = {name: value.half().contiguous().cpu() for name, value in fit.weights.items()}
    measured = {
        "best_epoch": fit.best_epoch,
        "metrics": records.summary(history),
        "seconds": round(fit.seconds, 1),
        "tokens_per_second": round(fit.tokens_per_second),
    }
    with writing(attempt.folder, "the training is done and kept"):
        shutil.rmtree(attempt.record, ignore_errors=True)  # what a killed process began to write
        records.write_json(attempt.record / "config.json", experiment.config())
        with paths.atomic(attempt.record / "history.csv") as partial:
            history.to_csv(partial, index=False)
        with paths.atomic(attempt.record / "weights.safetensors") as partial:
            try:
                save_file(half, partial)
            except SafetensorError as error:  # its words for what the system said
                raise OSError(str(error)) from error
        attempt.publish({**result, **measured})


def recorded(pattern: str = "*", scale: str | None = None) -> list[Run]:
    """Every run that is recorded of the documents' experiments that match, in the documents' order; trains nothing.

    Raises StaleRun where one of them was trained with another configuration than today's.

    >>> import nlstm_lab as lab
    >>> [run.name for run in lab.runs.recorded("ptb_char_nlstm", "small")][:2]
    ['ptb_char_nlstm/small-seed0', 'ptb_char_nlstm/small-seed1']
    """
    found = [records.read_json(file) for file in sorted(paths.runs().glob("*/*/result.json"))]
    return [
        load(name, seed, one)
        for name in experiments.names(pattern)
        for one in experiments.scales(name)
        if scale in (None, one)
        for seed in sorted(told["seed"] for told in found if (told["experiment"], told["scale"]) == (name, one))
    ]


def table(pattern: str = "*", scale: str | None = None) -> pd.DataFrame:
    """A tidy frame of recorded runs, variations among them: one row a run, split, reader and metric.

    Raises StaleRun where one that matches was trained with another configuration than today's.

    >>> import nlstm_lab as lab
    >>> table = lab.runs.table("ptb_char_*", scale="small")
    >>> valid = table.query("metric == 'bpc' and split == 'valid' and reader == 'blocks'")
    >>> means = valid.groupby("experiment").value.mean()
    >>> bool(means["ptb_char_nlstm_logfreq"] < means["ptb_char_nlstm"])
    True
    """
    rows, known = [], experiments.names()
    for file in sorted(paths.runs().glob("*/*/result.json")):
        result = records.read_json(file)
        if fnmatch.fnmatchcase(result["experiment"], pattern) and scale in (None, result["scale"]):
            if result["experiment"].split("+")[0] in known:  # an experiment of the reader's own cannot be stale
                load(result["experiment"], result["seed"], result["scale"])
            shared = {key: result[key] for key in ("experiment", "scale", "seed", "parameters", "best_epoch")}
            rows += [{**shared, **row} for row in result["metrics"]]
    columns = ["experiment", "scale", "seed", "parameters", "best_epoch", "reader", "metric", "split", "epoch", "value"]
    return pd.DataFrame(rows, columns=columns)
