"""Reach: mean lag and shares of connectivities that are known, and intervals that hold what they promise."""

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from nlstm_lab.cells import GRU, HMLSTM, LSTM, RNN, NestedLSTM
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.models import Interface, ModelConfig, build
from nlstm_lab.probes import connectivity, lags
from nlstm_lab.probes.lags import SMALLEST, connectivity_lags, gradient_by_distance, measure, shares
from nlstm_lab.probes.reading import words_of


def given(values, text):
    """A dataset as `connectivity` returns it, around known values."""
    words, length = words_of(text), len(text)
    along = {"word": words.word, "word_start": words.start, "known": words.known}
    shown = np.tile(np.array(["it", "of", "a"], dtype=object), (length, 1))
    return xr.Dataset(
        {
            "connectivity": (("time", "source"), np.asarray(values, float)),
            "prediction": (("time", "rank"), shown),
            "probability": (("time", "rank"), np.tile([0.5, 0.2, 0.1], (length, 1))),
            "p": ("time", np.full(length, np.nan)),
        },
        {"time": np.arange(length), **{name: ("time", value) for name, value in along.items()}},
    )


TEXT = " of it"
MODEL = build(ModelConfig("gru", 6), Interface(Symbols(5), Symbols(5), Vocabulary(tuple(" fiot"))), seed=0)


def positions(data):
    """The mean lag and the share inside the word of each position, by hand of its shares."""
    frame = shares(data)
    frame["mean_lag"], frame["share_in_word"] = frame["lag"] * frame["share"], frame["share"].where(frame["inside"], 0)
    return frame.groupby("time").agg({"known": "first", "share": "sum", "mean_lag": "sum", "share_in_word": "sum"})


def test_equal_connectivity_reaches_half_way_back():
    rows = positions(given(7 * np.tril(np.ones((6, 6))), TEXT))
    assert rows["mean_lag"].tolist() == pytest.approx(np.arange(6) / 2)
    assert rows["share_in_word"].tolist() == pytest.approx([1, 1, 1, 1 / 4, 2 / 5, 1 / 2])
    assert rows["known"].tolist() == [0, 1, 2, 0, 1, 2]


def test_what_hangs_on_itself_alone_has_no_lag_and_signs_do_not_matter():
    rows = positions(given(np.diag([-1, 2, -3, 4, 5, 6]), TEXT))
    assert not rows["mean_lag"].any()
    assert (rows["share_in_word"] == 1).all()


def test_positions_without_a_target_or_without_any_gradient_are_left_out():
    values = np.tril(np.ones((6, 6)))
    values[2], values[3] = np.nan, 0
    assert shares(given(values, TEXT))["time"].unique().tolist() == [0, 1, 4, 5]
    assert shares(given(0 * values, TEXT)).empty


def test_word_starts_and_the_rest_make_up_the_whole_and_each_lag_is_a_mean_over_those_that_reach_it():
    values = np.tril(np.random.default_rng(2).random((6, 6)))
    data = given(values, TEXT)
    np.testing.assert_allclose(positions(data)["share"], 1)
    frame = measure(shares(data))
    lag = frame.query("quantity == 'mean_lag'").set_index("where")["value"]
    assert lag["all"] == pytest.approx((2 * lag["word start"] + 4 * lag["within word"]) / 6)
    along = frame.query("quantity == 'share_at_lag' and where == 'all'").set_index("lag")["value"]
    each = values / values.sum(1, keepdims=True)
    assert along.to_dict() == pytest.approx({k: each.diagonal(-k).mean() for k in range(6)})


@pytest.fixture
def lags_of(monkeypatch):
    """`connectivity_lags` of texts whose measurements are given."""
    monkeypatch.setattr(lags.reading, "string", lambda text: text)
    monkeypatch.setattr(lags, "connectivity", lambda model, text, at: text)
    monkeypatch.setattr(lags, "shares", lambda data: data)
    monkeypatch.setattr(lags, "measure", lambda data: data)
    return lambda frame: connectivity_lags(None, [group for _, group in frame.groupby("text")])


def test_a_bootstrap_knows_of_lags_that_only_long_texts_reach(lags_of):
    rows = [
        {"text": text, "where": "all", "quantity": "share_at_lag", "lag": lag, "value": 0.5}
        for text in range(20)
        for lag in range(2 if text else 4)
    ]
    found = lags_of(pd.DataFrame(rows)).set_index("lag")
    assert found["texts"].tolist() == [20, 20, 1, 1]
    np.testing.assert_allclose(found.loc[:1, ["value", "low", "high"]], 0.5)
    assert found.loc[2:, "low"].isna().all()


def test_every_text_is_measured(monkeypatch):
    monkeypatch.setattr(lags, "LAGS", 5)
    texts = [" of it", " to it of"]
    frame = connectivity_lags(MODEL, texts)
    each = pd.concat([measure(shares(connectivity(MODEL, text))) for text in texts])
    expected = each.groupby(lags.KEYS, dropna=False, sort=False)["value"].agg(["mean", "size"])
    np.testing.assert_allclose(frame["value"], expected["mean"], rtol=1e-4)
    assert frame["texts"].tolist() == expected["size"].tolist()
    assert set(frame["lag"].dropna()) == set(range(6))


