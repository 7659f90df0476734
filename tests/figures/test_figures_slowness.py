"""Timescales and cuts: the curves are the distributions, medians and means of what was given."""

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.interventions import binned
from nlstm_lab.figures.timescales import QUANTITIES, cumulated
from nlstm_lab.statistics import t_interval

RUNS = [(model, start, seed) for model in ("nlstm", "stacked_lstm") for start in ("zero", "log_frequencies") for seed in
        range(3)]  # fmt: skip
MEMORIES = {"nlstm": ("outer", "inner"), "stacked_lstm": ("layer 1", "layer 2")}


@pytest.fixture
def cells():
    """Forty cells a memory with timescales 1 to 40, times the seed plus one; a quarter of them dead."""
    rows = [
        {"model": model, "start": start, "seed": seed, "memory": memory, "unit": unit, "quantity": quantity,
         "life": "latched" if unit % 4 == 0 else "alive",
         "value": np.nan if unit % 4 == 0 else unit / 40 if quantity == "persistence" else unit * (seed + 1.0)}
        for model, start, seed in RUNS for memory in MEMORIES[model] for unit in range(40)
        for quantity in ("raw", "tanh", "gate", "persistence") if (memory, quantity) != ("outer", "gate")
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_a_distribution_ends_at_the_share_of_live_cells(cells):
    frame = cumulated(cells)
    ends = frame.groupby(["quantity", "memory", "seed"])["share"].max()
    assert ends["raw"]["inner"].max() == 0.75
    assert "outer" not in ends["gate"].index.get_level_values("memory")
    one = frame[(frame["quantity"] == "raw") & (frame["memory"] == "inner") & (frame["start"] == "zero")]
    one = one[one["seed"] == 0]
    live = [unit for unit in range(40) if unit % 4]
    for x, share in zip(one["x"], one["share"], strict=True):
        assert share == pytest.approx(sum(unit <= x for unit in live) / 40)


@pytest.mark.slow
def test_distributions_have_a_panel_a_quantity_and_start(cells):
    figure = figures.timescale_distributions(cells)
    axes = np.array(figure.axes).reshape(2, 4)
    titles, _ = zip(*QUANTITIES.values(), strict=True)
    assert [ax.get_title(loc="left") for ax in axes[0]] == list(titles)
    assert [len(ax.lines) for ax in axes[1]] == [16, 16, 12, 16]
    assert all(ax.get_ylabel().endswith("share of all cells") for ax in axes[:, 0])
    assert [ax.get_xlabel() for ax in axes[1]] == [
        "characters",
        "characters",
        "characters",
        "∂c(t) / ∂c(t−1)",
    ]
    assert [ax.texts[0].get_text() for ax in axes[0]] == ["", "", "not defined for\nthe outer memory", ""]
    assert [ax.get_xscale() for ax in axes[0]] == ["log", "log", "log", "linear"]
    assert figures.data(figure).equals(cumulated(cells))
    with pytest.raises(UsageError):
        figures.timescale_distributions(cells.assign(life="silent"))


@pytest.fixture
def medians():
    conditions = ("trained", "untrained", "characters shuffled", "words shuffled")
    rows = [
        {"model": model, "start": start, "seed": seed, "condition": condition, "value": value, "memory": memory,
         "median": np.nan if (memory, seed) == ("inner", 0) else (seed + 1) * 10.0 ** (value == "raw"),
         "measured": 10, "dead": seed / 10}
        for model, start, seed in RUNS for memory in MEMORIES[model] for condition in conditions
        for value in ("raw", "tanh", "raw increments")
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_medians_stand_beside_their_baselines_with_intervals_and_the_dead(medians):
    figure = figures.timescale_baselines(medians)
    raw = figure.axes[0]
    assert [tick.get_text() for tick in raw.get_yticklabels()] == [
        "inner memory", "outer memory", "stack, upper layer", "stack, lower layer"
    ]  # fmt: skip
    assert [text.get_text() for text in raw.texts] == ["10 % dead"] * 4  # once a memory, of the trained network
    assert "geometric mean, 95 % t interval" in [text.get_text() for text in figure.legends[0].get_texts()]
    colour = figures.look("layer 2").colour
    seeds, interval, mean = [line for line in raw.lines if line.get_color() == colour][:3]
    assert list(seeds.get_xdata()) == [10, 20, 30]
    assert [*mean.get_xdata(), *interval.get_xdata()] == pytest.approx(np.exp(t_interval(np.log([10, 20, 30]))))
    inner = next(line for line in raw.lines if line.get_color() == figures.look("inner").colour)
    assert list(inner.get_xdata()) == [20, 30]  # the seed with too few live cells is left out
    assert set(figures.data(figure)["value"]) == {"raw", "tanh"}
    with pytest.raises(UsageError):
        figures.timescale_baselines(medians.assign(median=np.nan))


@pytest.fixture
def cuts():
    """A divergence of 1 / prediction, times ten for the inner memory; a loss that falls after a swap."""
    rows = [
        {"model": model, "start": start, "seed": seed, "memory": memory, "kind": kind, "distance": distance,
         "kl": (10 if memory == "inner" else 1) / (distance + 1) * (1 + seed),
         "loss_increase": (0.1 if kind == "zero" else -0.1) / (distance + 1)}
        for model, start, seed in RUNS for memory in (*MEMORIES[model], "h") for kind in ("zero", "swap")
        for distance in range(100)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_distances_are_binned_by_a_constant_ratio_without_loss(cuts):
    frame = binned(cuts)
    one = frame[(frame["memory"] == "inner") & (frame["kind"] == "zero") & (frame["seed"] == 0)]
    one = one[one["start"] == "zero"]
    assert list(one["prediction"][:3]) == pytest.approx([1, 2, 3])
    assert list(one["kl"][:3]) == pytest.approx([10, 5, 10 / 3])
    assert one["prediction"].is_monotonic_increasing
    assert one["prediction"].max() < 101
    flat = binned(cuts.assign(kl=2.0, loss_increase=-1.0))
    assert flat[["kl", "loss_increase"]].drop_duplicates().to_numpy() == pytest.approx(np.array([[2.0, -1.0]]))


@pytest.mark.slow
def test_cuts_have_a_column_a_network_and_a_row_an_effect_and_kind(cuts):
    figure = figures.cut_effects(cuts)
    axes = np.array(figure.axes).reshape(4, 4)
    assert axes[0, 0].get_title(loc="left").startswith("Nested LSTM\noutput bias at 0")
    assert axes[0, 3].get_title(loc="left").startswith("stacked LSTM\noutput bias at log")
    inner = [line for line in axes[0, 0].lines if line.get_color() == figures.look("inner").colour]
    (mean,) = [line for line in inner if line.get_alpha() is None]
    assert mean.get_ydata()[0] == pytest.approx(20)  # the mean over seeds of 10, 20, 30
    assert len(inner) == 1 + 3
    assert (axes[3, 0].lines[0].get_ydata() < 0).all()
    assert axes[1, 0].get_ylabel() == "swapped with\nanother text's\nKL(intact ‖ cut), nats"
    assert figure.legends[0].get_texts()[-1].get_text() == "axis linear within ±0.01"
    with pytest.raises(UsageError):
        figures.cut_effects(cuts.assign(kind="freeze"))


def test_the_horizon_is_in_bits():
    rows = [
        {"model": model, "start": start, "seed": seed, "context": context, "loss": np.log(2) * (1 + 1 / context)}
        for model, start, seed in RUNS for context in (1, 10, 100)
    ]  # fmt: skip
    figure = figures.memory_horizon(pd.DataFrame(rows))
    (ax,) = figure.axes
    assert len(ax.lines) == 4 * (3 + 1)
    assert ax.lines[0].get_ydata() == pytest.approx([2, 1.1, 1.01])
    strong = [line for line in ax.lines if line.get_alpha() is None]
    assert [line.get_marker() for line in strong] == [figures.look(name).marker for name in ("nlstm", "stacked_lstm")
            for _ in range(2)]  # fmt: skip
    assert len(figures.data(figure)) == len(rows)
