"""The noise floor: how far an engine differs from itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions
from steelyard.stats.clusters import Clusters, cluster_spread, rate_interval


class Noise(msgspec.Struct, frozen=True):
    """Repeats of a run beside the run itself.

    Attributes
    ----------
    runs : int
        How often everything was asked.
    n, cases : int
        Answers that every run scored.
    changed : float
        Share of repeated answers that are another option, side or level than the first time.
    interval : (float, float) or None
        95 %, cases kept together; None without an answer.
    moved_mean, moved_most : float or None
        Difference of P(label) from the first time, in the mean and at most; None without probabilities.
    accuracies : list of float or None
        Of each run, choice and yes/no answers together.
    """

    runs: int
    n: int
    cases: int
    changed: float | None
    interval: tuple[float, float] | None
    moved_mean: float | None
    moved_most: float | None
    accuracies: list[float | None]


def noise(tables: Sequence[Decisions]) -> Noise:
    """How far repeats differ from the first of them.

    Parameters
    ----------
    tables : sequence of Decisions
        Of one dataset, two or more.
    """
    rows = np.flatnonzero(np.logical_and.reduce([table.status == SCORED for table in tables]))
    first, *others = tables
    clusters = Clusters(first.cluster[rows])
    moves = np.array([_said(table, rows) != _said(first, rows) for table in others], np.float64)
    shifts = np.abs([table.p_gold[rows] - first.p_gold[rows] for table in others])
    known = shifts[~np.isnan(shifts)]
    changed = moves.mean(axis=0) if len(rows) else np.empty(0)
    return Noise(
        len(tables),
        len(rows),
        len(clusters),
        float(changed.mean()) if len(rows) else None,
        rate_interval(cluster_spread(changed, clusters)) if len(clusters) > 1 else None,
        float(known.mean()) if len(known) else None,
        float(known.max()) if len(known) else None,
        [_accuracy(table) for table in tables],
    )


def _said(table: Decisions, rows: Any) -> Any:
    """What each answer says, as a number: option, side, or nearest level."""
    value = table.value[rows]
    sides = (value >= 0.5).astype(np.float64)
    kind = table.kind[rows]
    return np.where(kind == 0, table.pred[rows], np.where(kind == 2, sides, np.rint(value)))


def _accuracy(table: Decisions) -> float | None:
    known = table.correct[~np.isnan(table.correct)]
    return float(known.mean()) if len(known) else None
