"""Ablations: the curves are the means of what was given."""

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.interventions import binned

RUNS = [(model, start, seed) for model in ("nlstm", "stacked_lstm") for start in ("zero", "log_frequencies") for seed in
        range(3)]  # fmt: skip
MEMORIES = {"nlstm": ("outer", "inner"), "stacked_lstm": ("layer 1", "layer 2")}


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
