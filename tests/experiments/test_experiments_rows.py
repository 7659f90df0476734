"""The experiments are the documents' rows: their parameter counts come out, their values have sources, they train."""

import dataclasses
import itertools
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nlstm_lab import experiments, models, targets, training
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.errors import UsageError
from nlstm_lab.experiments import base
from nlstm_lab.models import Interface
from nlstm_lab.settings import SCALES

# Typed from the documents (and, where they round, from the arithmetic that the rounding confirms).
PARAMETERS = {
    "ptb_char_lstm1": 4_254_050,
    "ptb_char_lstm1_large": 4_676_750,
    "ptb_char_lstm2": 4_474_850,
    "ptb_char_lstm3": 4_167_950,
    "ptb_char_nlstm": 4_474_850,
    "poetry_lstm1": 868_472,
    "poetry_lstm1_large": 1_085_528,
    "poetry_lstm2": 876_792,
    "poetry_lstm3": 885_112,
    "poetry_nlstm": 876_792,
    "mnist_lstm1": 61_010,
    "mnist_lstm1_large": 94_910,
    "mnist_lstm2": 83_560,
    "mnist_lstm3": 85_090,
    "mnist_nlstm": 83_560,
    "text8_lstm1": 16_278_027,
    "text8_lstm1_large": 17_931_927,
    "text8_lstm2": 17_451_627,
    "text8_lstm3": 18_189_677,
    "text8_nlstm": 17_451_627,
}
NEEDS_DATA = ("poetry", "mnist", "handwriting")
ALL = [(name, scale) for name in experiments.names() for scale in experiments.scales(name)]
PLACES = [place for document in map(targets.load, targets.DOCUMENTS) for place in document.places.values()]
PRINTED = {
    row.experiment.partition("+")[0]: (place, row) for place in PLACES for row in place.numbers if row.as_printed
}


@pytest.mark.parametrize(
    "name", [f"{task}_{unit}" for task in ("autocomplete", "textgen") for unit in ("gru", "lstm", "nlstm")]
)
def test_the_articles_parameters_come_out_part_by_part(name):
    experiment = experiments.get(name, "paper")
    with torch.device("meta"):
        network = models.build(experiment.model, Interface(*base.ends(experiment.task)), seed=0)
    parts = (models.parameter_count(getattr(network, part)) for part in ("embedding", "unit", "readout"))
    assert " + ".join(map(str, parts)) == PRINTED[name][1].parameters


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_printed_parameter_count_comes_out(name):
    """And what the document rounds is the same: 4.25M, 61.0k."""
    assert experiments.parameters(experiments.get(name, "paper")) == PARAMETERS[name]
    printed = PRINTED[name][1].parameters
    digits, unit = len(printed[:-1].partition(".")[2]), {"k": 1e3, "M": 1e6}[printed[-1]]
    rounded = math.floor(PARAMETERS[name] / unit * 10**digits + 0.5) / 10**digits
    assert f"{rounded:.{digits}f}{printed[-1]}" == printed


# Rows and targets


def test_every_experiment_that_a_target_names_exists():
    for place in PLACES:
        rows = {number.experiment for number in place.numbers if number.experiment}
        rows |= {name for ordering in place.orderings for name in (ordering.better, ordering.worse)}
        assert all(experiments.get(name, "paper").name == name for name in rows)
    for claim in (claim for document in map(targets.load, targets.DOCUMENTS) for claim in document.claims):
        words = claim.measure.replace(",", " ").replace(":", " ").split()
        named = {word for word in words if word.split("_")[0] in ("ptb", "autocomplete", "handwriting")}
        assert named <= set(experiments.names())


OWN = {"enwiki2015_text8like": "text8", "enwiki2015_plain": "enwik8"}  # what a substitute stands in for


@pytest.mark.slow
def test_a_substitute_is_what_small_scale_reads_and_only_where_the_targets_say_so():
    for name, scale in ALL:
        corpora = {s: getattr(experiments.get(name, s).task, "corpus", None) for s in ("paper", scale)}
        if scale == "small" and name in PRINTED:
            substitute = PRINTED[name][0].substitute
            assert corpora["small"] == (substitute or corpora["paper"])
            assert corpora["paper"] == OWN.get(substitute, corpora["paper"])


