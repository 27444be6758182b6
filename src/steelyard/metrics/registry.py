"""Metrics by name. Adding one is a function with a decorator; the rest follows from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from steelyard.metrics.view import View
from steelyard.stats.nulls import Null

UNBOUNDED = math.inf
FACTS = ("Formula", "Needs", "Beware", "Source")
"""What the docstring of a metric says after its first line, a paragraph each."""


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A metric's value on one slice, with everything needed to trust it or not.

    Attributes
    ----------
    value : float
    n, cases : int
        Answers the value is over, and the distinct clusters they came from.
    better : str
        ``higher``, ``lower`` or ``neither``.
    definition : str
        Id under which two numbers may be compared, such as ``ece/15-equal-width/1``.
    interval : (float, float) or None
        95 %; `method` names how, and `no_interval` says why there is none.
    deff : float or None
        Design effect: how many answers of clustered cases carry the information of one.
    null : Null or None
        What perfect calibration reads on the same confidences.
    details : dict
        Further facts, such as the answers a coverage cut accepted.
    """

    value: float
    n: int
    cases: int
    better: str = ""
    definition: str = ""
    interval: tuple[float, float] | None = None
    method: str | None = None
    no_interval: str | None = None
    deff: float | None = None
    null: Null | None = None
    details: dict[str, Any] | None = None


Compute = Callable[[View], Measurement | None]


class Metric(msgspec.Struct, frozen=True):
    """A registered metric.

    Attributes
    ----------
    name, better : str
    definition : str
        A template: ``{bins}`` stands for the bins of the settings.
    low, high : float
        Range of the value.
    compute : callable
    shared : bool
        The peer's own: it goes into `overall` and `slices` under its name.
    deep : bool
        Too dear for every slice: measured overall, and where the settings name the dimension.
    summary : str
    facts : dict
        FACTS to text.
    """

    name: str
    better: str
    definition: str
    low: float
    high: float
    compute: Compute
    shared: bool
    deep: bool
    summary: str
    facts: dict[str, str]

    def measure(self, view: View) -> Measurement | None:
        """The metric on one slice; None where it has no value."""
        found = self.compute(view)
        if found is None:
            return None
        definition = self.definition.format(bins=view.settings.bins)
        return msgspec.structs.replace(found, better=self.better, definition=definition)


METRICS: dict[str, Metric] = {}


def metric(
    name: str,
    *,
    better: str,
    definition: str,
    low: float = 0.0,
    high: float = 1.0,
    shared: bool = False,
    deep: bool = False,
) -> Callable[[Compute], Compute]:
    """Register a metric; its docstring says what it is.

    Raises
    ------
    ValueError
        The name is taken.
    """

    def register(compute: Compute) -> Compute:
        if name in METRICS:
            raise ValueError(f"metric {name} is registered twice")
        summary, facts = described(compute.__doc__ or "")
        METRICS[name] = Metric(name, better, definition, low, high, compute, shared, deep, summary, facts)
        return compute

    return register


def described(docstring: str) -> tuple[str, dict[str, str]]:
    """First line of a metric's docstring, and its facts.

    >>> described("Share.\\n\\n    Needs: labels\\n        and answers.\\n    Source: none.")
    ('Share.', {'Needs': 'labels and answers.', 'Source': 'none.'})
    """
    summary, _, rest = docstring.strip().partition("\n")
    parts = re.split(rf"^\s*({'|'.join(FACTS)}): ", rest, flags=re.MULTILINE)
    facts = {name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return summary, facts
