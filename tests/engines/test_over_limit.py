"""Questions over a server's limits: by rounds, by likeness, in several calls; and revisions of a router."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import Dataset, InputError, RunOptions, evaluate, make_engine
from steelyard.core.requests import Facts, Failure, Reply, Request
from steelyard.engines._over_limit import OverLimit, split
from steelyard.engines.laya import pins_of
from steelyard.fake.quirks import Quirks
from steelyard.fake.server import FakeServer
from steelyard.formats.jsontext import dumps
from steelyard.formats.questions import parse_questions
from tests.conftest import Ran, make_rows


def big(n: int, **body: Any) -> dict[str, Any]:
    names = {f"option {at}": f"number {at}" for at in range(n)}
    return {"type": "choice", "instructions": "Which?", "criteria": names} | body


FLAG = {"type": "noul", "instructions": "Is it?"}


def liking(text: str) -> int:
    return zlib.crc32(text.encode())


class Server:
    """Answers with the option it likes best, whatever else is offered, and keeps what it was asked."""

    def __init__(self, **facts: Any) -> None:
        self.asked: list[Request] = []
        self.facts = Facts(**facts)

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        answers: dict[str, Any] = {}
        for qid, one in request.questions.questions.items():
            if one.kind == "choice":
                best = max(one.options, key=liking)
                shares = {name: 0.8 if name == best else 0.2 / (len(one.options) - 1) for name in one.options}
                answers[qid] = {"choice": best, "probabilities": shares, "answer_confidence": 0.8}
            else:
                answers[qid] = {"noul": 0.75}
        return Reply(request.row, answers, "m", cost=0.5, facts=self.facts)


def request(**bodies: Any) -> Request:
    return Request(7, "about option 3", parse_questions(dumps(bodies)))


def asked(way: str, options: int | None, questions: int | None, call: Any, **bodies: Any) -> Reply:
    return asyncio.run(OverLimit(way, options, questions).ask(request(**bodies), call))


@given(n=st.integers(2, 60), most=st.integers(2, 9), questions=st.integers(1, 5) | st.none())
def test_a_tournament_finds_what_a_server_of_one_mind_likes_best(
    n: int, most: int, questions: int | None
) -> None:
    server = Server()
    found = asked("tournament", most, questions, server, a=big(n), flag=FLAG, b=big(n + 3))
    assert list(found.answers) == ["a", "flag", "b"]
    for qid, size in (("a", n), ("b", n + 3)):
        assert found.answers[qid]["choice"] == max((f"option {at}" for at in range(size)), key=liking)
        assert ("probabilities" in found.answers[qid]) == (size <= most)
    for one in server.asked:
        sets = one.questions.questions.values()
        assert len(sets) <= (questions or len(sets))
        assert all(len(question.options) <= most for question in sets if question.kind == "choice")
    assert found.cost == 0.5 * len(server.asked)


@given(st.integers(1, 400), st.integers(1, 50))
def test_parts_hold_everything_once_and_are_even(n: int, most: int) -> None:
    parts = split(list(range(n)), most)
    assert [one for part in parts for one in part] == list(range(n))
    assert len(parts) == -(-n // most)
    sizes = list(map(len, parts))
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


def test_a_tournament_by_hand() -> None:
    server = Server(input_tokens=10, output_tokens=1, attempts=2)
    found = asked("tournament", 3, None, server, a=big(7, option_order=list(range(7))))
    # 7 in groups of 2, 2 and 3; their 3 winners fit.
    sizes = [[len(q.options) for q in one.questions.questions.values()] for one in server.asked]
    assert sizes == [[2, 2, 3], [3]]
    groups = [range(2), range(2, 4), range(4, 7)]
    winners = [max((f"option {at}" for at in group), key=liking) for group in groups]
    assert found.answers["a"]["tournament"] == {"labels": winners, "n": 7, "rounds": 1}
    assert all("option_order" not in body for one in server.asked for body in one.questions.bodies.values())
    assert server.asked[1].questions.bodies["a"]["criteria"][winners[0]] == f"number {winners[0][7:]}"
    assert found.facts == Facts(input_tokens=20, output_tokens=2, attempts=2, narrowed=1)
    assert (found.row, found.model, found.cost) == (7, "m", 1.0)


def test_a_shortlist_keeps_the_likest_in_their_rank() -> None:
    server = Server()
    found = asked("shortlist", 4, None, server, a=big(12), flag=FLAG)
    (one,) = server.asked
    kept = found.answers["a"]["shortlist"]
    assert kept["labels"][0] == "option 3"
    assert kept["scores"] == sorted(kept["scores"], reverse=True)
    assert (kept["k"], kept["n"]) == (4, 12)
    assert list(one.questions.questions["a"].options) == kept["labels"]
    assert found.answers["flag"] == {"noul": 0.75}
    # All alike: the first ones stay, in their order.
    same = {"type": "choice", "instructions": "?", "criteria": dict.fromkeys("zyxwv", None)}
    assert asked("shortlist", 2, None, server, a=same).answers["a"]["shortlist"]["labels"] == ["z", "y"]


def test_what_one_call_does_not_tell_is_unknown_of_all() -> None:
    class Some(Server):
        async def __call__(self, request: Request) -> Reply:
            reply = await super().__call__(request)
            if len(self.asked) == 2:
                reply = msgspec.structs.replace(reply, cost=None, facts=Facts())
            return reply

    found = asked("tournament", 3, None, Some(input_tokens=10), a=big(7))
    assert found.cost is None
    assert found.facts is not None
    assert found.facts.input_tokens is None


def test_a_failed_or_foolish_call_is_the_reply() -> None:
    async def fails(one: Request) -> Reply:
        return Reply(one.row, failure=Failure("rejected", "no"), cost=0.25)

    found = asked("tournament", 3, None, fails, a=big(7))
    assert (found.answers, found.failure, found.cost) == (None, Failure("rejected", "no"), 0.25)

    async def foolish(one: Request) -> Reply:
        return Reply(one.row, {qid: {"choice": "none of them"} for qid in one.questions.questions})

    found = asked("tournament", 3, None, foolish, a=big(7))
    assert found.failure is not None
    assert found.failure.reason == "invalid_answer"
    assert 'of "a" was answered "none of them"' in found.failure.message


@pytest.mark.parametrize("way", ["tournament", "shortlist"])
def test_a_run_over_limits_is_counted_and_kept(way: str, tmp_path: Path) -> None:
    rows = [
        {"state": f"option {at % 30}", "questions": {"a": big(30), "f": FLAG, "g": FLAG},
         "expected": {"a": f"option {at % 30}", "f": True, "g": False}}
        for at in range(20)
    ]  # fmt: skip
    data = Dataset.from_rows(rows)
    with FakeServer(Quirks(fault_rate=0.3)) as server:
        spec = f"systemone:{server.url},most_options=5,most_questions=2,backoff=0.001"
        with pytest.raises(InputError, match=r"3 questions; systemone takes 2; set over_limit to tournament"):
            evaluate(spec, data)
        report = evaluate(
            f"{spec},over_limit={way}", data, options=RunOptions(concurrency=4, batch_size=4), out=tmp_path
        )
    assert report.counts["scored"] == 60
    assert report.counts["server"]["answers_narrowed"] == 20
    assert report.engine["settings"]["over_limit"] == way
    assert report.engine["settings"]["most_options"] == 5
    line = json.loads((tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert line["answers"]["a"][way]["n"] == 30
    assert line["answers"]["a"]["choice"] in line["answers"]["a"][way]["labels"]
    if way == "shortlist":
        text = (tmp_path / "replies.jsonl").read_text(encoding="utf-8")
        kept = [json.loads(line)["answers"]["a"]["shortlist"]["labels"][0] for line in text.splitlines()]
        assert sorted(kept) == sorted(f"option {at % 30}" for at in range(20))


def test_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steelyard: Callable[..., Ran]) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(row) + "\n" for row in make_rows(6))
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-8")
    with FakeServer() as server:
        spec = f"systemone:{server.url},most_questions=1"
        assert steelyard("run", "d.jsonl", "-e", spec).code == 2
        assert steelyard("run", "d.jsonl", "-e", spec, "--over-limit", "tournament").code == 0
        assert server.answered == 18
        ran = steelyard(
            "run", "d.jsonl", "-e", f"systemone:{server.url},most_options=2", "--over-limit", "shortlist"
        )
        assert "answers narrowed 6" in ran.out
    with FakeServer(Quirks(missing_usage=True)) as server:
        ran = steelyard("run", "d.jsonl", "-e", f"systemone:{server.url}")
        assert "replies: tokens unknown, rows without usage 6" in ran.out


@pytest.mark.parametrize(("setting", "words"), [
    ("over_limit=coin", "over_limit must be tournament or shortlist"),
    ("over_limit=shortlist", "over_limit needs a limit"),
    ("most_options=1", "most_options must be 2 or more"),
    ("most_options=many", "most_options"),
    ("probability_source=guess", "probability_source must be native, logprob"),
    ("probability_source=sampled(0)", "probability_source must be"),
])  # fmt: skip
def test_settings_that_cannot_be(setting: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_engine(f"systemone:http://127.0.0.1:9,{setting}")


def test_levels_over_the_limit_are_refused_either_way() -> None:
    level = {"type": "score", "instructions": "How?", "criteria": list("abcd")}
    data = Dataset.from_rows([{"state": "s", "questions": {"l": level}, "expected": {"l": 1}}])
    for way in ("", ",over_limit=tournament"):
        with pytest.raises(InputError, match="4 levels; systemone takes 3; name another engine"):
            evaluate(f"systemone:http://127.0.0.1:9,most_levels=3,most_options=9{way}", data)


def test_where_probabilities_come_from_is_said() -> None:
    for source in ("verbalised", "label-only", "sampled(8)"):
        engine = make_engine(f"systemone:http://127.0.0.1:9,probability_source={source}")
        assert engine.settings["probability_source"] == source
    for name in ("hunch", "openai_chat"):
        assert make_engine(f"{name}:http://127.0.0.1:9").settings["probability_source"] == "logprob"


@pytest.mark.parametrize(("text", "routes", "found"), [
    (None, True, {}),
    ("abc", False, {"revision": "abc"}),
    ("abc+abc", True, {"revision": "abc"}),
    ("English=a+ml=b", True, {"revisions": {"english": "a", "ml": "b"}}),
    ("c+en=a", True, {"revision": "c", "revisions": {"en": "a"}}),
])  # fmt: skip
def test_revisions(text: str | None, routes: bool, found: dict[str, Any]) -> None:
    assert pins_of(text, routes=routes) == found


@pytest.mark.parametrize(("text", "routes", "words"), [
    ("", True, "must be a commit"),
    ("en=", True, "must be a commit"),
    ("=abc", True, "must be a commit"),
    ("en=abc", False, "pins a checkpoint of the router"),
    ("a+b", True, "two commits for one checkpoint"),
    ("en=a+en=b", True, 'two commits for "en"'),
])  # fmt: skip
def test_revisions_that_cannot_be(text: str, routes: bool, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pins_of(text, routes=routes)


def test_two_decimals_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steelyard: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(row) + "\n" for row in make_rows(40))
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-8")
    for decimals in (2, 4):
        with FakeServer(Quirks(decimals=decimals)) as server:
            ran = steelyard(
                "run", "d.jsonl", "-e", f"systemone:{server.url},rounds=false", "--on-error", "skip"
            )
        assert ("confidences have 2 decimals" in ran.out) == (decimals == 2), ran.err


def test_a_chat_pays_only_for_what_it_asked(tmp_path: Path) -> None:
    one = {"type": "choice", "instructions": "?", "criteria": {"only": None}}
    rows = [{"state": "s", "questions": {"a": big(30)}, "expected": {"a": "option 1"}}]
    with FakeServer() as server:
        spec = f"openai_chat:{server.url},cache={tmp_path},price_input=1,price_output=0"
        first = evaluate(spec, Dataset.from_rows(rows)).counts
        again = [
            {"state": "s", "questions": {"a": big(30), "f": FLAG}, "expected": {"a": "option 1", "f": True}}
        ]
        second = evaluate(spec, Dataset.from_rows(again)).counts
        assert 0 < second["money"]["total"] < first["money"]["total"]
        none = evaluate(
            spec, Dataset.from_rows([{"state": "s", "questions": {"o": one}, "expected": {"o": "only"}}])
        )
    assert (none.counts["money"]["total"], none.counts["server"]["rows_without_usage"]) == (0, 0)
