"""Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016): the rows of tables 1 to 3 that its authors trained."""

from dataclasses import replace

from nlstm_lab.datasets.items import Handwriting
from nlstm_lab.datasets.text import CharacterModelling, NestedLanguage
from nlstm_lab.experiments.base import At, Rows, table
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig

Scales = dict[Scale, At]
SMOKE_MODEL = {"num_layers": 3, "hidden_size": 8, "embedding_size": 8, "output_embedding_size": 8}
SMALL_MODEL = {"num_layers": 3, "hidden_size": 64, "embedding_size": 32, "output_embedding_size": 64}


def annealed(scales: Scales, paper: tuple[float, float], smaller: tuple[float, float]) -> Scales:
    """The same with the slope annealed: its ceiling, and what an epoch adds, at paper and at smaller scales."""
    slopes = {scale: paper if scale == "paper" else smaller for scale in scales}
    return {scale: at._replace(training=replace(at.training, slope=slopes[scale])) for scale, at in scales.items()}


# Table 1, left: characters of the Penn Treebank.

PTB = CharacterModelling("ptb", length=100, batch_size=64, evaluation="streams")
PTB_MODEL = {"num_layers": 3, "hidden_size": 512, "embedding_size": 128, "output_embedding_size": 512}
PTB_TRAINING = TrainingConfig(epochs=100, learning_rate=0.002, clip_norm=1.0, divide_on_plateau=50.0)
PTB_SMOKE = replace(PTB, corpus="python_docs", length=20, batch_size=16)
PTB_SCALES: Scales = {
    "paper": At(PTB, PTB_MODEL, PTB_TRAINING),
    "small": At(PTB, SMALL_MODEL, replace(PTB_TRAINING, epochs=4, updates_per_epoch=150, batches_per_reading=20)),
    "smoke": At(PTB_SMOKE, SMOKE_MODEL, replace(PTB_TRAINING, epochs=2, updates_per_epoch=3)),
}
DETECTORS: Rows = {
    f"hmlstm_{boundary}": {"cell_type": "hmlstm", "flags": {"boundary": boundary, "layer_norm": True}}
    for boundary in ("sample", "soft", "step")
}
BASELINES: Rows = {
    "lnlstm": {"cell_type": "lnlstm"},
    "lncwrnn": {"cell_type": "cwrnn", "num_layers": 1, "flags": {"periods": (1, 2, 4, 8), "layer_norm": True}},
}
PTB_ANNEALED = annealed(PTB_SCALES, (5.0, 0.04), (5.0, 1.0))

# Table 1, right, and table 2: Wikipedia. Small scale reads substitutes.

ENWIK8 = CharacterModelling("enwik8", length=100, batch_size=128, evaluation="streams")
WIKIPEDIA_MODEL = {"num_layers": 3, "hidden_size": 1024, "embedding_size": 128, "output_embedding_size": 2048}
WIKIPEDIA_SMALL = SMALL_MODEL | {"output_embedding_size": 128}
WIKIPEDIA_TRAINING = TrainingConfig(epochs=10, learning_rate=0.001, clip_norm=1.0, divide_on_plateau=50.0)
SHORT = replace(WIKIPEDIA_TRAINING, epochs=3, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.002)
SHORTEST = replace(WIKIPEDIA_TRAINING, epochs=2, updates_per_epoch=3)
ENWIK8_SMOKE = replace(ENWIK8, corpus="python_docs", length=20, batch_size=16)
ENWIK8_SCALES: Scales = {
    "paper": At(ENWIK8, WIKIPEDIA_MODEL, WIKIPEDIA_TRAINING),
    "small": At(replace(ENWIK8, corpus="enwiki2015_plain"), WIKIPEDIA_SMALL, SHORT),
    "smoke": At(ENWIK8_SMOKE, SMOKE_MODEL, SHORTEST),
}
TEXT8_SCALES: Scales = {
    "paper": At(replace(ENWIK8, corpus="text8"), WIKIPEDIA_MODEL, WIKIPEDIA_TRAINING),
    "small": At(replace(ENWIK8, corpus="enwiki2015_text8like"), WIKIPEDIA_SMALL, SHORT),
    "smoke": At(replace(ENWIK8_SMOKE, normalization="text8"), SMOKE_MODEL, SHORTEST),
}
WIKIPEDIA_ROWS: Rows = {
    "hmlstm": {"cell_type": "hmlstm"},
    "hmlstm_layernorm": {"cell_type": "hmlstm", "flags": {"layer_norm": True}},
}
ENWIK8_ROWS: Rows = {**WIKIPEDIA_ROWS, "lnlstm": {"cell_type": "lnlstm"}}

