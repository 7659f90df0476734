"""Autocomplete drawn: every network on one scale, and a text that is nothing but text."""

import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import completions


def found(word: str = "grammar") -> pd.DataFrame:
    rows = [("nlstm", 1, word, 0.2), ("nlstm", 2, "great", 0.1), ("gru", 1, word, 0.6)]
    return pd.DataFrame(rows, columns=["model", "place", "word", "probability"])


def test_columns_come_in_the_order_of_every_figure_and_bars_are_probabilities():
    figure = completions(found(), " the study of gram")
    (ax,) = figure.axes
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if text in ("GRU", "Nested LSTM")] == ["GRU", "Nested LSTM"]
    assert "the study of gram▏" in texts
    assert sorted(round(bar.get_width(), 6) for bar in ax.patches) == [0.1, 0.2, 0.6]
    pd.testing.assert_frame_equal(figures.data(figure), found())


def test_a_text_full_of_formulas_and_lines_is_shown_as_it_is(tmp_path):
    figure = completions(found("$x_"), r"$\frac{$ a $$ " + "b\n" * 60)
    figure.savefig(tmp_path / "figure.png")
    assert figure.axes[0].texts[0].get_text().startswith("…")


def test_nothing_to_draw_is_said():
    with pytest.raises(UsageError):
        completions(found().iloc[:0], "")
