"""A network writes from its own predictions, reproducibly; colder, it strays less."""

import pytest
import torch
from torch import nn

from nlstm_lab import probes
from nlstm_lab.cells.hmlstm import HMLSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.models import MixtureDensity, Network


@pytest.fixture
def writer():
    torch.manual_seed(0)
    density = MixtureDensity(3)
    return Network(HMLSTM(3, 6, 2), nn.Linear(6, density.size), density=density, name="writer")


@pytest.mark.slow
def test_writing_is_reproducible_and_starts_from_nothing(writer):
    line = probes.write(writer, 50, seed=3)
    assert line.shape == (50, 3)
    assert not line[0].any()
    assert set(line[:, 2].tolist()) <= {0.0, 1.0}
    assert torch.equal(line, probes.write(writer, 50, seed=3))
    assert not torch.equal(line, probes.write(writer, 50, seed=4))


@pytest.mark.slow
def test_a_colder_network_strays_less(writer):
    spread = [probes.write(writer, 400, temperature)[1:, :2].std() for temperature in (0.1, 1.0, 4.0)]
    assert spread[0] < spread[1] < spread[2]


def test_bad_wishes_are_refused(writer, network):
    with pytest.raises(UsageError, match="points"):
        probes.write(writer, 1)
    with pytest.raises(UsageError, match="temperature"):
        probes.write(writer, temperature=0)
    with pytest.raises(UsageError):
        probes.write(network())
