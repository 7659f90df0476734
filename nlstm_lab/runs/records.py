"""What a record says: the configuration and whether it is today's, the result, where and with what it was made."""

import contextlib
import dataclasses
import filecmp
import io
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile
from nlstm_lab.experiments import Experiment
from nlstm_lab.settings import HIGHER_IS_BETTER, RECORDED_AS, recorded_as
from nlstm_lab.training.state import COLUMNS

ABSENT = object()
CURRENT = {recorded: name for name, recorded in RECORDED_AS.items()}
WAY_OUT = "restore it with git, or train the run anew with --again"
ROW = {RECORDED_AS["evaluation"]: str, "metric": str, "split": str, "epoch": int, "value": float}
RESULT = {"experiment": str, "scale": str, "seed": int, "parameters": int, "best_epoch": int, "metrics": list}
FAILURE = {"experiment": str, "scale": str, "seed": int, "what": str, "update": int}
CONFIG = {"name": str, "scale": str, "task": dict, "model": dict, "training": dict}


def write_json(file: Path, content: Any) -> None:
    """Write plain values to `file`, whole or not at all."""
    with paths.atomic(file) as partial:
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(file: Path) -> Any:
    """Read plain values from `file`.

    Raises:
        DamagedFile: It is not JSON, or cannot be read.
        FileNotFoundError: It is not there.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{file} is not JSON ({error}); {WAY_OUT}") from error
    except OSError as error:
        raise DamagedFile(f"{file} cannot be read ({paths.reason(error)}); {WAY_OUT}") from error


def read(file: Path, fields: Mapping[str, type]) -> dict[str, Any]:
    """A record from `file`, which has these fields of these types; raises as `read_json`."""
    content = read_json(file)
    _refuse(file, _lacking(content, fields))
    return content  # type: ignore[no-any-return]


def read_result(file: Path) -> dict[str, Any]:
    """A run's result from `file`, its metrics numbers, its fields by their current names; raises as `read_json`."""
    result = read(file, RESULT)
    _refuse(file, next(filter(None, (_lacking(row, ROW) for row in result["metrics"])), ""))
    if result["best_epoch"] not in {row["epoch"] for row in result["metrics"]}:
        raise DamagedFile(f"{file} has no metrics of its best epoch, {result['best_epoch']}; {WAY_OUT}")
    metrics = [{CURRENT.get(name, name): value for name, value in row.items()} for row in result["metrics"]]
    return {**result, "metrics": metrics}


def copied_from(folder: Path) -> str:
    """The run beside this one, of the same scale and a lower seed, that has its history or weights too; "" if none."""
    scale, _, seed = folder.name.rpartition("-seed")
    weights = re.compile(r'"weights_sha256": "\w{64}"')
    own = weights.search((folder / "result.json").read_text(encoding="utf-8"))
    for name in listed(folder.parent):
        lower = re.fullmatch(rf"{scale}-seed(\d+)", name)
        if lower and int(lower[1]) < int(seed):
            other = folder.parent / name
            with contextlib.suppress(OSError, UnicodeDecodeError):
                theirs = weights.search((other / "result.json").read_text(encoding="utf-8"))
                if own and theirs and own[0] == theirs[0]:
                    return name
                if filecmp.cmp(folder / "history.csv", other / "history.csv", shallow=False):
                    return name
    return ""


def listed(folder: Path) -> list[str]:
    """What lies in a folder, sorted; nothing where there is none.

    Raises:
        DamagedFile: It cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DamagedFile(f"the folder {folder} cannot be read ({paths.reason(error)}); let it be read") from error


def read_history(file: Path, result: Mapping[str, Any], epochs: int) -> pd.DataFrame:
    """Read a run's history of so many `epochs`, its columns by their current names.

    Raises:
        DamagedFile: It is no such history, or `result` says more.
    """
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
    said = {tuple(row[key] for key in keys) for row in result["metrics"]}
    trained = history[(history["epoch"] > 0) & (history["evaluation"] == history["evaluation"].iloc[0])]
    rows = trained.groupby("epoch").size()
    if said - set(history[keys].itertuples(index=False, name=None)) or len(rows) != epochs or rows.nunique() > 1:
        raise DamagedFile(f"{file} lacks rows that its result.json speaks of; {WAY_OUT}")
    return history


def _lacking(content: Any, fields: Mapping[str, type]) -> str:
    """The first field that is not there, or not of its type; a number is finite, and may be whole where it need not."""
    for name, kind in fields.items():
        value = content.get(name) if isinstance(content, dict) else None
        number = kind is float and type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
        if not number and (kind is float or type(value) is not kind):
            return name
    return ""


def _refuse(file: Path, lacking: str) -> None:
    if lacking:
        raise DamagedFile(f"{file} holds no {lacking} as a record has it; {WAY_OUT}")


def write_result(file: Path, result: Mapping[str, Any]) -> None:
    """Write a run's result to `file` with the names that records have."""
    write_json(file, {**result, "metrics": [recorded_as(row) for row in result["metrics"]]})


