"""A run beside its baseline, and several runs beside each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.core.comparison import (
    Comparison,
    Delta,
    Difference,
    Direction,
    Flip,
    Joining,
    Judgement,
    Paired,
    SliceDifference,
)
from steelyard.core.questions import KINDS
from steelyard.errors import IncomparableError
from steelyard.metrics.decisions import DIMENSIONS, Decisions
from steelyard.metrics.measure import metrics_for
from steelyard.metrics.paired import Compared, Pairing, slices_of
from steelyard.metrics.registry import Metric
from steelyard.metrics.view import Settings
from steelyard.run.drift import IDENTITY, Drift, check_tolerances, conflicts
from steelyard.run.mix import check_confidence_mix
from steelyard.run.pairing import pair
from steelyard.run.side import Side
from steelyard.run.verdict import MARGIN, judgement
from steelyard.stats.multiplicity import benjamini_hochberg, benjamini_yekutieli

ON_SLICES = ("choice_accuracy", "noul_accuracy", "score_mae")
MOST_FLIPS = 1000
JUDGED = ("accuracy", "score_mae")
"""What the verdict in words is on, where a run has it."""


class Comparing:
    """Two runs, joined when first wanted.

    Parameters
    ----------
    ours, theirs : Side
        The run and its baseline.
    settings : Settings
    """

    def __init__(self, ours: Side, theirs: Side, settings: Settings | None = None) -> None:
        self.ours, self.theirs = ours, theirs
        self.settings = _within(settings or Settings(), ours, theirs)
        self.drift = Drift(ours.document, theirs.document, _mixed(ours, theirs), (ours.name, theirs.name))
        self.conflicts = conflicts(ours.config, theirs.config)
        self.pairing: Pairing | None = None
        self.joining: Joining | None = None
        self.unpaired: str | None = None
        try:
            self.pairing, self.joining = pair(ours, theirs)
            if not len(self.pairing):
                self.unpaired = "no answer was scored in both runs on the same state and label"
        except IncomparableError as error:
            self.unpaired = str(error)

    def metrics(self) -> list[Metric]:
        """Every metric whose two values are the same measure."""
        return [metric for metric in metrics_for(self.settings) if not self.drift.incomparable(metric.name)]

    def compare(
        self,
        tolerances: Mapping[str, float] | None = None,
        direction: Direction = "both",
        *,
        margins: Mapping[str, float] | None = None,
        dimensions: Sequence[str] = DIMENSIONS,
    ) -> Comparison:
        """Everything there is to say.

        Parameters
        ----------
        tolerances : mapping of str to float
            How far a metric may drift; the others not at all.
        direction : str
            ``worse`` lets metrics move freely to their better side.
        margins : mapping of str to float
            Within which a change does not matter; others have `MARGIN`.
        dimensions : sequence of str
            To slice by.

        Raises
        ------
        PolicyError
            A tolerance that could not fail.
        """
        deltas: list[Delta] = self.drift.deltas(check_tolerances(tolerances or {}), direction)
        here, there = self.ours.config, self.theirs.config
        return Comparison(
            candidate=self.ours.name,
            baseline=self.theirs.name,
            identity={key: (there.get(key), here.get(key)) for key in IDENTITY},
            conflicts=self.conflicts,
            deltas=deltas,
            paired=None if self.unpaired else self._paired(margins or {}, dimensions),
            unpaired=self.unpaired,
        )

    def _paired(self, margins: Mapping[str, float], dimensions: Sequence[str]) -> Paired:
        assert self.pairing is not None
        assert self.joining is not None
        found = Compared(self.pairing, self.settings).differences(self.metrics())
        judged = judgements(found, {*JUDGED, *margins}, margins)
        flips, lost, gained, changed = _flips(self.pairing, self.ours)
        return Paired(
            joining=self.joining,
            differences=found,
            judgements=judged,
            slices=[one for name in dimensions for one in self._slices(name)],
            flips=flips,
            lost=lost,
            gained=gained,
            changed=changed,
        )

    def _slices(self, dimension: str) -> Iterator[SliceDifference]:
        """Headline differences on each value of a dimension, with q-values among all of them."""
        assert self.pairing is not None
        metrics = [metric for metric in self.metrics() if metric.name in ON_SLICES]
        found: list[tuple[str, bool, Difference]] = []
        for value, kept in slices_of(self.pairing.ours, self.pairing.at, dimension):
            own = Compared(self.pairing.subset(kept), Settings(bins=self.settings.bins))
            found += [(value, len(kept) < len(self.pairing), one) for one in own.differences(metrics)]
        tested = [one.p for *_, one in found if one.p is not None]
        # Rows have several tags, so their tests may depend on each other in any way.
        adjust = benjamini_yekutieli if dimension == "tag" else benjamini_hochberg
        q = iter(adjust(np.array(tested, np.float64)).tolist())
        for value, part, one in found:
            yield SliceDifference(dimension, value, one, None if one.p is None else next(q), part)


def _within(settings: Settings, *sides: Side) -> Settings:
    """The settings, with every tolerance either run was scored with."""
    said = [side.config.get("score_within") for side in sides]
    found = {float(one) for own in said if isinstance(own, list) for one in own if type(one) in (int, float)}
    within = (*settings.score_within, *sorted(found - set(settings.score_within)))
    return msgspec.structs.replace(settings, score_within=within)


def judgements(
    found: Sequence[Difference], wanted: Collection[str], margins: Mapping[str, float]
) -> list[Judgement]:
    """The differences asked for, in words."""
    return [judgement(one, margins.get(one.metric, MARGIN)) for one in found if one.metric in wanted]


def _mixed(ours: Side, theirs: Side) -> str | None:
    """Why the confidences of two runs are not the same measure, where both reports say."""
    mixes = [side.document.get("confidence") for side in (ours, theirs)]
    here, there = (mix.get("mix") if isinstance(mix, dict) else None for mix in mixes)
    if not isinstance(here, dict) or not isinstance(there, dict):
        return None
    try:
        check_confidence_mix(here, there, ("this run", "the baseline"))
    except IncomparableError as error:
        return str(error)
    return None


def _flips(pairing: Pairing, ours: Side) -> tuple[list[Flip], int, int, int]:
    """Answers only one run has right, how many were lost and gained, and how many changed otherwise."""
    mine, yours, at, other = pairing.ours, pairing.theirs, pairing.at, pairing.other
    here, there = mine.correct[at], yours.correct[other]
    moved = np.flatnonzero((here != there) & ~np.isnan(here) & ~np.isnan(there))
    answers = [_answers(table, rows) for table, rows in ((mine, at), (yours, other))]
    changed = int(np.count_nonzero((answers[0] != answers[1]) & ((here == there) | np.isnan(here))))
    sure = np.nan_to_num(mine.confidence[at], nan=-1.0)
    flips, counts = [], []
    for side in (0.0, 1.0):
        own = moved[here[moved] == side]
        counts.append(len(own))
        surest = own[np.argsort(-sure[own], kind="stable")][:MOST_FLIPS].tolist()
        flips += [_flip(pairing, ours, answers, place) for place in surest]
    return flips, counts[0], counts[1], changed


def _flip(pairing: Pairing, ours: Side, answers: Sequence[Any], place: int) -> Flip:
    table, row = pairing.ours, int(pairing.at[place])
    other = int(pairing.other[place])
    of = int(table.row[row])
    case = None if ours.dataset is None else ours.dataset.case(of)
    key = None if ours.keys is None else ours.keys[of]
    known = of if key is None or key.row is None else key.row
    language = int(table.language[row])
    confidences = pairing.theirs.confidence[other], table.confidence[row]
    before, after = (None if np.isnan(found) else float(found) for found in confidences)
    return Flip(
        place=ours.dataset.place(of) if ours.dataset is not None else f"row {known}",
        line=None if case is None else case.line,
        row=known,
        id=case.id if case is not None else (key.id if key is not None else None),
        question=table.names.qids[table.qid[row]],
        gained=bool(table.correct[row]),
        expected=_side(table, int(table.kind[row]), int(table.gold_label[row]), float(table.gold[row])),
        baseline=answers[1][place],
        candidate=answers[0][place],
        baseline_confidence=before,
        candidate_confidence=after,
        language=table.names.languages[language] if language >= 0 else None,
        state=None if case is None else _text(case.state),
    )


def _answers(table: Decisions, rows: Any) -> Any:
    """What each answer says: a label, a side, or a level."""
    labels = np.array([*table.names.labels, None], object)[table.pred_label[rows]]
    kind, value = table.kind[rows], table.value[rows]
    sides = np.where(value >= 0.5, True, False).astype(object)
    return np.where(kind == 0, labels, np.where(kind == 2, sides, value.astype(object)))


def _side(table: Decisions, kind: int, label: int, gold: float) -> Any:
    return table.names.labels[label] if KINDS[kind] == "choice" else bool(gold) if kind == 2 else gold


def _text(state: Any) -> str:
    from steelyard.formats.jsontext import pretty

    return state if isinstance(state, str) else pretty(state, indent=None)
