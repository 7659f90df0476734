"""One table of colours for every figure, distinguishable by every reader, and a style that an author can override."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.font_manager import findfont, get_font

from nlstm_lab import figures, probes
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import style
from nlstm_lab.figures.saving import attach

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour, deficiency):
    """CIE L*a*b* (D65) of a colour as a reader with the deficiency sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ seen / [0.95047, 1, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize(
    "together",
    [
        ("rnn", "gru", "lstm", "stacked_lstm", "nlstm"),
        ("lstm", "lnlstm", "cwrnn", "hmlstm"),
        ("layer 1", "layer 2", "layer 3"),
        ("layer 1", "layer 2", "outer", "inner"),
        ("outer", "middle", "inner"),
    ],
)
def test_neighbouring_colours_are_distinguishable(together, deficiency):
    for a, b in combinations(together, 2):
        distance = np.linalg.norm(lab(figures.look(a).colour, deficiency) - lab(figures.look(b).colour, deficiency))
        assert distance > 15, (a, b)


def test_the_diverging_map_is_white_at_zero_and_darkens_to_both_sides():
    assert figures.DIVERGING(0.5)[:3] == pytest.approx((1, 1, 1), abs=0.01)
    red, blue = figures.DIVERGING(0.2), figures.DIVERGING(0.8)
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    lightness = [lab(figures.DIVERGING(place), "none")[0] for place in np.linspace(0, 1, 65)]
    assert (np.diff(lightness[:33]) > 0).all()
    assert (np.diff(lightness[32:]) < 0).all()


def test_operations_are_distinguishable_in_grey():
    lightness = [lab(look.colour, "none")[0] for look in style.OPERATIONS.values()]
    assert min(abs(a - b) for a, b in combinations(lightness, 2)) > 15


def test_every_unit_has_a_look_and_so_has_one_of_ones_own(own_units):
    assert set() < own_units <= set(style.MODELS)
    assert figures.look("my_unit").label == "my_unit"
    assert style.in_order(["my_unit", "nlstm", "lstm"]) == ["lstm", "nlstm", "my_unit"]


def test_an_author_overrides_the_style_in_one_line():
    figures.override({"font.size": 17})
    try:
        with style.context():
            assert mpl.rcParams["font.size"] == 17
            assert mpl.rcParams["svg.hashsalt"] == "nlstm_lab"
    finally:
        figures.override()
    with style.context():
        assert mpl.rcParams["font.size"] == 7


@pytest.mark.slow
def test_what_the_reader_set_elsewhere_does_not_show(trace):
    expected = figures.cell_activations(trace())
    with mpl.rc_context({"font.family": "serif", "font.size": 20, "lines.linewidth": 9}):
        changed = figures.cell_activations(trace())
    assert figures.saving.fingerprint(changed) == figures.saving.fingerprint(expected)


@pytest.mark.parametrize(
    "sheet", [{"font.sise": 9}, {"font.size": "large-ish"}, {"font.family": "No Such Font"}, "no_such_sheet.mplstyle"]
)
def test_a_style_that_matplotlib_does_not_know_is_refused_at_once(sheet):
    with style.context():
        before = dict(mpl.rcParams)
    with pytest.raises(UsageError):
        figures.override(sheet)
    with style.context():
        assert dict(mpl.rcParams) == before


@style.styled
def drawn(width=style.COLUMN):
    return width


@pytest.mark.parametrize(("width", "inches"), [("85 mm", 85 / 25.4), ("8.5cm", 8.5 / 2.54), ("3.25 in", 3.25), (4, 4)])
def test_a_width_may_be_metric(width, inches):
    assert drawn(width) == drawn(width=width) == pytest.approx(inches)
    for refused in ("wide", -3, 0, None, float("nan")):
        with pytest.raises(UsageError, match=repr(refused)):
            drawn(width=refused)


@pytest.mark.parametrize(("width", "inches"), [(3.25, 6.75), ("85 mm", 2 * 85 / 25.4 + 0.25), (5.5, 5.5), (6.75, 6.75)])
def test_a_figure_of_two_columns_spans_both_or_the_page(width, inches):
    assert figures.page(width) == pytest.approx(inches)


def test_letters_that_dejavu_lacks_come_from_an_installed_font():
    held = [set(get_font(findfont(name)).get_charmap()) for name in ("STIXGeneral", "DejaVu Sans")]
    strange = chr(min(held[0] - held[1]))
    figure, axes = figures.subplots()
    title = axes[0, 0].set_title(f"a {strange}")  # where the style has it
    attach(figure, pd.DataFrame({"x": [1]}))
    families = title.get_fontfamily()
    assert families[0] == "sans-serif"
    assert ord(strange) in get_font(findfont(families[1])).get_charmap()
    assert axes[0, 0].xaxis.label.get_fontfamily() == ["sans-serif"]


def cells(shown):
    return [line.split(" ") for line in shown.to_string(delimiter=" ").splitlines()]


def test_numbers_are_rounded_and_what_is_missing_is_blank():
    frame = pd.DataFrame({"seeds": [5, 3], "dead": [0.934, None], "bpc": [1.4567, 1.5]}, index=["inner", "outer"])
    assert cells(figures.table(frame.rename_axis("memory"), ".2f", dead=".0%")) == [
        ["memory", "seeds", "dead", "bpc"],
        ["inner", "5", "93%", "1.46"],
        ["outer", "3", "", "1.50"],
    ]
    assert cells(figures.table(frame[frame["bpc"] > 1.5]))[0] == list(frame), "an index without a name is none"


def test_a_difference_has_its_interval_and_says_whether_that_is_above_0():
    values = pd.DataFrame({"unit": list("aaabbb"), "seed": [0, 1, 2] * 2, "bpc": [2.0, 2.1, 2.2, 1.0, 1.1, 1.2]})
    compared = probes.comparisons(values, "bpc", {"worse": ({"unit": "a"}, {"unit": "b"})})
    low, high = (f"{end:+.1f}" for end in compared[["low", "high"]].iloc[0])
    assert cells(figures.differences(compared, "+.1f"))[1] == ["worse", "above", "0", "+1.0", low, high, "3"]


def test_text_never_becomes_html():
    shown = figures.table({"a <b>": ["<img src=x onerror=alert(1)>"]}).to_html()
    assert "<img" not in shown
    assert "<b>" not in shown
    assert "&lt;img" in shown
