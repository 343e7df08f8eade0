"""Test scores of stored results in bootstrap resamples, from the arrays beside them.

Sums over documents or sentences replace predictions that a licence does not allow to share.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.frames.joined_results import results_with_evidence
from probes.measurements.measurement import LOCALISATION, get_measurement, measurements
from probes.measurements.table_cells import why_not_resampled
from probes.probing.scores import RANKED_RULES, RULE_SAMPLES, RULES, SUMS, gold_of, read_predictions
from probes.probing.training_variance import training_spread
from probes.records.record import Record
from probes.records.record_files import Arrays, has_arrays, name_of, read_arrays
from probes.records.result import SCORES, Result
from probes.statistics.bootstrap import cluster_sums
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric, metrics, ranks_margins
from probes.statistics.replicates import Replicates
from probes.statistics.sums import sparse_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def resampled_scores(result: Result, layers: Sequence[int]) -> Replicates | None:
    """The first fits' headline test scores at some layers in every resample.

    They come from predictions or sums in the .npz file beside the result's own file.

    Returns:
        None if the arrays are missing or cover too few clusters, or if the metric comes from a
        plug-in that is not loaded.

    Raises:
        UserError: the arrays cannot be read, or do not give the recorded scores.
    """
    path = result.path
    if path is None or (sums := stored_sums(result, path)) is None:
        return None
    some_sums = [sums[result.layers.index(layer)] for layer in layers]
    scores = [result.score(layer) for layer in layers]
    stored_scores = np.array([np.nan if score is None else score for score in scores])
    return replicates_of(result, result.key, some_sums, stored_scores, layers, path)


def rule_replicates(result: Result) -> dict[str, Replicates]:
    """The headline test scores of baselines with stored sums, in every resample.

    Raises:
        UserError: the arrays cannot be read, or do not give the recorded scores.
    """
    path, name = result.path, result.task.metric
    names = RANKED_RULES if ranks_margins(name) else RULES
    if path is None or not has_arrays(path, names):
        return {}
    metric, replicates = metrics.get(name), {}
    rules, every_rule, deviations = (read_arrays(path, names)[name] for name in names)
    every_sums: Iterable[Any] = map(sparse_matrix, every_rule)
    if metric.of_margins:
        every_sums = sums_of(metric, gold_of(result, read_predictions(path)), every_rule, path)
    for rule, sums, sd in zip(rules.tolist(), every_sums, deviations.tolist(), strict=True):
        score = np.array([metric.value(sums.sum(0))])
        stored_score = result.baselines.get(rule, {}).get(name)
        if not np.allclose(score, np.nan if stored_score is None else stored_score, equal_nan=True):
            raise wrong_arrays_error(path)
        name_of_noise = f"{result.key} {rule}"
        replicates[rule] = Replicates(
            score, metric, [sums], [0], name_of_noise, sd, RULE_SAMPLES - 1
        )
    return replicates


def stored_sums(result: Result, path: Path) -> list[csr_array] | None:
    """Sums of the headline metric of each layer over each cluster; see `sums_of`.

    Returns:
        None if the arrays are missing, or if the metric comes from a plug-in that is not loaded.

    Raises:
        UserError: the arrays cannot be read, or are of other layers.
    """
    if not path.with_suffix(".npz").exists() or result.task.metric not in metrics:
        return None
    if has_arrays(path, SUMS):
        arrays = read_arrays(path, ("layers", *SUMS))
        sums = _of_layers(arrays["sums"], len(result.layers), path)
    else:
        arrays = read_predictions(path)
        sums = _sums_of_first_fits(result, arrays, path)
    if arrays["layers"].ravel().tolist() != [*result.layers]:
        raise wrong_arrays_error(path)
    return sums


def _sums_of_first_fits(result: Result, arrays: Arrays, path: Path) -> list[csr_array]:
    metric = metrics.get(result.task.metric)
    return sums_of(metric, gold_of(result, arrays), arrays["predicted"][:, 0], path)


def _of_layers(sums: Floats, n_layers: int, path: Path) -> list[csr_array]:
    """Stored sums, which are of so many layers, and of at least one document or sentence."""
    if sums.ndim != 3 or len(sums) != n_layers or not sums.size or sums.dtype.kind not in "biuf":
        raise wrong_arrays_error(path)
    return [sparse_matrix(x) for x in sums]


def as_sums(result: Result, path: Path) -> Arrays:
    """Replace predictions by sums of the headline metric over each cluster.

    All scores, intervals and tests of the headline metric can be computed from these.

    Returns:
        `layers` (layers,), `sums` (layers, clusters, k), and the arrays of baselines.
    """
    arrays = read_predictions(path)
    sums = dense_sums(_sums_of_first_fits(result, arrays, path))
    rules = {name: arrays[name] for name in RULES if name in arrays}
    return {"layers": arrays["layers"], "sums": sums, **rules}


def dense_sums(sums: Sequence[csr_array]) -> Floats:
    """Sums as one array. Shape (cells, clusters, k)."""
    return np.stack([x.toarray() for x in sums])


def sums_of(metric: Metric, gold: Gold, predicted: Predictions, path: Path) -> list[csr_array]:
    """Sums of a metric over each document or sentence, for each row of `predicted` (cells, n).

    Each (clusters, k); see `probes.statistics.metrics.Metric`.

    Raises:
        UserError: the predictions are not of these examples.
    """
    try:
        return [cluster_sums(metric.parts(gold, row), gold) for row in predicted]
    except (IndexError, ValueError, OverflowError) as error:  # labels out of range
        raise wrong_arrays_error(path) from error


def replicates_of(
    result: Result,
    key: str,
    sums: Sequence[csr_array],
    stored_scores: Floats,
    layers: Sequence[int],
    path: Path,
) -> Replicates | None:
    """The headline metric in every resample, from sums; None if `why_not_resampled`.

    Args:
        sums: see `sums_of`, by layer.
        key: key of the record, which seeds the noise of training.
        stored_scores: the recorded scores. Shape (layers,).
        path: path of the arrays.

    Raises:
        UserError: the sums do not give the recorded scores.
    """
    if why_not_resampled(result):
        return None
    metric = metrics.get(result.task.metric)
    try:
        scores = np.array([metric.value(x.sum(0)) for x in sums])
        is_recorded = scores.shape == stored_scores.shape and np.allclose(
            scores, stored_scores, atol=1e-6, equal_nan=True
        )
    except (IndexError, TypeError, ValueError) as error:  # of another shape, or no numbers
        raise wrong_arrays_error(path) from error
    if not is_recorded:
        raise wrong_arrays_error(path)
    spread = training_spread(result)
    of_training = (spread.sd, spread.df) if spread else ()
    return Replicates(stored_scores, metric, sums, layers, key, *of_training)


def wrong_arrays_error(path: Path) -> UserError:
    """The error for arrays that do not give a record's scores."""
    return UserError(
        f"{path.with_suffix('.npz')}: these arrays do not give the scores in {path.name}. Delete "
        "both files and run again."
    )


