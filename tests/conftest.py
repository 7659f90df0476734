"""A place of its own for whatever trains, and for notebooks that a test writes; what is dear is made once."""

import gc
import os
import shutil
import sys
import tempfile

import pytest
from filelock import FileLock

from nlstm_lab import paths

os.environ.pop("COLUMNS", None)  # of a terminal, whose width tables would follow
sys.modules["rfc3987_syntax"] = None  # builds grammars for seconds, for IRIs that none has
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: workers share the cores, and digits hang on the threads

PARAMETERS = (
    'seeds: list[int] = [0, 1]\nscale: str = "small"\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = None'
)


def pytest_collection_modifyitems(items):
    """Slow tests first, so that no worker is left alone with one at the end; before all others those in JupyterLab."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("browser", "slow")])


gc.disable()  # whatever is imported stays, and would be looked through again and again


def pytest_collection_finish():
    """From here on garbage is looked for in what tests make alone."""
    gc.freeze()
    gc.enable()


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """The processor and, where there is one, the GPU: `-k cuda` runs what needs it."""
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return torch.device(request.param)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)`: a folder that `make(folder)` fills once for all workers of a session; to read, or to copy."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def made(name, make):
        folder = shared / "once" / name
        folder.parent.mkdir(exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                partial = folder.with_name(f"{name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                make(partial)
                partial.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def own_units():
    """The project's names in `CELL_TYPES`; those that other tests registered stay out."""
    from nlstm_lab.models import CELL_TYPES

    return {name for name, unit in CELL_TYPES.items() if unit.__module__.startswith("nlstm_lab.")}


@pytest.fixture(scope="session")
def folders(once):
    """Environment variables for training at smoke scale, whose texts are in every Python: a cache, one thread."""
    return {"NLSTM_LAB_CACHE": str(once("cache", lambda folder: None)), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def runs_folder(folders, tmp_path, monkeypatch):
    """An empty folder of runs, for this process and those that it starts; here `auto` trains on the CPU, update by
    update."""
    folder = tmp_path / "runs"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name, value in {**folders, "NLSTM_LAB_RUNS": str(folder)}.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def probes_folder(tmp_path, monkeypatch):
    """An empty folder of probes' records, for this process and those that it starts."""
    folder = tmp_path / "probes"
    folder.mkdir()
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(folder))
    return folder


@pytest.fixture
def run(recorded):
    """One at smoke scale, of seed 3."""
    return recorded("ptb_char_lstm1", 3)


@pytest.fixture
def say(monkeypatch, capsys):
    """Run `nlstm-lab` with these words: exit code, standard output, standard error."""
    from nlstm_lab import cli

    def said(*words):
        monkeypatch.setattr(sys, "argv", ["nlstm-lab", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), *capsys.readouterr()

    return said


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Records, figures and data sets in an empty folder."""
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def forked_workers(monkeypatch):
    """Dask's workers are forked off a process that has imported everything, in place of importing it themselves."""
    import forking

    forking.forked_workers(monkeypatch)


@pytest.fixture(scope="session")
def kernel_address():
    """Where one asks for a forked kernel; a short path, since it is a socket's."""
    import forking

    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        process = forking.started(forking.kernels, f"{folder}/kernels")
        yield f"{folder}/kernels"
        process.kill()
        process.join()


@pytest.fixture
def forked_kernels(monkeypatch, kernel_address):
    """Notebooks are executed in kernels forked off a process that has imported everything."""
    import forking

    forking.forked_kernels(monkeypatch, kernel_address)


@pytest.fixture
def shell(monkeypatch):
    """A notebook in this process: `shell.run_cell(cell, store_history=True).raise_error()` as its kernel does."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell puts its own there
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.fixture
def recorded(once, runs_folder):
    """`recorded(name, seed=0, patience=None)`: a run at smoke scale, trained once in a test's folder."""
    from nlstm_lab import runs

    def copied(name, seed=0, patience=None):
        def train(folder):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("NLSTM_LAB_RUNS", str(folder))
                runs.ensure(name, seed, "smoke", device="cpu", progress=False, patience=patience)

        shutil.copytree(once(f"{name}-seed{seed}-{patience}", train), runs_folder, dirs_exist_ok=True)
        return runs.load(name, seed, "smoke")

    return copied


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write notebooks into a root of their own, for every process: write("10_name", "cell", "cell", ...)."""
    import nbformat  # here, so that tests of units and training run on machines without notebooks
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from nlstm_lab import execute

    shutil.copytree(paths.targets(), tmp_path / "data" / "targets")
    monkeypatch.setenv("NLSTM_LAB_ROOT", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("RUNS", "FIGURES", "PROBES"):
        monkeypatch.delenv(f"NLSTM_LAB_{name}", raising=False)
    paths.notebooks().mkdir()

    def written(name, *cells, parameters=PARAMETERS):
        code = [new_code_cell(parameters, metadata={"tags": ["parameters"]}), *map(new_code_cell, cells)]
        notebook = new_notebook(cells=[new_markdown_cell("# A title"), *code])
        notebook.metadata.kernelspec = {"name": "of-another-machine", "language": "python", "display_name": "gone"}
        nbformat.write(notebook, paths.notebooks() / f"{name}.ipynb")
        return execute.Job(name)

    return written
