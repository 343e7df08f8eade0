"""What clusters of the test split contribute to the scores of stored probes on mixes of layers."""

from __future__ import annotations

from pathlib import Path

from probes.common.arrays import Floats
from probes.measurements.localisation import Localisation
from probes.measurements.resampled import sums_of
from probes.measurements.scores import SUMS, gold_of, read_predictions
from probes.records.files import has_arrays, name_of, read_arrays
from probes.records.result import Result
from probes.statistics.metrics import metrics


def stored_mix_sums(result: Result, path: Path) -> Floats | None:
    """What each cluster contributes to the headline metric of every mix; see `sums_of`.

    Returns:
        None if there is no localisation, if arrays are missing, or if the metric comes from a
        plug-in that is not loaded.

    Raises:
        UserError: the arrays cannot be read.
    """
    found = result.evidence.get(Localisation.name)
    if found is None or result.task.metric not in metrics:
        return None
    beside = path.with_name(name_of(found))
    if not all(each.with_suffix(".npz").exists() for each in (path, beside)):
        return None
    if has_arrays(beside, SUMS):
        return read_arrays(beside, SUMS)["sums"]
    return mix_sums(result, path, beside)


def mix_sums(result: Result, path: Path, beside: Path) -> Floats:
    """What each cluster contributes to the headline metric of every mix; see `sums_of`.

    Args:
        path: of the scores, which have the gold labels.
        beside: of the localisation.

    Raises:
        UserError: predictions are missing or cannot be read.
    """
    gold = gold_of(result, read_predictions(path))
    predicted = read_arrays(beside, ["predicted"])["predicted"]
    return sums_of(metrics.get(result.task.metric), gold, predicted, beside)
