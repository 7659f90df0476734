"""Patch maps: what is drawn are shares of what can be restored."""

import numpy as np
import pytest
import xarray as xr

from nlstm_lab import figures
from nlstm_lab.errors import UsageError


@pytest.fixture
def found():
    """The clean text is followed by 3 nats of preference, the corrupted one by -1: all that can be restored are 4."""
    patched = np.array([[0.0, 2.0, 4.0], [-4.0, 1.0, 6.0]])
    return xr.Dataset(
        {"patched": (("memory", "time"), patched), "attributed": (("memory", "time"), patched / 2), "effect": 4.0},
        coords={"memory": ["outer", "inner"], "time": range(3), "symbol": ("time", list("a\nb"))},
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
        figures.patch_map(found.assign(effect=0.0))
