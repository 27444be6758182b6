"""Calls: order, grouping, concurrency, deadlines, and what every reply must be."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from steelyard import (
    Ability,
    Dataset,
    Engine,
    EngineFailedError,
    InputError,
    InvalidAnswerError,
    Reply,
    RunOptions,
    evaluate,
)
from steelyard.core.requests import CallOptions
from steelyard.engines.python import PythonEngine
from steelyard.run.plan import plan_calls
from tests.conftest import FLAG, LEVEL, TEAM, make_rows

GOOD = {"team": {"choice": "sales"}, "level": {"score": 1.0}, "flag": {"noul": 0.9}}


class Recorder:
    """Answers everything the same way and remembers how it was called."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []

    def predict_batch(self, states: list[Any], questions: Any) -> list[Any]:
        self.calls.append(states)
        return [{qid: GOOD[qid] for qid in questions} for _ in states]


def test_equal_questions_share_calls_anywhere_in_the_file() -> None:
    rows = make_rows(12)
    for i, row in enumerate(rows):
        if i % 2:
            row["questions"], row["expected"] = {"flag": FLAG}, {"flag": True}
    recorder = Recorder()
    report = evaluate(recorder, Dataset.from_rows(rows), options=RunOptions(batch_size=4))
    assert [len(call) for call in recorder.calls] == [4, 2, 4, 2]
    assert recorder.calls[0] == [f"message number {i}" for i in (0, 2, 4, 6)]
    assert [case["row"] for case in report.cases()] == sorted(case["row"] for case in report.cases())
    timing = report.config["timing"]
    assert (timing["chunks"], timing["rows_grouped"], timing["max_chunk"]) == (4, 12, 4)


def test_models_do_not_share_calls_and_key_order_does_not_part_them() -> None:
    rows = make_rows(6, {"team": TEAM, "flag": FLAG})
    rows[1]["questions"] = {"flag": FLAG, "team": TEAM}
    for i in (2, 3):
        rows[i]["model"] = "m"
    engine = PythonEngine.wrap(Recorder())
    calls = list(plan_calls(engine, Dataset.from_rows(rows), range(6), CallOptions(3), None))
    assert calls == [[0, 1, 4], [5], [2, 3]]


def test_sort_by_length_puts_like_with_like_and_answers_return_in_order() -> None:
    rows = make_rows(8)
    for i, row in enumerate(rows):
        row["state"] = "x" * (10 if i % 2 else 1) + str(i)
    recorder = Recorder()
    report = evaluate(
        recorder, Dataset.from_rows(rows), options=RunOptions(batch_size=4, sort_by_length=True)
    )
    assert [{len(state) for state in call} for call in recorder.calls] == [{2}, {11}]
    assert report.table.row.tolist() == sorted(report.table.row.tolist())
    assert report.config["timing"]["sort_by_length_sent"] is True


def test_an_engine_that_does_not_batch_is_not_said_to() -> None:
    report = evaluate(lambda *_: GOOD, Dataset.from_rows(make_rows(4)), options=RunOptions(batch_size=4))
    timing = report.config["timing"]
    assert (timing["batch_size"], timing["batch_form"], timing["max_chunk"]) == (4, None, 1)


def test_no_batch_means_one_call_a_row_in_order() -> None:
    recorder = Recorder()
    evaluate(recorder, Dataset.from_rows(make_rows(3)))
    assert recorder.calls == [["message number 0"], ["message number 1"], ["message number 2"]]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_concurrency_changes_nothing_but_time(concurrency: int) -> None:
    data = Dataset.from_rows(make_rows(40))
    options = RunOptions(concurrency=concurrency)
    report = evaluate("scripted,latency=0.002", data, options=options)
    plain = evaluate("scripted", data)
    assert list(report.cases()) == list(plain.cases())


def test_calls_overlap() -> None:
    most, now, lock = 0, 0, threading.Lock()

    class Waits:
        abilities = ("concurrent",)

        def predict(self, state: Any, questions: Any) -> Any:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1
            return GOOD

    evaluate(Waits(), Dataset.from_rows(make_rows(30)), options=RunOptions(concurrency=6))
    assert 2 <= most <= 6


class Slow:
    def predict(self, state: str, questions: Any) -> Any:
        time.sleep(1.5 if state.endswith("2") else 0)
        return GOOD


def test_timeout_errors_the_row_and_the_run_goes_on() -> None:
    data = Dataset.from_rows(make_rows(5))
    report = evaluate(Slow(), data, options=RunOptions(timeout=0.15, on_error="skip"))
    assert report.counts["by_reason"] == {"timeout": 3}
    assert report.config["errored"] == [{"index": 2, "error": "timeout: no answer in 0.15 s"}]
    with pytest.raises(EngineFailedError, match=r"row 2, question team: no answer in 0\.15 s"):
        evaluate(Slow(), data, options=RunOptions(timeout=0.15))


