"""Committed records of speed, as the scripts in `benchmarks/` measured it: ratios first, which carry over best."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nlstm_lab import paths
from nlstm_lab.errors import UsageError

__all__ = ["Record", "recorded", "recorded_hours", "recorded_steps"]

SAME = "_logfreq"  # behind the names of rows that differ in the output bias alone, and take as long


@dataclass(frozen=True)
class Record:
    """What `benchmarks/steps.py --record NAME` left of a machine.

    Args:
        name: A word for the machine.
        machine: `training.state.machine`.
        rounds: How often each variant was run; a single one is a trial of the machinery and no measurement.
        training, reading: Frames, one row a variant, and one a pair of boundary rates (layer1, layer2).
    """

    name: str
    machine: dict[str, Any]
    rounds: int
    training: pd.DataFrame
    reading: pd.DataFrame

    def of(self, hidden_size: int, device: str = "cpu") -> pd.DataFrame:
        """Select the training steps that were measured with this `hidden_size` on this `device`, cpu or cuda."""
        mine = self.training[(self.training["hidden_size"] == hidden_size) & (self.training["device"] == device)]
        return mine[mine["variant"] != "unmeasured"].reset_index(drop=True)


def recorded(name: str) -> Record:
    """Load the record of the machine called `name`.

    Raises:
        UsageError: There is none of that name; the message lists those that there are.
    """
    files = {path.stem: path for path in sorted(paths.bench().glob("*.json"))}
    if name not in files:
        raise UsageError(f"no benchmark is recorded as {name!r}; there are: {', '.join(files) or 'none'}")
    content = json.loads(files[name].read_text())
    reading = pd.DataFrame(content["reading"])
    rates = pd.DataFrame(reading.pop("rates").tolist(), columns=["layer1", "layer2"])
    training = pd.DataFrame(content["training"])
    return Record(name, content["machine"], content["rounds"], training, pd.concat([rates, reading], axis=1))


def recorded_steps() -> pd.DataFrame:
    """Load what `benchmarks/hmlstm.py` measured, under `machine` one machine after the other."""
    files = {file.stem.removeprefix("hmlstm-"): file for file in sorted(paths.bench().glob("hmlstm-*.csv"))}
    frames = {name: pd.read_csv(file, keep_default_na=False) for name, file in files.items()}
    return pd.concat(frames, names=["machine"]).reset_index("machine").reset_index(drop=True)


def recorded_hours(names: Iterable[str]) -> pd.DataFrame:
    """Load the hours of trainings at paper scale that `benchmarks/trainings.py` measured.

    Args:
        names: Of experiments.

    Returns:
        A row for each name, a column for each machine that has a record; NaN where it has none.

    >>> import nlstm_lab as lab
    >>> lab.bench.recorded_hours(["ptb_char_nlstm"]).columns.tolist()
    ['one thread']
    """
    names, columns = list(names), {}
    for path in sorted(paths.bench().glob("trainings-*.csv")):
        known = pd.read_csv(path, index_col="experiment")["hours"]
        machine = path.stem.removeprefix("trainings-").replace("_", " ")
        columns[machine] = known.reindex([name.removesuffix(SAME) for name in names]).to_numpy()
    return pd.DataFrame(columns, index=names)
