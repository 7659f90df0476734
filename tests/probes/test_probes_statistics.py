"""Intervals hold what they promise, and nothing is ordered whose interval touches 0."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nlstm_lab.statistics import bootstrap, compare, holm, least, p_value, t_interval


def test_the_t_interval_is_the_textbook_one():
    x = np.random.default_rng(0).standard_normal(7)
    low, high = stats.t.interval(0.95, 6, x.mean(), stats.sem(x))
    assert t_interval(x) == pytest.approx((x.mean(), low, high))


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [1.0, 2.0, float("nan")]])
def test_too_few_or_broken_values_have_no_interval(values):
    interval = t_interval(values)
    assert np.isnan([interval.low, interval.high]).all()


def test_the_bootstrap_of_a_mean_is_as_wide_as_theory_says():
    x = np.random.default_rng(0).standard_normal(400)
    result = bootstrap(x)
    assert result.high - result.low == pytest.approx(2 * 1.96 * x.std() / 20, rel=0.07)
    assert result.mean == pytest.approx(x.mean())
    assert (result.low + result.high) / 2 == pytest.approx(x.mean(), abs=0.02)
    assert bootstrap(x) == bootstrap(x)  # the same draw each time
    assert np.isnan(bootstrap([1.0, 2.0]).low)
    assert np.isnan(bootstrap([]).mean)


@pytest.mark.parametrize(
    ("differences", "ordering"),
    [([1, 1.1, 0.9], "holds"), ([-1, -1.1, -0.9], "fails"), ([1, -1, 0.5], "inconclusive"), ([1, 1], "not measured")],
)
def test_orderings_come_from_paired_differences(differences, ordering):
    base = {seed: 10.0 * seed for seed in range(5)}  # pairing takes the large differences between seeds out
    first = {seed: base[seed] + d for seed, d in enumerate(differences)}
    assert compare(first, base, paired=True).ordering == ordering
    assert compare(pd.Series(first), pd.Series(base), paired=True).seeds == len(differences)
    assert compare(first, base).ordering in ("inconclusive", "not measured"), "of two networks the spread counts"


def test_two_networks_are_compared_as_welch_does():
    first, second = [1.0, 2.5, 2.0, 3.1], [0.1, 0.4, 0.2]
    result = compare(dict(enumerate(first)), dict(enumerate(second, start=7)))
    welch = stats.ttest_ind(first, second, equal_var=False)
    interval = welch.confidence_interval()
    assert result.difference == pytest.approx((np.mean(first) - np.mean(second), interval.low, interval.high))
    assert result.df == pytest.approx(welch.df)
    assert p_value(result.difference, result.df) == pytest.approx(welch.pvalue)
    assert (result.seeds, result.ordering) == (3, "holds")
    same = compare(dict.fromkeys(range(3), 2.0), dict.fromkeys(range(3), 1.0))
    assert (same.difference.low, same.ordering, p_value(same.difference, same.df)) == (1.0, "holds", 0.0)


def test_the_p_value_is_that_of_the_interval_and_its_bound():
    sample = [0.8, 0.9, 0.95, 0.85]
    result = compare(pd.Series(sample))
    for bound in (0.0, 0.5, 0.9):
        assert p_value(result.difference, result.df, bound) == pytest.approx(stats.ttest_1samp(sample, bound).pvalue)
    assert np.isnan(p_value(t_interval([1.0, 2.0]), np.nan))


def test_holm_keeps_no_more_than_bonferroni_would_first_and_stops_at_the_first_that_fails():
    assert holm([0.01, 0.011, 0.02, 0.04]).tolist() == [True, True, True, True]
    assert holm([0.01, 0.011, 0.06, 0.04]).tolist() == [True, True, False, False]
    assert holm([0.013, 0.013, 0.013, 0.013]).tolist() == [False] * 4
    assert holm([0.04, math.nan]).tolist() == [True, False]  # what was not measured is no test
    assert holm([]).tolist() == []


def test_a_claim_about_several_rivals_is_decided_by_the_one_that_is_least_far_behind():
    base = dict(enumerate([1.0, 1.1, 0.9]))
    far, near, ahead = ({k: v + shift for k, v in base.items()} for shift in (2.0, 0.5, -2.0))
    assert least([compare(far, base), compare(near, base)]) == compare(near, base)
    assert least([compare(far, base), compare(ahead, base)]).ordering == "fails"
    assert least([compare(far, base), compare({}, base)]).ordering == "not measured"
    assert least([compare({}, base), compare(ahead, base)]).ordering == "fails"


def test_a_seed_without_a_number_leaves_the_comparison_unmeasured():
    assert compare({0: 1.0, 1: 1.0, 2: np.nan}, {0: 0.0, 1: 0.0, 2: 0.0}).row()["verdict"] == "not measured"
    assert compare({0: 1.0, 1: 1.0}, {0: 0.0, 1: 0.0, 2: 0.0}).row()["verdict"] == "too few seeds"
