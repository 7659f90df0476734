"""Parameters in a notebook: of their declared types under plain papermill and in JupyterLab, too; what is committed
stays where it was made with others; errors are sentences."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner as Click
from forking import kernelspec
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook
from papermill.cli import papermill
from typer.testing import CliRunner

from nlstm_lab import cli, execute, parameters, paths, probes
from nlstm_lab.errors import UsageError

Write = Callable[..., execute.Job]
TYPED = "seeds: list[int] = [5]\nscale: str = 'small'\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = 3"
CHECK = "import nlstm_lab as lab\nlab.check_parameters()"

PARAMETERS = 'text: str = "to be"\nseeds: list[int] = [0, 1]'
FIGURE, TABLE, CLAIM = "nlstm_fig1_architecture", "nested_lstm_table1", "nested_lstm.inner_slower_than_outer"
CELLS = [
    "import nlstm_lab as lab",
    f'figure = lab.figures.nested_architecture()\nlab.figures.save(figure, "{FIGURE}", caption="A cell in a cell.")',
    'lab.targets.compare("nested_lstm.table1", lab.runs.table()).save()',
    "from nlstm_lab.statistics import Compared, Interval\nmeasured = Compared(Interval(len(text), 0, 9), 3, '', 2.0)",
    f'lab.probes.record_claims("nested_lstm", "small", {{"{CLAIM.removeprefix("nested_lstm.")}": measured}})',
]


def run(shell: InteractiveShell, *cells: str) -> None:
    for cell in cells:
        shell.run_cell(cell, store_history=True).raise_error()


def test_what_is_set_gets_its_declared_type(shell: InteractiveShell) -> None:
    given = "# Parameters\nseeds = '[0,1]'\nscale = 1984\nrate = 1\nquick = 'true'\nlimit = 'none'\n"
    run(shell, TYPED, given, CHECK)  # as papermill guesses types
    found = [shell.user_ns[name] for name in ("seeds", "scale", "rate", "quick", "limit")]
    assert found == [[0, 1], "1984", 1, True, None]
    assert type(found[2]) is float
    run(shell, TYPED, "# Parameters\nseeds = 7", CHECK)
    assert shell.user_ns["seeds"] == [7]
    run(shell, TYPED, "# Parameters\nrate = '12.7 mm'", CHECK)  # as a width may be given
    assert shell.user_ns["rate"] == 0.5
    run(shell, TYPED, CHECK)
    assert [shell.user_ns[name] for name in ("seeds", "scale", "limit")] == [[5], "small", 3]


@pytest.mark.parametrize("cell", ["# Parameters\nseeds = 'several'", "seeds: list[int] = ['several']"])
def test_what_is_nothing_of_the_kind_is_refused(shell: InteractiveShell, cell: str) -> None:
    with pytest.raises(UsageError, match=r"seeds must be list\[int\], not"):
        run(shell, TYPED, cell, CHECK)


def test_a_name_that_is_not_declared_is_refused_where_papermill_injected_it(shell: InteractiveShell) -> None:
    run(shell, TYPED, "sede = 1", CHECK)
    with pytest.raises(UsageError, match=r"'sede'.*seeds"):
        run(shell, "# Parameters\nsede = 1", CHECK)


@pytest.mark.slow
def test_papermill_itself(kernel_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [new_code_cell(TYPED, metadata={"tags": ["parameters"]}), new_code_cell(CHECK),
             new_code_cell("assert (seeds, scale) == ([5], '1984'), (seeds, scale)")]  # fmt: skip
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    kernelspec(tmp_path / "share", kernel_address)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    done = Click().invoke(papermill, ["in.ipynb", "out.ipynb", "-p", "seeds", "5", "-p", "scale", "1984"])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [None, "2"])
@pytest.mark.parametrize("first", ["torch", "nlstm_lab"])
def test_in_a_kernel_torch_has_one_thread_where_none_are_chosen(chosen: str | None, first: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": chosen} if chosen else {}

    def threads(*imports: str) -> str:
        code = "from ipykernel.kernelapp import IPKernelApp; IPKernelApp.instance(); "
        code += f"import {', '.join(imports)}, torch; print(torch.get_num_threads())"
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    # MKL may give torch fewer than were chosen, where it counts one core: then the lab leaves it there
    assert threads(first, "torch", "nlstm_lab") == ("1" if chosen is None else threads("torch"))


def test_an_error_of_the_lab_is_one_sentence_in_a_notebook(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import nlstm_lab as lab\nlab.runs.load('nobody', scale='small')")
    shown = capsys.readouterr().out.strip()
    assert "'nobody'" in shown
    assert shown.startswith("UsageError: ")
    assert len(shown.splitlines()) == 1


def test_parameters_are_what_has_a_type(shell: InteractiveShell) -> None:
    assert parameters.current() == {}
    run(shell, 'text: str = "a"\nseeds: list[int] = [0]', "other = 3", 'text = "b"')  # the last is what papermill adds
    run(shell, "import pathlib\nplace: pathlib.Path = pathlib.Path()", CHECK)
    assert parameters.current() == {"text": "b", "seeds": [0], "place": "PosixPath"}


def contents() -> dict[str, bytes]:
    """All that git would know of."""
    folders = (paths.figures(), paths.probes())
    return {path.name: path.read_bytes() for folder in folders for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def drawn(forked_kernels: None, write: Write, once: Callable[..., Path], tmp_path: Path) -> dict[str, bytes]:
    """What a notebook with its own parameters leaves, executed once in a session."""
    write("10_a", *CELLS, parameters=PARAMETERS)

    def make(folder: Path) -> None:
        shutil.copytree(tmp_path, folder, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NLSTM_LAB_ROOT", str(folder))
            execute.execute(execute.Job("10_a"))

    shutil.copytree(once("drawn", make), tmp_path, dirs_exist_ok=True)
    assert {f"{FIGURE}.png", f"{TABLE}.tex", "claims.csv", "manifest.json"} <= contents().keys()
    return contents()


def trials() -> set[str]:
    return {path.name for path in paths.trials().glob("*")}


def is_elsewhere(drawn: dict[str, bytes], text: str) -> None:
    assert contents() == drawn
    assert {f"{FIGURE}.{suffix}" for suffix in ("pdf", "svg", "png", "csv", "json")} <= trials()
    assert {f"{TABLE}.csv", f"{TABLE}.tex", "manifest.json"} <= trials()
    record = json.loads((paths.trials() / f"{FIGURE}.json").read_text())
    assert record["parameters"] == {"text": text, "seeds": [0, 1]}
    assert text in record["caption"]


@pytest.mark.slow
def test_an_edited_parameter_draws_elsewhere_and_says_where(
    drawn: dict[str, bytes], shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, PARAMETERS.replace("to be", "not to be"), *CELLS)
    is_elsewhere(drawn, "not to be")
    said = capsys.readouterr().out
    for part in (f"{FIGURE}.pdf kept (text differs)", f"workspaces/figures/{TABLE}.tex", CLAIM):
        assert part in said
    assert probes.measured_claims()["value"].tolist() == [len("to be")]


@pytest.mark.slow
def test_a_trial_adds_no_row_to_the_claims(write: Write, shell: InteractiveShell) -> None:
    """Neither of a claim that is committed of another scale, nor of one that nobody measured yet."""
    cells = [cell.replace('"small"', "scale") for cell in (CELLS[0], *CELLS[3:])]
    run(shell, PARAMETERS + '\nscale: str = "small"', *cells)
    before = (paths.probes() / "claims.csv").read_bytes()
    run(shell, "# Parameters\nscale = 'smoke'", *cells)
    run(shell, "# Parameters\nscale = 'small'", cells[-1].replace("than_outer", "than_stack_upper"))
    assert (paths.probes() / "claims.csv").read_bytes() == before


@pytest.mark.slow
def test_the_notebooks_own_parameters_draw_where_they_did(
    drawn: dict[str, bytes], shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in paths.figures().glob(f"{FIGURE}.png"):
        file.unlink()
    run(shell, PARAMETERS, *CELLS)
    assert contents() == drawn
    assert not trials()
    assert "kept" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_given_parameter_draws_elsewhere_as_the_command_says_and_on_request_in_place(
    drawn: dict[str, bytes],
) -> None:
    say = CliRunner()
    given = ["figures", "10", "-p", "text=not to be", "--workers", "1"]
    told = say.invoke(cli.app, given)
    assert told.exit_code == 0
    assert str(paths.trials()) in told.output
    is_elsewhere(drawn, "not to be")
    (job,) = execute.plan(["10"], {"text": "not to be"})
    left = job.left()
    assert f"trial {FIGURE}.png" in left
    (paths.trials() / f"{FIGURE}.png").unlink()
    assert job.left() != left
    assert say.invoke(cli.app, [*given, "--replace"]).exit_code == 0
    record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
    assert record["parameters"]["text"] == "not to be"
    assert probes.measured_claims()["value"].tolist() == [len("not to be")]


@pytest.mark.slow
def test_in_a_workspace_everything_is_replaced(
    drawn: dict[str, bytes], shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", "")  # so that they are put back
    for text in ("to be", "not to be"):
        run(shell, f'text: str = "{text}"', CELLS[0], 'lab.workspace("own")', CELLS[1])
        record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
        assert record["parameters"] == {"text": text}
    assert not trials()
