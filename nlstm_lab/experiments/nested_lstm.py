"""Nested LSTMs (Moniz & Krueger 2017): the rows of tables 1 to 4."""

from dataclasses import replace

from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.experiments.base import Experiment
from nlstm_lab.models import ModelConfig
from nlstm_lab.training import TrainingConfig

# Every row of a table: name, unit, layers, units at paper, small and smoke scale, printed parameters.
# The small widths are a quarter of the paper's, so the rows stay in the paper's proportions.
PTB = (
    ("lstm1", "lstm", 1, (1000, 250, 20), "4.25M"),
    ("lstm1_large", "lstm", 1, (1050, 262, 21), "4.68M"),
    ("lstm2", "lstm", 2, (600, 150, 12), "4.47M"),
    ("lstm3", "lstm", 3, (450, 112, 9), "4.17M"),
    ("nlstm", "nlstm", 1, (600, 150, 12), "4.47M"),
)

PTB_SOURCES = {
    "task.corpus": "section 4.2",
    "task.length": "section 4.2: sequences of 100",
    "task.batch_size": "section 4.2: batches of 32",
    "task.reader": "section 4.2: non-overlapping sequences; shuffled and started from zero is our reading (protocol 9)",
    "model.hidden_size": "table 1; at small scale a quarter of it",
    "model.num_layers": "table 1",
    "model.embedding_size": "not stated; one-hot input is forced by the printed parameter counts (protocol 5)",
    "model.output_bias": "not stated; zero. log_frequencies is ours (protocol 38)",
    "model.flags": "section 4 for the activations; forget biases of 1 from the code the protocol descends from (8)",
    "training.optimizer": "section 4.2: Adam",
    "training.learning_rate": "section 4.2: 0.002",
    "training.clip_norm": "section 4.2: threshold of 1",
    "training.clip": "section 4.2: gradients are clipped",
    "training.epochs": "section 4.2: 35 epochs; at small scale what two cores do in minutes",
}


def ptb_char() -> list[Experiment]:
    """Table 1: characters of the Penn Treebank; each row as printed and with the output bias of protocol 38."""
    task = CharacterModelling(corpus="ptb", length=100, batch_size=32, reader="blocks")
    paper = TrainingConfig(epochs=35, learning_rate=0.002, optimizer="adam", clip_norm=1.0)
    schedules = {
        "paper": paper,
        "small": replace(paper, epochs=2),
        "smoke": replace(paper, epochs=2, updates_per_epoch=3),
    }
    rows = []
    for name, unit, layers, widths, printed in PTB:
        for (scale, training), width in zip(schedules.items(), widths, strict=True):
            row = Experiment(
                name=f"ptb_char_{name}",
                scale=scale,  # type: ignore[arg-type]
                task=task,
                model=ModelConfig(unit=unit, hidden_size=width, num_layers=layers),
                training=training,
                printed="nested_lstm.table1",
                printed_parameters=printed,
                sources=PTB_SOURCES,
            )
            rows += [row, rescued(row)]
    return rows


def rescued(row: Experiment) -> Experiment:
    """The same row with its output bias started at the log-frequencies of the training symbols (protocol 38)."""
    model = replace(row.model, output_bias="log_frequencies")
    return replace(row, name=f"{row.name}_logfreq", model=model, printed=None, printed_parameters=None)
