"""The peer's own comparison and policy checker, asked the same questions as ours.

Where the two may differ is listed here, and nowhere else:

- a limit forgives rounding of up to 1e-9;
- a baseline with NaN or an infinity is refused (exit 2), not failed;
- a tolerance below 0, or NaN, is refused, not failed;
- a document on which the peer ends in a traceback is refused, or fails.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.errors import InputError
from steelyard.formats.policy import parse_policy, read_policy
from steelyard.run.compare import Comparing
from steelyard.run.gating import Limits, verdict
from steelyard.run.side import document_side
from tests.conftest import Ran

evals = pytest.importorskip("laya.evals", reason="the peer (laya 0.4.15) is not installed")
gate = pytest.importorskip("laya._eval_policy")
cli = pytest.importorskip("laya.evals_cli")

METRICS = ("choice_accuracy", "noul_accuracy", "score_mae", "ece", "brier", "aurc", "selective_accuracy@50")
ODD = (math.nan, math.inf, -math.inf, 10**400, True, None, "0.9", [], 0, -0.0, 1e-12)
TRACEBACK = -1
QIDS, LANGUAGES, TAGS = ("team", "flag"), ("en", "zh", "1"), ("a", "b", 7, None)


def value_of(rng: np.random.Generator, odd: float) -> Any:
    if rng.random() < odd:
        return ODD[rng.integers(len(ODD))]
    return round(float(rng.random()), int(rng.integers(1, 5)))


def overall_of(rng: np.random.Generator, odd: float) -> Any:
    if rng.random() < odd:
        return (None, [], {}, "x", 3)[rng.integers(5)]
    chosen = [name for name in (*METRICS, "latency_p50_ms", "mine") if rng.random() < 0.5]
    return {name: value_of(rng, odd) for name in chosen}


def config_of(rng: np.random.Generator) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for key, values in (
        ("schema", ("laya-evals-report/1", "laya-tournament-evals-report/1", None)),
        ("dataset_sha256", ("aa", "bb", None)),
        ("questions_sha256", ("cc", "dd", None)),
        ("coverage_metric_definition", (2, 2, 2, 1, "2", None)),
        ("tournament_group_size", (16, 8, None)),
    ):
        if rng.random() < 0.8:
            config[key] = values[0] if rng.random() < 0.8 else values[rng.integers(len(values))]
    if rng.random() < 0.1:
        config["errored"] = [{"index": 0, "error": "x"}] if rng.random() < 0.5 else []
    return config


def case_of(rng: np.random.Generator) -> Any:
    if rng.random() < 0.03:
        return (None, "x", 3)[rng.integers(3)]
    choices = {
        "qid": [*QIDS, None],
        "language": [*LANGUAGES, None, 1],
        "model": ["m", None],
        "tags": [[TAGS[i] for i in rng.integers(len(TAGS), size=2)], None, "a", {}],
        "confidence": [0.5, 1, None, math.nan, True, "0.5"],
        "correct": [True, False, True, False, None, 1],
        "expected": ["x"],
        "answer": [{"type": "choice", "choice": "x"}, {}],
    }
    case = {key: found[rng.integers(len(found))] for key, found in choices.items() if rng.random() < 0.95}
    scores = {name: (1.0, 0, None, math.nan, True)[rng.integers(5)] for name in METRICS[:3]}
    return case | ({"scores": scores} if rng.random() < 0.95 else {})


def report_of(rng: np.random.Generator, odd: float) -> Any:
    slices: dict[str, Any] = {
        dimension: {
            value: {name: value_of(rng, odd) for name in METRICS if rng.random() < 0.7}
            for value in values
            if rng.random() < 0.8
        }
        for dimension, values in (("language", LANGUAGES), ("qid", QIDS), ("tag", ("a", "7")))
    }
    report: dict[str, Any] = {"config": config_of(rng), "overall": overall_of(rng, odd), "slices": slices}
    report["cases"] = [case_of(rng) for _ in range(int(rng.integers(0, 30)))]
    if rng.random() < 0.1:
        key = ("schema", "dataset_sha256", "questions_sha256")[rng.integers(3)]
        report[key] = report["config"].pop(key, "aa")
    for key in list(report):
        if rng.random() < odd / 2:
            del report[key]
    if rng.random() < 0.1 and isinstance(report.get("overall"), dict):
        return report["overall"]
    return report


def rule_of(rng: np.random.Generator, odd: float) -> Any:
    dimension, value = (("language", "en"), ("language", "zh"), ("qid", "team"), ("tag", "7"), ("tag", "a"))[
        rng.integers(5)
    ]
    rule: dict[str, Any] = {
        "slice": {dimension: value},
        "metric": METRICS[rng.integers(len(METRICS))],
        "min_count": int(rng.integers(1, 4)),
        ("min", "max", "max_drop", "max_increase")[rng.integers(4)]: round(float(rng.random()) * 0.6, 2),
    }
    if rng.random() < odd:
        bad = [
            ("min_count", (0, -1, True, 1.0, "3", None, 10**30)),
            ("metric", ("", " ", 3, None)),
            ("slice", ({}, {"language": ""}, {"type": "x"}, {"language": 1}, [], {"qid": "a", "tag": "b"})),
            ("max", (math.nan, math.inf, -1, True, "1", None, 10**400)),
            ("max_drop", (-0.1, math.nan, 0, 1e999)),
            ("note", ("x",)),
        ]
        key, values = bad[rng.integers(len(bad))]
        if rng.random() < 0.2:
            rule.pop(key, None)
        else:
            rule[key] = values[rng.integers(len(values))]
    return rule if rng.random() > odd / 5 else "rule"


def policy_of(rng: np.random.Generator, odd: float) -> Any:
    rules = [rule_of(rng, odd) for _ in range(int(rng.integers(1, 4)))]
    policy: dict[str, Any] = {"version": 1, "rules": rules}
    if rng.random() < odd:
        bad = [("version", (0, 1.0, True, "1", 3, None)), ("rules", ([], {}, None, "x")), ("name", ("x",))]
        key, values = bad[rng.integers(len(bad))]
        if rng.random() < 0.3:
            policy.pop(key, None)
        else:
            policy[key] = values[rng.integers(len(values))]
    return policy


def peer_code(report: dict[str, Any], baseline: Any, tolerances: Any, policy: Any) -> int:
    """What the peer's `compare` exits with."""
    try:
        found = evals.EvalReport(
            config=evals._identity_of(report),
            **{key: value for key, value in report.items() if key in ("overall", "slices", "cases")},
        )
        fine, _ = found.compare(baseline, tolerances)
        same, _ = found.comparable_to(baseline)
        failures = gate.check_policy(found, policy, baseline) if policy else []
    except evals.EvalError:
        return 2
    except (OverflowError, TypeError, AttributeError, ValueError):
        return TRACEBACK
    return 0 if fine and same and not failures else 1


