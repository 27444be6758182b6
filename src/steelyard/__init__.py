"""steelyard: weigh typed-decision models.

State and questions go in, typed answers with probabilities come out; steelyard says how good the
answers are, how far their confidence can be trusted, and how sure it is of every number it prints.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from steelyard._version import __version__

if TYPE_CHECKING:
    from steelyard.core.cases import Case
    from steelyard.core.comparison import Comparison, Difference
    from steelyard.core.gates import Finding, Policy, Rule, Verdict
    from steelyard.core.questions import ChoiceQuestion, NoulQuestion, QuestionSet, ScoreQuestion
    from steelyard.core.requests import Ability, CallOptions, Failure, Reply, Request
    from steelyard.engines._base import Engine
    from steelyard.engines.spec import make_engine
    from steelyard.errors import (
        DatasetError,
        EngineError,
        EngineFailedError,
        IncomparableError,
        InputError,
        InvalidAnswerError,
        PolicyError,
        ReportError,
        SteelyardError,
    )
    from steelyard.formats.dataset import Dataset
    from steelyard.formats.policy import parse_policy, read_policy
    from steelyard.metrics.decisions import Decisions
    from steelyard.metrics.registry import Measurement
    from steelyard.metrics.view import Settings
    from steelyard.run.asserting import assert_no_regression, assert_regression, check, compare
    from steelyard.run.options import RunOptions
    from steelyard.run.report import Report
    from steelyard.run.sequential import Sequential
    from steelyard.run.side import Side, read_side
    from steelyard.studies.audit import Audit, audit
    from steelyard.studies.labelled import evaluate, rescore_report, rescore_run
    from steelyard.studies.planning import Aims, Need, Pilot, plan, read_pilot

_HOMES = {
    "core.cases": ("Case",),
    "core.comparison": ("Comparison", "Difference"),
    "core.gates": ("Finding", "Policy", "Rule", "Verdict"),
    "core.questions": ("ChoiceQuestion", "NoulQuestion", "QuestionSet", "ScoreQuestion"),
    "core.requests": ("Ability", "CallOptions", "Failure", "Reply", "Request"),
    "engines._base": ("Engine",),
    "engines.spec": ("make_engine",),
    "errors": (
        "DatasetError",
        "EngineError",
        "EngineFailedError",
        "IncomparableError",
        "InputError",
        "InvalidAnswerError",
        "PolicyError",
        "ReportError",
        "SteelyardError",
    ),
    "formats.dataset": ("Dataset",),
    "formats.policy": ("parse_policy", "read_policy"),
    "metrics.decisions": ("Decisions",),
    "metrics.registry": ("Measurement",),
    "metrics.view": ("Settings",),
    "run.asserting": ("assert_no_regression", "assert_regression", "check", "compare"),
    "run.report": ("Report",),
    "run.sequential": ("Sequential",),
    "run.side": ("Side", "read_side"),
    "run.options": ("RunOptions",),
    "studies.audit": ("Audit", "audit"),
    "studies.labelled": ("evaluate", "rescore_report", "rescore_run"),
    "studies.planning": ("Aims", "Need", "Pilot", "plan", "read_pilot"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Ability",
    "Aims",
    "Audit",
    "CallOptions",
    "Case",
    "ChoiceQuestion",
    "Comparison",
    "Dataset",
    "DatasetError",
    "Decisions",
    "Difference",
    "Engine",
    "EngineError",
    "EngineFailedError",
    "Failure",
    "Finding",
    "IncomparableError",
    "InputError",
    "InvalidAnswerError",
    "Measurement",
    "Need",
    "NoulQuestion",
    "Pilot",
    "Policy",
    "PolicyError",
    "QuestionSet",
    "Reply",
    "Report",
    "ReportError",
    "Request",
    "Rule",
    "RunOptions",
    "ScoreQuestion",
    "Sequential",
    "Settings",
    "Side",
    "SteelyardError",
    "Verdict",
    "__version__",
    "assert_no_regression",
    "assert_regression",
    "audit",
    "check",
    "compare",
    "evaluate",
    "make_engine",
    "parse_policy",
    "plan",
    "read_pilot",
    "read_policy",
    "read_side",
    "rescore_report",
    "rescore_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    return getattr(importlib.import_module(f"steelyard.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
