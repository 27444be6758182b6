"""What a comparison of runs says."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Pair = tuple[float, float]
Direction = Literal["both", "worse"]


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One overall metric beside its baseline.

    Attributes
    ----------
    metric : str
    baseline, tolerance : float
    value, diff : float or None
        None where the run lacks the metric, or the two are not compared.
    ok : bool
    missing : bool
    incomparable : str or None
        Why the two numbers are not the same measure.
    improved : bool
        It moved too far, but to the better.
    """

    metric: str
    baseline: float
    tolerance: float
    ok: bool
    value: float | None = None
    diff: float | None = None
    missing: bool = False
    incomparable: str | None = None
    improved: bool = False


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric of a run less that of the baseline, on the answers both have.

    Attributes
    ----------
    metric, better, definition : str
    candidate, baseline, value : float
        Both values, and the first less the second.
    n, cases : int
    interval : (float, float) or None
        95 %; `method` names how, `no_interval` says why there is none.
    se : float or None
        Standard error, cases kept together; `df` its degrees of freedom.
    p : float or None
        Two-sided, that the two are equal; `test` names how.
    mde : float or None
        The change that shows with 80 % power at the two-sided level of 5 %.
    gains, losses : int or None
        For rates: answers only the run, or only the baseline, has right.
    """

    metric: str
    better: str
    definition: str
    candidate: float
    baseline: float
    value: float
    n: int
    cases: int
    interval: Pair | None = None
    method: str | None = None
    no_interval: str | None = None
    se: float | None = None
    df: int = 0
    p: float | None = None
    test: str | None = None
    mde: float | None = None
    gains: int | None = None
    losses: int | None = None
    deff: float = 1.0


class SliceDifference(msgspec.Struct, frozen=True):
    """A difference on one slice.

    Attributes
    ----------
    q : float or None
        p among the slices of the dimension; None without a p.
    part : bool
        Whether the slice leaves anything out.
    """

    dimension: str
    value: str
    found: Difference
    q: float | None
    part: bool


class Flip(msgspec.Struct, frozen=True):
    """An answer that only one of two runs has right.

    `state` is None where the dataset was not at hand; `place` is then the row.
    """

    place: str
    line: int | None
    row: int
    id: str | int | None
    question: str
    gained: bool
    expected: Any
    baseline: Any
    candidate: Any
    baseline_confidence: float | None
    candidate_confidence: float | None
    language: str | None
    state: str | None


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the answers of both runs.

    Attributes
    ----------
    joined : int
        Answers both runs were asked for, about equal states and labels.
    by_order : bool
        Joined one after the other, as the cases do not say which row they are: each answer then counts
        as a case of its own.
    scored : int
        Those both scored; `cases` of them.
    candidate_errored, baseline_errored : int
        Joined answers only that run lacks.
    only_candidate, only_baseline : int
    other_state, other_label : int
        Found in both, with another state or another label.
    """

    joined: int = 0
    scored: int = 0
    cases: int = 0
    candidate_errored: int = 0
    baseline_errored: int = 0
    only_candidate: int = 0
    only_baseline: int = 0
    other_state: int = 0
    other_label: int = 0
    by_order: bool = False


class Judgement(msgspec.Struct, frozen=True):
    """A difference in words.

    `word` is ``better``, ``worse``, ``equivalent``, ``unclear`` or ``moved``; `cases` is how many would
    do where it is unclear.
    """

    metric: str
    word: str
    text: str
    margin: float
    cases: int | None = None


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs on the same cases."""

    joining: Joining
    differences: list[Difference]
    judgements: list[Judgement]
    slices: list[SliceDifference]
    flips: list[Flip]
    """Regressions, then gains, the surest of each first; at most a thousand of each."""
    lost: int
    gained: int
    """Answers that were right and are wrong, and the other way round."""
    changed: int
    """Answers that differ though neither, or both, are right."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A run beside its baseline.

    Attributes
    ----------
    candidate, baseline : str
        What the two are called.
    identity : dict
        Key to the values of baseline and run, None for unknown.
    conflicts : list of str
        Why the two are not the same measurement; empty when nothing says so.
    deltas : list of Delta
    paired : Paired or None
        `unpaired` says why not.
    """

    candidate: str
    baseline: str
    identity: dict[str, tuple[Any, Any]]
    conflicts: list[str]
    deltas: list[Delta]
    paired: Paired | None = None
    unpaired: str | None = None


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """A metric of one run: `expectation` is what a perfectly calibrated model would read."""

    value: float
    n: int
    cases: int
    interval: Pair | None = None
    expectation: float | None = None


class Contestant(msgspec.Struct, frozen=True):
    """One of several runs, and what it measured on its own answers."""

    name: str
    engine: str | None
    measured: dict[str, Reading]


class Match(msgspec.Struct, frozen=True):
    """Two of several runs on the answers both scored.

    `q` is p adjusted for all the matches on this metric (Benjamini and Hochberg); `why` says why there
    is no difference.
    """

    first: str
    second: str
    metric: str
    found: Difference | None
    q: float | None = None
    word: str = ""
    why: str | None = None


class Several(msgspec.Struct, frozen=True):
    """Runs side by side."""

    runs: list[Contestant]
    matches: list[Match]
    notes: list[str]
