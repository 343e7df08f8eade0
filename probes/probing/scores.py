"""Scores: probes of every layer, fitted once for each seed, with intervals and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probes.common.errors import UserError
from probes.examples.examples import Examples, NotServedError
from probes.examples.scoring import (
    Scorer,
    baseline_predictions,
    count_examples,
    is_silent,
    references,
    rule_scores,
)
from probes.measurements.measurement import Measured, measurement
from probes.records.record_files import Arrays, has_arrays, read_arrays, unreadable_arrays
from probes.records.result import SCORES, Result
from probes.records.row import AxisValue, Row
from probes.records.values import Estimate, Interval, Scores, ends
from probes.statistics.bootstrap import (
    bounds,
    cluster_sums,
    draws_of,
    estimate_of,
    interval,
    missing_estimate,
    replicates,
)
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric, metrics, ranks_margins
from probes.statistics.partition import Partition
from probes.statistics.ranking_metrics import (
    RANKING,
    chosen_rate_interval,
    margin_parts,
    rate_interval,
    threshold_at,
)

if TYPE_CHECKING:
    from probes.measurements.context import TaskContext
    from probes.measurements.layer_fits import Fits


@measurement(
    SCORES,
    of="task",
    version=3,
    extent=lambda request: dict.fromkeys(request.layers, request.seeds),
)
def scores(context: TaskContext) -> Measured:
    """Scores of probes at every layer, with intervals and baselines.

    One probe per layer and seed is fitted on the whole training split. Layers are chosen on dev.
    Intervals are for test scores of the first seed; they resample test documents or sentences and
    do not include training variation.

    Rows of the first fit of each layer: every metric on dev and test; on test also by group of
    examples, by label, and for the order of two classes of texts; L2 strength, share of steps
    after which the dev loss was lowest, and that loss. Further fits have the axis `seed`. Rules
    without vectors have the axis `baseline`, or `reference` if they read the annotation. Of tasks
    with a threshold (`Task.fpr`): see `_threshold_rows`.

    Arrays: `predicted` (layers, seeds, n) for n test examples; `layers`; `gold`, `sentence` and
    `punctuation` (n,); `clusters`, the cluster of each sentence of the split; `unseen`, labels
    that train lacks; `rules`, names of the baselines; `rule_sums` (rules, clusters, k), parts of
    their headline metric, or `rule_predicted` (rules, n) if it ranks margins; `rule_sd` (rules,),
    the deviation of that metric over bootstrap samples of training clusters. For multi-label tasks
    `predicted` is (layers, seeds, n, bytes), and there are `sets`: see `probes.statistics.gold`. Of
    two classes of texts: `margins_dev` and `margins_test` (layers, n), and `gold_dev`. The
    parameters are those of the first seed.
    """
    from probes.training.fit import FitSeed

    examples, test = context.examples, context.scorers["test"]
    # All layers have as many seeds, since their predictions make up one array.
    n_seeds = max(context.extent.values())
    fits = context.fits(context.layers, [FitSeed(seed) for seed in range(n_seeds)])
    train_labels = examples.targets("train")
    rules = baseline_predictions(examples, train_labels)
    gold_type, predicted_type = _stored_types(context)
    arrays = {
        "predicted": fits.predicted["test"].astype(predicted_type),
        "gold": test.gold.labels.astype(gold_type),
        "sentence": test.gold.sentence.astype(np.int32),
        "clusters": examples.splits["test"].partition.of_sentence.astype(np.int32),
        "punctuation": test.gold.punctuation,
        "unseen": np.array(test.gold.unseen, dtype=np.str_),
        "layers": np.array(context.layers, dtype=np.int32),
        **_rule_arrays(examples, rules, test),
    }
    if test.gold.sets is not None:
        arrays["sets"] = test.gold.sets
    for split, margins in fits.margins.items():
        arrays[f"margins_{split}"] = margins.astype(np.float32)
        arrays["gold_dev"] = context.scorers["dev"].gold.labels.astype(gold_type)
    return Measured(
        rows=[
            *_rows_of_layers(context, fits),
            *_rows_of_rules("baseline", rule_scores(rules, test)),
            *_rows_of_rules("reference", references(examples, train_labels, test)),
        ],
        arrays=arrays,
        parameters=fits.parameters,
        facts={"probe_parameters": fits.n_parameters, "group_metric": test.group_metric},
        notes=_threshold_notes(context),
        examples=count_examples(examples, test),
    )


RULES = ("rules", "rule_sums", "rule_sd")
"""Arrays of the baselines; older records lack them."""

RANKED_RULES = ("rules", "rule_predicted", "rule_sd")
"""Arrays of the baselines if the headline metric ranks margins."""

RULE_SAMPLES = 5
"""Number of bootstrap samples of the training split for the deviation of baselines."""

SUMS = ("sums",)
"""Array stored instead of predictions that must not be shared; see
`probes.probing.resampled_scores`."""

_ARRAYS = ("predicted", "layers", "gold", "sentence", "clusters", "punctuation", "unseen")


def gold_of(result: Result, arrays: Arrays) -> Gold:
    """The gold labels of a stored result's test predictions."""
    return Gold(
        labels=arrays["gold"],
        sentence=arrays["sentence"].astype(np.int64),
        classes=result.examples.classes,
        punctuation=arrays["punctuation"],
        unseen=tuple(arrays["unseen"].tolist()),
        sets=arrays.get("sets"),
        partition=Partition(result.examples.resampled, arrays["clusters"].astype(np.int64)),
    )


