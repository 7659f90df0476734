"""Executing notebooks with papermill: an output is there when every cell has run, or not at all."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm
from traitlets.config import Config

from nlstm_lab import paths
from nlstm_lab.errors import LabError
from nlstm_lab.figures import gallery
from nlstm_lab.notebooks.jobs import Job
from nlstm_lab.notebooks.kernel import Kernel


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its output is there unless there is an error."""

    job: Job
    seconds: float
    error: LabError | None = None


def execute(
    job: Job, timeout: float | None = None, threads: int = 0, on_cell: Callable[..., None] | None = None
) -> Path:
    """Run one notebook to its end; returns the executed copy.

    timeout: seconds that one cell may take. threads: of the numerical libraries, 0 for their own choice.
    on_cell: called after each code cell, for progress.
    LabError: a cell failed or took too long, the kernel died, or the copy cannot be written.
    """
    with _as_sentence(job):
        notebook = papermill.execute_notebook(
            job.read(),
            None,
            parameters=dict(job.parameters),
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=timeout,
            kernel_manager_class=Kernel,
            # a widget's state would make readers of the copy look for a kernel: its picture is in the output
            config=Config({"Kernel": {"threads": threads}, "NotebookClient": {"store_widget_state": False}}),
            on_cell_executed=on_cell,
        )
        # a cell that calls exit(0) ends the kernel politely, and papermill calls that success
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
        if any(cell.execution_count is None for cell in code):
            raise LabError(f"notebook {job.name} stopped before its last cell")
    try:
        with paths.atomic(job.output) as partial:
            partial.write_text(nbformat.writes(notebook), encoding="utf-8")  # type: ignore[no-untyped-call]
    except OSError as error:
        raise LabError(f"cannot write {job.output}: {error.strerror or error}") from error
    return job.output


def execute_all(jobs: Sequence[Job], workers: int = 0, timeout: float | None = None) -> list[Outcome]:
    """Run notebooks side by side (0: one a core) with a progress bar, then renew the gallery.

    One that fails does not stop the others. Ctrl-C ends all kernels; what was finished stays.
    """
    workers = min(workers or os.cpu_count() or 1, max(len(jobs), 1))
    threads = 1 if workers > 1 else 0
    cells = sum(cell.cell_type == "code" for job in jobs for cell in job.read().cells)
    outcomes: list[Outcome] = []
    with (
        tqdm(total=cells, unit="cell", disable=None, leave=False) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        futures = [pool.submit(_timed, job, timeout, threads, bar) for job in jobs]
        try:
            for future in as_completed(futures):
                outcomes.append(future.result())
                bar.set_postfix_str(f"{len(outcomes)}/{len(jobs)} notebooks, last {outcomes[-1].job.name}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(futures, timeout=0.2).not_done:
                Kernel.kill_all()
            raise
    gallery()
    return sorted(outcomes, key=lambda outcome: outcome.job.name)


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line for each notebook: seconds, what it was given, and what went wrong."""
    width = max((len(outcome.job.name) for outcome in outcomes), default=0)
    lines = []
    for outcome in outcomes:
        given = " ".join(f"{key}={value}" for key, value in outcome.job.parameters.items())
        told = f"failed: {outcome.error}" if outcome.error else f"done  {given}"
        lines.append(f"{outcome.job.name:{width}}  {outcome.seconds:6.1f} s  {told}".rstrip())
    return "\n".join(lines)


def _timed(job: Job, timeout: float | None, threads: int, bar: Any) -> Outcome:
    started, error = time.perf_counter(), None
    try:
        execute(job, timeout, threads, on_cell=lambda **_: bar.update())
    except LabError as failure:
        error = failure
    return Outcome(job, time.perf_counter() - started, error)


@contextmanager
def _as_sentence(job: Job) -> Iterator[None]:
    """Say in one sentence what papermill or the kernel may raise."""
    try:
        yield
    except PapermillExecutionError as error:
        lines = error.source.strip().splitlines() or ["an empty cell"]
        raise LabError(f"notebook {job.name} failed at `{lines[0]}`: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise LabError(f"notebook {job.name}: a cell ran into the time limit") from error
    except DeadKernelError as error:
        raise LabError(f"the kernel of notebook {job.name} died (killed, or out of memory?)") from error
