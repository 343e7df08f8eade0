"""A stored result's test predictions, and what they are scored against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from probes.metrics import Floats, Gold, metrics
from probes.results import Result
from probes.statistics import MIN_SENTENCES, replicates, resample

Arrays = Mapping[str, NDArray[Any]]
"""By name: `predicted` (layers, seeds, n), `layers`, and of the examples `gold`, `sentence`,
`punctuation` and `unseen`, the names of the labels that train lacks."""


def read_arrays(path: Path) -> Arrays:
    """The per-example arrays beside the result at `path`.

    Raises:
        UserError: they are not there, or not readable.
    """
    beside = path.with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            return dict(stored)
    except (OSError, ValueError, BadZipFile, EOFError) as error:
        raise UserError(f"{beside}: not readable ({error}); delete it and run again.") from error


def gold_of(result: Result, arrays: Arrays) -> Gold:
    """What the test predictions of a stored result are scored against."""
    counts = result.examples.labels
    return Gold(
        labels=arrays["gold"],
        sentence=arrays["sentence"].astype(np.int64),
        classes=tuple(sorted(label for label, (train, *_) in counts.items() if train)),
        punctuation=arrays["punctuation"],
        unseen=tuple(arrays["unseen"].tolist()),
    )


def resampled_scores(result: Result, path: Path) -> Floats | None:
    """Seed 0's headline test score at every layer in every resample, as when it was scored.

    Args:
        path: the result's JSON; its predictions lie beside it.

    Returns:
        shape (layers, resamples), layers as in the result; None if the predictions are not
        there, or cover too few sentences.

    Raises:
        UserError: they are not readable, or do not give the score that is recorded.
    """
    if not path.with_suffix(".npz").exists():
        return None
    arrays = read_arrays(path)
    gold, predicted = gold_of(result, arrays), arrays["predicted"][:, 0]
    if gold.n_sentences < MIN_SENTENCES:
        return None
    metric = metrics.get(result.task.metric)
    recorded = [np.nan if s is None else s for s in map(result.score, result.layers)]
    found = metric(gold, predicted)
    if len(found) != len(recorded) or not np.allclose(found, recorded, atol=1e-6, equal_nan=True):
        raise UserError(
            f"{path.with_suffix('.npz')}: these predictions do not give the scores in the result "
            "beside them; delete both and run again."
        )
    return replicates(metric, gold, predicted, resample(gold.n_sentences))
