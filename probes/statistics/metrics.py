"""Metrics: scores from gold labels and predictions, as functions of sums over sentences.

A metric has two functions. `parts` gives each sentence's contributions; `value` turns their sums
into a score. Sums over all sentences give the score, and sums over resampled sentences give a
bootstrap replicate (see probes/statistics/bootstrap.py). Class labels are indices into
`Gold.classes`. No prediction equals a gold label of -1, which train lacks. Multi-label gold labels
are rows of `Gold.sets`; a prediction is the set itself, one bit per class.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.common.registry import Registry
from probes.statistics.gold import Gold, Predictions
from probes.statistics.quantities import CORRELATION, POSITIVE, SHARE, Quantity, quantities
from probes.statistics.rank_correlation import (
    correlation,
    moment_parts,
    nspr,
    nspr_parts,
    spearman_parts,
)
from probes.statistics.ranking_metrics import (
    FEWEST_EVENTS,
    FEWEST_OF_CLASS,
    RATES,
    average_precision,
    margin_parts,
    mean_recall_to,
    recall_at,
    recall_name,
    roc_auc,
)
from probes.statistics.sums import ratio, sparse_matrix
from probes.tasks.task import Kind

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Metric(Quantity):
    """A score that is a function of sums over sentences.

    Attributes:
        parts: contributions of each sentence, from predictions (n,). Shape (sentences, k).
        value: score from sums of shape (…, k), and from nothing else. Shape (…,); NaN where it is
            undefined. Sums of weighted sentences are passed too, so they may be fractions, and
            differences that should be 0 may be slightly negative.
        kinds: the kinds of tasks that the metric scores.
        counts: the column of the sums with the number of examples; "labels" if the sums begin with
            the number of examples of each label. Stored records are checked by these counts.
        of_margins: whether predictions are margins of two classes, since the metric ranks them.
        smooth: a function like `value`, but without its steps, from which errors are computed.
        fewest: with fewer of the first or of the second class there are neither intervals nor
            tests.

    A metric for which lower is better cannot choose the best layer.
    """

    parts: Callable[[Gold, Predictions], csr_array]
    value: Callable[[Floats], Floats]
    kinds: tuple[Kind, ...] = ("classification",)
    counts: int | Literal["labels"] | None = None
    of_margins: bool = False
    smooth: Callable[[Floats], Floats] | None = None
    fewest: tuple[int, int] = (0, 0)

    def __call__(self, gold: Gold, predicted: Predictions) -> Floats:
        """The score of each row of `predicted` (cells, n). Shape (cells,)."""
        return np.array([self.value(self.parts(gold, row).sum(0)) for row in predicted])

    def too_few(self, class_sizes: tuple[int, int]) -> str:
        """The reason why there are neither intervals nor tests; empty if examples suffice."""
        for noun, n, fewest in zip(
            ("negatives", "positives"), class_sizes, self.fewest, strict=True
        ):
            if n < fewest:
                return f"fewer than {fewest:,} {noun} in test"
        return ""


metrics: Registry[Metric] = Registry("metric")


def quantity(name: str) -> Quantity:
    """The registered metric or quantity called `name`; a default if there is none."""
    if name in metrics:
        return metrics.get(name)
    return quantities.get(name) if name in quantities else Quantity()


def label_of(name: str) -> str:
    """Label of a number in tables: ``UUAS``."""
    return quantity(name).label or name.replace("_", " ")


def axis_of(name: str) -> str:
    """Axis title for a number: ``UUAS, %``."""
    unit = "%" if is_percent(name) else quantity(name).unit
    return f"{label_of(name)}, {unit}" if unit else label_of(name)


def is_percent(name: str) -> bool:
    """Whether tables and charts show the number times 100."""
    return quantity(name).percent


def ranks_margins(name: str) -> bool:
    """Whether predictions are margins where this is the headline metric."""
    return name in metrics and metrics.get(name).of_margins


def weighs_classes(name: str) -> bool:
    """Whether probes are trained with class weights where this is the headline metric."""
    return name == "balanced_accuracy" or ranks_margins(name)


POINTS = 100
"""Tables and charts show shares times this, and other scores that stand on one axis with them."""


def scale_of(name: str) -> int:
    """Factor by which charts multiply the number, as tables do."""
    return POINTS if is_percent(name) else 1


def heading_with_unit(text: str, name: str) -> str:
    """A heading of the number, with ``, %`` if it is a share."""
    return text + (", %" if is_percent(name) else "")


def bounds_of(name: str) -> tuple[float, float]:
    """Lowest and highest possible value, widened for rounding."""
    low, high = quantity(name).bounds
    return low - 1e-6, high + 1e-6


def lower_is_better(name: str) -> bool:
    """Whether the number is an error."""
    return quantity(name).lower_is_better


CLASSES: tuple[Kind, ...] = ("classification", "multi-label")

NUMBERS: tuple[Kind, ...] = ("regression",)


def mean_parts(gold: Gold, values: Floats) -> csr_array:
    """Each sentence's contribution to a mean over examples: sum and number of `values` (n,)."""
    sums = np.add.reduceat(values, gold.bounds[:-1])
    return sparse_matrix(np.stack([sums, np.diff(gold.bounds)], axis=1))


