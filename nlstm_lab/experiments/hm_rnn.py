"""Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016): the rows of tables 1 to 3 that its authors trained."""

from dataclasses import replace

from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.text import CharacterModelling, NestedLanguage
from nlstm_lab.experiments.base import At, Experiment, Rows, table
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig

SOURCES = {
    "model.num_layers": "section 4.1: three layers; of the authors' own baselines our assumption",
    "model.embedding_size": "section 4.1: 128 without any non-linearity; less at small scale",
    "model.embedding_weight": "not stated; standard normal, as torch's",
    "model.flags": "not stated: arithmetic selection, clamped straight-through gradient, forget bias 1",
    "model.output_bias": "not stated; zero",
    "training.optimizer": "section 4.1: Adam",
    "training.clip_norm": "section 4.1: the norm of the gradient is clipped with a threshold of 1; of the mean over "
    "symbols here, where equation 10 sums over a sequence (its reading: clip_norm=0.01)",
    "training.clip": "section 4.1: gradients are clipped",
    "training.divide_on_plateau": "section 4.1: divided by 50 when the validation loss stopped decreasing",
    "training.slope": "sections 4.1, 4.2: min(5, 1 + 0.04 epoch), min(3, 1 + 0.004 epoch), the current epoch (16); at "
    "small scale steeper, so that a short run has it too",
}
SMOKE_MODEL = {"num_layers": 3, "hidden_size": 8, "embedding_size": 8, "output_embedding_size": 8}
SMALL_MODEL = {"num_layers": 3, "hidden_size": 64, "embedding_size": 32, "output_embedding_size": 64}


def annealed(rows: list[Experiment], name: str, slopes: dict[Scale, tuple[float, float]]) -> list[Experiment]:
    """The row of that name, with the slope annealed."""
    return [
        replace(
            row, name=f"{name.removesuffix('_step')}_annealed", training=replace(row.training, slope=slopes[row.scale])
        )
        for row in rows
        if row.name == name
    ]


# Table 1, left: characters of the Penn Treebank.

PTB = CharacterModelling("ptb", length=100, batch_size=64, evaluation="streams")
PTB_MODEL = {"num_layers": 3, "hidden_size": 512, "embedding_size": 128, "output_embedding_size": 512}
PTB_TRAINING = TrainingConfig(epochs=100, learning_rate=0.002, clip_norm=1.0, divide_on_plateau=50.0)
PTB_SMOKE = replace(PTB, corpus="python_docs", length=20, batch_size=16)
PTB_SCALES: dict[Scale, At] = {
    "paper": At(PTB, PTB_MODEL, PTB_TRAINING),
    "small": At(PTB, SMALL_MODEL, replace(PTB_TRAINING, epochs=4, updates_per_epoch=150, batches_per_reading=20)),
    "smoke": At(PTB_SMOKE, SMOKE_MODEL, replace(PTB_TRAINING, epochs=2, updates_per_epoch=3)),
}
PTB_SLOPES: dict[Scale, tuple[float, float]] = {"paper": (5.0, 0.04), "small": (5.0, 1.0), "smoke": (5.0, 1.0)}
PTB_SOURCES = SOURCES | {
    "task.corpus": "section 4.1: Penn Treebank, with Mikolov's procedure",
    "task.length": "section 4.1: length 100",
    "task.batch_size": "section 4.1: 64",
    "task.evaluation": "section 4.1: the last hidden state of a sequence starts the next one",
    "model.hidden_size": "section 4.1: 512 in each layer; the baselines' are our assumption",
    "model.output_embedding_size": "section 4.1: 512; the baselines have the output module as well (table 1)",
    "training.learning_rate": "section 4.1: 0.002",
    "training.epochs": "not stated; ours: 100, when the slope has reached its threshold; at small scale minutes",
    "training.updates_per_epoch": "the whole text; at small scale 600 updates in all",
    "training.batches_per_reading": "the whole split; at small scale 20 batches: 16.3 % of validation and 14.5 % of "
    "test where streams are read, 65 % and 58 % where blocks are",
}
DETECTORS: Rows = {
    f"hmlstm_{boundary}": {"cell_type": "hmlstm", "flags": {"boundary": boundary, "layer_norm": True}}
    for boundary in ("sample", "soft", "step")
}
BASELINES: Rows = {
    "lnlstm": {"cell_type": "lnlstm"},
    "lncwrnn": {"cell_type": "cwrnn", "num_layers": 1, "flags": {"periods": (1, 2, 4, 8), "layer_norm": True}},
}
PTB_HMLSTM = table("ptb_char_{}", DETECTORS, PTB_SCALES, PTB_SOURCES, "hm_rnn.table1_ptb")
PTB_BASELINES = table("ptb_char_{}", BASELINES, PTB_SCALES, PTB_SOURCES, "hm_rnn.table1_ptb")

