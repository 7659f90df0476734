"""The examples in docstrings run as they stand, and what people meet first has one."""

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import FunctionType

import pytest

import nlstm_lab as lab

EXAMPLES = sorted(
    module.name
    for module in pkgutil.walk_packages(lab.__path__, "nlstm_lab.")
    if ">>> " in Path(module.module_finder.find_spec(module.name).origin).read_text(encoding="utf-8")
)
TAKE_LONG = (
    *("figures.activations", "figures.saving", "probes.interventions", "nlstm_lab.probes", "targets.rendering"),
    "targets.verdicts",
)
MET_FIRST = [
    *(getattr(lab.cells, name) for name in ("HMLSTM", "LSTM", "GRU", "RNN", "NestedLSTM", "NestedLSTMCell")),
    *(getattr(lab.cells, name) for name in ("ClockworkRNN", "HierarchicalRNN", "LayerNormLSTM")),
    *(lab.models.build, lab.models.wrap, lab.targets.compare, lab.targets.load, lab.targets.verdicts),
    *(getattr(lab.runs, name) for name in ("ensure", "load", "table", "recorded", "histories", "dead_shares")),
    *(lab.experiments.Experiment, lab.experiments.base.Registry.variant),
    *(lab.experiments.parameters, lab.experiments.width_for_parameters),
    *(lab.probes.classes, lab.probes.intervals, lab.probes.boundaries),
    *(lab.probes.attribution, lab.probes.Completer, lab.probes.continued, lab.probes.connectivity),
    *(lab.probes.trace, lab.probes.state_timescales, lab.probes.persistence),
    *(lab.probes.intervene, lab.probes.unit_ablations, lab.probes.loss_by_context, lab.probes.decode),
    *(lab.figures.cell_activations, lab.figures.lines, lab.figures.save, lab.figures.override),
    lab.figures.data,
]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name.endswith(TAKE_LONG) else name for name in EXAMPLES],
)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path))
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed


def test_what_people_meet_first_has_an_example():
    assert [thing.__qualname__ for thing in MET_FIRST if ">>> " not in (thing.__doc__ or "")] == []


def test_every_public_name_is_there_and_documented():
    for name in lab.__all__:
        module = getattr(lab, name)
        assert module.__doc__, name
        for member in getattr(module, "__all__", ()):
            thing = getattr(module, member)
            assert thing.__doc__ or not isinstance(thing, type | FunctionType), f"{name}.{member}"
