"""Frames hold a number only where there is something to measure, and say why where they do not."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.signal import lfilter

from nlstm_lab import probes
from nlstm_lab.cells import LSTM
from nlstm_lab.probes.slowness import LENGTHS, autocorrelation, estimate, state_timescales

T = 20_000


def signals(timescales, steps, seed=0):
    """Stationary Gaussian signals [steps, len(timescales)] of unit variance, autocorrelation exp(-lag / timescale)."""
    decays = np.exp(-1 / np.array(timescales))
    random = np.random.default_rng(seed)
    noise = random.standard_normal((steps, len(decays))) * np.sqrt(1 - decays**2)
    noise[0] /= np.sqrt(1 - decays**2)  # the first value has the stationary variance already
    columns = [lfilter([1.0], [1.0, -decay], noise[:, k]) for k, decay in enumerate(decays)]
    return np.stack(columns, axis=1)


def made_up(**states):
    """A trace whose memories are known signals, one dimension of units; gates as of a plain leaky cell."""
    c = np.stack(list(states.values()), 1).astype(np.float32)
    f = np.full_like(c, 0.9)
    names = list(states)
    data = {"c": c, "f": f, "i": 0 * c + 1, "g": 0 * c + 1, "o": 0 * c + 1}
    leaks = [name != "outer" for name in names]
    coords = {"memory": names, "unit": np.arange(c.shape[2]), "layer": [1], "leaks": ("memory", leaks)}
    dims = ("time", "memory", "unit")
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, {"model": "made up", "depth": len(names)})


def test_a_constant_cell_has_no_timescale():
    frame = state_timescales(made_up(cell=1e-4 * signals((5,), T)))
    assert set(frame["reason"]) == {"silent"}
    assert frame["timescale"].isna().all()


def test_inner_slower_than_outer_is_detected():
    trace = made_up(outer=0.3 * signals((5,) * 20, T), inner=0.3 * signals((50,) * 20, T, seed=1))
    frame = state_timescales(trace)
    medians = frame[frame.value == "raw"].groupby("memory").timescale.median()
    assert medians["outer"] == pytest.approx(5, rel=0.05)
    assert medians["inner"] == pytest.approx(50, rel=0.15)
    assert (frame.life == "alive").all()
    assert frame.timescale.notna().all()


@pytest.mark.slow
def test_counters_get_no_timescale_and_are_counted_as_dead():
    counters = np.arange(1.0, T + 1)[:, None].repeat(14, 1)
    mixed = np.concatenate([signals((10,) * 6, T), counters], 1)
    trace = made_up(outer=signals((5,) * 20, T), inner=mixed)
    frame = state_timescales(trace)
    inner = frame[(frame.memory == "inner") & (frame.unit >= 6)]
    assert (inner.reason == "latched").all()
    assert inner[["timescale", "low", "high", "window"]].isna().all(axis=None)
    about = {"experiment": "made_up", "scale": "small", "model": "nlstm", "start": "zero", "seed": 0}
    medians = probes.medians(frame.assign(**about)).set_index(["memory", "value"]).loc[("inner", "raw")]
    assert medians.dead == pytest.approx(0.7)
    assert medians.measured == 6
    assert medians["median"] == pytest.approx(10, rel=0.2)


def test_every_reason_is_in_the_frame():
    slow, broken = 0.3 * signals((5000,), T), signals((3,), T)
    broken[7] = np.nan
    still = np.full((T, 1), 0.3)
    frame = state_timescales(made_up(cell=np.concatenate([slow, broken, still], 1))).query("value == 'raw'")
    assert frame.reason.tolist() == [f"too short: {T} steps", "not finite", "constant"]
    assert frame.life.tolist() == ["alive", "not finite", "silent"]
    assert frame.timescale.isna().all()


@pytest.mark.slow
def test_hidden_states_serve_for_units_without_memories(network, text):
    trace = probes.trace(network(LSTM, num_layers=2), text * 3)[["h"]]
    assert list(state_timescales(trace).memory.unique()) == ["layer 1 h", "layer 2 h"]


def gathered(seed, *cells):
    about = {"experiment": "ptb", "scale": "small", "model": "nlstm", "start": "zero", "seed": seed, "memory": "inner"}
    rows = [{**about, "value": "raw", "life": life, "timescale": tau, "reason": why} for life, tau, why in cells]
    return pd.DataFrame(rows)


SLOW, DEAD = ("alive", np.nan, "too short: 29000 steps"), ("latched", np.nan, "latched")


def test_a_cell_that_is_too_slow_is_longer_than_any_in_a_median():
    known = [("alive", float(tau), "") for tau in range(1, 6)]
    (row,) = probes.medians(gathered(0, *known, SLOW, SLOW, DEAD, DEAD, DEAD)).to_dict("records")
    result = ("median", "measured", "too_slow", "too_slow_dead", "dead")
    assert [row[name] for name in result] == [4, 5, 2, 0, 0.3]
    (half,) = probes.medians(gathered(0, *known, *[SLOW] * 5)).to_dict("records")
    assert half["median"] == np.inf  # at least what can be measured
    (saturated,) = probes.medians(gathered(0, *known, *[("silent", np.nan, SLOW[2])] * 2)).to_dict("records")
    assert (saturated["median"], saturated["moving"], saturated["too_slow_dead"]) == (3, 4, 2)


def test_an_anticorrelated_cell_is_shorter_than_any_in_a_median():
    turning, known = ("alive", np.nan, "anticorrelated"), [("alive", float(tau), "") for tau in range(1, 6)]
    (row,) = probes.medians(gathered(0, *known, turning, turning, SLOW)).to_dict("records")
    assert [row[name] for name in ("median", "measured", "too_slow", "anticorrelated")] == [2.5, 5, 1, 2]


def test_too_few_living_cells_have_no_median():
    (row,) = probes.medians(gathered(1, *[("alive", 1.0, "")] * 2, *[DEAD] * 8)).to_dict("records")
    assert np.isnan(row["median"])
    assert (row["measured"], row["dead"]) == (2, 0.8)


def test_fft_is_the_direct_sum():
    x = np.random.default_rng(0).standard_normal((157, 3)).cumsum(0)
    d = x - x.mean(0)
    direct = np.stack([(d[: 157 - k] * d[k:]).sum(0) / (157 - k) for k in range(60)])
    np.testing.assert_allclose(autocorrelation(x, 59), direct / direct[0], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [2, 5, 20, 50, 100, 200, 500])
def test_known_timescales_are_recovered(tau):
    result = estimate(signals((tau,) * 30, 100_000, seed=tau))
    truth = 0.5 / np.tanh(0.5 / tau)  # 1/2 + the geometric sum
    assert (result.reason == "").mean() > 0.9  # at 500, a few come out long enough to be refused
    inside = (result.low <= truth) & (truth <= result.high)
    assert inside[result.reason == ""].mean() >= 0.8
    assert np.nanmedian(result.timescale) == pytest.approx(truth, rel=0.1)


NOISE = np.random.default_rng(0).standard_normal((50_001, 20))


@pytest.mark.parametrize(
    ("x", "truth"),
    [
        (NOISE, 0.5),
        (signals((0.5,) * 20, 50_000), 0.657),  # 1/2 coth(1 / (2 tau)): below a step it is above the decay
        (NOISE[1:] - 0.3 * NOISE[:-1], 0.5 - 0.3 / 1.09),  # what turns back at each step has less than half a step
    ],
)
def test_fast_signals_have_the_time_of_their_sum(x, truth):
    assert estimate(x).timescale.mean() == pytest.approx(truth, rel=0.03)


@pytest.mark.slow
def test_the_interval_covers_repeated_measurement_with_a_little_to_spare():
    result = estimate(signals((20,) * 400, 20_000, seed=2))
    claimed = np.median(np.log(result.high / result.low)) / (2 * 1.96)
    assert 1 < claimed / np.log(result.timescale).std() < 1.5


def test_the_interval_is_wolffs_equation_42():
    result = estimate(signals((5, 20, 50), 50_000, seed=4))
    error = np.sqrt(4 * (result.window + 0.5 - result.timescale) / 50_000)
    np.testing.assert_allclose(result.high / result.timescale, np.exp(1.959964 * error), rtol=1e-6)
    np.testing.assert_allclose(result.timescale / result.low, np.exp(1.959964 * error), rtol=1e-6)


def test_no_confident_number_where_there_is_none():
    generator = np.random.default_rng(0)
    t = np.arange(5000.0)
    series = {
        "counter": (t, "too short"),
        "constant": (np.ones(5000), "constant"),
        "rounding": (np.float32(1) + np.float32(1e-8) * generator.standard_normal(5000).astype("f"), "constant"),
        "nan": (np.where(t == 7, np.nan, 0.0), "not finite"),
        "infinite": (np.where(t == 7, np.inf, 0.0), "not finite"),
        "slow": (signals((5000 / LENGTHS * 3,), 5000, seed=3)[:, 0], "too short"),
        "alternating": ((-1) ** t, "anticorrelated"),
    }
    result = estimate(np.stack([x for x, _ in series.values()], 1))
    assert [found.split(":")[0] for found in result.reason] == [reason for _, reason in series.values()]
    assert result.drop(columns="reason").isna().all(axis=None)
