"""Nested LSTMs (Moniz & Krueger 2017): the rows of tables 1 to 4, and ours initialized to the log-frequencies."""

from collections.abc import Mapping
from dataclasses import replace

from nlstm_lab.datasets.items import ChinesePoetry, MNISTGlimpses
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.experiments.base import At, Experiment, Rows, table
from nlstm_lab.settings import Scale
from nlstm_lab.training import TrainingConfig

# Every table has the same five rows: a cell type, and layers of it.
FIVE: Rows = {
    "lstm1": {"cell_type": "lstm", "num_layers": 1},
    "lstm1_large": {"cell_type": "lstm", "num_layers": 1},
    "lstm2": {"cell_type": "lstm", "num_layers": 2},
    "lstm3": {"cell_type": "lstm", "num_layers": 3},
    "nlstm": {"cell_type": "nlstm", "num_layers": 1},
}


def five(name: str, scales: Mapping[Scale, At]) -> list[Experiment]:
    """The rows of one of the paper's tables at every scale."""
    return table(f"{name}_{{}}", FIVE, scales, ("nested_lstm", f"nested_lstm_{name}"))


def rescued(row: Experiment) -> Experiment:
    """The row with its output bias initialized to the log-frequencies (notebook 93)."""
    return replace(row, name=f"{row.name}_logfreq", model=replace(row.model, output_bias="log_frequencies"))


# Table 1: characters of the Penn Treebank. The small widths are a quarter of the paper's. ADOPTED, behind a row's name,
# is the reading of the protocol that was adopted at the paper's size (R3 of data/targets/protocol.md).
ADOPTED = "+line_ends=trailing+output_weight=orthogonal_tiles+clip=update"

PTB = CharacterModelling("ptb", length=100, batch_size=32, evaluation="blocks")
PTB_SMOKE = replace(PTB, corpus="python_docs", length=20, batch_size=16)  # what every Python carries: no data set
PTB_TRAINING = TrainingConfig(epochs=35, learning_rate=0.002, optimizer="adam", clip_norm=1.0)
TABLE_1 = five(
    "ptb_char",
    {
        "paper": At(PTB, {}, PTB_TRAINING, (1000, 1050, 600, 450, 600)),
        "small": At(PTB, {}, replace(PTB_TRAINING, epochs=2), (250, 262, 150, 112, 150)),
        "smoke": At(PTB_SMOKE, {}, replace(PTB_TRAINING, epochs=2, updates_per_epoch=3), (20, 21, 12, 9, 12)),
    },
)

# Table 2: Chinese quatrains. The paper's networks are small already, so small scale only trains for less long.

POEMS = ChinesePoetry(batch_size=64)
POEMS_TRAINING = TrainingConfig(epochs=120, learning_rate=0.002, optimizer="adam", clip_norm=5.0)
TABLE_2 = five(
    "poetry",
    {
        "paper": At(POEMS, {}, POEMS_TRAINING, (32, 40, 32, 32, 32)),
        "small": At(POEMS, {}, replace(POEMS_TRAINING, epochs=20), (32, 40, 32, 32, 32)),
        "smoke": At(POEMS, {}, replace(POEMS_TRAINING, epochs=1, updates_per_epoch=3), (4, 5, 4, 4, 4)),
    },
)

# Table 3: MNIST in glimpses. The printed 3 x 75 would be 128,860 parameters: 85.1k is exactly 3 x 60. No row from the
# log-frequencies: these are ten classes of equal frequency, and no language.

GLIMPSES = MNISTGlimpses(batch_size=100)
GLIMPSES_TRAINING = TrainingConfig(epochs=150, learning_rate=0.001, optimizer="rmsprop", decay=0.9, clip_norm=1.0)
TABLE_3 = five(
    "mnist",
    {
        "paper": At(GLIMPSES, {}, GLIMPSES_TRAINING, (100, 130, 75, 60, 75)),
        "small": At(GLIMPSES, {}, replace(GLIMPSES_TRAINING, epochs=15), (100, 130, 75, 60, 75)),
        "smoke": At(GLIMPSES, {}, replace(GLIMPSES_TRAINING, epochs=2, updates_per_epoch=3), (10, 13, 7, 6, 7)),
    },
)

# Table 4: text8. Small scale reads a substitute of the same alphabet.

TEXT8 = CharacterModelling("text8", length=180, batch_size=128, evaluation="blocks")
TEXT8_SMALL = replace(TEXT8, corpus="enwiki2015_text8like")
TEXT8_SMOKE = replace(TEXT8, corpus="python_docs", normalization="text8", length=20, batch_size=16)
TEXT8_TRAINING = TrainingConfig(epochs=40, learning_rate=0.001, optimizer="adam", clip_norm=1.0)
TABLE_4 = five(
    "text8",
    {
        "paper": At(TEXT8, {}, TEXT8_TRAINING, (2000, 2100, 1200, 950, 1200)),
        "small": At(
            TEXT8_SMALL, {}, replace(TEXT8_TRAINING, epochs=2, updates_per_epoch=400), (250, 262, 150, 118, 150)
        ),
        "smoke": At(TEXT8_SMOKE, {}, replace(TEXT8_TRAINING, epochs=2, updates_per_epoch=3), (20, 21, 12, 9, 12)),
    },
)

ROWS = [
    *(one for row in (*TABLE_1, *TABLE_2) for one in (row, rescued(row))),
    *TABLE_3,
    *(one for row in TABLE_4 for one in (row, rescued(row))),
]
