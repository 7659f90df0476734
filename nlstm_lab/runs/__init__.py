"""The only reader and writer of `data/runs`: one folder for each experiment, scale and seed.

A run is done when `result.json` is there, and it is written last.

What these arguments mean wherever they are taken:

    name: The experiment, or its name.
    experiment: A row of a table at one scale.
    folder: Where a run's record lies.
    result: What its `result.json` holds.
    pattern: A shell pattern of experiments' names.
    scale: smoke, small or paper; None for any, or the largest at which that seed is recorded.
    seed: The run's seed.
    seeds: The runs' seeds.
    runs: Recorded runs.
    device: auto, cpu or cuda.
    precision: fp32 or bf16, of the products in training.
    progress: Show a progress bar.
"""

from nlstm_lab.runs.attempt import PartialRun, ensure, unfinished
from nlstm_lab.runs.run import Run, load
from nlstm_lab.runs.tables import benchmark, dead_shares, describe_runs, failures, histories, outlook, recorded, table

__all__ = ["PartialRun", "Run", "benchmark", "dead_shares", "describe_runs", "ensure", "failures", "histories", "load",
           "outlook", "recorded", "table", "unfinished"]  # fmt: skip
