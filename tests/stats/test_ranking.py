"""Areas under ranked curves, and the influence of an answer on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from steelyard.stats.ranking import (
    accepted_at,
    area_under_risk_coverage,
    augrc,
    augrc_influence,
    aurc_influence,
    auroc,
    auroc_influence,
    best_aurc,
    coverage_at_risk,
    falling_order,
    levels,
    ranked_levels,
    spread_over,
)

answers = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]) | st.floats(0, 1), st.booleans()),
    min_size=1,
    max_size=40,
)


def split(made: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    confidence, correct = zip(*made, strict=True)
    return np.array(confidence), np.array(correct, float)


@given(answers)
def test_auroc_is_that_of_scikit_learn(made: Any) -> None:
    confidence, correct = split(made)
    found = auroc(*levels(confidence, correct))
    if 0 < correct.sum() < len(correct):
        assert found == pytest.approx(sklearn.metrics.roc_auc_score(correct, confidence), abs=1e-9)
    else:
        assert found is None


@given(answers)
def test_augrc_is_a_function_of_auroc_and_accuracy(made: Any) -> None:
    confidence, correct = split(made)
    accepted, hits = levels(confidence, correct)
    a, area = correct.mean(), auroc(accepted, hits)
    wanted = (1 - (1.0 if area is None else area)) * a * (1 - a) + (1 - a) ** 2 / 2
    assert augrc(accepted, hits) == pytest.approx(wanted, abs=1e-9)


@given(answers)
def test_a_perfect_ranking_has_the_best_area(made: Any) -> None:
    confidence, correct = split(made)
    n, errors = len(correct), int(len(correct) - correct.sum())
    perfect = area_under_risk_coverage(*levels(correct * 2 + np.linspace(0, 1, n), correct))
    assert best_aurc(n, errors) == pytest.approx(perfect, abs=1e-12)
    assert area_under_risk_coverage(*levels(confidence, correct)) >= perfect - 1e-12


Statistic = Callable[[np.ndarray, np.ndarray], float]
CURVES: list[tuple[Statistic, Callable[..., tuple[np.ndarray, np.ndarray]]]] = [
    (auroc, lambda a, h: auroc_influence(a, h, auroc(a, h) or 0.0)),  # type: ignore[list-item]
    (area_under_risk_coverage, lambda a, h: aurc_influence(a, h, area_under_risk_coverage(a, h))),
    (augrc, augrc_influence),
]


@pytest.mark.parametrize(("statistic", "influence"), CURVES, ids=["auroc", "aurc", "augrc"])
@pytest.mark.parametrize("tied", [False, True])
def test_influence_is_what_weight_does(statistic: Statistic, influence: Any, tied: bool) -> None:
    """Against a numerical derivative: a little more weight on one answer."""
    rng = np.random.default_rng(11)
    confidence = np.sort(np.round(rng.uniform(size=60), 1 if tied else 9))[::-1]
    correct = (rng.uniform(size=60) < confidence).astype(float)
    accepted, hits = ranked_levels(confidence, correct)
    found = spread_over(*influence(accepted, hits), accepted, correct)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)
    ends = accepted.astype(int) - 1
    value = statistic(accepted, hits)
    for at in (0, 7, 30, 59):
        weight = np.ones(60)
        weight[at] += 1e-6
        moved = statistic(np.cumsum(weight)[ends], np.cumsum(weight * correct)[ends])
        assert (moved - value) / 1e-6 * 60 == pytest.approx(found[at], abs=2e-4)


def test_cuts() -> None:
    accepted, hits = ranked_levels(np.array([0.9, 0.8, 0.8, 0.1]), np.array([1.0, 1, 0, 0]))
    assert accepted.tolist() == [1, 3, 4]
    assert hits.tolist() == [1, 2, 2]
    assert accepted_at(accepted, 0.5) == 1
    assert coverage_at_risk(accepted, hits, 0.4) == 1
    assert coverage_at_risk(accepted, hits, 0.0) == 0
    assert coverage_at_risk(*ranked_levels(np.array([0.9]), np.array([0.0])), 0.5) == -1
    assert levels(np.array([np.nan, 0.5, np.nan]), np.ones(3))[0].tolist() == [1, 3]


@given(st.lists(st.floats(0, 1) | st.integers(0, 10_000).map(lambda k: k / 10_000), max_size=40))
def test_falling_order_is_stable(values: list[float]) -> None:
    confidence = np.array(values)
    assert falling_order(confidence).tolist() == sorted(range(len(values)), key=lambda i: -values[i])
    rounded = np.round(confidence, 4)
    assert falling_order(rounded).tolist() == sorted(range(len(values)), key=lambda i: -rounded[i])
