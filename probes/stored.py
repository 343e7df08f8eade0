"""A stored result's predictions, scored again: in resamples of test sentences."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from probes.alignment import Ints
from probes.metrics import Floats, Gold, metrics
from probes.results import Result
from probes.statistics import MIN_SENTENCES, replicates, resample


def resampled_scores(result: Result, path: Path) -> Floats | None:
    """Seed 0's headline test score at every layer in every resample, as when it was scored.

    Args:
        path: the result's JSON; its predictions lie beside it.

    Returns:
        shape (layers, resamples), layers as in the result; None if the predictions are not
        there, do not give the score that is recorded, or cover too few sentences.
    """
    try:
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
            predicted = arrays["predicted"][:, 0]
            gold = _gold(result, arrays["gold"], arrays["sentence"].astype(np.int64))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    metric = metrics.get(result.task.metric)
    recorded = [np.nan if s is None else s for s in map(result.score, result.layers)]
    if gold.n_sentences < MIN_SENTENCES or len(predicted) != len(recorded):
        return None
    if not np.allclose(metric(gold, predicted), recorded, atol=1e-6, equal_nan=True):
        return None
    return replicates(metric, gold, predicted, resample(gold.n_sentences))


def _gold(result: Result, labels: Floats, sentence: Ints) -> Gold:
    """What the predictions were scored against.

    Which unseen label stands where is not stored; their order matters to no headline metric
    but to span F1, where two that follow each other might be one chunk.
    """
    counts = result.examples.labels
    unseen = result.examples.unseen_test_labels
    return Gold(
        labels=labels,
        sentence=sentence,
        classes=tuple(sorted(label for label, (train, *_) in counts.items() if train)),
        punctuation=np.zeros(len(labels), dtype=bool),
        unseen=tuple(label for label, n in unseen.items() for _ in range(n)),
    )
