"""Pictures as numbers: the reliability table and the risk-coverage curve."""

from __future__ import annotations

import msgspec
import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions
from steelyard.stats.bins import bin_index
from steelyard.stats.clusters import Clusters, cluster_spread, rate_interval
from steelyard.stats.ranking import levels

MOST_POINTS = 400


class Bin(msgspec.Struct, frozen=True):
    """Answers whose confidence is in (low, high], the first bin closed at 0; empty bins have nulls."""

    low: float
    high: float
    n: int
    cases: int
    confidence: float | None = None
    accuracy: float | None = None
    interval: tuple[float, float] | None = None


class Point(msgspec.Struct, frozen=True):
    """What accepting every answer from a threshold up gives."""

    threshold: float
    accepted: int
    coverage: float
    risk: float


def reliability_table(table: Decisions, bins: int = 15) -> list[Bin]:
    """Mean confidence and accuracy of choice and yes/no answers by equal-width bin.

    Returns
    -------
    list of Bin
        One a bin, with the Wilson interval of its accuracy on its effective n; empty without answers.
    """
    rows = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.confidence) & ~np.isnan(table.correct))
    if not len(rows):
        return []
    found, edges = bin_index(table.confidence[rows], bins), np.linspace(0.0, 1.0, bins + 1).tolist()
    made = []
    for at in range(bins):
        own = rows[found == at]
        low, high = edges[at], edges[at + 1]
        if not len(own):
            made.append(Bin(low, high, 0, 0))
            continue
        spread = cluster_spread(table.correct[own], Clusters(table.cluster[own]))
        confidence, accuracy = float(table.confidence[own].mean()), float(table.correct[own].mean())
        made.append(Bin(low, high, len(own), spread.clusters, confidence, accuracy, rate_interval(spread)))
    return made


def risk_coverage_curve(table: Decisions, most: int = MOST_POINTS) -> list[Point]:
    """Risk at every coverage the answers allow, ties accepted together.

    Parameters
    ----------
    table : Decisions
    most : int
        With more levels of confidence than this, as many are taken at even steps of coverage.

    Returns
    -------
    list of Point
        Most confident first; empty without answers.
    """
    rows = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.confidence) & ~np.isnan(table.correct))
    if not len(rows):
        return []
    confidence = table.confidence[rows]
    accepted, hits = levels(confidence, table.correct[rows])
    kept = np.arange(len(accepted))
    if len(kept) > most:
        wanted = np.linspace(1.0 / most, 1.0, most) * len(rows)
        kept = np.unique(np.minimum(np.searchsorted(accepted, wanted - 1e-9), len(accepted) - 1))
    threshold = np.sort(confidence)[::-1][accepted[kept].astype(np.int64) - 1]
    return [
        Point(c, int(a), a / len(rows), 1.0 - h / a)
        for c, a, h in zip(threshold.tolist(), accepted[kept].tolist(), hits[kept].tolist(), strict=True)
    ]
