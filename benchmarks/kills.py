"""Kill a run at random moments, take it up, and compare the report with an uninterrupted one.

python -m benchmarks.kills [--kills N] [--seed S]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.data import three_question_rows

ROWS = 300


def command(data: Path, folder: Path) -> list[str]:
    """A run of about a third of a second."""
    engine = "scripted,latency=0.0005,fail_every=40,bad_every=37"
    base = [sys.executable, "-m", "steelyard", "run", str(data), "--engine", engine, "--on-error", "skip"]
    return [*base, "--batch-size", "3", "--out", str(folder), "--quiet"]


def timeless(folder: Path) -> str:
    """The report with everything that is a time taken out."""
    document = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    document["overall"] = {key: v for key, v in document["overall"].items() if not key.endswith("_ms")}
    del document["config"]["timing"]
    return json.dumps(document) + (folder / "report.md").read_text(encoding="utf-8")


def main() -> None:
    """Kill until enough kills have hit a run that was not finished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        data, _ = three_question_rows(work / "rows.jsonl", ROWS)
        subprocess.run(command(data, work / "whole"), check=True, stdout=subprocess.DEVNULL)
        whole = timeless(work / "whole")
        kills = runs = 0
        while kills < arguments.kills:
            folder = work / "run"
            shutil.rmtree(folder, ignore_errors=True)
            while True:
                process = subprocess.Popen(command(data, folder), stdout=subprocess.DEVNULL)
                time.sleep(rng.uniform(0.05, 0.6))
                process.kill()
                if process.wait() == 0:
                    break
                kills += 1
            runs += 1
            if timeless(folder) != whole:
                raise SystemExit(f"run {runs} differs after {kills} kills; look in {folder}")
        print(f"{kills} kills over {runs} runs of {ROWS} rows: every report equal to the uninterrupted one")


if __name__ == "__main__":
    main()
