"""Executing a notebook with papermill: its output is one in which every cell has run."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import nbformat
import papermill
import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets import Bool, Integer, Unicode, default
from traitlets.config import Config

from nlstm_lab import paths
from nlstm_lab.errors import LabError
from nlstm_lab.notebooks import inputs
from nlstm_lab.notebooks.jobs import Job

START = 300  # seconds that a kernel may take to start, on a busy machine


class Here(KernelSpecManager):
    """Whatever kernelspecs are installed, and wherever they point: the running interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        quiet = "--log-level=CRITICAL"  # the interrupt before its end is no error of an idle kernel
        spec = get_kernel_dict(extra_arguments=["--HistoryManager.enabled=False", quiet])  # kernels would lock a file
        return KernelSpec(**{**spec, "argv": [sys.executable, *spec["argv"][1:]]})


class Kernel(AsyncKernelManager):
    """One notebook's kernel, started in the notebooks' folder as JupyterLab would."""

    threads = Integer(0, help="threads of the numerical libraries; 0 leaves them alone").tag(config=True)
    notebook = Unicode("", help="which notebook is executed").tag(config=True)
    replace = Bool(False, help="whether committed figures of other parameters may be replaced").tag(config=True)
    alive: ClassVar[set["Kernel"]] = set()

    @default("kernel_spec_manager")
    def _here(self) -> KernelSpecManager:
        return Here(parent=self)

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        environment = {**os.environ, **(options.pop("env", None) or {})}
        on_path = (str(paths.PACKAGE.parent), environment.get("PYTHONPATH"))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, on_path))
        if self.threads:
            environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        environment["NLSTM_LAB_PAGES"] = str(paths.executed() / "widgets" / self.notebook)
        if self.replace:
            environment["NLSTM_LAB_REPLACE"] = "1"
        if self.has_trait("transport_encryption") and zmq.has("curve"):
            self.transport_encryption = "auto"  # newer kernels warn where they are not asked for it
        self.alive.add(self)
        await super().start_kernel(**{**options, "env": environment, "cwd": str(paths.notebooks())})

    async def cleanup_resources(self, restart: bool = False) -> None:  # type: ignore[override]
        self.alive.discard(self)
        await super().cleanup_resources(restart=restart)

    @classmethod
    def kill_all(cls) -> None:
        """End every kernel of this process at once; the notebooks that they ran fail."""
        for kernel in list(cls.alive):
            pid = getattr(kernel.provisioner, "pid", None)
            if pid and getattr(kernel.provisioner, "has_process", False):
                os.kill(pid, signal.SIGKILL)


def execute(
    job: Job, timeout: float | None = None, threads: int = 0, on_cell: Callable[..., Any] | None = None
) -> Path:
    """Run one notebook to its end; returns the executed copy, which says what it was made from.

    An earlier copy stays where this fails. timeout: seconds that one cell may take. threads: of the numerical
    libraries, 0 for their own choice. on_cell: called after each code cell, for progress.
    LabError: a cell failed or took too long, the kernel died, or the copy cannot be written.
    """
    for talkative in ("papermill", "tornado.general"):  # what goes wrong is reported once, by us
        logging.getLogger(talkative).setLevel(logging.CRITICAL)
    source, made_from, started = job.read(), inputs.Inputs.now().of(job), time.perf_counter()
    try:
        with _as_sentence(job):
            notebook = papermill.execute_notebook(
                source,
                None,
                parameters=dict(job.parameters),
                kernel_name="python3",
                progress_bar=False,
                start_timeout=START,
                execution_timeout=timeout,
                kernel_manager_class=Kernel,
                # a widget's state would make readers of the copy look for a kernel: its picture is in the output
                config=Config(
                    {
                        "Kernel": {"threads": threads, "replace": job.replace, "notebook": job.name},
                        "NotebookClient": {"store_widget_state": False},
                    }
                ),
                on_cell_executed=on_cell,
            )
            # a cell that calls exit(0) ends the kernel politely, and papermill calls that success
            code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
            if any(cell.execution_count is None for cell in code):
                raise LabError(f"notebook {job.name} stopped before its last cell (does a cell call exit()?)")
        inputs.stamp(notebook, job, made_from, time.perf_counter() - started)
        paths.write(job.output, nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise LabError(f"cannot write {job.output} ({paths.reason(error)})") from error
    return job.output


@contextmanager
def _as_sentence(job: Job) -> Iterator[None]:
    """Say in one sentence what papermill or the kernel may raise."""
    try:
        yield
    except PapermillExecutionError as error:
        lines = error.source.strip().splitlines() or ["an empty cell"]
        raise LabError(f"notebook {job.name} failed at `{lines[0]}`: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise LabError(f"notebook {job.name}: a cell ran into the time limit; `--timeout` sets it") from error
    except DeadKernelError as error:
        raise LabError(f"the kernel of notebook {job.name} died (killed, or out of memory?)") from error
    except RuntimeError as error:  # nbclient's words for a kernel that does not start
        raise LabError(f"the kernel of notebook {job.name} did not start: {error}") from error
