"""Figures 3 and 4: which memory stands where, through which function, in which colours."""

from itertools import pairwise

import numpy as np
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError


def drawn(figure, memory):
    """The plotted values [time, unit] of a memory."""
    frame = figures.data(figure)
    part = frame[frame["memory"] == memory]
    return part.pivot(index="time", columns="unit", values="value").to_numpy()


def test_as_printed_the_inner_memory_goes_through_tanh_and_the_outer_does_not(trace):
    data = trace()
    figure = figures.cell_activations(data)
    c = data["c"]
    np.testing.assert_array_equal(drawn(figure, "inner"), np.tanh(c.sel(memory="inner"))[:, :7])
    np.testing.assert_array_equal(drawn(figure, "outer"), c.sel(memory="outer")[:, :7])
    assert list(dict.fromkeys(figures.data(figure)["memory"])) == ["inner", "outer"]  # left, right


@pytest.mark.parametrize(
    ("memories", "squashed"),
    [
        (["layer 1", "layer 2"], {"layer 1", "layer 2"}),
        (["cell"], {"cell"}),
        (["outer", "middle", "inner"], {"inner"}),
        (["outer", "inner 1", "inner 2", "inner 3"], {"inner 3"}),
        (["layer 1 outer", "layer 1 inner", "layer 2 outer", "layer 2 inner"], {"layer 1 inner", "layer 2 inner"}),
    ],
)
def test_as_printed_only_what_no_output_gate_bounds_is_squashed(trace, memories, squashed):
    frame = figures.data(figures.cell_activations(trace(memories, leaking=squashed)))
    assert set(frame.loc[frame["quantity"].str.contains("tanh"), "memory"]) == squashed
    assert list(dict.fromkeys(frame["memory"])) == memories[::-1]


def test_the_switch_treats_all_memories_alike(trace):
    data = trace()
    for values, function in (("tanh", np.tanh), ("raw", np.asarray)):
        figure = figures.cell_activations(data, values=values)
        for memory in ("inner", "outer"):
            np.testing.assert_array_equal(drawn(figure, memory), function(data["c"].sel(memory=memory))[:, :7])


def test_every_character_stands_under_its_cells(trace):
    data = trace()
    figure = figures.cell_activations(data, units=[3])
    (ax,) = figure.axes
    letters = [text for text in ax.texts if text.get_family() == ["monospace"]]
    edges = [mesh.get_coordinates()[0, :, 0] for mesh in ax.collections if len(mesh.get_coordinates()) == 2]
    edges = [edge for edge in edges if edge[1] - edge[0] > 0.05]  # without the colour bar
    text = "".join(data["symbol"].values)
    assert "".join(letter.get_text() or " " for letter in letters) == 2 * text.replace("\n", "¶")
    middles = np.concatenate([(edge[:-1] + edge[1:]) / 2 for edge in edges])
    np.testing.assert_allclose([letter.get_position()[0] for letter in letters], middles)


@pytest.mark.slow
def test_red_is_negative_white_zero_blue_positive(trace):
    data = trace()
    data["c"][:] = 0.0
    data["c"][0] = -2.0
    data["c"][1] = 2.0
    for values in ("printed", "tanh", "raw"):
        mesh = figures.cell_activations(data, values=values).axes[0].collections[0]
        red, blue, white = mesh.to_rgba(mesh.get_array())[0, :3, :3]
        assert red[0] > red[2]
        assert blue[2] > blue[0]
        assert white == pytest.approx((1, 1, 1), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("width", [3.25, 5.5, 6.75])
@pytest.mark.parametrize("length", [2, 43, 500])
@pytest.mark.parametrize("memories", [["layer 1", "layer 2"], ["outer", "middle", "inner"]])
def test_from_2_to_500_characters_the_width_is_used_and_nothing_overprints(trace, width, length, memories):
    figure = figures.cell_activations(
        trace(memories, text=("shares fell sharply on friday " * 20)[:length]), width=width
    )
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert 0.95 * width < box.x1 <= width + 1e-9
    assert box.y1 <= figure.get_figheight() + 1e-9
    (ax,) = figure.axes
    titles = [text.get_window_extent() for text in ax.texts if "_t" in text.get_text()]
    assert all(one.x1 < other.x0 for one, other in pairwise(titles))
    assert len(titles) == len(memories)
    assert min(text.get_fontsize() for text in ax.texts) >= 6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"units": [2, 40]}, "units.*40.*12"),
        ({"units": 13}, "units"),
        ({"units": []}, "units"),
        ({"values": "sigmoid"}, "values.*'sigmoid'"),
        ({"width": 0.4}, "0.4"),
    ],
)
def test_a_wrong_argument_is_named(trace, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        figures.cell_activations(trace(), **arguments)


def test_the_steps_of_a_part_of_a_trace_keep_their_numbers(trace):
    part = trace(["inner"]).drop_vars("symbol").assign_coords(time=range(100, 143)).isel(time=slice(5, 40))
    figure = figures.cell_activations(part, units=[3, 3])
    assert figures.data(figure)["time"].tolist() == [*range(105, 140)]
    assert {"110", "120", "130"} <= {text.get_text() for text in figure.axes[0].texts}


def test_a_unit_without_memory_cells_is_refused_in_a_sentence(trace):
    hidden = trace(["h"]).rename(c="h", memory="layer").assign_attrs(model="gru")  # as a GRU's trace is
    with pytest.raises(UsageError, match=r"gru.*CellExplorer"):
        figures.cell_activations(hidden)
