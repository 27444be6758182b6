"""The part of docs/metrics.md that is made from the registry: `make pages`."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard import Settings
from steelyard.metrics.measure import metrics_for
from steelyard.render.catalogue import metrics_markdown

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
_MADE = re.compile(r"(<!-- made by make pages -->\n).*?(<!-- end -->)", re.DOTALL)


def made_page() -> str:
    """The page as it should be."""
    table = metrics_markdown(metrics_for(Settings()))
    return _MADE.sub(lambda found: found[1] + table + found[2], PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
