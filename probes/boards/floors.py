"""The floor of a result, and a test of which layers are above it.

The floor is the highest score that is reached without a trained layer of the model: that of a rule
or of n-grams of a text, of layer 0, or of a random twin at its best layer on test. It varies with
the test text and with training, as every score does. So layers are compared with it on the same
resamples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from probes.boards.comparable import SAME_FLOOR, K, select_like, twins_beside, twins_of
from probes.common.arrays import Floats
from probes.common.kept_values import kept, key_of
from probes.frames.joined_results import results_with_evidence
from probes.probing.resampled_scores import resampled_scores, rule_replicates
from probes.probing.training_variance import training_spread
from probes.records.best_layer import best_layer_of
from probes.records.record_files import arrays_digest, if_readable
from probes.records.result import FloorTest, Result
from probes.statistics.bootstrap import RESAMPLES
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates, replicate_blocks
from probes.statistics.significance import Errors, above_all


class TwinLayer(NamedTuple):
    """A random twin and its best layer on test, of those that the model's result has as well."""

    result: Result
    layer: int


def with_floor(result: Result, among: Iterable[Result] = ()) -> Result:
    """The result with its random twins among the baselines, and tested against its floor.

    Args:
        among: results that may be of its twins. Where none are, the folders beside that of the
            result are searched.
    """
    if result.floor_test is not None:
        return result
    best = _best_layers(_twins(result, among), result)
    with_twins = _with_twins(result, best)
    test = if_readable(lambda: _kept_test(with_twins, best)) if with_twins.floor else None
    return with_twins.model_copy(update={"floor_test": test})


def resampled_floor(result: Result, among: Iterable[Result] = ()) -> tuple[float, Floats] | None:
    """The floor of a result, and the score that is the floor in every resample (resamples,).

    A baseline without predictions is the same in all resamples.

    Args:
        among: see `with_floor`.

    Returns:
        None if there is no floor.

    Raises:
        UserError: arrays cannot be read, or do not give the recorded scores.
    """
    twins = _best_layers(_twins(result, among), result)
    if (floor := _with_twins(result, twins).floor) is None:
        return None
    name, score = floor
    if name == "layer 0":
        replicates = resampled_scores(result, [0])
    else:
        replicates = _resampled_baselines(result, twins).get(name)
    return score, np.full(RESAMPLES, score) if replicates is None else replicates.resampled[0]


def _best_layers(twins: Iterable[Result], result: Result) -> dict[str, TwinLayer]:
    """Random twins by their names as baselines, each at its best layer on test."""
    return {
        f"random twin {twin.model.random_seed or ''}".strip(): TwinLayer(
            twin, best_layer_of({layer: twin.score(layer) for layer in common})
        )
        for twin in twins
        if (common := [layer for layer in twin.layers if layer in result.extent])
    }


def _with_twins(result: Result, twins: Mapping[str, TwinLayer]) -> Result:
    return result.with_baselines({name: x.result.scores_of(x.layer) for name, x in twins.items()})


def _twins(result: Result, among: Iterable[Result]) -> list[Result]:
    if result.model.random_seed is not None:
        return []
    twins = _fitting_twins(result, dict(enumerate(among)))
    if not twins and result.path is not None:
        twins = _fitting_twins(
            result, results_with_evidence(twins_beside(result, result.path, same_unit=True))
        )
    return twins


def _fitting_twins(result: Result, among: Mapping[K, Result]) -> list[Result]:
    return list(select_like(twins_of(result, among), result, SAME_FLOOR).values())


def _kept_test(result: Result, twins: Mapping[str, TwinLayer]) -> FloorTest | None:
    """The floor's test, which is made once for the same numbers, whatever the model is called."""
    metric = result.task.metric
    if not metrics.is_shipped(metric):  # may compute whatever it likes
        return _floor_test(result, twins)

    def key() -> str:
        return key_of(
            "test of a floor",
            _tested_content(result, result.layers),
            [(name, scores.get(metric)) for name, scores in result.baselines.items()],
            [(name, x.layer, _tested_content(x.result, [x.layer])) for name, x in twins.items()],
        )

    def make() -> tuple[list[int], bool, tuple[str, ...]] | None:
        test = _floor_test(result, twins)
        return test and (sorted(test.above), test.knows_training, test.fixed)

    content = kept(key, make)
    return content and FloorTest(frozenset(content[0]), content[1], tuple(content[2]))


def _tested_content(result: Result, layers: Iterable[int]) -> tuple[object, ...]:
    """Basis of the tests of a result: scores of some layers, their replicates, and their noise.

    Raises:
        UserError: the arrays cannot be read.
    """
    scores = [result.score(layer) for layer in layers]
    arrays = result.path and arrays_digest(result.path)
    about = result.key, result.task, result.examples, result.layers, arrays
    return (*about, scores, training_spread(result))


def _floor_test(result: Result, twins: Mapping[str, TwinLayer]) -> FloorTest | None:
    """None if predictions are missing, or cover too few documents or sentences."""
    if not (probe := resampled_scores(result, result.layers)):
        return None
    rivals = _resampled_baselines(result, twins)
    if probe.sd is None:
        rivals = {name: x if name in twins else replace(x, sd=None) for name, x in rivals.items()}
    metric, samples = result.task.metric, [probe, *rivals.values()]
    numbers = {x: scores.get(metric) for x, scores in result.baselines.items() if x not in rivals}
    # Without predictions a baseline is a plain number.
    fixed = np.array([x for x in numbers.values() if x is not None], dtype=np.float64)
    scores = np.concatenate([*(x.scores for x in samples), fixed])
    floors = [i for i in range(len(probe.layers), len(scores)) if not np.isnan(scores[i])]
    if result.layers[0] == 0 and not np.isnan(scores[0]):
        floors.append(0)
    above = above_all(
        scores, lambda: _blocks_with_fixed(samples, fixed), range(len(probe.layers)), floors
    )
    return FloorTest(
        frozenset(layer for layer, is_above in zip(result.layers, above, strict=True) if is_above),
        probe.sd is not None and all(rivals[x].sd is not None for x in twins if x in rivals),
        tuple(numbers),
    )


def _resampled_baselines(result: Result, twins: Mapping[str, TwinLayer]) -> dict[str, Replicates]:
    """Rules and random twins whose scores can be resampled with those of the result."""
    rivals = rule_replicates(result)
    for name, (twin, layer) in twins.items():
        same = twin.examples.test_digest == result.examples.test_digest
        if same and (replicates := resampled_scores(twin, [layer])):
            rivals[name] = replicates
    return rivals


def _blocks_with_fixed(samples: list[Replicates], fixed: Floats) -> Iterator[tuple[Floats, Errors]]:
    """Blocks of resamples, with numbers that are the same in all of them."""
    for values, errors in replicate_blocks(samples):
        shape = len(fixed), values.shape[1]
        nothing = np.zeros((len(fixed), errors.influence.shape[1]))
        yield (
            np.concatenate([values, np.broadcast_to(fixed[:, None], shape)]),
            Errors(
                np.concatenate([errors.influence, nothing]),
                np.concatenate([errors.training, nothing[:, 0]]),
                errors.draws,
            ),
        )
