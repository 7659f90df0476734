"""A typing error in a config is refused, where it would train something else without a word."""

import dataclasses
import re

import numpy as np
import pytest

from nlstm_lab import experiments, models, training
from nlstm_lab.datasets.corpora import TextSource
from nlstm_lab.datasets.text import NestedLanguage
from nlstm_lab.errors import UsageError

CHARACTERS = (
    "optimizer=Adam clip=norm clip_norm=-1 clip_norm=0 clip_norm=NaN learning_rate=abc learning_rate=true epochs=0 "
    "epochs=1.5 epochs=null updates_per_epoch=-1 hidden_size=x output_bias=one output_weight=uniform length=x "
    "evaluation=stream normalization=Text8 corpus=1984"
)
WRONG = [
    *(("ptb_char_nlstm", variation) for variation in CHARACTERS.split()),
    ("autocomplete_nlstm", "normalization=Text8"),
    ("textgen_nlstm", "batch_size=0"),
    ("ptb_char_hmlstm_step", "slope=[NaN, 1]"),
    ("ptb_char_hmlstm_step", "slope=[5.0]"),
    ("poetry_nlstm", "start=Zero"),
    ("mnist_nlstm", "reading=phase"),
    ("handwriting_lstm", "components=0"),
    ("handwriting_lstm", "seed=-1"),
]


@pytest.mark.parametrize(("name", "variation"), WRONG)
def test_what_a_field_cannot_be_is_refused_by_its_name_with_the_value(name, variation):
    field, _, value = variation.partition("=")
    read = {"true": "True", "null": "None"}.get(value, value.replace("NaN", "nan"))
    with pytest.raises(UsageError, match=rf"\b{field}\b.*{re.escape(read)}"):
        experiments.get(f"{name}+{variation}", "smoke")


def test_it_is_refused_where_a_config_is_made_too():
    for made in (
        lambda: training.TrainingConfig(epochs=1, learning_rate=0.0),
        lambda: models.ModelConfig("lstm", hidden_size=0),
        lambda: TextSource("ptb", normalization="Text8"),
        lambda: NestedLanguage(evaluation="stream"),
    ):
        with pytest.raises(UsageError):
            made()


@pytest.mark.parametrize("variation", ["minimum=0", "seed=0", "learning_rate=1", "clip_norm=null"])
def test_what_a_field_can_be_is_taken(variation):
    assert experiments.get(f"handwriting_lstm+{variation}", "smoke").name.endswith(variation)


def test_numbers_of_numpy_are_numbers():
    config = dataclasses.replace(models.ModelConfig("lstm", 1), hidden_size=np.int64(3))
    assert config.hidden_size == 3
