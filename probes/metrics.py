"""Scores of many cells at once, from gold labels and predictions.

Every metric is a function of `Gold` and predictions of shape (cells, n); it returns one
number per cell, higher is better except for `mae`. Class labels are indices into
`Gold.classes`; a gold label of -1 was not in train, and no prediction equals it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from common.registry import Registry
from probes.alignment import Ints

Floats = NDArray[np.float64]
Predictions = NDArray[Any]


@dataclass(frozen=True)
class Gold:
    """What predictions are scored against.

    Attributes:
        labels: class indices, or numbers. Shape (n,).
        sentence: number of each example's sentence, not decreasing. Shape (n,).
        classes: names of the classes.
        punctuation: examples that root accuracy passes over. Shape (n,).
        unseen: names of the labels that stand as -1, one per such example, in order.
    """

    labels: NDArray[Any]
    sentence: Ints
    classes: tuple[str, ...]
    punctuation: NDArray[np.bool_]
    unseen: tuple[str, ...] = ()

    def part(self, keep: NDArray[np.bool_]) -> Gold:
        """The examples where `keep` holds."""
        return replace(
            self,
            labels=self.labels[keep],
            sentence=self.sentence[keep],
            punctuation=self.punctuation[keep],
        )

    @cached_property
    def bounds(self) -> Ints:
        """Sentence s is examples `bounds[s]` to `bounds[s + 1]`."""
        changes = np.flatnonzero(np.diff(self.sentence)) + 1
        return np.concatenate([[0], changes, [len(self.sentence)]])


Metric = Callable[[Gold, Predictions], Floats]
metrics: Registry[Metric] = Registry("metric")

HIGHER_IS_WORSE = frozenset({"mae"})
PERCENT = frozenset(
    {"accuracy", "balanced_accuracy", "macro_f1", "macro_f1_20", "span_f1", "root_accuracy"}
)
"""Metrics that tables show times 100."""

NSPR_LENGTHS = range(5, 51)


@metrics.register("accuracy")
def accuracy(gold: Gold, predicted: Predictions) -> Floats:
    """Share of examples predicted right."""
    return np.asarray((predicted == gold.labels).mean(1), dtype=np.float64)


def _class_counts(gold: Gold, predicted: Predictions) -> tuple[Ints, Ints, Ints]:
    """Examples (C,), predictions (cells, C) and right predictions (cells, C) of each class."""
    n = len(gold.classes)
    count = np.bincount(gold.labels[gold.labels >= 0], minlength=n)
    given = np.stack([np.bincount(row[row >= 0], minlength=n) for row in predicted])
    right = np.stack([np.bincount(row[row == gold.labels], minlength=n) for row in predicted])
    return count, given, right


@metrics.register("balanced_accuracy")
def balanced_accuracy(gold: Gold, predicted: Predictions) -> Floats:
    """Mean recall over the classes that occur."""
    count, _, right = _class_counts(gold, predicted)
    here = count > 0
    return np.asarray((right[:, here] / count[here]).mean(1))


def _macro_f1(gold: Gold, predicted: Predictions, least: int) -> Floats:
    """Mean F1 over labels with at least `least` examples, those unseen in train scoring 0."""
    count, given, right = _class_counts(gold, predicted)
    here = count >= least
    f1 = 2 * right[:, here] / (count[here] + given[:, here])
    unseen = sum(gold.unseen.count(name) >= least for name in set(gold.unseen))
    n_labels = int(here.sum()) + unseen
    if n_labels == 0:
        return np.full(len(predicted), np.nan)
    return np.asarray(f1.sum(1) / n_labels)


@metrics.register("macro_f1")
def macro_f1(gold: Gold, predicted: Predictions) -> Floats:
    """Mean F1 over the labels that occur in the scored split."""
    return _macro_f1(gold, predicted, 1)


@metrics.register("macro_f1_20")
def macro_f1_20(gold: Gold, predicted: Predictions) -> Floats:
    """Mean F1 over the labels with at least 20 examples in the scored split."""
    return _macro_f1(gold, predicted, 20)


@metrics.register("span_f1")
def span_f1(gold: Gold, predicted: Predictions) -> Floats:
    """F1 over whole chunks by conlleval's definition (Tjong Kim Sang & Buchholz 2000).

    A chunk starts at B-x, and at I-x after O, after another type, or at the beginning of a
    sentence. It counts if start, end and type are right.
    """
    tags = np.array([*gold.classes, "O"])
    if gold.unseen:
        gold_tags = tags[gold.labels]
        gold_tags = gold_tags.astype(object)
        gold_tags[gold.labels < 0] = gold.unseen
    else:
        gold_tags = tags[gold.labels].astype(object)
    first = np.zeros(len(gold.labels), dtype=bool)
    first[gold.bounds[:-1]] = True
    wanted = chunk_spans(gold_tags, first)
    scores = []
    for row in predicted:
        given = chunk_spans(tags[row].astype(object), first)
        both = len(wanted & given)
        scores.append(2 * both / (len(wanted) + len(given)) if wanted or given else 0.0)
    return np.array(scores)


def chunk_spans(tags: NDArray[Any], first: NDArray[np.bool_]) -> set[tuple[int, int, str]]:
    """The chunks (start, end, type) of BIO tags that run over sentences.

    Args:
        tags: strings. Shape (n,).
        first: where sentences begin. Shape (n,).
    """
    kinds = np.array([tag[2:] if tag != "O" else "" for tag in tags], dtype=object)
    begins = np.array([tag.startswith("B-") for tag in tags], dtype=bool)
    inside = kinds != ""
    changed = np.ones(len(tags), dtype=bool)
    changed[1:] = kinds[1:] != kinds[:-1]
    starts = inside & (begins | changed | first)
    stops = np.flatnonzero(np.append(starts | ~inside | first, True))
    where = np.flatnonzero(starts)
    ends = stops[np.searchsorted(stops, where, side="right")]
    return set(zip(where.tolist(), ends.tolist(), kinds[where].tolist(), strict=True))


def sentence_spearman(gold: Gold, predicted: Predictions) -> tuple[Ints, Floats]:
    """Spearman's rank correlation within each sentence that has two or more gold values.

    Ties share their mean rank. A prediction that is constant over a sentence scores 0.

    Returns:
        length of each such sentence (s,), and the correlations (cells, s).
    """
    lengths = np.diff(gold.bounds)
    scores = np.full((len(predicted), len(lengths)), np.nan)
    for length in np.unique(lengths):
        # All sentences of a length are ranked in one call.
        sentences = np.flatnonzero(lengths == length)
        words = gold.bounds[sentences][:, None] + np.arange(length)
        wanted = _centred_ranks(gold.labels[words])
        given = _centred_ranks(predicted[:, words])
        spread = (wanted**2).sum(-1)
        scale = np.sqrt((given**2).sum(-1) * spread)
        with np.errstate(invalid="ignore"):
            rho = np.where(scale > 0, (given * wanted).sum(-1) / scale, 0.0)
        scores[:, sentences[spread > 0]] = rho[:, spread > 0]
    covered = ~np.isnan(scores).any(0)
    return lengths[covered], scores[:, covered]


def _centred_ranks(values: NDArray[Any]) -> Floats:
    """Ranks along the last axis, ties sharing their mean, less the mean rank."""
    ranks = rankdata(values, axis=-1)
    return np.asarray(ranks - ranks.mean(-1, keepdims=True), dtype=np.float64)


@metrics.register("nspr")
def nspr(gold: Gold, predicted: Predictions) -> Floats:
    """Spearman within sentences, averaged per length 5 to 50, then over lengths.

    The NSpr metric of Hewitt & Manning 2019. NaN if no sentence is of such a length.
    """
    lengths, scores = sentence_spearman(gold, predicted)
    present = [length for length in NSPR_LENGTHS if (lengths == length).any()]
    if not present:
        return np.full(len(predicted), np.nan)
    return np.asarray(np.mean([scores[:, lengths == n].mean(1) for n in present], axis=0))


def nspr_sentences(gold: Gold) -> int:
    """How many sentences `nspr` covers."""
    lengths, _ = sentence_spearman(gold, gold.labels[None])
    return int(np.isin(lengths, NSPR_LENGTHS).sum())


@metrics.register("spearman")
def spearman(gold: Gold, predicted: Predictions) -> Floats:
    """Spearman within sentences, averaged over sentences. NaN if none has two gold values."""
    _, scores = sentence_spearman(gold, predicted)
    return np.asarray(scores.mean(1)) if scores.size else np.full(len(predicted), np.nan)


@metrics.register("root_accuracy")
def root_accuracy(gold: Gold, predicted: Predictions) -> Floats:
    """Share of sentences whose least deep word, punctuation passed over, is the root.

    As Hewitt & Manning 2019. A sentence of nothing but punctuation is searched whole.
    """
    right = np.zeros(len(predicted))
    for start, end in zip(gold.bounds[:-1], gold.bounds[1:], strict=True):
        passed = gold.punctuation[start:end]
        passed = passed & ~passed.all()
        depths = np.where(passed, np.inf, predicted[:, start:end])
        right += gold.labels[start:end][depths.argmin(1)] == 0
    return right / (len(gold.bounds) - 1)


@metrics.register("mae")
def mae(gold: Gold, predicted: Predictions) -> Floats:
    """Mean absolute error, in the label's unit."""
    return np.asarray(np.abs(predicted - gold.labels).mean(1), dtype=np.float64)
