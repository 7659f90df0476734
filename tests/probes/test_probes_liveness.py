"""A counter is saturated, a still cell is constant, anything that tells the texts apart is alive."""

import pytest
import torch

from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.models import Network
from nlstm_lab.training.liveness import CLASSES, liveness, shares

T, B = 99, 16


def network(unit):
    return Network(unit, torch.nn.Identity())


def classes(c, i, f, g):
    expand = lambda value: torch.as_tensor(value, dtype=torch.float32).expand(c.shape)  # noqa: E731
    return [CLASSES[code] for code in liveness(c, expand(i), expand(f), expand(g))]


def steps():
    return torch.arange(1.0, T + 1)[:, None, None].expand(T, B, 1)


def push(every):
    """Nothing is added at one step in so many."""
    return torch.where(torch.arange(T) % every == 0, 0.0, 1.0)[:, None, None].expand(T, B, 1)


SIGN = torch.where(torch.arange(B) % 2 == 0, 1.0, -1.0)[None, :, None].expand(T, B, 1)  # which the text decides
NOISE = torch.randn(T, B, 1, generator=torch.Generator().manual_seed(0))
TEN = torch.arange(T).remainder(10)[:, None, None].expand(T, B, 1).float()


@pytest.mark.parametrize(
    ("c", "i", "f", "g", "life"),
    [
        (steps(), 1.0, 1.0, 1.0, "latched"),  # a counter, upward and downward
        (-steps(), 1.0, 1.0, -1.0, "latched"),
        (10 * (1 - 0.9 ** steps()), 1.0, 0.9, 1.0, "silent"),  # a leaky counter that has arrived
        (torch.full((T, B, 1), 0.4), 0.5, 0.5, 0.4, "silent"),
        (0.0005 * NOISE, 0.5, 0.5, 0.0, "silent"),  # a thousandth decides
        (0.002 * NOISE, 0.5, 0.5, 0.0, "alive"),
        (10 + 0.07 * steps(), 0.07, 1.0, 1.0, "silent"),  # a counter counts by a tenth a step at least
        (10 + 0.15 * steps(), 0.15, 1.0, 1.0, "latched"),
        (steps(), push(10), 1.0, 1.0, "silent"),  # and at more than nine tenths of the steps
        (steps(), push(50), 1.0, 1.0, "latched"),
        (3 * SIGN, 1.0, 1.0, 0.0, "alive"),  # it never moves, and tells the texts apart
        (SIGN * steps(), 1.0, 1.0, SIGN, "alive"),  # a counter that still holds a bit
        (TEN, 1.0, 0.95, 1.0, "alive"),  # saturated, and reset now and then
    ],
)
def test_the_life_of_a_cell(c, i, f, g, life):
    assert classes(c, i, f, g) == [life]


def test_a_driven_inner_memory_is_saturated_and_an_untrained_one_alive():
    torch.manual_seed(0)
    unit = NestedLSTM(20, 30)
    symbols = torch.randint(20, (T, B))
    before = shares(network(unit), symbols)
    assert before["latched_share/inner"] == before["latched_share/outer"] == 0
    assert before["silent_share/inner"] < 0.5
    with torch.no_grad():  # bias of i, f, g of the first ten inner cells: pinned
        for gate in range(3):
            unit.layers[0].memory.bias[gate * 30 : gate * 30 + 10] = 20
    after = shares(network(unit), symbols)
    assert after["latched_share/inner"] == pytest.approx(1 / 3)
    assert after["latched_share/outer"] == 0  # c = o~ tanh(c~) cannot count


def test_states_that_are_not_finite_are_said_to_be_so():
    unit = LSTM(9, 5)
    with torch.no_grad():
        unit.layers[0].bias[0] = float("nan")
    assert all(share != share for share in shares(network(unit), torch.randint(9, (20, 3))).values())
