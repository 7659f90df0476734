"""In a notebook: one cell gives parameters their declared types, also under plain papermill; errors are sentences."""

import sys
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from forking import kernelspec
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook
from papermill.cli import papermill

from nlstm_lab.errors import UsageError

PARAMETERS = """seeds: list[int] = [5]
scale: str = 'small'
rate: float = 0.5
quick: bool = False
limit: int | None = 3"""
CHECK = "import nlstm_lab as lab\nlab.check_parameters()"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A notebook in this process, after its parameters cell."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # an interactive shell puts its own there
    shell = InteractiveShell()
    shell.run_cell(PARAMETERS, store_history=True)
    return shell


def run(shell: InteractiveShell, *cells: str) -> None:
    for cell in cells:
        shell.run_cell(cell, store_history=True).raise_error()


def test_what_is_set_gets_its_declared_type(shell: InteractiveShell) -> None:
    run(shell, "# Parameters\nseeds = '[0,1]'\nscale = '7'\nrate = 1\nquick = 'true'\nlimit = 'none'\n", CHECK)
    found = [shell.user_ns[name] for name in ("seeds", "scale", "rate", "quick", "limit")]
    assert found == [[0, 1], "7", 1, True, None]
    assert type(found[2]) is float


def test_one_value_is_a_list_of_one(shell: InteractiveShell) -> None:
    run(shell, "# Parameters\nseeds = 5", CHECK)
    assert shell.user_ns["seeds"] == [5]


def test_the_cells_own_values_stay(shell: InteractiveShell) -> None:
    run(shell, CHECK)
    assert [shell.user_ns[name] for name in ("seeds", "scale", "limit")] == [[5], "small", 3]


@pytest.mark.parametrize("cell", ["# Parameters\nseeds = 'several'", "seeds: list[int] = ['several']"])
def test_what_is_nothing_of_the_kind_is_refused(shell: InteractiveShell, cell: str) -> None:
    with pytest.raises(UsageError, match="seeds"):
        run(shell, cell, CHECK)


def test_a_name_that_is_not_declared_is_refused_where_papermill_injected_it(shell: InteractiveShell) -> None:
    run(shell, "sede = 1", CHECK)
    with pytest.raises(UsageError, match=r"'sede'.*seeds"):
        run(shell, "# Parameters\nsede = 1", CHECK)


@pytest.mark.slow
def test_papermill_itself(kernel_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}), new_code_cell(CHECK),
             new_code_cell("assert seeds == [5], seeds")]  # fmt: skip
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    kernelspec(tmp_path / "share", kernel_address)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(papermill, ["in.ipynb", "out.ipynb", "-p", "seeds", "5"])
    assert done.exit_code == 0, done.output


def test_an_error_of_the_lab_is_one_sentence_in_a_notebook(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import nlstm_lab as lab\nlab.runs.load('nobody', scale='small')")
    shown = capsys.readouterr().out.strip()
    assert "'nobody'" in shown
    assert shown.startswith("UsageError: ")
    assert len(shown.splitlines()) == 1
