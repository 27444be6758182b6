"""Build one dataset from the 17 languages of the Injongo intent data.

    python -m benchmarks.injongo FOLDER OUT.jsonl [--rows N]

FOLDER holds `xxx.test.jsonl` files with `text` and `intent`. Every row asks one choice question over
all intents of the data, written with spaces.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def build(folder: Path, rows: int | None = None) -> list[dict[str, object]]:
    """Rows of all languages, the first `rows` of each."""
    read = {
        path.name.split(".")[0]: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(folder.glob("*.test.jsonl"))
    }
    intents = sorted({case["intent"] for cases in read.values() for case in cases})
    question = {
        "type": "choice",
        "instructions": "What is the user asking for?",
        "criteria": {intent: intent.replace("_", " ") for intent in intents},
    }
    return [
        {
            "id": f"{language}-{i}",
            "state": case["text"],
            "questions": {"intent": question},
            "expected": {"intent": case["intent"]},
            "language": language,
        }
        for language, cases in read.items()
        for i, case in enumerate(cases[:rows])
    ]


def main() -> None:
    """Write the dataset."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, help="rows of each language; all by default")
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf-8") as stream:
        for row in build(arguments.folder, arguments.rows):
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
