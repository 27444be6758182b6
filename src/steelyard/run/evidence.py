"""What a run and its baseline can show of a metric on a slice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from steelyard.core.comparison import Difference
from steelyard.core.gates import EVERY
from steelyard.core.requests import REASONS
from steelyard.errors import PolicyError, UnknownNameError
from steelyard.metrics.decisions import ERRORED, NOT_ASKED, SCORED, Decisions, Ints
from steelyard.metrics.measure import better_of, metrics_for
from steelyard.metrics.paired import Compared, slices_of, view_of
from steelyard.metrics.registry import METRICS, Measurement, Metric
from steelyard.metrics.view import Settings, View
from steelyard.run.compare import Comparing
from steelyard.run.reach import Reach, reach_of
from steelyard.run.side import Side
from steelyard.stats.clusters import Clusters, cluster_spread, influence_variance, rate_interval
from steelyard.stats.nulls import Z95

TIMES = ("latency_p50_ms", "latency_p95_ms", "cost_per_decision_p50_ms", "cost_per_decision_p95_ms")
MONEY = ("money_total", "money_per_row")
ANSWERED = "answered"
ERRORS = "errored"
_REASON = "errored:"
_WITHIN = re.compile(r"score_within_(\d+(?:\.\d+)?(?:e-?\d+)?)$")
Where = tuple[tuple[str, str], ...]


def facts() -> list[str]:
    """Names a limit may be on that are no metrics: of the run, not of its answers."""
    asked = [reason for reason in REASONS if reason not in ("unlabelled", "not_asked")]
    return [ANSWERED, ERRORS, *(f"{_REASON}{reason}" for reason in asked), *TIMES, *MONEY]


def is_fact(name: str) -> bool:
    """Whether a name is of the run: known for certain, so that evidence is always the value itself."""
    return name in (*TIMES, *MONEY) or name.startswith(ERRORS)


def better(name: str) -> str:
    """Which way is better, for metrics and facts."""
    if name == ANSWERED:
        return "higher"
    return "lower" if is_fact(name) else better_of(name)


def check_metric(name: str, where: Where) -> None:
    """Refuse a name no limit can be on.

    Raises
    ------
    PolicyError
        Unknown, with the nearest name; or a fact that has no slices.
    """
    known = [*METRICS, *facts()]
    if name not in known and not _WITHIN.match(name):
        raise PolicyError(str(UnknownNameError.among("metric", name, known)))
    if name in (*TIMES, *MONEY) and where:
        raise PolicyError(f"{name} is of the whole run; leave its slice out")


class Witness:
    """Measures what rules ask for, on any slice of a run and of its baseline.

    Parameters
    ----------
    ours : Side
    comparing : Comparing or None
    settings : Settings
    """

    def __init__(self, ours: Side, comparing: Comparing | None, settings: Settings) -> None:
        self.ours, self.comparing, self.settings = ours, comparing, settings

    def places(self, where: Where) -> list[Where]:
        """The slices a rule is on: every value of a ``*`` that the run or its baseline has."""
        if EVERY not in dict(where).values():
            return [where]
        found = {place for side in self._sides() for place in _places(side, where)}
        return sorted(found)

    def _sides(self) -> list[Side]:
        return [self.ours] + ([self.comparing.theirs] if self.comparing else [])

    def metric(self, name: str) -> Metric:
        """A metric by name, tolerances among them."""
        within = _WITHIN.match(name)
        if within and name not in METRICS:
            return metrics_for(Settings(score_within=(float(within[1]),)))[-1]
        return METRICS[name]

    def measure(self, side: Side, name: str, where: Where) -> tuple[Measurement | None, Reach | None]:
        """A metric or fact of a run on a slice, and how sure it is; None where it has no value."""
        if name in MONEY:
            counts = side.document.get("counts")
            return _money(counts.get("money") if isinstance(counts, dict) else None, name)
        if name in TIMES:
            found, _ = _recorded(side, name, where)
            return (None, None) if found is None else (found, Reach(found.value, 0.0, 0.0))
        if name == ANSWERED or name.startswith(ERRORS):
            # A document's cases do not say what became of the answers that are not there.
            if side.live and side.table is not None:
                return _fact(side.table, _rows(side.table, where), name)
            return (None, None) if where else _recorded_fact(side.document, name)
        if side.table is None:
            return _recorded(side, name, where)
        rows = _rows(side.table, where)
        view = view_of(side.table, rows, self.settings, listening=True)
        found = self.metric(name).measure(view)
        return (None, None) if found is None else (found, _reach(found, view))

    def difference(self, name: str, where: Where) -> Difference | None:
        """How far a metric moved on the answers of a slice that both runs have."""
        assert self.comparing is not None
        pairing = self.comparing.pairing
        if pairing is None:
            return None
        kept = _kept(pairing.ours, pairing.at, where)
        if not len(kept):
            return None
        return Compared(pairing.subset(kept), self.settings).difference(self.metric(name))


def _reach(found: Measurement, view: View) -> Reach:
    """How sure a measurement is; without an interval from what each answer does to it.

    A calibration error is biased upwards, by no more than what a calibrated model would read: that
    much further down may the truth be.
    """
    if found.interval is not None or view.heard is None:
        return reach_of(found)
    variance = influence_variance(view.heard.share * len(view), view.clusters(None))
    se = math.sqrt(view.heard.inflation * variance)
    if found.null is None:
        return reach_of(found) if se == 0.0 else Reach(found.value, se, se)
    bias = max(0.0, found.null.expectation)
    noise = max(se, (found.null.q95 - found.null.expectation) / Z95)
    return Reach(found.value, noise + bias / Z95, noise)


def _fact(table: Decisions, rows: Ints, name: str) -> tuple[Measurement | None, Reach | None]:
    rows = rows[table.status[rows] != NOT_ASKED]
    clusters = Clusters(table.cluster[rows])
    n, cases = len(rows), len(clusters)
    if not n:
        return None, None
    status = table.status[rows]
    if name == ANSWERED:
        answered = (status == SCORED).astype(np.float64)
        spread = cluster_spread(answered, clusters)
        found = Measurement(
            float(answered.mean()),
            n,
            cases,
            better="higher",
            interval=rate_interval(spread),
            method="Wilson on effective n",
        )
        return found, reach_of(found)
    wanted = status == ERRORED
    if name.startswith(_REASON):
        wanted = wanted & (table.reason[rows] == 1 + REASONS.index(name.removeprefix(_REASON)))
    count = float(np.count_nonzero(wanted))
    # What happened is counted, not estimated.
    return Measurement(count, n, cases, better="lower"), Reach(count, 0.0, 0.0)


def _money(said: Any, name: str) -> tuple[Measurement | None, Reach | None]:
    """What a run cost; nothing where the cost of a row is not known, which is not 0."""
    if not isinstance(said, dict) or said.get("rows_unknown") != 0 or not said.get("rows"):
        return None, None
    n, total = int(said["rows"]), float(said["total"])
    value = total if name == "money_total" else total / n
    return Measurement(value, n, n, better="lower"), Reach(value, 0.0, 0.0)


def _recorded(side: Side, name: str, where: Where) -> tuple[Measurement | None, Reach | None]:
    """What a report without cases says itself."""
    document: Any = side.document
    if len(where) > 1:
        return None, None
    block = document.get("measurements") if isinstance(document.get("measurements"), dict) else {}
    place: tuple[str, ...] = ("overall", name) if not where else ("slices", *where[0], name)
    said: Any = block
    plain: Any = document if place[0] in document else {"overall": document}
    for key in place:
        said = said.get(key) if isinstance(said, dict) else None
        plain = plain.get(key) if isinstance(plain, dict) else None
    if isinstance(said, dict):
        try:
            found = msgspec.convert(said, Measurement)
        except msgspec.ValidationError:
            return None, None
        return found, reach_of(found)
    if type(plain) not in (int, float) or not math.isfinite(plain):
        return None, None
    why = "the report holds no cases"
    return Measurement(float(plain), 0, 0, no_interval=why), Reach(float(plain), why=why)


def _recorded_fact(document: Mapping[str, Any], name: str) -> tuple[Measurement | None, Reach | None]:
    counts: Any = document.get("counts")
    if not isinstance(counts, dict):
        # As the peer has it: what was scored are the cases, what errored is listed.
        cases, config = document.get("cases"), document.get("config")
        listed = config.get("errored") if isinstance(config, dict) else None
        scored = len(cases) if isinstance(cases, list) else 0
        counts = {"scored": scored, "errored": len(listed) if isinstance(listed, list) else 0}
    scored, errored = counts.get("scored"), counts.get("errored")
    if type(scored) is not int or type(errored) is not int or not scored + errored:
        return None, None
    n = scored + errored
    if name == ANSWERED:
        value = scored / n
        return Measurement(value, n, 0, better="higher"), Reach(value, why="the report holds no cases")
    reasons: Any = counts.get("by_reason")
    if name != ERRORS and not isinstance(reasons, dict):
        return None, None
    count = float(errored if name == ERRORS else reasons.get(name.removeprefix(_REASON), 0))
    return Measurement(count, n, 0, better="lower"), Reach(count, 0.0, 0.0)


def _rows(table: Decisions, where: Where) -> Ints:
    every = np.arange(len(table))
    return every[_kept(table, every, where)]


def _kept(table: Decisions, rows: Ints, where: Where) -> Ints:
    """Positions of the rows that are in every one of these slices."""
    kept = np.arange(len(rows))
    for dimension, value in where:
        found = dict(slices_of(table, rows[kept], dimension))
        kept = kept[found.get(value, np.empty(0, np.int64))]
    return kept


def _places(side: Side, where: Where) -> Iterator[Where]:
    if side.table is not None:
        yield from _split(side.table, np.arange(len(side.table)), where, ())
    elif len(where) == 1:
        slices: Any = side.document.get("slices")
        values = slices.get(where[0][0]) if isinstance(slices, dict) else None
        for value in values if isinstance(values, dict) else ():
            yield ((where[0][0], value),)


def _split(table: Decisions, rows: Ints, where: Where, done: Where) -> Iterator[Where]:
    if not where:
        yield done
        return
    (dimension, wanted), *rest = where
    for value, positions in slices_of(table, rows, dimension):
        if wanted in (EVERY, value):
            yield from _split(table, rows[positions], tuple(rest), (*done, (dimension, value)))
