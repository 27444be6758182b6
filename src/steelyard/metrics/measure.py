"""Every metric on the whole table and on every slice of it, from one sort by confidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.metrics import (
    accuracy,
    calibration,
    options,
    ordinal,
    proper,
    ranked_calibration,
    recalibration,
    selective,
)
from steelyard.metrics.decisions import DIMENSIONS, SCORED, Decisions, Ints
from steelyard.metrics.registry import METRICS, Measurement, Metric
from steelyard.metrics.view import Gathered, Settings, View
from steelyard.stats.grouping import first_positions, group_order, ragged
from steelyard.stats.ranking import falling_order

FAMILIES = (accuracy, ordinal, calibration, ranked_calibration, recalibration, options, proper, selective)
"""Modules whose import fills the registry, in the order reports show."""

Measured = dict[str, Measurement]


class Measurements(msgspec.Struct):
    """Measurements of a table: overall, and by dimension and value.

    A slice whose rows are all errored is there, and empty.
    """

    overall: Measured
    slices: dict[str, dict[str, Measured]]


def metrics_for(settings: Settings) -> list[Metric]:
    """The registered metrics, and one for each tolerance asked for."""
    extra = [
        Metric(
            f"score_within_{tolerance:g}",
            "higher",
            f"score_within/{tolerance:g}/1",
            0.0,
            1.0,
            partial(ordinal.score_within, tolerance=tolerance),
            True,
            False,
            f"Share of score answers within {tolerance:g} of the label.",
            {},
        )
        for tolerance in settings.score_within
    ]
    order = {family.__name__: at for at, family in enumerate(FAMILIES)}
    return [*sorted(METRICS.values(), key=lambda metric: order[metric.compute.__module__]), *extra]


def measure(
    table: Decisions,
    settings: Settings,
    dimensions: Sequence[str] = DIMENSIONS,
    only: Collection[str] | None = None,
) -> Measurements:
    """Measure a table and its slices.

    Parameters
    ----------
    table : Decisions
        May be empty: then nothing is measured.
    settings : Settings
    dimensions : sequence of str
        Which of DIMENSIONS to slice by.
    only : collection of str, optional
        Names of the metrics wanted; by default all.

    Returns
    -------
    Measurements
        Metrics without a single value are absent, never zero.
    """
    metrics = [metric for metric in metrics_for(settings) if only is None or metric.name in only]
    light = [metric for metric in metrics if not metric.deep]
    ranked = _by_confidence(table)
    whole = View(Gathered(table, None), 0, len(table), settings, ranked, whole=True)
    slices: dict[str, dict[str, Measured]] = {}
    for name in dimensions:
        wanted = metrics if name in settings.deep else light
        found = {value: _measured(wanted, view) for value, view in views(table, name, ranked, settings)}
        if found:
            slices[name] = dict(sorted(found.items()))
    return Measurements(_measured(metrics, whole), slices)


def _measured(metrics: Sequence[Metric], view: View) -> Measured:
    pairs = ((metric.name, metric.measure(view)) for metric in metrics)
    return {name: found for name, found in pairs if found is not None}


def _by_confidence(table: Decisions) -> Ints:
    """Rows with confidence and correctness, most confident first."""
    paired = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.confidence) & ~np.isnan(table.correct))
    return paired[falling_order(table.confidence[paired])]


def views(table: Decisions, name: str, ranked: Ints, settings: Settings) -> Iterator[tuple[str, View]]:
    """Every slice of a dimension that has rows.

    Parameters
    ----------
    table : Decisions
    name : str
        One of DIMENSIONS.
    ranked : int array
        Rows with confidence and correctness, most confident first.
    settings : Settings
    """
    rows, codes, values = table.dimension(name)
    order, bounds = group_order(codes, len(values))
    gathered = Gathered(table, order if rows is None else rows[order])
    pairs = ranked if rows is None else _expand(rows, ranked)
    by_slice, ranked_bounds = group_order(codes[pairs], len(values))
    inverse = np.empty(len(codes), np.int64)
    inverse[order] = np.arange(len(order))
    positions = inverse[pairs[by_slice]]
    for code, value in enumerate(values):
        start, stop = int(bounds[code]), int(bounds[code + 1])
        if stop > start:
            inside = positions[ranked_bounds[code] : ranked_bounds[code + 1]] - start
            yield value, View(gathered, start, stop, settings, inside)


def _expand(rows: Ints, ranked: Ints) -> NDArray[np.int64]:
    """Positions of the (row, code) pairs, which are sorted by row, in the rank order of their rows."""
    first = first_positions(rows, int(ranked.max(initial=-1)) + 1)
    return ragged(first[ranked], first[ranked + 1] - first[ranked])


def better_of(metric: str) -> str:
    """``higher``, ``lower`` or ``neither``; ``neither`` for names we do not know.

    >>> better_of("choice_accuracy"), better_of("latency_p50_ms"), better_of("x")
    ('higher', 'lower', 'neither')
    """
    if metric in METRICS:
        return METRICS[metric].better
    if metric.endswith("_ms"):
        return "lower"
    return "higher" if metric.startswith(("score_within_", "shortlist_", "tournament_")) else "neither"


def needs_confidence(metric: str) -> bool:
    """Whether the confidence column goes into a metric."""
    return metric in METRICS and "confidence" in METRICS[metric].facts["Needs"].lower()
