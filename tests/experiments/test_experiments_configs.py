"""Configs: what decides a run's numbers keeps its digest when there are new fields; values that no field has."""

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from nlstm_lab import cells, experiments
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.errors import UsageError
from nlstm_lab.runs import records
from nlstm_lab.settings import ADDED

RUNS = Path(__file__).parents[2] / "data" / "runs"
RECORDS = sorted(path.parent.relative_to(RUNS).as_posix() for path in RUNS.glob("*/*/config.json"))

# Fields that came, with their defaults, before there was `ADDED`: older records lack them, newer ones hold them.
OLDER = {
    "task": {"share", "encoding", "normalization"},
    "model": {"output_weight", "embedding_weight", "boundaries"},
    "training": {"batches_per_reading"},
}


def digest(config):
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.slow
def test_a_recorded_run_has_the_config_and_the_digest_of_today():
    """Today's config, without what the record is too old to hold, is the recorded one, and has the recorded digest."""
    assert len(RECORDS) >= 235
    for record in RECORDS:
        recorded = json.loads((RUNS / record / "config.json").read_text())
        results = (RUNS / record / name for name in ("result.json", "failed.json"))
        experiment = experiments.get(recorded["name"], recorded["scale"])
        assert records.difference(recorded, experiment) == "", record
        today = experiment.config()
        for part, older in OLDER.items():
            for name in older - recorded[part].keys():
                today[part].pop(name, None)
        assert today == recorded, record
        result = next(result for result in results if result.exists())
        assert digest(today) == json.loads(result.read_text())["config_digest"], record


@dataclass(frozen=True)
class Later(CharacterModelling):
    shade: str = field(default="as before", metadata=ADDED)


def test_an_added_field_is_in_the_config_only_where_it_is_turned():
    row = experiments.get("ptb_char_lstm1", "small")
    before = row.config()
    before["task"]["kind"] = "Later"
    later, turned = (replace(row, task=Later(**vars(row.task), **more)) for more in ({}, {"shade": "another"}))
    assert later.config() == before
    assert later.digest() == digest(before)
    assert turned.config()["task"] == before["task"] | {"shade": "another"}
    assert turned.digest() != later.digest()
    assert records.difference(before, later) == ""
    assert records.difference(before, turned) == "task.shade was 'as before' and is 'another'"
    assert records.difference(turned.config(), later) == "task.shade was 'another' and is 'as before'"


@pytest.mark.parametrize(("today", "recorded"), [("nested_lstm", "paper"), ("madsen", "tensorflow")])
def test_an_initialization_is_recorded_by_its_old_name_and_read_by_both(today, recorded):
    row = experiments.get("autocomplete_lstm", "small")
    rows = [replace(row, model=replace(row.model, flags={"initialization": name})) for name in (today, recorded)]
    assert [one.config()["model"]["flags"]["initialization"] for one in rows] == [recorded, recorded]
    assert rows[0].digest() == rows[1].digest()
    units = [cells.NestedLSTM(3, 4, initialization=name) for name in (today, recorded)]
    assert {unit.layers[0].initialization for unit in units} == {today}


# A typing error is refused, where it would train something else without a word.

CHARACTERS = (
    "optimizer=Adam clip=norm clip_norm=-1 clip_norm=0 clip_norm=NaN learning_rate=abc learning_rate=true epochs=0 "
    "epochs=1.5 epochs=null updates_per_epoch=-1 hidden_size=x output_bias=one output_weight=uniform length=x "
    "evaluation=stream normalization=Text8 corpus=1984 clip=update+clip=gradient reader=blocks+evaluation=blocks"
)
WRONG = [
    *(("ptb_char_nlstm", variation) for variation in CHARACTERS.split()),
    ("autocomplete_nlstm", "normalization=Text8"),
    ("textgen_nlstm", "batch_size=0"),
    ("ptb_char_hmlstm_step", "slope=[NaN, 1]"),
    *(("ptb_char_hmlstm_step", v) for v in ("slope=[5.0]", "slope=3", "rate_lengths=[0]", "share=90")),
    ("poetry_nlstm", "start=Zero"),
    ("mnist_nlstm", "reading=phase"),
    ("handwriting_lstm", "components=0"),
    ("handwriting_lstm", "seed=-1"),
    ("ptb_char_hmlstm_step", "layer_norm=False"),
]


@pytest.mark.parametrize(("name", "variation"), WRONG)
def test_what_a_field_cannot_be_is_refused_by_its_name_with_the_value(name, variation):
    field, _, value = variation.partition("=")
    read = {"true": "True", "null": "None"}.get(value, value.replace("NaN", "nan"))
    with pytest.raises(UsageError, match=rf"\b{field}\b.*{re.escape(read)}"):
        experiments.get(f"{name}+{variation}", "smoke")


@pytest.mark.parametrize("flag", ["batch_first", "all_layers", "input_size", "dtype"])
def test_what_building_a_network_decides_is_no_flag(flag):
    with pytest.raises(UsageError, match=flag):
        experiments.variant("ptb_char_nlstm", **{flag: True})


@pytest.mark.parametrize("variation", ["minimum=0", "seed=0", "learning_rate=1", "clip_norm=null"])
def test_what_a_field_can_be_is_taken(variation):
    assert experiments.get(f"handwriting_lstm+{variation}", "smoke").name.endswith(variation)


def test_numbers_of_numpy_are_numbers():
    one = experiments.get("ptb_char_lstm1", "smoke")
    assert len({replace(one, model=replace(one.model, hidden_size=size)).digest() for size in (3, np.int64(3))}) == 1
    varied = experiments.variant("ptb_char_hmlstm_step", hidden_size=np.int64(3), slope=np.array([5.0, 0.5]))
    assert varied == experiments.get("ptb_char_hmlstm_step+hidden_size=3+slope=[5.0, 0.5]")
