"""A finished run, read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.formats.dataset import Dataset
from steelyard.metrics.decisions import Decisions
from steelyard.run.collector import Asked, Collector
from steelyard.run.judge import join
from steelyard.run.log import RunLog, read_run, refuse_change
from steelyard.run.options import RunOptions


class SavedRun(NamedTuple):
    """What a run folder holds: its record, how it was asked, what came back, and the log."""

    record: Mapping[str, Any]
    options: RunOptions
    asked: Asked
    log: RunLog

    def table(self, dataset: Dataset) -> Decisions:
        """The judged table of the run on its dataset."""
        return join(dataset.columns, self.asked.answers, self.asked.facts, self.asked.labels)


def read_saved_run(folder: str | Path, dataset: Dataset) -> SavedRun:
    """Read a run folder made on `dataset`.

    Raises
    ------
    IncomparableError
        The run was made on another dataset.
    ReportError
        The folder is not a run, or its log is damaged or unfinished.
    """
    folder = Path(folder)
    record = read_run(folder)
    refuse_change(
        {"dataset": record.get("dataset"), "questions_sha256": record.get("questions_sha256")},
        {
            "dataset": {"sha256": dataset.sha256, "rows": len(dataset)},
            "questions_sha256": dataset.questions_sha256,
        },
        str(folder),
        "name the dataset it was made on",
    )
    options = RunOptions(**record["settings"])
    log = RunLog(folder)
    total = len(dataset) if options.limit is None else min(options.limit, len(dataset))
    collector = Collector(dataset, total)
    collector.take_all(log.read())
    collector.require_all(str(folder))
    return SavedRun(record, options, collector.finish(), log)
