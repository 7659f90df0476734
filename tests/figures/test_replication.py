"""Printed beside measured, verdicts counted, costs: what is plotted is what was given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import style
from nlstm_lab.figures.printed import STRIP

PRINTED = {"some_lstm1": 1.5, "some_lstm1_large": 1.45, "some_lstm2": 1.4, "some_nlstm": 1.3}


@pytest.fixture
def comparison():
    rows = [
        {"kind": "number", "setting": "as printed", "experiment": name, "metric": "bpc", "split": split,
         "printed": value + (split == "test") / 100, "as_printed": f"{value + (split == 'test') / 100:.2f}"}
        for name, value in PRINTED.items() for split in ("valid", "test")
    ]  # fmt: skip
    started = [
        {**row, "setting": "log-frequencies", "experiment": row["experiment"] + "_logfreq", "printed": 9.0}
        for row in rows
    ]
    return pd.DataFrame([*rows, *started, {**rows[0], "kind": "ordering", "setting": "", "printed": 9.0}])


@pytest.fixture
def runs():
    """Two rows of the table, three seeds, ten epochs: the Nested LSTM is at 3 / epoch + 1, the LSTM 0.5 above."""
    rows = [
        {"experiment": name, "start": "zero", "seed": seed, "epoch": epoch, "split": split, "evaluation": "blocks",
         "metric": "bpc", "value": 1 + 3 / epoch + seed / 100 + worse}
        for name, worse in (("some_nlstm", 0.0), ("some_lstm1_large", 0.5)) for seed in range(3)
        for epoch in range(1, 11) for split in ("train", "valid", "test")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def diamonds(ax):
    return [float(line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "D"]


def curves(ax):
    return [line for line in ax.lines if line.get_linestyle() != "None"]


def dots(ax):
    return [(float(x), float(y)) for line in ax.lines if line.get_marker() in ("s", "^") for x, y in line.get_xydata()]


@pytest.mark.slow
def test_printed_values_stand_beside_the_curves(comparison, runs):
    figure = figures.printed_and_measured(comparison, runs, ["bpc"])
    valid, test = figure.axes
    assert sorted(diamonds(valid)) == sorted(PRINTED.values())
    assert sorted(diamonds(test)) == pytest.approx(sorted(value + 0.01 for value in PRINTED.values()))
    assert all(1 - STRIP < line.get_xdata()[0] < 1 for line in valid.lines if line.get_marker() == "D")
    handles = figure.legends[0].legend_handles
    assert all(handle.get_marker() != "None" for handle in handles), "every entry has a handle"
    assert len(curves(valid)) == 2 * (3 + 1)
    means = figures.printed_and_measured(comparison, runs, ["bpc"], each_seed=False).axes[0]
    assert (len(curves(means)), len(dots(means))) == (2, 2)
    strong = [line for line in curves(valid) if line.get_alpha() is None]
    assert {round(float(line.get_ydata()[0]), 6) for line in strong} == {4.01, 4.51}
    assert valid.get_ylim()[0] < 1.3 < 1.5 < valid.get_ylim()[1] < 4
    assert {epoch for epoch, _ in dots(valid)} == {10}
    assert sorted(value for _, value in dots(valid)) == pytest.approx([1.3, 1.31, 1.32, 1.8, 1.81, 1.82])
    carried = figures.data(figure)
    assert len(carried) == 2 * len(PRINTED) + 2 * 2 * 3 * 10
    assert set(carried["split"]) == {"valid", "test"}


def test_a_logarithmic_axis_holds_what_falls_a_hundredfold(comparison, runs):
    """A margin in the values' own units would reach below zero, where such an axis ends."""
    perplexities = [frame.assign(metric="perplexity") for frame in (comparison, runs)]
    perplexities[1]["value"] = 300.0 ** (2 - runs["epoch"] / 10)
    valid, _ = figures.printed_and_measured(*perplexities, ["perplexity"]).axes
    low, high = valid.get_ylim()
    assert valid.get_yscale() == "log"
    assert 1.3 / 2 < low < 1.3
    assert 300 ** (2 - 0.3) < high < 2 * 300 ** (2 - 0.3)  # from the third epoch on, after the first steep change


