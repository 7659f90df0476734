"""What a record says: the configuration and whether it is today's, the result, where and with what it was made."""

import io
import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from nlstm_lab import paths
from nlstm_lab.errors import WAY_OUT, DamagedFile
from nlstm_lab.experiments import Experiment
from nlstm_lab.settings import CURRENT, HIGHER_IS_BETTER, RECORDED_AS
from nlstm_lab.training.state import COLUMNS

ROW = {RECORDED_AS["evaluation"]: str, "metric": str, "split": str, "epoch": int, "value": float}
RUN = {"experiment": str, "scale": str, "seed": int}
SIZES = {"parameters": int, "best_epoch": int, "metrics": list, "seconds": float, "tokens_per_second": int}
MADE = {"commit": str, "config_digest": str, "data_sha256": str, "device": str, "versions": dict, "interface": dict}
FAILURE = {**RUN, "what": str, "update": int}
CONFIG = {"name": str, "scale": str, "task": dict, "model": dict, "training": dict}


def write_json(file: Path, content: Any) -> None:
    """Write plain values to `file`, whole or not at all."""
    with paths.atomic(file) as partial:
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(file: Path, known: Mapping[str, type]) -> dict[str, Any]:
    """Plain values from `file`, which has these fields of these types; DamagedFile, or FileNotFoundError."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(f"{file} cannot be read ({error}); {WAY_OUT}") from error
    _check(file, content, known)
    return content


def read_result(file: Path) -> dict[str, Any]:
    """A run's result, its fields by their current names; raises as `read`."""
    result = read(file, {**RUN, **SIZES, **MADE})
    for row in result["metrics"]:
        _check(file, row, ROW)
    if result["best_epoch"] not in {row["epoch"] for row in result["metrics"]}:
        raise DamagedFile(f"{file} has no metrics of its best epoch, {result['best_epoch']}; {WAY_OUT}")
    return {**result, "metrics": [{CURRENT.get(name, name): row[name] for name in row} for row in result["metrics"]]}


def listed(folder: Path) -> list[str]:
    """What lies in a folder, sorted; nothing where there is none. DamagedFile: it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DamagedFile(f"the folder {folder} cannot be read ({paths.reason(error)}); let it be read") from error


def read_history(file: Path, result: Mapping[str, Any], epochs: int) -> pd.DataFrame:
    """A run's history, its columns by their current names; DamagedFile: it has not what `result` and `epochs` say."""
    kinds = {"epoch": int, "update": int, "value": str}  # as text first: pandas' reading may be off in the last digit
    try:
        content = file.read_bytes()
        text = pd.read_csv(io.BytesIO(content), dtype=kinds).rename(columns=CURRENT)
        history = text.assign(value=text["value"].astype(float))
    except (OSError, ValueError, KeyError) as error:
        raise DamagedFile(f"{file} cannot be read ({error}); {WAY_OUT}") from error
    whole = content.endswith(b"\n") and list(history) == list(COLUMNS) and not history.empty
    if not whole or history.isna().any(axis=None) or not history["value"].abs().lt(math.inf).all():
        raise DamagedFile(f"{file} is cut short, or holds something else than a history; {WAY_OUT}")
    keys = ["evaluation", "metric", "split", "epoch"]
    recorded = {tuple(row[key] for key in keys) for row in result["metrics"]}
    trained = history[(history["epoch"] > 0) & (history["evaluation"] == history["evaluation"].iloc[0])]
    rows = trained[~trained["metric"].str.startswith("explained_share")].groupby("epoch").size()  # it has no row if NaN
    if recorded - set(history[keys].itertuples(index=False, name=None)) or len(rows) != epochs or rows.nunique() > 1:
        raise DamagedFile(f"{file} lacks rows that its result.json speaks of; {WAY_OUT}")
    return history


def _check(file: Path, content: Any, known: Mapping[str, type]) -> None:
    """DamagedFile: a field is not there, or not of its type; a number is finite, and may be whole."""
    for name, kind in known.items():
        value = content.get(name) if isinstance(content, dict) else None
        right = type(value) in (int, float) and math.isfinite(value) if kind is float else type(value) is kind  # type: ignore[arg-type]
        if not right:
            raise DamagedFile(f"{file} holds no {name} as a record has it; {WAY_OUT}")


def difference(recorded: dict[str, Any], experiment: Experiment, beside: Mapping[str, str] | None = None) -> str:
    """The first field in which a configuration recorded with what stands `beside` it is not today's, or "".

    A field that it does not have yet counts by its default.
    """
    today = experiment.config() | dict(beside or {})
    defaults = {
        f"{section}.{RECORDED_AS.get(field.name, field.name)}": field.default
        for section in ("task", "model", "training")
        for field in fields(getattr(experiment, section))
        if field.default is not MISSING
    }
    known = _flat(json.loads(json.dumps(defaults, default=asdict)))
    then, now = known | _flat(recorded), known | _flat(today)
    for name in sorted(then.keys() | now.keys()):
        if name not in then or name not in now or then[name] != now[name]:
            was, is_ = (repr(values[name]) if name in values else "absent" for values in (then, now))
            return f"{name} was {was} and is {is_}"
    return ""


def _flat(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Values by their paths, such as "model.flags.depth"; an empty dictionary holds none."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return flat


def summary(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Each evaluation's metrics at the epoch of that metric's own best validation value, on all three splits."""
    rows: list[Any] = []
    valid = history[(history.split == "valid") & ~history.metric.str.contains("/")]
    for (evaluation, metric), group in valid.groupby(["evaluation", "metric"], sort=False):
        values = group.set_index("epoch").value
        best = values.idxmax() if metric in HIGHER_IS_BETTER else values.idxmin()
        at = history[(history.evaluation == evaluation) & (history.metric == metric) & (history.epoch == best)]
        at = at[at.split.isin(["train", "valid", "test"])]
        rows += at[["evaluation", "metric", "split", "epoch", "value"]].to_dict("records")
    return rows


def state(result: Mapping[str, Any]) -> str:
    """How far a run got: "done", or "16 of 35 epochs, by early stopping"; without its epochs, it is done."""
    run, epochs = result.get("epochs_run"), result.get("epochs")
    return "done" if run == epochs else f"{run} of {epochs} epochs, by early stopping"


def provenance(device: torch.device) -> dict[str, Any]:
    """Commit and dirtiness of the checkout that this package is of ("unknown" and None: of none), versions, device."""
    known = commit()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "commit": known,
        "dirty": None if known == "unknown" else bool(_git("status", "--porcelain", "--", paths.PACKAGE.name)),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "device": f"{device.type}: {name}",
        "threads": torch.get_num_threads(),
    }


def commit() -> str:
    """The commit of the checkout that this package is of, or "unknown": it may be installed into another project's."""
    ours = {"pyproject.toml", f"{paths.PACKAGE.name}/__init__.py"}
    tracked = _git("ls-files", "--full-name", *ours).splitlines()
    return (set(tracked) == ours and _git("rev-parse", "HEAD")) or "unknown"


def _git(*arguments: str) -> str:
    """What git says of the folder that the package lies in; nothing where there is no git, or no repository."""
    try:
        line = ["git", "-C", str(paths.PACKAGE.parent), *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
