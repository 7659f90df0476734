"""Plain papermill knows no types: what it injects becomes what the parameters cell declares, or fails."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook

from nlstm_lab import paths
from nlstm_lab.injected import Typed

PARAMETERS = (
    "seeds: list[int] = [5]\nscale: str = 'small'\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = 3"
)


@pytest.fixture
def shell() -> InteractiveShell:
    shell = InteractiveShell()
    shell.input_transformers_post.append(Typed(shell))
    shell.run_cell(PARAMETERS)
    return shell


def test_text_becomes_what_is_declared(shell: InteractiveShell) -> None:
    shell.run_cell(
        "# Parameters\nseeds = '[0,1]'\nscale = '7'\nrate = 1\nquick = 'true'\nlimit = 'none'\n"
    ).raise_error()
    found = [shell.user_ns[name] for name in ("seeds", "scale", "rate", "quick", "limit")]
    assert found == [[0, 1], "7", 1, True, None]


def test_other_cells_and_other_names_are_left_alone(shell: InteractiveShell) -> None:
    shell.run_cell("seeds = '[0,1]'\nother = '3'").raise_error()
    assert shell.user_ns["seeds"] == "[0,1]"
    shell.run_cell("# Parameters\nother = '3'").raise_error()
    assert shell.user_ns["other"] == "3"


def test_what_is_nothing_of_the_kind_fails_the_cell(shell: InteractiveShell) -> None:
    result = shell.run_cell("# Parameters\nseeds = 'several'")
    assert "seeds must be list" in str(result.error_before_exec or result.error_in_exec)


@pytest.mark.slow
def test_papermill_itself(tmp_path: Path) -> None:
    cells = [new_code_cell("import nlstm_lab"), new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
             new_code_cell("assert seeds == [0, 1], seeds")]  # fmt: skip
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    words = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "-p", "seeds", "[0,1]"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
