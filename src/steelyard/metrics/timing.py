"""How long calls took."""

from __future__ import annotations

import statistics

import numpy as np

from steelyard.metrics.decisions import Floats


def median_and_p95(values: Floats) -> tuple[float, float]:
    """Median, and the 95th percentile by nearest rank.

    Parameters
    ----------
    values : array, shape (n,)
        n >= 1.

    >>> median_and_p95(np.arange(1.0, 22.0))
    (11.0, 20.0)
    """
    ordered = np.sort(values).tolist()
    return statistics.median(ordered), ordered[(95 * len(ordered) + 99) // 100 - 1]


def timing_metrics(ms: Floats, shared: Floats) -> dict[str, float]:
    """Latency and cost of the rows whose call returned, in milliseconds.

    Parameters
    ----------
    ms : array, shape (rows,)
        Wall time of the call that answered each row; NaN for rows whose call failed.
    shared : array, shape (rows,)
        Rows that shared the call.

    Returns
    -------
    dict
        Latency gives every row the whole call, cost its share; empty when no call returned.
    """
    returned = ~np.isnan(ms)
    if not returned.any():
        return {}
    latency = median_and_p95(ms[returned])
    cost = median_and_p95(ms[returned] / shared[returned])
    return {
        "latency_p50_ms": latency[0],
        "latency_p95_ms": latency[1],
        "cost_per_decision_p50_ms": cost[0],
        "cost_per_decision_p95_ms": cost[1],
    }