def test_calls_that_end_just_at_the_deadline_lose_nothing() -> None:
    class Edge:
        abilities = ("concurrent",)

        def predict(self, state: str, questions: Any) -> Any:
            time.sleep(0.02)
            return GOOD

    data = Dataset.from_rows(make_rows(120))
    report = evaluate(Edge(), data, options=RunOptions(timeout=0.0201, concurrency=6, on_error="skip"))
    assert report.counts["scored"] + report.counts["errored"] == 360
    assert set(report.counts["by_reason"]) <= {"timeout"}


def test_a_run_whose_calls_never_return_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.run.ask.MAX_ABANDONED", 2)
    data = Dataset.from_rows(make_rows(9))

    def hangs(state: str, questions: Any) -> Any:
        time.sleep(0.5)
        return GOOD

    with pytest.raises(EngineFailedError, match=r"3 calls did not return in 0\.05 s; giving up"):
        evaluate(hangs, data, options=RunOptions(timeout=0.05, on_error="skip"))


BAD = [
    ({"choice": "nowhere"}, "invalid_answer", 'choice "nowhere" is not an option'),
    ({"choice": None}, "invalid_answer", "neither choice nor probabilities"),
    ({}, "invalid_answer", "neither choice nor probabilities"),
    ({"type": "noul", "choice": "sales"}, "invalid_answer", 'type is "noul"'),
    ({"probabilities": {"billing": 0.5, "support": 0.5}}, "invalid_answer", "does not cover every option"),
    (
        {"probabilities": {"billing": 0.5, "support": 0.5, "x": 0.0}},
        "invalid_answer",
        'has "x", which is not an option',
    ),
    (
        {"probabilities": {"billing": 0.5, "support": 0.5, "sales": 0.1}},
        "invalid_distribution",
        "sum to 1.1, not 1",
    ),
    (
        {"probabilities": {"billing": 1.5, "support": -0.5, "sales": 0}},
        "invalid_distribution",
        "outside 0 to 1",
    ),
    (
        {"probabilities": {"billing": "a", "support": 0, "sales": 0}},
        "invalid_answer",
        "probabilities.billing is string",
    ),
    ({"probabilities": [0.5, 0.5]}, "invalid_answer", "probabilities is array"),
    ({"choice": "sales", "answer_confidence": 1.2}, "invalid_answer", "confidence 1.2 is out of range"),
    ({"choice": "sales", "answer_confidence": float("nan")}, "invalid_answer", "answer_confidence is NaN"),
    ({"choice": "sales", "answer_confidence": "high"}, "invalid_answer", "answer_confidence is string"),
    ({"choice": "sales", "confidence": -0.2}, "invalid_answer", "-0.2 is out of range"),
    ("sales", "invalid_answer", "the answer is string"),
    ({"choice": "sales", "extra": object()}, "invalid_answer", "cannot be written as JSON"),
]


@pytest.mark.parametrize(("answer", "reason", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_choice_answers(answer: Any, reason: str, message: str) -> None:
    check_bad("team", TEAM, "sales", answer, reason, message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"score": 2.5}, "value 2.5 is out of range"),
        ({"score": None}, "score is null"),
        ({"score": "1"}, "score is string"),
        ({"score": True}, "score is boolean"),
        ({}, "score is missing"),
    ],
)
def test_bad_score_answers(answer: Any, message: str) -> None:
    check_bad("level", LEVEL, 1, answer, "invalid_answer", message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [({"noul": 1.2}, "1.2 is out of range"), ({"noul": None}, "noul is null"), ({}, "noul is missing")],
)
def test_bad_noul_answers(answer: Any, message: str) -> None:
    check_bad("flag", FLAG, True, answer, "invalid_answer", message)


def check_bad(qid: str, question: Any, label: Any, answer: Any, reason: str, message: str) -> None:
    data = Dataset.from_rows([{"state": "s", "questions": {qid: question}, "expected": {qid: label}}])
    report = evaluate(lambda *_: {"answers": {qid: answer}}, data, options=RunOptions(on_error="skip"))
    assert report.counts["by_reason"] == {reason: 1}
    assert message in report.config["errored"][0]["error"]
    assert report.overall.keys() <= {
        "latency_p50_ms",
        "latency_p95_ms",
        "cost_per_decision_p50_ms",
        "cost_per_decision_p95_ms",
    }
    with pytest.raises(InvalidAnswerError, match="rows:1: row 0"):
        evaluate(lambda *_: {"answers": {qid: answer}}, data)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"answers": {"team": {"choice": "sales"}}}, "missing_answer"),
        ({"answers": GOOD | {"more": {"noul": 0.5}}}, "unexpected_question"),
        ({"answers": None}, "missing_answer"),
        ({"answers": [1]}, "invalid_answer"),
        ({}, "missing_answer"),
        (None, "invalid_answer"),
        ("text", "invalid_answer"),
    ],
    ids=str,
)
def test_replies_of_the_wrong_shape(result: Any, reason: str) -> None:
    data = Dataset.from_rows(make_rows(2))
    report = evaluate(lambda *_: result, data, options=RunOptions(on_error="skip"))
    assert list(report.counts["by_reason"]) == [reason]
    assert report.counts["scored"] == (2 if reason == "missing_answer" and result.get("answers") else 0)


