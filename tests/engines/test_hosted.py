"""Hosted engines against the fake server: every wire, every quirk, and no secret anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, EngineFailedError, InputError, RunOptions, check, evaluate, make_engine
from steelyard.core.requests import Request
from steelyard.engines._http import error_text, retry_after
from steelyard.engines._secrets import Secret, read_secret
from steelyard.engines.openai_chat import letters_of
from steelyard.engines.wires import Hunch, OpenAIDecisions, SystemOne, WireFault, finished, tokens_of
from steelyard.fake.quirks import FAULTS, Quirks, parse_quirks
from steelyard.fake.server import FakeServer
from steelyard.formats.dataset import Dataset as Data
from tests.conftest import FLAG, TEAM, Ran, make_rows

SKIP = RunOptions(on_error="skip")
KEY = "sk-very-secret-0123456789"
WIRES = ("systemone", "openai_decisions", "vercel_evaluation", "hunch")


def data(n: int = 40) -> Dataset:
    return Dataset.from_rows(make_rows(n), "data")


def answers(report: Any) -> Any:
    table = report.table
    return [
        table.value.tolist(),
        table.pred_label.tolist(),
        [table.names.labels[c] for c in table.pred_label],
    ]


def ask(spec: str, dataset: Dataset | None = None, **how: Any) -> Any:
    return evaluate(f"{spec},backoff=0.001", dataset or data(), options=RunOptions(**how))


@pytest.fixture(scope="module")
def plain() -> Any:
    with FakeServer() as server:
        yield server


@pytest.fixture(scope="module")
def told(plain: Any) -> Any:
    """What the fake server answers, by the plainest way."""
    return repr(answers(ask(f"systemone:{plain.url}")))


@pytest.mark.parametrize("name", WIRES)
def test_every_wire_says_the_same(plain: FakeServer, told: str, name: str) -> None:
    report = ask(f"{name}:{plain.url}", concurrency=8)
    assert repr(answers(report)) == told
    assert report.counts["scored"] == 120
    assert report.counts["server"]["input_tokens"] == 40 * 24 + sum(
        len(f"message number {i}") // 4 - 4 for i in range(40)
    )
    assert report.counts["server"]["rows_without_usage"] == 0


@pytest.mark.parametrize(
    "spec",
    [
        "systemone:laya-serve,base_url={url}",
        "systemone:clef,account=x,base_url={url}/client/v4/accounts/x",
        "systemone:jev,base_url={url}",
        "systemone:perplexity,base_url={url}",
        "systemone:custom,base_url={url},auth=x-api-key",
        "systemone:{url},preset=fireworks",
    ],
)
def test_presets_say_the_same(plain: FakeServer, told: str, spec: str) -> None:
    report = ask(spec.format(url=plain.url), concurrency=8, batch_size=8)
    assert repr(answers(report)) == told
    assert report.engine["settings"]["url"].startswith(plain.url)


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("fault", [*FAULTS, "+".join(FAULTS)])
def test_faults_change_no_answer(told: str, name: str, fault: str) -> None:
    with FakeServer(Quirks(fault_rate=0.5, faults=fault)) as server:
        report = ask(f"{name}:{server.url}", concurrency=8)
    assert repr(answers(report)) == told
    assert report.counts["server"]["rows_retried"] > 5
    assert server.answered == 40


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    with FakeServer(Quirks(latency_ms=5)) as server:
        ask(f"systemone:{server.url}", concurrency=6)
    assert server.most_at_once == 6


def test_rejected_rows_are_marked_and_the_run_goes_on() -> None:
    with FakeServer(Quirks(reject_every=4)) as server:
        report = ask(f"systemone:{server.url}", on_error="skip")
    assert 0 < report.counts["by_reason"]["rejected"] < 120
    assert "status 422: state is not acceptable" in report.config["errored"][0]["error"]
    assert server.asked == 40


def test_refusals_are_counted_as_such() -> None:
    with FakeServer(Quirks(refuse_every=3)) as server:
        report = ask(f"openai_decisions:{server.url}", on_error="skip")
    assert 10 < report.counts["by_reason"]["refusal"] < 90
    assert report.counts["scored"] + report.counts["by_reason"]["refusal"] == 120


@pytest.mark.parametrize(("quirks", "words"), [
    (Quirks(key=KEY), "status 403: missing key; the key is missing"),
    (Quirks(key=KEY, missing_key=401), "status 401: missing key; the key is refused"),
])  # fmt: skip
def test_a_missing_key_stops_the_run(quirks: Quirks, words: str) -> None:
    with FakeServer(quirks) as server, pytest.raises(EngineFailedError, match=words):
        ask(f"systemone:{server.url}", concurrency=4)
    assert server.asked <= 4


def test_a_wrong_key_stops_the_run_and_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_API_KEY", "sk-wrong-987")
    with FakeServer(Quirks(key=KEY)) as server, pytest.raises(EngineFailedError) as fault:
        ask(f"systemone:{server.url}")
    assert "sk-wrong-987" not in str(fault.value)
    assert "invalid key ***" in str(fault.value)


def test_no_secret_in_any_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steelyard: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(KEY + "\n", encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in make_rows(12))
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-8")
    said = ""
    with FakeServer(Quirks(key=KEY, fault_rate=0.3, reject_every=5)) as server:
        spec = f"systemone:{server.url},key_file=key,backoff=0.001"
        for flags in (
            ("--json", "r.json", "--markdown", "r.md"),
            ("--cache", "c"),
            ("--max-cost", "1"),
        ):
            ran = steelyard(
                "run", "d.jsonl", "-e", spec, "--out", "run" + flags[0], "--on-error", "skip", *flags
            )
            assert ran.code == 0, ran.err
            said += ran.out + ran.err
        said += steelyard("doctor", "-e", spec, "--json", "doctor.json").out
        (tmp_path / "key").write_text("sk-other-secret", encoding="utf-8")
        said += steelyard("run", "d.jsonl", "-e", spec, "--quiet").err
    assert "***" in said
    (tmp_path / "key").unlink()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert KEY.encode() not in content, path
            assert b"sk-other-secret" not in content, path
    assert KEY not in said
    assert "sk-other-secret" not in said


def test_an_unreachable_server_trips_the_breaker() -> None:
    started = time.monotonic()
    with pytest.raises(EngineFailedError, match="10 requests in a row were not answered"):
        ask("systemone:http://127.0.0.1:9,retries=1", on_error="skip")
    assert time.monotonic() - started < 20


def test_a_server_that_fails_once_too_often_fails_the_row() -> None:
    with FakeServer(Quirks(fault_rate=0.3, faults="500", fault_run=99)) as server:
        report = ask(f"systemone:{server.url},retries=0", on_error="skip")
    assert report.counts["by_reason"]["server_failed"] > 3
    assert "status 500: overloaded, 1 tries" in report.config["errored"][0]["error"]


def test_the_budget_stops_before_it_is_broken_and_the_run_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(40)), encoding="utf-8")
    dataset = Dataset.from_jsonl(path)
    with FakeServer() as server:
        spec = f"systemone:{server.url},price_input=1000,price_output=0"
        with pytest.raises(EngineFailedError, match=r"the budget of 0\.5 does not allow a further call"):
            evaluate(
                f"{spec},max_cost=0.5,backoff=0.001",
                dataset,
                options=RunOptions(concurrency=4),
                out=tmp_path / "run",
            )
        paid = server.answered
        assert 5 < paid < 40
        spent = sum(
            json.loads(line)["cost"] for line in (tmp_path / "run" / "replies.jsonl").read_text().splitlines()
        )
        assert spent <= 0.5
        report = evaluate(f"{spec},max_cost=9", dataset, out=tmp_path / "run")
        assert server.answered == 40
    assert report.counts["money"] == {"total": pytest.approx(0.96, abs=0.05), "rows": 40, "rows_unknown": 0}
    policy = {"version": 2, "rules": [{"metric": "money_total", "max": 0.5}]}
    assert check(report, policy).exit_code == 1


def test_requests_and_deadlines_are_limits_too() -> None:
    with FakeServer(Quirks(latency_ms=20)) as server:
        with pytest.raises(EngineFailedError, match="the budget of 7 requests is spent"):
            ask(f"systemone:{server.url},max_requests=7")
        assert server.asked == 7
        with pytest.raises(EngineFailedError, match=r"the run's deadline of 0\.1 s is over"):
            ask(f"systemone:{server.url},deadline=0.1")


def test_a_rate_limit_is_kept() -> None:
    with FakeServer() as server:
        started = time.monotonic()
        ask(f"systemone:{server.url},requests_per_second=100", data(31), concurrency=8)
        assert time.monotonic() - started > 0.29


def test_a_slow_drip_is_cut_by_the_timeout() -> None:
    with FakeServer(Quirks(drip_ms=100)) as server:
        report = ask(
            f"systemone:{server.url},attempt_timeout=0.2,retries=0,breaker=99", data(3), on_error="skip"
        )
        assert report.counts["by_reason"] == {"server_failed": 9}
        report = ask(f"systemone:{server.url}", data(3), on_error="skip", timeout=0.2)
        assert report.counts["by_reason"] == {"timeout": 9}
    with FakeServer(Quirks(drip_ms=1)) as server:
        assert ask(f"systemone:{server.url}", data(3)).counts["scored"] == 9


def test_unknown_usage_is_unknown() -> None:
    with FakeServer(Quirks(missing_usage=True)) as server:
        report = ask(f"systemone:{server.url},price_input=1,price_output=1")
    assert report.counts["server"]["rows_without_usage"] == 40
    assert "money" not in report.counts


def test_rounded_distributions_are_scaled_and_counted_and_wrong_ones_refused() -> None:
    with FakeServer(Quirks(decimals=2)) as server:
        report = ask(f"systemone:{server.url}")
        assert report.counts["server"]["answers_renormalised"] > 0
        assert report.counts["scored"] == 120
        strict = ask(f"systemone:{server.url},rounds=false", on_error="skip")
        assert (
            strict.counts["by_reason"]["invalid_distribution"]
            == report.counts["server"]["answers_renormalised"]
        )
    with FakeServer(Quirks(wrong_answers=True)) as server:
        report = ask(f"systemone:{server.url}", on_error="skip")
        assert report.counts["by_reason"]["invalid_distribution"] == 80


def test_reordered_options_are_the_same_answers(told: str) -> None:
    with FakeServer(Quirks(sorted_keys=True)) as server:
        assert repr(answers(ask(f"systemone:{server.url}"))) == told


def test_short_batches_fail_whole() -> None:
    with FakeServer(Quirks(short_batches=True)) as server:
        spec = f"systemone:laya-serve,base_url={server.url}"
        report = ask(spec, data(8), batch_size=4, on_error="skip")
    assert report.counts["by_reason"] == {"invalid_answer": 24}
    assert "4 states were sent, and not as many results came back" in report.config["errored"][0]["error"]


def test_the_cache_pays_once(tmp_path: Path, told: str) -> None:
    with FakeServer() as server:
        spec = f"systemone:{server.url},cache={tmp_path / 'kept'},price_input=1,price_output=0"
        first = ask(spec, concurrency=8)
        second = ask(spec, concurrency=8)
        assert server.answered == 40
        assert repr(answers(first)) == repr(answers(second)) == told
        assert first.counts["money"]["total"] > 0
        assert second.counts["money"]["total"] == 0
        ask(f"{spec},model=fake-1")
        assert server.answered == 80
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["replies.sqlite"]
    (tmp_path / "bad").mkdir()
    bad = tmp_path / "bad" / "replies.sqlite"
    bad.write_text("not a database, and long enough to be taken for one" * 20, encoding="utf-8")
    for place in (tmp_path / "bad", bad):
        with pytest.raises(InputError, match=r"cache .*: .*; name a folder"):
            ask(f"systemone:http://127.0.0.1:9,cache={place}")


def test_facts_of_a_reply_are_kept(tmp_path: Path, plain: FakeServer) -> None:
    evaluate(f"systemone:{plain.url}", data(2), out=tmp_path)
    line = json.loads((tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert line["facts"]["request_id"].startswith("fake-")
    assert line["facts"]["server_ms"] == 1.5
    assert line["facts"]["input_tokens"] > 20
    assert line["model"] == "fake-1"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("systemone:jevv", 'did you mean "jev"?'),
        ("systemone:custom", "needs the URL of a server"),
        ("systemone:ftp://x", "needs the URL of a server"),
        ("systemone:http://user:pass@host", "leave keys out of the URL"),
        ("systemone:clef", "needs account=ID"),
        ("systemone:jev,key=abc", 'no setting "key"'),
        ("systemone:jev,confidence=best", 'must be "wire" or "top"'),
        ("systemone:jev,retries=-1", "retries must be a whole number"),
        ("systemone:jev,price_input=high", "setting "),
        ("systemone:jev,key_file=none", "key file none: No such file"),
        ("openai_decisions", "needs a target"),
    ],
)
def test_settings_no_engine_can_have(spec: str, words: str) -> None:
    with pytest.raises(InputError) as fault:
        make_engine(spec)
    assert words in str(fault.value)


def test_no_key_is_said_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    with pytest.raises(InputError, match="set TYPESAFE_API_KEY, or name key_file=PATH"):
        evaluate("systemone:jev", data(1))


def test_limits_are_checked_before_the_first_call(plain: FakeServer) -> None:
    many = {"type": "choice", "instructions": "?", "criteria": [f"o{at}" for at in range(101)]}
    rows = [{"state": "s", "questions": {"q": many}, "expected": {"q": "o1"}}]
    asked = plain.asked
    with pytest.raises(InputError, match=r'data:1: question "q" has 101 options; systemone takes 100'):
        evaluate(f"systemone:laya-serve,base_url={plain.url}", Dataset.from_rows(rows, "data"))
    rows = [{"state": "s", "questions": {f"q{at}": FLAG for at in range(65)}, "expected": {}}]
    with pytest.raises(InputError, match="65 questions; systemone takes 64"):
        evaluate(f"systemone:laya-serve,base_url={plain.url}", Dataset.from_rows(rows, "data"))
    with pytest.raises(InputError, match="takes 64 states a call, got 65"):
        ask(f"systemone:laya-serve,base_url={plain.url}", batch_size=65)
    assert plain.asked == asked


def request_of(questions: Any, state: Any = "s") -> Request:
    row = {"state": state, "questions": questions, "expected": {}}
    return Data.from_rows([row], "d").request(0)


def test_bodies_of_the_wires() -> None:
    noul = FLAG | {"criteria": {"true": "money is meant"}}
    request = request_of({"team": TEAM, "flag": noul}, {"text": "hi"})
    body = SystemOne("boolean").body(request)
    assert body["questions"]["team"]["criteria"] == {"billing": None, "support": None, "sales": None}
    assert body["questions"]["flag"]["type"] == "boolean"
    assert body["state"] == {"text": "hi"}
    listed = OpenAIDecisions().body(request)
    assert listed["input"] == '{"text":"hi"}'
    assert [one["type"] for one in listed["questions"]] == ["choice", "predicate"]
    assert listed["questions"][1]["instructions"] == "Is it about money? (true: money is meant)"
    checks = Hunch().body(request)["checks"]
    assert checks["flag"] == {"kind": "yesno", "question": "Is it about money?", "yes_if": "money is meant"}


@pytest.mark.parametrize(
    ("wire", "reply"),
    [
        (SystemOne(), []),
        (SystemOne(), {"answers": []}),
        (SystemOne(), {"answers": {"flag": 3}}),
        (OpenAIDecisions(), {"answers": {}}),
        (OpenAIDecisions(), {"answers": [{}, {}]}),
        (OpenAIDecisions(), {"answers": [3]}),
        (Hunch(), {"results": 3}),
    ],
)
def test_replies_of_another_shape_are_faults(wire: Any, reply: Any) -> None:
    with pytest.raises(WireFault):
        wire.answers(request_of({"flag": FLAG}), reply)


def test_boolean_choices_and_vendor_confidences() -> None:
    request = request_of({"q": {"type": "choice", "instructions": "?", "criteria": ["true", "no"]}})
    pairs = [{"value": True, "probability": 0.7}, {"value": "no", "probability": 0.29}]
    reply = {"answers": [{"type": "choice", "choice": True, "confidence": 0.2, "probabilities": pairs}]}
    found, scaled = finished(request, OpenAIDecisions().answers(request, reply), rounds=True, top=True)
    assert scaled == 1
    assert found["q"]["choice"] == "true"
    assert found["q"]["confidence"] == 0.2
    assert found["q"]["answer_confidence"] == pytest.approx(0.7 / 0.99)
    kept, scaled = finished(
        request, found | {"q": {"probabilities": {"a": 0.5, "b": 0.4}}}, rounds=True, top=False
    )
    assert (kept["q"]["probabilities"], scaled) == ({"a": 0.5, "b": 0.4}, 0)


def test_usage_by_any_name() -> None:
    assert tokens_of({"usage": {"prompt_tokens": 3, "completion_tokens": 1}}) == (3, 1)
    assert tokens_of({"usage": {"input_tokens": True}}) == (None, None)
    assert tokens_of({"total_usage": {"input_tokens": 0}}) == (0, None)
    assert tokens_of([]) == (None, None)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": "no"}', "no"),
        (b'{"message": "no"}', "no"),
        (b'{"detail": {"error_type": "x", "message": "no"}}', "no"),
        (
            b'{"success": false, "errors": [{"message": "{\\"error\\": {\\"message\\": \\"in\\"}}"}]}',
            "in",
        ),
        (b"<html>Gateway</html>", "<html>Gateway</html>"),
        (b"", "without a word"),
        (b"{}", "without a word"),
        (b'{"message": "{broken"}', "{broken"),
    ],
)
def test_error_envelopes(body: bytes, text: str) -> None:
    assert error_text(body) == text


def test_retry_after_as_a_date() -> None:
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "-3"}) is None


def test_secrets_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(Secret(KEY)) == "Secret(***)"
    assert Secret().hidden("text") == "text"
    assert not read_secret("NO_SUCH_VARIABLE_AT_ALL", None)
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="is empty"):
        read_secret(None, str(tmp_path / "empty"))
    monkeypatch.setenv("ODD_KEY", "a\nb\u00e9")
    with pytest.raises(InputError, match="no header can carry"):
        read_secret("ODD_KEY", None)


def test_quirks_are_read_and_refused(steelyard: Callable[..., Ran]) -> None:
    assert parse_quirks(["decimals=2", "strict"]) == Quirks(decimals=2, strict=True)
    for bad in ("nothing", "decimals=x", "faults=500+600"):
        assert steelyard("fake-server", "--quirk", bad).code == 2
    assert "latency_ms" in steelyard("fake-server", "--list").out


def test_the_fake_server_serves_from_the_command_line_and_ends_by_itself() -> None:
    line = [sys.executable, "-m", "steelyard", "fake-server", "--seconds", "6"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert ask(f"systemone:{url}", data(3)).counts["scored"] == 9
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_the_peers_recorded_bodies_parse(shared: Path) -> None:
    recorded = json.loads((shared / "peer" / "http" / "recorded.json").read_text(encoding="utf-8"))
    parsed = 0
    for one in recorded:
        body = one["request"]
        if one["status"] != 200 or not isinstance(body, dict) or "questions" not in body:
            assert (
                one["status"] == 200 or error_text(json.dumps(one["response"]).encode()) != "without a word"
            )
            continue
        replies = one["response"].get("results", [one["response"]])
        states = body.get("states", [body.get("state")])
        for state, reply in zip(states, replies, strict=True):
            request = request_of(body["questions"], state)
            found, _ = finished(request, SystemOne().answers(request, reply), rounds=False, top=False)
            assert found == reply["answers"]
            parsed += 1
    assert parsed >= 6


def test_a_chat_model_is_judged_by_its_letters(told: str) -> None:
    with FakeServer(Quirks(fault_rate=0.3)) as server:
        report = ask(f"openai_chat:{server.url},model=gpt,price_input=1,price_output=2", concurrency=8)
        assert report.counts["scored"] == 120
        assert server.answered == 120
    assert report.engine["settings"]["probability_source"] == "logprob"
    assert report.counts["money"]["total"] == pytest.approx(40 * 3 * (50 + 2) / 1e6)
    assert report.table.size[report.table.kind == 0].tolist() == [3] * 40
    sums = [sum(case["answer"]["probabilities"].values()) for case in report.cases() if case["qid"] == "team"]
    assert sums == pytest.approx([1.0] * 40)


def test_many_options_are_asked_for_by_groups() -> None:
    many = {"type": "choice", "instructions": "Which?", "criteria": [f"option {at}" for at in range(45)]}
    rows = [{"state": f"s{at}", "questions": {"q": many}, "expected": {"q": "option 3"}} for at in range(5)]
    with FakeServer() as server:
        report = ask(f"openai_chat:{server.url}", Dataset.from_rows(rows, "d"))
        assert server.answered == 5 * 4
    assert report.counts["scored"] == 5
    assert report.table.size.tolist() == [45] * 5


def test_a_chat_model_that_answers_no_letter_is_an_error() -> None:
    with FakeServer(Quirks(wrong_answers=True)) as server:
        report = ask(f"openai_chat:{server.url}", data(2), on_error="skip")
    assert "no letter that was offered" in report.config["errored"][0]["error"]
    with pytest.raises(WireFault, match="shows no log probabilities"):
        letters_of({"choices": [{"message": {"content": "A"}}]}, 3)
