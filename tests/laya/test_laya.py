"""Laya in process and over HTTP, on the shared checkpoint: the peer's own figures."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, EngineError, InputError, RunOptions, Settings, compare, evaluate, make_engine
from tests.conftest import SHARED, Ran
from tests.laya.test_onnx import checkpoint, quality  # noqa: F401  # a fixture of both

pytest.importorskip("torch", reason="torch is not installed: make test-laya sets it up")
laya = pytest.importorskip("laya", reason="laya is not installed: make test-laya sets it up")

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)


@pytest.fixture(scope="module")
def data(checkpoint: Path) -> Dataset:  # noqa: F811
    return Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> Any:  # noqa: F811
    return make_engine(f"laya:{checkpoint}")


@pytest.mark.parametrize("how", [{}, {"batch_size": 16}, {"batch_size": 16, "sort_by_length": True}])
def test_every_quality_metric_is_the_peers(engine: Any, data: Dataset, how: Any) -> None:
    report = evaluate(engine, data, options=RunOptions(**how), settings=Settings(score_within=(0.25,)))
    peer = json.loads((SHARED / "peer" / "report.json").read_text(encoding="utf-8"))
    assert quality(report.to_json()) == pytest.approx(quality(peer), abs=5e-5)
    ok, _ = report.compare(peer)
    assert ok or how
    assert report.counts["server"]["rows_truncated"] == 0


def test_identity_of_a_folder(engine: Any, checkpoint: Path) -> None:  # noqa: F811
    assert engine.revision.startswith("sha256:")
    assert make_engine(f"laya:{checkpoint}").revision.startswith("sha256:")
    assert engine.settings["temperatures"]["applied_by_type"]["score"] == 0.5


def test_exact_probabilities_round_to_the_public_ones(checkpoint: Path, data: Dataset) -> None:  # noqa: F811
    exact = evaluate(f"laya:{checkpoint},exact=true", data, options=RunOptions(batch_size=8))
    plain = evaluate(f"laya:{checkpoint}", data)
    assert exact.table.pred.tolist() == plain.table.pred.tolist()
    assert exact.table.confidence == pytest.approx(plain.table.confidence, abs=2e-4)
    assert exact.engine["settings"]["probabilities"] == "exact"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_planted_temperature_raw_and_applied(checkpoint: Path, data: Dataset, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "sharp"
    shutil.copytree(checkpoint, folder)
    config = json.loads((folder / "rl_agent_config.json").read_text(encoding="utf-8"))
    config["temperature_by_options"] = {"choice:11+": 0.1}
    (folder / "rl_agent_config.json").write_text(json.dumps(config), encoding="utf-8")
    applied = evaluate(f"laya:{folder}", data)
    raw = evaluate(f"laya:{folder},unclamped=true", data)
    shown = raw.engine["settings"]["temperatures"]
    assert (shown["by_bucket"], shown["applied_by_bucket"]) == ({"choice:11+": 0.1}, {"choice:11+": 0.5})
    assert raw.overall["ece"] > applied.overall["ece"]


def test_thresholds_mark_and_do_not_score(engine: Any, data: Dataset) -> None:
    report = evaluate(engine, data, options=RunOptions(min_confidence=0.9))
    marks = {case["answer"].get("abstention") for case in report.cases()}
    assert marks == {"passed", "abstained"}
    assert report.overall["choice_accuracy"] == evaluate(engine, data).overall["choice_accuracy"]


def test_lengths_cut_an_export_as_they_cut_the_checkpoint(checkpoint: Path, data: Dataset) -> None:  # noqa: F811
    short = "max_len=56,head_max_len=40"
    there = evaluate(f"laya:{checkpoint},{short}", data)
    here = evaluate(f"onnx:{SHARED / 'peer' / 'tiny.onnx'},model={checkpoint},{short}", data)
    assert here.counts["server"]["rows_truncated"] == there.counts["server"]["rows_truncated"] > 0
    assert here.table.confidence == pytest.approx(there.table.confidence, abs=2e-4)
    assert here.engine["settings"]["max_len"] == 56


@pytest.mark.parametrize("batch_size", [1, 8])
def test_the_router_says_who_answered(
    checkpoint: Path,  # noqa: F811
    data: Dataset,
    engine: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    batch_size: int,
) -> None:
    router = laya.Router
    names = dict.fromkeys(("english", "multilingual", "typed-decisions"), str(checkpoint))
    monkeypatch.setattr(laya, "Router", lambda **how: router(models=names, **how))
    routed = make_engine("laya:auto")
    options = RunOptions(batch_size=batch_size)
    report = evaluate(routed, data, options=options)
    assert quality(report.to_json()) == pytest.approx(quality(evaluate(engine, data).to_json()), abs=5e-5)
    assert "revisions" not in report.counts["server"]  # folders have none
    monkeypatch.setattr(type(routed._agent), "loaded_revisions", dict.fromkeys(names, "abc"))
    assert evaluate(routed, data, options=options, out=tmp_path).counts["server"]["revisions"] == ["abc"]
    line = json.loads((tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (line["model"] in names, line["facts"]["revision"]) == (True, "abc")


def test_flags_name_the_checkpoint_and_how_it_reads(
    checkpoint: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steelyard: Callable[..., Ran],
) -> None:
    monkeypatch.chdir(tmp_path)
    data = SHARED / "peer" / "support.jsonl"
    flags = ("--max-len", 64, "--head-max-len", 48, "--unclamped", "--quiet", "--json", "r.json")
    ran = steelyard("run", data, "-e", "laya", "--model", checkpoint, *flags)
    assert ran.code == 0, ran.err
    engine = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["engine"]
    assert engine["target"] == str(checkpoint)
    told = engine["settings"]
    assert (told["max_len"], told["head_max_len"], told["unclamped"]) == (64, 48, True)
    assert steelyard("run", data, "-e", f"laya:{checkpoint}", "--revision", "abc").code == 2
    ran = steelyard("run", data, "-e", "laya", "--revision", "en=a", "--revision", "english=b")
    assert ran.code == 2
    assert "names one checkpoint by two of its names" in ran.err


def test_what_cannot_be_loaded(tmp_path: Path, data: Dataset) -> None:
    with pytest.raises(InputError, match="is a folder, but not one with a checkpoint"):
        make_engine(f"laya:{tmp_path}")
    with pytest.raises(EngineError, match="cannot be loaded"):
        evaluate("laya:nobody/no-such-checkpoint", data)
    with pytest.raises(InputError, match="exact and unclamped need one checkpoint"):
        make_engine("laya:english,exact=true")
    with pytest.raises(InputError, match="max_len must be a whole number"):
        make_engine("laya:english,max_len=2")
    pinned = Dataset.from_rows(
        [
            {"state": "s", "questions": {}, "expected": {}, "model": "english"},
            {"state": "t", "questions": {}, "expected": {}},
        ],
        "d",
    )
    with pytest.raises(InputError, match='pins model "english"'):
        evaluate("laya:nobody/no-such-checkpoint", pinned)


@pytest.fixture(params=["normal", "strict"])
def served(request: pytest.FixtureRequest, checkpoint: Path) -> Iterator[tuple[str, str]]:  # noqa: F811
    """A real laya-serve on this machine."""
    pytest.importorskip("uvicorn", reason="laya's server is not installed: make test-laya sets it up")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "LAYA_EXTRA_MODELS": json.dumps({"tiny": str(checkpoint)}),
        "LAYA_MODELS": "tiny",
        "LAYA_DEFAULT_MODEL": "tiny",
        "LAYA_HOST": "127.0.0.1",
        "LAYA_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "LAYA_JEV_STRICT": "1" if request.param == "strict" else "",
    }
    line = [str(Path(sys.executable).parent / "laya-serve")]
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            url, until = f"http://127.0.0.1:{port}", time.monotonic() + 90
            while time.monotonic() < until:
                try:
                    urllib.request.urlopen(f"{url}/health", timeout=1).read()
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.2)
            yield request.param, url
        finally:
            process.kill()


def test_a_real_server(served: tuple[str, str], data: Dataset, engine: Any) -> None:
    mode, url = served
    spec = f"systemone:laya-serve,base_url={url},model=tiny"
    report = evaluate(spec, data, options=RunOptions(concurrency=4))
    here = evaluate(engine, data)
    assert report.overall["choice_accuracy"] == here.overall["choice_accuracy"]
    assert report.counts["server"]["rows_without_usage"] == 0
    if mode == "normal":
        assert quality(report.to_json()) == pytest.approx(quality(here.to_json()), abs=5e-5)
        assert report.table.names.models == ["tiny"]
        batched = evaluate(spec, data, options=RunOptions(batch_size=16))
        assert batched.table.pred.tolist() == report.table.pred.tolist()
        return
    assert report.overall["ece"] == pytest.approx(0.0579, abs=5e-5)
    assert report.overall["mean_confidence"] == pytest.approx(0.9707, abs=5e-5)
    found = {delta.metric: delta for delta in compare(report, here).deltas}
    assert "is taken from" in found["ece"].incomparable
    assert found["choice_accuracy"].incomparable is None