def read_predictions(path: Path) -> Arrays:
    """The arrays of the scores at `path`; see `scores`.

    Raises:
        NotServedError: there are only sums.
        UserError: arrays are missing, cannot be read, or do not belong together.
    """
    if has_arrays(path, SUMS):
        raise NotServedError(
            f"{path.name} has sums instead of predictions (from export --sums); use --overwrite "
            "always to fit the probes again"
        )
    arrays = read_arrays(path, _ARRAYS)
    try:
        _require_array_shapes(arrays)
    except ValueError as error:
        raise unreadable_arrays(path, error) from error
    return arrays


def prediction_frame(result: Result, layer: int) -> pd.DataFrame:
    """Gold and predicted labels of a layer's first fit: a row for each test example.

    Columns: `sentence`, its number in the split, from 0; `gold` and `predicted`: class, number, or
    tuple of labels; `split`; `margin`, where the headline metric ranks margins, which decide for
    the second class above 0. Words are not stored with results.

    Raises:
        UserError: the layer was not probed, or predictions are not stored or cannot be read.
    """
    index = result.layers.index(result.numbered(layer))
    if result.path is None or not result.path.with_suffix(".npz").exists():
        raise UserError(
            f"{result.path or result.task.name}: no predictions are stored beside the scores; fit "
            "the probes again with overwrite='always'."
        )
    arrays = read_predictions(result.path)
    gold, predicted = gold_of(result, arrays), arrays["predicted"][index, 0]
    names = np.array([*gold.classes, *sorted({*gold.unseen})], dtype=object)
    labels: Sequence[Any] = [gold.labels, predicted]
    if result.task.kind == "multi-label":
        labels = [[tuple(names[x]) for x in sets] for sets in gold.indicators(predicted)]
    elif result.task.kind == "classification":
        labels = [names[gold.codes], names[gold.decided(predicted)]]
    columns = {"sentence": gold.sentence, "gold": labels[0], "predicted": labels[1]}
    margins = {"margin": predicted} if ranks_margins(result.task.metric) else {}
    return pd.DataFrame({**columns, "split": "test", **margins})


def _require_array_shapes(arrays: Arrays) -> None:
    """Raise ValueError unless the arrays hold numbers for the same examples."""
    n = arrays["gold"].size
    predicted, layers = arrays["predicted"], arrays["layers"]
    shapes = {name: arrays[name].shape for name in ("gold", "sentence", "punctuation")}
    expected_shape = (*layers.shape, *predicted.shape[1:2], n, *predicted.shape[3:])
    if set(shapes.values()) != {(n,)} or predicted.ndim != 3 + ("sets" in arrays):
        raise ValueError(f"its arrays do not belong together: {shapes}")
    if predicted.shape != expected_shape or not predicted.size:
        raise ValueError(f"its predictions have the shape {predicted.shape}, not {expected_shape}")
    if any(arrays[name].dtype.kind not in "biuf" for name in (*shapes, "predicted", "layers")):
        raise ValueError("its arrays do not hold numbers")
    clusters = arrays["clusters"]
    if (
        clusters.ndim != 1
        or clusters.dtype.kind not in "iu"
        or arrays["sentence"].max() >= len(clusters)
    ):
        raise ValueError("its sentences are not in its clusters")


