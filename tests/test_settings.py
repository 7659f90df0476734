"""A typing error in a config is refused, where it would train something else without a word."""

import dataclasses

import numpy as np
import pytest

from nlstm_lab import experiments, models, training
from nlstm_lab.datasets.corpora import TextSource
from nlstm_lab.datasets.synthetic import NestedLanguage
from nlstm_lab.errors import UsageError

WRONG = [
    ("ptb_char_nlstm", "optimizer=Adam", "optimizer must be adam or rmsprop, not 'Adam'"),
    ("ptb_char_nlstm", "clip=norm", "clip must be gradient or update, not 'norm'"),
    ("ptb_char_nlstm", "clip_norm=-1", "clip_norm must be a number above zero or None, not -1"),
    ("ptb_char_nlstm", "clip_norm=0", "clip_norm must be a number above zero or None, not 0"),
    ("ptb_char_nlstm", "clip_norm=NaN", "clip_norm must be a number above zero or None, not nan"),
    ("ptb_char_nlstm", "learning_rate=abc", "learning_rate must be a number above zero, not 'abc'"),
    ("ptb_char_nlstm", "learning_rate=true", "learning_rate must be a number above zero, not True"),
    ("ptb_char_nlstm", "epochs=0", "epochs must be a whole number of 1 or more, not 0"),
    ("ptb_char_nlstm", "epochs=1.5", "epochs must be a whole number of 1 or more, not 1.5"),
    ("ptb_char_nlstm", "epochs=null", "epochs must be a whole number of 1 or more, not None"),
    ("ptb_char_nlstm", "updates_per_epoch=-1", "updates_per_epoch must be a whole number of 1 or more or None, not -1"),
    ("ptb_char_nlstm", "hidden_size=x", "hidden_size must be a whole number of 1 or more, not 'x'"),
    ("ptb_char_nlstm", "output_bias=one", "output_bias must be zero or log_frequencies, not 'one'"),
    ("ptb_char_nlstm", "output_weight=uniform", "output_weight must be glorot or orthogonal, not 'uniform'"),
    ("ptb_char_nlstm", "length=x", "length must be a whole number of 1 or more, not 'x'"),
    ("ptb_char_nlstm", "reader=stream", "reader must be blocks or streams, not 'stream'"),
    ("ptb_char_nlstm", "normalization=Text8", "normalization must be none or text8, not 'Text8'"),
    ("ptb_char_nlstm", "corpus=1984", "corpus must be a text, not 1984"),
    ("autocomplete_nlstm", "normalization=Text8", "normalization must be none or text8"),
    ("textgen_nlstm", "batch_size=0", "batch_size must be a whole number of 1 or more"),
    ("poetry_nlstm", "start=Zero", "start must be none or zero, not 'Zero'"),
    ("mnist_nlstm", "reading=phase", "reading must be patches or phases, not 'phase'"),
    ("handwriting_lstm", "components=0", "components must be a whole number of 1 or more"),
    ("handwriting_lstm", "seed=-1", "seed must be a whole number of 0 or more, not -1"),
]


@pytest.mark.parametrize(("name", "variation", "sentence"), WRONG)
def test_what_a_field_cannot_be_is_refused(name: str, variation: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        experiments.get(f"{name}+{variation}", "smoke")


def test_it_is_refused_where_a_config_is_made_too() -> None:
    for made in (
        lambda: training.TrainingConfig(epochs=1, learning_rate=0.0),
        lambda: models.ModelConfig("lstm", hidden_size=0),
        lambda: TextSource("ptb", normalization="Text8"),  # type: ignore[arg-type]
        lambda: NestedLanguage(reader="stream"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError):
            made()


@pytest.mark.parametrize("variation", ["minimum=0", "seed=0", "learning_rate=1", "clip_norm=null"])
def test_what_a_field_can_be_is_taken(variation: str) -> None:
    assert experiments.get(f"handwriting_lstm+{variation}", "smoke").name.endswith(variation)


def test_numbers_of_numpy_are_numbers() -> None:
    config = dataclasses.replace(models.ModelConfig("lstm", 1), hidden_size=np.int64(3))
    assert config.hidden_size == 3
