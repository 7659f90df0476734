"""What is not run yet, and which command runs it."""

from collections.abc import Sequence

import pandas as pd

from nlstm_lab import experiments
from nlstm_lab.runs.run import Run


def outlook(runs: Sequence[Run], pattern: str, scale: str, seeds: Sequence[int]) -> pd.DataFrame:
    """One row for each experiment that lacks a run: `experiment`, `seeds` that lack, and the `command`.

    runs: all that are recorded here.
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
