"""What is committed stays where a notebook runs with other parameters, in JupyterLab and by papermill."""

import json
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlstm_lab import cli, committed, notebooks, paths, probes

Write = Callable[..., notebooks.Job]
PARAMETERS = 'text: str = "to be"\nseeds: list[int] = [0, 1]'
FIGURE, TABLE, CLAIM = "nlstm_fig1_architecture", "nested_lstm_table1", "nested_lstm.inner_slower_than_outer"
CELLS = [
    "import nlstm_lab as lab",
    f'figure = lab.figures.nested_architecture()\nlab.figures.save(figure, "{FIGURE}", caption="A cell in a cell.")',
    'lab.targets.compare("nested_lstm.table1", lab.runs.table()).save()',
    "from nlstm_lab.statistics import Interval",
    f'lab.probes.record_claim("{CLAIM}", "small", Interval(len(text), 0, 9), 3)',
]


def contents() -> dict[str, bytes]:
    """All that git would know of."""
    folders = (paths.figures(), paths.probes())
    return {path.name: path.read_bytes() for folder in folders for path in folder.iterdir() if path.is_file()}


def in_jupyterlab(monkeypatch: pytest.MonkeyPatch, *cells: str) -> None:
    """What a kernel does with cells: it runs them one after the other in the module `__main__`."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    for cell in cells:
        exec(cell, main.__dict__)


@pytest.fixture
def drawn(forked_kernels: None, write: Write, once: Callable[..., Path], tmp_path: Path) -> dict[str, bytes]:
    """What a notebook with its own parameters leaves, executed once in a session."""
    write("10_a", *CELLS, parameters=PARAMETERS)

    def make(folder: Path) -> None:
        shutil.copytree(tmp_path, folder, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NLSTM_LAB_ROOT", str(folder))
            notebooks.execute(notebooks.Job("10_a"), threads=1)

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
    drawn: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_jupyterlab(monkeypatch, PARAMETERS.replace("to be", "not to be"), *CELLS)
    is_elsewhere(drawn, "not to be")
    said = capsys.readouterr().out
    assert f"workspaces/figures/{FIGURE}.pdf" in said
    assert "text" in said
    assert f"workspaces/figures/{TABLE}.tex" in said
    assert CLAIM in said
    assert probes.measured_claims()["value"].tolist() == [len("to be")]


@pytest.mark.slow
def test_the_notebooks_own_parameters_draw_where_they_did(
    drawn: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in paths.figures().glob(f"{FIGURE}.png"):
        file.unlink()
    in_jupyterlab(monkeypatch, PARAMETERS, *CELLS)
    assert contents() == drawn
    assert not trials()
    assert not capsys.readouterr().out


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
    (job,) = notebooks.plan(["10"], {"text": "not to be"})
    left = notebooks.inputs.left(job)
    assert f"trial {FIGURE}.png" in left
    (paths.trials() / f"{FIGURE}.png").unlink()
    assert notebooks.inputs.left(job) != left
    assert say.invoke(cli.app, [*given, "--replace"]).exit_code == 0
    record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
    assert record["parameters"]["text"] == "not to be"
    assert probes.measured_claims()["value"].tolist() == [len("not to be")]


@pytest.mark.slow
def test_what_names_no_parameters_is_replaced_and_named(
    drawn: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure of before, or one that is to be drawn with today's parameters from now on."""
    sidecar = paths.figures() / f"{FIGURE}.json"
    record = json.loads(sidecar.read_text())
    del record["parameters"]
    sidecar.write_text(json.dumps(record))
    in_jupyterlab(monkeypatch, PARAMETERS.replace("to be", "not to be"), *CELLS[:2])
    assert not trials()
    assert json.loads(sidecar.read_text())["parameters"]["text"] == "not to be"


@pytest.mark.slow
def test_in_a_workspace_everything_is_replaced(drawn: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", "")  # so that they are put back
    for text in ("to be", "not to be"):
        in_jupyterlab(monkeypatch, f'text: str = "{text}"', CELLS[0], 'lab.workspace("own")', CELLS[1])
        record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
        assert record["parameters"] == {"text": text}
    assert not trials()


def test_parameters_are_what_has_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ('text: str = "a"\nseeds: list[int] = [0]', "other = 3", 'text = "b"')  # the last is what papermill adds
    in_jupyterlab(monkeypatch, *cells, "import pathlib\nplace: pathlib.Path = pathlib.Path()")
    assert committed.parameters() == {"text": "b", "seeds": [0], "place": "PosixPath"}
    in_jupyterlab(monkeypatch, "other = 3")
    assert committed.parameters() == {}
