"""dask.distributed: on this machine by default, on any scheduler by its address."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nlstm_lab.errors import LabError

PERIOD = 0.5  # seconds between two looks at the scheduler
TIMEOUT = 10.0  # seconds in which a scheduler must answer
PATIENCE = 3.0  # seconds for a cluster to end, and for workers to come before it is said that there are none


@contextmanager
def client(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of the scheduler at that address, or of so many worker processes of our own, which end with it.

    Whatever ends the block ends them within seconds; further Ctrl-C is ignored meanwhile. LabError: no scheduler
    answers there, or dask is absent.
    """
    connected = _connected(scheduler, workers)
    try:
        yield connected
    except BaseException:
        with uninterrupted():
            with contextlib.suppress(Exception):
                for nanny in getattr(connected.cluster, "workers", {}).values():  # those that are our own
                    nanny.auto_restart = False
                    os.kill(nanny.pid, signal.SIGKILL)
                connected.close(timeout=PATIENCE)
            connected.status = "closed"  # or one that did not end in time would be waited for anew when it is collected
        raise
    connected.close()


def _connected(scheduler: str | None, workers: int) -> Any:
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
    with uninterrupted(), dask.config.set({"distributed.scheduler.worker-saturation": 1.0}):
        return connect(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C, which a terminal sends to all processes, here and in processes that start meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def looks(client: Any) -> Iterator[set[str]]:
    """Again and again the keys of the tasks that workers are at; LabError: the scheduler does not answer any more."""
    seen, said = time.monotonic(), False
    while True:
        try:
            if client.status != "running":
                raise OSError("the connection is closed")
            threads = client.sync(client.scheduler.ncores, callback_timeout=TIMEOUT)
            given = client.sync(client.scheduler.processing, callback_timeout=TIMEOUT)
        except (OSError, TimeoutError) as error:
            raise LabError(
                f"the scheduler does not answer any more ({error}): start it again, and the same command does the rest"
            ) from error
        if threads:
            seen, said = time.monotonic(), False
        elif not said and time.monotonic() - seen > PATIENCE:
            said = True
            print("nlstm-lab: the scheduler has no workers: waiting; `dask worker ADDRESS` starts one", file=sys.stderr)
        yield {key for worker, keys in given.items() for key in list(keys)[: threads.get(worker, 1)]}
        time.sleep(PERIOD)


def workers_for(tasks: int, wanted: int | None) -> int:
    """How many processes of our own: as wanted, or one a processor, and never more than tasks."""
    return max(1, min(wanted or os.cpu_count() or 1, tasks))


def failure(future: Any) -> str:
    """Why a future has not finished, in a sentence; "" for one that has, or that still may."""
    if future.status not in ("error", "cancelled", "lost"):
        return ""
    import distributed

    error = future.exception() if future.status == "error" else None
    if isinstance(error, distributed.KilledWorker):
        return "its worker was killed each time that it was tried (out of memory?)"
    return str(error) if error else "the scheduler lost it; start again"
