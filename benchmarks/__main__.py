"""``python -m benchmarks [--peer PYTHON] [--rows N] [--repeat N]``: every ratio, in one table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.data import mixed_rows, three_question_rows
from benchmarks.tables import save_columns

WORK = Path(__file__).parent / "work"


class Bench:
    """Runs jobs alternately, each in a fresh process, and keeps the least of each."""

    def __init__(self, peer: str | None, repeat: int) -> None:
        self.peer, self.repeat = peer, repeat

    def measure(self, *jobs: tuple[str, ...]) -> list[dict[str, float]]:
        """Least CPU, wall and memory of each job over the interleaved repeats."""
        best: list[dict[str, float]] = [{} for _ in jobs]
        for _ in range(self.repeat):
            for found, job in zip(best, jobs, strict=True):
                for key, value in self._once(job).items():
                    found[key] = min(value, found.get(key, value))
        return best

    def _once(self, job: tuple[str, ...]) -> dict[str, float]:
        python = self.peer if job[0].startswith("peer") and self.peer else sys.executable
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        command = [python, "-m", "benchmarks.jobs", *job]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if ran.returncode:
            raise SystemExit(f"{' '.join(job)}: {ran.stderr[-500:]}")
        found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
        return found

    def parse(self, rows: int) -> None:
        """Parse and validate: one question a row, and three that all rows share."""
        self._parse("mixed", str(mixed_rows(WORK / f"mixed{rows}.jsonl", rows)), rows)
        self._parse("shared", str(three_question_rows(WORK / f"three{rows}.jsonl", rows)[0]), rows)

    def _parse(self, kind: str, path: str, rows: int) -> None:
        jobs = [("validate", path), ("read", path), *([("peer_validate", path)] if self.peer else [])]
        ours, bare, *theirs = self.measure(*jobs)
        text = (
            f"validate {rows:>9,} {kind} rows: {1e6 * ours['cpu'] / rows:6.2f} us a row, {ours['mb']:5.0f} MB"
        )
        text += f", {ours['cpu'] / bare['cpu']:5.1f} x a bare read"
        if theirs:
            faster, smaller = theirs[0]["cpu"] / ours["cpu"], theirs[0]["mb"] / ours["mb"]
            text += f"; peer / ours: {faster:.1f} x CPU, {smaller:.1f} x memory"
        print(text, flush=True)

    def judge(self, rows: int) -> None:
        """Recorded answers to a full report, and a run on an engine that answers at once."""
        data, answers = map(str, three_question_rows(WORK / f"three{rows}.jsonl", rows))
        folder = str(WORK / f"run{rows}")
        if not Path(folder, "report.json").exists():
            run = ["run", data, "--engine", f"replay:{answers}", "--out", folder, "--quiet", "--no-cases"]
            subprocess.run([sys.executable, "-m", "steelyard", *run], check=True, stdout=subprocess.DEVNULL)
        jobs = [("judge", data, folder), ("overhead", data)]
        if self.peer:
            jobs += [("peer_evaluate", data, answers), ("peer_judge", data, answers)]
        ours, run_, *theirs = self.measure(*jobs)
        n = 3 * rows
        text = f"judge {n:>9,} answers: {1e6 * ours['cpu'] / n:6.2f} us an answer, {ours['mb']:5.0f} MB"
        if theirs:
            evaluate, whole = (side["cpu"] / ours["cpu"] for side in theirs)
            text += f"; peer / ours: {evaluate:.1f} x its evaluate, {whole:.1f} x from the same files"
            text += f", {theirs[0]['mb'] / ours['mb']:.1f} x memory"
        print(text)
        print(
            f"run   {n:>9,} answers: {1e6 * run_['cpu'] / n:6.2f} us an answer on an instant engine",
            flush=True,
        )

    def metrics(self, n: int) -> None:
        """Metrics and their intervals on every slice, from columns."""
        path = str(save_columns(WORK / f"columns{n}.npz", n))
        three = "choice_accuracy,auroc_failure,aurc"
        jobs = [
            ("measure_points", path),
            ("measure_some", path, three, "no"),
            ("measure_some", path, three, "yes"),
            ("measure_some", path, "all", "yes"),
            *([("peer_points", path)] if self.peer else []),
        ]
        points, bare, sure, everything, *theirs = self.measure(*jobs)
        text = f"measure {n:>9,} answers, 77 slices: {points['cpu']:5.2f} s"
        if theirs:
            apart = _furthest_apart(Path(path + ".ours.json"), Path(path + ".peer.json"))
            text += f"; peer / ours: {theirs[0]['cpu'] / points['cpu']:.1f} x CPU, values within {apart:.0e}"
        print(text)
        print(
            f"accuracy, AUROC, AURC with intervals: {sure['cpu'] / bare['cpu']:.2f} x the points; every "
            f"metric but the simulated ones, with intervals and nulls: {everything['cpu']:.1f} s, "
            f"{everything['mb']:.0f} MB"
        )

    def many_slices(self) -> None:
        """A thousand slices of a million answers, and exact resampling of 100,000."""
        path = str(save_columns(WORK / "slices.npz", 1_000_000, languages=900, questions=90))
        few = str(save_columns(WORK / "columns100000.npz", 100_000))
        names = "auroc_failure,aurc"
        slices, resampled = self.measure(
            ("measure_some", path, "all", "yes"), ("measure_some", few, names, "yes", "2000")
        )
        print(f"1,000 slices of 1,000,000 answers, every metric but the simulated: {slices['cpu']:.1f} s")
        print(f"AUROC and AURC, 2,000 resamples of 100,000 answers: {resampled['cpu']:.1f} s", flush=True)

    def waits(self) -> None:
        """An engine that waits 5 ms, 64 calls in flight, against the ideal rate."""
        rows = 20_000
        data, _ = three_question_rows(WORK / f"three{rows}.jsonl", rows)
        (found,) = self.measure(("waits", str(data), "64"))
        ideal = 64 / 0.005
        print(
            f"wait 5 ms x 64: asks at {100 / found['slowness'] / ideal:.0f} % of the ideal rate", flush=True
        )

    def startup(self) -> None:
        """CPU of the commands that must feel instant."""
        path = mixed_rows(WORK / "mixed10.jsonl", 10)
        for arguments in (["--help"], ["validate", str(path)]):
            least = min(self._child_cpu([sys.executable, "-m", "steelyard", *arguments]) for _ in range(7))
            print(f"steelyard {arguments[0]}: {1000 * least:.0f} ms of CPU", flush=True)

    @staticmethod
    def _child_cpu(command: list[str]) -> float:
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system


def _furthest_apart(ours: Path, theirs: Path) -> float:
    """Largest difference of a value the peer has; both must have the same slices."""
    mine, other = (json.loads(path.read_text(encoding="utf-8")) for path in (ours, theirs))
    assert set(mine) == set(other)
    return max(abs(mine[at][name] - value) for at, found in other.items() for name, value in found.items())


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", metavar="PYTHON", help="a Python with the peer installed")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    bench = Bench(arguments.peer, arguments.repeat)
    bench.startup()
    for rows in arguments.rows:
        bench.parse(rows)
    for rows in arguments.rows:
        if rows <= 100_000:
            bench.judge(rows)
    for rows in arguments.rows:
        bench.metrics(rows)
    bench.many_slices()
    bench.waits()


if __name__ == "__main__":
    main()
