"""Datasets from every source, and every fault a row can have."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard import Dataset, DatasetError
from steelyard.formats.columns import repeats
from steelyard.formats.jsontext import JsonFault, count_keys, one_line, strict_loads
from steelyard.formats.labels import near_miss
from steelyard.formats.scan import scan
from steelyard.formats.source import LineSource
from tests.conftest import FLAG, LEVEL, TEAM, Ran, make_rows

GOOD = {
    "state": "s",
    "questions": {"team": TEAM, "level": LEVEL, "flag": FLAG},
    "expected": {"team": "sales"},
}


def lines_of(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def faults(data: bytes) -> list[str]:
    return scan(LineSource.from_bytes(data, "d"))[1].faults


def test_gzip_and_plain_are_the_same_dataset(tmp_path: Path) -> None:
    data = lines_of(make_rows(5))
    (tmp_path / "d.jsonl").write_bytes(data)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(data))
    plain, packed = Dataset.from_jsonl(tmp_path / "d.jsonl"), Dataset.from_jsonl(tmp_path / "d.jsonl.gz")
    assert plain.sha256 == packed.sha256
    assert [case.state for case in plain] == [case.state for case in packed]


def test_standard_input(steelyard: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines_of(make_rows(4)))))
    assert "4 rows" in steelyard("validate", "-").out


@pytest.mark.parametrize("content", [b"not gzip", b"\x1f\x8b\x08"], ids=["not gzip", "cut short"])
def test_broken_gzip(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "d.jsonl.gz").write_bytes(content)
    with pytest.raises(DatasetError, match="cannot be read"):
        Dataset.from_jsonl(tmp_path / "d.jsonl.gz")


FAULTS: list[tuple[Any, str]] = [
    ([1], "a row is an object, not array"),
    ({}, "state is missing"),
    ({"state": 1}, "questions is missing"),
    (GOOD | {"questions": []}, "questions must be an object, not array"),
    (GOOD | {"expected": None}, "expected must be an object, not null"),
    (GOOD | {"expected": {"x": 1, "y": 2}}, 'expected names "x", which questions does not ask'),
    (GOOD | {"expected": {"team": "Sales "}}, 'differs from "sales" only by case or white space'),
    (GOOD | {"expected": {"team": "saless"}}, 'did you mean "sales"?'),
    (GOOD | {"expected": {"team": ""}}, "the label is blank"),
    (GOOD | {"expected": {"team": None}}, "a choice label is a string, not null"),
    (GOOD | {"expected": {"level": 3}}, "level 3 is outside 0 to 2"),
    (GOOD | {"expected": {"level": -0.5}}, "level -0.5 is outside 0 to 2"),
    (GOOD | {"expected": {"level": True}}, "a score label is a number, not boolean"),
    (GOOD | {"expected": {"flag": 0}}, "a noul label is true or false, not number 0"),
    (GOOD | {"tags": "x"}, "tags must be an array, not string"),
    (GOOD | {"model": 3}, "model must be text, not number"),
    (GOOD | {"model": " "}, "model must be text"),
    (GOOD | {"id": 1.5}, "id must be text or a whole number"),
    (GOOD | {"id": True}, "id must be text or a whole number"),
    (GOOD | {"group": []}, "group must be text or a whole number"),
]
QUESTION_FAULTS: list[tuple[Any, str]] = [
    (3, "must be an object, not number"),
    ({"type": "box", "instructions": "?"}, 'type "box" is not one of choice, score, noul'),
    ({"type": "noul"}, "instructions must say what to answer"),
    ({"type": "noul", "instructions": " "}, "instructions must say what to answer"),
    ({"type": "noul", "instructions": {}}, "instructions must say what to answer"),
    ({"type": "choice", "instructions": "?"}, "criteria must list at least one option"),
    ({"type": "choice", "instructions": "?", "criteria": []}, "criteria must list at least one option"),
    ({"type": "choice", "instructions": "?", "criteria": ["a", "a"]}, 'option "a" is listed twice'),
    ({"type": "choice", "instructions": "?", "criteria": [1, 1.0]}, "option 1.0 is listed twice"),
    ({"type": "choice", "instructions": "?", "criteria": [1, "1"]}, "read the same once written as text"),
    ({"type": "choice", "instructions": "?", "criteria": ["a", None]}, "criteria holds null"),
    ({"type": "choice", "instructions": "?", "criteria": ["a", " "]}, "blank option"),
    ({"type": "choice", "instructions": "?", "criteria": {"\u3000": "x"}}, "blank option"),
    ({"type": "choice", "instructions": "?", "criteria": ["caf\u00e9", "cafe\u0301"]}, "Unicode normal form"),
    ({"type": "choice", "instructions": "?", "criteria": ["a"], "labels": {}}, "labels belongs to noul"),
    (
        {"type": "choice", "instructions": "?", "criteria": ["a", "b"], "option_order": [0]},
        "option_order must hold",
    ),
    ({"type": "score", "instructions": "?", "criteria": {"0": "x"}}, "criteria must be an array of levels"),
    ({"type": "score", "instructions": "?", "criteria": ["x", None]}, "null level"),
    ({"type": "noul", "instructions": "?", "criteria": ["x"]}, "criteria of a noul question is an object"),
    ({"type": "noul", "instructions": "?", "criteria": {"maybe": "x"}}, "only the keys true and false"),
    (
        {"type": "noul", "instructions": "?", "criteria": {"true": "x", "True": "y"}},
        "only the keys true and false",
    ),
    ({"type": "noul", "instructions": "?", "labels": {"true": "y"}}, "labels must be"),
    (
        {"type": "noul", "instructions": "?", "labels": {"true": "y", "false": "y"}},
        "both sides the same name",
    ),
]


@pytest.mark.parametrize(("row", "text"), FAULTS, ids=[text for _, text in FAULTS])
def test_row_faults(row: Any, text: str) -> None:
    found = faults(lines_of([GOOD, row, GOOD]))
    assert found[0].startswith("d:2: ")
    assert text in found[0]


@pytest.mark.parametrize(("body", "text"), QUESTION_FAULTS, ids=[text for _, text in QUESTION_FAULTS])
def test_question_faults(body: Any, text: str) -> None:
    found = faults(lines_of([GOOD, {"state": "s", "questions": {"q": body}, "expected": {}}]))
    assert len(found) == 1
    assert found[0].startswith("d:2: questions.q: ")
    assert text in found[0]


def test_blank_question_id() -> None:
    assert (
        "must not be blank" in faults(lines_of([{"state": 1, "questions": {" ": FLAG}, "expected": {}}]))[0]
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"state": 1, "state": 2, "questions": {}, "expected": {}}', 'key "state" appears twice'),
        (b'{"state": {"a": 1, "a": 2}, "questions": {}, "expected": {}}', 'key "a" appears twice'),
        (
            b'{"state": "a:b", "questions": {}, "expected": {}, "expected" : {}}',
            'key "expected" appears twice',
        ),
        (
            b'{"state": "\\u003a", "questions": {}, "expected": {}, "tags": [], "tags": []}',
            'key "tags" appears twice',
        ),
        (
            b'{"state": 1, "questions": {}, "expected": {}, "more": {"x": [{"y": 1, "y": 1}]}}',
            'key "y" appears twice',
        ),
        (b'{"state": Infinity, "questions": {}, "expected": {}}', "Infinity is not JSON"),
        (b'{"state": 1e999, "questions": {}, "expected": {}}', "out of range"),
        (b'{"state": "\xff", "questions": {}, "expected": {}}', "not UTF-8"),
        (
            b'{"state": ' + b"[" * 5000 + b"]" * 5000 + b', "questions": {}, "expected": {}}',
            "nested too deeply",
        ),
        (b'{"state": 1, "questions": {}, "expected": {}} x', "extra data"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_lines_that_are_not_our_json(line: bytes, text: str) -> None:
    found = faults(lines_of([GOOD]) + line + b"\n")
    assert found[0].startswith("d:2: ")
    assert text in found[0]


@pytest.mark.parametrize(
    "extra",
    [
        {"note": "free: text", "more": {"a": {"b": [1, {"c": 2}]}}},
        {"tags": None, "language": None, "model": None, "id": None, "group": None},
        {"tags": {}, "language": 7, "id": 12, "group": "g"},
        {"tags": ["a", 1, None, True]},
        {"state": {"text": "12:30", "url": "http://x"}},
        {"state": "12:30 \\u003a"},
        {"state": None},
    ],
    ids=str,
)
def test_odd_but_good_rows(extra: dict[str, Any]) -> None:
    data = Dataset.from_rows([GOOD, GOOD | extra])
    case = data.case(1)
    assert case.state == (GOOD | extra)["state"]
    assert case.tags == tuple(map(str, extra.get("tags") or ()))
    assert case.language == (None if extra.get("language") is None else str(extra["language"]))
    assert (case.id, case.group) == (extra.get("id"), extra.get("group"))


def test_all_faults_of_a_row_and_of_a_file_in_one_answer() -> None:
    bad = GOOD | {"expected": {"team": "x", "level": 9, "flag": 1}, "tags": 3, "id": 1.5}
    assert len(faults(lines_of([bad]))) == 5
    with pytest.raises(DatasetError) as refusal:
        Dataset.from_rows([bad] * 10)
    lines = str(refusal.value).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "... and 30 more fault(s)"


def test_repeated_ids_and_conflicting_labels() -> None:
    rows = [GOOD | {"id": "a"}, GOOD | {"id": "b", "state": "t"}, GOOD | {"id": "a", "state": "u"}]
    assert faults(lines_of(rows)) == ['d:3: id "a" was used on line 1; ids are unique']
    again = [GOOD, GOOD | {"state": "t"}, GOOD | {"expected": {"team": "billing"}}, GOOD]
    data = Dataset.from_rows(again, "d")
    assert data.warnings == ['d:3: repeats line 1 with another label for "team"; one of them is wrong']


def test_many_warnings_are_counted(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    rows = [GOOD | {"expected": {"team": TEAM["criteria"][i % 3]}} for i in range(60)]
    (tmp_path / "d.jsonl").write_bytes(lines_of(rows))
    ran = steelyard("run", tmp_path / "d.jsonl", "--engine", "scripted", "--quiet")
    assert ran.err.count("warning:") == 21
    assert "... and 20 more warning(s)" in ran.err


def test_repeats_over_partitions() -> None:
    from array import array

    values = array("q", [*range(450_000), 7, 7, 300_000])
    assert sorted(repeats(values)) == [[7, 450_000, 450_001], [300_000, 450_002]]


def test_places_are_right_in_plain_and_odd_blocks() -> None:
    rows = make_rows(3000)
    plain = lines_of(rows)
    odd = b"# head\n\n" + plain.replace(b"\n", b"\r\n").replace(b'"state"', b' "state" ', 50)
    for data, first in ((plain, 1), (odd, 3)):
        dataset = Dataset(LineSource.from_bytes(data, "d"))
        assert len(dataset) == 3000
        for row in (0, 1, 49, 50, 1234, 2999):
            case = dataset.case(row)
            assert (case.row, case.line, case.id) == (row, row + first, f"r{row}")


def test_question_sets_beyond_the_cache() -> None:
    rows = []
    for i in range(5600):
        body = {"type": "choice", "instructions": "?", "criteria": [f"o{i % 2800}", "other"]}
        rows.append(
            {"state": i, "questions": {"q": body}, "expected": {"q": "other" if i % 3 else f"o{i % 2800}"}}
        )
    data = Dataset.from_rows(rows)
    assert data.columns.gold.tolist() == [1.0 if i % 3 else 0.0 for i in range(5600)]
    assert data.case(5599).questions.questions["q"].options == ("o2799", "other")


def test_rows_that_are_not_json() -> None:
    with pytest.raises(DatasetError, match="rows:1: not JSON"):
        Dataset.from_rows([{"state": object(), "questions": {}, "expected": {}}])


def test_validate_says_what_is_there(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    rows = [row | {"language": f"l{i % 15}"} for i, row in enumerate(make_rows(30))]
    rows.append(GOOD | {"expected": {}})
    (tmp_path / "d.jsonl").write_bytes(lines_of(rows))
    ran = steelyard("validate", tmp_path / "d.jsonl")
    assert "31 rows, 90 labels (30 choice, 30 score, 30 noul)" in ran.out
    assert "... 16 in all" in ran.out
    document = json.loads(steelyard("validate", tmp_path / "d.jsonl", "--json").out)
    assert document["counts"]["questions"]["flag"]["majority_share"] == 0.5
    assert document["counts"]["rows_without_language"] == 1


def test_validate_of_very_many_questions(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    rows = [{"state": 1, "questions": {f"q{i}": FLAG}, "expected": {f"q{i}": True}} for i in range(100)]
    (tmp_path / "d.jsonl").write_bytes(lines_of(rows))
    ran = steelyard("validate", tmp_path / "d.jsonl")
    assert "... and 40 more question ids" in ran.out
    assert (
        len(json.loads(steelyard("validate", tmp_path / "d.jsonl", "--json").out)["counts"]["questions"])
        == 100
    )


def test_near_miss_has_nothing_to_say_about_strangers() -> None:
    assert near_miss("zebra", ("billing", "sales")) == ""


def test_strict_json() -> None:
    assert strict_loads('\ufeff{"a": 1}'.encode()) == {"a": 1}
    assert count_keys({"a": [{"b": 1}, 2, {"c": {"d": 1}}]}) == 4
    assert one_line("a\x1b[31m\u2028b\ud835") == "a\\x1b[31m\\u2028b\\ud835"
    assert len(one_line("x" * 500)) == 200
    with pytest.raises(JsonFault, match="nested too deeply"):
        strict_loads("[" * 100_000)


fragments = st.sampled_from(
    [
        b"",
        b" ",
        b"#",
        b"# note",
        b"{",
        b"}",
        b"[]",
        b"null",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b'{"state": "\\ud800", "questions": {}, "expected": {}}',
        b'{"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": true}}',
        b'{"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": NaN}}',
        b'{"state": 1, "questions": {"q": {"type": ["x"], "instructions": "?"}}, "expected": {"q": {}}}',
        b'{"state": 1, "questions": {"q": {"type": "choice", "criteria": [[], {}]}}, "expected": []}',
        b'{"state": 1, "questions": {"": {}}, "expected": {"": 1}, "tags": [{}], "language": {}, "id": -1}',
        b'{"state": 1, "questions": {"q": {"type": "score", "criteria": [1]}}, "expected": {"q": 1e400}}',
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["state", "questions", "expected", "tags", "language", "model", "id", "group", "x"])
rows = st.dictionaries(keys, json_values, max_size=8).map(lambda value: json.dumps(value).encode("utf-8"))
mess = st.lists(
    fragments | rows | st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), min_size=1, max_size=200
)


@given(mess, st.integers(0, 400))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_a_mess_is_never_a_traceback(lines: list[bytes], cut: int) -> None:
    data = b"\n".join(lines * max(1, 2000 // len(lines)))
    columns, findings = scan(LineSource.from_bytes(data[: len(data) - cut] or b"x", "mess"))
    assert len(columns) or findings.n_faults
    for fault in findings.faults:
        assert fault.startswith("mess")
        assert "\n" not in fault
        fault.encode("utf-8")


def soft_row(question: dict[str, Any], label: Any) -> dict[str, Any]:
    return {"state": "s: with a colon", "questions": {"q": question}, "expected": {"q": label}}


@pytest.mark.parametrize(
    ("question", "label", "said"),
    [
        (
            TEAM,
            {"billng": 1.0},
            'expected.q: "billng" is not an option (billing, support, sales); did you mean',
        ),
        (
            TEAM,
            {"billing": 0.5, "sales": 0.3},
            "expected.q: shares sum to 0.8, not 1; divide each by their sum",
        ),
        (TEAM, {"billing": 3, "sales": 1}, 'the share of "billing" is a number from 0 to 1, not 3'),
        (TEAM, {"billing": "1"}, 'the share of "billing" is a number from 0 to 1, not "1"'),
        (TEAM, {}, "shares sum to 0, not 1"),
        (FLAG, {"yes": 1.0}, '"yes" is not an option (false, true)'),
        (FLAG, {"true": True}, 'the share of "true" is a number from 0 to 1, not true'),
        (LEVEL, {"3": 1.0}, '"3" is not an option (0, 1, 2)'),
    ],
)
def test_soft_labels_that_are_none(question: dict[str, Any], label: Any, said: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(said)):
        Dataset.from_rows([soft_row(question, label)])


def test_soft_labels_are_kept_with_hard_ones(tmp_path: Path) -> None:
    rows = [
        soft_row(TEAM, "sales"),
        soft_row(TEAM, {"support": 0.66, "sales": 0.33}),
        soft_row(FLAG, {"true": 0.25, "false": 0.75}),
        soft_row(LEVEL, {"1": 0.5, "2": 0.5}),
        soft_row(FLAG, True),
    ]
    path = tmp_path / "soft.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for data in (Dataset.from_jsonl(path), Dataset.from_rows(rows)):
        columns = data.columns
        assert list(columns.gold) == [2.0, 1.0, 0.0, 1.5, 1.0]
        assert list(columns.soft_at) == [1, 2, 3]
        assert list(columns.soft_size) == [3, 2, 3]
        mass = [0, 0.66 / 0.99, 0.33 / 0.99, 0.75, 0.25, 0, 0.5, 0.5]
        assert list(columns.soft_mass) == pytest.approx(mass)
        assert columns.summary()["soft_labels"] == 3
        assert data.case(1).expected == {"q": {"support": 0.66, "sales": 0.33}}
