"""Tables of a simulation, printed as they come and put between the marks of a page."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def put(description: str | None, module: str, page: Path, tables: Callable[[int], Iterator[str]]) -> None:
    """Take ``--runs`` and ``--write`` from the command line, and do what they say."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    lines = []
    for line in tables(arguments.runs):
        print(line, flush=True)
        lines.append(line)
    if arguments.write:
        made = f"<!-- made by {module} -->\n" + "\n".join(lines) + "\n<!-- end -->"
        text = re.sub(
            r"<!-- made by.*?<!-- end -->", lambda _: made, page.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        page.write_text(text, encoding="utf-8")
