"""Executing the notebooks that changed, with papermill, several side by side.

Papermill checks no types, warns of unknown names, and leaves an output that claims success when a kernel dies. Here a
wrong parameter is refused before anything runs, and an output is stored when its last cell has run, or not at all.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlstm_lab import paths
from nlstm_lab.errors import Interrupted, LabError, UsageError, hint
from nlstm_lab.parameters import convert, declared, refuse_unknown

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbformat import NotebookNode

KEY = "nlstm_lab"  # of our entry in an executed copy's metadata
CLAIMS = "claims.csv"  # the probe record that notebooks write for those that read all claims
LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy", "seaborn", "torch", "xarray")
_alive: "set[AsyncKernelManager]" = set()  # kernels of this process


@dataclass
class Job:
    """One notebook, with checked values for those of its parameters that differ from its own, and how it stands."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    replace: bool = False  # what is committed, also where other parameters made it
    status: str = "waits"  # runs, done, unchanged, failed, stopped
    seconds: float = 0.0
    error: str = ""  # a sentence

    def __post_init__(self) -> None:
        self.source = paths.notebooks() / f"{self.name}.ipynb"
        self.output = paths.executed() / f"{self.name}.ipynb"

    def read(self) -> "NotebookNode":
        """The notebook as it is stored. LabError: it is not there, or no notebook."""
        import nbformat  # takes a second or more, which a wrong name does not wait for

        try:
            return nbformat.read(self.source, as_version=4)  # type: ignore[no-any-return, no-untyped-call]
        except (OSError, ValueError, nbformat.ValidationError) as error:
            raise LabError(f"{self.source} cannot be read as a notebook: restore it with `git checkout`") from error

    @cached_property
    def code(self) -> list[str]:
        """Its code cells."""
        return [cell.source for cell in self.read().cells if cell.cell_type == "code"]

    @property
    def reads_claims(self) -> bool:
        """Whether it reads what the others note, and so comes after them."""
        return any("probes.measured_claims(" in cell for cell in self.code)

    def inputs(self, shared: str) -> str:
        """The digest of everything that the executed copy follows from; `shared` is `shared_inputs()`."""
        own = json.dumps([_digest(self.source), dict(self.parameters), self.replace, shared], sort_keys=True)
        claims = _digest(paths.probes() / CLAIMS) if self.reads_claims else ""
        return hashlib.sha256((own + claims).encode()).hexdigest()

    def left(self) -> dict[str, str]:
        """The digests of all figures and tables that it names; of trials where it has parameters."""
        named = "\n".join(self.code).replace(".", "_").replace("'", '"')
        folders = [paths.figures(), *([paths.trials()] if self.parameters else [])]
        files = (path for folder in folders for path in sorted(folder.glob("[!.]*")))
        return {str(path): _digest(path) for path in files if f'"{path.stem}"' in named}

    def unchanged(self, shared: str) -> bool:
        """Whether the executed copy was made from these inputs, and all that it left is still as it left it."""
        try:
            stamp = json.loads(self.output.read_text(encoding="utf-8"))["metadata"][KEY]
        except (OSError, ValueError, KeyError):
            return False
        return bool(stamp == {"inputs": self.inputs(shared), "left": self.left()})


def shared_inputs() -> str:
    """The digest of what all notebooks share: the library, what it is built on, and every record but the claims."""
    sha = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in LIBRARIES).encode())
    for folder in (paths.PACKAGE, paths.targets(), paths.runs(), paths.probes(), paths.bench()):
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CLAIMS):
            name = path.relative_to(folder).as_posix()
            if not re.search(r"(^|/)(\.|__pycache__)", name):  # caches, and what is unfinished
                sha.update(f"{name} {_digest(path)}\n".encode())
    return sha.hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def names() -> list[str]:
    """All notebooks, in their order, without the suffix."""
    return sorted(path.stem for path in paths.notebooks().glob("[0-9]*.ipynb"))


def resolve(wanted: str) -> str:
    """The notebook that is meant by a number ("12"), a name or a path. UsageError: there is none."""
    stem = Path(wanted).name.removesuffix(".ipynb")
    for name in names():
        if stem in (name, name.split("_")[0]):
            return name
    raise UsageError(f"there is no notebook {wanted!r}; {hint(stem, names())}")


def plan(wanted: Sequence[str] = (), given: Mapping[str, Any] | None = None, replace: bool = False) -> list[Job]:
    """The notebooks to execute (all, or by number, name or path), each with those of `given` that it knows.

    Values may be text, as on the command line. UsageError: a notebook or a parameter that nobody knows, or a value
    that is not of the parameter's type.
    """
    chosen, given = list(dict.fromkeys(map(resolve, wanted))) or names(), given or {}
    if not chosen:
        raise UsageError(f"there is no notebook in {paths.notebooks()}: they come with a clone of the repository")
    kinds = {name: declared(Job(name).read()) for name in chosen}
    for name in given:
        refuse_unknown(name, sorted({one for known in kinds.values() for one in known}), ", ".join(chosen))
    return [
        Job(name, {key: convert(key, known[key], given[key]) for key in given if key in known}, replace)
        for name, known in kinds.items()
    ]


