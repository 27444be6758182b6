"""Every metric on the whole table and on every slice of it, from one sort by confidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.metrics import accuracy, calibration, coverage, ordinal, proper
from steelyard.metrics.decisions import DIMENSIONS, SCORED, Decisions, Ints
from steelyard.metrics.registry import METRICS, Gathered, Measurement, Metric, Ranked, Settings, View
from steelyard.stats.coverage import ranked_levels
from steelyard.stats.grouping import first_positions, group_order, ragged

FAMILIES = (accuracy, ordinal, calibration, proper, coverage)
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
            partial(ordinal.score_within, tolerance=tolerance),
            True,
            f"Share of score answers within {tolerance:g} of the label.",
        )
        for tolerance in settings.score_within
    ]
    return [*METRICS.values(), *extra]


def measure(table: Decisions, settings: Settings, dimensions: Sequence[str] = DIMENSIONS) -> Measurements:
    """Measure a table and its slices.

    Parameters
    ----------
    table : Decisions
        May be empty: then nothing is measured.
    settings : Settings
    dimensions : sequence of str
        Which of DIMENSIONS to slice by.

    Returns
    -------
    Measurements
        Metrics without a single value are absent, never zero.
    """
    metrics = metrics_for(settings)
    ranked = _by_confidence(table)
    whole = View(Gathered(table, None), 0, len(table), settings, _ranked(table, ranked))
    slices: dict[str, dict[str, Measured]] = {}
    for name in dimensions:
        found = {value: _measured(metrics, view) for value, view in _views(table, name, ranked, settings)}
        if found:
            slices[name] = dict(sorted(found.items()))
    return Measurements(_measured(metrics, whole), slices)


def _measured(metrics: Sequence[Metric], view: View) -> Measured:
    pairs = ((metric.name, metric.compute(view)) for metric in metrics)
    return {name: found for name, found in pairs if found is not None}


def _by_confidence(table: Decisions) -> Ints:
    """Rows with confidence and correctness, most confident first."""
    paired = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.confidence) & ~np.isnan(table.correct))
    return paired[np.argsort(-table.confidence[paired], kind="stable")]


def _ranked(table: Decisions, rows: Ints) -> Ranked | None:
    if not len(rows):
        return None
    confidence = table.confidence[rows]
    accepted, hits = ranked_levels(confidence, table.correct[rows])
    return Ranked(confidence, accepted, hits)


def _views(table: Decisions, name: str, ranked: Ints, settings: Settings) -> Iterator[tuple[str, View]]:
    rows, codes, values = table.dimension(name)
    order, bounds = group_order(codes, len(values))
    gathered = Gathered(table, order if rows is None else rows[order])
    ranked_rows, ranked_codes = (ranked, codes[ranked]) if rows is None else _expand(rows, codes, ranked)
    by_slice, ranked_bounds = group_order(ranked_codes, len(values))
    ranked_rows = ranked_rows[by_slice]
    for code, value in enumerate(values):
        if bounds[code + 1] > bounds[code]:
            inside = ranked_rows[ranked_bounds[code] : ranked_bounds[code + 1]]
            yield (
                value,
                View(gathered, int(bounds[code]), int(bounds[code + 1]), settings, _ranked(table, inside)),
            )


def _expand(rows: Ints, codes: NDArray[np.int32], ranked: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Rank order carried over to (row, code) pairs, which are sorted by row."""
    first = first_positions(rows, int(ranked.max(initial=-1)) + 1)
    pairs = ragged(first[ranked], first[ranked + 1] - first[ranked])
    return rows[pairs], codes[pairs]
