"""What accuracy is worth: beside answers that never read the state."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.metrics.derived import column
from steelyard.metrics.estimates import ROUNDING
from steelyard.stats.clusters import Clusters, cluster_spread, mean_interval, rate_interval

Pair = tuple[float, float]
BASELINES = {
    "majority": "majority_hit",
    "uniform": "uniform_hit",
    "class_prior": "prior_hit",
    "first_option": "first_option_hit",
}
"""Baselines to the column of their chance of being right: always the commonest label of the question,
any option alike, labels as often as they occur (the label itself left out), and the option listed first."""
ABOVE, BELOW, UNCLEAR = "above", "below", "not told apart"


class Against(msgspec.Struct, frozen=True):
    """Accuracy against one baseline, on the same answers.

    Attributes
    ----------
    accuracy : float
        Of the baseline, expected where it is a draw.
    difference, interval
        Model less baseline, and its 95 % interval; None with fewer than two cases.
    skill : float or None
        ``(model - baseline) / (1 - baseline)``; None where the baseline is always right.
    verdict : str
        ``above`` or ``below`` where the interval leaves 0 out, else ``not told apart``.
    n : int
        Answers that have this baseline.
    """

    accuracy: float
    difference: float
    interval: Pair | None
    skill: float | None
    verdict: str
    n: int


class Panel(msgspec.Struct, frozen=True):
    """Accuracy of choice and yes/no answers, and every baseline beside it."""

    accuracy: float
    interval: Pair
    n: int
    cases: int
    baselines: dict[str, Against]


class Baselines(msgspec.Struct, frozen=True):
    """Panels overall, and by question id; None when no choice or yes/no answer was scored."""

    overall: Panel | None
    questions: dict[str, Panel]


def baseline_panels(table: Decisions, asked: Mapping[str, Floats] | None = None) -> Baselines:
    """Panels overall and by question id.

    Parameters
    ----------
    table : Decisions
    asked : mapping of str to array, shape (len(table),), optional
        Further baselines by name: 1 or 0 where one was right or wrong, NaN where it has no answer.

    Returns
    -------
    Baselines
        Source of skill: chance-corrected as Cohen 1960.
    """
    rows = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.correct))
    columns = {name: column(table, made) for name, made in BASELINES.items()} | dict(asked or {})
    by_question = {name: rows[table.qid[rows] == code] for code, name in enumerate(table.names.qids)}
    return Baselines(
        _panel(table, rows, columns) if len(rows) else None,
        {name: _panel(table, own, columns) for name, own in by_question.items() if len(own)},
    )


def _panel(table: Decisions, rows: Ints, columns: Mapping[str, Floats]) -> Panel:
    correct, clusters = table.correct[rows], Clusters(table.cluster[rows])
    spread = cluster_spread(correct, clusters)
    against = {}
    for name, values in columns.items():
        other = values[rows]
        there = ~np.isnan(other)
        if there.any():
            against[name] = _against(correct[there], other[there], Clusters(table.cluster[rows[there]]))
    return Panel(float(correct.mean()), rate_interval(spread), len(rows), len(clusters), against)


def _against(correct: Floats, other: Floats, clusters: Clusters) -> Against:
    ours, theirs = float(correct.mean()), float(other.mean())
    moved = cluster_spread(correct - other, clusters)
    interval = mean_interval(moved)
    if interval and moved.se <= ROUNDING:
        # No difference varies; what the accuracy itself may be is what is left to be unsure of.
        low, high = rate_interval(cluster_spread(correct, clusters))
        interval = (low - theirs, high - theirs)
    verdict = UNCLEAR
    if interval and not interval[0] <= 0.0 <= interval[1]:
        verdict = ABOVE if interval[0] > 0 else BELOW
    skill = (ours - theirs) / (1.0 - theirs) if theirs < 1.0 else None
    return Against(theirs, ours - theirs, interval, skill, verdict, len(correct))
