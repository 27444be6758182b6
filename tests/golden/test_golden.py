"""A number that moves must come with a new definition id, or be a mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.make import ENGINES, FOLDER, document


@pytest.mark.parametrize("name", ENGINES)
def test_golden_report(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    compare(golden, json.loads(json.dumps(document(name))), name)


def compare(golden: Any, found: Any, path: str) -> None:
    if isinstance(golden, dict):
        assert golden.keys() == found.keys(), path
        for key in golden:
            compare(golden[key], found[key], f"{path}.{key}")
    elif isinstance(golden, list):
        assert len(golden) == len(found), path
        for i, item in enumerate(golden):
            compare(item, found[i], f"{path}[{i}]")
    elif isinstance(golden, float):
        assert found == pytest.approx(golden, abs=1e-9), path
    else:
        assert golden == found, path
