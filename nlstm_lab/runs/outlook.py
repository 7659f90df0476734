"""What is not run yet: which command runs it, and about how many hours that takes."""

from collections.abc import Sequence
from statistics import median

import pandas as pd

from nlstm_lab import experiments
from nlstm_lab.experiments import sizes
from nlstm_lab.runs.run import Run


def outlook(runs: Sequence[Run], pattern: str, scale: str, seeds: Sequence[int]) -> pd.DataFrame:
    """One row for each experiment that lacks a run: `experiment`, `seeds` that lack, `hours` for each, `command`.

    runs: all that are recorded here. The hours are those of one processor thread at the rate at which the recorded
    runs did their work, in parameters times symbols a second; half of them were slower, and a GPU is another matter.
    """
    speeds = [run.result["parameters"] * run.result["tokens_per_second"] for run in runs]
    done = {(run.experiment.name, run.experiment.scale, run.seed) for run in runs}
    rows = []
    for name in experiments.names(pattern):
        if scale not in experiments.scales(name):
            continue
        experiment = experiments.get(name, scale)
        if lacking := [seed for seed in seeds if (name, scale, seed) not in done]:
            work = sizes.parameters(experiment) * sizes.symbols_read(experiment)
            told = ",".join(map(str, lacking))
            rows.append(
                {
                    "experiment": name,
                    "seeds": told,
                    "hours": work / median(speeds) / 3600 if speeds else float("nan"),
                    "command": f"nlstm-lab sweep {name} --scale {scale} --seeds {told}",
                }
            )
    return pd.DataFrame(rows, columns=["experiment", "seeds", "hours", "command"])
