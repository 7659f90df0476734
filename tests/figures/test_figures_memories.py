"""Patch maps, what memories carry and what lenses read: what is drawn are the shares and bits of the given numbers."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nlstm_lab import figures
from nlstm_lab.errors import UsageError

NETWORKS = [(model, start, seed) for model in ("nlstm", "stacked_lstm") for start in ("zero", "log_frequencies")
            for seed in range(3)]  # fmt: skip
MEMORIES = {"nlstm": ("outer", "inner", "layer 1 h"), "stacked_lstm": ("layer 1", "layer 2")}


def lines(ax):
    """The points of each line, without reference lines."""
    return [np.column_stack(line.get_data()).astype(float) for line in ax.lines if len(line.get_xdata()) > 2]


def drawn(ax, expected):
    """Whether a line of `ax` has just these points."""
    return any(points.shape == expected.shape and np.allclose(points, expected) for points in lines(ax))


@pytest.fixture
def found():
    """The clean text is followed by 3 nats of preference, the corrupted one by -1: all that can be restored are 4."""
    patched = np.array([[0.0, 2.0, 4.0], [-4.0, 1.0, 6.0]])
    return xr.Dataset(
        {"patched": (("memory", "time"), patched), "attributed": (("memory", "time"), patched / 2)},
        coords={"memory": ["outer", "inner"], "time": range(3), "symbol": ("time", list("a\nb"))},
        attrs={"clean": 3.0, "corrupted": -1.0},
    )


def test_a_patch_map_shows_shares_of_what_can_be_restored(found):
    figure = figures.patch_map(found)
    patched, attributed, *_ = figure.axes
    assert [panel.get_title(loc="left") for panel in (patched, attributed)] == ["patched", "first order"]
    shares = np.array([[-1.0, 0.25, 1.5], [0.0, 0.5, 1.0]])
    assert [text.get_text() for text in patched.get_yticklabels()] == ["inner memory", "outer memory"], "last first"
    assert np.asarray(patched.images[0].get_array()) == pytest.approx(shares)
    assert np.asarray(attributed.images[0].get_array()) == pytest.approx(shares / 2)
    assert [panel.images[0].get_clim() for panel in (patched, attributed)] == [(-1.5, 1.5)] * 2, "0 is the middle"
    assert [text.get_text() for text in attributed.get_xticklabels()] == ["a", "¶", "b"]
    data = figures.data(figure).set_index(["memory", "time"])
    assert data.loc[("inner", 2), "patched"] == 1.5
    assert data.loc[("outer", 1), "attributed"] == 0.25


def test_texts_with_the_same_preference_have_nothing_to_restore(found):
    with pytest.raises(UsageError):
        figures.patch_map(found.assign_attrs(corrupted=3.0))


@pytest.fixture
def patches():
    """Two families; of the effect 2 ** -time the k-th memory restores a share of (k + 1) / 10 and the seed / 100."""
    return pd.DataFrame(
        [
            {"model": model, "start": start, "seed": seed, "family": family, "memory": memory, "time": time,
             "effect": 2.0**-time, "patched": 2.0**-time * ((k + 1) / 10 + seed / 100)}
            for model, start, seed in NETWORKS for family in ("number", "class")
            for k, memory in enumerate(MEMORIES[model]) for time in range(6)
        ]
    )  # fmt: skip


@pytest.mark.slow
def test_what_is_carried_is_a_share_of_the_effect(patches):
    figure = figures.carried(patches)
    axes = np.array(figure.axes).reshape(2, 4)
    assert [ax.get_ylabel().split("\n")[0] for ax in axes[:, 0]] == ["number", "class"]
    times = np.arange(4.0)  # behind them the effect is less than a tenth of the largest
    for k, _ in enumerate(MEMORIES["nlstm"]):
        expected = np.column_stack([times, np.full(4, (k + 1) / 10 + 0.01)])
        assert any(drawn(ax, expected) for ax in axes[0]), "the mean over seeds"
    data = figures.data(figure)
    assert data["time"].max() == 3
    assert data["share"].to_numpy() == pytest.approx((data["patched"] / data["effect"]).to_numpy())
    with pytest.raises(UsageError):
        figures.carried(patches.assign(effect=0.0))


@pytest.fixture
def losses():
    """Of 4 bits that frequencies leave, a lens spares 2 of the inner memory's first character, the readout -1."""
    return pd.DataFrame(
        [
            {"model": model, "start": start, "seed": seed, "memory": memory, "ahead": ahead, "frequency": 4.0,
             "lens": 4 - (k + 1 + seed / 10) / (ahead + 1), "direct": 4 + (k + 1 + seed / 10) / (ahead + 1)}
            for model, start, seed in NETWORKS for k, memory in enumerate(MEMORIES[model]) for ahead in (0, 1, 4)
        ]
    )  # fmt: skip


@pytest.mark.slow
def test_lenses_are_drawn_as_bits_below_the_frequencies(losses):
    figure = figures.lens_losses(losses)
    axes = np.array(figure.axes).reshape(2, 4)
    titles = [ax.get_title(loc="left") for ax in axes[0]]
    assert len(set(titles)) == 4, "a column a network and its start"
    ahead = np.array([0.0, 1.0, 4.0])
    for column, title in enumerate(titles):
        memories = MEMORIES["nlstm" if "Nested" in title else "stacked_lstm"]
        for k, _ in enumerate(memories):
            spared = (k + 1.1) / (ahead + 1)  # the mean over seeds 0, 1 and 2
            assert drawn(axes[0, column], np.column_stack([ahead, spared]))
            assert drawn(axes[1, column], np.column_stack([ahead, -spared])), "worse than the frequencies: below 0"
    data = figures.data(figure).set_index(["model", "start", "seed", "memory", "ahead"])
    assert data.loc[("nlstm", "zero", 0, "inner", 0), "lens"] == 2
    assert data.loc[("nlstm", "zero", 0, "inner", 0), "direct"] == -2