def test_what_was_not_run_shows_what_is_printed(comparison):
    """No row of panels for the substitute, no curve in the legend, and the printed numbers within the panels."""
    figure = figures.printed_and_measured(comparison, None, ["bpc"], splits=("train", "valid"), substitute="another")
    train, valid = figure.axes
    assert [text.get_text() for text in train.texts] == ["neither printed nor run"]
    assert sorted(text.get_text() for text in valid.texts) == ["1.30", "1.40", "1.45", "1.50"]
    assert (len(diamonds(train)), len(diamonds(valid))) == (0, 4)
    assert all(line.get_xdata()[0] < 1 for line in valid.lines if line.get_marker() == "D")
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert all("nothing is run" in panel.get_title(loc="left") for panel in figure.axes)
    assert not any("not run" in entry for entry in entries)
    with pytest.raises(UsageError, match=r"perplexity.*bpc"):
        figures.printed_and_measured(comparison, None, ["perplexity"])


def test_a_substitute_has_panels_of_its_own(comparison, runs):
    """No printed number is ever set beside one that was measured on another text."""
    figure = figures.printed_and_measured(comparison, runs, ["bpc"], substitute="another text")
    assert len(figure.axes) == 4
    for ax in figure.axes:
        assert not (diamonds(ax) and curves(ax))
    assert [ax.get_title(loc="left") for ax in figure.axes[2:]] == ["validation, another text", "test, another text"]


@pytest.mark.slow
def test_each_start_of_the_output_bias_has_its_row(comparison, runs):
    both = pd.concat([runs, runs.assign(start="log_frequencies", experiment=runs["experiment"] + "_logfreq")])
    above, _, below, _ = figures.printed_and_measured(comparison, both, ["bpc"]).axes
    assert (len(diamonds(above)), len(diamonds(below))) == (4, 0), "nobody printed what the other start does"
    assert above.get_ylim() == below.get_ylim(), "which start is better is to be seen"


@pytest.mark.slow
def test_rows_of_a_reading_are_drawn_alone(comparison, runs):
    """A table whose rows are variations has their curves, and not those of the experiments that they vary."""
    reading = "+batch_order=fixed"
    told = comparison.assign(experiment=comparison["experiment"] + reading)
    both = pd.concat([runs, runs.assign(value=runs["value"] + 1, experiment=runs["experiment"] + reading)])
    frame = figures.data(figures.printed_and_measured(told, both, ["bpc"]))
    assert frame.loc[frame["epoch"].eq(10) & frame["row"].eq("_nlstm"), "value"].min() == pytest.approx(2.3)


@pytest.mark.slow
def test_training_falls_lower_and_has_an_axis_of_its_own(comparison, runs):
    low = runs["value"].where(runs["split"] != "train", runs["value"] / 100)
    figure = figures.printed_and_measured(comparison, runs.assign(value=low), ["bpc"], ("train", "valid", "test"))
    train, valid, test = figure.axes
    assert train.get_ylim()[1] < 0.1
    assert valid.get_ylim() == test.get_ylim()
    assert valid.get_ylim()[0] > 1


def test_a_best_epoch_is_in_sight_also_where_it_comes_early(comparison, runs):
    early = runs["value"].where(runs["epoch"] > 1, 0.5)
    valid, _ = figures.printed_and_measured(comparison, runs.assign(value=early), ["bpc"]).axes
    assert valid.get_ylim()[0] < 0.5


def test_a_row_of_one_seed_is_thinner_than_a_mean(comparison, runs):
    few = runs[(runs["seed"] == 0) | (runs["experiment"] == "some_nlstm")]
    valid, _ = figures.printed_and_measured(comparison, few, ["bpc"]).axes
    width = {line.get_color(): line.get_linewidth() for line in curves(valid) if line.get_alpha() is None}
    assert width[figures.look("nlstm").colour] > width[figures.look("layer 1").colour]


def test_the_best_epoch_is_of_the_best_validation_value_in_the_metrics_own_sense(comparison, runs):
    """An accuracy is best where it is highest; the test set's dot stands at the validation's epoch."""
    told = comparison.assign(metric="top1_accuracy_pct")
    falling = runs["value"].where(runs["split"] == "valid", -runs["value"])  # validation is best at the first epoch
    ours = runs.assign(metric="top1_accuracy_pct", value=falling)
    figure = figures.printed_and_measured(told, ours, ["top1_accuracy_pct"])
    assert [{x for x, _ in dots(ax)} for ax in figure.axes] == [{1.0}, {1.0}]


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
