"""Scores: probes of every layer, fitted once for each seed, with intervals and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.scoring import Scorer, baselines, count_examples, references
from probes.measurements.cells import metric_curves
from probes.measurements.measurement import Found, Measurement, Request
from probes.measurements.uncertainty import intervals
from probes.records.curves import Curves, Point
from probes.records.files import Arrays, has_arrays, read_arrays, unreadable_arrays
from probes.records.probe_scores import FitScores, LayerScores, ProbeScores
from probes.records.record import Extent, Record, united
from probes.records.result import SCORES, Result
from probes.records.row import Row
from probes.records.values import Interval, ends
from probes.statistics.gold import Gold, Predictions
from probes.statistics.partition import Partition

if TYPE_CHECKING:
    from probes.measurements.context import Context
    from probes.measurements.probing import Fits


class ScoreMeasurement(Measurement[ProbeScores]):
    """One fit per layer and seed on the whole training split.

    Layers are chosen on dev. Intervals are for the first seed's test scores: test documents or
    sentences are resampled, and the probe is taken as it is.
    """

    name = SCORES
    asks = ("examples",)
    version = 3
    summary = "scores of probes at every layer, with intervals and baselines"
    payload: ClassVar[type[ProbeScores]] = ProbeScores

    def extent(self, request: Request) -> Extent:
        """Every layer, once for each seed."""
        return dict.fromkeys(request.layers, request.seeds)

    def united(self, stored: Extent, wanted: Extent) -> Extent:
        """All layers of both, each as often: their predictions make up one array."""
        both = united(stored, wanted)
        return dict.fromkeys(both, max(both.values()))

    def compute(self, context: Context) -> Found[ProbeScores]:
        """Fit, score and resample; the arrays are predictions and gold labels of test.

        `predicted` has the shape (layers, seeds, n), with n test examples; `layers` names the
        layers; `gold`, `sentence` and `punctuation` have the shape (n,); `clusters` has the cluster
        of each sentence of the split; `unseen` names labels that train lacks. For multi-label tasks
        `predicted` has the shape (layers, seeds, n, bytes), and there are `sets`: see
        `probes.statistics.gold`. The parameters are those of the first seed.
        """
        from probes.training.fit import Draw

        examples, test = context.examples, context.scorers["test"]
        n_seeds = max(context.extent.values())
        fits = context.fits(context.layers, [Draw(seed) for seed in range(n_seeds)])
        found = ProbeScores(
            examples=count_examples(examples, test),
            probe_parameters=fits.n_parameters,
            group_metric=test.group_metric,
            layers=tuple(_layers(context, fits)),
            baselines=baselines(examples, examples.targets("train"), test),
            references=references(examples, examples.targets("train"), test),
        )
        gold_type, predicted_type = _stored_types(context)
        arrays = {
            "predicted": fits.predicted["test"].astype(predicted_type),
            "gold": test.gold.labels.astype(gold_type),
            "sentence": test.gold.sentence.astype(np.int32),
            "clusters": examples.splits["test"].partition.of_sentence.astype(np.int32),
            "punctuation": test.gold.punctuation,
            "unseen": np.array(test.gold.unseen, dtype=np.str_),
            "layers": np.array(context.layers, dtype=np.int32),
        }
        if test.gold.sets is not None:
            arrays["sets"] = test.gold.sets
        return Found(payload=found, arrays=arrays, parameters=fits.parameters)

    def numbers(self, record: Record[ProbeScores]) -> Iterator[Row]:
        """Every metric on dev and test; then groups, labels, further seeds, and baselines."""
        found = record.payload
        for layer in found.layers:
            first, *others = layer.fits
            for split, given in (("dev", first.dev), ("test", first.test)):
                bounds = layer.intervals if split == "test" else {}
                for metric, value in given.items():
                    yield Row(metric, value, layer.layer, *ends(bounds.get(metric)), split)
            for name, value in first.groups.items():
                bounds_of = ends(layer.group_intervals.get(name))
                axes = {"group": name}
                yield Row(found.group_metric, value, layer.layer, *bounds_of, axes=axes)
            for name, each in layer.labels.items():
                for metric in ("precision", "recall", "f1"):
                    value, axes = getattr(each, metric), {"label": name}
                    yield Row(metric, value, layer.layer, n=each.n, axes=axes)
            for fit in others:
                for split, given in (("dev", fit.dev), ("test", fit.test)):
                    for metric, value in given.items():
                        at_seed = {"seed": fit.seed}
                        yield Row(metric, value, layer.layer, split=split, axes=at_seed)
        for kind, rules in (("baseline", found.baselines), ("reference", found.references)):
            for name, scores in rules.items():
                for metric, value in scores.items():
                    yield Row(metric, value, axes={kind: name})

    def charts(self, results: Mapping[str, Result]) -> list[Curves]:
        """Headline test scores, with baselines and references as levels."""
        first = next(iter(results.values()))
        metric = first.task.metric
        found = metric_curves(
            "score",
            "Score by layer",
            "Headline metric on test; bands are 95 % intervals over test documents, or sentences "
            "where the corpus names no documents; training is taken as it is.",
            metric,
        )
        for model, result in results.items():
            found.models[model] = [
                Point(layer.layer, result.score(layer), layer.intervals.get(metric))
                for layer in result.layers
            ]
        for name, given in {**first.baselines, **first.references}.items():
            if (value := given.get(metric)) is not None:
                found.levels[name] = value
        return [found]


SUMS = ("sums",)
"""What is stored where predictions are not to be passed on; see `probes.measurements.resampled`."""

_ARRAYS = ("predicted", "layers", "gold", "sentence", "clusters", "punctuation", "unseen")


def gold_of(result: Result, arrays: Arrays) -> Gold:
    """The gold labels of a stored result's test predictions."""
    counts = result.examples.labels
    return Gold(
        labels=arrays["gold"],
        sentence=arrays["sentence"].astype(np.int64),
        classes=tuple(sorted(label for label, (train, *_) in counts.items() if train)),
        punctuation=arrays["punctuation"],
        unseen=tuple(arrays["unseen"].tolist()),
        sets=arrays.get("sets"),
        partition=Partition(result.examples.resampled, arrays["clusters"].astype(np.int64)),
    )