def test_an_unlabelled_question_is_not_applicable() -> None:
    rows = make_rows(3)
    for row in rows:
        del row["expected"]["flag"]
    report = evaluate(lambda *_: GOOD, Dataset.from_rows(rows))
    assert report.counts["not_applicable"] == 3
    assert report.counts["by_reason"] == {"unlabelled": 3}
    only = evaluate(lambda *_: {"team": GOOD["team"], "level": GOOD["level"]}, Dataset.from_rows(rows))
    assert only.counts["errored"] == 0


def test_exceptions_are_named_and_chained_to_the_row() -> None:
    def explode(state: Any, questions: Any) -> Any:
        raise KeyError("no such\nmodel")

    data = Dataset.from_rows(make_rows(2))
    with pytest.raises(EngineFailedError, match=r"rows:1: row 0, question team: KeyError: 'no such\\nmodel'"):
        evaluate(explode, data)


class Odd(Engine):
    name = "odd"
    abilities = Ability.BATCH

    def __init__(self, rows: list[int]) -> None:
        super().__init__()
        self._rows = rows

    def answer(self, requests: Any, options: Any) -> list[Reply]:
        return [Reply(row, GOOD) for row in self._rows]


def test_replies_are_joined_by_row() -> None:
    data = Dataset.from_rows(make_rows(3))
    batch = RunOptions(batch_size=3, on_error="skip")
    assert evaluate(Odd([2, 0, 1]), data, options=batch).counts["errored"] == 0
    for rows, words in (
        ([0, 1], "3 sent, 2 came back"),
        ([0, 1, 1], "other rows"),
        ([1, 2, 3], "other rows"),
    ):
        report = evaluate(Odd(rows), data, options=batch)
        assert report.counts["by_reason"] == {"wrong_count": 9}
        assert words in report.config["errored"][0]["error"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RunOptions(batch_size=0), "batch_size"),
        (RunOptions(concurrency=0), "concurrency"),
        (RunOptions(limit=0), "limit"),
        (RunOptions(min_confidence=1.5), "min_confidence"),
        (RunOptions(min_confidence=True), "min_confidence"),
        (RunOptions(timeout=0), "timeout"),
        (RunOptions(timeout=float("nan")), "timeout"),
        (RunOptions(on_error="ignore"), "on_error"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_options_no_run_can_have(options: RunOptions, words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate("lexical", Dataset.from_rows(make_rows(2)), options=options)


def test_pins_and_thresholds_are_refused_before_the_first_call() -> None:
    recorder = Recorder()
    rows = make_rows(3)
    rows[2]["model"] = "m"
    with pytest.raises(InputError, match=r'rows:3: pins model "m"'):
        evaluate(recorder, Dataset.from_rows(rows))
    with pytest.raises(InputError, match="takes no model"):
        evaluate(recorder, Dataset.from_rows(make_rows(3)), options=RunOptions(model="m"))
    with pytest.raises(InputError, match="takes no min_confidence"):
        evaluate(recorder, Dataset.from_rows(make_rows(3)), options=RunOptions(min_confidence=0.5))
    assert recorder.calls == []


def test_min_confidence_zero_is_recorded_and_marks_nothing() -> None:
    data = Dataset.from_rows(make_rows(6))
    report = evaluate("scripted", data, options=RunOptions(min_confidence=0.0))
    assert report.config["timing"]["min_confidence"] == 0.0
    assert report.config["timing"]["min_confidence_sent"] is True
    assert not any("low_confidence" in case["answer"] for case in report.cases())
    strict = evaluate("scripted", data, options=RunOptions(min_confidence=1.0))
    assert all(case["answer"]["abstention"] == "abstained" for case in strict.cases())
    assert strict.measurements.overall == report.measurements.overall


def test_limit_asks_the_first_rows_only() -> None:
    recorder = Recorder()
    report = evaluate(recorder, Dataset.from_rows(make_rows(9)), options=RunOptions(limit=4))
    assert len(recorder.calls) == 4
    assert report.counts["rows"] == 4
    assert report.measurements.overall["noul_accuracy"].n == 4


def test_progress_is_told_how_far_the_run_is() -> None:
    told: list[tuple[int, int, int]] = []
    evaluate(
        "scripted,fail_every=5",
        Dataset.from_rows(make_rows(20)),
        options=RunOptions(on_error="skip"),
        progress=lambda *numbers: told.append(numbers),
    )
    assert told[-1] == (20, 20, 4)
