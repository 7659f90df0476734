"""A counter is saturated, a still cell is constant, anything that tells the texts apart is alive."""

import pytest
import torch

from nlstm_lab.cells import LSTM, LSTMCell, NestedLSTM, Recurrent, hooked
from nlstm_lab.cells.base import memories
from nlstm_lab.models import Network
from nlstm_lab.probes import trace
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


def test_a_driven_inner_memory_is_latched_and_an_untrained_one_alive():
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


@pytest.mark.parametrize(
    ("unit", "names"),
    [
        (LSTM(9, 5), ["cell"]),
        (LSTM(9, 5, num_layers=2), ["layer 1", "layer 2"]),
        (NestedLSTM(9, 5, depth=1), ["cell"]),
        (NestedLSTM(9, 5, depth=3), ["outer", "middle", "inner"]),
        (
            NestedLSTM(9, 5, num_layers=2),
            ["layer 1 outer", "layer 1 inner", "layer 2 outer", "layer 2 inner"],
        ),
    ],
)
def test_every_memory_has_its_name(unit, names):
    told = shares(network(unit), torch.randint(9, (20, 3)))
    assert list(told) == [f"{word}_share/{name}" for name in names for word in ("latched", "silent")]
    assert all(0 <= share <= 1 for share in told.values())


def test_a_unit_without_cells_has_no_shares():
    assert memories([{"h": torch.zeros(3, 1, 2)}]) == {}


def test_states_that_are_not_finite_are_said_to_be_so():
    unit = LSTM(9, 5)
    with torch.no_grad():
        unit.layers[0].bias[0] = float("nan")
    assert all(share != share for share in shares(network(unit), torch.randint(9, (20, 3))).values())


class Bare(LSTMCell):
    """Records its memory and no gates, as a unit of somebody's own may."""

    def recur(self, projected, state, hook=None):
        h, c = super().recur(projected, state)
        return hooked(hook, "h", h), hooked(hook, "c", c)


class BareLSTM(Recurrent):
    cell_class = Bare


def test_a_memory_that_records_no_gates_is_not_judged():
    model = Network(BareLSTM(5, 6), torch.nn.Linear(6, 5))
    assert shares(model, torch.randint(5, (20, 3))) == {}
    read = trace(model, torch.randint(5, (20,)))
    assert {"c", "h"} == set(read.data_vars)
    assert read.c.shape == (20, 1, 6)
