"""ConnectivityExplorer and AutocompleteDemo: what the browser is given, and what stays when Python is gone."""

import json
import re

import numpy as np
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import Completer, connectivity
from nlstm_lab.widgets import AutocompleteDemo, ConnectivityExplorer

TEXT = " abba hid a badge"
WORDS = ("<eos>", "<unknown>", *["abba", "hid", "a", "badge", "cage", "face"])


@pytest.fixture
def networks(character_network):
    return {name: character_network(name, outputs=len(WORDS), words=WORDS) for name in ("nlstm", "gru")}


def state(path):
    """What a page holds."""
    found = re.search(r'<script type="application/json" id="state">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


# --- connectivity


@pytest.mark.slow
def test_another_choice_is_computed_once_and_the_square_never(networks):
    widget = ConnectivityExplorer(networks, TEXT)
    assert list(widget.matrices) == ["true  l2"]
    widget.mode = "as_coded"
    assert list(widget.matrices) == ["true  l2"]
    widget.target = "predicted"
    widget.mode = "gradient_x_input"
    assert list(widget.matrices) == ["true  l2", "predicted  l2", "predicted  gradient_x_input"]
    widget.text = TEXT[::-1]
    assert list(widget.matrices) == ["predicted  gradient_x_input"]


@pytest.mark.parametrize("mode", ["l2", "as_coded", "gradient_x_input"])
def test_the_figure_is_that_of_what_is_shown(networks, mode):
    widget = ConnectivityExplorer(networks, TEXT, at=9, target="predicted", mode=mode, scale="figure")
    for name, network in networks.items():
        measured = "l2" if mode == "as_coded" else mode
        wanted = connectivity(network, TEXT, target="predicted", mode=measured)["connectivity"]
        wanted = wanted**2 if mode == "as_coded" else wanted
        np.testing.assert_allclose(widget.data()[name]["connectivity"], wanted, rtol=1e-5, atol=1e-12)
    frame = figures.data(widget.figure())
    assert frame["shade"].abs().max() == 1
    assert not frame.loc[frame["time"] > 9, "shade"].any()


def test_one_word_is_asked_for_everywhere(networks):
    widget = ConnectivityExplorer(networks, TEXT, target="given", word="cage")
    (matrix,) = widget.matrices.values()
    assert set(matrix["networks"][0]["target"]) == {"cage"}
    with pytest.raises(UsageError, match="'cage'"):
        widget.word = "cag"
    assert widget.word == "cage"


def test_a_long_text_is_read_in_windows_and_says_so(networks, monkeypatch):
    monkeypatch.setattr("nlstm_lab.widgets.words.LARGEST", 10)
    assert ConnectivityExplorer(networks, TEXT).about["windows"] == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"networks": {}}, "network"),
        ({"text": ""}, "text"),
        ({"at": 17}, "17.*16"),
        ({"target": "given"}, "word"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(networks, asked, said):
    with pytest.raises(UsageError, match=said):
        ConnectivityExplorer(**{"networks": networks, "text": TEXT, **asked})
    widget = ConnectivityExplorer(networks, TEXT, at=12)
    widget.set_state({"text": "", "asked": 1})
    widget.wait()
    assert "empty" in widget.error
    assert set(figures.data(widget.figure())["time"]) == set(range(len(TEXT)))
    widget.text = " abba"
    assert widget.at == 4


# --- autocomplete


def test_every_network_completes_what_stands_before_the_caret(networks):
    demo = AutocompleteDemo(networks, "abba hid", k=2)
    for one, name in zip(demo.suggestions, ("gru", "nlstm"), strict=True):
        wanted = Completer(networks[name])("abba hid", 2)
        assert [word for word, _ in one["words"]] == [word for word, _ in wanted]
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
    lengths = {name: {len(one["target"]) for one in matrix["networks"]} for name, matrix in held["matrices"].items()}
    assert set(map(frozenset, lengths.values())) == {frozenset([len(TEXT)])}
    assert len(lengths) == 4 + len(asked) // 2


@pytest.mark.slow
def test_a_page_has_every_prefix(networks, tmp_path):
    demo = AutocompleteDemo(networks, "abba", k=3)
    held = state(demo.to_html(tmp_path / "page.html"))
    assert (len(held["prefixes"]), held["prefixes"][4]) == (5, demo.suggestions)
    assert held["prefixes"][0][0]["read"] == ""
    with pytest.raises(UsageError, match="network"):
        AutocompleteDemo({})