def _rows_of_layers(context: TaskContext, fits: Fits) -> Iterator[Row]:
    """Rows of every layer: the first fit, then the others."""
    dev, test = context.scorers["dev"], context.scorers["test"]
    first = fits.predicted["test"][:, 0]
    intervals = intervals_by_metric(test.gold, test.names, first)
    of_groups = _group_intervals(test, first)
    margins = fits.margins.get("test") if context.task.fpr is None else None
    rankings = {} if margins is None else _ranking_scores(test.gold, margins)
    for index, layer in enumerate(context.layers):
        on_dev, on_test = (fits.predicted[split][index] for split in ("dev", "test"))
        scores = zip(dev.scores(on_dev), test.scores(on_test), strict=True)
        for seed, (of_dev, of_test) in enumerate(scores):
            axes = {"seed": seed} if seed else {}
            for metric, value in of_dev.items():
                yield Row(metric, value, layer, split="dev", axes=axes)
            for metric, value in of_test.items():
                ends_of_score = None if seed else intervals[metric][index]
                why = "" if seed else metrics.get(metric).too_few(test.gold.class_sizes)
                yield Row(metric, value, layer, *ends(ends_of_score), why=why, axes=axes)
            for metric, split, values in (
                ("strength", "train", fits.strength),
                ("stopped", "dev", fits.stopped),
                ("dev_loss", "dev", fits.dev_loss),
            ):
                yield Row(metric, float(values[index, seed]), layer, split=split, axes=axes)
        # The first fit is the reported one: breakdowns are of it alone.
        for metric, estimates in rankings.items():
            yield Row.estimated(metric, estimates[index], layer)
        if context.task.fpr is not None:
            yield from _threshold_rows(context, layer, context.task.fpr, on_dev[0], on_test[0])
        for name, value in test.group_scores(on_test[:1])[0].items():
            between = of_groups[name][index]
            yield Row(test.group_metric, value, layer, *ends(between), axes={"group": name})
        for name, label_score in test.label_scores(on_test[0]).items():
            for metric in ("precision", "recall", "f1"):
                value = getattr(label_score, metric)
                yield Row(metric, value, layer, n=label_score.n, axes={"label": name})


def _rows_of_rules(axis: str, rules: Mapping[str, Scores]) -> Iterator[Row]:
    for name, scores in rules.items():
        for metric, value in scores.items():
            yield Row(metric, value, axes={axis: name})


def _rule_arrays(examples: Examples, rules: Mapping[str, Predictions], test: Scorer) -> Arrays:
    """Arrays of the rules with a prediction for every example; see `scores`."""
    full_rules = {name: row for name, row in rules.items() if not is_silent(row)}
    metric = metrics.get(examples.task.metric)
    if metric.of_margins:
        name, array = "rule_predicted", np.array([*full_rules.values()], dtype=np.float64)
    else:
        sums = (cluster_sums(metric.parts(test.gold, x), test.gold) for x in full_rules.values())
        name, array = "rule_sums", np.array([x.toarray() for x in sums])
    train, scores = examples.splits["train"], []
    clusters = np.unique(train.partition.of_sentence[train.sentence], return_inverse=True)[1]
    for sample in range(1, RULE_SAMPLES + 1):
        n = int(clusters.max()) + 1
        sampled_clusters = np.random.default_rng(sample).integers(n, size=n)
        times = np.bincount(sampled_clusters, minlength=n)[clusters]
        indices = np.repeat(np.arange(len(clusters)), times)
        predictions = baseline_predictions(examples, examples.targets("train"), indices)
        scores.append([float(metric(test.gold, predictions[name][None])[0]) for name in full_rules])
    return {
        "rules": np.array([*full_rules], dtype=np.str_),
        name: array,
        "rule_sd": np.std(scores, axis=0, ddof=1),
    }


def _group_intervals(test: Scorer, predicted: Predictions) -> dict[str, list[Interval]]:
    """Intervals of the group metric for each row of `predicted` (layers, n), by group."""
    metric = test.group_metric
    return {
        name: intervals_by_metric(test.gold.part(mask), (metric,), predicted[:, mask])[metric]
        for name, mask in test.groups.items()
    }


def _stored_types(context: TaskContext) -> tuple[Any, Any]:
    """Types for storing gold labels and predictions."""
    if context.task.kind == "regression":
        return np.float64, np.float64
    if context.task.kind == "multi-label":
        return np.int32, np.uint8
    index = np.int16 if context.data.n_outputs <= 2**15 else np.int32
    return index, np.float32 if ranks_margins(context.task.metric) else index


def intervals_by_metric(
    gold: Gold, names: Sequence[str], predicted: Predictions
) -> dict[str, list[Interval]]:
    """Intervals for each set of predictions, by metric; None if there are very few clusters.

    Args:
        predicted: shape (cells, n).
    """

    def intervals_of(metric: Metric) -> list[Interval]:
        if (draws := draws_of(gold, metric)) is None:
            return [None] * len(predicted)
        return [bounds(pair) for pair in interval(replicates(metric, gold, predicted, draws))]

    return {name: intervals_of(metrics.get(name)) for name in names}


