"""`nlstm-lab doctor`: every lack is named with its cost; only what is essential fails the command."""

import pytest
from typer.testing import CliRunner

from nlstm_lab import cli, paths
from nlstm_lab.cli import data


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without records, a cache of its own, no data."""
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    return tmp_path


def test_a_machine_without_data_is_healthy():
    outcome = CliRunner().invoke(cli.app, ["doctor"])
    assert outcome.exit_code == 0, outcome.output
    for said in ("Everything essential works", "nlstm-lab data fetch NAME", "ptb (absent)", "none in this folder"):
        assert said in outcome.output


def test_a_folder_that_cannot_be_written_fails(elsewhere):
    (elsewhere / "data").write_text("a file in the folder's place")
    outcome = CliRunner().invoke(cli.app, ["doctor"])
    assert outcome.exit_code == 1
    assert "To be repaired first: folder" in outcome.output


def test_a_compiler_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr("nlstm_lab.cells.fast.lacking", lambda device_type: "no g++")
    assert "no g++: long trainings run uncompiled" in data.accelerator()
