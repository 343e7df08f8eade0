"""Scores from gold labels and predictions, as functions of sums over sentences.

A metric has two parts: what each sentence contributes to it, and the value of the sums of these
contributions. A score is the value over all sentences; over resampled ones it is a bootstrap
replicate (see probes/statistics.py). Class labels are indices into `Gold.classes`; a gold label of
-1 was not in train, and no prediction equals it. Multi-label gold labels are rows of `Gold.sets`; a
prediction is the set itself, one bit per class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.registry import Registry
from probes.alignment import Ints
from tasks.task import Kind

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Predictions = NDArray[Any]
"""Class indices or numbers (…, n); for multi-label uint8 (…, n, bytes), class c being bit c as
`numpy.packbits` counts."""
Spans = set[tuple[int, int, str]]
"""Chunks: start, end, type."""


@dataclass(frozen=True)
class Gold:
    """What predictions are scored against.

    Attributes:
        labels: class indices, or numbers, or rows of `sets`. Shape (n,).
        sentence: number of each example's sentence, not decreasing. Shape (n,).
        classes: names of the classes.
        punctuation: examples that root accuracy passes over. Shape (n,).
        unseen: names of the labels that stand as -1, one per such example, in order; for
            multi-label, of the last columns of `sets`, sorted.
        sets: for multi-label which labels each set holds, `classes` first. Shape (sets, labels).
    """

    labels: NDArray[Any]
    sentence: Ints
    classes: tuple[str, ...]
    punctuation: NDArray[np.bool_]
    unseen: tuple[str, ...] = ()
    sets: NDArray[np.bool_] | None = None

    def part(self, keep: NDArray[np.bool_]) -> Gold:
        """The examples where `keep` holds."""
        unseen = self.unseen
        if unseen and self.sets is None:
            unseen = tuple(np.array(unseen, dtype=object)[keep[self.labels < 0]])
        return replace(
            self,
            labels=self.labels[keep],
            sentence=self.sentence[keep],
            punctuation=self.punctuation[keep],
            unseen=unseen,
        )

    @cached_property
    def bounds(self) -> Ints:
        """Sentence s is examples `bounds[s]` to `bounds[s + 1]`."""
        changes = np.flatnonzero(np.diff(self.sentence)) + 1
        return np.concatenate([[0], changes, [len(self.sentence)]])

    @property
    def n_sentences(self) -> int:
        """Sentences that have an example."""
        return len(self.bounds) - 1

    @cached_property
    def place(self) -> Ints:
        """Each example's sentence, counted from 0 without gaps. Shape (n,)."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.bounds))

    @cached_property
    def codes(self) -> Ints:
        """Labels with the unseen ones numbered after the classes. Shape (n,)."""
        codes = self.labels.astype(np.int64)
        names = sorted(set(self.unseen))
        codes[codes < 0] = [len(self.classes) + names.index(name) for name in self.unseen]
        return codes

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """What `codes` count where labels are BIO tags; the last is that of no chunk."""
        return (*self.classes, *sorted(set(self.unseen)), "O")

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Which examples begin a sentence. Shape (n,)."""
        return np.asarray(np.diff(self.sentence, prepend=np.nan) != 0)

    @cached_property
    def chunks(self) -> Spans:
        """The chunks that labels make where they are BIO tags."""
        return chunk_spans(self.tags, self.codes, self.first)

    def indicators(self, given: Predictions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Gold sets, and predicted ones (n, bytes), unseen labels last. Each (n, labels)."""
        assert self.sets is not None
        found = np.zeros((len(given), self.sets.shape[1]), dtype=bool)
        n_classes = len(self.classes)
        found[:, :n_classes] = np.unpackbits(given, axis=-1, count=n_classes)
        return self.sets[self.labels], found

    def right(self, given: Predictions) -> NDArray[np.bool_]:
        """Which examples predictions get right, of a set every label. Shape (n,)."""
        if self.sets is None:
            return np.asarray(given == self.labels)
        wanted, found = self.indicators(given)
        return np.asarray((wanted == found).all(1))

    @cached_property
    def counts(self) -> Ints:
        """How often each label occurs, the unseen ones last. Shape (labels,)."""
        if self.sets is not None:
            return np.asarray(self.sets[self.labels].sum(0))
        return np.bincount(self.codes, minlength=len(self.classes) + len(set(self.unseen)))

    @cached_property
    def by_length(self) -> list[tuple[Ints, Ints]]:
        """For each length: its sentences (m,), and the examples of each (m, length)."""
        lengths = np.diff(self.bounds)
        groups = []
        for length in np.unique(lengths):
            (which,) = np.nonzero(lengths == length)
            groups.append((which, self.bounds[which][:, None] + np.arange(length)))
        return groups


