"""Gate policies: version 2, and what both versions refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import PolicyError, parse_policy, read_policy
from steelyard.core.gates import Rule
from steelyard.run.gates import check_policy

RULE = {"metric": "accuracy", "margin": 0.02}
TOML = """
version = 2
alpha = 0.1
control = "family"
on_errors = "allow"
evidence = "point"
min_count = 20

[[rules]]
name = "accuracy holds"
metric = "choice_accuracy"
min = 0.8

[[rules]]
metric = "ece"
slice = {language = "*", qid = "team"}
max = 0.1
min_count = 5
evidence = "interval"
when_inconclusive = "warn"
"""


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(TOML, encoding="utf-8")
    found = read_policy(tmp_path / "p.toml")
    (tmp_path / "p.json").write_text(json.dumps(found.document), encoding="utf-8")
    assert read_policy(tmp_path / "p.json") == found
    assert (found.alpha, found.control, found.on_errors, found.relative) == (0.1, "family", "allow", False)
    assert found.rules == (
        Rule(
            name="accuracy holds",
            metric="choice_accuracy",
            kind="min",
            limit=0.8,
            min_count=20,
            evidence="point",
        ),
        Rule(
            name="rule 2",
            metric="ece",
            kind="max",
            limit=0.1,
            slice=(("language", "*"), ("qid", "team")),
            min_count=5,
            when_inconclusive="warn",
        ),
    )


def test_what_a_policy_leaves_out() -> None:
    found = parse_policy({"version": 2, "rules": [RULE]})
    assert (found.alpha, found.control, found.on_errors, found.relative) == (0.05, "none", "fail", True)
    (rule,) = found.rules
    assert (rule.evidence, rule.when_inconclusive, rule.min_count, rule.slice) == ("interval", "fail", 1, ())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": 3}, "version is 3; write 1 or 2"),
        ({"version": "2"}, 'version is "2"'),
        ({"version": True}, "version is true"),
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": 0.6}, "alpha is 0.6"),
        ({"alpha": True}, "alpha is true"),
        ({"control": "bonferroni"}, 'control is "bonferroni"; write one of none, family, fdr'),
        ({"on_errors": None}, "on_errors is null"),
        ({"min_count": 0}, "min_count is 0"),
        ({"note": 1}, '"note" does not belong'),
        ({"rules": []}, "at least one rule"),
        ({"rules": {}}, "at least one rule"),
        ({"rules": ["x"]}, "rule 1: must be an object, not string"),
        ({"rules": [{"metric": "ece"}]}, "rule 1: has no limit; name one of min, max"),
        ({"rules": [RULE | {"max": 1}]}, "rule 1: has max, margin"),
        ({"rules": [{"margin": 0.1}]}, "rule 1: metric is missing"),
        ({"rules": [{"metric": " ", "max": 1}]}, "rule 1: metric is"),
        ({"rules": [{"metric": "ece", "max": float("nan")}]}, "rule 1: max is nan; write a finite number"),
        ({"rules": [{"metric": "ece", "max": float("-inf")}]}, "rule 1: max is -inf"),
        ({"rules": [{"metric": "ece", "max": 10**400}]}, "rule 1: max is"),
        ({"rules": [{"metric": "ece", "max": True}]}, "rule 1: max is true"),
        ({"rules": [{"metric": "ece", "max": "0,05"}]}, 'rule 1: max is "0,05"'),
        ({"rules": [{"metric": "ece", "max_drop": -0.1}]}, "it must be 0 or more"),
        ({"rules": [{"metric": "ece", "margin": -0.1}]}, "it must be 0 or more"),
        ({"rules": [RULE | {"slice": []}]}, "slice is []"),
        ({"rules": [RULE | {"slice": {"colour": "x"}}]}, 'slice "colour" is none of language, model'),
        ({"rules": [RULE | {"slice": {"language": 1}}]}, "slice language is 1"),
        ({"rules": [RULE | {"slice": {"language": " "}}]}, "slice language is"),
        ({"rules": [RULE | {"min_count": 1.5}]}, "min_count is 1.5"),
        ({"rules": [RULE | {"name": ""}]}, "name is"),
        ({"rules": [RULE | {"evidence": "some"}]}, 'evidence is "some"'),
        ({"rules": [RULE | {"when_inconclusive": "maybe"}]}, 'when_inconclusive is "maybe"'),
        ({"rules": [RULE | {"limit": 1}]}, '"limit" does not belong'),
        ({"rules": [RULE | {"name": "a"}, RULE | {"name": "a"}]}, 'rule 2: name "a" is taken'),
    ],
)
def test_faults_name_place_and_mend(change: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError) as fault:
        parse_policy({"version": 2, "rules": [RULE]} | change, "p.json")
    assert text in str(fault.value)
    assert all(line.startswith("p.json: ") for line in str(fault.value).split("\n"))


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as fault:
        parse_policy({"version": 2, "alpha": 2, "rules": [{"metric": "ece"}, {"max": 1}]})
    assert str(fault.value).count("\n") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"version": 2, "version": 2, "rules": []}', 'key "version" appears twice'),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"{", "not JSON"),
        (b"[1]", "is an object, not array"),
    ],
)
def test_unreadable_files(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "p.json").write_bytes(text)
    with pytest.raises(PolicyError, match="p\\.json: ") as fault:
        read_policy(tmp_path / "p.json")
    assert said in str(fault.value)


def test_missing_file_and_bad_toml(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.json")
    with pytest.raises(PolicyError, match="cannot be read: Is a directory"):
        read_policy(tmp_path)
    (tmp_path / "p.toml").write_text("version = ", encoding="utf-8")
    with pytest.raises(PolicyError, match="not TOML"):
        read_policy(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"metric": "acuracy", "min": 0.5}, 'no metric named "acuracy"'),
        ({"metric": "acuracy", "min": 0.5}, 'did you mean "accuracy"?'),
        ({"metric": "latency_p95_ms", "max": 5, "slice": {"language": "en"}}, "is of the whole run"),
        ({"metric": "mean_confidence", "margin": 0.1}, "is neither better higher nor lower"),
        ({"metric": "errored:tiemout", "max": 0}, 'did you mean "errored:timeout"?'),
    ],
)
def test_names_no_rule_can_be_on_are_refused_before_anything_is_asked(rule: Any, text: str) -> None:
    policy = parse_policy({"version": 2, "rules": [rule]})
    with pytest.raises(PolicyError) as fault:
        check_policy(policy, baseline=True)
    assert text in str(fault.value)
    assert str(fault.value).startswith("rule 1: ")


def test_a_relative_rule_needs_a_baseline() -> None:
    with pytest.raises(PolicyError, match="rule 1 has a margin, which needs a baseline"):
        check_policy(parse_policy({"version": 2, "rules": [RULE]}), baseline=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries({}, optional={"version": st.just(2) | JSON, "rules": JSON, "alpha": JSON}) | JSON
)
def test_any_json_is_a_policy_or_a_policy_error(document: Any) -> None:
    try:
        found = parse_policy(document)
    except PolicyError:
        return
    assert found.rules
