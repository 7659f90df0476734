"""Madsen's article: autocomplete (as drafted, in one pass, and as published, in two) and text8 generation."""

from dataclasses import replace

from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.experiments.base import At, Rows, table
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig

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
ROWS_PRINTED: Rows = {
    "gru": {"cell_type": "gru", "num_layers": 2},
    "lstm": {"cell_type": "lstm", "num_layers": 2},
    "nlstm": {"cell_type": "nlstm", "num_layers": 1},
}
TRAINING = TrainingConfig(epochs=1, learning_rate=0.001, optimizer="adam", clip_norm=None)
SMALL_TRAINING = replace(TRAINING, epochs=4, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.003)
SMOKE_TRAINING = replace(TRAINING, epochs=2, updates_per_epoch=3)


def width(hidden_size: int) -> dict[str, object]:
    """Of the layers and of the embedding, started as the article's framework does."""
    return {"hidden_size": hidden_size, "embedding_size": hidden_size, "flags": {"initialization": "madsen"}}


# Autocomplete: 16,200 + 4,323,600 (or 5,764,800) + 9,847,986 parameters.

WORDS = Autocomplete("text8", length=200, words=2**14, batch_size=64)
WORDS_SMALL = replace(WORDS, corpus="enwiki2015_text8like", words=1024)
WORDS_SMOKE = replace(WORDS, corpus="python_docs", normalization="text8", length=40, words=64, batch_size=16)
AUTOCOMPLETE: dict[Scale, At] = {
    "paper": At(WORDS, width(600), TRAINING),
    "small": At(WORDS_SMALL, width(100), SMALL_TRAINING),
    "smoke": At(WORDS_SMOKE, width(8), SMOKE_TRAINING),
}
TWO_PASSES: dict[Scale, At] = {
    "paper": At(WORDS, width(600), replace(TRAINING, epochs=2)),
    "smoke": AUTOCOMPLETE["smoke"],
}
WORDS_SOURCES = SOURCES | {"task.words": "Autocomplete Problem: 2^14 most frequent words; fewer at small scale"}
WORDS_COUNTS = {"gru": "14,187,786", "lstm": "15,628,986", "nlstm": "15,628,986"}

# Text8 generation: 33,600 + 17,287,200 (or 23,049,600) + 34,829 parameters.

TEXT = TextGeneration("text8", length=180, batch_size=64)
TEXT_SMALL = replace(TEXT, corpus="enwiki2015_text8like")
TEXT_SMOKE = replace(TEXT, corpus="python_docs", normalization="text8", length=40, batch_size=16)
GENERATION: dict[Scale, At] = {
    "paper": At(TEXT, width(1200), TRAINING),
    "small": At(TEXT_SMALL, width(100), SMALL_TRAINING),
    "smoke": At(TEXT_SMOKE, width(8), SMOKE_TRAINING),
}
TEXT_COUNTS = {"gru": "17,355,629", "lstm": "23,118,029", "nlstm": "23,118,029"}

# Not printed: for the figure on memorization. The article's framework has no HM-LSTM, and so no initialization for it.

RNN: Rows = {"rnn": {"cell_type": "rnn", "num_layers": 2}}
HMLSTM: Rows = {"hmlstm": {"cell_type": "hmlstm", "num_layers": 2, "flags": {"initialization": "glorot"}}}
HMLSTM_SCALES: dict[Scale, At] = {
    scale: at._replace(model={**at.model, "output_embedding_size": at.model["hidden_size"]})
    for scale, at in AUTOCOMPLETE.items()
}
HMLSTM_SOURCES = WORDS_SOURCES | {
    "model.flags": "ours: Glorot uniform, gate by gate; the article's framework has no HM-LSTM",
    "model.output_embedding_size": "ours: as wide as a layer, since its upper layer rests most of the time",
}

DRAFT, PUBLISHED = "madsen.autocomplete_draft", "madsen.autocomplete_published"
ROWS = [
    *table("autocomplete_{}", ROWS_PRINTED, AUTOCOMPLETE, WORDS_SOURCES, DRAFT, WORDS_COUNTS),
    *table("autocomplete_{}_two_passes", ROWS_PRINTED, TWO_PASSES, WORDS_SOURCES, PUBLISHED, WORDS_COUNTS),
    *table("textgen_{}", ROWS_PRINTED, GENERATION, SOURCES, "madsen.textgen_draft", TEXT_COUNTS),
    *table("autocomplete_{}", RNN, AUTOCOMPLETE, WORDS_SOURCES),
    *table("autocomplete_{}", HMLSTM, HMLSTM_SCALES, HMLSTM_SOURCES),
]
