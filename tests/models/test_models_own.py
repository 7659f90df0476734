"""A unit of one's own is named by its class, and trains like any other."""

import sys

import pytest

from nlstm_lab import experiments, models, paths, runs, widgets
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.errors import UsageError

MODULE = """
from nlstm_lab.cells import NestedLSTMCell, Recurrent

class DeeperCell(NestedLSTMCell):
    def __init__(self, input_size, hidden_size, depth=3, **flags):
        super().__init__(input_size, hidden_size, depth=depth, **flags)

class Deeper(Recurrent):
    cell_class = DeeperCell

class NoUnit:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "deeper_units.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models.network, "CELL_TYPES", models.CELL_TYPES)
    yield "deeper_units"
    sys.modules.pop("deeper_units", None)
    models.CELL_TYPES.pop("deeper_units:Deeper", None)


@pytest.mark.slow
def test_a_class_of_ones_own_trains(module, runs_folder):
    name = models.cell_type(f"{module}:Deeper")
    experiment = experiments.variant("ptb_char_nlstm", "smoke", cell_type=name, epochs=1)
    model = runs.ensure(experiment, progress=False).model()
    assert type(model.recurrent).__name__ == "Deeper"
    assert runs.load(experiment).name.startswith("ptb_char_nlstm+cell_type=deeper_units:Deeper")


@pytest.mark.slow
def test_the_table_has_the_runs_of_units_that_this_process_lacks(module, runs_folder):
    name = models.cell_type(f"{module}:Deeper")
    run = runs.ensure(experiments.variant("ptb_char_nlstm", "smoke", cell_type=name, epochs=1, depth=4), progress=False)
    models.CELL_TYPES.pop(name)
    assert set(runs.table().experiment) == {run.experiment.name}


@pytest.mark.slow
def test_the_browser_passes_over_the_runs_of_units_that_this_process_lacks(module, runs_folder):
    name = models.cell_type(f"{module}:Deeper")
    runs.ensure(experiments.variant("ptb_char_nlstm", "smoke", cell_type=name, epochs=1), progress=False)
    kept = runs.ensure(experiments.variant("ptb_char_nlstm", "smoke", epochs=1), progress=False)
    assert len(widgets.RunBrowser().rows) == 2
    models.CELL_TYPES.pop(name)
    assert [row["name"] for row in widgets.RunBrowser().rows] == [kept.name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nlstn", "'nlstn'.*rnn, lstm"),
        ("deeper_units:Nobody", "Nobody"),
        ("nowhere:Nobody", "nowhere"),
        ("deeper_units:NoUnit", "NoUnit.*nlstm_lab.cells.Recurrent"),
    ],
)
def test_what_is_no_unit_is_refused(module, name, sentence):
    with pytest.raises(UsageError, match=sentence):
        models.cell_type(name)


def test_building_an_unknown_unit_says_how_ones_own_gets_known():
    ends = models.Interface(Symbols(5), Symbols(5))
    with pytest.raises(ValueError, match=r"lab\.models\.cell_type\('module:Class'\)"):
        models.build(models.ModelConfig("mine:Deeper", 4), ends, seed=0)


def test_a_workspace_holds_runs_probes_and_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_ROOT", str(tmp_path))
    for name in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", "before")  # and is restored afterwards
    assert paths.workspace("trial") == tmp_path / "workspaces" / "trial"
    assert {paths.runs().parent, paths.probes().parent, paths.figures().parent} == {paths.workspace("trial")}
    with pytest.raises(UsageError, match="elsewhere"):
        paths.workspace("../elsewhere")
