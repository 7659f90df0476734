"""What a notebook shows besides figures says what the frame holds."""

import pandas as pd
from pandas.io.formats.style import Styler

from nlstm_lab import figures, probes


def cells(shown: Styler) -> list[list[str]]:
    return [line.split(" ") for line in shown.to_string(delimiter=" ").splitlines()]


def test_numbers_are_rounded_and_what_is_missing_is_blank():
    frame = pd.DataFrame({"seeds": [5, 3], "dead": [0.934, None], "bpc": [1.4567, 1.5]}, index=["inner", "outer"])
    assert cells(figures.table(frame.rename_axis("memory"), ".2f", dead=".0%")) == [
        ["memory", "seeds", "dead", "bpc"],
        ["inner", "5", "93%", "1.46"],
        ["outer", "3", "", "1.50"],
    ]
    assert cells(figures.table(frame[frame["bpc"] > 1.5]))[0] == list(frame), "an index without a name is none"


def test_a_difference_has_its_interval_and_its_verdict():
    values = pd.DataFrame({"unit": list("aaabbb"), "seed": [0, 1, 2] * 2, "bpc": [2.0, 2.1, 2.2, 1.0, 1.1, 1.2]})
    compared = probes.comparisons(values, "bpc", {"worse": ({"unit": "a"}, {"unit": "b"})})
    low, high = (f"{end:+.1f}" for end in compared[["low", "high"]].iloc[0])
    assert cells(figures.differences(compared, "+.1f"))[1] == ["worse", "holds", "+1.0", low, high, "3"]


def test_text_never_becomes_html():
    shown = figures.table({"a <b>": ["<img src=x onerror=alert(1)>"]}).to_html()
    assert "<img" not in shown
    assert "<b>" not in shown
    assert "&lt;img" in shown
