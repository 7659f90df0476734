"""Reading leaves a network as it was, part by part."""

import pytest
import torch

from nlstm_lab.cells.hmlstm import HMLSTM
from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.probes.reading import evaluating, reading
from nlstm_lab.probes.tracing import trace


def test_every_part_keeps_its_own_mode(network) -> None:
    model = network(LSTM)
    model.train()
    model.recurrent.eval()
    before = {name: part.training for name, part in model.named_modules()}
    with evaluating(model):
        assert not any(part.training for part in model.modules())
    assert {name: part.training for name, part in model.named_modules()} == before
    assert len(set(before.values())) == 2


@pytest.mark.slow
def test_sampled_boundaries_are_the_same_at_every_reading_and_draw_no_numbers(network, text) -> None:
    model = network(HMLSTM, num_layers=3, boundary="sample")
    before = torch.get_rng_state()
    first = trace(model, text)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert trace(model, text).z.equals(first.z)


def test_readings_within_each_other_leave_the_outer_one_its_numbers(network) -> None:
    model = network(HMLSTM, num_layers=2, boundary="sample")

    def drawn(between: bool) -> float:
        with reading(model):
            if between:
                with reading(model):
                    torch.rand(2)
            return float(torch.rand(()))

    assert drawn(True) == drawn(False)
