"""The floor of a result, and a test of which layers are above it.

The floor is the highest score that is reached without a trained layer: that of a rule without
vectors, of layer 0, or of a random twin at its best layer on test. It varies with the test text as
every score does, so that layers are compared with it on the same resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from probes.common.arrays import Floats
from probes.measurements.resampled import resampled, rule_replicates
from probes.records.files import if_readable
from probes.records.result import FloorTest, Result
from probes.statistics.bootstrap import resample
from probes.statistics.replicates import Replicates
from probes.statistics.significance import Errors, above_all

TwinLayer = tuple[Result, int]
"""A random twin and its best layer on test."""


def with_floor(result: Result, twins: Sequence[Result] = ()) -> Result:
    """The result with its random twins among the baselines, and tested against its floor.

    Args:
        twins: results of random twins; those of another task or probe are passed over.
    """
    best: dict[str, TwinLayer] = {
        f"random twin {twin.model.random_seed or ''}".strip(): (twin, twin.best_of(common, "test"))
        for twin in twins
        if (twin.task.name, twin.probe) == (result.task.name, result.probe)
        and (common := [layer for layer in twin.layers if layer in result.extent])
    }
    given = result.with_baselines({name: x.scores_of(layer) for name, (x, layer) in best.items()})
    test = if_readable(lambda: _tested(given, best)) if given.floor else None
    return given.model_copy(update={"floor_test": test})


def _tested(result: Result, twins: Mapping[str, TwinLayer]) -> FloorTest | None:
    """None if predictions are missing, or cover too few documents or sentences."""
    own = _replicates(result, result.layers)
    if own is None or result.path is None:
        return None
    known = rule_replicates(result, result.path)
    for name, (twin, layer) in twins.items():
        same_examples = twin.examples.test_digest == result.examples.test_digest
        if same_examples and (found := _replicates(twin, [layer])):
            known[name] = found
    # Where no predictions are stored, a baseline is a plain number.
    metric = result.task.metric
    rest = [x[metric] for name, x in result.baselines.items() if name not in known and metric in x]
    fixed = np.array([np.nan if x is None else x for x in rest], dtype=np.float64)

    every = [own, *known.values()]
    draws = resample(own.n_clusters).astype(np.float64)
    scores = np.concatenate([*(x.scores for x in every), fixed])
    values = np.concatenate([*(x.resampled for x in every), _repeated(fixed, len(draws))])
    nothing = np.zeros((len(fixed), own.n_clusters))
    influence = np.concatenate([*(x.influence for x in every), nothing])
    training = np.concatenate([*(x.training for x in every), nothing[:, 0]])

    n = len(result.layers)
    floors = [place for place in range(n, len(scores)) if not np.isnan(scores[place])]
    if result.layers[0] == 0 and not np.isnan(scores[0]):
        floors.append(0)
    above = above_all(scores, values, Errors(influence, training, draws), range(n), floors)
    return FloorTest(
        frozenset(layer for layer, is_above in zip(result.layers, above, strict=True) if is_above),
        own.sd is not None and all(known[name].sd is not None for name in twins if name in known),
    )


def _replicates(result: Result, layers: Sequence[int]) -> Replicates | None:
    return None if result.path is None else resampled(result, result.path, layers)


def _repeated(values: Floats, n: int) -> Floats:
    return np.repeat(values[:, None], n, axis=1)
