"""A pytest fixture that scores engines and fails tests on regressions.

It is found by pytest itself once steelyard is installed. A test asks for the fixture `steelyard`::

    def test_no_regression(steelyard):
        run = steelyard.evaluate("python:my_module:predict", "data.jsonl")
        steelyard.assert_no_regression(run, "baseline.json", "gates.toml")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steelyard.core.gates import Verdict
    from steelyard.formats.dataset import Dataset
    from steelyard.run.report import Report


class Steelyard:
    """What the fixture offers."""

    def evaluate(self, engine: Any, dataset: Dataset | str | Path, **how: Any) -> Report:
        """Score a dataset, or the file of one, on an engine; `how` goes to `steelyard.evaluate`."""
        from steelyard.formats.dataset import Dataset
        from steelyard.studies.labelled import evaluate

        data = Dataset.from_jsonl(dataset) if isinstance(dataset, (str, Path)) else dataset
        return evaluate(engine, data, **how)

    def assert_no_regression(self, run: Any, baseline: Any, policy: Any = None) -> Verdict:
        """Fail the test when a run breaks a policy; see `steelyard.assert_no_regression`."""
        from steelyard.run import asserting

        __tracebackhide__ = True
        rules = asserting.DEFAULT_POLICY if policy is None else policy
        verdict = asserting.check(run, rules, baseline)
        if verdict.failures:
            pytest.fail("\n".join(finding.reason for finding in verdict.failures), pytrace=False)
        return verdict


@pytest.fixture(scope="session")
def steelyard() -> Steelyard:
    """Score engines and hold runs against baselines."""
    return Steelyard()
