"""Test scores of stored results in bootstrap resamples, from their stored predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.measurements.scores import read_predictions
from probes.records.files import Arrays
from probes.records.result import Result
from probes.statistics.bootstrap import MIN_SENTENCES, replicates, resample
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics


def gold_of(result: Result, arrays: Arrays) -> Gold:
    """The gold labels of a stored result's test predictions."""
    counts = result.examples.labels
    return Gold(
        labels=arrays["gold"],
        sentence=arrays["sentence"].astype(np.int64),
        classes=tuple(sorted(label for label, (train, *_) in counts.items() if train)),
        punctuation=arrays["punctuation"],
        unseen=tuple(arrays["unseen"].tolist()),
        sets=arrays.get("sets"),
    )


class Resampled(NamedTuple):
    """The first fits' headline test scores in every resample of the test sentences.

    Attributes:
        examples: digest of the scored examples; two results can be paired only if it is equal.
        values: shape (layers, resamples).
    """

    examples: str
    values: Floats


def resampled_scores(result: Result, path: Path) -> Floats | None:
    """The scores of every layer (layers, resamples); see `resampled`."""
    found = resampled(result, path, [layer.layer for layer in result.layers])
    return None if found is None else found.values


def resampled(result: Result, path: Path, layers: Sequence[int]) -> Resampled | None:
    """The first fits' headline test scores at some layers in every resample.

    Args:
        path: the result's JSON file; its predictions are in the .npz file of the same name.

    Returns:
        None if the predictions are missing or cover too few sentences, or if the metric comes from
        a plug-in that is not loaded.

    Raises:
        UserError: the predictions cannot be read, or do not give the recorded scores.
    """
    if not path.with_suffix(".npz").exists() or result.task.metric not in metrics:
        return None
    arrays = read_predictions(path)
    stored = arrays["layers"].tolist()
    if stored != [layer.layer for layer in result.layers]:
        raise _unlike(path)
    places = [stored.index(layer) for layer in layers]
    gold, predicted = gold_of(result, arrays), arrays["predicted"][places, 0]
    if gold.n_sentences < MIN_SENTENCES:
        return None
    metric = metrics.get(result.task.metric)
    try:
        scores = metric(gold, predicted)
    except (IndexError, ValueError, OverflowError) as error:  # labels out of range
        raise _unlike(path) from error
    recorded = [result.score(result.layers[place]) for place in places]
    known = [np.nan if score is None else score for score in recorded]
    if not np.allclose(scores, known, atol=1e-6, equal_nan=True):
        raise _unlike(path)
    digest = hashlib.sha256()
    for name in ("gold", "sentence"):
        digest.update(f"{arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    draws = resample(gold.n_sentences)
    return Resampled(digest.hexdigest(), replicates(metric, gold, predicted, draws))


def _unlike(path: Path) -> UserError:
    return UserError(
        f"{path.with_suffix('.npz')}: these predictions do not give the scores in {path.name}; "
        "delete both files and run again."
    )
