"""Autocomplete: curves against mini-batches and time, accuracy by characters known: what was measured is drawn."""

import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.words import accuracy_by_known, training_curves


@pytest.fixture
def curves():
    """Two models, three seeds; the GRU is twice as slow."""
    rows = [
        (model, seed, split, update, update * (2 if model == "gru" else 1) / 60, 6 - update / 100 + seed / 100)
        for model in ("gru", "nlstm")
        for seed in range(3)
        for split, updates in (("train", range(10, 401, 10)), ("valid", (100, 200, 300, 400)))
        for update in updates
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "split", "update", "minutes", "value"])


@pytest.fixture
def accuracy():
    rows = [
        (model, seed, top, known, 10.0 * top + known, 5.0 * top + known)
        for model in ("gru", "nlstm")
        for seed in range(3)
        for top in (1, 2, 3)
        for known in range(9)
    ]
    columns = ["model", "seed", "top", "known", "accuracy_pct", "accuracy_unmasked_pct"]
    return pd.DataFrame(rows, columns=columns)


def published(frame, **columns):
    return frame[frame["seed"] == 0].drop(columns="seed").assign(**columns)


def test_curves_are_drawn_against_mini_batches_and_time(curves):
    figure = training_curves(curves)
    batches, time = figure.axes
    assert len(batches.lines) == len(time.lines) == 2 * 2 * (3 + 1)  # models, splits, seeds and their mean
    slow = time.lines[3]  # the GRU's mean training loss
    assert slow.get_xdata()[-1] == pytest.approx(400 * 2 / 60)
    assert slow.get_ydata()[-1] == pytest.approx(6 - 4 + 0.01)
    assert set(figures.data(figure)["source"]) == {"ours"}


def test_the_published_curves_have_panels_of_their_own(curves):
    theirs = published(curves).rename(columns={"minutes": "seconds"})
    figure = training_curves(curves, theirs, ours="ours, small scale")
    assert len(figure.axes) == 4
    assert [panel.get_title(loc="left") for panel in figure.axes[::2]] == ["ours, small scale", "as published"]
    frame = figures.data(figure)
    assert frame.loc[frame["source"] == "published", "minutes"].max() == pytest.approx(800 / 60 / 60)
    with pytest.raises(UsageError):
        training_curves(curves[:0])


@pytest.mark.slow
def test_accuracy_counts_all_words_by_default(accuracy):
    theirs = published(accuracy, accuracy_pct=50.0)
    figure = accuracy_by_known(accuracy, theirs, ours="ours, small scale")
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["ours, small scale", "as published"]
    ours, beside = figure.axes
    assert len(ours.lines) == 2 * 3 * (3 + 1)
    assert len(beside.lines) == 2 * 3
    frame = figures.data(figure)
    assert frame["known"].max() == 6
    assert frame.query("source == 'ours' and top == 3 and known == 6")["value"].tolist() == [21.0] * 6
    assert set(frame.loc[frame["source"] == "published", "value"]) == {50.0}
    assert ours.get_ylim()[0] == 0
    assert ours.get_ylim()[1] > 50  # the panels share their axis
    with pytest.raises(UsageError):
        accuracy_by_known(accuracy[:0])
