"""Limits a build must keep, and what became of each."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["min", "max", "max_drop", "max_increase", "margin"]
Evidence = Literal["point", "interval"]
Inconclusive = Literal["fail", "warn", "pass"]
Outcome = Literal["pass", "fail", "inconclusive", "missing"]
Pair = tuple[float, float]

KINDS: tuple[Kind, ...] = ("min", "max", "max_drop", "max_increase", "margin")
RELATIVE: tuple[Kind, ...] = ("max_drop", "max_increase", "margin")
EVERY = "*"
"""As a slice's value: each value of the dimension."""
SLACK = 1e-9
"""Rounding that a limit forgives; far below any real effect."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One limit.

    Attributes
    ----------
    name : str
    metric : str
        A metric, or a fact of the run such as ``answered`` or ``latency_p95_ms``.
    kind : str
        ``min`` and ``max`` bound the value; ``max_drop`` and ``max_increase`` bound how far it may move
        from the baseline; ``margin`` bounds how much worse it may get, by the metric's own direction.
    limit : float
    slice : tuple of (str, str)
        Dimension and value, all of which must hold; empty is the whole table, a value of ``*`` each one.
    min_count : int
        Answers it takes to judge at all.
    evidence : str
        ``point`` compares the value; ``interval`` asks what the data can show.
    when_inconclusive : str
        What an answer of "cannot tell" does to the build.
    """

    name: str
    metric: str
    kind: Kind
    limit: float
    slice: tuple[tuple[str, str], ...] = ()
    min_count: int = 1
    evidence: Evidence = "interval"
    when_inconclusive: Inconclusive = "fail"

    @property
    def relative(self) -> bool:
        """Whether it needs a baseline."""
        return self.kind in RELATIVE


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that are judged together.

    Attributes
    ----------
    version : int
        1 is the peer's own, judged as the peer does; 2 is ours.
    rules : tuple of Rule
    alpha : float
        Chance, one-sided, of a wrong verdict of a rule with interval evidence.
    control : str
        ``none``; ``family`` keeps the chance of any false failure at alpha (Holm); ``fdr`` the share of
        false ones among the failures (Benjamini and Hochberg).
    on_errors : str
        ``fail`` refuses a run with errored rows, ``allow`` judges what is there.
    document : dict
        As it was read.
    """

    version: int
    rules: tuple[Rule, ...]
    alpha: float = 0.05
    control: Literal["none", "family", "fdr"] = "none"
    on_errors: Literal["fail", "allow"] = "fail"
    document: dict[str, Any] = {}

    @property
    def relative(self) -> bool:
        """Whether some rule needs a baseline."""
        return any(rule.relative for rule in self.rules)


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one rule on one slice.

    Attributes
    ----------
    rule, metric, slice : str
        `slice` is empty for the whole table, else ``language=en, qid=team``.
    outcome : str
    fails : bool
        Whether it fails the build.
    reason : str
        One line with the numbers, as every view shows it.
    kind : str
    limit, value, baseline, difference : float or None
    interval : (float, float) or None
        The one-sided bounds, at the policy's alpha, of what the limit is on.
    n, cases : int or None
    p : float or None
        One-sided, that the limit is broken by chance alone; adjusted when the policy controls for many.
    """

    rule: str
    metric: str
    outcome: Outcome
    fails: bool
    reason: str
    slice: str = ""
    kind: str = ""
    limit: float | None = None
    value: float | None = None
    baseline: float | None = None
    difference: float | None = None
    interval: Pair | None = None
    n: int | None = None
    cases: int | None = None
    p: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """All findings of a gate. Without a finding nothing was gated, and that is no pass: see `gated`."""

    findings: tuple[Finding, ...]

    @property
    def gated(self) -> bool:
        """Whether anything was judged at all."""
        return bool(self.findings)

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail the build."""
        return [finding for finding in self.findings if finding.fails]

    @property
    def exit_code(self) -> int:
        """1 when any finding fails the build."""
        return int(bool(self.failures))
