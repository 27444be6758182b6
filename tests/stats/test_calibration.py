"""Calibration statistics and their nulls against oracles, identities and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import relplot
import scipy.optimize
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from steelyard.stats.bins import (
    bin_index,
    bin_spread,
    binned,
    debiased_square,
    equal_mass_index,
    expected_calibration_error,
    within_bins_deff,
)
from steelyard.stats.corp import corp, miscalibrations, murphy
from steelyard.stats.cumulative import (
    MAD_MEAN,
    MAD_Q95,
    RANGE_MEAN,
    RANGE_Q95,
    largest_deviation,
    range_survival,
    residual_walk,
    sup_survival,
    walk_range,
)
from steelyard.stats.isotonic import _by_stack, isotonic
from steelyard.stats.logistic import offset_fit, slope_fit
from steelyard.stats.nulls import (
    by_blocks,
    calibrated_hits,
    chi_square_null,
    gamma_null,
    half_normal_null,
    simulated_null,
)
from steelyard.stats.ranking import ranked_levels
from steelyard.stats.smooth import smooth_calibration_error
from steelyard.stats.sweep import sweep_errors


def sample(n: int, seed: int = 0, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, falling, and answers right with that chance to a power."""
    rng = np.random.default_rng(seed)
    confidence = np.sort(0.25 + 0.75 * rng.beta(5, 1.5, n))[::-1]
    return confidence, (rng.uniform(size=n) < confidence**power).astype(float)


weights = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=40)


@given(weights)
def test_isotonic_is_that_of_scipy(made: Any) -> None:
    hits, n = (np.array(column, float) for column in zip(*made, strict=True))
    found = isotonic(hits, n)
    assert found == pytest.approx(scipy.optimize.isotonic_regression(hits / n, weights=n).x, abs=1e-9)
    assert np.all(np.diff(found) >= -1e-12)
    assert isotonic(found * n, n) == pytest.approx(found)
    stacked, first = _by_stack(hits, n, np.zeros(len(n), int), np.arange(len(n)))
    assert np.repeat(stacked, np.diff([*first, len(n)])) == pytest.approx(found)


def test_isotonic_problems_stay_apart() -> None:
    values, ones = np.array([3.0, 1.0, 0.5, 2.0]), np.ones(4)
    assert isotonic(values, ones, np.array([0, 0, 1, 1])).tolist() == [2.0, 2.0, 0.5, 2.0]
    assert isotonic(np.empty(0), np.empty(0)).tolist() == []


def test_isotonic_when_one_pass_pools_one_pair() -> None:
    values = np.concatenate((np.arange(1.0, 301.0) ** 2, [-1e9]))
    wanted = scipy.optimize.isotonic_regression(values).x
    assert isotonic(values, np.ones(301)) == pytest.approx(wanted)


@pytest.mark.parametrize("n", [50, 100, 500, 2000])
@pytest.mark.parametrize("power", [1.0, 1.4])
def test_smooth_error_is_that_of_relplot(n: int, power: float) -> None:
    confidence, correct = sample(n, n, power)
    found = smooth_calibration_error(confidence, correct - confidence, n)
    # Its search stops within 1/1024 of the fixed point, so it is asked at ours.
    assert relplot.smECE_sigma(confidence, correct, found) == pytest.approx(found, abs=5e-4)
    assert relplot.smECE(confidence, correct) == pytest.approx(found, abs=1.2e-3)


def test_smooth_error_is_smooth_and_bounded() -> None:
    confidence, correct = sample(200, 1)
    value = smooth_calibration_error(confidence, correct - confidence, 200)
    moved = np.clip(confidence + np.random.default_rng(0).uniform(-1e-6, 1e-6, 200), 0, 1)
    assert abs(smooth_calibration_error(moved, correct - moved, 200) - value) <= 1e-5
    assert smooth_calibration_error(np.ones(5), -np.ones(5), 5) == pytest.approx(1.0, abs=1e-6)
    assert smooth_calibration_error(np.ones(5), np.zeros(5), 5) < 1e-4


def test_a_fine_grid_where_the_width_is_narrow() -> None:
    confidence = np.linspace(0, 1, 400_001)
    residual = np.where(np.arange(400_001) % 2, 0.02, -0.02)
    assert smooth_calibration_error(confidence, residual, 400_001) < 0.02


def test_brownian_motion() -> None:
    assert sup_survival(MAD_Q95) == pytest.approx(0.05, abs=1e-9)
    assert range_survival(RANGE_Q95) == pytest.approx(0.05, abs=1e-9)
    assert sup_survival(1 - 1e-9) == pytest.approx(sup_survival(1 + 1e-9), abs=1e-7)
    assert sup_survival(0.0) == range_survival(0.1) == 1.0
    for survival, mean in ((sup_survival, MAD_MEAN), (range_survival, RANGE_MEAN)):
        grid = np.linspace(0.0, 9.0, 90_001)
        assert np.trapezoid([survival(x) for x in grid.tolist()], grid) == pytest.approx(mean, abs=1e-6)


