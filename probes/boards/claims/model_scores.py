"""One model's scores on one corpus by task and layer: what claims are tested on.

Depths are relative: layer / L, 0 for the embedding output, 1 for the last layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from probes.boards.separability import confidence_set, p_best
from probes.common.arrays import Floats
from probes.measurements.localisation import mixes_of
from probes.records.probe_scores import LayerScores
from probes.records.result import Result
from probes.records.values import Interval

Band = Callable[[float], bool]
"""Whether a relative depth belongs to some part of the model."""


def lower(depth: float) -> bool:
    """Below the middle."""
    return depth < 1 / 4


def middle(depth: float) -> bool:
    """The middle half. The Primer calls layers 6–9 of 12 middle, which a middle third would not."""
    return 1 / 4 <= depth <= 3 / 4


def late_middle(depth: float) -> bool:
    """What rounds to layers 8 and 9 of 12."""
    return 7.5 / 12 <= depth <= 9.5 / 12


class MissingError(Exception):
    """A claim needs something that is not in the results; the message says what."""


@dataclass(frozen=True)
class ModelScores:
    """Results of one model, corpus and probe family.

    Attributes:
        results: by task.
        resampled: gives a task's headline test scores in resamples of its test sentences, shape
            (layers, resamples); None if they cannot be computed.
    """

    results: Mapping[str, Result]
    resampled: Callable[[str], Floats | None]

    def result(self, task: str) -> Result:
        """The result of `task`, with a score and a test for every layer.

        Raises:
            MissingError: there is no such result.
        """
        if task not in self.results:
            raise MissingError(f"{task} was not run")
        result = self.results[task]
        probed = {layer.layer for layer in result.layers}
        absent = sorted(set(range(result.model.n_layers + 1)) - probed)
        if absent:
            raise MissingError(f"{task} was not run at layer {', '.join(map(str, absent))}")
        tests = p_best(result)
        if tests is None:
            raise MissingError(f"{task} has no training variance, which tests of layers need")
        if None in tests.values():
            raise MissingError(f"{task} has too few test sentences to compare layers")
        return result

    def replicates(self, task: str) -> Floats:
        """The resampled scores of `task` at the layers of `result`. Shape (layers, resamples).

        Raises:
            MissingError: there are none.
        """
        self.result(task)
        values = self.resampled(task)
        if values is None:
            raise MissingError(f"the predictions of {task} are not beside its result")
        return values


def scores(result: Result) -> Floats:
    """Headline test scores by layer; NaN where undefined. Shape (layers,)."""
    return np.array([np.nan if s is None else s for s in map(result.score, result.layers)])


def relative(result: Result, layer: int) -> float:
    """Relative depth of a layer."""
    return layer / result.model.n_layers


def within(result: Result, band: Band) -> set[int]:
    """The layers whose relative depth lies in `band`.

    Raises:
        MissingError: the model has none.
    """
    layers = {x.layer for x in result.layers if band(relative(result, x.layer))}
    if not layers:
        n, name = result.model.n_layers, band.__name__.replace("_", "-")
        raise MissingError(f"a model of {n} layers has none that counts as {name}")
    return layers


def peaks(result: Result) -> set[int]:
    """Layers that may be the best: the confidence set, and any that beats it on test.

    The best layer is chosen on dev; a layer separated from it may be the better one.
    """
    best = result.best_layer
    reached = _score(result, best)
    better = {x.layer for x in result.layers if _score(result, x) > reached}
    return (confidence_set(result) or set()) | better


def peak_numbers(result: Result) -> dict[str, Any]:
    """The numbers behind a statement about where a task peaks."""
    best = result.best_layer
    return {
        "task": result.task.name,
        "view": result.view,
        "best_layer": best.layer,
        "relative_depth": round(relative(result, best.layer), 3),
        "score": result.score(best),
        "interval": best.intervals.get(result.task.metric),
        "peak_layers": sorted(peaks(result)),
        "p_best": p_best(result),
        "layers": result.model.n_layers,
    }


def last_drop(result: Result) -> tuple[float, float | None]:
    """Best minus last layer's test score, and the corrected p-value of the difference.

    None if the last layer is the best on dev.
    """
    last = max(result.layers, key=lambda x: x.layer)
    return _score(result, result.best_layer) - _score(result, last), (p_best(result) or {}).get(
        last.layer
    )


def located(result: Result, what: str) -> Interval:
    """The interval of an estimate of the localisation: `expected_layer`, or `kl`, in bits.

    None if localisation was not run, or if the task gains nothing over layer 0.
    """
    mixes = mixes_of(result)
    if mixes is None or mixes.expected_layer.value is None:
        return None
    interval: Interval = getattr(mixes, what).interval
    return interval


def _score(result: Result, layer: LayerScores) -> float:
    score = result.score(layer)
    return float("-inf") if score is None else score
