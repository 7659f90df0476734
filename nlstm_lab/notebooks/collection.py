"""Executing the collection: what changed, several notebooks at a time, each in a kernel of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal

from nlstm_lab import cluster
from nlstm_lab.errors import Interrupted
from nlstm_lab.notebooks.executor import Kernel, execute
from nlstm_lab.notebooks.inputs import Inputs, reads_claims, stamped, unchanged
from nlstm_lab.notebooks.jobs import Job

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
    timeout: float | None = None,
    everything: bool = False,
    watch: Watch = lambda outcomes: None,
) -> list[Outcome]:
    """Execute the notebooks that changed since they were executed, or everything.

    workers: how many at a time (one a processor, where None). watch: sees all outcomes again and again while they
    change. One that fails does not stop the others. Raises Interrupted after Ctrl-C: all kernels end, what was
    finished stays.
    """
    outcomes = [_outcome(job) for job in jobs]
    try:
        for late in (False, True):  # those that read what the others note come last
            wave = [outcome for outcome in outcomes if reads_claims(outcome.job) == late]
            inputs = Inputs.now()
            for outcome in wave:
                if not everything and unchanged(outcome.job, inputs.of(outcome.job)):
                    outcome.status = "unchanged"
            if waiting := [outcome for outcome in wave if not outcome.over]:
                _run(waiting, cluster.workers_for(len(waiting), workers), timeout, lambda: watch(outcomes))
    except KeyboardInterrupt:
        raise Interrupted("stopped: what was finished stays, and the same command does the rest") from None
    watch(outcomes)
    return outcomes


def time_left(outcomes: Sequence[Outcome], workers: int) -> float:
    """Seconds until all are over, judged by how long each took the last time."""
    left = [max(each.expected - each.seconds, 1.0) for each in outcomes if not each.over]
    return max(max(left), sum(left) / workers) if left else 0.0


def _outcome(job: Job) -> Outcome:
    cells = sum(cell.cell_type == "code" for cell in job.read().cells) + bool(job.parameters)
    return Outcome(job, cells, expected=float(stamped(job).get("seconds", USUAL)))


def _run(outcomes: Sequence[Outcome], workers: int, timeout: float | None, look: Callable[[], None]) -> None:
    """Execute them, the longest first, so many at a time, until each is over."""
    threads = 1 if len(outcomes) > 1 else 0
    with ThreadPoolExecutor(workers) as pool:
        longest_first = sorted(outcomes, key=lambda outcome: -outcome.expected)
        futures = [pool.submit(_execute, outcome, timeout, threads) for outcome in longest_first]
        try:
            while wait(futures, cluster.PERIOD).not_done:
                look()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(futures, cluster.PERIOD).not_done:  # a kernel may just be starting
                Kernel.kill_all()
            raise


def _execute(outcome: Outcome, timeout: float | None, threads: int) -> None:
    """One notebook, from its first cell."""
    started, outcome.status = time.monotonic(), "runs"

    def tell(**_: object) -> None:
        outcome.executed += 1
        outcome.seconds = time.monotonic() - started

    try:
        execute(outcome.job, timeout, threads, on_cell=tell)
        outcome.status = "done"
    except Exception as error:  # whatever it is, the others go on
        outcome.status, outcome.error = "failed", str(error)
    outcome.seconds = time.monotonic() - started
