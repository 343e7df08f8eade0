"""Test scores of stored probes on mixes of layers in bootstrap resamples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.measurements.localisation import Localisation, mixes_of
from probes.measurements.resampled import gold_of
from probes.measurements.scores import read_predictions
from probes.records.files import read_arrays
from probes.records.keys import record_name
from probes.records.result import Result
from probes.statistics.bootstrap import MIN_SENTENCES, replicates, resample
from probes.statistics.metrics import metrics


def resampled_mixes(result: Result, path: Path) -> Floats | None:
    """The headline test scores on the mixes of layers 0 to k. Shape (L + 1, resamples).

    Only the choice of test sentences is in them, not that of training data.

    Args:
        path: the result's JSON file; the record of the localisation and the arrays of both are
            beside it.

    Returns:
        None if there is no localisation, if predictions are missing or cover too few sentences, or
        if the metric comes from a plug-in that is not loaded.

    Raises:
        UserError: the predictions cannot be read, or do not give the recorded scores.
    """
    mixes = mixes_of(result)
    if mixes is None or result.task.metric not in metrics:
        return None
    key = result.evidence[Localisation.name].key
    beside = path.with_name(
        record_name(result.task.name, result.probe.family, Localisation.name, key)
    )
    if not all(each.with_suffix(".npz").exists() for each in (path, beside)):
        return None
    gold = gold_of(result, read_predictions(path))
    if gold.n_sentences < MIN_SENTENCES:
        return None
    predicted = read_arrays(beside, ["predicted"])["predicted"]
    metric = metrics.get(result.task.metric)
    recorded = np.array([mix.test[result.task.metric] for mix in mixes.mixes], dtype=np.float64)
    try:
        matches = np.allclose(metric(gold, predicted), recorded, atol=1e-6, equal_nan=True)
    except (IndexError, ValueError, OverflowError):  # of other examples, or labels out of range
        matches = False
    if not matches:
        raise UserError(
            f"{beside.with_suffix('.npz')}: these predictions do not give the scores in "
            f"{beside.name}; delete both files and run again."
        )
    return replicates(metric, gold, predicted, resample(gold.n_sentences))
