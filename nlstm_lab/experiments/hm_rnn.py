"""Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016): the rows of tables 1 to 3 that its authors trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.synthetic import NestedLanguage
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.experiments.base import Experiment
from nlstm_lab.experiments.nested_lstm import SMOKE_CORPUS
from nlstm_lab.models import ModelConfig
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig


@dataclass(frozen=True)
class Row:
    """One row: a cell type with its flags; annealed: with its table's slope schedule; boundaries: the given ones."""

    cell_type: str
    num_layers: int = 3
    flags: Mapping[str, Any] = field(default_factory=dict)
    annealed: bool = False
    boundaries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What the rows of a table share at one scale. sizes: units, input embedding, output embedding."""

    task: Any
    training: TrainingConfig
    sizes: tuple[int, int, int]
    slope: tuple[float, float] | None = None


def _table(
    prefix: str,
    printed: str | None,
    rows: Mapping[str, Row],
    settings: Mapping[Scale, Setting],
    sources: Mapping[str, str],
) -> list[Experiment]:
    return [
        Experiment(
            name=f"{prefix}_{name}",
            scale=scale,
            task=setting.task,
            model=ModelConfig(
                cell_type=row.cell_type,
                hidden_size=setting.sizes[0],
                num_layers=row.num_layers,
                flags=row.flags,
                embedding_size=setting.sizes[1],
                output_embedding_size=setting.sizes[2],
                boundaries=row.boundaries,
            ),
            training=replace(setting.training, slope=setting.slope) if row.annealed else setting.training,
            printed=printed,
            sources=SOURCES | dict(sources),
        )
        for name, row in rows.items()
        for scale, setting in settings.items()
    ]


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
    "training.slope": "sections 4.1, 4.2: min(5, 1 + 0.04 epoch), min(3, 1 + 0.004 epoch), the current epoch (16); "
    "at small scale steeper, so that a short run has it too",
}


# Table 1, left: characters of the Penn Treebank.

PTB_ROWS = {
    "hmlstm_sample": Row("hmlstm", flags={"boundary": "sample", "layer_norm": True}),
    "hmlstm_soft": Row("hmlstm", flags={"boundary": "soft", "layer_norm": True}),
    "hmlstm_step": Row("hmlstm", flags={"boundary": "step", "layer_norm": True}),
    "hmlstm_annealed": Row("hmlstm", flags={"boundary": "step", "layer_norm": True}, annealed=True),
    "lnlstm": Row("lnlstm"),
    "lncwrnn": Row("cwrnn", num_layers=1, flags={"periods": (1, 2, 4, 8), "layer_norm": True}),
}
LANGUAGE_SOURCES = {
    "task.length": "section 4.1: length 100",
    "task.evaluation": "section 4.1: the last hidden state of a sequence starts the next one",
}
PTB_TASK = CharacterModelling(corpus="ptb", length=100, batch_size=64, evaluation="streams")
PTB_TRAINING = TrainingConfig(epochs=100, learning_rate=0.002, clip_norm=1.0, divide_on_plateau=50.0)
PTB: Mapping[Scale, Setting] = {
    "paper": Setting(PTB_TASK, PTB_TRAINING, (512, 128, 512), slope=(5.0, 0.04)),
    "small": Setting(
        PTB_TASK,
        replace(PTB_TRAINING, epochs=4, updates_per_epoch=150, batches_per_reading=20),
        (64, 32, 64),
        slope=(5.0, 1.0),
    ),
    "smoke": Setting(
        replace(PTB_TASK, corpus=SMOKE_CORPUS, length=20, batch_size=16),
        replace(PTB_TRAINING, epochs=2, updates_per_epoch=3),
        (8, 8, 8),
        slope=(5.0, 1.0),
    ),
}
PTB_SOURCES = LANGUAGE_SOURCES | {
    "task.corpus": "section 4.1: Penn Treebank, with Mikolov's procedure",
    "task.batch_size": "section 4.1: 64",
    "model.hidden_size": "section 4.1: 512 in each layer; the baselines' are our assumption",
    "model.output_embedding_size": "section 4.1: 512; the baselines have the output module as well (table 1)",
    "training.learning_rate": "section 4.1: 0.002",
    "training.epochs": "not stated; ours: 100, when the slope has reached its threshold; at small scale minutes",
    "training.updates_per_epoch": "the whole text; at small scale 600 updates in all",
    "training.batches_per_reading": "the whole split; at small scale 20 batches: 16.3 % of validation and 14.5 % of "
    "test where streams are read, 65 % and 58 % where blocks are",
}


# Table 1, right, and table 2: Wikipedia. Small scale reads substitutes.

LAYERNORM = Row("hmlstm", flags={"layer_norm": True})
ENWIK8_ROWS = {"hmlstm": Row("hmlstm"), "hmlstm_layernorm": LAYERNORM, "lnlstm": Row("lnlstm")}
TEXT8_ROWS = {"hmlstm": Row("hmlstm"), "hmlstm_layernorm": LAYERNORM}
WIKIPEDIA_TRAINING = TrainingConfig(epochs=10, learning_rate=0.001, clip_norm=1.0, divide_on_plateau=50.0)
WIKIPEDIA_SOURCES = LANGUAGE_SOURCES | {
    "task.corpus": "section 4.1; at small scale a substitute that is never judged by a printed number",
    "task.share": "section 4.1: 90M, 5M and 5M characters",
    "task.batch_size": "section 4.1: 128",
    "model.hidden_size": "section 4.1: 1024 in each layer; the baseline's is our assumption",
    "model.output_embedding_size": "section 4.1: 2048",
    "training.learning_rate": "section 4.1: 0.001; twice that at small scale, which has few updates",
    "training.epochs": "not stated; ours: 10; at small scale what two cores do in minutes",
    "training.updates_per_epoch": "the whole text; at small scale 300 updates in all",
    "training.batches_per_reading": "the whole split; at small scale 20 batches",
}


def _wikipedia(corpus: str, substitute: str, cleaned: bool) -> Mapping[Scale, Setting]:
    task = CharacterModelling(corpus=corpus, length=100, batch_size=128, evaluation="streams")
    docs = replace(
        task,
        corpus=SMOKE_CORPUS,
        length=20,
        batch_size=16,
        normalization="text8" if cleaned else "none",
    )
    small = replace(WIKIPEDIA_TRAINING, epochs=3, updates_per_epoch=100, batches_per_reading=20, learning_rate=0.002)
    smoke = replace(WIKIPEDIA_TRAINING, epochs=2, updates_per_epoch=3)
    return {
        "paper": Setting(task, WIKIPEDIA_TRAINING, (1024, 128, 2048)),
        "small": Setting(replace(task, corpus=substitute), small, (64, 32, 128)),
        "smoke": Setting(docs, smoke, (8, 8, 8)),
    }


# Table 3: handwriting.

# Without a limit the gradient through a line's thousand steps is infinite by update 12 at the paper's learning rate.
LIMITED = {"gradient_limit": 0.001}
HANDWRITING_ROWS = {
    "lstm": Row("lstm"),
    "hmlstm": Row("hmlstm", flags=LIMITED),
    "hmlstm_annealed": Row("hmlstm", flags=LIMITED, annealed=True),
}
LINES = Handwriting(batch_size=32)
HANDWRITING_TRAINING = TrainingConfig(epochs=500, learning_rate=0.0003, clip_norm=1.0, divide_on_plateau=50.0)
HANDWRITING: Mapping[Scale, Setting] = {
    "paper": Setting(LINES, HANDWRITING_TRAINING, (400, 128, 400), slope=(3.0, 0.004)),
    "small": Setting(
        LINES,
        replace(HANDWRITING_TRAINING, epochs=4, updates_per_epoch=25, learning_rate=0.003),
        (64, 32, 64),
        slope=(3.0, 0.5),
    ),
    "smoke": Setting(LINES, replace(HANDWRITING_TRAINING, epochs=1, updates_per_epoch=1), (8, 8, 8), slope=(3.0, 0.5)),
}
HANDWRITING_SOURCES = {
    "model.flags": "not stated: as above; the gradient's limit is the one that Graves (2013, sections 2.1, 4) sets for "
    "handwriting, 10 for a sum over points, where the loss is a mean over some 20,000",
    "task.batch_size": "section 4.2: 32",
    "task.minimum": "section 4.2: sequences shorter than 300 are removed",
    "task.components": "not stated; Graves (2013): 20 bivariate Gaussians",
    "task.seed": "the split was never published; ours",
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


# Not printed: a language whose words and phrases are known, on which boundaries are judged exactly.

LANGUAGE = NestedLanguage(size=500_000, words=32, topics=4, length=50, batch_size=64, evaluation="streams")
LANGUAGE_TRAINING = TrainingConfig(epochs=8, learning_rate=0.004, updates_per_epoch=125)
KNOWN_LANGUAGE: Mapping[Scale, Setting] = {
    "paper": Setting(LANGUAGE, LANGUAGE_TRAINING, PTB["paper"].sizes),
    "small": Setting(LANGUAGE, LANGUAGE_TRAINING, PTB["small"].sizes),
    "smoke": Setting(
        replace(LANGUAGE, size=40_000, length=20, batch_size=16),
        replace(LANGUAGE_TRAINING, epochs=2, updates_per_epoch=3),
        PTB["smoke"].sizes,
    ),
}
KNOWN_LANGUAGE_SOURCES = LANGUAGE_SOURCES | {
    "task.size": "ours: more than 1,000 updates read",
    "task.words": "ours: few enough to be learned in minutes",
    "task.topics": "ours: 8 words each, so that a phrase tells them apart",
    "task.length": "ours: about two phrases",
    "task.batch_size": "as table 1's",
    "model.hidden_size": "as table 1's",
    "model.output_embedding_size": "as table 1's",
    "training.learning_rate": "ours: twice table 1's, for few updates",
    "training.epochs": "ours: 1,000 updates in all",
    "training.updates_per_epoch": "ours: 1,000 updates in all",
}

# Not printed: the architecture of figure 1 (a), to which word boundaries are given; the oracle of learned ones.

HRNN_ROWS = {"words": Row("hrnn", num_layers=2, boundaries=(" \n",))}
HRNN_SOURCES = PTB_SOURCES | {
    "model.num_layers": "figure 1 (a): characters, and words",
    "model.boundaries": "section 3.1: end-of-word labels; here the space and the newline of the text",
    "model.flags": "not stated; forget bias 1",
}


def experiments() -> list[Experiment]:
    """All rows of the three tables, the network with given boundaries, and the one in a known language."""
    enwik8 = _wikipedia("enwik8", "enwiki2015_plain", cleaned=False)
    text8 = _wikipedia("text8", "enwiki2015_text8like", cleaned=True)
    return [
        *_table("ptb_char", "hm_rnn.table1_ptb", PTB_ROWS, PTB, PTB_SOURCES),
        *_table("enwik8", "hm_rnn.table1_enwik8", ENWIK8_ROWS, enwik8, WIKIPEDIA_SOURCES),
        *_table("text8", "hm_rnn.table2", TEXT8_ROWS, text8, WIKIPEDIA_SOURCES),
        *_table("handwriting", "hm_rnn.table3", HANDWRITING_ROWS, HANDWRITING, HANDWRITING_SOURCES),
        *_table("hrnn", None, HRNN_ROWS, PTB, HRNN_SOURCES),
        *_table("nested_language", None, {"hmlstm": LAYERNORM}, KNOWN_LANGUAGE, KNOWN_LANGUAGE_SOURCES),
    ]
