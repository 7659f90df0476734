"""What is said of a unit is true of units whose values are known."""

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab import probes
from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.models import Network
from nlstm_lab.probes import unit_statistics as measure
from nlstm_lab.training.liveness import CLASSES, liveness, shares

LETTERS = " abcdefghijklmnopqrstuvwxyz"
TEXT = "the bank of the west fell sharply on monday but recovered by friday " * 20


@pytest.fixture(scope="module")
def known():
    """Of an LSTM's units, the first is high at spaces alone, the second stands still, the third is low at vowels."""
    torch.manual_seed(1)  # not 0, from which an untrained copy is drawn
    unit = lab.LSTM(len(LETTERS), 3)
    cell = unit.cells[0]
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        x, bias = cell.weight_ih, cell.bias
        bias[0:3], bias[3:6] = 20.0, -20.0  # the input gate is open, the forget gate closed
        x[6, 0] = 3.0
        for vowel in "aeiou":
            x[8, LETTERS.index(vowel)] = -3.0
    return lab.models.wrap(unit, readout=torch.nn.Linear(3, len(LETTERS)), vocabulary=LETTERS, name="known")


def test_labels_places_and_histograms_of_known_units(known):
    table = lab.probes.units(known, TEXT, burn_in=30).set_index("unit")
    assert table["label"][[0, 2]].tolist() == ["space", "vowel"]
    assert table["effect"][0] > 10 > 0 > -10 > table["effect"][2]
    assert abs(table["effect"][1]) < 0.01
    fresh = measure.values_of(probes.trace(probes.untrained(known), TEXT))["cell"][30:]
    spaces = measure.unit_labels(TEXT)["space"][30:]
    assert table["untrained"][0] == pytest.approx(np.quantile(np.abs(measure.contrast(fresh, spaces)), 0.95))
    assert table["shuffled"][0] == pytest.approx(table["effect"][0], rel=0.2)  # it reads the character alone
    places = [int(place) for place in table["places"][0].split()]
    highest, lowest = places[: measure.PASSAGES], places[measure.PASSAGES :]
    assert [TEXT[at] == " " for at in places] == [True] * len(highest) + [False] * len(lowest)
    assert np.diff(sorted(highest)).min() >= measure.BEFORE + measure.AFTER
    course = table["courses"][0].split()[0]
    around = TEXT[highest[0] - measure.BEFORE : highest[0] + measure.AFTER]
    assert [digit == "z" for digit in course] == [letter == " " for letter in around]
    assert table["histogram"][0][:-1] == "j" + "a" * (measure.BINS - 2)
    assert table["still_since"].tolist()[:2] == [len(TEXT) - 1, 0]  # TEXT ends in a space, and the second never moves


def test_units_of_vectors_have_places_and_no_labels(known):
    codes = known.vocabulary.encode(TEXT)
    result = lab.probes.units(known, codes, burn_in=30)
    assert set(result["label"]) == {""}
    assert result["effect"].isna().all()
    same = ["places", "histogram", "courses", "low", "high"]
    assert result[same].equals(lab.probes.units(known, TEXT, burn_in=30)[same])
    own = lab.models.wrap(lab.LSTM(2, 3), readout=torch.nn.Linear(3, 2), name="of points")
    assert lab.probes.units(own, torch.randn(200, 2), burn_in=30)["places"].str.len().all()


@pytest.mark.slow
def test_a_network_is_its_own_counterpart_in_another_order(known, probes_folder):
    shuffled = lab.probes.untrained(known)
    shuffled.load_state_dict(known.state_dict())
    order = [2, 1, 0]
    with torch.no_grad():
        for parameter in shuffled.recurrent.cells[0].parameters():
            parameter.copy_(parameter.view(4, 3, -1)[:, order].reshape(parameter.shape))
        shuffled.recurrent.cells[0].weight_ih[6:9] *= -1  # upside down
    found = measure.counterparts([known, shuffled], TEXT * 2)
    one = found[found["network"] == 0].set_index("unit")
    assert one["counterpart"][[0, 2]].tolist() == [2, 0]
    assert one["r"][[0, 2]].tolist() == [-1, -1]
    assert one["r"][1] == 0


def test_passages_have_text_and_ties_are_spread_and_counted(network):
    text = ("abcdefghij" * 300)[:2500]
    model = network(LSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():  # unit 2 counts up for ever, and its tanh is saturated from some step on
        cell.bias.view(4, -1)[:, 2] = 30.0
        cell.weight_ih.view(4, -1, 11)[:, 2] = 0
        cell.weight_hh.view(4, -1, 8)[:, 2] = 0
    found = probes.passages(model, text, "cell", 2, k=4).query("extreme == 'highest'")
    assert found.place.max() - found.place.min() > 2000
    assert found.ties.min() > 2000
    moving = probes.passages(model, text, "cell", 0, k=3)
    values = np.tanh(probes.trace(model, text).c.sel(memory="cell", unit=0)[24:-8].values)
    assert moving.value.iloc[0] == pytest.approx(values.max(), abs=2e-4)
    assert moving.value.iloc[3] == pytest.approx(values.min(), abs=2e-4)
    for at, *around in moving[["place", "before", "symbol", "after"]].itertuples(index=False):
        assert around == [text[at - measure.BEFORE : at], text[at], text[at + 1 : at + measure.AFTER]]
    assert len(probes.free_text()) == 30_000


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
