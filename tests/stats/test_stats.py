"""Statistics against independent oracles, enumeration and values worked by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from steelyard.stats.bins import bin_index, bin_spread, expected_calibration_error
from steelyard.stats.clusters import Clusters, Spread, cluster_spread, mean_interval, rate_interval
from steelyard.stats.grouping import group_order, ragged
from steelyard.stats.nulls import half_normal_null
from steelyard.stats.proportions import wilson
from steelyard.stats.special import beta_cdf, normal_quantile, t_cdf, t_quantile


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 80.0, 1000.0])
@pytest.mark.parametrize("b", [0.5, 2.0, 40.0])
@pytest.mark.parametrize("x", [0.0, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-6, 1.0])
def test_beta_cdf(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(scipy.stats.beta.cdf(x, a, b), abs=1e-12)


@pytest.mark.parametrize("df", [1, 2, 5, 30, 1000, 10**6])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.9999])
def test_t_quantile(p: float, df: int) -> None:
    assert t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-9)
    assert t_cdf(-t_quantile(p, df), df) == pytest.approx(1 - p, abs=1e-9)


def test_normal_quantile() -> None:
    assert normal_quantile(0.975) == pytest.approx(scipy.stats.norm.ppf(0.975), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (80, 100), (0, 50), (50, 50), (3, 7)])
def test_wilson(k: int, n: int) -> None:
    low, high = proportion_confint(k, n, method="wilson")
    assert wilson(k / n, n, normal_quantile(0.975)) == pytest.approx((low, high), abs=1e-12)


def test_cluster_spread_is_the_regression_sandwich() -> None:
    rng = np.random.default_rng(1)
    clusters = np.sort(rng.integers(0, 30, 200))
    values = rng.normal(size=200) + rng.normal(size=30)[clusters]
    found = cluster_spread(values, Clusters(clusters))
    fit = sm.OLS(values, np.ones(200)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False, "df_correction": True}
    )
    groups = len(np.unique(clusters))
    assert found.mean == pytest.approx(fit.params[0])
    assert found.se == pytest.approx(fit.bse[0] * math.sqrt(groups / (groups - 1)))
    shuffled = rng.permutation(200)
    again = cluster_spread(values[shuffled], Clusters(clusters[shuffled]))
    assert again.se == pytest.approx(found.se)
    low, high = mean_interval(found) or (0, 0)
    assert (high - low) / 2 == pytest.approx(scipy.stats.t.ppf(0.975, groups - 1) * found.se)


def test_one_value_a_cluster_is_the_plain_t_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0])
    found = cluster_spread(values, Clusters(np.arange(4)))
    assert found.deff == 1.0
    assert mean_interval(found) == pytest.approx(
        scipy.stats.t.interval(0.95, 3, loc=values.mean(), scale=scipy.stats.sem(values))
    )


def test_copies_of_an_answer_add_nothing() -> None:
    hits = np.array([1.0, 0, 1, 1, 0, 1, 1, 0])
    once = cluster_spread(hits, Clusters(np.arange(8)))
    fivefold = cluster_spread(np.repeat(hits, 5), Clusters(np.repeat(np.arange(8), 5)))
    assert fivefold.n / fivefold.deff == pytest.approx(8, rel=0.2)
    low, high = rate_interval(fivefold)
    assert low < rate_interval(once)[0] + 0.01
    assert high > rate_interval(once)[1] - 0.01


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_unanimous_clusters_count_as_many_as_there_are(hit: float) -> None:
    found = cluster_spread(np.full(50, hit), Clusters(np.repeat(np.arange(10), 5)))
    assert found.n / found.deff == pytest.approx(10)
    low, high = rate_interval(found)
    assert 0 <= low <= hit <= high <= 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_clusters_in_any_order(codes: list[int]) -> None:
    values, found = np.arange(len(codes)) + 0.5, Clusters(np.array(codes))
    wanted = [sum(v for v, c in zip(values, codes, strict=True) if c == code) for code in sorted(set(codes))]
    assert found.sums(values).tolist() == pytest.approx(wanted)
    assert found.compact.tolist() == [sorted(set(codes)).index(code) for code in codes]
    assert len(found) == len(set(codes))
    assert found.alone == (len(set(codes)) == len(codes))


def test_single_cluster() -> None:
    found = cluster_spread(np.array([1.0, 0.0, 1.0]), Clusters(np.zeros(3, int)))
    assert mean_interval(found) is None
    assert rate_interval(found) == pytest.approx(wilson(2 / 3, 1.0, t_quantile(0.975, 10**6)))
    assert Clusters(np.empty(0, int)).sums(np.empty(0)).tolist() == []
    assert len(Clusters(np.empty(0, int))) == 0


@pytest.mark.parametrize("per_case", [1, 4])
@pytest.mark.parametrize("rate", [0.7, 0.92])
def test_intervals_cover(rate: float, per_case: int) -> None:
    """Coverage of the 95 % rate interval, cases of one answer and of four that hang together."""
    rng = np.random.default_rng(7)
    cases, runs, inside = 150, 1500, 0
    for _ in range(runs):
        own = rng.uniform(size=(cases, per_case)) < rate
        common = rng.uniform(size=(cases, 1)) < rate
        hits = np.where(rng.uniform(size=(cases, per_case)) < 0.6, common, own).astype(float).ravel()
        low, high = rate_interval(cluster_spread(hits, Clusters(np.repeat(np.arange(cases), per_case))))
        inside += low <= rate <= high
    assert abs(inside / runs - 0.95) < 0.02


def neighbours(bins: int) -> st.SearchStrategy[float]:
    edges = [edge for k in range(bins + 1) for edge in (np.linspace(0, 1, bins + 1)[k],)]
    near = [math.nextafter(edge, side) for edge in edges for side in (0.0, 1.0)]
    return st.sampled_from([*edges, *near, 0.0, 1.0]) | st.floats(0, 1)


@given(st.lists(neighbours(15), min_size=1, max_size=40), st.sampled_from([1, 2, 10, 15, 20]))
def test_bins_are_closed_above_and_the_first_below(confidence: list[float], bins: int) -> None:
    edges = np.linspace(0, 1, bins + 1)
    for value, found in zip(confidence, bin_index(np.array(confidence), bins), strict=True):
        assert edges[found] < value <= edges[found + 1] or (found == 0 and value == 0.0)


def test_values_in_no_bin() -> None:
    assert bin_index(np.array([-0.1, 1.1, np.nan]), 5).tolist() == [-1, -1, -1]


def test_many_bins_leave_each_answer_alone() -> None:
    c, y = np.array([0.25, 0.75]), np.array([1.0, 0.0])
    assert expected_calibration_error(c, y, 40_000) == pytest.approx(0.75)


def test_group_order() -> None:
    codes = np.array([2, -1, 0, 2, 0])
    order, bounds = group_order(codes, 3)
    assert [order[a:b].tolist() for a, b in pairwise(bounds)] == [[2, 4], [], [0, 3]]
    wide, _ = group_order(codes, 40_000)
    assert wide.tolist() == order.tolist()
    assert ragged(np.array([], int), np.array([], int)).tolist() == []


def test_spread_is_a_record() -> None:
    assert Spread(0.5, 2, 2, 0.1, 1.0).mean == 0.5


def calibrated_expectation(confidence: np.ndarray) -> float:
    """What a calibrated model reads on average over 15 bins."""
    spread = bin_spread(confidence, 15, bin_index(confidence, 15))
    return half_normal_null(spread / len(confidence), 0.0).expectation


@pytest.mark.parametrize(
    ("n", "reads"), [(50, 0.109), (100, 0.081), (200, 0.056), (1000, 0.026), (5000, 0.012)]
)
def test_what_a_calibrated_model_reads(n: int, reads: float) -> None:
    rng = np.random.default_rng(3)
    simulated, expected = [], []
    for _ in range(300):
        confidence = 0.25 + 0.75 * rng.beta(5, 1.5, n)
        correct = (rng.uniform(size=n) < confidence).astype(float)
        simulated.append(expected_calibration_error(confidence, correct))
        expected.append(calibrated_expectation(confidence))
    assert np.mean(simulated) == pytest.approx(reads, rel=0.08)
    assert np.mean(expected) == pytest.approx(np.mean(simulated), rel=0.08)


def test_certain_answers_leave_nothing_to_expect() -> None:
    assert calibrated_expectation(np.ones(4)) == 0.0
    assert calibrated_expectation(np.array([0.5, np.nan])) == pytest.approx(math.sqrt(2 / math.pi) * 0.5 / 2)
