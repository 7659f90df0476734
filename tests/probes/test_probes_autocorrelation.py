"""Signals whose timescale is known give it back, inside the interval that is claimed."""

import numpy as np
import pytest
from known_signals import signals

from nlstm_lab.probes.slowness import LENGTHS, autocorrelation, estimate, slow_part, spectral


def test_fft_is_the_direct_sum():
    x = np.random.default_rng(0).standard_normal((157, 3)).cumsum(0)
    d = x - x.mean(0)
    direct = np.stack([(d[: 157 - k] * d[k:]).sum(0) / (157 - k) for k in range(60)])
    np.testing.assert_allclose(autocorrelation(x, 59), direct / direct[0], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [2, 5, 20, 50, 100, 200, 500])
def test_known_timescales_are_recovered(tau):
    told = estimate(signals((tau,) * 30, 100_000, seed=tau))
    truth = 0.5 / np.tanh(0.5 / tau)  # 1/2 + the geometric sum
    assert (told.reason == "").mean() > 0.9  # at 500, a few come out long enough to be refused
    inside = (told.low <= truth) & (truth <= told.high)
    assert inside[told.reason == ""].mean() >= 0.8
    assert np.nanmedian(told.timescale) == pytest.approx(truth, rel=0.1)


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
    told = estimate(signals((20,) * 400, 20_000, seed=2))
    claimed = np.median(np.log(told.high / told.low)) / (2 * 1.96)
    assert 1 < claimed / np.log(told.timescale).std() < 1.5


def test_the_interval_is_wolffs_equation_42():
    told = estimate(signals((5, 20, 50), 50_000, seed=4))
    error = np.sqrt(4 * (told.window + 0.5 - told.timescale) / 50_000)
    np.testing.assert_allclose(told.high / told.timescale, np.exp(1.959964 * error), rtol=1e-6)
    np.testing.assert_allclose(told.timescale / told.low, np.exp(1.959964 * error), rtol=1e-6)


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
    told = estimate(np.stack([x for x, _ in series.values()], 1))
    assert [found.split(":")[0] for found in told.reason] == [reason for _, reason in series.values()]
    assert told.drop(columns="reason").isna().all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize(("lengths", "share", "bias"), [(100, 0.66, -0.23), (200, 0.99, -0.02)])
def test_near_the_limit_the_biases_are_those_of_the_docstring(lengths, share, bias):
    told = estimate(signals((20,) * 2000, 20 * lengths, seed=0))
    known = np.isfinite(told.timescale)
    assert known.mean() == pytest.approx(share, abs=0.03)
    assert np.nanmean(told.timescale) / 20 - 1 == pytest.approx(bias, abs=0.02)


@pytest.mark.parametrize(
    ("share", "tau", "window", "true"), [(0.1, 99.5, 0.98, 10.4), (0.05, 99.5, 0.69, 5.45), (0.2, 20, 2.14, 4.4)]
)
def test_a_slow_minority_that_the_window_misses_is_told_by_the_spectrum(share, tau, window, true):
    noise = np.random.default_rng(9).standard_normal((30_000, 100))
    mixture = np.sqrt(1 - share) * noise + np.sqrt(share) * signals((tau,) * 100, 30_000, seed=3)
    told, second = estimate(mixture), spectral(mixture)
    assert np.median(told.timescale) == pytest.approx(window, rel=0.05)  # emcee's window is the same
    assert np.median(second) == pytest.approx(true, rel=0.1)
    assert slow_part(told, second, 30_000).mean() > 0.6


@pytest.mark.parametrize("tau", [0.01, 1, 5, 50, 150])
def test_a_signal_of_one_timescale_has_no_slow_part_and_its_spectrum_agrees(tau):
    x = signals((tau,) * 100, 30_000, seed=4)
    told, second = estimate(x), spectral(x)
    assert np.median(second) == pytest.approx(0.5 / np.tanh(0.5 / tau), rel=0.2)
    assert slow_part(told, second, 30_000).mean() < 0.02
