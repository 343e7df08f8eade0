"""Malformed text: scores of probes on distorted sentences.

Test sentences are read again with their words shuffled, their second half cut off, subjects and
objects dropped (Primer in BERTology, section 4.1, on Ettinger 2020), or names replaced by others of
their type (ibid., on Balasubramanian et al. 2020). The reported probes are applied to the examples
whose words remain, with the gold labels of the intact sentences, and compared with predictions on
the same examples in intact text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.data.sentence import ROOT, Corpus, Sentence, Span
from probes.examples.examples import NotServedError, Split
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import Text, view_over
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Level, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.probing.stored_probes import StoredProbes, why_not_applied
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.metrics import metrics
from probes.tasks.task import Task

if TYPE_CHECKING:
    from probes.extraction.reading.windows import Pooling
    from probes.measurements.context import TaskContext

Order = tuple[int, ...]
"""Indices of the remaining words, in the new order."""


class Changed(NamedTuple):
    """A changed sentence.

    Attributes:
        words: the new words.
        order: for each new word, the index of the original word that it is, or replaces.
    """

    words: tuple[str, ...]
    order: Order


Perturbation = Callable[[Sentence], Changed | None]
"""Function that changes a sentence; returns None if nothing changes."""

_ARGUMENTS = frozenset(("nsubj", "obj", "iobj", "nsubjpass", "dobj", "dative"))
"""Relations of subjects and objects, in UD and in spaCy's English pipelines."""


def shuffled(sentence: Sentence) -> Changed | None:
    """Shuffle the words; the order is seeded by the sentence's id."""
    seed = list(sha256(sentence.id.encode()).digest())
    return _changed(sentence, np.random.default_rng(seed).permutation(len(sentence)).tolist())