def our_code(report: dict[str, Any], baseline: Any, tolerances: Any, policy: Any) -> int:
    try:
        limits = Limits(tolerances=tolerances, policy=parse_policy(policy) if policy else None)
        limits.check(baseline=True)
        ours = document_side(report, "report")
        comparing = Comparing(ours, document_side(baseline, "baseline"))
        comparison = comparing.compare(limits.tolerances, dimensions=())
        return verdict(limits, ours, comparing, comparison).exit_code
    except InputError:
        return 2


def refused_by_design(baseline: Any, tolerances: dict[str, Any]) -> bool:
    metrics = baseline.get("overall", baseline)
    values = metrics.values() if isinstance(metrics, dict) else ()
    endless = any(isinstance(value, (int, float)) and not _finite(value) for value in values)
    return endless or any(math.isnan(value) or value < 0 for value in tolerances.values())


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def near_a_limit(report: Any, baseline: Any, tolerances: dict[str, float]) -> bool:
    """Whether a rounding allowance may decide."""
    ours, theirs = report.get("overall"), baseline.get("overall", baseline)
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return False
    return any(
        abs(abs(ours[name] - value) - tolerances.get(name, 0.0)) < 1e-8 and ours[name] != value
        for name, value in theirs.items()
        if isinstance(value, float) and isinstance(ours.get(name), float)
    )


