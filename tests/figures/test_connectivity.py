"""Connectivity, memorization: what is drawn is what was measured, and nothing is drawn of what was not."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.patches import Circle

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import connectivity_sentence, unrolled_networks

TEXT = " the study of grammar"


def measured(strength=1.0, text=TEXT):
    """Connectivity that halves with every character back."""
    lag = np.subtract.outer(np.arange(len(text)), np.arange(len(text)))
    values = np.where(lag >= 0, strength * 0.5 ** np.maximum(lag, 0), 0)
    shown = np.tile(np.array(["grammar", "great", "good"], dtype=object), (len(text), 1))
    along = {"symbol": list(text), "target": ["grammar"] * len(text)}
    return xr.Dataset(
        {
            "connectivity": (("time", "source"), values),
            "prediction": (("time", "rank"), shown),
            "probability": (("time", "rank"), np.tile([0.5, 0.2, 0.1], (len(text), 1))),
        },
        {name: ("time", value) for name, value in along.items()},
    )


def shades(scale, at=10):
    both = {"nlstm": measured(), "gru": measured(100.0)}
    frame = figures.data(connectivity_sentence(both, at, scale))
    return frame.pivot(index="time", columns="model", values="shade")


def test_shades_are_relative_to_a_networks_own_largest_to_all_or_logarithmic():
    row, whole, log = shades("row"), shades("figure"), shades("log")
    assert row["gru"].tolist() == row["nlstm"].tolist()
    assert row.loc[10, "gru"] == 1
    assert row.loc[9, "gru"] == 0.5
    assert not row.loc[11:].any().any()  # the future
    assert whole.loc[10].tolist() == [1, 0.01]
    assert log.loc[10].tolist() == pytest.approx([1, 0.5])  # two of four decades
    assert log.loc[9, "gru"] == pytest.approx(1 + np.log10(0.5) / 4)


@pytest.mark.parametrize(
    ("data", "at", "scale", "message"),
    [
        ({"gru": measured()}, 99, "row", "99.*20"),
        ({"gru": measured()}, 1, "l1", "scale"),
        ({"gru": measured(), "lstm": measured(text=" other")}, 1, "row", "text"),
        ({}, 1, "row", None),
    ],
)
def test_a_sentence_that_cannot_be_drawn_is_refused(data, at, scale, message):
    with pytest.raises(UsageError, match=message):
        connectivity_sentence(data, at, scale)


def gradients():
    """Of three seeds, each half a decade less with every step back."""
    rows = [
        {"model": "gru", "condition": "trained", "seed": seed, "where": where, "lag": lag, "value": 3 + seed - lag / 2}
        for seed in range(3)
        for where in ("input", "layer 1")
        for lag in range(65)
    ]
    return pd.DataFrame(rows)


def test_the_unrolled_network_is_as_dark_as_its_gradients():
    measured = gradients()
    measured.loc[measured["where"] == "layer 1", "value"] += 2  # each row is relative to its own
    figure = unrolled_networks(measured, ["gru"])
    circles = [patch for patch in figure.axes[0].patches if isinstance(patch, Circle)]
    upper, lower = ([c.get_facecolor()[0] for c in sorted(circles, key=lambda c: c.center[0]) if c.center[1] == y]
                    for y in sorted({c.center[1] for c in circles}))  # fmt: skip
    assert len(lower) == 8
    assert lower == upper == sorted(lower, reverse=True)  # darker and darker
    frame = figures.data(figure).query("where == 'input'").sort_values("lag")
    assert frame["value"].tolist() == pytest.approx([0, -0.5, -1, -2, -4, -8, -16, -32])
    assert {"$x$", "$h^{1}$", "$t-8$"} <= {text.get_text() for text in figure.axes[0].texts}
    with pytest.raises(UsageError, match="'rnn'"):
        unrolled_networks(gradients(), ["rnn"])
    with pytest.raises(UsageError, match="condition"):
        unrolled_networks(pd.concat([gradients().assign(condition=name) for name in "ab"]), ["gru"])
    with pytest.raises(UsageError, match="64"):
        unrolled_networks(gradients().query("lag < 60"), ["gru"])


@pytest.mark.slow
def test_dollar_signs_are_words_and_no_formula(folder):
    result = measured(text="$ a $")
    result["target"][:] = "$"
    result["prediction"] = result["prediction"].where(result["prediction"] != "great", "$")
    path = figures.save(connectivity_sentence({"nlstm": result}, 4), "madsen_connectivity_dollars")
    drawn = path.with_suffix(".svg").read_text()
    assert "target: $    likeliest: grammar 50 %,  $ 20 %,  good 10 %" in drawn


@pytest.fixture
def patched():
    """The clean text is followed by 3 nats of preference, the corrupted one by -1: all that can be restored are 4."""
    values = np.array([[0.0, 2.0, 4.0], [-4.0, 1.0, 6.0]])
    return xr.Dataset(
        {"patched": (("memory", "time"), values), "attributed": (("memory", "time"), values / 2), "effect": 4.0},
        coords={"memory": ["outer", "inner"], "time": range(3), "symbol": ("time", list("a\nb"))},
    )


def test_a_patch_map_shows_shares_of_what_can_be_restored(patched):
    figure = figures.patch_map(patched)
    whole, attributed, *_ = figure.axes
    assert [panel.get_title(loc="left") for panel in (whole, attributed)] == ["patched", "first order"]
    shares = np.array([[-1.0, 0.25, 1.5], [0.0, 0.5, 1.0]])
    assert [text.get_text() for text in whole.get_yticklabels()] == ["inner memory", "outer memory"], "last first"
    assert np.asarray(whole.images[0].get_array()) == pytest.approx(shares)
    assert np.asarray(attributed.images[0].get_array()) == pytest.approx(shares / 2)
    assert [panel.images[0].get_clim() for panel in (whole, attributed)] == [(-1.5, 1.5)] * 2, "0 is the middle"
    assert [text.get_text() for text in attributed.get_xticklabels()] == ["a", "¶", "b"]
    data = figures.data(figure).set_index(["memory", "time"])
    assert data.loc[("inner", 2), "patched"] == 1.5
    assert data.loc[("outer", 1), "attributed"] == 0.25


def test_texts_with_the_same_preference_have_nothing_to_restore(patched):
    with pytest.raises(UsageError):
        figures.patch_map(patched.assign(effect=0.0))
