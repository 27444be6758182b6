"""Write the golden report anew: `make golden`. Look at the diff before committing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steelyard import Dataset, RunOptions, Settings, evaluate

FOLDER = Path(__file__).parent
EXAMPLE = FOLDER.parents[1] / "examples" / "support.jsonl"
ENGINES = {
    "lexical": "lexical",
    "scripted": "scripted,accuracy=0.7,sharpness=0.9,over_confidence=1.5,bad_every=11,seed=4",
}


def document(name: str) -> dict[str, Any]:
    """The golden report of one engine, without what changes from run to run."""
    report = evaluate(
        ENGINES[name],
        Dataset.from_jsonl(EXAMPLE),
        options=RunOptions(on_error="skip", batch_size=8),
        settings=Settings(score_within=(0.5,)),
    )
    found = report.document()
    found["overall"] = {key: value for key, value in found["overall"].items() if not key.endswith("_ms")}
    # One dimension of slices and the head of the curve tell of a change as well as all of them.
    slices = found["measurements"]["slices"]
    found["measurements"]["slices"] = {"type": slices["type"]}
    found["risk_coverage"] = found["risk_coverage"][:20]
    for key in ("timing", "dataset", "steelyard_version", "errored"):
        found["config"].pop(key, None)
    return found


if __name__ == "__main__":
    for golden in ENGINES:
        text = json.dumps(document(golden), indent=1, ensure_ascii=False)
        (FOLDER / f"{golden}.json").write_text(text + "\n", encoding="utf-8")