def stored_mix_sums(result: Result, path: Path) -> list[csr_array] | None:
    """Sums of the headline metric of every mix over each cluster; see `sums_of`.

    Returns:
        None if there is no localisation, if arrays are missing, or if the metric comes from a
        plug-in that is not loaded.
    """
    evidence = result.evidence.get(LOCALISATION)
    if evidence is None or result.task.metric not in metrics:
        return None
    mix_path = path.with_name(name_of(evidence))
    if not all(json_path.with_suffix(".npz").exists() for json_path in (path, mix_path)):
        return None
    if has_arrays(mix_path, SUMS):
        sums = read_arrays(mix_path, SUMS)["sums"]
        return _of_layers(sums, len(sums) if sums.ndim else 0, mix_path)
    return mix_sums(result, path, mix_path)


def mix_sums(result: Result, path: Path, mix_path: Path) -> list[csr_array]:
    """Sums of the headline metric of every mix over each cluster; see `sums_of`.

    Args:
        path: path of the scores, which have the gold labels.
        mix_path: path of the localisation.
    """
    gold = gold_of(result, read_predictions(path))
    predicted = read_arrays(mix_path, ["predicted"])["predicted"]
    return sums_of(metrics.get(result.task.metric), gold, predicted, mix_path)


def with_sums(records: Mapping[Path, Record]) -> dict[Path, tuple[Record, Arrays]]:
    """The records, with sums over documents or sentences as arrays.

    All scores, intervals and p-values of the headline metric can be computed from these. Arrays of
    other measurements are left out unless the measurement declares them shareable. A record whose
    sums cannot be computed is left out, with a message.
    """
    results = results_with_evidence(records)
    scores = {
        record.key: path
        for path, result in results.items()
        for record in result.evidence.values()
        if record.measurement == LOCALISATION
    }

    def arrays_of(record: Record, path: Path) -> Arrays:
        if record.arrays and (_shares_arrays(record) or has_arrays(path, SUMS)):
            return read_arrays(path)
        if record.arrays and record.task and ranks_margins(record.task.metric):
            raise UserError(
                f"sums of {record.task.metric} give away the order of all examples; "
                "copy its folder to share it."
            )
        if record.arrays and record.measurement == SCORES:
            return as_sums(results[path], path)
        if record.arrays and (of_scores := scores.get(record.key)):
            return {"sums": dense_sums(mix_sums(results[of_scores], of_scores, path))}
        return {}

    exported_records = {}
    for path, record in records.items():
        try:
            arrays = arrays_of(record, path)
        except UserError as error:
            progress.say(f"left out {path.name}: {error}")
            continue
        provenance = {k: _named(x) if k == "command" else x for k, x in record.provenance.items()}
        update = {"arrays": tuple(arrays), "provenance": provenance}
        exported_records[path] = record.model_copy(update=update), arrays
    return exported_records


_FOLDERS = re.compile(r"(?:^|(?<=[=,:]))(?:~[^/]*|\.\.?|[A-Za-z]:)?[/\\](?:[^=,/\\]+[/\\])*")
"""The folders of an absolute or relative path."""


def _named(command: str) -> str:
    """A command without the folders of local paths; empty if it is not a command."""
    try:
        return shlex.join(_FOLDERS.sub("", word) for word in shlex.split(command))
    except ValueError:
        return ""


def _shares_arrays(record: Record) -> bool:
    """Whether the measurement declares that its arrays may be shared."""
    name = record.measurement
    return name in measurements and get_measurement(name).shares_arrays
