"""BoundaryExplorer: every threshold is a reading, since z feeds back into the layers."""

import copy

import numpy as np
import pytest
import torch
from test_widgets_base import state

from nlstm_lab import cells, figures, models
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import boundaries
from nlstm_lab.widgets import BoundaryExplorer
from nlstm_lab.widgets import boundaries as module

ALPHABET = list(" abcdefghijklmnopqrstuvwxyz")
TEXT = "the bank of the west fell"


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    unit = cells.HMLSTM(len(ALPHABET), 8, 3)
    for parameter in unit.parameters():
        parameter.data *= 2.0
    return models.wrap(unit, readout=torch.nn.Linear(8, len(ALPHABET)), vocabulary=ALPHABET, name="hmlstm")


def test_a_setting_is_a_reading_of_its_own_and_as_trained_comes_back(network):
    widget = BoundaryExplorer(network, TEXT)
    trained = widget.reading
    widget.threshold = 0.6
    expected = boundaries(network, TEXT, threshold=0.6)
    drawn = figures.data(widget.figure())["norm"].tolist()
    assert drawn == expected["norm"].transpose("layer", "time").values.ravel().tolist()
    assert widget.reading["layers"][0]["z"] != trained["layers"][0]["z"]
    widget.threshold = None
    assert widget.reading == trained
    assert widget.trained == {"model": "hmlstm", "boundary": "step", "threshold": 0.5, "slope": 1.0}


@pytest.mark.parametrize(("threshold", "slope"), [(0.6, 2.0), (0.45, 0.5), (0.5, 3.0)])
def test_only_where_the_preactivation_is_cut_counts(network, threshold, slope):
    """What the widget tells: z = 1 where s > (2 threshold - 1) / slope."""
    steeper = copy.deepcopy(network)
    steeper.recurrent.slope = slope
    moved = boundaries(steeper, TEXT * 4, threshold=threshold)
    equal = boundaries(network, TEXT * 4, threshold=((2 * threshold - 1) / slope + 1) / 2)
    for name in ("z", "operation", "norm"):
        np.testing.assert_array_equal(moved[name], equal[name])


def test_another_network_reads_the_same_text_with_its_own_detectors(network):
    other = copy.deepcopy(network)
    other.recurrent.slope = 2.5
    with torch.no_grad():
        other.recurrent.cells[0].bias.neg_()
    widget = BoundaryExplorer({"printed": network, "another": other}, TEXT)
    assert (widget.run, widget.runs, widget.trained["slope"]) == ("printed", ["printed", "another"], 1.0)
    before = widget.reading
    widget.run = "another"
    assert widget.trained["slope"] == 2.5
    for k, layer in enumerate(widget.reading["layers"]):
        np.testing.assert_allclose(layer["z"], boundaries(other, TEXT)["z"][:, k])
    assert widget.reading["layers"] != before["layers"]
    with pytest.raises(UsageError, match="neither"):
        widget.run = "neither"
    assert widget.run == "another"


def test_what_a_network_does_not_know_is_mapped_and_the_caret_stays_in_the_text(network):
    widget = BoundaryExplorer(network, TEXT)
    widget.at = 20
    widget.text = "Ümlaut!"
    assert "".join(widget.reading["symbols"]) == "umlaut "
    assert widget.at == 6


@pytest.mark.slow
def test_a_page_has_a_reading_for_all_that_it_offers(network, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "THRESHOLDS", [0.4, 0.5])
    held = state(BoundaryExplorer(network, TEXT).to_html(tmp_path / "page.html"))
    trained, *others = held["readings"]
    assert trained == held["reading"]
    assert [each["threshold"] for each in others] == [0.4, 0.5]


def test_weights_that_are_computed_are_read_as_any_others(network):
    """Old-style weight norm, whose weights are no leaves."""
    normed = copy.deepcopy(network)
    torch.nn.utils.weight_norm(normed.readout)
    normed.readout(torch.zeros(1, 8))
    for cut in (None, 0.6):
        read, expected = (BoundaryExplorer(one, TEXT, cut).reading for one in (normed, network))
        assert read["layers"] == expected["layers"]