@pytest.mark.slow
def test_some_positions_stand_for_all(monkeypatch):
    """Asked at every position it is the whole mean; asked at some, it is right on average."""
    texts, ways = [" of it to it of"] * 60, []
    for places in (99, 4):
        monkeypatch.setattr(lags, "PLACES", places)
        ways.append(connectivity_lags(MODEL, texts).query("quantity == 'mean_lag'"))
    whole, some = (frame.set_index("where") for frame in ways)
    exact = measure(shares(connectivity(MODEL, texts[0]))).query("quantity == 'mean_lag'").set_index("where")
    np.testing.assert_allclose(whole["value"], exact.loc[whole.index, "value"], rtol=1e-4)
    for where in ("all", "word start"):
        interval = some.loc[where, "high"] - some.loc[where, "low"]  # four standard errors, nearly
        assert interval > 0
        assert abs(some.loc[where, "value"] - whole.loc[where, "value"]) < interval


def decay(frame, where="input"):
    """Norms by distance, relative to the first, one column a sequence."""
    table = frame[frame["where"] == where].pivot(index="lag", columns="text", values="value").to_numpy()
    return 10 ** (table - table[0])


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_a_plain_network_without_input_forgets_by_its_factor(factor):
    unit = RNN(12, 12, dtype=torch.float64)
    with torch.no_grad():
        unit.cells[0].weight_hh *= factor  # orthogonal before
        unit.cells[0].weight_ih.copy_(torch.eye(12))
    frame = gradient_by_distance(unit, torch.zeros(20, 3, 12))  # h stays 0, where tanh' is 1
    for where in ("input", "layer 1"):
        relative = decay(frame, where)
        assert relative.shape == (20, 3)
        expected = factor ** np.arange(20)[:, None]
        np.testing.assert_allclose(relative / expected, 1, rtol=1e-10)


@pytest.mark.parametrize("bias", [0.0, 4.0])
def test_an_lstm_whose_cells_hear_only_the_input_forgets_by_its_gate(bias):
    """h reaches no gate, so that the input's way leads through c alone: i g at t, then f for each step."""
    unit, f = LSTM(6, 6, forget_bias=bias), 1 / (1 + np.exp(-bias))
    with torch.no_grad():
        unit.cells[0].weight_hh.zero_()
    relative = decay(gradient_by_distance(unit, torch.zeros(30, 2, 6)))
    np.testing.assert_allclose(relative, f ** np.arange(30)[:, None] * np.ones(2), rtol=1e-9)


@pytest.mark.slow
def test_it_is_the_norm_of_the_jacobian(monkeypatch):
    monkeypatch.setattr(lags, "PROJECTIONS", 20_000)
    torch.manual_seed(0)
    unit, x = NestedLSTM(4, 5).double(), torch.randn(6, 1, 4, dtype=torch.float64)
    whole = torch.autograd.functional.jacobian(lambda x: unit(x)[0][-1, 0], x)[:, :, 0]  # [5, T, 4]
    expected = whole.square().sum((0, 2)).sqrt().flip(0).numpy()
    frame = gradient_by_distance(unit, x).query("where == 'input'")
    np.testing.assert_allclose(10 ** frame["value"].to_numpy(), expected, rtol=0.03)


def test_every_layer_has_its_row_and_symbols_are_one_hot():
    torch.manual_seed(0)
    unit, symbols = LSTM(4, 5, num_layers=2), torch.randint(4, (7, 3))
    frame = gradient_by_distance(unit, symbols)
    assert frame.groupby("where").size().to_dict() == {"input": 21, "layer 1": 21, "layer 2": 21}
    vectors = gradient_by_distance(unit, torch.nn.functional.one_hot(symbols, 4).float())
    np.testing.assert_allclose(frame["value"], vectors["value"])
    assert next(unit.parameters()).dtype == torch.float32  # the unit itself is left alone


def test_a_gradient_of_exactly_0_is_a_number_too():
    unit = RNN(4, 4)
    with torch.no_grad():
        unit.cells[0].weight_hh.zero_()
    values = gradient_by_distance(unit, torch.zeros(3, 1, 4)).query("where == 'input'")["value"]
    assert values.iloc[1:].tolist() == [np.log10(SMALLEST)] * 2


@pytest.mark.parametrize("unit", [RNN(4, 6), GRU(4, 6, 2), NestedLSTM(4, 6, depth=3), HMLSTM(4, 6, 3)])
def test_any_unit_is_measured(unit):
    frame = gradient_by_distance(unit, torch.randint(4, (5, 2)))
    assert np.isfinite(frame["value"]).all()
    assert frame["where"].nunique() == 1 + unit.num_layers
