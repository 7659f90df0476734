"""Small networks over a small alphabet, and a text for them."""

import pytest
import torch
from torch import nn

from nlstm_lab.cells import NestedLSTM
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.models import Interface, ModelConfig, Network, build

ALPHABET = Vocabulary(tuple(" abcdefghij"))


@pytest.fixture
def network():
    def make(kind=NestedLSTM, hidden_size=8, seed=0, embedded=False, scale=1.0, **flags):
        torch.manual_seed(seed)
        size = len(ALPHABET)
        unit = kind(size, hidden_size, **flags)
        embedding = nn.Embedding(size, size) if embedded else None
        model = Network(unit, nn.Linear(hidden_size, size), embedding, ALPHABET, name="small")
        for parameter in model.parameters():  # a trained network is driven harder than a fresh one
            parameter.data *= scale
        return model

    return make


@pytest.fixture
def built():
    """A fresh network of two layers of a unit that experiments name; an HRNN's segments end at blanks."""

    def make(unit, **flags):
        ends = Interface(Symbols(len(ALPHABET)), Symbols(len(ALPHABET)), vocabulary=ALPHABET)
        return build(ModelConfig(unit, 8, 2, flags=flags, boundaries=(" ",) if unit == "hrnn" else ()), ends, seed=0)

    return make


@pytest.fixture
def text():
    generator = torch.Generator().manual_seed(3)
    return ALPHABET.decode(torch.randint(len(ALPHABET), (400,), generator=generator))
