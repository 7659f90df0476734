"""A counter is latched, a still cell is silent, anything that tells the texts apart is alive."""

import pytest
import torch

from nlstm_lab.cells import hooked
from nlstm_lab.cells.lstm import LSTM, LSTMCell
from nlstm_lab.cells.memories import memories
from nlstm_lab.cells.nested import NestedLSTM
from nlstm_lab.cells.recurrent import Recurrent
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


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counter_is_latched_in_both_directions(sign):
    assert classes(sign * steps(), 1.0, 1.0, sign) == ["latched"]


def test_a_leaky_counter_that_has_arrived_is_silent():
    c = 10 * (1 - 0.9 ** steps())  # i * g = 1 and f = 0.9: the fixed point is 10
    assert classes(c, 1.0, 0.9, 1.0) == ["silent"]


def test_a_constant_is_silent():
    assert classes(torch.full((T, B, 1), 0.4), 0.5, 0.5, 0.4) == ["silent"]


@pytest.mark.parametrize(("deviation", "life"), [(0.0005, "silent"), (0.002, "alive")])
def test_what_moves_by_more_than_a_thousandth_is_alive(deviation, life):
    torch.manual_seed(0)
    assert classes(deviation * torch.randn(T, B, 1), 0.5, 0.5, 0.0) == [life]


@pytest.mark.parametrize(("drift", "life"), [(0.07, "silent"), (0.15, "latched")])
def test_a_counter_counts_by_a_tenth_a_step_at_least(drift, life):
    assert classes(10 + drift * steps(), drift, 1.0, 1.0) == [life]


@pytest.mark.parametrize(("every", "life"), [(10, "silent"), (50, "latched")])
def test_a_counter_counts_at_more_than_nine_tenths_of_the_steps(every, life):
    """It moves on all the same: at one step in so many nothing is added, by its gates."""
    push = torch.where(torch.arange(T) % every == 0, 0.0, 1.0)[:, None, None].expand(T, B, 1)
    assert classes(steps(), push, 1.0, 1.0) == [life]


def test_a_cell_that_tells_texts_apart_is_alive_though_it_never_moves():
    c = torch.where(torch.arange(B) % 2 == 0, 3.0, -3.0)[None, :, None].expand(T, B, 1)
    assert classes(c, 1.0, 1.0, 0.0) == ["alive"]


def test_a_counter_whose_direction_the_text_decides_still_holds_a_bit():
    sign = torch.where(torch.arange(B) % 2 == 0, 1.0, -1.0)[None, :, None]
    assert classes(sign * steps(), 1.0, 1.0, sign) == ["alive"]


def test_a_saturated_cell_that_is_reset_now_and_then_is_alive():
    c = torch.arange(T).remainder(10)[:, None, None].expand(T, B, 1).float()
    assert classes(c, 1.0, 0.95, 1.0) == ["alive"]


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