@dataclass(frozen=True)
class Metric:
    """One number per cell, from sums over sentences.

    Attributes:
        parts: contributions of each sentence to the sums, from predictions (n,).
            Shape (sentences, k).
        value: the metric of sums of shape (…, k). Shape (…,); NaN where it is undefined.
        kinds: of tasks that it scores.
        percent: whether tables show it times 100.
        lower_is_better: whether it is an error, by which no best layer can be chosen.
    """

    parts: Callable[[Gold, Predictions], csr_array]
    value: Callable[[Gold, Floats], Floats]
    kinds: tuple[Kind, ...] = ("classification",)
    percent: bool = False
    lower_is_better: bool = False

    def __call__(self, gold: Gold, predicted: Predictions) -> Floats:
        """The score of every row of `predicted` (cells, n). Shape (cells,)."""
        return np.array([self.value(gold, self.parts(gold, row).sum(0)) for row in predicted])


metrics: Registry[Metric] = Registry("metric")


def is_percent(name: str) -> bool:
    """Whether tables show the metric times 100; one that is not registered is shown as it is."""
    return name in metrics and metrics.get(name).percent


def lower_is_better(name: str) -> bool:
    """Whether the metric is an error; one that is not registered is taken not to be."""
    return name in metrics and metrics.get(name).lower_is_better


NSPR_LENGTHS = range(5, 51)

CLASSES: tuple[Kind, ...] = ("classification", "multi-label")
NUMBERS: tuple[Kind, ...] = ("regression",)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any], otherwise: float = np.nan) -> Floats:
    out: Floats = np.full(np.broadcast(numerator, denominator).shape, otherwise)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def _sparse(content: Any, shape: tuple[int, int] | None = None) -> csr_array:
    """A sparse matrix of a dense one, or of values and places, which add up."""
    # Imported only here: a run that computes nothing has no use for it.
    from scipy.sparse import csr_array

    return csr_array(content, shape=shape)


def mean_parts(gold: Gold, values: Floats) -> csr_array:
    """Parts of a mean over examples, `values` (n,): their sum and their number."""
    sums = np.add.reduceat(values, gold.bounds[:-1])
    return _sparse(np.stack([sums, np.diff(gold.bounds)], axis=1))


def mean_value(gold: Gold, sums: Floats) -> Floats:
    """The value of a mean whose parts are `mean_parts`."""
    return _ratio(sums[..., 0], sums[..., 1])


metrics.add(
    "accuracy",
    # Share of examples predicted right.
    Metric(
        lambda gold, given: mean_parts(gold, gold.right(given).astype(float)),
        mean_value,
        percent=True,
    ),
)
metrics.add(
    "exact_match",
    # Share of examples with every label predicted right and no other: subset accuracy.
    Metric(metrics.get("accuracy").parts, mean_value, ("multi-label",), percent=True),
)
metrics.add(
    "mae",
    # Mean absolute error, in the label's unit.
    Metric(
        lambda gold, given: mean_parts(gold, np.abs(given - gold.labels).astype(float)),
        mean_value,
        NUMBERS,
        lower_is_better=True,
    ),
)


def class_parts(gold: Gold, given: Predictions) -> csr_array:
    """Examples, predictions and right predictions of each label, the unseen ones last."""
    if gold.sets is not None:
        wanted, found = gold.indicators(given)
        each = np.concatenate([wanted, found, wanted & found], axis=1).astype(np.float64)
        return _sparse(np.add.reduceat(each, gold.bounds[:-1]))
    n = len(gold.classes) + len(set(gold.unseen))
    given = given.astype(np.int64)  # stored ones may be too narrow for the columns
    named = given >= 0
    right = given == gold.codes
    rows = np.concatenate([gold.place, gold.place[named], gold.place[right]])
    columns = np.concatenate([gold.codes, n + given[named], 2 * n + given[right]])
    return _sparse((np.ones(len(rows)), (rows, columns)), (gold.n_sentences, 3 * n))