def test_walks_by_hand() -> None:
    walk = residual_walk(np.array([0.9, 0.9, 0.4]), np.array([0.1, -0.9, 0.6]))
    assert walk == pytest.approx([-0.8 / 3, -0.2 / 3])
    assert largest_deviation(walk) == pytest.approx(0.8 / 3)
    assert walk_range(walk) == pytest.approx(0.8 / 3)
    assert walk_range(np.array([0.3, -0.1])) == pytest.approx(0.4)


def test_equal_mass_keeps_ties_whole() -> None:
    accepted = np.array([6.0, 7.0, 8.0, 10.0])
    assert equal_mass_index(accepted, 5).tolist() == [1, 3, 3, 4]
    assert equal_mass_index(np.arange(1.0, 11.0), 5).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert equal_mass_index(np.array([3.0]), 15).tolist() == [7]


def table_of(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> Any:
    accepted, hits = ranked_levels(confidence, correct)
    sizes, level = np.diff(accepted, prepend=0.0), confidence[accepted.astype(int) - 1]
    return binned(equal_mass_index(accepted, bins), sizes, level, np.diff(hits, prepend=0.0), bins)


@pytest.mark.parametrize("n", [50, 100, 500])
@pytest.mark.parametrize("bins", [1, 5, 15])
def test_closed_nulls_agree_with_simulation(n: int, bins: int) -> None:
    confidence, _ = sample(n, n)
    draws = calibrated_hits(np.ones(n), confidence, seed=1)
    drawn = np.array([table_of(confidence, row, bins).error() for row in draws])
    found = half_normal_null(bin_spread(confidence, 1, np.zeros(n, int)) / n, 0.0) if bins == 1 else None
    null = table_of(confidence, draws[0], bins).null()
    assert null.expectation == pytest.approx(drawn.mean(), rel=0.08)
    assert null.q95 == pytest.approx(np.quantile(drawn, 0.95), rel=0.08)
    values = np.array([table_of(confidence, row, bins).null().p for row in draws])
    assert np.mean(values <= 0.05) == pytest.approx(0.05, abs=0.025)
    if found is not None:
        assert found.expectation == pytest.approx(null.expectation)


def test_gamma_nulls_of_known_distributions() -> None:
    half = half_normal_null(np.array([1.0]), 1.959964)
    assert half.expectation == pytest.approx(math.sqrt(2 / math.pi))
    assert half.q95 == pytest.approx(1.959964, rel=0.02)
    assert half.p == pytest.approx(0.05, abs=0.005)
    chi = chi_square_null(np.array([1.0]), 0.0)
    assert chi.q95 == pytest.approx(scipy.stats.chi2.ppf(0.95, 1) - 1, rel=0.05)
    shape = gamma_null(3.0, 3.0, 6.0, 0.0)
    assert shape.q95 == pytest.approx(scipy.stats.gamma.ppf(0.95, 3.0), rel=1e-2)
    assert gamma_null(0.0, 0.0, 0.0, 0.0).p == 1.0
    assert gamma_null(0.0, 0.0, 0.0, 0.5).p == 0.0


def test_simulated_nulls() -> None:
    null = simulated_null(np.array([0.1, 0.2, 0.3, 0.4]), 0.3)
    assert null.expectation == pytest.approx(0.25)
    assert null.p == pytest.approx(3 / 5)
    assert null.excess == pytest.approx(0.05)
    many = calibrated_hits(np.array([1.0, 40.0]), np.array([0.5, 0.9]), seed=2)
    assert many.mean(axis=0) == pytest.approx([0.5, 36.0], abs=0.1)
    assert len(calibrated_hits(np.ones(20_000), np.full(20_000, 0.5))) == 200
    assert np.array_equal(by_blocks(lambda x: x.sum(axis=1), many, 7), many.sum(axis=1))


@pytest.mark.parametrize(("n", "power"), [(100, 1.0), (500, 1.0), (100, 1.5)])
def test_debiased_square_has_no_bias(n: int, power: float) -> None:
    confidence, _ = sample(n, 7)
    chance = confidence**power
    rng = np.random.default_rng(n)
    squares = []
    for _ in range(1500):
        correct = (rng.uniform(size=n) < chance).astype(float)
        squares.append(debiased_square(table_of(confidence, correct)))
    found, errors = np.array(squares).T
    truth = table_of(confidence, chance)
    wanted = float((truth.n / n * truth.gap**2).sum())
    assert found.mean() == pytest.approx(wanted, abs=4 * found.std() / math.sqrt(1500))
    assert errors.mean() == pytest.approx(found.std(), rel=0.2)


def test_a_bin_of_one_answer_has_no_square() -> None:
    assert debiased_square(table_of(np.array([0.5]), np.array([1.0]))) == (0.0, 0.0)


def test_design_effect_inside_bins() -> None:
    residual = np.repeat(np.random.default_rng(1).normal(size=200), 4)
    codes = np.repeat(np.arange(200), 4)
    together = within_bins_deff(residual, codes, np.zeros(800, int), 1)
    assert together == pytest.approx(4.0, rel=0.05)
    apart = within_bins_deff(residual, codes, np.tile(np.arange(4), 200), 4)
    assert apart == 1.0
    assert within_bins_deff(np.zeros(2), np.zeros(2, int), np.zeros(2, int), 1) == 1.0


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.3, 0.5, 0.99, 1.0]), st.booleans()), min_size=1, max_size=50)
)
def test_parts_add_up(made: Any) -> None:
    confidence, correct = (np.array(column, float) for column in zip(*sorted(made), strict=True))
    level, n = np.unique(confidence, return_counts=True)
    hits = np.array([correct[confidence == value].sum() for value in level])
    parts, fitted = corp(n.astype(float), level, hits)
    score = ((confidence - correct) ** 2).mean()
    assert parts.score == pytest.approx(score, abs=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(score, abs=1e-12)
    assert parts.miscalibration >= 0
    assert parts.discrimination >= 0
    assert np.all(np.diff(fitted) >= -1e-12)
    alone = miscalibrations(n.astype(float), level, hits[None, :])
    assert alone == pytest.approx([parts.miscalibration], abs=1e-12)
    murphys = murphy(binned(bin_index(level, 15), n.astype(float), level, hits, 15), score)
    rest = murphys.miscalibration - murphys.discrimination + murphys.uncertainty + murphys.within
    assert rest == pytest.approx(score, abs=1e-12)


def test_a_sweep_stops_before_accuracies_fall() -> None:
    accepted, confidence = np.arange(1.0, 5.0), np.array([0.9, 0.8, 0.4, 0.2])
    errors, bins = sweep_errors(accepted, confidence, np.array([[1.0, 1, 0, 0], [0.0, 0, 1, 1]]))
    assert bins.tolist() == [4, 1]
    assert errors == pytest.approx([(0.1 + 0.2 + 0.4 + 0.2) / 4, abs(2 - 2.3) / 4])


def test_a_sweep_of_a_calibrated_model_reads_this() -> None:
    found = []
    for seed in range(300):
        confidence, correct = sample(100, seed)
        accepted, hits = ranked_levels(confidence, correct)
        draws = np.diff(hits, prepend=0.0)[None, :]
        found.append(sweep_errors(accepted, confidence, draws)[0][0])
    assert np.mean(found) == pytest.approx(0.046, abs=0.006)


@pytest.mark.parametrize("power", [0.8, 1.0, 1.6])
def test_cox_fits_are_those_of_statsmodels(power: float) -> None:
    confidence, correct = sample(400, 5, power)
    x = np.log(confidence / (1 - confidence))
    slope, offset = slope_fit(confidence, correct), offset_fit(confidence, correct)
    assert slope is not None
    assert offset is not None
    fit = sm.GLM(correct, sm.add_constant(x), family=sm.families.Binomial()).fit()
    assert slope.value == pytest.approx(fit.params[1], abs=1e-5)
    large = sm.GLM(correct, np.ones(400), family=sm.families.Binomial(), offset=x).fit()
    assert offset.value == pytest.approx(large.params[0], abs=1e-5)
    # What leaving an answer out does, by fitting again without it.
    for at in (0, 150, 399):
        rest = np.delete(np.arange(400), at)
        alone = sm.GLM(correct[rest], sm.add_constant(x[rest]), family=sm.families.Binomial()).fit()
        moved = slope.value - alone.params[1]
        assert slope.influence[at] / 400 == pytest.approx(moved, rel=0.05, abs=1e-5)
        other = offset_fit(confidence[rest], correct[rest])
        assert other is not None
        assert offset.influence[at] / 400 == pytest.approx(offset.value - other.value, rel=0.05, abs=1e-5)


def test_no_cox_slope() -> None:
    assert slope_fit(np.full(4, 0.5), np.array([0.0, 1, 0, 1])) is None
    parted = slope_fit(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 0, 1, 1]))
    assert parted is None or abs(parted.value) > 3


def test_one_bin_reads_the_mean_gap() -> None:
    confidence, correct = sample(80, 3)
    assert expected_calibration_error(confidence, correct, 1) == pytest.approx(
        abs((confidence - correct).mean())
    )
