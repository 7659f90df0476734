"""Executing the collection on a dask cluster: what changed, several at a time.

A notebook is a task. A killed worker's notebook starts again in another worker; what was finished stays, and what was
not leaves no executed copy, so a second start does the rest.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from uuid import uuid4

from nlstm_lab import cluster, paths
from nlstm_lab.errors import Interrupted
from nlstm_lab.notebooks.executor import execute
from nlstm_lab.notebooks.inputs import Inputs, reads_claims, stamped, unchanged
from nlstm_lab.notebooks.jobs import Job
from nlstm_lab.notebooks.kernel import Kernel

Status = Literal["waits", "runs", "done", "unchanged", "failed"]
USUAL = 15.0  # seconds of a notebook that was never executed here


@dataclass
class Outcome:
    """A job and how it stands; its executed copy is of now when it is done or unchanged, an earlier one's otherwise."""

    job: Job
    cells: int = 0
    status: Status = "waits"
    executed: int = 0  # cells
    seconds: float = 0.0
    expected: float = USUAL  # seconds
    error: str = ""  # a sentence

    @property
    def over(self) -> bool:
        return self.status not in ("waits", "runs")


Watch = Callable[[list[Outcome]], None]


def execute_all(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    timeout: float | None = None,
    everything: bool = False,
    watch: Watch = lambda outcomes: None,
) -> list[Outcome]:
    """Execute the notebooks that changed since they were executed, or everything.

    scheduler: address of a running one, whose workers see this machine's checkout; None starts `workers` processes
    here (one a processor, where None). watch: sees all outcomes again and again while they change.
    One that fails does not stop the others. Raises Interrupted after Ctrl-C: all kernels end, what was finished stays.
    """
    outcomes, client = [_outcome(job) for job in jobs], None
    try:
        with ExitStack() as stack:
            for late in (False, True):  # those that read what the others note come last
                wave = [outcome for outcome in outcomes if reads_claims(outcome.job) == late]
                inputs = Inputs.now()
                for outcome in wave:
                    if not everything and unchanged(outcome.job, inputs.of(outcome.job)):
                        outcome.status = "unchanged"
                if waiting := [outcome for outcome in wave if not outcome.over]:
                    count = cluster.workers_for(len(waiting), workers)
                    client = client or stack.enter_context(cluster.client(scheduler, count))
                    _run(client, waiting, timeout, lambda: watch(outcomes))
    except KeyboardInterrupt:
        raise Interrupted("stopped: what was finished stays, and the same command does the rest") from None
    finally:
        for folder in (paths.figures(), paths.probes(), paths.executed()):
            paths.tidy(folder)
    watch(outcomes)
    return outcomes


def time_left(outcomes: Sequence[Outcome], workers: int) -> float:
    """Seconds until all are over, judged by how long each took the last time."""
    left = [max(each.expected - each.seconds, 1.0) for each in outcomes if not each.over]
    return max(max(left), sum(left) / workers) if left else 0.0


def _outcome(job: Job) -> Outcome:
    cells = sum(cell.cell_type == "code" for cell in job.read().cells) + bool(job.parameters)
    return Outcome(job, cells, expected=float(stamped(job).get("seconds", USUAL)))


def _run(client: Any, outcomes: Sequence[Outcome], timeout: float | None, look: Callable[[], None]) -> None:
    """Let the cluster execute them, the longest first, until each is over."""
    owner, began = f"notebooks-{uuid4().hex}", dict[str, float]()
    by_name = {outcome.job.name: outcome for outcome in outcomes}

    def heard(event: tuple[float, dict[str, Any]]) -> None:
        _, details = event
        by_name[details["notebook"]].executed = details["cell"]
        began.setdefault(details["notebook"], time.monotonic())

    client.subscribe_topic(owner, heard)
    threads = 1 if len(outcomes) > 1 else 0
    futures = {
        outcome.job.name: client.submit(
            _execute, outcome.job, timeout, threads, owner, key=f"{outcome.job.name}-{owner}", pure=False
        )
        for outcome in sorted(outcomes, key=lambda outcome: -outcome.expected)
    }
    try:
        for _ in cluster.looks(client):
            for outcome in outcomes:
                if not outcome.over:
                    outcome.seconds = time.monotonic() - began.get(outcome.job.name, time.monotonic())
                    _update(outcome, futures[outcome.job.name], outcome.job.name in began)
            look()
            if all(outcome.over for outcome in outcomes):
                break
    except KeyboardInterrupt:
        with cluster.uninterrupted(), suppress(OSError, TimeoutError):  # a worker that is gone has taken its kernels along
            client.cancel(list(futures.values()))
            client.run(partial(Kernel.kill_all, owner), callback_timeout=cluster.PATIENCE)
        raise
    finally:
        with suppress(OSError):
            client.unsubscribe_topic(owner)


def _execute(job: Job, timeout: float | None, threads: int, owner: str) -> tuple[float, str]:
    """What a worker does: one notebook, from its first cell, telling after each. Returns seconds and the inputs."""
    import distributed

    started, done, worker = time.perf_counter(), 0, distributed.get_worker()

    def tell(**_: Any) -> None:
        nonlocal done
        worker.log_event(owner, {"notebook": job.name, "cell": done})
        done += 1

    tell()
    execute(job, timeout, threads, on_cell=tell, owner=owner)
    return time.perf_counter() - started, stamped(job)["inputs"]


def _update(outcome: Outcome, future: Any, began: bool) -> None:
    if future.status == "finished":
        outcome.seconds, made_from = future.result()
        if stamped(outcome.job).get("inputs") == made_from:
            outcome.status = "done"
        else:
            outcome.status = "failed"
            outcome.error = f"its worker did not write {outcome.job.output} of this machine: share the checkout"
    elif reason := cluster.failure(future):
        outcome.status, outcome.error = "failed", reason
    elif began:
        outcome.status = "runs"