def write_history(file: Path, history: pd.DataFrame) -> None:
    """Write a run's history to `file` with the names that records have; its values read back as they were."""
    with paths.atomic(file) as partial:
        history.rename(columns=RECORDED_AS).to_csv(partial, index=False)


def difference(recorded: dict[str, Any], experiment: Experiment) -> str:
    """The first field in which a recorded configuration is not today's; a new field counts by its default."""
    then, now = dict(recorded), experiment.config()
    for section in ("task", "model", "training"):
        if isinstance(then.get(section), dict):
            defaults = _defaults(getattr(experiment, section))
            then[section], now[section] = {**defaults, **then[section]}, {**defaults, **now[section]}
    return _first_difference(then, now)


def _defaults(config: Any) -> dict[str, Any]:
    """The defaults of a dataclass's fields, as plain values."""
    given = {}
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            given[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            given[field.name] = field.default_factory()
    return json.loads(json.dumps(recorded_as(given), default=dataclasses.asdict))  # type: ignore[no-any-return]


def _first_difference(then: Any, now: Any, path: str = "") -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted(then.keys() | now.keys()):
            inner = f"{path}.{key}" if path else key
            if text := _first_difference(then.get(key, ABSENT), now.get(key, ABSENT), inner):
                return text
        return ""
    was, now_is = ("absent" if value is ABSENT else repr(value) for value in (then, now))
    return "" if then == now else f"{path} was {was} and is {now_is}"


def summary(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Each evaluation's metrics at the epoch of that metric's own best validation value, on all three splits."""
    rows = []
    valid = history[(history.split == "valid") & ~history.metric.str.contains("/")]
    for (evaluation, metric), group in valid.groupby(["evaluation", "metric"], sort=False):
        values = group.value.to_numpy()
        best = values.argmax() if metric in HIGHER_IS_BETTER else values.argmin()
        epoch = int(group.epoch.iloc[int(best)])
        at = history[(history.evaluation == evaluation) & (history.metric == metric) & (history.epoch == epoch)]
        for split, value in at[at.split.isin(["train", "valid", "test"])][["split", "value"]].itertuples(index=False):
            rows.append(
                {"evaluation": evaluation, "metric": metric, "split": split, "epoch": epoch, "value": float(value)}
            )
    return rows


def state(result: Mapping[str, Any]) -> str:
    """How far a run got: "done", or "16 of 35 epochs, by the rule"; a record of before there was a rule is done."""
    run, epochs = result.get("epochs_run"), result.get("epochs")
    return "done" if run == epochs else f"{run} of {epochs} epochs, by the rule"


def provenance(device: torch.device) -> dict[str, Any]:
    """Commit and dirtiness of the checkout that this package is of ("unknown" and None: of none), versions, device."""
    dirty = _git("status", "--porcelain", "--", "nlstm_lab")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "commit": commit(),
        "dirty": None if dirty is None else bool(dirty),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "device": f"{device.type}: {name}",
        "threads": torch.get_num_threads(),
    }


def commit() -> str:
    """Return the commit of the checkout that this package is of, or "unknown"."""
    return _git("rev-parse", "HEAD") or "unknown"


def _git(*arguments: str) -> str | None:
    """What git says of the checkout; None where there is none, or no git.

    An installed package, or an archive that was unpacked, may lie in another project's.
    """
    checkout = paths.PACKAGE.parent
    told = [_asked(checkout, *one) for one in (("rev-parse", "--show-toplevel"), ("ls-files", "pyproject.toml"))]
    if not all(told) or not os.path.samefile(str(told[0]), checkout):
        return None
    return _asked(checkout, *arguments)


def _asked(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
