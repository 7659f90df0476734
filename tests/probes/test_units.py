"""What is said of a unit is true of units whose values are known."""

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab import probes
from nlstm_lab.cells import LSTM
from nlstm_lab.probes import unit_statistics as measure

LETTERS = " abcdefghijklmnopqrstuvwxyz"
TEXT = "the bank of the west fell sharply on monday but recovered by friday " * 20


@pytest.fixture(scope="module")
def known() -> lab.models.Network:
    """Of an LSTM's units, the first is high at spaces alone, the second stands still, the third is low at vowels."""
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


def test_labels_places_and_histograms_of_known_units(known) -> None:
    table = lab.probes.units(known, TEXT, burn_in=30).set_index("unit")
    assert table["label"][[0, 2]].tolist() == ["space", "vowel"]
    assert table["effect"][0] > 10 > 0 > -10 > table["effect"][2]
    assert abs(table["effect"][1]) < 0.01
    assert table["shuffled"][0] == pytest.approx(table["effect"][0], rel=0.2)  # it reads the character alone
    places = [int(place) for place in table["places"][0].split()]
    highest, lowest = places[: measure.PASSAGES], places[measure.PASSAGES :]
    assert all(TEXT[at] == " " for at in highest)
    assert all(TEXT[at] != " " for at in lowest)
    assert np.diff(sorted(highest)).min() >= measure.BEFORE + measure.AFTER
    course = table["courses"][0].split()[0]
    around = TEXT[highest[0] - measure.BEFORE : highest[0] + measure.AFTER]
    assert [digit == "z" for digit in course] == [letter == " " for letter in around]
    assert table["histogram"][0][1:-1] == "a" * (measure.BINS - 2)
    assert table["histogram"][0][0] == "j"


def test_units_of_vectors_have_places_and_no_labels(known) -> None:
    codes = known.vocabulary.encode(TEXT)
    result = lab.probes.units(known, codes, burn_in=30)
    assert set(result["label"]) == {""}
    assert result["effect"].isna().all()
    same = ["places", "histogram", "courses", "low", "high"]
    assert result[same].equals(lab.probes.units(known, TEXT, burn_in=30)[same])
    own = lab.models.wrap(lab.LSTM(2, 3), readout=torch.nn.Linear(3, 2), name="of points")
    assert lab.probes.units(own, torch.randn(200, 2), burn_in=30)["places"].str.len().all()


@pytest.mark.slow
def test_a_network_is_its_own_counterpart_in_another_order(known, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(tmp_path))
    shuffled = lab.probes.untrained(known)
    shuffled.load_state_dict(known.state_dict())
    order = [2, 1, 0]
    with torch.no_grad():
        for parameter in shuffled.recurrent.cells[0].parameters():
            parameter.copy_(parameter.view(4, 3, -1)[:, order].reshape(parameter.shape))
    found = measure.counterparts([known, shuffled], TEXT * 2)
    one = found[found["network"] == 0].set_index("unit")
    assert one["counterpart"][[0, 2]].tolist() == [2, 0]
    assert one["r"][[0, 2]].tolist() == [1, 1]
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
    moving = probes.passages(model, text, None, 0, k=3)
    values = np.tanh(probes.trace(model, text).c.sel(memory="cell", unit=0)[24:-8].values)
    assert moving.value.iloc[0] == pytest.approx(values.max(), abs=2e-4)
    assert moving.value.iloc[3] == pytest.approx(values.min(), abs=2e-4)
    for row in moving.itertuples():
        assert text[row.place - len(row.before) :].startswith(row.before + row.symbol + row.after)
    assert len(probes.free_text()) == 30_000
