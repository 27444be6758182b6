"""The metrics as a page and as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from steelyard.metrics.registry import FACTS, Metric
from steelyard.render.console import wrapped


def metrics_markdown(metrics: Sequence[Metric]) -> str:
    """A table of all metrics and a section on each."""
    return "\n".join(_table(metrics)) + "\n"


def _table(metrics: Sequence[Metric]) -> Iterator[str]:
    yield "| name | better | range | what it is |"
    yield "|---|---|---|---|"
    for metric in metrics:
        name = f"**`{metric.name}`**" if metric.shared else f"`{metric.name}`"
        yield f"| {name} | {metric.better} | {span_of(metric)} | {_cell(metric.summary)} |"
    for metric in metrics:
        yield ""
        yield f"### `{metric.name}`"
        yield ""
        yield f"{metric.summary}{' *Deep.*' if metric.deep else ''}"
        yield ""
        yield f"- Definition: `{metric.definition}`"
        for name in FACTS:
            yield f"- {name}: {_cell(metric.facts[name])}"


def _cell(text: str) -> str:
    # A bar would end the cell, a star begin emphasis and a bracket a tag.
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<").replace("_", "\\_")


def span_of(metric: Metric) -> str:
    """Range of a metric in words."""
    low = "-inf" if metric.low == -math.inf else f"{metric.low:g}"
    high = "inf" if metric.high == math.inf else f"{metric.high:g}"
    return f"{low} to {high}"


def metric_lines(metric: Metric) -> Iterator[str]:
    """Everything about one metric."""
    better = "neither way is better" if metric.better == "neither" else f"{metric.better} is better"
    yield f"{metric.name}: {better}, {span_of(metric)}{', deep' if metric.deep else ''}"
    yield from wrapped(metric.summary)
    yield f"definition: {metric.definition}"
    for name in FACTS:
        yield from wrapped(f"{name.lower()}: {metric.facts[name]}")
