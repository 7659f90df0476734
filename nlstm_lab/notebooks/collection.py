"""Executing the collection: what changed, several notebooks at a time, each in a kernel of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from typing import Literal

from nlstm_lab import cluster
from nlstm_lab.errors import Interrupted
from nlstm_lab.notebooks.executor import Kernel, execute
from nlstm_lab.notebooks.inputs import Inputs, reads_claims, stamped, unchanged
from nlstm_lab.notebooks.jobs import Job

USUAL = 15.0  # seconds of a notebook that was never executed here


@dataclass
class Outcome:
    """How a job ended; its executed copy is of now when it is done or unchanged, an earlier one's otherwise."""

    job: Job
    status: Literal["done", "unchanged", "failed"]
    seconds: float = 0.0
    error: str = ""  # a sentence


def execute_all(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    timeout: float | None = None,
    everything: bool = False,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Execute the notebooks that changed since they were executed, or everything.

    workers: how many at a time (one a processor, where None). tell: is called with each that is over. One that fails
    does not stop the others. Raises Interrupted after Ctrl-C: all kernels end, what was finished stays.
    """
    outcomes: list[Outcome] = []

    def over(outcome: Outcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    try:
        for late in (False, True):  # those that read what the others note come last
            inputs, waiting = Inputs.now(), list[Job]()
            for job in (job for job in jobs if reads_claims(job) == late):
                if everything or not unchanged(job, inputs.of(job)):
                    waiting.append(job)
                else:
                    over(Outcome(job, "unchanged"))
            if waiting:
                _run(waiting, cluster.workers_for(len(waiting), workers), timeout, over)
    except KeyboardInterrupt:
        raise Interrupted("stopped: what was finished stays, and the same command does the rest") from None
    return outcomes


def _run(jobs: Sequence[Job], workers: int, timeout: float | None, over: Callable[[Outcome], None]) -> None:
    """Execute them, those first that took longest the last time, so many at a time."""
    threads = 1 if len(jobs) > 1 else 0
    with ThreadPoolExecutor(workers) as pool:
        longest_first = sorted(jobs, key=lambda job: -float(stamped(job).get("seconds", USUAL)))
        futures = [pool.submit(_execute, job, timeout, threads) for job in longest_first]
        try:
            for future in as_completed(futures):
                over(future.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(futures, cluster.PERIOD).not_done:  # a kernel may just be starting
                Kernel.kill_all()
            raise


def _execute(job: Job, timeout: float | None, threads: int) -> Outcome:
    started = time.monotonic()
    try:
        execute(job, timeout, threads)
    except Exception as error:  # whatever it is, the others go on
        return Outcome(job, "failed", time.monotonic() - started, str(error))
    return Outcome(job, "done", time.monotonic() - started)
