"""How many cases an evaluation needs, from what a pilot run showed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.errors import IncomparableError
from steelyard.formats.dataset import Dataset
from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.run.saved import read_saved_run
from steelyard.stats.bins import bin_index, binned_null, within_bins_deff
from steelyard.stats.clusters import Clusters, cluster_spread
from steelyard.stats.power import (
    accepted_to_certify,
    paired_cases,
    paired_mde,
    unpaired_cases,
    unpaired_mde,
)
from steelyard.stats.ranking import accepted_at, levels

PILOT_DISCORDANCE, PILOT_RATE = 0.1, 0.8


class Pilot(msgspec.Struct, frozen=True):
    """What pilot runs say of the variances.

    Attributes
    ----------
    answers, cases : int
    rate : float
        Accuracy of choice and yes/no answers.
    deff : float
        Design effect: of the paired differences with two runs, of right and wrong with one.
    answers_per_case : float
    discordance : float or None
        Share of answers only one of two runs gets right; None with one run.
    ece_q95 : float
        95th percentile of the calibration error of a calibrated model on these confidences.
    risks : dict
        Risk observed at a coverage of 0.5, 0.8, 0.9 and 1.
    """

    answers: int
    cases: int
    rate: float
    deff: float
    answers_per_case: float
    discordance: float | None
    ece_q95: float
    risks: dict[str, float]


class Need(msgspec.Struct, frozen=True):
    """One aim and what it takes.

    `cases` is None where no number of cases is enough.
    """

    aim: str
    cases: int | None
    assuming: str


def read_pilot(folders: Sequence[str | Path], dataset: Dataset, bins: int = 15) -> Pilot:
    """Take the variances from one or two finished runs.

    Raises
    ------
    IncomparableError, ReportError
        A run is of other data, unfinished or damaged; or nothing in it was scored.
    """
    tables = [read_saved_run(folder, dataset).table(dataset) for folder in folders]
    # Runs of fewer rows answer the first ones, so what all have is the shortest.
    shared = min(map(len, tables))
    rows = np.flatnonzero(np.logical_and.reduce([_scored(table)[:shared] for table in tables]))
    if not len(rows):
        raise IncomparableError(
            f"{folders[0]}: no choice or yes/no answer was scored, so there is nothing to plan on"
        )
    table = tables[0]
    correct, clusters = table.correct[rows], Clusters(table.cluster[rows])
    discordance, moved = None, correct
    if len(tables) > 1:
        moved = tables[1].correct[rows] - correct
        discordance = float(np.count_nonzero(moved)) / len(rows)
    confidence = table.confidence[rows]
    return Pilot(
        len(rows),
        len(clusters),
        float(correct.mean()),
        cluster_spread(moved, clusters).deff,
        len(rows) / len(clusters),
        discordance,
        _noise(confidence, correct, table.cluster[rows], bins),
        _risks(confidence, correct),
    )


def _noise(confidence: Floats, correct: Floats, cluster: Ints, bins: int) -> float:
    """95th percentile of the calibration error these confidences read when they are calibrated."""
    stated = ~np.isnan(confidence)
    if not stated.any():
        return 0.0
    p, found, codes = confidence[stated], bin_index(confidence[stated], bins), Clusters(cluster[stated])
    deff = within_bins_deff(correct[stated] - p, codes.compact, found, bins)
    return binned_null(p, bins, found, 0.0, deff).q95


def _scored(table: Decisions) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (table.status == SCORED) & ~np.isnan(table.correct)
    return found


def _risks(confidence: Floats, correct: Floats) -> dict[str, float]:
    accepted, hits = levels(confidence, correct)
    found = {}
    for coverage in (0.5, 0.8, 0.9, 1.0):
        at = accepted_at(accepted, coverage)
        found[f"{coverage:g}"] = float(1.0 - hits[at] / accepted[at])
    return found


class Aims(msgspec.Struct, frozen=True):
    """What is wanted; None leaves an aim out.

    Attributes
    ----------
    drop : float
        Change of accuracy that must show.
    cases : int
        Cases at hand: the smallest change they show is worked out.
    risk, coverage, true_risk : float
        Certify a risk at a coverage, given what it truly is.
    ece : float
        Calibration error that chance alone must stay below 19 times in 20.
    power, alpha : float
    discordance, rate, deff : float
        Override the pilot.
    """

    drop: float | None = None
    cases: int | None = None
    risk: float | None = None
    coverage: float = 1.0
    true_risk: float | None = None
    ece: float | None = None
    power: float = 0.8
    alpha: float = 0.05
    discordance: float | None = None
    rate: float | None = None
    deff: float | None = None


def plan(aims: Aims, pilot: Pilot | None = None) -> list[Need]:
    """Cases for each aim.

    Parameters
    ----------
    aims : Aims
    pilot : Pilot, optional
        Without one, a discordance of 0.1, an accuracy of 0.8, a design effect of 1 and one answer a case
        are assumed, and said to be.

    Returns
    -------
    list of Need
        Answers are turned into cases by the pilot's answers a case.
    """
    planner = _Planner(aims, pilot)
    needs: list[Need] = []
    if aims.drop is not None:
        needs += planner.to_see(aims.drop)
    if aims.cases is not None:
        needs += planner.seen_by(aims.cases)
    if aims.risk is not None:
        needs.append(planner.to_certify(aims.risk))
    if aims.ece is not None:
        needs.append(planner.to_quieten(aims.ece))
    return needs


def _taken(given: float | None, measured: float | None, assumed: float) -> tuple[float, str]:
    """The first there is, and which it was; a measured zero is a measurement."""
    if given is not None:
        return given, "given"
    return (assumed, "assumed") if measured is None else (measured, "measured")


class _Planner:
    def __init__(self, aims: Aims, pilot: Pilot | None) -> None:
        self.aims, self.pilot = aims, pilot
        self.per_case = pilot.answers_per_case if pilot else 1.0
        deff, rate, differ = (pilot.deff, pilot.rate, pilot.discordance) if pilot else (None, None, None)
        self.deff, _ = _taken(aims.deff, deff, 1.0)
        self.discordance, said = _taken(aims.discordance, differ, PILOT_DISCORDANCE)
        tail = f"design effect {self.deff:.2f}, {self.per_case:.2f} answers a case"
        self.paired = f"discordance {self.discordance:.4f} ({said}), {tail}"
        self.rate, said = _taken(aims.rate, rate, PILOT_RATE)
        self.unpaired = f"accuracy {self.rate:.4f} ({said}), {tail}"

    def _cases(self, answers: float) -> int:
        return max(1, int(np.ceil(answers / self.per_case - 1e-9)))

    def to_see(self, drop: float) -> list[Need]:
        aims = self.aims
        how = f"power {aims.power:g}, two-sided {aims.alpha:g}"
        paired = None
        if drop <= self.discordance:
            paired = self._cases(
                paired_cases(drop, self.discordance, power=aims.power, alpha=aims.alpha, deff=self.deff)
            )
        apart = None
        if drop < self.rate:
            apart = self._cases(
                unpaired_cases(self.rate, drop, power=aims.power, alpha=aims.alpha, deff=self.deff)
            )
        return [
            Need(f"see a change of {drop:g} on the same cases ({how})", paired, self.paired),
            Need(f"see a drop of {drop:g} between separate sets, each ({how})", apart, self.unpaired),
        ]

    def seen_by(self, cases: int) -> list[Need]:
        aims, answers = self.aims, round(cases * self.per_case)
        same = paired_mde(answers, self.discordance, power=aims.power, alpha=aims.alpha, deff=self.deff)
        apart = unpaired_mde(answers, self.rate, power=aims.power, alpha=aims.alpha, deff=self.deff)
        return [
            Need(f"smallest change seen on the same cases: {_shown(same)}", cases, self.paired),
            Need(f"smallest drop seen between separate sets: {_shown(apart)}", cases, self.unpaired),
        ]

    def to_certify(self, risk: float) -> Need:
        aims = self.aims
        true, said = aims.true_risk, "given"
        if true is None and self.pilot is not None:
            nearest = min(self.pilot.risks, key=lambda name: abs(float(name) - aims.coverage))
            true, said = self.pilot.risks[nearest], f"the pilot's at coverage {nearest}"
        if true is None:
            true, said = risk / 2.0, "assumed"
        aim = f"certify a risk of at most {risk:g} at coverage {aims.coverage:g}"
        aim += f" (95 % sure, power {aims.power:g})"
        assuming = f"true risk {true:.4f} ({said}), design effect {self.deff:.2f}"
        if true >= risk:
            return Need(aim, None, assuming)
        accepted = accepted_to_certify(risk, true, power=aims.power)
        return Need(aim, self._cases(accepted * self.deff / aims.coverage), assuming)

    def to_quieten(self, limit: float) -> Need:
        aim = f"keep the calibration error of a calibrated model below {limit:g} 19 times in 20"
        if self.pilot is None or not self.pilot.ece_q95:
            return Need(aim, None, "needs a pilot run: it depends on the confidences")
        answers = self.pilot.answers * (self.pilot.ece_q95 / limit) ** 2
        return Need(
            aim,
            self._cases(answers),
            f"confidences as in the pilot, where it stays below {self.pilot.ece_q95:.4f}",
        )


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
