"""dask.distributed: on this machine by default, on any scheduler by its address."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nlstm_lab.errors import LabError

PERIOD = 0.5  # seconds between two looks at the scheduler
TIMEOUT = 10.0  # seconds in which a scheduler must answer


def client(scheduler: str | None, workers: int) -> Any:
    """A client of the scheduler at that address, or of so many worker processes of our own, which end with it.

    LabError: no scheduler answers there, or dask is absent.
    """
    try:
        import dask  # here, as most of the command line goes without it
        import distributed
    except ModuleNotFoundError as error:
        raise LabError(
            f"{error.name} is not installed, without which nothing runs on several workers: `pip install distributed` "
            "brings it, and `nlstm-lab train NAME` goes without, also several side by side"
        ) from error
    connect: Any = distributed.Client  # untyped
    if scheduler is not None:
        try:
            return connect(scheduler, timeout=TIMEOUT)
        except (OSError, ValueError) as error:
            raise LabError(f"no scheduler answers at {scheduler}: start one with `dask scheduler`") from error
    # a worker is given one task at a time, so that what is said to run does run
    with _ignoring_interrupts(), dask.config.set({"distributed.scheduler.worker-saturation": 1.0}):
        return connect(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started in this block ignore Ctrl-C, which a terminal sends to all: this process ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def workers_for(tasks: int, wanted: int | None) -> int:
    """How many processes of our own: as wanted, or one a processor, and never more than tasks."""
    return max(1, min(wanted or os.cpu_count() or 1, tasks))


def running(client: Any) -> set[str]:
    """Keys of the tasks that a worker is at: of those it was given, as many as it has threads."""
    threads = client.nthreads()
    return {key for worker, keys in client.processing().items() for key in list(keys)[: threads.get(worker, 1)]}


def failure(future: Any) -> str:
    """Why a future has not finished, in a sentence; "" for one that has, or that still may."""
    if future.status not in ("error", "cancelled", "lost"):
        return ""
    import distributed

    error = future.exception() if future.status == "error" else None
    if isinstance(error, distributed.KilledWorker):
        return "its worker was killed each time that it was tried (out of memory?)"
    return str(error) if error else "the scheduler lost it; start again"
