"""A small version of `python -m benchmarks.coverage`: intervals and tests against known truth."""

from __future__ import annotations

import math

import pytest
from benchmarks.coverage import (
    INTERVALS,
    TESTS,
    alarm_rates,
    bake_off_coverage,
    interval_coverage,
    paired_rates,
)

RUNS = 250


def reach(p: float, runs: int) -> float:
    """Three standard errors of a share, besides the point and a half that is allowed."""
    return 0.015 + 3 * math.sqrt(p * (1 - p) / runs)


def test_intervals_cover() -> None:
    found = interval_coverage(RUNS, seed=5)
    assert {name for name, *_ in found} == set(INTERVALS)
    for key, share in found.items():
        assert share >= 0.95 - reach(0.95, RUNS), key


def test_calibration_tests_keep_their_level_and_see_a_shift() -> None:
    for key, share in alarm_rates(TESTS, RUNS, 1.0).items():
        assert share <= 0.05 + reach(0.05, RUNS), key
    for (name, cases, _), share in alarm_rates(("ece", "ecce_mad"), 60, 1.4).items():
        assert share > (0.1 if cases == 100 else 0.45), name


@pytest.mark.parametrize("rates", [paired_rates, bake_off_coverage])
def test_comparisons_are_what_they_claim(rates: object) -> None:
    assert callable(rates)
    for what, nominal, share in rates(RUNS):
        if "as if independent" in what:
            assert share > 0.15, "answers of one case are not independent, and the test must show it"
        elif nominal.startswith("at most") or nominal == "0.05":
            assert share <= 0.05 + reach(0.05, RUNS), what
        else:
            assert share >= float(nominal) - reach(float(nominal), RUNS), what
