"""Frames hold a number only where there is something to measure, and say why where they do not."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from known_signals import signals
from scipy.signal import lfilter

from nlstm_lab import probes
from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import slowness
from nlstm_lab.probes.slowness import estimate, gate_timescales, state_timescales

T = 20_000


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


def counter(units):
    return np.arange(1.0, T + 1)[:, None].repeat(units, 1)


def test_inner_slower_than_outer_is_detected():
    trace = made_up(outer=0.3 * signals((5,) * 20, T), inner=0.3 * signals((50,) * 20, T, seed=1))
    frame = state_timescales(trace, ["raw", "tanh"])
    medians = frame[frame.value == "raw"].groupby("memory").timescale.median()
    assert medians["outer"] == pytest.approx(5, rel=0.05)
    assert medians["inner"] == pytest.approx(50, rel=0.15)
    assert (frame.life == "alive").all()
    assert frame.timescale.notna().all()


@pytest.mark.slow
def test_counters_get_no_timescale_and_are_counted_as_dead():
    mixed = np.concatenate([signals((10,) * 6, T), counter(14)], 1)
    trace = made_up(outer=signals((5,) * 20, T), inner=mixed)
    frame = state_timescales(trace)
    inner = frame[(frame.memory == "inner") & (frame.unit >= 6)]
    assert (inner.reason == "latched").all()
    assert inner[["timescale", "low", "high", "window"]].isna().all(axis=None)
    about = {"experiment": "made_up", "scale": "small", "model": "nlstm", "start": "zero", "seed": 0}
    medians = probes.medians(frame.assign(**about)).set_index(["memory", "value"]).loc[("inner", "raw")]
    assert medians.latched == medians.dead == pytest.approx(0.7)
    assert medians.measured == 6
    assert medians["median"] == pytest.approx(10, rel=0.2)


def test_every_reason_is_in_the_frame():
    slow, broken = 0.3 * signals((5000,), T), signals((3,), T)
    broken[7] = np.nan
    still = np.full((T, 1), 0.3)
    frame = state_timescales(made_up(cell=np.concatenate([slow, broken, still], 1)), ["raw"])
    assert frame.reason.tolist() == [f"too short: {T} steps", "not finite", "constant"]
    assert frame.life.tolist() == ["alive", "not finite", "silent"]
    assert frame.timescale.isna().all()


def test_the_forget_gate_tells_its_decay_for_innermost_memories_alone():
    trace = made_up(outer=signals((5,) * 3, T), inner=signals((5,) * 3, T))
    frame = gate_timescales(trace).set_index("memory")
    assert frame.from_mean_f["inner"].to_numpy() == pytest.approx(-1 / np.log(0.9), rel=1e-5)
    assert frame.from_mean_ln_f["inner"].to_numpy() == pytest.approx(-1 / np.log(0.9), rel=1e-5)
    assert frame.from_mean_f["outer"].isna().all()
    assert frame.reason["outer"].str.startswith("no leak of its own").all()
    trace["f"] = trace.f * 0 + 1
    assert set(gate_timescales(trace).reason[3:]) == {"the forget gate is 1 throughout"}


def test_a_gate_that_moves_has_two_decays():
    trace = made_up(cell=signals((5,) * 3, T))
    trace["f"][::2] = 0.5
    frame = gate_timescales(trace)
    assert frame.from_mean_f.to_numpy() == pytest.approx(-1 / np.log(0.7), rel=1e-5)
    assert frame.from_mean_ln_f.to_numpy() == pytest.approx(-2 / (np.log(0.5) + np.log(0.9)), rel=1e-5)


@pytest.mark.slow
def test_hidden_states_serve_for_units_without_memories(network, text):
    trace = probes.trace(network(LSTM, num_layers=2), text * 3)[["h"]]
    assert list(state_timescales(trace, ["raw"]).memory.unique()) == ["layer 1 h", "layer 2 h"]
    with pytest.raises(UsageError):
        gate_timescales(trace)


def test_bad_requests_are_refused_in_a_sentence(network, text):
    trace = probes.trace(network(), text)
    with pytest.raises(UsageError, match="400"):
        state_timescales(trace, burn_in=400)
    with pytest.raises(UsageError, match="'sinh'"):
        state_timescales(trace, ["sinh"])


@pytest.mark.slow
def test_the_window_closes_too_early_on_strong_anticorrelation_as_the_docstring_says():
    noise = np.random.default_rng(0).standard_normal((30_000, 40))
    for phi, result in ((-0.2, 0.34), (-0.3, 0.23), (-0.4, 0.10)):
        x = lfilter([1.0], [1.0, -phi], noise, axis=0)
        assert estimate(x).timescale.mean() == pytest.approx(result, abs=0.015)
        assert f"{0.5 + phi / (1 - phi):.3f}".lstrip("0") in (slowness.__doc__ or "")


def gathered(seed, *cells):
    about = {"experiment": "ptb", "scale": "small", "model": "nlstm", "start": "zero", "seed": seed, "memory": "inner"}
    rows = [{**about, "value": "raw", "life": life, "timescale": tau, "reason": why} for life, tau, why in cells]
    return pd.DataFrame(rows)


SLOW, DEAD = ("alive", np.nan, "too short: 29000 steps"), ("latched", np.nan, "latched")


def test_a_cell_that_is_too_slow_is_longer_than_any_in_a_median():
    known = [("alive", float(tau), "") for tau in range(1, 6)]
    (row,) = probes.medians(gathered(0, *known, SLOW, SLOW, DEAD, DEAD, DEAD)).to_dict("records")
    told = ("median", "measured", "too_slow", "too_slow_dead", "latched", "dead")
    assert [row[name] for name in told] == [4, 5, 2, 0, 0.3, 0.3]
    (half,) = probes.medians(gathered(0, *known, *[SLOW] * 5)).to_dict("records")
    assert half["median"] == np.inf  # at least what can be measured
    (saturated,) = probes.medians(gathered(0, *known, *[("silent", np.nan, SLOW[2])] * 2)).to_dict("records")
    assert (saturated["median"], saturated["moving"], saturated["too_slow_dead"]) == (3, 4, 2)


def test_too_few_living_cells_have_no_median():
    (row,) = probes.medians(gathered(1, *[("alive", 1.0, "")] * 2, *[DEAD] * 8)).to_dict("records")
    assert np.isnan(row["median"])
    assert (row["measured"], row["dead"]) == (2, 0.8)


def test_slow_parts_are_those_of_the_cells_that_have_one(network, text):
    frame = probes.slow_parts(network(), text * 10, burn_in=100)
    again = state_timescales(probes.trace(network(), text * 10), burn_in=100)
    assert frame["timescale"].equals(again["timescale"])
    assert (frame["spectral"].notna() == frame["timescale"].notna()).all()
    assert not frame.loc[frame["timescale"].isna(), "slow_part"].any()
