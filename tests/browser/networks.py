"""Small untrained networks whose predictions are no secret to a browser: words, and boundaries."""

from pathlib import Path

import torch

from nlstm_lab import cells, models

ALPHABET = " abcdefghijklmnopqrstuvwxyz"
TEXT = "the study of grammar is a way of learning how people speak and of learning the grammar of a language"
# the first cells of a notebook that uses them
SETUP = [
    f"import nlstm_lab as lab\nimport sys; sys.path.append({str(Path(__file__).parent)!r})",
    "from networks import TEXT, boundary_network, word_networks",
]
WORDS = ("<eos>", "<unknown>", *dict.fromkeys(TEXT.split()), *(f"word{k}" for k in range(100)))


def word_networks(units=16):
    """A GRU, an LSTM and a Nested LSTM that predict words."""
    torch.manual_seed(0)
    kinds = {"gru": cells.GRU, "lstm": cells.LSTM, "nlstm": cells.NestedLSTM}
    made = {}
    for name, kind in kinds.items():
        unit, readout = kind(len(ALPHABET), units), torch.nn.Linear(units, len(WORDS))
        for parameter in (*unit.parameters(), readout.weight):  # a trained network is driven harder than a fresh one
            parameter.data *= 2.0
        made[name] = models.wrap(unit, readout=readout, vocabulary=list(ALPHABET), words=WORDS, name=name)
    return made


def boundary_network(units=24, threshold=0.5):
    """An HM-LSTM of three layers over the same letters, which fires often."""
    torch.manual_seed(0)
    unit = cells.HMLSTM(len(ALPHABET), units, 3, threshold=threshold)
    for parameter in unit.parameters():
        parameter.data *= 2.0
    readout = torch.nn.Linear(units, len(ALPHABET))
    return models.wrap(unit, readout=readout, vocabulary=list(ALPHABET), name="hmlstm")
