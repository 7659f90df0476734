"""The only reader and writer of `data/runs`: one folder for each experiment, scale and seed.

A run is done when `result.json` is there, and it is written last. Until then it lives in an attempt folder beside its
place, with the checkpoint that the same call resumes from.
"""

import json
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nlstm_lab import experiments, models, paths, training
from nlstm_lab.datasets.base import Task
from nlstm_lab.errors import DamagedFile, LabError, MissingRun, StaleRun, UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.training import checkpoint
from nlstm_lab.training.loop import COLUMNS

LOWER_IS_BETTER = {"nll_nats", "bpc", "perplexity"}


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

    @cached_property
    def history(self) -> pd.DataFrame:
        """Long format: epoch, update, split, reader, metric, value."""
        return pd.read_csv(self.folder / "history.csv")

    def model(self, device: str = "cpu") -> models.Network:
        """The network with the weights of its best validation epoch, in eval mode; needs no data set.

        Committed weights are half precision. Raises MissingRun where none were kept and DamagedFile for a bad file.
        """
        file = self.folder / "weights.safetensors"
        if not file.exists():
            raise MissingRun(
                f"the weights of {self.name} are not kept here (its record is); train it again with "
                f"`nlstm-lab train {self.experiment.name} --scale {self.experiment.scale} --seed {self.seed} --again`"
            )
        ends = models.Interface.from_record(self.result["interface"])
        network = models.build(self.experiment.model, ends, seed=self.seed, name=self.name)
        try:
            weights = {name: value.float() for name, value in load_file(file).items()}
            network.load_state_dict(weights)
        except (SafetensorError, RuntimeError) as error:
            raise DamagedFile(f"{file} is damaged or not this network's ({error}); restore it with git") from error
        return network.to(device).eval()


def _paths(experiment: Experiment, seed: int) -> tuple[Path, Path]:
    folder = paths.runs() / experiment.name
    return folder / f"{experiment.scale}-seed{seed}", folder / f".attempt-{experiment.scale}-seed{seed}"


def resolve(name: str | Experiment, scale: str | None) -> Experiment:
    """An experiment from its name; without a scale, the largest one that has recorded runs."""
    if isinstance(name, Experiment):
        return name
    if scale is not None:
        return experiments.get(name, scale)
    recorded = [s for s in experiments.SCALES if list(paths.runs().glob(f"{name}/{s}-seed*/result.json"))]
    return experiments.get(name, recorded[-1] if recorded else "small")


def load(name: str | Experiment, seed: int = 0, scale: str | None = None) -> Run:
    """A recorded run; raises MissingRun where there is none and StaleRun where its configuration is not today's."""
    experiment = resolve(name, scale)
    folder, _ = _paths(experiment, seed)
    try:
        result = json.loads((folder / "result.json").read_text())
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        raise MissingRun(
            f"no run of {experiment.name} with seed {seed} at {experiment.scale} scale is recorded; train it with "
            f"`nlstm-lab train {experiment.name} --scale {experiment.scale} --seed {seed}`"
        ) from None
    except json.JSONDecodeError as error:
        raise DamagedFile(f"a record in {folder} is not JSON ({error}); restore it with git") from error
    if differing := _difference(config, experiment.config()):
        raise StaleRun(
            f"{folder.parent.name}/{folder.name} was trained with another configuration: {differing}; move the folder "
            "away to train it anew, or turn the experiment back"
        )
    return Run(folder, experiment, seed, result)


def ensure(
    name: str | Experiment, seed: int = 0, scale: str | None = None, device: str = "auto", progress: bool = True
) -> Run:
    """Load a run, or train it (resuming where an earlier attempt stopped) and save it."""
    experiment = resolve(name, scale)
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed must be an integer of 0 or more, not {seed!r}")
    try:
        return load(experiment, seed)
    except MissingRun:
        pass
    folder, attempt = _paths(experiment, seed)
    with _alone(attempt):
        if folder.exists():  # stopped between the rename and result.json: what is there is a finished attempt
            for file in folder.iterdir():
                file.replace(attempt / file.name)
            folder.rmdir()
        _train(experiment, seed, attempt, training_device(device), progress)
        _finish(attempt, folder)
    return load(experiment, seed)