# Table 3: handwriting. Without a limit the gradient through a line's thousand steps is infinite by update 12 at the
# paper's learning rate.

LINES = Handwriting(batch_size=32)
LINES_MODEL = {"num_layers": 3, "hidden_size": 400, "embedding_size": 128, "output_embedding_size": 400}
LINES_TRAINING = TrainingConfig(epochs=500, learning_rate=0.0003, clip_norm=1.0, divide_on_plateau=50.0)
LINES_SCALES: Scales = {
    "paper": At(LINES, LINES_MODEL, LINES_TRAINING),
    "small": At(LINES, SMALL_MODEL, replace(LINES_TRAINING, epochs=4, updates_per_epoch=25, learning_rate=0.003)),
    "smoke": At(LINES, SMOKE_MODEL, replace(LINES_TRAINING, epochs=1, updates_per_epoch=1)),
}
LINES_ROWS: Rows = {
    "lstm": {"cell_type": "lstm"},
    "hmlstm": {"cell_type": "hmlstm", "flags": {"gradient_limit": 0.001}},
}
LINES_ANNEALED = annealed(LINES_SCALES, (3.0, 0.004), (3.0, 0.5))

# Not printed: the architecture of figure 1 (a), to which word boundaries are given; the oracle of learned ones.

WORDS: Rows = {"words": {"cell_type": "hrnn", "num_layers": 2, "boundaries": (" \n",)}}

# Not printed: a language whose words and phrases are known, on which boundaries are judged exactly.

LANGUAGE = NestedLanguage(size=500_000, words=32, topics=4, length=50, batch_size=64, evaluation="streams")
LANGUAGE_TRAINING = TrainingConfig(epochs=8, learning_rate=0.004, updates_per_epoch=125)
LANGUAGE_SMOKE = replace(LANGUAGE, size=40_000, length=20, batch_size=16)
LANGUAGE_SCALES: Scales = {
    "paper": At(LANGUAGE, PTB_MODEL, LANGUAGE_TRAINING),
    "small": At(LANGUAGE, SMALL_MODEL, LANGUAGE_TRAINING),
    "smoke": At(LANGUAGE_SMOKE, SMOKE_MODEL, replace(LANGUAGE_TRAINING, epochs=2, updates_per_epoch=3)),
}
LANGUAGE_ROWS: Rows = {"hmlstm": {"cell_type": "hmlstm", "flags": {"layer_norm": True}}}

PENN, WIKIPEDIA, PEN = (("hm_rnn", f"hm_rnn_{place}") for place in ("ptb", "wikipedia", "handwriting"))
ROWS = [
    *table("ptb_char_{}", DETECTORS, PTB_SCALES, PENN),
    *table("ptb_char_{}", {"hmlstm_annealed": DETECTORS["hmlstm_step"]}, PTB_ANNEALED, PENN),
    *table("ptb_char_{}", BASELINES, PTB_SCALES, PENN),
    *table("enwik8_{}", ENWIK8_ROWS, ENWIK8_SCALES, WIKIPEDIA),
    *table("text8_{}", WIKIPEDIA_ROWS, TEXT8_SCALES, WIKIPEDIA),
    *table("handwriting_{}", LINES_ROWS, LINES_SCALES, PEN),
    *table("handwriting_{}", {"hmlstm_annealed": LINES_ROWS["hmlstm"]}, LINES_ANNEALED, PEN),
    *table("hrnn_{}", WORDS, PTB_SCALES, (*PENN, "hm_rnn_words")),
    *table("nested_language_{}", LANGUAGE_ROWS, LANGUAGE_SCALES, ("hm_rnn", "hm_rnn_language")),
]