def cut(sentence: Sentence) -> Changed | None:
    """Keep the first half of the words, rounded up."""
    return _changed(sentence, range((len(sentence) + 1) // 2))


def without_arguments(sentence: Sentence) -> Changed | None:
    """Remove subjects and objects with all their dependents; roots always remain."""
    heads = sentence.heads
    pairs = enumerate(zip(heads, sentence.deprels, strict=False))
    gone = {i for i, (head, rel) in pairs if head != ROOT and rel.partition(":")[0] in _ARGUMENTS}

    def remains(word: int) -> bool:
        while word != ROOT and word not in gone:
            word = heads[word]
        return word == ROOT

    return _changed(sentence, filter(remains, range(len(sentence)))) if gone else None


class OtherNames:
    """Replaces each name by another of the same kind in train (Balasubramanian et al. 2020).

    A name is a stretch of proper nouns. Names of a kind agree in number of words, morphology of the
    last word and, if annotated, entity type. Within a document, a name always gets the same
    replacement. A name without another of the same kind remains.
    """

    def __init__(self, corpus: Corpus) -> None:
        names_by_kind: dict[tuple[object, ...], set[tuple[str, ...]]] = defaultdict(set)
        for sentence in corpus.splits["train"]:
            for span in _spans_of_names(sentence):
                names_by_kind[_kind_of_name(span, sentence)].add(sentence.words[slice(*span)])
        self._names = {kind: sorted(names) for kind, names in names_by_kind.items()}

    def __call__(self, sentence: Sentence) -> Changed | None:
        """The sentence with other names."""
        words = list(sentence.words)
        for span in _spans_of_names(sentence):
            name = sentence.words[slice(*span)]
            choices = [x for x in self._names.get(_kind_of_name(span, sentence), ()) if x != name]
            if choices:
                seed = sha256("\0".join((sentence.document or sentence.id, *name)).encode())
                words[slice(*span)] = choices[int.from_bytes(seed.digest()) % len(choices)]
        changed = Changed(tuple(words), tuple(range(len(words))))
        return changed if changed.words != sentence.words else None


def _spans_of_names(sentence: Sentence) -> Iterator[Span]:
    """The longest stretches of proper nouns."""
    start = None
    for position, tag in enumerate((*sentence.upos, "")):
        if tag == "PROPN":
            start = position if start is None else start
        elif start is not None:
            yield start, position
            start = None


def _kind_of_name(span: Span, sentence: Sentence) -> tuple[object, ...]:
    """Kind of a name: length, type of the shortest mention, morphology."""
    start, end = span
    around = [m for m in sentence.mentions if m.span[0] <= start and end <= m.span[1]]
    shortest = min(around, key=lambda m: m.span[1] - m.span[0], default=None)
    feats = tuple(sorted(sentence.feats[end - 1].items())) if sentence.feats else ()
    return end - start, shortest.type if shortest else "", feats


NAMES_REPLACED = "names replaced"

_OF_ORDER: Mapping[str, Perturbation] = {
    "shuffled": shuffled,
    "cut": cut,
    "arguments dropped": without_arguments,
}

PERTURBATIONS = (*_OF_ORDER, NAMES_REPLACED)
"""Names of the perturbations."""


def perturbations_of(corpus: Corpus) -> Mapping[str, Perturbation]:
    """The perturbations of a corpus's sentences, by name."""
    return {**_OF_ORDER, NAMES_REPLACED: OtherNames(corpus)}


def moved(span: Span, order: Order) -> Span | None:
    """New position of a span; None unless the words stay adjacent and in order."""
    start, end = span
    if start not in order:
        return None
    new_start = order.index(start)
    new_span = new_start, new_start + end - start
    return new_span if order[slice(*new_span)] == tuple(range(start, end)) else None


def _changed(sentence: Sentence, indices: Iterable[int]) -> Changed | None:
    order = tuple(indices)
    if order == tuple(range(len(sentence))):
        return None
    return Changed(tuple(sentence.words[i] for i in order), order)


NOTE = (
    "Score on intact text minus score on malformed text, for the same probe, test examples and "
    "gold labels. Sentences that do not change are left out. Intervals are over test documents or "
    "sentences."
)


def _reason_not_to_perturb(task: Task, probe: ProbeSpec, level: Level) -> str:
    if reason := why_not_applied(probe):
        return reason
    labels_texts = task.shape in ("sentence", "text")
    return "a malformed sentence need not have the label of the whole one" if labels_texts else ""


@measurement(
    "malformed",
    after="scores",
    version=2,
    missing=_reason_not_to_perturb,
    shows=(
        *(
            Pivot(
                f"drop, {name}",
                ("malformed_drop",),
                columns=("task",),
                where={"perturbation": name},
                note=NOTE if name == PERTURBATIONS[0] else "",
            )
            for name in PERTURBATIONS
        ),
        Lines(
            "malformed",
            "malformed_drop",
            note=NOTE,
            line="perturbation",
            of_several={"perturbation": PERTURBATIONS[0]},
        ),
    ),
)
def malformed(context: TaskContext) -> Measured:
    """Scores of the same probes on shuffled, cut and incomplete sentences, and with other names.

    Rows by layer and perturbation: score on malformed text, score of the same examples in intact
    text, and difference. Facts have the number of examples.

    Raises:
        NotServedError: the task changes sentences, no example survives, or the run uses given
            vectors.
    """
    split, total = context.examples.splits["test"], len(context.examples.targets("test"))
    if context.examples.view != "plain":
        raise NotServedError("its examples hide words or bring their own texts")
    if not context.model.reads_text:
        raise NotServedError("given vectors cannot be computed for malformed text")
    groups = {
        name: survivors(context.corpus.splits["test"], split, perturb)
        for name, perturb in perturbations_of(context.corpus).items()
    }
    counts = {name: len(group.indices) for name, group in groups.items()}
    groups = {name: group for name, group in groups.items() if counts[name]}
    if not groups:
        raise NotServedError("no test example survives in malformed text")
    predicted = _predictions_by_change(context, groups)
    remaining = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    return Measured(
        [
            row
            for name, group in groups.items()
            for row in _perturbation_rows(context, name, group.indices, predicted[name])
        ],
        facts={"test_examples": total, **counts},
        notes=[f"{context.task.name}: of {total:,} test examples remain {remaining}."],
    )


class Survivors(NamedTuple):
    """The test examples whose words remain side by side in malformed sentences.

    Attributes:
        indices: indices of the examples in the test split. Shape (m,).
        texts: malformed sentence of each example.
        spans: spans of each example in that sentence. Shape (m, spans, 2).
    """

    indices: Ints
    texts: Sequence[Text]
    spans: Ints


def survivors(sentences: Sequence[Sentence], split: Split, perturb: Perturbation) -> Survivors:
    """The examples of a split that survive a perturbation of its sentences."""
    changed = [perturb(sentence) or Changed((), ()) for sentence in sentences]
    texts = [Text(words, (0, len(words))) for words, _ in changed]
    indices, spans = [], []
    for i, (number, example) in enumerate(zip(split.sentence, split.examples, strict=True)):
        example_spans = (span for span in (example.span, example.span2) if span)
        places = [moved(span, changed[number].order) for span in example_spans]
        if None not in places:
            indices.append(i)
            spans.append(places)
    example_texts = [texts[number] for number in split.sentence[indices]]
    return Survivors(
        np.array(indices, dtype=np.int64), example_texts, np.array(spans, dtype=np.int64)
    )


def _predictions_by_change(
    context: TaskContext, groups: dict[str, Survivors]
) -> dict[str, NDArray[Any]]:
    """Predictions for the survivors of each perturbation, by layer. Each (L, m, …)."""
    from probes.extraction.reading.collectors import WordVectors

    layers = context.layers
    probes = StoredProbes(context, layers)
    view = view_over((text for group in groups.values() for text in group.texts), "own")
    text_indices = {
        name: np.array([view.index[text] for text in group.texts]) for name, group in groups.items()
    }
    intact = context.predicted(layers)
    predicted = {name: np.zeros_like(intact[:, x.indices]) for name, x in groups.items()}
    pooling, site = cast("Pooling", context.result.pooling), context.task.site
    collector = WordVectors(layers, pooling, "float32", [site])
    for shard, parts in context.read(view, collector):
        for name, group in groups.items():
            (in_shard,) = np.isin(text_indices[name], shard.index).nonzero()
            if not len(in_shard):
                continue
            start = shard.starts[np.searchsorted(shard.index, text_indices[name][in_shard])]
            spans = group.spans[in_shard] + start[:, None, None]
            for row, layer in enumerate(layers):
                vectors = parts[layer_part(layer, site)]
                predicted[name][row, in_shard] = probes.predict(layer, vectors, spans)
    return predicted


def _perturbation_rows(
    context: TaskContext, name: str, indices: Ints, malformed: NDArray[Any]
) -> Iterator[Row]:
    """The rows of a perturbation.

    Args:
        indices: indices of the test examples. Shape (m,).
        malformed: predictions in malformed text. Shape (L, m, …).
    """
    gold, metric = context.scorers["test"].gold, metrics.get(context.task.metric)
    mask = np.isin(np.arange(len(gold.labels)), indices)
    gold = gold.part(mask)
    predictions = np.concatenate([malformed, context.predicted(context.layers)[:, indices]])

    def with_drops(scores: Floats) -> Floats:
        """Scores on both kinds of text (2 L, …), with their differences. Shape (3, L, …)."""
        pair = scores.reshape(2, len(malformed), *scores.shape[1:])
        return np.concatenate([pair, pair[1:] - pair[:1]])

    values = with_drops(metric(gold, predictions))
    between = np.full((*values.shape, 2), np.nan)
    if (draws := draws_of(gold, metric)) is not None:
        between = interval(with_drops(replicates(metric, gold, predictions, draws)))
    names = "malformed_score", "intact_score", "malformed_drop"
    for metric_name, of_layers, ends_of_layers in zip(names, values, between, strict=True):
        for layer, value, pair in zip(context.layers, of_layers, ends_of_layers, strict=True):
            axes = {"perturbation": name}
            yield Row(metric_name, value, layer, *ends(bounds(pair)), n=len(indices), axes=axes)
