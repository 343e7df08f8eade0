"""The fitted probes of stored scores, from the parameters in the cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.cli.results import results_below
from probes.common.arrays import Floats
from probes.common.errors import UserError, listed
from probes.common.registry import did_you_mean
from probes.frames.joined_results import read_result
from probes.records.parameters import FOLDABLE, caches_of, folded, of_layer, read_parameters
from probes.records.probe_spec import PROBES
from probes.records.record import corpus_title
from probes.records.result import Result
from probes.training.families import reads_several

if TYPE_CHECKING:
    from probes.training.layer_probe import LayerProbe


class FittedProbe(NamedTuple):
    """A probe as it was fitted at one layer, with its scores."""

    result: Result
    layer: int
    folded: list[tuple[Floats, Floats]]
    """See `probes.records.parameters.folded`."""

    @property
    def direction(self) -> tuple[Floats, float, float] | None:
        """Unit vector (H,) from the first of two classes to the second, norm of weights, threshold.

        An example is of the second class if its projection on the vector is above the threshold.
        None if the probe is not linear, or there are not two classes.
        """
        (weight, bias), *further_layers = self.folded
        if further_layers or self.result.task.kind != "classification" or len(weight) > 1:
            return None
        norm = float(np.linalg.norm(weight)) or 1.0
        return weight[0] / norm, norm, float(-bias[0] / norm)

    @property
    def card(self) -> dict[str, str]:
        """Facts about the probe as text; empty if unknown."""
        result, layer = self.result, self.layer
        task, model, corpus = result.task, result.model, result.corpus
        low, high = result.interval(layer) or (None, None)
        _, norm, threshold = self.direction or (None, None, None)
        margin = result.at("threshold", layer, "dev")
        fpr_threshold = None
        if threshold is not None and norm and margin and margin.value is not None:
            fpr_threshold = threshold + margin.value / norm  # of projections, as `threshold` is
        facts = {
            "classes": json.dumps(result.examples.classes, ensure_ascii=False),
            "kind": task.kind,
            # Each label of several has an output of its own, and applies if it is above 0.
            "threshold": 0 if task.kind == "multi-label" else threshold,
            "fpr": task.fpr,
            "fpr_threshold": fpr_threshold,
            "norm": norm,
            "family": result.probe.family,
            "model": model.name,
            "model_revision": model.revision,
            "model_digest": model.digest,
            "layer": layer,
            "pooling": result.pooling,
            "site": task.site,
            "view": result.view,
            "spans": self.folded[0][0].shape[1] // model.hidden_size,
            "corpus": corpus_title(result),
            "corpus_licence": corpus.licence,
            "corpus_citation": corpus.citation,
            "task": task.name,
            "task_version": task.version,
            "metric": task.metric,
            "score": result.score(layer),
            "score_low": low,
            "score_high": high,
            "resampled": result.examples.resampled,
            "suite_version": result.suite_version,
            "key": result.key,
        }
        return {name: "" if value is None else str(value) for name, value in facts.items()}


def find_probe(
    folder: Path, task: str, layer: int, family: str, model: str | None, cache: Path | None
) -> FittedProbe:
    """The probe for `read_probe`, found without torch."""
    results = {folder: read_result(folder)} if folder.is_file() else results_below([folder])
    if model is not None:
        results = _results_named(results, folder, "model", model, lambda r: r.model.name)
    if len(names := dict.fromkeys(result.model.name for result in results.values())) > 1:
        raise UserError(f"{folder}: several models ({', '.join(names)}); name the folder of one.")
    results = _results_named(results, folder, "task", task, lambda r: r.task.name)
    results = _results_named(results, folder, "probe family", family, lambda r: r.probe.family)
    if family not in FOLDABLE:
        reads_more = family in PROBES and reads_several(PROBES[family])
        kind = "reads more than one vector" if reads_more else "is a plug-in"
        raise UserError(f"{folder}: {family} {kind}; name one of {', '.join(FOLDABLE)}.")
    if len(results) > 1:
        paths = ", ".join(map(str, results))
        raise UserError(f"{folder}: several results of {task} · {family}; name one of {paths}.")
    ((path, result),) = results.items()
    layer = result.numbered(layer)
    caches = caches_of(path.parent) if cache is None else [cache]
    parameter_sets = [read_parameters(x, result.key) or {} for x in caches]
    parameters = next((x for x in parameter_sets if of_layer(layer, "weight") in x), None)
    if parameters is None:
        command = result.provenance.get("command", "python")
        again = f"{command} --overwrite always"
        if command == "python":  # a run without a command line
            again = "call run_probes as before, with overwrite='always'."
        raise UserError(
            f"{folder}: the parameters of {task} · {family}, layer {layer}, are not in "
            f"{listed(map(str, caches))}; "
            f"name the run's cache (cache_dir=, --cache-dir), or fit them again: {again}"
        )
    return FittedProbe(result, layer, folded(parameters, layer, result.task.kind))


def _results_named(
    results: Mapping[Path, Result], folder: Path, noun: str, name: str, of: Callable[[Result], str]
) -> dict[Path, Result]:
    """The results of one model, task or family."""
    if not (matches := {path: x for path, x in results.items() if of(x) == name}):
        known_names = dict.fromkeys(map(of, results.values()))
        raise UserError(f"{folder}: no {noun} {name!r}. {did_you_mean(name, known_names)}")
    return matches


def read_probe(
    folder: str | os.PathLike[str],
    task: str,
    layer: int,
    family: str = "linear",
    model: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> LayerProbe:
    """The fitted probe behind a stored score: the first fit of a layer.

    `predict` takes mean vectors of the layer over the words of each example's span, where a word's
    vector is pooled from subwords (`--pooling`). For a task on two spans, the two means are
    concatenated. Do not standardise or project them (``--project``); the probe does. Shape
    (n, hidden size), or (n, 2 × hidden size).

    Args:
        folder: results of a model and corpus, such as ``results/M/ewt``, or a file of scores in it
            (.json).
        family: "linear", "mlp", "mean-difference", "sparse", or "token-mean", which then reads the
            mean of a text's tokens.
        model: name of the model, if the folder has several.
        cache_dir: the cache of the run; by default the one noted beside the results, or else the
            usual one.

    Raises:
        UserError: there is no such result, there are several, or the parameters are not in the
            cache; the message has the command that fits them again.
    """
    from probes.training.layer_probe import LayerProbe

    cache = None if cache_dir is None else Path(cache_dir)
    probe = find_probe(Path(folder), task, layer, family, model, cache)
    classes = np.array(probe.result.examples.classes)
    return LayerProbe.of(family, probe.result.task.kind, probe.folded, classes)
