"""What is not run yet, which command runs it, and what a notebook leaves to that command."""

import math
import sys
from collections.abc import Sequence

import pandas as pd

from nlstm_lab import experiments
from nlstm_lab.errors import MissingRun
from nlstm_lab.experiments import Experiment, sizes
from nlstm_lab.runs.run import Run, command

HOURS_IN_NOTEBOOK = 1.0  # a longer training is not started from a notebook's cell


def refuse_in_notebook(experiment: Experiment, seed: int, device: str) -> None:
    """Refuse to start a training of hours from a notebook's cell: MissingRun, with the command and its hours."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return
    if (hours := sizes.hours(experiment, device)) > HOURS_IN_NOTEBOOK:
        raise MissingRun(
            f"no run of {experiment.name} with seed {seed} at {experiment.scale} scale is recorded; train it in a "
            f"terminal with `{command(experiment, seed)}`, about {math.ceil(hours)} hours on this machine's {device}"
        )


def outlook(runs: Sequence[Run], pattern: str, scale: str, seeds: Sequence[int]) -> pd.DataFrame:
    """List what lacks runs: one row an experiment, with the `seeds` that lack and the `command`.

    Args:
        runs: All that are recorded here.
    """
    done = {(run.experiment.name, run.experiment.scale, run.seed) for run in runs}
    rows = []
    for name in experiments.names(pattern):
        lacking = [str(seed) for seed in seeds if (name, scale, seed) not in done]
        if scale in experiments.scales(name) and lacking:
            missing = ",".join(lacking)
            command = f"nlstm-lab sweep {name} --scale {scale} --seeds {missing}"
            rows.append({"experiment": name, "seeds": missing, "command": command})
    return pd.DataFrame(rows, columns=["experiment", "seeds", "command"])