def mean_value(sums: Floats) -> Floats:
    """Mean over examples, from sums of `mean_parts`."""
    return ratio(sums[..., 0], sums[..., 1])


def metric_over_draws(metric: Metric, n: int) -> Metric:
    """The metric averaged over n predictions, whose sums lie side by side (…, n × k)."""

    def value(sums: Floats) -> Floats:
        return mean_of_draws(metric.value(sums.reshape(*sums.shape[:-1], n, -1)))

    return replace(metric, value=value)


def mean_of_draws(values: Floats) -> Floats:
    """Mean over the last axis. The mean of equal values is exactly that value."""
    first = values[..., :1]
    mean: Floats = first[..., 0] + (values - first).mean(-1)
    return mean


metrics.add(
    "accuracy",
    # Share of examples predicted right.
    Metric(
        lambda gold, predicted: mean_parts(gold, gold.right(predicted).astype(float)),
        mean_value,
        percent=True,
        counts=1,
        bounds=SHARE,
    ),
)

metrics.add(
    "exact_match",
    # Share of examples with every label predicted right and no other: subset accuracy.
    Metric(
        metrics.get("accuracy").parts,
        mean_value,
        ("multi-label",),
        label="exact match",
        percent=True,
        counts=1,
        bounds=SHARE,
    ),
)

metrics.add(
    "mae",
    # Mean absolute error, in the label's unit.
    Metric(
        lambda gold, predicted: mean_parts(gold, np.abs(predicted - gold.labels).astype(float)),
        mean_value,
        NUMBERS,
        label="MAE",
        lower_is_better=True,
        counts=1,
        bounds=POSITIVE,
    ),
)


def class_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """Each sentence's gold, predicted and right examples of each label, unseen labels last.

    Shape (sentences, 3 × labels).
    """
    if gold.sets is not None:
        is_gold, is_predicted = gold.indicators(predicted)
        parts = np.concatenate([is_gold, is_predicted, is_gold & is_predicted], axis=1)
        return sparse_matrix(np.add.reduceat(parts.astype(np.float64), gold.bounds[:-1]))
    n = len(gold.classes) + len(set(gold.unseen))
    # Stored integers may be too narrow for 3 × labels.
    predicted = gold.decided(predicted).astype(np.int64)
    valid = predicted >= 0
    right = predicted == gold.codes
    sentence = gold.sentence_index
    rows = np.concatenate([sentence, sentence[valid], sentence[right]])
    columns = np.concatenate([gold.codes, n + predicted[valid], 2 * n + predicted[right]])
    return sparse_matrix((np.ones(len(rows)), (rows, columns)), (gold.n_sentences, 3 * n))


def _class_parts_of(
    label_mask: Callable[[Gold], NDArray[np.bool_]], gold: Gold, predicted: Predictions
) -> csr_array:
    """`class_parts` of the labels for which `label_mask` is true."""
    return class_parts(gold, predicted)[:, np.flatnonzero(np.tile(label_mask(gold), 3))]


def _known(gold: Gold) -> NDArray[np.bool_]:
    """The labels that occur in train."""
    return np.arange(len(gold.counts)) < len(gold.classes)


def _frequent(least: int, gold: Gold) -> NDArray[np.bool_]:
    """Labels that occur `least` times or more in the split, whatever the resample."""
    return np.asarray(gold.counts >= least)


def _balanced_accuracy(sums: Floats) -> Floats:
    """Mean recall over the classes that occur."""
    n_gold, _, n_right = np.split(sums, 3, axis=-1)
    recall = ratio(n_right, n_gold, otherwise=0.0)
    return ratio(recall.sum(-1), (n_gold > 0).sum(-1))


def _macro_f1(sums: Floats) -> Floats:
    """Mean F1 over the labels that occur. Labels unseen in train score 0."""
    n_gold, n_predicted, n_right = np.split(sums, 3, axis=-1)
    occurs = n_gold > 0
    f1 = ratio(2 * n_right, n_gold + n_predicted, otherwise=0.0)
    return ratio((f1 * occurs).sum(-1), occurs.sum(-1))


def _micro_f1(sums: Floats) -> Floats:
    """F1 over all decisions, one per label (Tenney et al. 2019b); for single labels, accuracy."""
    n_gold, n_predicted, n_right = (part.sum(-1) for part in np.split(sums, 3, axis=-1))
    return ratio(2 * n_right, n_gold + n_predicted, otherwise=0.0)


metrics.add(
    "balanced_accuracy",
    Metric(
        partial(_class_parts_of, _known),
        _balanced_accuracy,
        label="balanced acc.",
        percent=True,
        counts="labels",
        bounds=SHARE,
    ),
)

