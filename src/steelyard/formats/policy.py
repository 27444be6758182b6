"""Gate policies: the peer's version 1, taken and refused as the peer does, and our version 2."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.core.gates import KINDS, RELATIVE, Kind, Policy, Rule
from steelyard.errors import PolicyError
from steelyard.formats.jsontext import JsonFault, one_line, quote, strict_loads, type_name

PEER_DIMENSIONS = ("language", "model", "qid", "tag")
DIMENSIONS = (*PEER_DIMENSIONS, "type", "option_count")
_TOP = {
    "version": (2,),
    "rules": None,
    "alpha": None,
    "control": ("none", "family", "fdr"),
    "on_errors": ("fail", "allow"),
    "evidence": ("point", "interval"),
    "when_inconclusive": ("fail", "warn", "pass"),
    "min_count": None,
}
_RULE = ("name", "metric", "slice", "min_count", "evidence", "when_inconclusive")


def read_policy(path: str | Path) -> Policy:
    """Read a policy file: JSON, or TOML when its name ends in ``.toml``.

    Raises
    ------
    PolicyError
        Unreadable, or with faults: every one of them is named.
    """
    name = one_line(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PolicyError(f"{name}: cannot be read: {error.strerror or error}") from None
    return parse_policy(_document(data, name), name)


def _document(data: bytes, name: str) -> Any:
    try:
        if name.endswith(".toml"):
            return tomllib.loads(data.decode("utf-8"))
        found = json.loads(data.decode("utf-8"))
        # Version 1 takes a repeated key the way the peer does: the last one holds.
        return strict_loads(data) if isinstance(found, dict) and found.get("version") == 2 else found
    except UnicodeDecodeError as error:
        raise PolicyError(f"{name}: not UTF-8 at byte {error.start}") from None
    except JsonFault as error:
        raise PolicyError(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        fault = "nested too deeply" if isinstance(error, RecursionError) else one_line(error)
        raise PolicyError(f"{name}: not {'TOML' if name.endswith('.toml') else 'JSON'}: {fault}") from None


def parse_policy(document: Any, name: str = "policy") -> Policy:
    """A policy from decoded JSON or TOML.

    Raises
    ------
    PolicyError
        Every fault, one a line.
    """
    if not isinstance(document, dict):
        raise PolicyError(f"{name}: a gate policy is an object, not {type_name(document)}")
    version = document.get("version")
    if type(version) is not int or version not in (1, 2):
        raise PolicyError(f"{name}: version is {_shown(version)}; write 1 or 2")
    reader = _Version1(document) if version == 1 else _Version2(document)
    faults = list(reader.faults())
    if faults:
        raise PolicyError.from_faults([f"{name}: {fault}" for fault in faults])
    return reader.policy()


class _Version1:
    """Exactly ``version`` and ``rules``; each rule names one slice, a metric, a count and one limit."""

    kinds: tuple[Kind, ...] = KINDS[:4]
    dimensions: tuple[str, ...] = PEER_DIMENSIONS

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def faults(self) -> Iterator[str]:
        extra = sorted(self.document.keys() - {"version", "rules"})
        if extra:
            yield f"{quote(extra[0])} does not belong in a version 1 policy; it has version and rules"
        yield from self._rules()

    def _rules(self) -> Iterator[str]:
        rules = self.document.get("rules")
        if not isinstance(rules, list) or not rules:
            yield "rules must be a list of at least one rule"
            return
        for number, rule in enumerate(rules, 1):
            for fault in self.rule_faults(rule) if isinstance(rule, dict) else [_not_an_object(rule)]:
                yield f"rule {number}: {fault}"

    def rule_faults(self, rule: dict[str, Any]) -> Iterator[str]:
        wanted = {"slice", "metric", "min_count"}
        for key in sorted(wanted - rule.keys()):
            yield f"{key} is missing; a rule has slice, metric, min_count and one limit"
        yield from self._unknown_keys(rule, wanted)
        yield from self._limit_faults(rule)
        found = rule.get("slice")
        if "slice" in rule and not (isinstance(found, dict) and len(found) == 1):
            yield 'slice must name one value, as {"language": "zh"}'
        elif isinstance(found, dict):
            yield from self._slice_faults(found)
        yield from _metric_faults(rule)
        if "min_count" in rule:
            yield from _count_faults(rule["min_count"])

    def _unknown_keys(self, rule: Mapping[str, Any], known: set[str]) -> Iterator[str]:
        for key in sorted(rule.keys() - known - set(self.kinds)):
            yield f"{quote(key)} does not belong in a version {self.document['version']} rule"

    def _limit_faults(self, rule: Mapping[str, Any]) -> Iterator[str]:
        limits = [kind for kind in self.kinds if kind in rule]
        if len(limits) != 1:
            said = f"has {', '.join(limits)}" if limits else "has no limit"
            yield f"{said}; name one of {', '.join(self.kinds)}"
        for kind in limits:
            if not _finite(rule[kind]):
                yield f"{kind} is {_shown(rule[kind])}; write a finite number"
            elif kind in RELATIVE and rule[kind] < 0:
                yield f"{kind} is {_shown(rule[kind])}; it must be 0 or more"

    def _slice_faults(self, found: Mapping[str, Any]) -> Iterator[str]:
        for dimension, value in found.items():
            if dimension not in self.dimensions:
                yield f"slice {quote(dimension)} is none of {', '.join(self.dimensions)}"
            elif not isinstance(value, str) or not value.strip():
                yield f"slice {dimension} is {_shown(value)}; write a name between quotes"

    def policy(self) -> Policy:
        rules = tuple(self.rule(rule, number) for number, rule in enumerate(self.document["rules"], 1))
        return Policy(version=1, rules=rules, document=self.document)

    def rule(self, rule: Mapping[str, Any], number: int) -> Rule:
        kind = next(kind for kind in self.kinds if kind in rule)
        return Rule(
            name=f"rule {number}",
            metric=rule["metric"],
            kind=kind,
            limit=float(rule[kind]),
            slice=tuple(rule["slice"].items()),
            min_count=rule["min_count"],
            evidence="point",
        )


class _Version2(_Version1):
    """Adds names, the whole table, combined slices, ``*``, margins, evidence, and control over many."""

    kinds, dimensions = KINDS, DIMENSIONS

    def faults(self) -> Iterator[str]:
        document = self.document
        for key in sorted(document.keys() - _TOP.keys()):
            yield f"{quote(key)} does not belong in a version 2 policy ({', '.join(_TOP)})"
        for key, among in _TOP.items():
            if key in document and among and document[key] not in among:
                yield f"{key} is {_shown(document[key])}; write one of {', '.join(map(str, among))}"
        alpha = document.get("alpha", 0.05)
        if not (_finite(alpha) and 0 < alpha <= 0.5):
            yield f"alpha is {_shown(alpha)}; write a number above 0 and at most 0.5"
        if "min_count" in document:
            yield from _count_faults(document["min_count"])
        yield from self._rules()
        yield from self._repeated_names()

    def _repeated_names(self) -> Iterator[str]:
        rules = self.document.get("rules")
        names = (
            [rule.get("name") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
        )
        for at, name in enumerate(names, 1):
            if isinstance(name, str) and name in names[: at - 1]:
                yield f"rule {at}: name {quote(name)} is taken by an earlier rule"

    def rule_faults(self, rule: dict[str, Any]) -> Iterator[str]:
        if "metric" not in rule:
            yield "metric is missing"
        yield from self._unknown_keys(rule, set(_RULE))
        yield from self._limit_faults(rule)
        found = rule.get("slice", {})
        if not isinstance(found, dict):
            yield f'slice is {_shown(found)}; write {{"language": "zh"}}, or leave it out for the whole table'
        else:
            yield from self._slice_faults(found)
        yield from _metric_faults(rule)
        if "name" in rule and not (isinstance(rule["name"], str) and rule["name"].strip()):
            yield f"name is {_shown(rule['name'])}; write text"
        for key in ("evidence", "when_inconclusive"):
            if key in rule and rule[key] not in (_TOP[key] or ()):
                yield f"{key} is {_shown(rule[key])}; write one of {', '.join(map(str, _TOP[key] or ()))}"
        if "min_count" in rule:
            yield from _count_faults(rule["min_count"])

    def policy(self) -> Policy:
        document = self.document
        return Policy(
            version=2,
            rules=tuple(self.rule(rule, number) for number, rule in enumerate(document["rules"], 1)),
            alpha=float(document.get("alpha", 0.05)),
            control=document.get("control", "none"),
            on_errors=document.get("on_errors", "fail"),
            document=document,
        )

    def rule(self, rule: Mapping[str, Any], number: int) -> Rule:
        kind = next(kind for kind in self.kinds if kind in rule)
        own = {"evidence": "interval", "when_inconclusive": "fail", "min_count": 1}
        own |= {key: self.document[key] for key in own if key in self.document}
        own |= {key: rule[key] for key in own if key in rule}
        return Rule(
            name=rule.get("name", f"rule {number}"),
            metric=rule["metric"],
            kind=kind,
            limit=float(rule[kind]),
            slice=tuple(rule.get("slice", {}).items()),
            **own,  # type: ignore[arg-type]
        )


def _metric_faults(rule: Mapping[str, Any]) -> Iterator[str]:
    found = rule.get("metric", "some")
    if not isinstance(found, str) or not found.strip():
        yield f"metric is {_shown(found)}; write the name of a metric"


def _count_faults(found: Any) -> Iterator[str]:
    if type(found) is not int or found < 1:
        yield f"min_count is {_shown(found)}; write a whole number of at least 1"


def _not_an_object(rule: Any) -> str:
    return f"must be an object, not {type_name(rule)}"


def _finite(value: Any) -> bool:
    if type(value) not in (int, float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    if type(value) is float and not math.isfinite(value):
        return str(value)
    try:
        return quote(value)
    except (TypeError, ValueError):
        return type_name(value)


def slice_name(found: tuple[tuple[str, str], ...]) -> str:
    """A slice in one word: ``language=en, qid=team``; empty for the whole table.

    >>> slice_name((("language", "en"), ("tag", "*")))
    'language=en, tag=*'
    """
    return ", ".join(f"{dimension}={one_line(value, 60)}" for dimension, value in found)
