"""Madsen's article: autocomplete (as drafted and as published) and text8 generation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.experiments.base import Experiment
from nlstm_lab.experiments.nested_lstm import SMOKE_CORPUS
from nlstm_lab.models import ModelConfig
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig


@dataclass(frozen=True)
class Row:
    """One row: a cell type with its flags, its layers, whether the HM-RNN paper's output module reads it."""

    cell_type: str
    num_layers: int = 2
    flags: Mapping[str, Any] = field(default_factory=lambda: {"initialization": "madsen"})
    output_module: bool = False


ROWS = {"gru": Row("gru"), "lstm": Row("lstm"), "nlstm": Row("nlstm", num_layers=1)}
# Not printed: for the figure on memorization. The article's framework has no HM-LSTM, and so no start for it.
EXTRAS = {"rnn": Row("rnn"), "hmlstm": Row("hmlstm", flags={"initialization": "glorot"}, output_module=True)}

TRAINING = TrainingConfig(epochs=1, learning_rate=0.001, optimizer="adam", clip_norm=None)
SMALL = replace(TRAINING, epochs=4, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.003)
SMOKE = replace(TRAINING, epochs=2, updates_per_epoch=3)

WORDS = Autocomplete(corpus="text8", length=200, words=2**14, batch_size=64)
SMALL_WORDS = replace(WORDS, corpus="enwiki2015_text8like", words=2**10)
SMOKE_WORDS = replace(WORDS, corpus=SMOKE_CORPUS, normalization="text8", length=40, words=64, batch_size=16)

CHARACTERS = TextGeneration(corpus="text8", length=180, batch_size=64)
SMALL_CHARACTERS = replace(CHARACTERS, corpus="enwiki2015_text8like")
SMOKE_CHARACTERS = replace(CHARACTERS, corpus=SMOKE_CORPUS, normalization="text8", length=40, batch_size=16)

SOURCES = {
    "task.corpus": "text8; at small scale a substitute that is never judged by a printed number",
    "task.length": "Comparing Recurrent Units: at most 200 characters, 180 for text8 generation",
    "task.batch_size": "Autocomplete Problem: 64 observations",
    "model.hidden_size": "model configurations: 600, and 1200 for text8 generation; 100 at small scale",
    "model.num_layers": "model configurations: two layers, one of the Nested LSTM with its two memories",
    "model.embedding_size": "as wide as the layer; forced by the printed parameter counts",
    "model.flags": "the article's code: the framework's own cells, kernels Glorot uniform over all of a cell's gates, "
    "gate biases of 1",
    "model.output_bias": "not stated; zero",
    "training.optimizer": "Autocomplete Problem: Adam with default parameters",
    "training.learning_rate": "Adam's default of its framework, 0.001; at small scale, of few updates, three times it",
    "training.clip_norm": "Text8 Generation Problem: gradient clipping isn't used",
    "training.epochs": "one pass over the sequences; two in the published article",
    "training.updates_per_epoch": "every sequence; at small scale 400 mini-batches in all",
    "training.batches_per_reading": "the whole split; at small scale 20 batches",
}
WORD_SOURCES = {"task.words": "Autocomplete Problem: 2^14 most frequent words; fewer at small scale"}
OUTPUT_SOURCES = {
    "model.flags": "ours: Glorot uniform, gate by gate; the article's framework has no HM-LSTM",
    "model.output_embedding_size": "ours: as wide as a layer, since its upper layer rests most of the time",
}

AUTOCOMPLETE_PARAMETERS = {"gru": 16200 + 4323600 + 9847986, "lstm": 16200 + 5764800 + 9847986}
AUTOCOMPLETE_PARAMETERS["nlstm"] = AUTOCOMPLETE_PARAMETERS["lstm"]
TEXTGEN_PARAMETERS = {"gru": 33600 + 17287200 + 34829, "lstm": 33600 + 23049600 + 34829}
TEXTGEN_PARAMETERS["nlstm"] = TEXTGEN_PARAMETERS["lstm"]

Setting = tuple[Any, TrainingConfig, int]  # task, training, units
AUTOCOMPLETE: Mapping[Scale, Setting] = {
    "paper": (WORDS, TRAINING, 600),
    "small": (SMALL_WORDS, SMALL, 100),
    "smoke": (SMOKE_WORDS, SMOKE, 8),
}
TWO_PASSES: Mapping[Scale, Setting] = {
    "paper": (WORDS, replace(TRAINING, epochs=2), 600),
    "smoke": (SMOKE_WORDS, SMOKE, 8),
}
TEXTGEN: Mapping[Scale, Setting] = {
    "paper": (CHARACTERS, TRAINING, 1200),
    "small": (SMALL_CHARACTERS, SMALL, 100),
    "smoke": (SMOKE_CHARACTERS, SMOKE, 8),
}


def _table(
    name: str,
    printed: str | None,
    rows: Mapping[str, Row],
    settings: Mapping[Scale, Setting],
    parameters: Mapping[str, int],
) -> list[Experiment]:
    """`name` is a pattern of the experiments' names with the row's in it."""
    return [
        Experiment(
            name=name.format(row_name),
            scale=scale,
            task=task,
            model=ModelConfig(
                cell_type=row.cell_type,
                hidden_size=units,
                num_layers=row.num_layers,
                flags=row.flags,
                embedding_size=units,
                output_embedding_size=units if row.output_module else None,
            ),
            training=training,
            printed=printed,
            printed_parameters=f"{parameters[row_name]:,}" if row_name in parameters else None,
            sources=SOURCES
            | (WORD_SOURCES if isinstance(task, Autocomplete) else {})
            | (OUTPUT_SOURCES if row.output_module else {}),
        )
        for row_name, row in rows.items()
        for scale, (task, training, units) in settings.items()
    ]


def experiments() -> list[Experiment]:
    """All rows of the article's tables, and the two networks that its figure on memorization asks for."""
    words, published = "madsen.autocomplete_draft", "madsen.autocomplete_published"
    return [
        *_table("autocomplete_{}", words, ROWS, AUTOCOMPLETE, AUTOCOMPLETE_PARAMETERS),
        *_table("autocomplete_{}_two_passes", published, ROWS, TWO_PASSES, AUTOCOMPLETE_PARAMETERS),
        *_table("textgen_{}", "madsen.textgen_draft", ROWS, TEXTGEN, TEXTGEN_PARAMETERS),
        *_table("autocomplete_{}", None, EXTRAS, AUTOCOMPLETE, {}),
    ]
