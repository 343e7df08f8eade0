"""Test scores of stored results in bootstrap resamples, from what is stored beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.measurements.scores import gold_of, read_predictions
from probes.measurements.training_variance import training_spread
from probes.records.files import Arrays, has_arrays, read_arrays
from probes.records.result import Result
from probes.statistics.bootstrap import RESAMPLES, resample, resampled_sums
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric, metrics
from probes.statistics.partition import FEWEST
from probes.statistics.sums import sparse
from probes.statistics.training_noise import training_noise

SUMS = ("sums", "clusters", "n_clusters")
"""What is stored where predictions are not to be passed on; see `sums_of`."""


class Replicates(NamedTuple):
    """The first fits' headline test scores in every resample of the test split.

    Attributes:
        scores: NaN where undefined. Shape (layers,).
        values: over test documents or sentences alone. Shape (layers, resamples).
        noise: what other trainings would add; None without training variance, and then there are
            no tests. Shape (layers, resamples).
    """

    scores: Floats
    values: Floats
    noise: Floats | None

    def row(self, place: int) -> Replicates:
        """Those of one layer."""
        at = slice(place, place + 1)
        noise = None if self.noise is None else self.noise[at]
        return Replicates(self.scores[at], self.values[at], noise)

    @property
    def tested(self) -> Floats | None:
        """The replicates that tests are made with: test split and training."""
        return None if self.noise is None else self.values + self.noise


def resampled(result: Result, path: Path, layers: Sequence[int]) -> Replicates | None:
    """The first fits' headline test scores at some layers in every resample.

    Args:
        path: the result's JSON file; predictions, or sums, are in the .npz file of the same name.

    Returns:
        None if the arrays are missing or cover too few clusters, or if the metric comes from a
        plug-in that is not loaded.

    Raises:
        UserError: the arrays cannot be read, or do not give the recorded scores.
    """
    if not path.with_suffix(".npz").exists() or result.task.metric not in metrics:
        return None
    named = ("layers", *SUMS)
    arrays = read_arrays(path, named) if has_arrays(path, SUMS) else as_sums(result, path)
    metric = metrics.get(result.task.metric)
    stored = arrays["layers"].tolist()
    if stored != [layer.layer for layer in result.layers]:
        raise unlike(path)
    places = [stored.index(layer) for layer in layers]
    scores = [result.score(result.layers[place]) for place in places]
    known = np.array([np.nan if score is None else score for score in scores])
    values = replicates_of(arrays, metric, places, known, path)
    if values is None:
        return None
    return Replicates(known, values, noise_of(result, result.key, layers))


def noise_of(result: Result, name: str, layers: Sequence[int]) -> Floats | None:
    """What other trainings would add to replicates; None without training variance.

    Args:
        name: see `probes.statistics.training_noise`.
    """
    spread = training_spread(result)
    if spread is None:
        return None
    return training_noise(name, layers, spread.sd, spread.df, RESAMPLES)


def as_sums(result: Result, path: Path) -> Arrays:
    """What each test sentence contributes to the headline metric, instead of predictions.

    Every score, interval and test of the headline metric can be computed from these, but neither
    text nor labels can be restored.

    Returns:
        `layers` (layers,), and what `sums_of` returns.

    Raises:
        UserError: there are no predictions, or they cannot be read.
    """
    arrays = read_predictions(path)
    gold, metric = gold_of(result, arrays), metrics.get(result.task.metric)
    return {"layers": arrays["layers"], **sums_of(metric, gold, arrays["predicted"][:, 0], path)}


def sums_of(metric: Metric, gold: Gold, predicted: Predictions, path: Path) -> Arrays:
    """What each sentence contributes to a metric of each row of `predicted` (cells, n).

    Returns:
        `sums` (cells, sentences, k), see `probes.statistics.metrics.Metric`; `clusters`
        (sentences,), what is resampled, of `n_clusters` in the whole split.

    Raises:
        UserError: the predictions are not of these examples.
    """
    try:
        parts = [metric.parts(gold, row).toarray() for row in predicted]
    except (IndexError, ValueError, OverflowError) as error:  # labels out of range
        raise unlike(path) from error
    return {
        "sums": np.stack(parts),
        "clusters": gold.clusters,
        "n_clusters": np.array(gold.n_clusters),
    }


def replicates_of(
    arrays: Arrays, metric: Metric, places: Sequence[int], recorded: Floats, path: Path
) -> Floats | None:
    """The metric of some cells in every resample, from sums; None with too few clusters.

    Args:
        arrays: as of `sums_of`.
        recorded: the scores of these cells. Shape (cells,).

    Returns:
        shape (cells, resamples).

    Raises:
        UserError: the sums do not give the recorded scores.
    """
    if not _belong_together(*(arrays[name] for name in SUMS)):
        raise unlike(path)
    clusters, n_clusters = arrays["clusters"].astype(np.int64), int(arrays["n_clusters"])
    if len(np.unique(clusters)) < FEWEST:
        return None
    try:
        parts = [arrays["sums"][place] for place in places]
        scores = np.array([metric.value(part.sum(0)) for part in parts])
    except (IndexError, ValueError) as error:  # of fewer cells, or of another metric
        raise unlike(path) from error
    if not np.allclose(scores, recorded, atol=1e-6, equal_nan=True):
        raise unlike(path)
    draws = resample(n_clusters)
    return np.stack([metric.value(resampled_sums(sparse(x), clusters, draws)) for x in parts])


def _belong_together(sums: NDArray[Any], clusters: NDArray[Any], n_clusters: NDArray[Any]) -> bool:
    """Whether these are numbers of the same sentences, and the clusters are numbered."""
    return bool(
        sums.dtype.kind in "biuf"
        and all(x.dtype.kind in "iu" for x in (clusters, n_clusters))
        and (sums.ndim, clusters.shape, n_clusters.shape) == (3, sums.shape[1:2], ())
        and clusters.min(initial=0) >= 0
        and clusters.max(initial=0) < n_clusters
    )


def unlike(path: Path) -> UserError:
    """The error for arrays that are not those of a record's scores."""
    return UserError(
        f"{path.with_suffix('.npz')}: what is stored here does not give the scores in {path.name}; "
        "delete both files and run again."
    )
