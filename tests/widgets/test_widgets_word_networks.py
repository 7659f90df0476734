"""ConnectivityExplorer and AutocompleteDemo: what the browser is given, and what stays when Python is gone."""

import numpy as np
import pytest
import torch
from test_widgets_base import state

import nlstm_lab as lab
from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import Completer, connectivity
from nlstm_lab.widgets import AutocompleteDemo, ConnectivityExplorer
from nlstm_lab.widgets.words import packed

ALPHABET = " abcdefghijklmnopqrstuvwxyz"
TEXT = " abba hid a badge"
WORDS = ("<eos>", "<unknown>", *["abba", "hid", "a", "badge", "cage", "face"])


def network(name, outputs, **more):
    torch.manual_seed(1)
    unit = {"gru": lab.cells.GRU, "nlstm": lab.NestedLSTM}[name](len(ALPHABET), 8)
    return lab.models.wrap(unit, readout=torch.nn.Linear(8, outputs), vocabulary=ALPHABET, name=name, **more)


@pytest.fixture
def networks():
    return {name: network(name, len(WORDS), words=WORDS) for name in ("nlstm", "gru")}


@pytest.mark.slow
def test_another_choice_is_computed_once(networks):
    widget = ConnectivityExplorer(networks, TEXT)
    assert list(widget.matrices) == ["true  l2"]
    widget.target = "predicted"
    widget.mode = "gradient_x_input"
    assert list(widget.matrices) == ["true  l2", "predicted  l2", "predicted  gradient_x_input"]
    widget.text = TEXT[::-1]
    assert list(widget.matrices) == ["predicted  gradient_x_input"]


@pytest.mark.parametrize("mode", ["l2", "gradient_x_input"])
def test_the_figure_is_that_of_what_is_shown(networks, mode):
    widget = ConnectivityExplorer(networks, TEXT, at=9, target="predicted", mode=mode, scale="figure")
    expected = {name: connectivity(networks[name], TEXT, target="predicted", mode=mode) for name in ("gru", "nlstm")}
    frame = figures.data(widget.figure())
    drawn = figures.data(figures.connectivity_sentence(expected, 9, "figure"))
    np.testing.assert_allclose(frame["shade"], drawn["shade"], rtol=1e-5, atol=1e-12)
    assert frame["shade"].abs().max() == 1
    assert not frame.loc[frame["time"] > 9, "shade"].any()


def test_one_word_is_asked_for_everywhere_and_a_place_is_one_of_what_is_read(networks, monkeypatch):
    widget = ConnectivityExplorer(networks, TEXT, target="given", word="cage")
    (matrix,) = widget.matrices.values()
    assert set(matrix["targets"][0]) == {"cage"}
    with pytest.raises(UsageError, match="'cage'"):
        widget.word = "cag"
    assert widget.word == "cage"
    monkeypatch.setattr("nlstm_lab.widgets.words.LARGEST", 6)
    assert ConnectivityExplorer(networks, TEXT).at == 3
    with pytest.raises(UsageError, match="0 to 5"):
        ConnectivityExplorer(networks, TEXT, at=6)


def test_every_network_completes_what_stands_before_the_caret(networks):
    demo = AutocompleteDemo(networks, "abba hid")
    for one, name in zip(demo.suggestions, ("gru", "nlstm"), strict=True):
        expected = Completer(networks[name])("abba hid", 5)
        assert [word for word, _ in one["words"]] == [word for word, _ in expected]
    before = demo.suggestions
    demo.at = 3
    assert demo.suggestions != before
    demo.text = "Ab"
    assert (demo.at, demo.suggestions[0]["read"]) == (2, "ab")
    assert figures.data(demo.figure())["word"].tolist() == [w for one in demo.suggestions for w, _ in one["words"]]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"target": "given", "word": "cage"}])
def test_a_page_holds_one_text_though_another_was_measured_for_nobody(networks, asked):
    widget = ConnectivityExplorer(networks, TEXT, **asked)
    widget.compute({**widget.settled, "text": "zz"}, lambda share, doing: None)  # as a superseded worker has done
    held = widget.shown()
    assert len(held["about"]["symbols"]) == len(TEXT)
    lengths = [len(target) for matrix in held["matrices"].values() for target in matrix["targets"]]
    assert lengths == [len(TEXT)] * 2 * (4 + len(asked) // 2)


@pytest.mark.slow
def test_a_page_has_every_prefix(networks, tmp_path):
    demo = AutocompleteDemo(networks, "abba")
    held = state(demo.to_html(tmp_path / "page.html"))
    assert (len(held["prefixes"]), held["prefixes"][4]) == (5, demo.suggestions)
    assert held["prefixes"][0][0]["read"] == ""


def read(**asked):
    kinds = {name: network(name, len(ALPHABET)) for name in ("gru", "nlstm")}
    return {name: connectivity(one, " abba hid a badge in a cage  he said", **asked) for name, one in kinds.items()}


def again(data):
    """Each network's matrix, as the browser computes it."""
    held = packed(data)
    largest = np.frombuffer(held["largest"], "<f4").reshape(len(data), -1, 1)
    return np.frombuffer(held["shares"], "<f2").reshape(*largest.shape[:2], -1) * largest


@pytest.mark.parametrize("mode", ["l2", "gradient_x_input"])
def test_three_digits_of_whatever_matters_come_back(mode):
    data = read(mode=mode, target="predicted")
    for values, one in zip(again(data), data.values(), strict=True):
        true = one["connectivity"].values
        share = np.abs(true) / np.abs(true).max(1, keepdims=True)
        strong = share >= 1e-4
        np.testing.assert_allclose(values[strong], true[strong], rtol=5e-3)
        assert np.abs(values - true)[~strong].max() <= 1e-6 * np.abs(true).max()


def test_a_position_without_a_target_is_empty():
    data = read(target="true")  # of the last character the next is not known
    held = packed(data)
    assert (held["targets"][0][-1], np.isnan(again(data)[0, -1]).all()) == ("", True)
    assert np.isnan(np.frombuffer(held["p"], "<f4").reshape(2, -1)[:, -1]).all()
