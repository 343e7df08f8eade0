"""A stored result's test predictions, and what they are scored against."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from probes.metrics import Floats, Gold, metrics
from probes.results import Result
from probes.statistics import MIN_SENTENCES, replicates, resample

_UNREADABLE = (
    MemoryError, OSError, ValueError, BadZipFile, EOFError, KeyError, RuntimeError, struct.error,
    zlib.error,
)  # fmt: skip
"""What reading a damaged archive may raise; of an encrypted or unknown kind it is RuntimeError."""

_NAMES = {"predicted", "layers", "gold", "sentence", "punctuation", "unseen"}

Arrays = Mapping[str, NDArray[Any]]
"""By name: `predicted` (layers, seeds, n), `layers`, and of the examples `gold`, `sentence`,
`punctuation` and `unseen`, the names of the labels that train lacks. Of multi-label tasks
`predicted` is (layers, seeds, n, bytes), and there are `sets`; see `probes.metrics.Gold`."""


def read_arrays(path: Path) -> Arrays:
    """The per-example arrays beside the result at `path`.

    Raises:
        UserError: they are not there, or not readable.
    """
    beside = path.with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            arrays = dict(stored)
        # A damaged table of contents may name fewer than there are.
        if missing := _NAMES - arrays.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        _require_shapes(arrays)
        return arrays
    except _UNREADABLE as error:
        raise UserError(f"{beside}: not readable ({error}); delete it and run again.") from error


def _require_shapes(arrays: Arrays) -> None:
    """Raise ValueError unless arrays are numbers of the same examples."""
    n = arrays["gold"].size
    predicted, layers = arrays["predicted"], arrays["layers"]
    found = {name: arrays[name].shape for name in ("gold", "sentence", "punctuation")}
    wanted = (*layers.shape, *predicted.shape[1:2], n, *predicted.shape[3:])
    if set(found.values()) != {(n,)} or predicted.ndim != 3 + ("sets" in arrays):
        raise ValueError(f"its arrays do not belong together: {found}")
    if predicted.shape != wanted or not predicted.size:
        raise ValueError(f"its predictions have the shape {predicted.shape}, not {wanted}")
    if any(arrays[name].dtype.kind not in "biuf" for name in (*found, "predicted", "layers")):
        raise ValueError("its arrays do not hold numbers")


def gold_of(result: Result, arrays: Arrays) -> Gold:
    """What the test predictions of a stored result are scored against."""
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
    """Seed 0's headline test scores in every resample of the test sentences.

    Attributes:
        examples: digest of the examples that were scored; only where it is equal are two paired.
        values: shape (layers, resamples).
    """

    examples: str
    values: Floats


def resampled_scores(result: Result, path: Path) -> Floats | None:
    """The replicates of every layer; see `resampled`."""
    found = resampled(result, path, [layer.layer for layer in result.layers])
    return None if found is None else found.values


def resampled(result: Result, path: Path, layers: Sequence[int]) -> Resampled | None:
    """Seed 0's headline test score at some layers in every resample, as when it was scored.

    Args:
        path: the result's JSON; its predictions lie beside it.

    Returns:
        None if the predictions are not there, or cover too few sentences, or if the metric is a
        plug-in's that is not loaded.

    Raises:
        UserError: they are not readable, or do not give the scores that are recorded.
    """
    if not path.with_suffix(".npz").exists() or result.task.metric not in metrics:
        return None
    arrays = read_arrays(path)
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
    except (IndexError, ValueError, OverflowError) as error:  # labels that there are not
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
        f"{path.with_suffix('.npz')}: these predictions do not give the scores in the result "
        "beside them; delete both and run again."
    )