def read_predictions(path: Path) -> Arrays:
    """The arrays of the scores at `path`; see `ScoreMeasurement.compute`.

    Raises:
        NotServedError: there are only sums.
        UserError: there are none, they cannot be read, or they do not belong together.
    """
    if has_arrays(path, SUMS):
        raise NotServedError(
            f"{path.name} has sums instead of predictions, as export --sums writes; --overwrite "
            "always fits its probes again"
        )
    arrays = read_arrays(path, _ARRAYS)
    try:
        _require_shapes(arrays)
    except ValueError as error:
        raise unreadable_arrays(path, error) from error
    return arrays


def _require_shapes(arrays: Arrays) -> None:
    """Raise ValueError unless the arrays hold numbers for the same examples."""
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
    clusters = arrays["clusters"]
    if (
        clusters.ndim != 1
        or clusters.dtype.kind not in "iu"
        or arrays["sentence"].max() >= len(clusters)
    ):
        raise ValueError("its sentences are not in its clusters")


def _layers(context: Context, fits: Fits) -> Iterator[LayerScores]:
    test = context.scorers["test"]
    first = fits.predicted["test"][:, 0]
    bounds, of_groups = intervals(test.gold, test.names, first), _group_intervals(test, first)
    for place, layer in enumerate(context.layers):
        dev, on_test = (fits.predicted[split][place] for split in ("dev", "test"))
        yield LayerScores(
            layer=layer,
            fits=tuple(
                FitScores(
                    seed=seed,
                    l2=float(fits.strength[place, seed]),
                    stopped=float(fits.stopped[place, seed]),
                    dev_loss=float(fits.dev_loss[place, seed]),
                    dev=of_dev,
                    test=of_test,
                    groups=groups,
                )
                for seed, (of_dev, of_test, groups) in enumerate(
                    zip(
                        context.scorers["dev"].scores(dev),
                        test.scores(on_test),
                        test.group_scores(on_test),
                        strict=True,
                    )
                )
            ),
            intervals={name: bounds[name][place] for name in test.names},
            group_intervals={name: each[place] for name, each in of_groups.items()},
            labels=test.label_scores(on_test[0]),
        )


def _group_intervals(test: Scorer, predicted: Predictions) -> dict[str, list[Interval]]:
    """By group, the interval of the group metric for each row of `predicted` (layers, n)."""
    metric = test.group_metric
    return {
        name: intervals(test.gold.part(keep), (metric,), predicted[:, keep])[metric]
        for name, keep in test.groups.items()
    }


def _stored_types(context: Context) -> tuple[Any, Any]:
    """The types in which gold labels and predictions are stored."""
    if context.task.kind == "regression":
        return np.float64, np.float64
    if context.task.kind == "multi-label":
        return np.int32, np.uint8
    index = np.int16 if context.data.n_outputs <= 2**15 else np.int32
    return index, index
