"""Which layers differ significantly, and which are the best; known once training variance is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from probes.measurements.resampled import resampled
from probes.records.charts import Grid, Panel
from probes.records.files import if_readable
from probes.records.result import Result
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA, all_pairs


def p_best(result: Result) -> dict[int, float | None] | None:
    """By layer, the least p-value of a difference from a layer that scores higher on test.

    None without training variance.
    """
    found = result.found("training_variance")
    if found is None:
        return None
    every = ((layer, found.at("p_best", layer)) for layer in result.layers)
    return {layer: row.value for layer, row in every if row}


def confidence_set(result: Result) -> set[int] | None:
    """The layers not significantly worse than any other, at .05 over all pairs of layers.

    It says nothing of the layer that is best on dev, which may be outside. None where nothing was
    tested: without training variance, since scores alone cannot tell layers apart, or with too few
    test documents or sentences.
    """
    found = p_best(result)
    if found is None or all(p is None for p in found.values()):
        return None
    return {layer for layer in result.extent if (found.get(layer) or 0.0) >= ALPHA}


def told_apart(result: Result, path: Path) -> set[tuple[int, int]] | None:
    """The pairs of layers whose test scores differ, at .05 over all pairs of layers.

    The test is that behind `confidence_set`. None where nothing could be tested: without training
    variance, without predictions beside the result that can be read, or with too few test documents
    or sentences.
    """
    layers = sorted(result.extent)
    found = if_readable(lambda: resampled(result, path, layers))
    if found is None or found.noise is None:
        return None
    pairs = all_pairs(len(layers))
    p_values = p_values_of([found], pairs)
    return {(layers[i], layers[j]) for (i, j), p in zip(pairs, p_values, strict=True) if p < ALPHA}


def separability(models: Mapping[str, Mapping[Path, Result]]) -> Grid:
    """In how many tasks probes tell two layers apart, for every two layers.

    Args:
        models: the results of each model, all of one corpus and probe family, by path.
    """
    panels, missing, tasks = {}, {}, {}
    for model, results in models.items():
        every = {
            result.task.name: told_apart(result, path)
            for path, result in results.items()
            if result.has_all_layers
        }
        tested = {task: pairs for task, pairs in every.items() if pairs is not None}
        if not tested:
            missing[model] = "no task has training variance and readable predictions at all layers"
            continue
        tasks[model] = ", ".join(tested)
        counts = Counter(pair for pairs in tested.values() for pair in pairs)
        layers = range(next(iter(results.values())).model.n_layers + 1)
        values = tuple(
            tuple(None if i == j else counts[min(i, j), max(i, j)] for j in layers) for i in layers
        )
        names = tuple(map(str, layers))
        panels[model] = Panel(names, names, values)
    same = len(set(tasks.values())) == 1
    listed = {*tasks.values()} if same else {f"{model}: {names}" for model, names in tasks.items()}
    return Grid(
        "separability",
        "Number of tasks in which two layers differ significantly",
        "Differences of test scores at .05, corrected over all pairs of layers of a task; "
        f"of {'; '.join(sorted(listed))}.",
        "layer",
        "layer",
        panels,
        digits=0,
        low=0.0,
        high=max((len(names.split(", ")) for names in tasks.values()), default=None),
        missing=missing,
    )
