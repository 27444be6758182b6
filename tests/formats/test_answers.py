"""Answers taken together and one by one are the same answers."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.requests import Failure, Reply
from steelyard.formats.answer_table import Answers
from steelyard.formats.answers import AnswerReader
from steelyard.formats.jsontext import JsonFault
from steelyard.formats.questions import parse_questions
from steelyard.formats.replies import encode_reply, not_finite, parse_replies, parse_reply

QUESTIONS = {
    "pick": {"type": "choice", "instructions": "?", "criteria": ["a", "b", "c"]},
    "rate": {"type": "score", "instructions": "?", "criteria": ["0", "1", "2"]},
    "flag": {"type": "noul", "instructions": "?"},
}
ASKED = parse_questions(json.dumps(QUESTIONS).encode())


def alike(rng: random.Random, fields: frozenset[str]) -> dict[str, Any]:
    """Answers whose fields are the same from reply to reply."""
    weights = [rng.randint(1, 9) for _ in range(3)]
    p = [weight / sum(weights) for weight in weights]
    answers: dict[str, Any] = {
        "pick": {"choice": rng.choice("abc")},
        "rate": {"score": sum(i * x for i, x in enumerate(p))},
        "flag": {"noul": rng.random()},
    }
    if "probabilities" in fields:
        answers["pick"]["probabilities"] = dict(zip("abc", p, strict=True))
        answers["rate"]["probabilities"] = dict(zip("012", p, strict=True))
    for qid, answer in answers.items():
        answer |= {name: rng.random() for name in ("answer_confidence", "confidence") if name in fields}
        if "type" in fields:
            answer["type"] = QUESTIONS[qid]["type"]
    return answers


def spoil(rng: random.Random, answers: dict[str, Any]) -> None:
    """Make one answer different from its neighbours, wrong or only unusual."""
    answer = answers[rng.choice(list(answers))]
    rng.choice(
        [
            lambda: answer.update(confidence=2),
            lambda: answer.update(confidence=None),
            lambda: answer.update(answer_confidence=True),
            lambda: answer.update(answer_confidence=1),
            lambda: answer.update(type="odd"),
            lambda: answer.update(choice="zebra", score=7, noul=-1.0),
            lambda: answer.pop("choice", None),
            lambda: answer.update(probabilities={"b": 0.5, "a": 0.25, "c": 0.25}),
            lambda: answer.update(probabilities={"0": 0.5, "1": 0.6, "2": 0.1}),
            lambda: answer.update(probabilities="none"),
            lambda: answers.pop("flag"),
            lambda: answers.update(more={"noul": 0.5}),
            answers.clear,
        ]
    )()


@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(0, 5),
    st.frozensets(st.sampled_from(["probabilities", "answer_confidence", "confidence", "type"])),
)
@settings(max_examples=80, deadline=None)
def test_together_is_one_by_one(seed: int, n: int, spoiled: int, fields: frozenset[str]) -> None:
    rng = random.Random(seed)
    made = [alike(rng, fields) for _ in range(n)]
    for answers in rng.sample(made, min(spoiled, n)):
        spoil(rng, answers)
    replies = [Reply(row, answers) for row, answers in enumerate(made)]
    if n > 3 and spoiled:
        replies[2] = Reply(2, failure=Failure("timeout", "late"))
    parsed = [parse_reply(encode_reply(reply, 1.0, 1)) for reply in replies]
    taken = [(reply.row, ASKED, reply.answers) for reply in parsed]
    order = rng.sample(range(n), n)
    together, single = AnswerReader(["c"]), AnswerReader(["c"])
    whole = Answers.join([together.take([taken[i] for i in order])])
    apart = Answers.join([single.take([item]) for item in taken])
    names = {code: name for name, code in together.labels.items()} | {-1: None}
    single_names = {code: name for name, code in single.labels.items()} | {-1: None}
    assert [names[code] for code in whole.label.tolist()] == [
        single_names[code] for code in apart.label.tolist()
    ]
    for field in Answers.__struct_fields__:
        if field == "messages":
            assert whole.messages == apart.messages
        elif field not in ("label", "probabilities", "size"):
            np.testing.assert_array_equal(getattr(whole, field), getattr(apart, field), err_msg=field)
    good = whole.reason == 0
    assert whole.size[good].tolist() == apart.size[good].tolist()


def test_later_answers_replace_earlier_ones() -> None:
    reader = AnswerReader([])
    blocks = []
    for noul in (0.25, 0.75):
        parsed = parse_reply(
            encode_reply(
                Reply(0, {"pick": {"choice": "a"}, "rate": {"score": 1}, "flag": {"noul": noul}}), None, 1
            )
        )
        blocks.append(reader.take([(0, ASKED, parsed.answers)]))
    found = Answers.join(blocks)
    assert found.row.tolist() == [0, 0, 0]
    assert found.value[2] == 0.75


def test_nothing_is_nothing() -> None:
    assert len(Answers.join([]).row) == 0
    assert len(AnswerReader([]).take([]).row) == 0
    empty = parse_questions(b"{}")
    assert len(AnswerReader([]).take([(row, empty, {}) for row in range(20)]).row) == 0


def test_log_lines_round_trip() -> None:
    lines = [
        encode_reply(Reply(3, {"flag": {"noul": 0.5}}, "m"), 1.5, 4),
        encode_reply(Reply(4, failure=Failure("timeout", "no answer")), None, 1),
        encode_reply(Reply(5, {"flag": {"noul": 0.5, "note": "\ud835"}}), None, 1),
        encode_reply(Reply(6, [1]), None, 1),
    ]
    first, second, third, fourth = parse_replies(b"\n".join(lines) + b"\n")
    assert (first.row, first.model, first.ms, first.shared) == (3, "m", 1.5, 4)
    assert second.answers == Failure("timeout", "no answer")
    assert isinstance(third.answers, dict)
    assert isinstance(fourth.answers, Failure)
    assert lines[0] == b'{"row":3,"answers":{"flag":{"noul":0.5}},"model":"m","ms":1.5000,"shared":4}'


@pytest.mark.parametrize(
    "line", [b"[]", b'{"row":"x"}', b'{"row":1', b'{"row":1,"answers":[1],"shared":"x"}', b'{"answers":{}}']
)
def test_lines_that_are_no_records(line: bytes) -> None:
    with pytest.raises(JsonFault):
        parse_replies(b'{"row":0,"answers":{}}\n' + line + b"\n")


def test_not_finite_names_the_place() -> None:
    assert not_finite({"a": [1, {"b": float("inf")}]}, "x") == "x.a[1].b is infinite"
    assert not_finite({"a": (1.0, None)}, "x") is None
