"""Laws every difference of two tables must keep, whatever the metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.coverage import draw

from steelyard import Dataset, Settings, evaluate
from steelyard.metrics.decisions import DIMENSIONS, Decisions
from steelyard.metrics.measure import measure, metrics_for, views
from steelyard.metrics.paired import Compared, Pairing, slices_of, view_of
from steelyard.metrics.registry import METRICS
from steelyard.stats.clusters import influence_variance
from tests.conftest import make_rows

QUIET = Settings(intervals=False, score_within=(0.5,))
NO_SHARE = {
    "ece_adaptive", "ece_debiased_rms", "ecce_mad", "ecce_range", "spiegelhalter_z", "ece_sweep", "smece",
    "corp_miscalibration", "corp_discrimination", "corp_uncertainty", "murphy_reliability", "ece_classwise",
    "score_threshold_ece", "coverage@risk1", "coverage@risk5", "coverage@risk10",
}  # fmt: skip
"""Metrics that do not say what one answer does to them; only resamples give their differences intervals."""


def table(accuracy: float, seed: int, n: int = 240) -> Decisions:
    data = Dataset.from_rows(make_rows(n), "data")
    return evaluate(f"scripted,accuracy={accuracy},seed={seed}", data).table


OURS, THEIRS = table(0.85, 1), table(0.7, 2)
ROWS = np.arange(len(OURS))
PAIR = Pairing(OURS, THEIRS, ROWS, ROWS)


@pytest.mark.parametrize("metric", metrics_for(QUIET), ids=lambda metric: metric.name)
def test_shares_sum_to_nothing_and_foretell_a_left_out_case(metric: Any) -> None:
    view = view_of(OURS, ROWS, QUIET, listening=True)
    found = metric.measure(view)
    if found is None:
        assert metric.name.startswith("soft")
        return
    if metric.name in NO_SHARE:
        assert view.heard is None
        return
    share = view.heard.share
    # Cox fits are held back by a small ridge, so their shares do not quite cancel.
    assert float(share.sum()) == pytest.approx(0.0, abs=2e-3 if metric.name.startswith("cox") else 1e-9)
    # Leaving a case out moves the value by about the shares of its answers, the other way.
    moved, told = [], []
    for case in range(0, 240, 3):
        kept = np.flatnonzero(OURS.cluster != case)
        left = metric.measure(view_of(OURS, kept, QUIET))
        moved.append(found.value - left.value)
        told.append(float(share[OURS.cluster == case].sum()))
    if metric.name.startswith("selective_accuracy") or not np.std(moved):
        return
    if metric.name.endswith("ece"):
        # A gap near nothing changes its sign with a single answer.
        assert float(np.corrcoef(moved, told)[0, 1]) > 0.5
        return
    assert float(np.corrcoef(moved, told)[0, 1]) > 0.9
    assert float(np.std(told)) == pytest.approx(float(np.std(moved)), rel=0.35)


@pytest.mark.parametrize("metric", metrics_for(QUIET), ids=lambda metric: metric.name)
def test_intervals_of_one_run_come_from_the_same_shares(metric: Any) -> None:
    view = view_of(OURS, ROWS, Settings(score_within=(0.5,)), listening=True)
    found = metric.measure(view)
    if found is None or found.interval is None or view.heard is None:
        return
    n = len(view)
    variance = view.heard.inflation * influence_variance(view.heard.share * n, view.clusters(None))
    half = (found.interval[1] - found.interval[0]) / 2
    assert half == pytest.approx(1.97 * math.sqrt(variance), rel=0.12)


def test_which_metrics_have_no_share() -> None:
    assert set(METRICS) >= NO_SHARE


@pytest.mark.parametrize("metric", metrics_for(QUIET), ids=lambda metric: metric.name)
def test_a_difference_turns_with_its_sides_and_is_nothing_with_itself(metric: Any) -> None:
    there = Compared(PAIR, QUIET).difference(metric)
    back = Compared(Pairing(THEIRS, OURS, ROWS, ROWS), QUIET).difference(metric)
    if there is None:
        assert back is None
        return
    assert back.value == -there.value
    assert (back.gains, back.losses) == (there.losses, there.gains)
    if there.interval:
        low, high = there.interval
        assert low <= there.value <= high
        assert back.interval == pytest.approx((-high, -low), abs=1e-9)
    same = Compared(Pairing(OURS, OURS, ROWS, ROWS), QUIET).difference(metric)
    assert same.value == 0.0
    assert same.interval is None or same.interval[0] == -same.interval[1]
    assert same.p in (None, 1.0)


def test_the_order_of_the_answers_does_not_matter() -> None:
    shuffled = np.random.default_rng(0).permutation(ROWS)
    one = Compared(PAIR, QUIET).differences(metrics_for(QUIET))
    two = Compared(PAIR.subset(shuffled), QUIET).differences(metrics_for(QUIET))
    for first, second in zip(one, two, strict=True):
        assert second.value == pytest.approx(first.value, abs=1e-12)
        assert second.interval == pytest.approx(first.interval, abs=1e-9), first.metric


def test_values_of_both_sides_are_those_of_a_report() -> None:
    found = {one.metric: one for one in Compared(PAIR, QUIET).differences(metrics_for(QUIET))}
    ours, theirs = (measure(one, QUIET, ()).overall for one in (OURS, THEIRS))
    assert found.keys() == ours.keys() == theirs.keys()
    for name, one in found.items():
        assert one.candidate == pytest.approx(ours[name].value, abs=1e-12)
        assert one.baseline == pytest.approx(theirs[name].value, abs=1e-12)
        assert (one.n, one.cases) == (ours[name].n, ours[name].cases)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_slices_are_those_of_a_report(dimension: str) -> None:
    wanted = measure(OURS, QUIET, [dimension]).slices[dimension]
    found = dict(slices_of(OURS, ROWS, dimension))
    assert list(found) == list(wanted)
    for value, rows in found.items():
        own = view_of(OURS, ROWS[rows], QUIET)
        for metric in metrics_for(QUIET):
            one = metric.measure(own)
            if metric.deep or metric.name not in wanted[value]:
                continue
            assert one.value == pytest.approx(wanted[value][metric.name].value, abs=1e-12), metric.name
    ranked = np.flatnonzero(~np.isnan(OURS.correct))
    assert len(list(views(OURS, dimension, ranked, QUIET))) == len(found)


def test_slices_of_some_rows() -> None:
    some = np.flatnonzero(OURS.row % 4 == 0)
    found = dict(slices_of(OURS, some, "tag"))
    assert set(found) == {"all", "even"}
    assert len(found["all"]) == len(some)


def test_one_case_has_no_interval() -> None:
    one = PAIR.subset(np.arange(3))
    for found in Compared(one, QUIET).differences(metrics_for(QUIET)):
        assert found.interval is None


@pytest.mark.parametrize("per_case", [1, 4])
def test_differences_cover_the_truth(per_case: int) -> None:
    """Two engines that are equally good: the interval of each difference should hold 0."""
    rng = np.random.default_rng(per_case)
    names = ("accuracy", "brier", "log_loss", "aurc", "auroc_failure", "macro_f1", "confidence_gap")
    metrics = [metric for metric in metrics_for(QUIET) if metric.name in names]
    held = dict.fromkeys(names, 0)
    runs = 200
    for _ in range(runs):
        ours, theirs = draw(rng, 150, per_case, 1.3), draw(rng, 150, per_case, 1.3)
        rows = np.arange(len(ours))
        for found in Compared(Pairing(ours, theirs, rows, rows), QUIET).differences(metrics):
            low, high = found.interval
            held[found.metric] += low <= 0.0 <= high
    assert min(held.values()) >= 0.9 * runs, held