metrics.add(
    "macro_f1",
    Metric(class_parts, _macro_f1, CLASSES, "labels", label="macro F1", percent=True, bounds=SHARE),
)

_PARTS_20 = partial(_class_parts_of, partial(_frequent, 20))

metrics.add(
    "macro_f1_20",
    Metric(
        _PARTS_20,
        _macro_f1,
        CLASSES,
        label="macro F1 (20 or more)",
        percent=True,
        counts="labels",
        bounds=SHARE,
    ),
)

metrics.add(
    "micro_f1",
    Metric(class_parts, _micro_f1, CLASSES, "labels", label="micro F1", percent=True, bounds=SHARE),
)


def _chunk_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """Each sentence's right, gold and predicted chunks."""
    gold_chunks, predicted_chunks = gold.chunks, gold.chunks_in(predicted)
    columns = []
    for chunks in (gold_chunks & predicted_chunks, gold_chunks, predicted_chunks):
        starts = np.array([start for start, _, _ in chunks], dtype=np.int64)
        columns.append(np.bincount(gold.sentence_index[starts], minlength=gold.n_sentences))
    return sparse_matrix(np.stack(columns, axis=1).astype(float))


def _span_f1(sums: Floats) -> Floats:
    """F1 of chunks; 0 where there are no chunks at all, as in conlleval."""
    n_right, n_gold, n_predicted = np.moveaxis(sums, -1, 0)
    return ratio(2 * n_right, n_gold + n_predicted, otherwise=0.0)


metrics.add("span_f1", Metric(_chunk_parts, _span_f1, label="span F1", percent=True, bounds=SHARE))

metrics.add("nspr", Metric(nspr_parts, nspr, NUMBERS, label="NSpr", bounds=CORRELATION))

# Spearman within sentences, averaged over sentences. NaN if none has two gold values.
metrics.add(
    "spearman",
    Metric(spearman_parts, mean_value, NUMBERS, label="sent. Spearman", bounds=CORRELATION),
)

metrics.add(
    "corpus_spearman",
    Metric(moment_parts, correlation, NUMBERS, label="Spearman", counts=0, bounds=CORRELATION),
)


def _root_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """For each sentence, 1 if the predicted root is right, and 1."""
    right = np.zeros(gold.n_sentences)
    for group, examples in gold.by_length:
        ignored = gold.punctuation[examples]
        ignored = ignored & ~ignored.all(1, keepdims=True)
        root = np.where(ignored, np.inf, predicted[examples]).argmin(1)
        right[group] = gold.labels[examples[np.arange(len(group)), root]] == 0
    return sparse_matrix(np.stack([right, np.ones_like(right)], axis=1))


# Share of sentences in which the root has the smallest predicted depth (Hewitt & Manning 2019).
# Punctuation is ignored, except in sentences that have no other words.
metrics.add(
    "root_accuracy",
    Metric(_root_parts, mean_value, NUMBERS, label="root acc.", percent=True, bounds=SHARE),
)


def _add_ranking(name: str, value: Callable[[Floats], Floats], **more: Any) -> None:
    more = {"fewest": (FEWEST_OF_CLASS, FEWEST_OF_CLASS), **more}
    metric = Metric(margin_parts, value, percent=True, bounds=SHARE, of_margins=True, **more)
    metrics.add(name, metric)


_add_ranking("auroc", roc_auc, label="AUROC", source="Hanley & McNeil 1982")
_add_ranking("average_precision", average_precision, source="Manning et al. 2008, section 8.4")
for _rate in RATES:
    _add_ranking(
        recall_name(_rate),
        partial(recall_at, _rate),
        label=f"recall at {100 * _rate:g} % FPR",
        source="a point of the ROC curve, Fawcett 2006",
        smooth=partial(mean_recall_to, 2 * _rate),
        fewest=(math.ceil(FEWEST_EVENTS / _rate), FEWEST_OF_CLASS),
    )

metrics.mark_as_shipped()


def printed_score(value: float | None, metric: str) -> str:
    """A score as tables print it: 94.7 for a share, .766 for a correlation, – if undefined."""
    if value is None or np.isnan(value):
        return "–"
    # `z` prints a small negative number as 0.0, not as −0.0.
    if is_percent(metric):
        return f"{POINTS * value:z.1f}".replace("-", "−")
    digits = quantity(metric).digits
    return decimals(value, digits) if digits else f"{value:,.0f}".replace("-", "−")


def decimals(value: float, digits: int) -> str:
    """A number with a typographic minus sign and no zero before the point: −.250, 1.403."""
    text = f"{value:z.{digits}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def printed_sd(value: float, metric: str) -> str:
    """A standard deviation of scores, with one digit more than scores have: 0.12, .0031."""
    if is_percent(metric):
        return f"{POINTS * value:.2f}"
    return decimals(value, 4)
