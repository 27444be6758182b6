"""Paired tests, power and resampling against oracles, enumeration and simulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import NormalIndPower

from steelyard.stats.bootstrap import (
    bca_interval,
    bootstrap,
    bootstrap_ratio,
    jackknife_ratio,
    percentile_interval,
)
from steelyard.stats.paired import mcnemar_exact, mcnemar_mid_p, sign_flip, tango_interval
from steelyard.stats.power import (
    accepted_to_certify,
    certifying_power,
    paired_cases,
    paired_mde,
    paired_power,
    unpaired_cases,
    unpaired_mde,
)
from steelyard.stats.proportions import risk_upper_bound

counts = st.integers(0, 40)


@given(counts, counts)
def test_mcnemar(gains: int, losses: int) -> None:
    exact = mcnemar([[0, gains], [losses, 0]], exact=True).pvalue
    assert mcnemar_exact(gains, losses) == pytest.approx(min(1.0, exact), abs=1e-9)
    if gains + losses:
        point = scipy.stats.binom.pmf(min(gains, losses), gains + losses, 0.5)
        assert mcnemar_mid_p(gains, losses) == pytest.approx(
            min(1.0, exact - point) if gains != losses else 1.0
        )
    else:
        assert mcnemar_mid_p(0, 0) == mcnemar_exact(0, 0) == 1.0


@pytest.mark.parametrize(
    ("test", "low", "high"), [(mcnemar_exact, 0.015, 0.035), (mcnemar_mid_p, 0.035, 0.05)]
)
def test_size_of_mcnemar_by_enumeration(test: object, low: float, high: float) -> None:
    """200 cases, 6 % of them different: how often equal engines are told apart at 5 %."""
    assert callable(test)
    size = 0.0
    for m in range(40):
        chance = scipy.stats.binom.pmf(m, 200, 0.06)
        rejected = [k for k in range(m + 1) if test(k, m - k) <= 0.05]
        size += chance * scipy.stats.binom.pmf(rejected, m, 0.5).sum()
    assert low < size < high


@pytest.mark.parametrize("differences", [[1.0, 2, -1], [1.0, 1, 1, 1], [0.5, -0.5], [3.0, -1, -1, 2, 0, 1]])
def test_sign_flips_by_enumeration(differences: list[float]) -> None:
    moved = [d for d in differences if d]
    seen = abs(sum(moved))
    sums = [
        abs(sum(s * d for s, d in zip(signs, moved, strict=True)))
        for signs in product((1, -1), repeat=len(moved))
    ]
    assert sign_flip(np.array(differences)) == pytest.approx(np.mean([s >= seen - 1e-9 for s in sums]))


def test_sign_flips_at_random_agree_with_scipy() -> None:
    differences = np.random.default_rng(1).normal(0.3, 1.0, 40)
    wanted = scipy.stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(2)
    ).pvalue
    assert sign_flip(differences) == pytest.approx(wanted, abs=0.01)
    assert sign_flip(differences, seed=3) != sign_flip(differences, seed=4)
    assert sign_flip(np.zeros(5)) == 1.0


def test_single_differences_make_sign_flips_mcnemar() -> None:
    differences = np.array([1.0] * 9 + [-1.0] * 3 + [0.0] * 50)
    assert sign_flip(differences) == pytest.approx(mcnemar_exact(9, 3))


@pytest.mark.parametrize(
    ("gains", "losses", "n"), [(1, 4, 50), (0, 0, 10), (5, 0, 5), (12, 2, 100), (30, 31, 90)]
)
def test_tango_bounds_solve_the_score_equation(gains: int, losses: int, n: int) -> None:
    """The restricted likelihood is maximised numerically, not by the closed form."""

    def score(delta: float) -> float:
        def unlikely(q: float) -> float:
            cells = (q + delta, q, 1 - 2 * q - delta)
            seen = (gains, losses, n - gains - losses)
            return -sum(k * math.log(max(c, 1e-300)) for k, c in zip(seen, cells, strict=True) if k)

        lowest, highest = max(0.0, -delta), (1 - delta) / 2
        q = scipy.optimize.minimize_scalar(
            unlikely, bounds=(lowest, highest), method="bounded", options={"xatol": 1e-13}
        ).x
        return (gains - losses - n * delta) / math.sqrt(n * (2 * q + delta - delta**2))

    low, high = tango_interval(gains, losses, n)
    assert -1 <= low <= (gains - losses) / n <= high <= 1
    for bound, sign in ((low, 1.0), (high, -1.0)):
        if abs(bound) < 1:
            assert score(bound) == pytest.approx(sign * 1.959964, abs=2e-4)
    assert tango_interval(losses, gains, n) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize(("psi", "sizes"), [(0.1, (7847, 1960, 870, 312)), (0.05, (3923, 979, 434, 155))])
def test_cases_for_a_drop(psi: float, sizes: tuple[int, ...]) -> None:
    assert tuple(paired_cases(drop, psi) for drop in (0.01, 0.02, 0.03, 0.05)) == sizes
    assert paired_cases(0.02, psi, deff=2.0) == pytest.approx(2 * sizes[1], abs=2)


def test_smallest_drops() -> None:
    found = [paired_mde(n, 0.1) for n in (100, 300, 1000, 3000)]
    assert found == pytest.approx([0.088, 0.051, 0.028, 0.016], abs=5e-4)
    assert paired_mde(50, 0.1) is None
    assert paired_power(1960, 0.02, 0.1) == pytest.approx(0.8, abs=1e-3)


def test_unpaired_sizes() -> None:
    found = [unpaired_cases(0.85, drop) for drop in (0.01, 0.02, 0.03, 0.05)]
    assert found == [20559, 5274, 2402, 906]
    effect = 2 * math.asin(math.sqrt(0.85)) - 2 * math.asin(math.sqrt(0.80))
    wanted = NormalIndPower().solve_power(effect, power=0.8, alpha=0.05)
    assert found[3] == pytest.approx(wanted, rel=0.02)
    assert unpaired_mde(906, 0.85) == pytest.approx(0.05, abs=1e-4)
    assert unpaired_mde(3, 0.85) is None


@pytest.mark.parametrize("n", [300, 1000])
def test_the_smallest_drop_is_seen_that_often(n: int) -> None:
    drop = paired_mde(n, 0.1)
    assert drop is not None
    rng = np.random.default_rng(n)
    losses, gains, _ = rng.multinomial(n, [(0.1 + drop) / 2, (0.1 - drop) / 2, 0.9], size=3000).T
    seen = np.mean(
        [mcnemar_mid_p(g, k) <= 0.05 for g, k in zip(gains.tolist(), losses.tolist(), strict=True)]
    )
    assert seen == pytest.approx(0.8, abs=0.03)


def test_certifying_a_risk() -> None:
    assert [accepted_to_certify(limit, 0.0) for limit in (0.1, 0.05, 0.02, 0.01)] == [29, 59, 149, 299]
    m = accepted_to_certify(0.1, 0.05)
    allowed = max(k for k in range(m) if risk_upper_bound(k, m, 0.05) <= 0.1)
    assert certifying_power(m, 0.1, 0.05) == pytest.approx(scipy.stats.binom.cdf(allowed, m, 0.05))
    assert certifying_power(m, 0.1, 0.05) >= 0.8
    assert certifying_power(5, 0.1, 0.0) == 0.0
    assert accepted_to_certify(0.1, 0.1) == 10**9


def sums_of(rng: np.random.Generator, cases: int) -> tuple[np.ndarray, np.ndarray]:
    sizes = rng.integers(1, 5, cases).astype(float)
    return rng.binomial(sizes.astype(int), 0.7).astype(float), sizes


def test_bootstrap_of_a_rate() -> None:
    hits, sizes = sums_of(np.random.default_rng(3), 150)
    draws = bootstrap_ratio(hits[:, None], sizes[:, None], resamples=4000)[:, 0]
    value = hits.sum() / sizes.sum()
    oracle = scipy.stats.bootstrap(
        (hits, sizes),
        lambda h, s, axis: h.sum(axis) / s.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=4000,
        method="BCa",
        rng=np.random.default_rng(4),
    ).confidence_interval
    found = bca_interval(draws, value, jackknife_ratio(hits, sizes))
    assert found == pytest.approx((oracle.low, oracle.high), abs=0.004)
    assert percentile_interval(draws) == pytest.approx((oracle.low, oracle.high), abs=0.01)


def test_one_resample_serves_every_column() -> None:
    hits, sizes = sums_of(np.random.default_rng(3), 40)
    two = bootstrap_ratio(np.stack([hits, hits + 1], 1), np.stack([sizes, sizes], 1), resamples=50, seed=7)
    alone = bootstrap_ratio(hits[:, None], sizes[:, None], resamples=50, seed=7)
    assert np.array_equal(two[:, 0], alone[:, 0])
    weighted = bootstrap(lambda w: [(w * hits).sum() / (w * sizes).sum()], 40, resamples=50, seed=7)
    assert weighted[:, 0] == pytest.approx(alone[:, 0], abs=1e-12)
    named = bootstrap_ratio(hits[:, None], sizes[:, None], resamples=50, seed=7, name="another")
    assert not np.array_equal(named, alone)


def test_intervals_without_draws() -> None:
    assert percentile_interval(np.array([np.nan, 1.0])) is None
    assert bca_interval(np.array([np.nan]), 0.0, np.ones(3)) is None
    assert bca_interval(np.full(20, 2.0), 0.0, np.ones(3)) == (2.0, 2.0)
    empty = bootstrap_ratio(np.zeros((3, 1)), np.zeros((3, 1)), resamples=5)
    assert np.isnan(empty).all()