def execute_all(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    timeout: float | None = None,
    everything: bool = False,
    tell: Callable[[Job], None] = lambda job: None,
) -> None:
    """Execute the notebooks that changed since they were executed, or everything; one that fails stops no other.

    tell: called with a job after each of its cells and when it is over. Interrupted: after Ctrl-C, what was finished
    stays.
    """

    def run(job: Job, shared: str) -> None:
        try:
            if not everything and job.unchanged(shared):
                job.status = "unchanged"
            else:
                job.status = "runs"
                execute(job, timeout, shared, lambda **_: tell(job))
                job.status = "done"
        except Exception as error:  # whatever it is, the others go on
            if job.status != "stopped":  # by Ctrl-C
                job.status, job.error = "failed", str(error)
        tell(job)

    for late in (False, True):  # those that read what the others note come last
        shared = shared_inputs()
        with ThreadPoolExecutor(workers) as pool:  # the longest notebooks have the highest numbers
            futures = [pool.submit(run, job, shared) for job in reversed(jobs) if job.reads_claims == late]
            try:
                while wait(futures, 0.2).not_done:
                    pass  # waiting without a limit would not see Ctrl-C
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for job in jobs:
                    job.status = "stopped" if job.status == "runs" else job.status
                while not all(future.done() for future in futures):  # a kernel may just be starting
                    time.sleep(0.1)
                    for process in [getattr(kernel.provisioner, "process", None) for kernel in list(_alive)]:
                        if process:
                            process.kill()
                raise Interrupted("stopped: what was finished stays, and the same command does the rest") from None


def execute(job: Job, timeout: float | None = None, shared: str = "", tell: Callable[..., Any] | None = None) -> None:
    """Run one notebook to its end, and store the executed copy, which says what it was made from.

    An earlier copy stays where this fails. timeout: seconds that one cell may take. shared: `shared_inputs()`. tell:
    called after a cell. LabError: a cell failed or took too long, the kernel died, or the copy cannot be written.
    """
    import logging

    import nbformat
    import papermill
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    for talkative in ("papermill", "tornado.general"):  # what goes wrong is reported once, by us
        logging.getLogger(talkative).setLevel(logging.CRITICAL)
    made_from, started = job.inputs(shared or shared_inputs()), time.perf_counter()
    kernel = AsyncKernelManager()
    kernel._kernel_spec = kernel_spec(job)
    _alive.add(kernel)
    try:
        notebook = papermill.execute_notebook(
            job.read(), None, dict(job.parameters), kernel_name="python3", progress_bar=False,
            km=kernel, start_timeout=300, execution_timeout=timeout, on_cell_executed=tell,
            resources={"metadata": {"path": str(paths.notebooks())}},
            store_widget_state=False,  # it would make readers look for a kernel: a widget's picture is in the output
        )  # fmt: skip
    except PapermillExecutionError as error:
        where = f"cell [{error.exec_count}], `{(error.source.strip().splitlines() or [''])[0]}`"
        raise LabError(f"notebook {job.name} failed in {where}: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise LabError(f"notebook {job.name}: a cell ran into the time limit; `--timeout` sets it") from error
    except (DeadKernelError, RuntimeError) as error:  # the second: it does not start
        raise LabError(f"the kernel of notebook {job.name} died (killed, or out of memory?): {error}") from error
    finally:
        _alive.discard(kernel)
        run_sync(kernel.shutdown_kernel)(now=True)
    # a cell that calls exit(0) ends the kernel politely, and papermill calls that success
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if any(cell.execution_count is None for cell in code):
        raise LabError(f"notebook {job.name} stopped before its last cell (does a cell call exit()?)")
    job.seconds = time.perf_counter() - started
    notebook.metadata[KEY] = {"inputs": made_from, "left": job.left()}
    paths.write(job.output, nbformat.writes(notebook))  # type: ignore[no-untyped-call]


def kernel_spec(job: Job) -> "KernelSpec":
    """A kernel of the running interpreter and this package, whatever kernelspecs are installed; one thread, if any."""
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec

    # kernels would lock one history file; the interrupt before its end is no error of an idle kernel
    spec = get_kernel_dict(extra_arguments=["--HistoryManager.enabled=False", "--log-level=CRITICAL"])
    environment = {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    environment["NLSTM_LAB_PAGES"] = str(paths.executed() / "widgets" / job.name)
    environment |= {"NLSTM_LAB_REPLACE": "1"} if job.replace else {}
    return KernelSpec(**{**spec, "argv": [sys.executable, *spec["argv"][1:]], "env": environment})