def _balanced_accuracy(gold: Gold, sums: Floats) -> Floats:
    """Mean recall over the classes that occur, those of train alone."""
    count, _, right = np.split(sums, 3, axis=-1)
    seen = slice(len(gold.classes))
    recall = _ratio(right[..., seen], count[..., seen], otherwise=0.0)
    return _ratio(recall.sum(-1), (count[..., seen] > 0).sum(-1))


def _macro_f1(least: int, gold: Gold, sums: Floats) -> Floats:
    """Mean F1 over the labels that occur, and `least` times or more in the scored split.

    Which labels are frequent is the split's, not the resample's; those unseen in train score 0.
    """
    count, given, right = np.split(sums, 3, axis=-1)
    here = (count > 0) & (gold.counts >= least)
    f1 = _ratio(2 * right, count + given, otherwise=0.0)
    return _ratio((f1 * here).sum(-1), here.sum(-1))


def _micro_f1(gold: Gold, sums: Floats) -> Floats:
    """F1 over all decisions, label by label (Tenney et al. 2019b); of single classes, accuracy."""
    count, given, right = (part.sum(-1) for part in np.split(sums, 3, axis=-1))
    return _ratio(2 * right, count + given, otherwise=0.0)


metrics.add("balanced_accuracy", Metric(class_parts, _balanced_accuracy, percent=True))
metrics.add("macro_f1", Metric(class_parts, partial(_macro_f1, 1), CLASSES, percent=True))
metrics.add("macro_f1_20", Metric(class_parts, partial(_macro_f1, 20), CLASSES, percent=True))
metrics.add("micro_f1", Metric(class_parts, _micro_f1, CLASSES, percent=True))


def gold_and_given_spans(gold: Gold, given: Predictions) -> tuple[Spans, Spans]:
    """The chunks that there are, and those that predictions (n,) of BIO tags make."""
    outside = len(gold.tags) - 1
    found = chunk_spans(gold.tags, np.where(given < 0, outside, given), gold.first)
    return gold.chunks, found


def _span_parts(gold: Gold, given: Predictions) -> csr_array:
    """Chunks found right, chunks wanted, chunks given."""
    wanted, found = gold_and_given_spans(gold, given)
    columns = []
    for chunks in (wanted & found, wanted, found):
        starts = np.array([start for start, _, _ in chunks], dtype=np.int64)
        columns.append(np.bincount(gold.place[starts], minlength=gold.n_sentences))
    return _sparse(np.stack(columns, axis=1).astype(float))


def _span_f1(gold: Gold, sums: Floats) -> Floats:
    """F1 over whole chunks by conlleval's definition (Tjong Kim Sang & Buchholz 2000).

    A chunk starts at B-x, and at I-x after O, after another type, or at the beginning of a
    sentence. It counts if start, end and type are right.
    """
    return _ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2], otherwise=0.0)


metrics.add("span_f1", Metric(_span_parts, _span_f1, percent=True))


def chunk_spans(names: Sequence[str], tags: Ints, first: NDArray[np.bool_]) -> Spans:
    """The chunks (start, end, type) of BIO tags that run over sentences.

    Args:
        names: of the tags.
        tags: indices of names. Shape (n,).
        first: where sentences begin. Shape (n,).
    """
    types = ["", *sorted({name[2:] for name in names if name != "O"})]
    kinds = np.array([types.index("" if name == "O" else name[2:]) for name in names])[tags]
    begins = np.array([name.startswith("B-") for name in names])[tags]
    inside = kinds != 0
    changed = np.ones(len(tags), dtype=bool)
    changed[1:] = kinds[1:] != kinds[:-1]
    starts = inside & (begins | changed | first)
    stops = np.flatnonzero(np.append(starts | ~inside | first, True))
    where = np.flatnonzero(starts)
    ends = stops[np.searchsorted(stops, where, side="right")]
    which = np.array(types, dtype=object)[kinds[where]]
    return set(zip(where.tolist(), ends.tolist(), which.tolist(), strict=True))


def _centred_ranks(values: NDArray[Any]) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = np.asarray(rankdata(values, axis=-1), dtype=np.float64)
    ranks -= ranks.mean(-1, keepdims=True)
    return ranks


