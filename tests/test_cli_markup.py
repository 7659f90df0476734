"""Text is printed as it is, whatever brackets and colons it holds."""

from collections.abc import Callable
from typing import Any

import pytest
import typer

from nlstm_lab.cli import figures, tables, training
from nlstm_lab.execute import Job
from nlstm_lab.sweep import Sweep

TEXT = "see [1] and [/2], [bold]not[/bold] :smile: [link=x]"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


def test_cells_of_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show((TEXT, "b"), [(TEXT, "c")])
    assert capsys.readouterr().out.count(TEXT) == 2


def test_a_parameter_of_a_notebook(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(jobs: list[Job], *, tell: Callable[..., None], **_: Any) -> None:
        for job in jobs:
            job.status = "done"
            tell(job)

    monkeypatch.setattr("nlstm_lab.execute.execute_all", execute)
    figures.figures(["12"], [f"text={TEXT}"])
    said = capsys.readouterr().out
    assert f"text={TEXT}" in said
    assert "done" in said


def test_the_path_of_a_text_that_is_trained_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep(rows: Any, seeds: Any, scheduler: Any, workers: Any, watch: Any, **_: Any) -> Sweep:
        watch(told := Sweep(1, failed=1), TEXT)
        return told

    monkeypatch.setattr("nlstm_lab.sweep.sweep", sweep)
    with pytest.raises(typer.Exit):
        training.sweep("ptb_char_lstm1")
    said = capsys.readouterr().err
    assert TEXT in said
    assert "1 failed" in said