def training_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device must be auto, cpu or cuda, not {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here; use --device cpu")
    return device


def _train(experiment: Experiment, seed: int, attempt: Path, device: torch.device, progress: bool) -> None:
    task: Task = experiment.task.load()
    network = models.build(experiment.model, models.Interface.of(task), seed=seed, name=experiment.name)
    fit = training.fit(
        network,
        task,
        experiment.training,
        seed=seed,
        checkpoint=attempt / "checkpoint.pt",
        device=device,
        progress=progress,
    )
    history = pd.DataFrame(fit.history, columns=list(COLUMNS))
    _write_json(attempt / "config.json", experiment.config())
    with paths.atomic(attempt / "history.csv") as partial:
        history.to_csv(partial, index=False, float_format="%.8g")
    with paths.atomic(attempt / "weights.safetensors") as partial:
        save_file({name: value.half().contiguous().cpu() for name, value in fit.weights.items()}, partial)
    _write_json(
        attempt / "pending.json",
        {
            "experiment": experiment.name,
            "scale": experiment.scale,
            "seed": seed,
            "config_digest": experiment.digest(),
            "parameters": models.parameter_count(network),
            "interface": models.Interface.of(task).record(),
            "best_epoch": fit.best_epoch,
            "metrics": summary(history),
            "seconds": round(fit.seconds, 1),
            "tokens_per_second": round(fit.tokens_per_second),
            "data_sha256": task.fingerprint,
            **provenance(device),
        },
    )


def _finish(attempt: Path, folder: Path) -> None:
    attempt.rename(folder)
    (folder / "pending.json").rename(folder / "result.json")
    checkpoint.remove(folder / "checkpoint.pt")
    (folder / "lock").unlink(missing_ok=True)


def summary(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Each reader's metrics at the epoch of that metric's own best validation value, on all three splits.

    Selection looks at validation alone. Readings that were taken once (streaming) stand at the epoch they were taken.
    """
    rows = []
    valid = history[(history.split == "valid") & ~history.metric.str.contains("/")]
    for (reader, metric), group in valid.groupby(["reader", "metric"], sort=False):
        values = group.value.to_numpy()
        best = values.argmin() if metric in LOWER_IS_BETTER else values.argmax()
        epoch = int(group.epoch.iloc[int(best)])
        at = history[(history.reader == reader) & (history.metric == metric) & (history.epoch == epoch)]
        for split, value in at[at.split.isin(["train", "valid", "test"])][["split", "value"]].itertuples(index=False):
            rows.append({"reader": reader, "metric": metric, "split": split, "epoch": epoch, "value": float(value)})
    return rows


def table(pattern: str = "*", scale: str | None = None) -> pd.DataFrame:
    """A tidy frame of recorded runs: one row a run, split, reader and metric."""
    rows = []
    for file in sorted(paths.runs().glob("*/*/result.json")):
        result = json.loads(file.read_text())
        if result["experiment"] in experiments.names(pattern) and scale in (None, result["scale"]):
            shared = {key: result[key] for key in ("experiment", "scale", "seed", "parameters", "best_epoch")}
            rows += [{**shared, **row} for row in result["metrics"]]
    columns = ["experiment", "scale", "seed", "parameters", "best_epoch", "reader", "metric", "split", "epoch", "value"]
    return pd.DataFrame(rows, columns=columns)


def provenance(device: torch.device) -> dict[str, Any]:
    """Commit and dirtiness, versions, device."""
    commit, dirty = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", "nlstm_lab")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "commit": commit or "unknown",
        "dirty": bool(dirty),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "device": f"{device.type}: {name}",
        "threads": torch.get_num_threads(),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=paths.PACKAGE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@contextmanager
def _alone(attempt: Path) -> Iterator[None]:
    """Hold the attempt folder's lock; a second process on the same run is told so."""
    import fcntl

    try:
        attempt.mkdir(parents=True, exist_ok=True)
        lock = (attempt / "lock").open("w")
    except OSError as error:
        raise LabError(f"cannot write to {attempt.parent} ({checkpoint.reason(error)}); make it writable") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LabError(f"another process is training {attempt.parent.name} with this seed; wait for it") from None
        yield


def _write_json(file: Path, content: Any) -> None:
    with paths.atomic(file) as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n")


def _difference(old: Any, new: Any, path: str = "") -> str:
    """The first field in which two configurations differ, as a sentence, or nothing."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if found := _difference(old.get(key), new.get(key), f"{path}.{key}" if path else key):
                return found
        return ""
    return "" if old == new else f"{path} was {old!r} and is {new!r}"
