"""Many runs through dask.distributed; what is recorded is not trained again, and a killed run goes on elsewhere."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from nlstm_lab import cluster, experiments, runs
from nlstm_lab.cells.precision import Precision
from nlstm_lab.errors import Interrupted, LabError, MissingRun, UsageError
from nlstm_lab.runs.attempt import check_patience, settled

Status = Literal["recorded", "waits", "runs", "failed"]

# torch's random state and number of threads are the process's, so a worker with several threads trains one at a time
_one_at_a_time = threading.Lock()


@dataclass
class Job:
    """One run of a sweep, and how it stands."""

    experiment: experiments.Experiment
    seed: int
    status: Status = "waits"
    reason: str = ""  # of a failure, a sentence

    @property
    def key(self) -> str:
        return f"{self.experiment.name}/{self.experiment.scale}-seed{self.seed}"


def parse_seeds(text: str) -> list[int]:
    """Seeds as typed.

    >>> parse_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for item in text.split(","):
        first, dash, last = item.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
            raise UsageError(f"seeds are written like 0-4 or 0,2,5, not {text!r}")
        seeds += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(seeds))


def plan(pattern: str, seeds: Sequence[int], scale: str, patience: int | None = None) -> list[Job]:
    """The runs of a sweep and which of them are recorded, in the order of the documents.

    Experiments that match and lack the scale are passed over. Raises UsageError where none is left; a record
    of another configuration or text is a failed job. What `patience` comes too late for is recorded; without it, a run
    that a rule has ended waits for its last epoch.
    """
    matching = [pattern] if "+" in pattern else experiments.names(pattern)
    if not matching:
        raise UsageError(f"no experiment matches {pattern!r} (see nlstm-lab experiments)")
    names = [name for name in matching if scale in experiments.scales(name.split("+")[0])]
    names = names or matching[:1]  # none has it: the error of the first says what it has instead
    jobs = [Job(experiments.get(name, scale), seed) for seed in seeds for name in names]
    for job in jobs:
        check_patience(job.experiment, patience)
        try:
            if run := _settled(job, patience):
                runs.check_text(run)
                job.status = "recorded"
        except LabError as error:
            job.status, job.reason = "failed", str(error)
    return jobs


def _settled(job: Job, patience: int | None) -> runs.Run | None:
    try:
        return settled(job.experiment, job.seed, patience, finish=True)
    except UsageError:  # the rule comes too late for it
        return runs.load(job.experiment, job.seed)


def run(
    jobs: list[Job],
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    device: str = "auto",
    precision: Precision = "fp32",
    patience: int | None = None,
    watch: Callable[[list[Job]], None] = lambda jobs: None,
) -> list[Job]:
    """Train the jobs that wait, and return them all with how they ended; `watch` sees them after every look.

    scheduler: address of a running one, whose workers see this machine's folder of runs and data sets and have one
    thread each; None starts `workers` processes here (as many as there are processors, where None). Raises Interrupted
    when it is stopped from the keyboard, and UsageError where this machine lacks the device or precision.
    """
    if scheduler is None:
        runs.check_machine(device, precision)
    watch(jobs)
    waiting = [job for job in jobs if job.status == "waits"]
    if not waiting:
        return jobs
    with ExitStack() as stack:
        client = stack.enter_context(cluster.client(scheduler, cluster.workers_for(len(waiting), workers)))
        how = {"device": device, "precision": precision, "patience": patience}
        futures = {
            job.key: client.submit(train, job.experiment, job.seed, key=job.key, pure=False, **how) for job in waiting
        }
        stack.callback(client.cancel, list(futures.values()))
        try:
            for running in cluster.looks(client):
                for job in waiting:
                    _update(job, futures[job.key], running)
                watch(jobs)
                if all(job.status in ("recorded", "failed") for job in jobs):
                    break
        except KeyboardInterrupt:
            raise Interrupted("SIGINT: every run keeps its last checkpoint; the same command goes on") from None
    return jobs


def train(experiment: experiments.Experiment, seed: int, **how: Any) -> str:
    """What a worker does: one run, by one thread. Returns the folder of its record."""
    with _one_at_a_time:
        torch.set_num_threads(1)
        return str(runs.ensure(experiment, seed, **how, finish=True, progress=False).folder)


def _update(job: Job, future: Any, running: set[str]) -> None:
    if future.status == "finished":
        expected = Path(future.result())
        try:
            runs.load(job.experiment, job.seed)
            job.status = "recorded"
        except MissingRun:
            job.status = "failed"
            job.reason = f"its worker recorded it in {expected}, which is not this machine's folder: share one"
    elif reason := cluster.failure(future):
        job.status, job.reason = "failed", reason
    else:
        job.status = "runs" if job.key in running else "waits"
