"""Binomial probabilities, exact sums, multiplicity and e-values against oracles and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from steelyard.stats.evalues import losing_e_value, two_sided_e_value
from steelyard.stats.multiplicity import benjamini_hochberg, benjamini_yekutieli
from steelyard.stats.proportions import (
    binomial_cdf,
    binomial_tail,
    clopper_pearson,
    jeffreys,
    risk_lower_bound,
    risk_upper_bound,
)
from steelyard.stats.special import beta_quantile, normal_cdf
from steelyard.stats.sums import exact_mean, exact_sum

COUNTS = [(0, 1), (1, 1), (80, 100), (0, 50), (50, 50), (3, 7), (1, 100_000), (40_000, 100_000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_binomial_intervals(k: int, n: int) -> None:
    assert clopper_pearson(k, n) == pytest.approx(proportion_confint(k, n, method="beta"), abs=1e-9)
    low, high = proportion_confint(k, n, method="jeffreys")
    assert jeffreys(k, n) == pytest.approx((0.0 if k == 0 else low, 1.0 if k == n else high), abs=1e-9)


def test_the_intervals_of_eighty_in_a_hundred() -> None:
    assert clopper_pearson(80, 100) == pytest.approx((0.708, 0.873), abs=5e-4)
    assert jeffreys(80, 100) == pytest.approx((0.714, 0.869), abs=5e-4)


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.93])
def test_binomial_tails(k: int, n: int, p: float) -> None:
    assert binomial_cdf(k, n, p) == pytest.approx(scipy.stats.binom.cdf(k, n, p), rel=1e-8, abs=1e-12)
    assert binomial_tail(k, n, p) == pytest.approx(scipy.stats.binom.sf(k - 1, n, p), rel=1e-8, abs=1e-12)
    assert binomial_cdf(-1, n, p) == binomial_tail(n + 1, n, p) == 0.0


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1, 60), (81, 20), (3.5, 1e5)])
@pytest.mark.parametrize("p", [0.0, 1e-6, 0.025, 0.5, 0.975, 1.0])
def test_beta_quantile(p: float, a: float, b: float) -> None:
    assert beta_quantile(p, a, b) == pytest.approx(scipy.stats.beta.ppf(p, a, b), rel=1e-8, abs=1e-14)


def test_normal_cdf() -> None:
    assert normal_cdf(-1.5) == pytest.approx(scipy.stats.norm.cdf(-1.5), abs=1e-15)


@pytest.mark.parametrize("n", [1, 2, 5, 17, 40, 60])
def test_clopper_pearson_covers_whatever_the_rate(n: int) -> None:
    """By enumeration: never below 95 % at any of many rates."""
    bounds = [clopper_pearson(k, n) for k in range(n + 1)]
    for rate in np.linspace(0.001, 0.999, 113).tolist():
        inside = [k for k, (low, high) in enumerate(bounds) if low <= rate <= high]
        assert scipy.stats.binom.pmf(inside, n, rate).sum() >= 0.95 - 1e-9


@pytest.mark.parametrize(("limit", "n"), [(0.1, 29), (0.05, 59), (0.02, 149), (0.01, 299)])
def test_zero_errors_need_this_many(limit: float, n: int) -> None:
    assert risk_upper_bound(0, n, 0.05) <= limit < risk_upper_bound(0, n - 1, 0.05)
    assert risk_lower_bound(0, n, 0.05) == 0.0
    assert risk_upper_bound(n, n, 0.05) == 1.0


numbers = st.floats(-1e6, 1e6) | st.floats(0, 1) | st.sampled_from([0.1, 1e-300, 5e-324, 2.0**-62])


@given(st.lists(numbers, max_size=60))
def test_sums_are_rounded_once(values: list[float]) -> None:
    assert exact_sum(np.array(values)) == math.fsum(values)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_exact_means_do_not_see_order(values: list[float], random: object) -> None:
    wanted = float(sum(map(Fraction, values), Fraction(0)))
    assert exact_mean(np.array(values)) == wanted / len(values)
    assert exact_mean(np.array(values[::-1])) == wanted / len(values)


def test_sums_of_large_numbers() -> None:
    assert exact_sum(np.array([1e300, 1.0, -1e300])) == 1.0


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(p_values)
def test_false_discovery_rates(p: list[float]) -> None:
    values = np.array(p)
    assert benjamini_hochberg(values) == pytest.approx(multipletests(values, method="fdr_bh")[1])
    assert benjamini_yekutieli(values) == pytest.approx(multipletests(values, method="fdr_by")[1])
    order = np.argsort(values)
    assert np.all(np.diff(benjamini_hochberg(values)[order]) >= 0)
    assert np.all(benjamini_hochberg(values * 0.5) <= benjamini_hochberg(values) + 1e-15)


def test_no_test_needs_no_correction() -> None:
    assert benjamini_hochberg(np.empty(0)).tolist() == []


@pytest.mark.parametrize("m", [1, 2, 5, 12, 20])
def test_e_values_are_fair_bets(m: int) -> None:
    """By enumeration: their mean is at most 1 when gains and losses are equally likely."""
    chance = scipy.stats.binom.pmf(np.arange(m + 1), m, 0.5)
    for e_value in (two_sided_e_value, losing_e_value):
        assert sum(chance[k] * e_value(k, m - k) for k in range(m + 1)) == pytest.approx(1.0)


@pytest.mark.parametrize("e_value", [two_sided_e_value, losing_e_value])
def test_looking_after_every_case_keeps_its_level(e_value: object) -> None:
    assert callable(e_value)
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(600):
        gains = np.cumsum(rng.integers(2, size=120)).tolist()
        alarms += any(e_value(g, m - g) >= 20 for m, g in enumerate(gains, 1))
    assert alarms / 600 <= 0.05


def test_losses_are_evidence_against_and_gains_are_not() -> None:
    assert losing_e_value(2, 30) > 1000
    assert losing_e_value(30, 2) < 0.05
    assert two_sided_e_value(0, 0) == losing_e_value(0, 0) == 1.0
    assert losing_e_value(5000, 0) == 0.0