@pytest.mark.parametrize("odd", [0.0, 0.01, 0.1])
def test_thousands_of_reports_get_the_same_verdict(odd: float) -> None:
    rng = np.random.default_rng(round(1000 * odd))
    seen = {0: 0, 1: 0, 2: 0}
    for _ in range(1500):
        baseline = report_of(rng, odd)
        # A run that says the same passes; most that differ do not.
        alike = (
            json.loads(json.dumps(baseline)) if isinstance(baseline, dict) and rng.random() < 0.5 else None
        )
        report = alike if alike is not None and "overall" in alike else report_of(rng, odd)
        if not isinstance(report, dict):
            report = {"overall": report}
        tolerances = {name: round(float(rng.random()), 2) for name in METRICS if rng.random() < 0.6}
        if rng.random() < odd:
            tolerances["ece"] = (math.nan, -0.1, 0.0)[rng.integers(3)]
        policy = policy_of(rng, 0.0) if rng.random() < 0.4 else None
        theirs = peer_code(report, baseline, tolerances, policy)
        if near_a_limit(report, baseline, tolerances):
            continue
        ours = our_code(report, baseline, tolerances, policy)
        seen[ours] += 1
        if theirs == TRACEBACK:
            assert ours, (report, baseline, tolerances, policy)
        elif ours != theirs:
            assert ours == 2, (report, baseline, tolerances, policy, theirs)
            assert refused_by_design(baseline, tolerances), (baseline, tolerances)
    assert seen[0] > 50
    assert seen[1] > 200


def test_policies_are_taken_and_refused_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    path, taken = tmp_path / "policy.json", 0
    for _ in range(2000):
        path.write_text(json.dumps(policy_of(rng, 0.3)), encoding="utf-8")
        try:
            theirs = gate.load_policy(str(path))
        except evals.EvalError:
            with pytest.raises(InputError, match=r"policy\.json: "):
                read_policy(path)
            continue
        ours = read_policy(path)
        assert ours.document == theirs
        assert ours.relative == gate.needs_baseline(theirs)
        taken += 1
    assert 400 < taken < 1900


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"\xef\xbb\xbf{}",
        b"\xff",
        b"{",
        b'{"version": 1, "rules": []}',
        b"[" * 100_000,
        b'{"version": 1, "version": 1, "rules": [{"slice": {"qid": "a"}, "metric": "ece", "min_count": 1, '
        b'"max": 1, "max": 0.5}]}',
    ],
)
def test_policy_bytes_are_taken_and_refused_alike(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "policy.json"
    path.write_bytes(text)
    try:
        theirs = gate.load_policy(str(path))
    except evals.EvalError:
        theirs = None
    try:
        ours = read_policy(path).document
    except InputError:
        ours = None
    assert ours == theirs


def test_too_many_digits_are_refused_where_the_peer_ends_in_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"version": 1, "rules": ' + "9" * 5000 + "}", encoding="utf-8")
    with pytest.raises(InputError):
        read_policy(path)


def peer_command(line: list[str]) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code: int = cli.main(["compare", *line])
        except (OverflowError, TypeError, AttributeError, ValueError):
            return TRACEBACK
        return code


def test_command_lines_exit_alike(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    rng = np.random.default_rng(9)
    names = [tmp_path / name for name in ("report.json", "baseline.json", "policy.json")]
    codes = set()
    for turn in range(150):
        report = report_of(rng, 0.01)
        baseline = report if turn % 3 == 0 else report_of(rng, 0.01)
        policy = policy_of(rng, 0.2)
        for path, document in zip(names, (report, baseline, policy), strict=True):
            path.write_text(json.dumps(document), encoding="utf-8")
        line = [str(names[0]), "--baseline", str(names[1])]
        tolerances = {name: round(float(rng.random()), 2) for name in METRICS if rng.random() < 0.7}
        line += [part for name, value in tolerances.items() for part in ("--tolerance", f"{name}={value}")]
        line += ["--gate-policy", str(names[2])] if turn % 2 else []
        if near_a_limit(report, baseline, tolerances) or refused_by_design(baseline, {}):
            continue
        theirs = peer_command(line)
        ours = steelyard("compare", *line)
        assert ours.code == theirs or (theirs == TRACEBACK and ours.code), (line, ours.err)
        # A failure always says why.
        assert bool(ours.err) or ours.code == 0
        codes.add(ours.code)
    assert codes == {0, 1, 2}


def test_the_peers_reports_compare(shared: Path, steelyard: Callable[..., Ran]) -> None:
    report, other = shared / "peer" / "report.json", shared / "peer" / "report_onnx.json"
    for line in (
        [report, "--baseline", report],
        [other, "--baseline", report],
        [report, "--baseline", other],
    ):
        assert steelyard("compare", *line).code == peer_command([str(part) for part in line])
