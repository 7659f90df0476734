"""Madsen's article: autocomplete (as drafted, in one pass, and as published, in two) and text8 generation."""

from dataclasses import replace

from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.experiments.base import At, Rows, table
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig

ROWS_PRINTED: Rows = {
    "gru": {"cell_type": "gru", "num_layers": 2},
    "lstm": {"cell_type": "lstm", "num_layers": 2},
    "nlstm": {"cell_type": "nlstm", "num_layers": 1},
}
TRAINING = TrainingConfig(epochs=1, learning_rate=0.001, optimizer="adam", clip_norm=None)
SMALL_TRAINING = replace(TRAINING, epochs=4, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.003)
SMOKE_TRAINING = replace(TRAINING, epochs=2, updates_per_epoch=3)


def width(hidden_size: int) -> dict[str, object]:
    """Of the layers and of the embedding, initialized as the article's framework does."""
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

# Text8 generation: 33,600 + 17,287,200 (or 23,049,600) + 34,829 parameters.

TEXT = TextGeneration("text8", length=180, batch_size=64)
TEXT_SMALL = replace(TEXT, corpus="enwiki2015_text8like")
TEXT_SMOKE = replace(TEXT, corpus="python_docs", normalization="text8", length=40, batch_size=16)
GENERATION: dict[Scale, At] = {
    "paper": At(TEXT, width(1200), TRAINING),
    "small": At(TEXT_SMALL, width(100), SMALL_TRAINING),
    "smoke": At(TEXT_SMOKE, width(8), SMOKE_TRAINING),
}

# Not printed: for the figure on memorization. The article's framework has no HM-LSTM, and so no initialization for it.

RNN: Rows = {"rnn": {"cell_type": "rnn", "num_layers": 2}}
HMLSTM: Rows = {"hmlstm": {"cell_type": "hmlstm", "num_layers": 2, "flags": {"initialization": "glorot"}}}
HMLSTM_SCALES: dict[Scale, At] = {
    scale: at._replace(model={**at.model, "output_embedding_size": at.model["hidden_size"]})
    for scale, at in AUTOCOMPLETE.items()
}

WORDS_SOURCES = ("madsen", "madsen_words")
ROWS = [
    *table("autocomplete_{}", ROWS_PRINTED, AUTOCOMPLETE, WORDS_SOURCES),
    *table("autocomplete_{}_two_passes", ROWS_PRINTED, TWO_PASSES, WORDS_SOURCES),
    *table("textgen_{}", ROWS_PRINTED, GENERATION, ("madsen",)),
    *table("autocomplete_{}", RNN, AUTOCOMPLETE, WORDS_SOURCES),
    *table("autocomplete_{}", HMLSTM, HMLSTM_SCALES, (*WORDS_SOURCES, "madsen_hmlstm")),
]
