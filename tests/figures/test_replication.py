"""Verdicts counted, costs: what is plotted is what was given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import style


def test_verdicts_are_counted_by_table():
    """A printed number counts as one wherever it stands; the margin that is printed with an ordering is none."""
    rows = [
        {"document": "nested_lstm", "where": where, "kind": kind, "as_printed": printed, "anchor": anchor, "own": own,
         "verdict": verdict, "split": "valid" if where.startswith("Table") else ""}
        for where, kind, printed, anchor, own, verdict, times in (
            ("Table 1", "number", "1.4", True, False, "match", 2),
            ("Table 1", "number", "1.4", True, False, "not run", 3),
            ("Table 1", "number", "1.4", False, False, "differs", 5),
            ("Table 2", "reference", "1.4", True, False, "not run", 7),
            ("Table 1", "ordering", ".03", True, False, "fails", 1),
            ("Section 4", "claim", "", True, False, "holds", 4),
            ("Section 4, figure 4", "claim", "270", True, False, "not run", 2),
            ("Section 5", "claim", "", True, True, "inconclusive", 1),
        ) for _ in range(times)
    ]  # fmt: skip
    figure = figures.verdict_overview(pd.DataFrame(rows))
    numbers, said = figure.axes
    labels = [[label.get_text() for label in ax.get_yticklabels()] for ax in (numbers, said)]
    assert labels[0] == ["Nested LSTMs, Table 1, validation", "Nested LSTMs, figure 4"]
    assert labels[1] == ["Nested LSTMs, Table 1, validation", "Nested LSTMs, claims", "our own questions"]
    assert [bar.get_width() for bar in numbers.patches] == [2, 0, 0, 0, 0, 0, 0, 0, 3, 2]
    told = {text.get_text() for text in numbers.texts}
    assert told == {"", "2", "3"}, "a count within every bar"
    hatched = {bar.get_facecolor() for ax in figure.axes for bar in ax.patches if bar.get_hatch()}
    assert hatched == {to_rgba(style.VERDICTS["fails"].colour)}
    assert figures.data(figure)["count"].sum() == 2 + 3 + 2 + 1 + 4 + 1
    assert numbers.get_xlim() == said.get_xlim()
    with pytest.raises(UsageError):
        figures.verdict_overview(pd.DataFrame(rows).assign(anchor=False))


def test_costs_are_bars_with_their_ratios():
    training = pd.DataFrame(
        {
            "variant": ["naive loop", "fast", "nn.LSTM"],
            "unit": ["NestedLSTM", "NestedLSTM", "2-layer LSTM"],
            "products": ["fp32", "bf16", "fp32"],
            "ms": [900.0, 300.0, 450.0],
            "vs_naive": [1.0, 3.1, 1.9],  # medians of ratios, which the bars are not
        }
    )
    reading = pd.DataFrame(
        {"layer1": [0.5, 0.21], "layer2": [0.2, 0.033], "dense_ms_per_step": [4.0, 4.0],
         "sparse_ms_per_step": [2.0, 1.0]}
    )  # fmt: skip
    figure = figures.cost(training, reading)
    steps, reads = figure.axes
    assert [bar.get_width() for bar in steps.patches] == [900, 300, 450]
    assert [text.get_text().strip() for text in steps.texts] == [
        "Nested LSTM, times as fast as its naive loop in fp32", "1.0×", "3.0×",
        "stacked LSTM, times as fast as nn.LSTM in fp32", "1.0×",
    ]  # fmt: skip
    assert [bar.get_height() for bar in reads.patches] == [4, 4, 2, 1]
    assert [text.get_text() for text in reads.texts] == ["2.0×", "4.0×"]
    assert np.isclose(figures.data(figure)["ms"].sum(), 1650)
    with pytest.raises(UsageError, match="benchmarks/steps"):
        figures.cost(training.assign(ms=np.nan), reading)
