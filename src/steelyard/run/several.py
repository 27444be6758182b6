"""Several runs side by side, and every two of them on the answers they share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from steelyard.core.comparison import Contestant, Match, Reading, Several
from steelyard.metrics.measure import measure
from steelyard.metrics.paired import Compared
from steelyard.metrics.registry import Measurement
from steelyard.metrics.view import Settings
from steelyard.run.compare import JUDGED, Comparing
from steelyard.run.side import Side
from steelyard.run.verdict import judgement
from steelyard.stats.multiplicity import benjamini_hochberg

SHOWN = ("accuracy", "score_mae", "ece", "brier_multiclass", "aurc")


def side_by_side(sides: Sequence[Side], settings: Settings) -> Several:
    """Measure each run, and compare every two on the answers both scored.

    Parameters
    ----------
    sides : sequence of Side
    settings : Settings

    Returns
    -------
    Several
        Runs of other datasets are joined on what they share; the notes say so.
    """
    notes: list[str] = []
    matches: list[Match] = []
    for first, second in combinations(sides, 2):
        comparing = Comparing(first, second, settings)
        if comparing.conflicts:
            keys = ", ".join(text.split(" ", 1)[0] for text in comparing.conflicts)
            notes.append(
                f"{first.name} and {second.name} have another {keys}: joined where states and labels agree"
            )
        matches += _matches(comparing)
    return Several([_contestant(side, settings) for side in sides], _adjusted(matches), notes)


def _contestant(side: Side, settings: Settings) -> Contestant:
    engine: Any = side.document.get("engine")
    name = engine.get("name") if isinstance(engine, dict) else None
    if side.table is None:
        return Contestant(side.name, name, {})
    found = measure(side.table, settings, (), SHOWN).overall
    return Contestant(side.name, name, {key: _reading(found[key]) for key in SHOWN if key in found})


def _reading(found: Measurement) -> Reading:
    expectation = None if found.null is None else found.null.expectation
    return Reading(found.value, found.n, found.cases, found.interval, expectation)


def _matches(comparing: Comparing) -> list[Match]:
    first, second = comparing.ours.name, comparing.theirs.name
    if comparing.pairing is None or comparing.unpaired:
        return [Match(first, second, "", None, why=comparing.unpaired)]
    metrics = [metric for metric in comparing.metrics() if metric.name in JUDGED]
    found = Compared(comparing.pairing, comparing.settings).differences(metrics)
    return [Match(first, second, one.metric, one, word=judgement(one).text) for one in found]


def _adjusted(matches: list[Match]) -> list[Match]:
    """The matches with p adjusted for how many there are on the same metric."""
    q: dict[int, float] = {}
    for metric in JUDGED:
        tested = {
            at: one.found.p
            for at, one in enumerate(matches)
            if one.metric == metric and one.found is not None and one.found.p is not None
        }
        found = benjamini_hochberg(np.array(list(tested.values()), np.float64)).tolist()
        q |= dict(zip(tested, found, strict=True))
    return [msgspec.structs.replace(one, q=q.get(at)) for at, one in enumerate(matches)]