def _ranking_scores(gold: Gold, margins: Predictions) -> dict[str, list[Estimate]]:
    """Each of `RANKING` for each row of margins (cells, n), with intervals over test text."""
    if len(set(gold.labels[gold.labels >= 0])) < 2:
        missing = missing_estimate("one class in test")
        return {name: [missing] * len(margins) for name in RANKING}
    # All at once, since they have the same sums.
    values = [metrics.get(name).value for name in RANKING]
    metric = Metric(margin_parts, lambda sums: np.stack([f(sums) for f in values], axis=-1))
    draws, scores = draws_of(gold), metric(gold, margins)
    resampled = None if draws is None else replicates(metric, gold, margins, draws)
    clusters = "clusters" if gold.partition is None else gold.partition.clusters

    def estimate(number: int, cell: int) -> Estimate:
        value = float(scores[cell, number])
        if resampled is None:
            return estimate_of(value, None, clusters)
        if why := metrics.get(RANKING[number]).too_few(gold.class_sizes):
            return Estimate(value=value, interval=None, missing=why)
        return estimate_of(value, resampled[cell, :, number], clusters)

    return {
        name: [estimate(number, cell) for cell in range(len(scores))]
        for number, name in enumerate(RANKING)
    }


def _threshold_rows(
    context: TaskContext, layer: int, fpr: float, on_dev: Predictions, on_test: Predictions
) -> Iterator[Row]:
    """The threshold that few enough negatives of dev are above, and rates above it on test.

    Rows of the first fit: the smallest threshold, with the number of negatives as n; shares of the
    negatives and of the positives of test above it, with exact intervals (see `rate_interval`).

    Args:
        on_dev, on_test: margins. Each (n,).
    """
    negatives = on_dev[context.scorers["dev"].gold.labels == 0]
    if not len(negatives):
        yield Row("threshold", None, layer, split="dev", n=0, why="no negatives in dev")
        return
    threshold = threshold_at(fpr, negatives)
    yield Row("threshold", threshold, layer, split="dev", n=len(negatives))
    yield from rows_above(context.scorers["test"].gold, on_test > threshold, layer)


def rows_above(
    gold: Gold, is_above: NDArray[np.bool_], layer: int, axes: Mapping[str, AxisValue] = {}
) -> Iterator[Row]:
    """The false-positive rate and the hit rate of a threshold, with intervals.

    Args:
        is_above: whether an example is above the threshold. Shape (n,).
    """
    cluster = gold.clusters[gold.sentence_index]
    for label, metric in enumerate(("false_positive_rate", "hit_rate")):
        of_class = gold.labels == label
        if n := int(of_class.sum()):
            events = is_above[of_class].astype(np.float64)
            pair = rate_interval(events, cluster[of_class])
            yield Row(metric, float(events.mean()), layer, *pair, n=n, axes=axes)
        else:
            yield Row(metric, None, layer, n=0, why="one class in test", axes=axes)


def _threshold_notes(context: TaskContext) -> tuple[str, ...]:
    """The positive class, and what rate the negatives of dev can resolve.

    None for a task without a threshold. The interval allows for the choice of the best layer on
    the same dev split.
    """
    task, gold = context.task, context.scorers["dev"].gold
    if task.fpr is None:
        return ()
    classes = context.examples.classes
    notes = [f"{task.name}: {classes[1]!r} is the positive class."]
    for split, sizes in ((x, context.scorers[x].gold.class_sizes) for x in ("dev", "test")):
        if not all(sizes):
            label, absent = classes if sizes[0] else classes[::-1]
            only = f"all {max(sizes):,} examples of {split} are {label!r}"
            notes += [f"{task.name}: {only}, so nothing is ranked; add some that are {absent!r}."]
    n = gold.class_sizes[0]
    if not n:
        return (*notes, f"{task.name}: no threshold, since there are no negatives in dev.")
    k = int(task.fpr * n)
    cluster, n_layers = gold.clusters[gold.sentence_index[gold.labels == 0]], len(context.layers)
    rate = true_rate(*chosen_rate_interval(k, cluster, n_layers))
    rate += f" whichever of {n_layers:,} layers is best" * (n_layers > 1)
    rate += ", if texts of a group are alike" * (len(np.unique(cluster)) < n)
    return (*notes, f"{task.name}: {resolution('dev', k, n)}; {rate}.")


def resolution(of: str, k: int, n: int) -> str:
    """A clause on the rates that n negatives can resolve, of which k are above a threshold."""
    return (
        f"the threshold lets {k:,} of {n:,} negatives of {of} pass (one would be "
        f"{f'{100 / n:.2g}' if n > 1 else 100} %)"
    )


def true_rate(low: float, high: float) -> str:
    """A clause on the interval of a threshold's true false-positive rate."""
    between = f"{100 * low:.1f} and {100 * high:.1f} %"
    return f"its true false-positive rate is between {between} (95 % interval)"