def _sentence_spearman(gold: Gold, given: Predictions) -> tuple[Ints, Floats]:
    """Spearman's rank correlation within each sentence that has two different gold values.

    Ties share their mean rank. A prediction that is constant over a sentence scores 0.

    Returns:
        the sentences (s,), and their correlations (s,).
    """
    sentences, scores = [], []
    for which, examples in gold.by_length:
        wanted, found = _centred_ranks(gold.labels[examples]), _centred_ranks(given[examples])
        varied = (wanted != 0).any(1)
        scale = np.sqrt((wanted**2).sum(1) * (found**2).sum(1))
        rho = _ratio((wanted * found).sum(1), scale, otherwise=0.0)
        sentences.append(which[varied])
        scores.append(rho[varied])
    return np.concatenate(sentences), np.concatenate(scores)


def _nspr_parts(gold: Gold, given: Predictions) -> csr_array:
    """Correlations summed, and sentences counted, by length."""
    sentences, rho = _sentence_spearman(gold, given)
    column = np.diff(gold.bounds)[sentences] - NSPR_LENGTHS.start
    kept = (column >= 0) & (column < len(NSPR_LENGTHS))
    sentences, rho, column = sentences[kept], rho[kept], column[kept]
    n = len(NSPR_LENGTHS)
    data = np.concatenate([rho, np.ones(len(rho))])
    place = (np.tile(sentences, 2), np.concatenate([column, n + column]))
    return _sparse((data, place), (gold.n_sentences, 2 * n))


def _nspr(gold: Gold, sums: Floats) -> Floats:
    """Spearman within sentences, averaged per length 5 to 50, then over lengths.

    The NSpr metric of Hewitt & Manning 2019. NaN if no sentence is of such a length.
    """
    total, count = np.split(sums, 2, axis=-1)
    return _ratio(_ratio(total, count, otherwise=0.0).sum(-1), (count > 0).sum(-1))


def nspr_sentences(gold: Gold) -> int:
    """How many sentences `nspr` covers."""
    return int(_nspr_parts(gold, gold.labels)[:, len(NSPR_LENGTHS) :].sum())


def _spearman_parts(gold: Gold, given: Predictions) -> csr_array:
    """Correlation, and 1, of each sentence that has one."""
    sentences, rho = _sentence_spearman(gold, given)
    parts = np.zeros((gold.n_sentences, 2))
    parts[sentences] = np.stack([rho, np.ones(len(rho))], axis=1)
    return _sparse(parts)


metrics.add("nspr", Metric(_nspr_parts, _nspr, NUMBERS))
# Spearman within sentences, averaged over sentences. NaN if none has two gold values.
metrics.add("spearman", Metric(_spearman_parts, mean_value, NUMBERS))


def _moment_parts(gold: Gold, given: Predictions) -> csr_array:
    """Sums, squares and products of ranks; a resample keeps the ranks of the whole sample."""
    x, y = _centred_ranks(gold.labels), _centred_ranks(given)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return _sparse(np.add.reduceat(terms, gold.bounds[:-1], axis=0))


def _correlation(gold: Gold, sums: Floats) -> Floats:
    """Spearman over all examples at once, ties sharing their mean rank.

    NaN if all gold values are equal; constant predictions score 0.
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    wanted, found = xx - x * x / n, yy - y * y / n
    rho = _ratio(xy - x * y / n, np.sqrt(wanted * found), otherwise=0.0)
    return np.where(wanted > 0, rho, np.nan)


metrics.add("corpus_spearman", Metric(_moment_parts, _correlation, NUMBERS))


def _root_parts(gold: Gold, given: Predictions) -> csr_array:
    right = np.zeros(gold.n_sentences)
    for which, examples in gold.by_length:
        passed = gold.punctuation[examples]
        passed = passed & ~passed.all(1, keepdims=True)
        root = np.where(passed, np.inf, given[examples]).argmin(1)
        right[which] = gold.labels[examples[np.arange(len(which)), root]] == 0
    return _sparse(np.stack([right, np.ones_like(right)], axis=1))


# Share of sentences whose least deep word, punctuation passed over, is the root, as Hewitt &
# Manning 2019. A sentence of nothing but punctuation is searched whole.
metrics.add("root_accuracy", Metric(_root_parts, mean_value, NUMBERS, percent=True))

metrics.ship()