def usual(field):
    """What a field holds where nothing is said."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@pytest.mark.parametrize("scale", SCALES)
def test_every_value_has_a_source_and_every_source_a_value(scale):
    for experiment in (experiments.get(name, scale) for name, given in ALL if given == scale):
        parts = {"task": experiment.task, "model": experiment.model, "training": experiment.training}
        fields = {f"{part}.{field.name}": field for part in parts for field in dataclasses.fields(parts[part])}
        assert experiment.sources.keys() <= fields.keys(), experiment.name
        stated = {
            name for name, field in fields.items() if getattr(parts[name.split(".")[0]], field.name) != usual(field)
        }
        unsourced = stated - experiment.sources.keys()
        unsourced -= {"model.cell_type", "task.normalization", "training.updates_per_epoch"}
        assert not unsourced, f"{experiment.name}: say in its `sources` where these values are from"


def test_every_row_is_paired_with_a_rescued_one_that_differs_in_the_output_bias_only():
    for name in experiments.names("*_logfreq"):
        for scale in experiments.scales(name):
            row, rescued = experiments.get(name.removesuffix("_logfreq"), scale), experiments.get(name, scale)
            assert (row.task, row.training) == (rescued.task, rescued.training)
            assert dataclasses.replace(row.model, output_bias="log_frequencies") == rescued.model


@pytest.mark.parametrize("task", ["ptb_char", "poetry", "mnist", "text8"])
def test_a_stack_and_its_nested_lstm_have_equal_parameters_at_small_scale_too(task):
    counts = {experiments.parameters(experiments.get(f"{task}_{row}", "small")) for row in ("lstm2", "nlstm")}
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("field", "value", "written"),
    [
        ("corpus", "novel.txt", "novel.txt"),
        ("corpus", Path("novel.txt"), "novel.txt"),
        ("corpus", "my text, é = 1.txt", "my text, é = 1.txt"),
        ("corpus", "", ""),
        ("corpus", "1984", '"1984"'),
        ("corpus", "null", '"null"'),
        ("corpus", '"quoted"', r'"\"quoted\""'),
        ("corpus", "a+b.txt", r'"a\u002bb.txt"'),
        ("corpus", "+unit=rnn", r'"\u002bunit=rnn"'),
        *(("learning_rate", float(number), number) for number in ("1e36", "1e-07", "0.0005")),
        ("learning_rate", 1, "1"),
    ],
)
def test_a_name_is_read_back_as_it_was_made(field, value, written):
    made = experiments.variant("ptb_char_nlstm", **{field: value})
    assert made.name == f"ptb_char_nlstm+{field}={written}"
    assert (str(value) if field == "corpus" else value) in (made.task.corpus, made.training.learning_rate)
    assert experiments.get(made.name) == made


# Smoke


def kind(name):
    """What of a row decides how it is trained; widths, rates and texts are others at paper scale alone."""
    row = experiments.get(name, "smoke")
    model, schedule = row.model, dataclasses.replace(row.training, learning_rate=1.0)
    return type(row.task), model.cell_type, min(model.num_layers, 2), model.output_bias, str(model.flags), str(schedule)


def marks(name):
    """Handwriting is parsed once; the annealed one is the same network with a slope that grows."""
    if name.startswith("handwriting"):
        yield pytest.mark.soak if name == "handwriting_hmlstm" else pytest.mark.xdist_group("iamondb")
    if name.startswith(NEEDS_DATA):
        yield pytest.mark.data


KINDS = {kind(name): name for name in reversed(experiments.names())}.values()


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=list(marks(name))) for name in KINDS])
def test_it_trains_at_smoke_scale(name):
    """For an epoch; of each evaluation only the first batch is read."""
    experiment = experiments.get(name, "smoke")
    task = experiment.task.load()
    whole = task.evaluate
    task.evaluate = lambda split, evaluation: itertools.islice(whole(split, evaluation), 1)
    network = models.build(experiment.model, Interface.of(task), seed=0)
    schedule = dataclasses.replace(experiment.training, epochs=1)
    fit = training.fit(network, task, schedule, seed=0, device=torch.device("cpu"), progress=False)
    numbers = {metric: value for _, _, split, _, metric, value in fit.history if split == "valid"}
    printed = {"nll_nats"}
    if name in PRINTED:
        printed |= {number.metric for number in PRINTED[name][0].numbers}
    assert printed <= numbers.keys()
    assert all(math.isfinite(numbers[metric]) for metric in printed)


def test_every_unit_of_the_project_has_an_experiment(own_units):
    used = {experiments.get(name, "paper").model.cell_type for name in experiments.names()}
    assert used == own_units, "a cell type is one that a row of nlstm_lab/experiments uses: write that row"


@pytest.mark.parametrize(
    ("name", "budget", "expected"),
    [
        ("ptb_char_lstm2", 4_474_850, 600),  # the printed width
        ("ptb_char_lstm2", 4_474_849, 599),
        *((name, 1_000_000, None) for name in ("ptb_char_hmlstm_step", "mnist_nlstm")),
    ],
)
def test_the_width_for_a_budget_is_the_widest_that_fits(name, budget, expected):
    row = experiments.get(name)
    width = experiments.width_for_parameters(row, budget)
    rows = (dataclasses.replace(row, model=dataclasses.replace(row.model, hidden_size=width + k)) for k in (0, 1))
    fits, too_wide = map(experiments.parameters, rows)
    assert fits <= budget < too_wide
    assert width == expected or expected is None
    tiled = dataclasses.replace(row, model=dataclasses.replace(row.model, output_weight="orthogonal_tiles"))
    assert experiments.width_for_parameters(tiled, budget) == width
    with pytest.raises(UsageError, match="modules"):
        experiments.width_for_parameters(experiments.get("ptb_char_lncwrnn"), budget)


def test_a_cleaned_text_is_counted_by_its_own_symbols(monkeypatch):
    loaded = SimpleNamespace(input=Symbols(27), output=Symbols(27))
    monkeypatch.setattr(CharacterModelling, "load", lambda self: loaded)
    cleaned = experiments.variant("enwik8_hmlstm", "small", normalization="text8")
    assert base.ends(cleaned.task) == (Symbols(27), Symbols(27))
    assert base.ends(experiments.get("enwik8_hmlstm", "small").task)[0].size > 200


def test_a_text_of_ones_own_may_be_a_path():
    row = experiments.get("ptb_char_nlstm", "smoke")
    given = [dataclasses.replace(row, name="mine", task=CharacterModelling(one)) for one in ("x.txt", Path("x.txt"))]
    assert given[0].digest() == given[1].digest()
