"""The simulations behind the docs, in small: they run, and what they claim holds roughly."""

from __future__ import annotations

import pytest
from benchmarks import gates


def test_gates_are_wrong_about_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SIZES", (300,))
    chosen = {name: gate for name, gate in gates.gates().items() if "12 slices" not in name}
    found = {name: shares[0] for name, shares in gates.failing(150, 0.0, chosen, 1).items()}
    assert found["no tolerance (exact)"] > 0.8
    assert 0.05 < found["`--tolerance choice_accuracy=0.02`"] < 0.25
    assert found["`max_drop = 0`, interval, inconclusive passes"] < 0.12
    assert found["`--sequential`"] < 0.06
    worse = {name: shares[0] for name, shares in gates.failing(150, 0.03, chosen, 1).items()}
    assert worse["`max_drop = 0`, interval, inconclusive passes"] > 0.55
    passed = 1 - gates.failing(150, 0.02, chosen, 1)["`margin = 0.02`, inconclusive fails"][0]
    assert passed < 0.12


def test_every_line_of_the_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SIZES", (60,))
    lines = list(gates.tables(4))
    page = gates.PAGE.read_text(encoding="utf-8")
    for line in lines:
        name = line.split("|")[1].strip() if line.startswith("|") else ""
        assert name in page
    assert gates.apart(20, 1)[0] > 0.2
