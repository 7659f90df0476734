"""Many runs through dask.distributed; what is recorded is not trained again, and a killed run goes on elsewhere."""

import contextlib
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import distributed
import torch

from nlstm_lab import cells, experiments, runs, training
from nlstm_lab.errors import FinishedRun, Interrupted, LabError, UsageError
from nlstm_lab.runs.attempt import settled
from nlstm_lab.runs.run import name_of
from nlstm_lab.settings import check_seed, counted

MOST = 10_000  # seeds from one to another
TIMEOUT = 10.0  # seconds in which a scheduler must answer
_one_at_a_time = threading.Lock()  # torch's random state is the process's, however many threads a worker has


@dataclass
class Sweep:
    """How many of a sweep's runs are recorded, are trained at the moment, and failed."""

    total: int
    recorded: int = 0
    running: int = 0
    failed: int = 0
    workers: int | None = None  # of the scheduler


Watch = Callable[[Sweep, str], None]


def parse_seeds(text: str) -> list[int]:
    """Seeds as typed, each once.

    >>> parse_seeds("7,0-2,1-3,9-9")
    [0, 1, 2, 3, 7, 9]
    """
    seeds = set[int]()
    for item in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", item)
        first, last = (int(found[1]), check_seed(int(found[2] or found[1]))) if found else (0, -1)
        if not 0 <= last - first < MOST:
            raise UsageError(f"seeds are written like 0-4 or 0,2,5, a range has at most {MOST:,}, not {text!r}")
        seeds.update(range(first, last + 1))
    return sorted(seeds)


def matching(pattern: str, scale: str, patience: int | None = None) -> list[experiments.Experiment]:
    """Experiments that match and have the scale, in the documents' order; UsageError: there is none."""
    if not (known := experiments.names(pattern)):
        raise UsageError(f"no experiment matches {pattern!r} (see nlstm-lab experiments)")
    names = [name for name in known if scale in experiments.scales(name)]
    found = [experiments.get(name, scale) for name in names or known[:1]]  # none has it: an error says what it has
    for experiment in found:
        if patience is not None:
            counted(patience, "patience", 1, experiment.training.epochs)
    return found


def sweep(
    rows: Sequence[experiments.Experiment],
    seeds: Sequence[int],
    scheduler: str | None = None,
    workers: int | None = None,
    watch: Watch = lambda sweep, event: None,
    **how: Any,
) -> Sweep:
    """Train these experiments (of `matching`) with these seeds (of `parse_seeds`), but for what is recorded.

    Args:
        scheduler: Address of a running one, whose workers see this machine's folders; None starts processes here.
        workers: How many processes; as many as there are processors, where None.
        watch: Called after every look with how the sweep stands and what has just happened: a line or "".
        how: device, precision and patience as of `runs.ensure`; without a patience, what one has ended goes on.

    Raises:
        Interrupted: It was stopped from the keyboard.
        LabError: This machine lacks the device, or the scheduler does not answer.
    """
    if scheduler is None:
        with cells.precision(how.get("precision", "fp32")):
            training.find_device(how.get("device", "auto"))
    counts = Sweep(len(rows) * len(seeds))
    watch(counts, f"{counts.total:,} runs: looking for those that are not recorded")
    try:
        pairs = [(row, seed) for seed in seeds for row in rows]
        if tasks := [pair for pair in pairs if _lacks(*pair, counts, how.get("patience"), watch)]:
            with _client(scheduler, min(workers or os.cpu_count() or 1, len(tasks))) as client:
                _train_all(client, tasks, counts, how, watch)
    except KeyboardInterrupt:
        raise Interrupted("SIGINT: every run keeps its last checkpoint; the same command goes on") from None
    return counts


def _lacks(row: experiments.Experiment, seed: int, counts: Sweep, patience: int | None, watch: Watch) -> bool:
    """Whether there is something to train; a record of another configuration or text has failed."""
    event = ""
    try:
        if settled(row, seed, patience, finish=True) is None:
            return True
    except FinishedRun:
        pass  # the rule comes too late for it
    except LabError as error:
        event = f"{name_of(row, seed)}: {error}"
    counts.recorded, counts.failed = counts.recorded + (not event), counts.failed + bool(event)
    watch(counts, event)
    return False


def _train_all(client: Any, tasks: list[Any], counts: Sweep, how: dict[str, Any], watch: Watch) -> None:
    """Give each worker one task at a time."""
    futures: dict[Any, str] = {}
    while True:
        try:
            if client.status != "running":
                raise OSError("the connection is closed")
            counts.workers = len(client.sync(client.scheduler.ncores, callback_timeout=TIMEOUT))
        except (OSError, TimeoutError) as error:
            raise LabError(f"the scheduler is gone ({error}): start it again, and the same command goes on") from error
        while tasks and len(futures) < max(counts.workers, 1):
            row, seed = tasks.pop(0)
            name = name_of(row, seed)
            futures[client.submit(_train, row, seed, key=name, pure=False, **how)] = name
            watch(counts, f"{name}: training")
        counts.running = len(futures)
        watch(counts, "")
        if not futures:
            return
        time.sleep(0.3)
        for future in [future for future in futures if future.done()]:
            fault = future.exception() if future.status == "error" else None
            reason = "" if future.status == "finished" else str(fault or "the scheduler lost it; start again")
            if isinstance(fault, distributed.KilledWorker):
                reason = "its worker was killed each time that it was tried (out of memory?)"
            elif not reason and not os.path.isfile(f"{future.result()}/result.json"):
                reason = f"its worker recorded it in {future.result()}, which is not this machine's folder: share one"
            counts.recorded, counts.failed = counts.recorded + (not reason), counts.failed + bool(reason)
            watch(counts, f"{futures.pop(future)}: {reason or 'recorded'}")


def _train(row: experiments.Experiment, seed: int, **how: Any) -> str:
    """What a worker does: one run, by one thread. Returns the folder of its record."""
    with _one_at_a_time:
        torch.set_num_threads(1)
        return str(runs.ensure(row, seed, **how, finish=True, progress=False).folder)


@contextlib.contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of that scheduler, or of so many processes of our own; whatever ends the block ends those at once."""
    connect: Any = distributed.Client  # untyped
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to the workers, too
    try:
        own = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        how = {"timeout": TIMEOUT} if scheduler else own | {"silence_logs": logging.CRITICAL}
        client = connect(scheduler, **how)
    except (OSError, ValueError) as error:
        found = f"no scheduler answers at {scheduler}: start one with `dask scheduler`" if scheduler else None
        raise LabError(found or f"no worker process starts here ({error}): train the runs one by one") from error
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield client
    except BaseException:
        with contextlib.suppress(Exception):
            for nanny in getattr(client.cluster, "workers", {}).values():  # those that are our own
                nanny.auto_restart = False
                os.kill(nanny.pid, signal.SIGKILL)
            client.close(timeout=3)
        client.status = "closed"  # or one that did not end in time would be waited for anew when it is collected
        raise
    client.close()
