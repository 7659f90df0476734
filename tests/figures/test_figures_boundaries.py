"""Boundaries, segments and scores: what is drawn is what was found, and bad input gets a sentence."""

import numpy as np
import pytest
import xarray as xr

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.hierarchical import FOUND, TEXT, WORDS

LONG = "a text of some length, that is read by a network of three layers, and fills a row or two of the figure" * 2


@pytest.fixture
def found():
    """What the boundary probe returns, of a text or of points."""

    def make(text=LONG, boundary="step", length=200, seed=0):
        rng = np.random.default_rng(seed)
        length = length if text is None else len(text)
        z = (rng.random((length, 3)) < (0.4, 0.1, 0)).astype(np.float32)
        operation = rng.integers(0, 3, (length, 3)).astype(np.int8)
        dims = ("time", "layer")
        data = {"z": (dims, z), "operation": (dims, operation), "norm": (dims, rng.random((length, 3)))}
        coords = {"time": np.arange(length), "layer": [1, 2, 3]}
        symbols = {} if text is None else {"symbol": ("time", list(text))}
        return xr.Dataset(data, coords | symbols, {"boundary": boundary, "threshold": 0.5})

    return make


def test_rows_show_every_boundary_white_and_everything_else_black(found):
    result = found()
    figure = figures.boundary_rows(result)
    (ax,) = figure.axes
    bands = [np.asarray(mesh.get_array()).ravel() for mesh in ax.collections]
    assert "$z=1$: a segment ends" in {text.get_text() for text in ax.texts}
    rows = -(-len(LONG) // 90)
    assert len(bands) == 2 * rows, "two layers with detectors"
    np.testing.assert_array_equal(np.concatenate(bands[1::2]), result.z.sel(layer=1))
    np.testing.assert_array_equal(np.concatenate(bands[::2]), result.z.sel(layer=2))
    assert ax.collections[0].get_cmap()(1.0)[:3] == (1, 1, 1)
    assert ax.collections[0].get_cmap()(0.0)[:3] == (0, 0, 0)
    assert {mesh.get_clim() for mesh in ax.collections} == {(0, 1)}
    drawn = figures.data(figure)
    assert len(drawn) == 2 * len(LONG)
    assert "".join(drawn.loc[drawn["layer"] == 1, "symbol"]) == LONG


def test_several_readings_of_a_text_stand_under_each_other_by_their_names(found):
    readings = {"network": found(), "chance": found(seed=1)}
    figure = figures.boundary_rows(readings)
    (ax,) = figure.axes
    bands = [np.asarray(mesh.get_array()).ravel() for mesh in ax.collections]
    for k, reading in enumerate(readings.values()):
        for place, layer in ((2 * k, 2), (2 * k + 1, 1)):
            np.testing.assert_array_equal(np.concatenate(bands[place::4]), reading.z.sel(layer=layer))
    assert {"network", "chance", "$z^1$"} <= {text.get_text() for text in ax.texts}
    drawn = figures.data(figure)
    assert drawn.groupby("reading").size().to_dict() == {name: 2 * len(LONG) for name in readings}
    figure.draw_without_rendering()
    assert figure.get_tightbbox().x0 >= 0


@pytest.mark.slow
def test_norms_name_the_operations_and_count_the_updates(found):
    result = found()
    figure = figures.hidden_norms(result, printed=(270, 56, 9))
    words = [text.get_text() for text in figure.axes[0].texts]
    assert {"COPY", "UPDATE", "FLUSH"} <= set(words)
    counts = {layer: int((result.operation.sel(layer=layer) != 0).sum()) for layer in (1, 2, 3)}
    assert any(f"{counts[2]} times UPDATE or FLUSH (paper 56)" in word for word in words)
    heat = [mesh.get_array().ravel() for mesh in figure.axes[0].collections if mesh.get_cmap().name == "norms"]
    for layer in range(3):  # from its smallest norm to its largest
        values = np.ma.masked_invalid(np.ma.concatenate(heat[layer::3]))
        assert (values.min(), values.max()) == pytest.approx((0, 1))
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= 6.75 + 1e-9


@pytest.mark.parametrize("draw", [figures.boundary_rows, figures.hidden_norms])
@pytest.mark.parametrize(("length", "width"), [(1, 6.75), (41, 3.25), (500, 5.5), (90, "85 mm")])
def test_any_sequence_is_drawn_at_any_width_in_letters_that_can_be_read(found, draw, length, width):
    for result in (found((LONG * 3)[:length]), found(None, length=length)):  # a text, and vectors
        figure = draw(result, width=width)
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        assert min(box.x0, box.y0) >= -1e-9
        assert box.x1 <= figure.get_figwidth() + 1e-9
        assert box.y1 <= figure.get_figheight() + 1e-9
        assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 6
        assert len(figures.data(figure)) == (2 if draw is figures.boundary_rows else 3) * length


def test_a_row_without_room_is_refused(found):
    with pytest.raises(UsageError, match=r"0\.2 inches"):
        figures.hidden_norms(found(), width=0.2)
    assert figures.boundary_rows(found(boundary="soft")).axes[0].collections[0].get_cmap().name == "gray"


@pytest.mark.slow
def test_the_architectures_boundaries_are_drawn_as_given():
    drawn = figures.data(figures.hierarchical_architectures())
    squares = drawn[drawn["kind"] == "boundary"]["text"].astype(int).tolist()[:-2]  # without the legend's
    half = len(TEXT)
    assert squares[:half] == WORDS[0]
    assert squares[half::2] == FOUND[0]
    assert squares[half + 1 :: 2] == FOUND[1]


def test_a_new_colour_begins_behind_every_boundary_and_no_stroke_crosses_a_lifted_pen(found):
    path = np.cumsum(np.random.default_rng(1).integers(-3, 9, (200, 2)), 0)
    lifted = np.zeros(200, int)
    lifted[[20, 80, 199]] = 1
    written = found(None).assign(x=("time", path[:, 0]), y=("time", path[:, 1]), lifted=("time", lifted))
    figure = figures.handwriting_segments(written)
    by_pen, by_z = (panel.collections[0] for panel in figure.axes)
    assert len(by_pen.get_segments()) == 199 - 2
    colours = [tuple(colour) for colour in by_pen.get_colors()]
    changes = [k for k in range(1, len(colours)) if colours[k] != colours[k - 1]]
    assert changes == [20, 79]  # strokes 20 -> 21 and 80 -> 81 are missing
    fired = written.z.sel(layer=2).values[:-1].sum()
    assert len({tuple(colour) for colour in by_z.get_colors()}) == min(6, int(fired) + 1)
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "segments by the lifted pen: 3",
        f"segments by $z^2$: {int(fired) + 1}, of 200 points",
    ]
    never = written.assign(z=0 * written.z)
    assert figures.handwriting_segments(never).axes[1].get_title(loc="left") == "segments by $z^2$: 1, of 200 points"
    with pytest.raises(UsageError):
        figures.handwriting_segments(written.isel(time=slice(1)))
    with pytest.raises(UsageError, match="layer 3"):
        figures.handwriting_segments(written, layer=3)