# Table 1, right, and table 2: Wikipedia. Small scale reads substitutes.

ENWIK8 = CharacterModelling("enwik8", length=100, batch_size=128, evaluation="streams")
WIKIPEDIA_MODEL = {"num_layers": 3, "hidden_size": 1024, "embedding_size": 128, "output_embedding_size": 2048}
WIKIPEDIA_SMALL = SMALL_MODEL | {"output_embedding_size": 128}
WIKIPEDIA_TRAINING = TrainingConfig(epochs=10, learning_rate=0.001, clip_norm=1.0, divide_on_plateau=50.0)
SHORT = replace(WIKIPEDIA_TRAINING, epochs=3, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.002)
SHORTEST = replace(WIKIPEDIA_TRAINING, epochs=2, updates_per_epoch=3)
ENWIK8_SMOKE = replace(ENWIK8, corpus="python_docs", length=20, batch_size=16)
ENWIK8_SCALES: dict[Scale, At] = {
    "paper": At(ENWIK8, WIKIPEDIA_MODEL, WIKIPEDIA_TRAINING),
    "small": At(replace(ENWIK8, corpus="enwiki2015_plain"), WIKIPEDIA_SMALL, SHORT),
    "smoke": At(ENWIK8_SMOKE, SMOKE_MODEL, SHORTEST),
}
TEXT8_SCALES: dict[Scale, At] = {
    "paper": At(replace(ENWIK8, corpus="text8"), WIKIPEDIA_MODEL, WIKIPEDIA_TRAINING),
    "small": At(replace(ENWIK8, corpus="enwiki2015_text8like"), WIKIPEDIA_SMALL, SHORT),
    "smoke": At(replace(ENWIK8_SMOKE, normalization="text8"), SMOKE_MODEL, SHORTEST),
}
WIKIPEDIA_SOURCES = SOURCES | {
    "task.corpus": "section 4.1; at small scale a substitute that is never judged by a printed number",
    "task.length": "section 4.1: length 100",
    "task.share": "section 4.1: 90M, 5M and 5M characters",
    "task.batch_size": "section 4.1: 128",
    "task.evaluation": "section 4.1: the last hidden state of a sequence starts the next one",
    "model.hidden_size": "section 4.1: 1024 in each layer; the baseline's is our assumption",
    "model.output_embedding_size": "section 4.1: 2048",
    "training.learning_rate": "section 4.1: 0.001; twice that at small scale, which has few updates",
    "training.epochs": "not stated; ours: 10; at small scale what two cores do in minutes",
    "training.updates_per_epoch": "the whole text; at small scale 300 updates in all",
    "training.batches_per_reading": "the whole split; at small scale 20 batches",
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
LINES_SCALES: dict[Scale, At] = {
    "paper": At(LINES, LINES_MODEL, LINES_TRAINING),
    "small": At(LINES, SMALL_MODEL, replace(LINES_TRAINING, epochs=4, updates_per_epoch=25, learning_rate=0.003)),
    "smoke": At(LINES, SMOKE_MODEL, replace(LINES_TRAINING, epochs=1, updates_per_epoch=1)),
}
LINES_SLOPES: dict[Scale, tuple[float, float]] = {"paper": (3.0, 0.004), "small": (3.0, 0.5), "smoke": (3.0, 0.5)}
LINES_SOURCES = SOURCES | {
    "task.batch_size": "section 4.2: 32",
    "task.minimum": "section 4.2: sequences shorter than 300 are removed",
    "task.components": "not stated; Graves (2013): 20 bivariate Gaussians",
    "task.seed": "the split was never published; ours",
    "model.flags": "not stated: as above; the gradient's limit is the one that Graves (2013, sections 2.1, 4) sets for "
    "handwriting, 10 for a sum over points, where the loss is a mean over some 20,000",
    "model.hidden_size": "section 4.2: 400",
    "model.num_layers": "section 4.2: the same architecture; three layers of the LSTM too are our assumption",
    "model.embedding_size": "the same architecture: a linear map of (dx, dy, pen) to 128",
    "model.output_embedding_size": "section 4.2: 400",
    "training.optimizer": "not stated for handwriting; section 4.1's Adam",
    "training.clip_norm": "not stated for handwriting; section 4.1's threshold of 1, of the mean over points",
    "training.clip": "not stated for handwriting; section 4.1's",
    "training.divide_on_plateau": "not stated for handwriting; section 4.1's division by 50",
    "training.learning_rate": "section 4.2: 0.0003; ten times that at small scale, which has few updates",
    "training.epochs": "not stated; ours: 500, when the slope has reached its threshold; at small scale minutes",
    "training.updates_per_epoch": "every line; at small scale 100 updates in all",
}
LINES_ROWS: Rows = {
    "lstm": {"cell_type": "lstm"},
    "hmlstm": {"cell_type": "hmlstm", "flags": {"gradient_limit": 0.001}},
}
HANDWRITING = table("handwriting_{}", LINES_ROWS, LINES_SCALES, LINES_SOURCES, "hm_rnn.table3")

# Not printed: the architecture of figure 1 (a), to which word boundaries are given; the oracle of learned ones.

WORDS: Rows = {"words": {"cell_type": "hrnn", "num_layers": 2, "boundaries": (" \n",)}}
WORDS_SOURCES = PTB_SOURCES | {
    "model.num_layers": "figure 1 (a): characters, and words",
    "model.boundaries": "section 3.1: end-of-word labels; here the space and the newline of the text",
    "model.flags": "not stated; forget bias 1",
}

# Not printed: a language whose words and phrases are known, on which boundaries are judged exactly.

LANGUAGE = NestedLanguage(size=500_000, words=32, topics=4, length=50, batch_size=64, evaluation="streams")
LANGUAGE_TRAINING = TrainingConfig(epochs=8, learning_rate=0.004, updates_per_epoch=125)
LANGUAGE_SMOKE = replace(LANGUAGE, size=40_000, length=20, batch_size=16)
LANGUAGE_SCALES: dict[Scale, At] = {
    "paper": At(LANGUAGE, PTB_MODEL, LANGUAGE_TRAINING),
    "small": At(LANGUAGE, SMALL_MODEL, LANGUAGE_TRAINING),
    "smoke": At(LANGUAGE_SMOKE, SMOKE_MODEL, replace(LANGUAGE_TRAINING, epochs=2, updates_per_epoch=3)),
}
LANGUAGE_ROWS: Rows = {"hmlstm": {"cell_type": "hmlstm", "flags": {"layer_norm": True}}}
LANGUAGE_SOURCES = SOURCES | {
    "task.size": "ours: more than 1,000 updates read",
    "task.words": "ours: few enough to be learned in minutes",
    "task.topics": "ours: 8 words each, so that a phrase tells them apart",
    "task.length": "ours: about two phrases",
    "task.batch_size": "as table 1's",
    "task.evaluation": "section 4.1: the last hidden state of a sequence starts the next one",
    "model.hidden_size": "as table 1's",
    "model.output_embedding_size": "as table 1's",
    "training.learning_rate": "ours: twice table 1's, for few updates",
    "training.epochs": "ours: 1,000 updates in all",
    "training.updates_per_epoch": "ours: 1,000 updates in all",
}

ROWS = [
    *PTB_HMLSTM,
    *annealed(PTB_HMLSTM, "ptb_char_hmlstm_step", PTB_SLOPES),
    *PTB_BASELINES,
    *table("enwik8_{}", ENWIK8_ROWS, ENWIK8_SCALES, WIKIPEDIA_SOURCES, "hm_rnn.table1_enwik8"),
    *table("text8_{}", WIKIPEDIA_ROWS, TEXT8_SCALES, WIKIPEDIA_SOURCES, "hm_rnn.table2"),
    *HANDWRITING,
    *annealed(HANDWRITING, "handwriting_hmlstm", LINES_SLOPES),
    *table("hrnn_{}", WORDS, PTB_SCALES, WORDS_SOURCES),
    *table("nested_language_{}", LANGUAGE_ROWS, LANGUAGE_SCALES, LANGUAGE_SOURCES),
]
