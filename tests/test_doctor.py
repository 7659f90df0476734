"""`nlstm-lab doctor`: every lack is named with its cost; only what is essential fails the command."""

import importlib.metadata

import pytest
from typer.testing import CliRunner

from nlstm_lab import cli, paths
from nlstm_lab.cli import doctor


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder without records, a cache of its own, no data."""
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    return tmp_path


def test_a_machine_without_data_is_healthy(elsewhere):
    outcome = CliRunner().invoke(cli.app, ["doctor"])
    assert outcome.exit_code == 0, outcome.output
    assert "Everything essential works" in outcome.output
    assert "nlstm-lab data fetch NAME" in outcome.output
    assert "ptb" in outcome.output
    assert "none in this folder" in outcome.output


def test_every_lack_says_what_it_costs(elsewhere):
    assert all(finding.cost for finding in doctor.data_sets() if "absent" in finding.state)


def test_a_folder_that_cannot_be_written_fails(elsewhere):
    (elsewhere / "data").write_text("a file in the folder's place")
    outcome = CliRunner().invoke(cli.app, ["doctor"])
    assert outcome.exit_code == 1
    assert "To be repaired first: folder" in outcome.output


def test_a_missing_package_and_another_version_are_distinguished(monkeypatch):
    versions = {"captum": None, "xarray": None, "torch": "1.0", "jupyterlab": "9.9rc1"}

    def version(name):
        if (known := versions.get(name, "99.0")) is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return known

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = {finding.name: finding for finding in doctor.packages()}
    assert found["captum"].cost
    assert not found["captum"].essential
    assert found["xarray"].essential
    assert ">=2.11" in found["torch"].cost
    assert not found["torch"].essential
    assert "jupyterlab" not in found


def test_a_checkout_that_is_not_installed_is_reported(monkeypatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    (found,) = doctor.packages()
    assert (found.name, found.state, found.essential) == ("packages", "not installed", False)
    assert "`pip install -e .`" in found.cost


def test_a_compiler_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr("nlstm_lab.cells.fast.compiling.lacking", lambda device_type: "no g++")
    assert doctor.compiler().state == "no g++"
