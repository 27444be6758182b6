"""The lexical engine beside another one: a floor that only compares spelling."""

from __future__ import annotations

import numpy as np

from steelyard.engines.lexical import LexicalEngine
from steelyard.errors import SteelyardError
from steelyard.formats.dataset import Dataset
from steelyard.metrics.decisions import Floats
from steelyard.run.judge import join
from steelyard.run.log import RunLog
from steelyard.run.options import RunOptions
from steelyard.run.runner import Runner


def lexical_hits(dataset: Dataset, n_rows: int) -> Floats | None:
    """Whether the lexical engine is right, a value for each label of the first rows.

    Returns
    -------
    array or None
        1, 0, or NaN where right and wrong do not apply; None where it cannot be asked, as of data
        that pins models.
    """
    log = RunLog(None)
    options = RunOptions(batch_size=64, limit=n_rows, on_error="skip")
    try:
        asked = Runner(dataset, LexicalEngine(), options, log, lambda *_: None).run()
    except SteelyardError:
        return None
    finally:
        log.close()
    return np.asarray(join(dataset.columns, asked.answers, asked.facts, asked.labels).correct)
