"""Small untrained networks that read characters."""

import pytest
import torch
from torch import nn

from nlstm_lab import cells
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.models import Network

ALPHABET = Vocabulary(tuple(" abcdefghijklmnopqrstuvwxyz"))
UNITS = {"gru": cells.GRU, "lstm": cells.LSTM, "nlstm": cells.NestedLSTM}


@pytest.fixture(scope="session")
def character_network():
    def make(kind="nlstm", hidden_size=8, outputs: int = len(ALPHABET), **more):
        torch.manual_seed(1)
        unit = UNITS[kind](len(ALPHABET), hidden_size)
        return Network(unit, nn.Linear(hidden_size, outputs), None, ALPHABET, name=kind, **more).eval()

    return make
