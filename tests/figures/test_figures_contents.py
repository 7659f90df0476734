"""What memories carry: marks stand where the scores are, and shares are those of the weightiest cells."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.contents import FLOOR, carried
from nlstm_lab.statistics import t_interval

MEMORIES = [("nlstm", "outer"), ("nlstm", "inner"), ("nlstm", "h"), ("stacked_lstm", "layer 1")]
STARTS = ("zero", "log_frequencies")
TOLD = {"since_space": ("r_squared", 0.0), "word_class": ("balanced_accuracy", 0.25)}


@pytest.fixture
def contents():
    """Scores of 0.5 and a tenth more for each seed, better once trained; nothing is told of quotations."""
    rows = [
        {"model": model, "start": start, "seed": seed, "condition": condition, "memory": memory, "label": label,
         "metric": metric, "score": 0.5 + seed / 10 + (condition == "trained") / 20, "control": 0.1, "chance": chance,
         "reason": ""}
        for model, memory in MEMORIES for start in STARTS for seed in range(3) for condition in ("trained", "untrained")
        for label, (metric, chance) in TOLD.items()
    ]  # fmt: skip
    silent = rows[0] | {"label": "in_quotation", "score": np.nan, "control": np.nan, "reason": "the text has none"}
    return pd.DataFrame([*rows, silent])


@pytest.mark.slow
def test_contents_have_a_column_a_property_and_say_what_chance_is(contents):
    figure = figures.memory_contents(contents)
    axes = np.array(figure.axes).reshape(2, 2)
    assert [axes[1, k].get_xlabel() for k in (0, 1)] == ["$R^2$", "balanced accuracy"]
    assert [axes[0, k].lines[0].get_xdata()[0] for k in (0, 1)] == [0.0, 0.25]
    shown = [tick.get_text() for tick in axes[0, 0].get_yticklabels()]
    assert shown == ["inner memory", "outer memory", "stack, lower layer", "hidden state h"]
    drawn = figures.data(figure)
    assert len(drawn) == len(contents) - 1
    assert "in_quotation" not in set(drawn["label"])
    with pytest.raises(UsageError):
        figures.memory_contents(contents[contents["label"] == "in_quotation"])


@pytest.mark.slow
def test_contents_show_seeds_mean_and_interval(contents):
    panel = figures.memory_contents(contents).axes[0]
    colour = figures.look("inner").colour
    bars = [
        line.get_xdata() for line in panel.lines if to_hex(line.get_color()) == colour and len(line.get_xdata()) == 2
    ]
    values = np.array([0.55, 0.65, 0.75])
    for ends, drawn in zip((t_interval(values)[1:], t_interval(values - 0.05)[1:]), bars, strict=True):
        assert list(drawn) == pytest.approx(ends)
    seeds = np.concatenate([part.get_offsets() for part in panel.collections])
    inner = seeds[(seeds[:, 1] > -0.5) & (seeds[:, 1] < 0.5), 0]
    assert sorted(inner) == pytest.approx(sorted([*values, *(values - 0.05)]))


@pytest.fixture
def cells():
    """Ten cells a memory: of the inner one the last costs as much as all others, of the outer all cost the same."""
    rows = [
        {"model": model, "start": start, "seed": seed, "memory": memory, "unit": unit,
         "kl": (seed + 1) * (9.0 if memory == "inner" and unit == 9 else 1.0)}
        for model, memory in MEMORIES if memory != "h" for start in STARTS for seed in range(3) for unit in range(10)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_weightiest_cells_come_first(cells):
    shares = carried(cells).set_index(["memory", "start", "seed"]).sort_index()
    one = shares.loc["inner", "zero", 1]
    assert one["cells"].tolist() == pytest.approx(np.arange(11) / 10)
    assert one["share"].tolist() == pytest.approx([0, *(np.arange(9, 19) / 18)])
    even = shares.loc["outer"]
    assert even["share"].tolist() == pytest.approx(even["cells"].tolist())
    with pytest.raises(UsageError):
        carried(cells.assign(kl=0.0))


@pytest.mark.slow
def test_every_single_cell_is_drawn_and_what_costs_nothing_stands_at_the_edge(cells):
    cells.loc[cells["unit"] == 0, "kl"] = 0.0
    figure = figures.single_cells(cells)
    left, right = figure.axes[:2]
    dots = np.concatenate([part.get_offsets() for part in left.collections])
    assert len(dots) == 3 * 3 * 10
    assert left.get_yticklabels()[0].get_text() == "inner memory\n10 % at the edge"
    assert dots[:, 0].min() == pytest.approx(FLOOR)
    assert (dots[:, 0] == dots[:, 0].min()).sum() == 3 * 3
    assert len(right.lines) == 3 * (3 + 1) + 1
    pd.testing.assert_frame_equal(figures.data(figure), cells[figures.data(figure).columns])
