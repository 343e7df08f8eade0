"""Read-out of stored probes: their predictions in changed passes, and what a change costs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from probes.examples.examples import NotServedError
from probes.extraction.reading.vectors import layer_part
from probes.families.interventions.experiment import (
    ChangedPass,
    Comparison,
    comparisons,
    read_passes,
)
from probes.measurements.measurement import csv_lines
from probes.probing.stored_probes import StoredProbes, why_not_applied
from probes.records.record import Record
from probes.records.row import AxisValue, Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, cluster_sums, draws_of, informative, interval
from probes.statistics.metrics import mean_of_draws, metric_over_draws, metrics
from probes.statistics.of_families.cka import linear_cka
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Replicates, Spread, p_values_of
from probes.statistics.sums import side_by_side

if TYPE_CHECKING:
    from probes.common.arrays import Ints
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import Text
    from probes.extraction.reading.windows import Pooling
    from probes.measurements.context import ModelContext, TaskContext


class ProbedSample:
    """A task's examples in some sentences of a split, and predictions of its reported probes.

    Args:
        context: the task and its scores.
        sentences: numbers of the sentences in the split, ascending.
        split: "dev" for choosing something, else "test".

    Attributes:
        name: name of the task.
        view: name of the view that holds the texts.
        position: where whole texts are read; None for words.
        layers: layers with a probe.
        numbers: numbers of the examples in the split. Shape (n,).
        texts: text of each example.
        predicted: predictions of each pass, made by `begin` and filled by `take`. Shape (passes, L,
            n, …).
        reason: reason for leaving the task out; empty if it is used.
    """

    def __init__(self, context: TaskContext, sentences: Ints, split: str = "test") -> None:
        self.context, self.split = context, split
        self.name, self.view = context.task.name, context.examples.view
        self.position = context.task.position
        self.layers = context.layers
        examples = context.examples.splits[split]
        self.numbers = np.flatnonzero(np.isin(examples.sentence, sentences))
        self.texts: list[Text] = [examples.texts[i] for i in self.numbers]
        self.reason = why_not_applied(context.spec)
        if not context.model.reads_text:
            self.reason = "given vectors cannot be read again"
        elif context.task.site:
            self.reason = "it reads inside blocks"
        elif self.position and not self.position.is_token_of_text:
            self.reason = "it is not read at one token of a text; use --positions last"
        elif self.view not in ("plain", "masked", "cut"):
            self.reason = "it reads its own texts"
        elif not len(self.numbers):
            self.reason = f"the sample of {split} has none of its examples"

    @cached_property
    def _probes(self) -> StoredProbes:
        return StoredProbes(self.context, self.layers)

    @cached_property
    def gold(self) -> Any:
        """The labels of the examples."""
        gold = self.context.scorers[self.split].gold
        return gold.part(np.isin(np.arange(len(gold.labels)), self.numbers))

    def begin(self, n_passes: int) -> None:
        """Make room for the predictions of so many passes; those of earlier ones are dropped."""
        stored = self.context.predicted(self.layers)
        shape = n_passes, len(stored), len(self.numbers), *stored.shape[2:]
        self.predicted = np.zeros(shape, stored.dtype)

    def take(self, number: int, vectors: Mapping[int, Any], first: Mapping[Text, int]) -> None:
        """Predict from the vectors of a pass.

        Args:
            number: number of the pass.
            vectors: vectors of words or texts, by layer.
            first: first row of each text.
        """
        starts = np.array([first[text] for text in self.texts], dtype=np.int64)
        rows = self.context.examples.rows_from(self.split, starts, self.numbers)
        spans = np.stack(rows, axis=1)
        for index, layer in enumerate(self.layers):
            if layer in vectors:
                predicted = self._probes.predict(layer, vectors[layer], spans)
                self.predicted[number, index] = predicted

    def rows(self, passes: Sequence[ChangedPass], name: str, **axes: Any) -> Iterator[Row]:
        """Cost of each change to the probes at and above it; p at the last layer.

        Dev, which only serves for choosing, has rows of the last layer alone.

        Args:
            name: metric of the rows, the score in one pass minus the score in another.
            axes: further axes of all rows.
        """
        on_test, last = self.split == "test", self.layers[-1]
        metric = metrics.get(self.context.task.metric)
        draws = draws_of(self.gold, metric) if on_test else None
        compared = comparisons(passes)
        for index, at in enumerate(self.layers):
            if not on_test and at != last:
                continue
            effects = self._effects([x for x in compared if x.layer <= at], index)
            p = _p_values(effects) if on_test and at == last else {}
            for number, (change, changed, other, _) in enumerate(effects):
                pair = None
                if draws is not None:
                    difference = other.resampled[0] - changed.resampled[0]
                    pair = informative(bounds(interval(difference, other.metric.differences)))
                drop, between = other.scores[0] - changed.scores[0], ends(pair)
                all_axes = {**change.axes, "at": at, "predicts": self.name, **axes}
                n, of_change = len(self.numbers), p.get(number)
                row = Row(name, drop, change.layer, *between, self.split, n, of_change)
                yield row._replace(axes=all_axes)

    def _effects(self, compared: Sequence[Comparison], index: int) -> list[_Effect]:
        """Scores to compare of the probe of the layer with this index."""
        metric, predicted = metrics.get(self.context.task.metric), self.predicted[:, index]
        used = sorted({i for x in compared for i in (*x.changed, *x.other)})
        scores = dict(zip(used, metric(self.gold, predicted[used]).tolist(), strict=True))
        sums = {i: cluster_sums(metric.parts(self.gold, predicted[i]), self.gold) for i in used}

        @cache
        def mean(numbers: tuple[int, ...], spread: Spread | None, name: str) -> Replicates:
            score = mean_of_draws(np.array([[scores[i] for i in numbers]]))
            parts = [side_by_side([sums[i] for i in numbers])]
            over_draws = metric_over_draws(metric, len(numbers))
            of_draws = spread or (None, 0)
            return Replicates(score, over_draws, parts, [self.layers[index]], name, *of_draws)

        effects = []
        for change in compared:
            spread = change.spread(scores)
            name = f"{self.name} {change.layer} {change.axes}" if spread else ""
            changed = sum(sums[i] for i in change.changed) * len(change.other)
            reference = sum(sums[i] for i in change.other) * len(change.changed)
            n_different = int((abs(changed - reference).sum(1) > 0).sum())
            both = mean(change.changed, spread, name), mean(change.other, None, "")
            effects.append(_Effect(change, *both, n_different))
        return effects


class _Effect(NamedTuple):
    """A probe's mean scores over the draws of both sides.

    Attributes:
        changed: with the noise of draws.
        n_different: number of clusters of sentences in which the sides differ.
    """

    comparison: Comparison
    changed: Replicates
    other: Replicates
    n_different: int


def _p_values(effects: Sequence[_Effect]) -> dict[int, float]:
    """P-values by number, corrected by family; none if fewer than 20 clusters differ."""
    families: dict[Any, list[int]] = defaultdict(list)
    for number, effect in enumerate(effects):
        if effect.n_different >= FEWEST:
            families[effect.comparison.family].append(number)
    p_values: dict[int, float] = {}
    for numbers in families.values():
        # A side that several comparisons share is one cell, so that it is resampled once.
        sides = [(effects[i].changed, effects[i].other) for i in numbers]
        cells = {id(cell): cell for both in sides for cell in both}
        places = {key: i for i, key in enumerate(cells)}
        pairs = [(places[id(changed)], places[id(other)]) for changed, other in sides]
        tests = p_values_of(list(cells.values()), pairs)
        p_values |= {n: p for n, p in zip(numbers, tests, strict=True) if not np.isnan(p)}
    return p_values


def probed_samples(
    context: ModelContext, sentences: Ints, split: str = "test"
) -> tuple[list[ProbedSample], list[str]]:
    """All scored tasks whose probes can be applied again, and notes about the others.

    Raises:
        NotServedError: there is no such task.
    """
    samples = [ProbedSample(x, sentences, split) for x in context.tasks]
    usable = [x for x in samples if not x.reason]
    left_out = [f"{x.name} is left out: {x.reason}" for x in samples if x.reason]
    if not usable:
        none = "no scored task has probes that can be applied to other vectors"
        raise NotServedError("; ".join([none, *left_out]))
    return usable, [f"{x}." for x in left_out]


def predict_in_passes(
    context: ModelContext,
    samples: Sequence[ProbedSample],
    passes: Sequence[ChangedPass],
    compared: ProbedSample | None = None,
) -> Iterator[Row]:
    """Let probes predict from the vectors of words, or of texts, in each pass.

    Args:
        samples: filled with predictions; all of words, or all of whole texts.
        compared: the sample whose view and position give vectors to compare with untouched ones.

    Yields:
        rows with the similarity of vectors.
    """
    from probes.extraction.reading.shards import kept_words
    from probes.extraction.reading.views import view_over

    for task_sample in samples:
        task_sample.begin(len(passes))
    for name in dict.fromkeys(x.view for x in samples):
        of_view = [x for x in samples if x.view == name]
        view = view_over((text for x in of_view for text in x.texts), name)
        n_words = kept_words(view.texts)
        first = dict(zip(view.texts, (np.cumsum(n_words) - n_words).tolist(), strict=True))
        untouched: dict[int, Mapping[int, Any]] = {}
        for number, arrays in read_passes(context, passes, view, _collector(of_view)):
            changed = passes[number]
            layers = [layer for layer in of_view[0].layers if layer >= changed.layer]
            vectors = {
                at: {layer: arrays[layer_part(layer, None, at)] for layer in layers}
                for at in dict.fromkeys(x.position for x in of_view)
            }
            for task_sample in of_view:
                task_sample.take(number, vectors[task_sample.position], first)
            if compared is None or compared.view != name:
                continue
            after = vectors[compared.position]
            if changed.is_base:
                untouched[number] = after
            else:
                yield from vector_similarities(changed, after, untouched[changed.against[0][0]])


def _collector(samples: Sequence[ProbedSample]) -> Collector:
    """The collector of the words' vectors, or of those of texts at all positions."""
    from probes.extraction.reading.collectors import WordVectors
    from probes.extraction.reading.text_vectors import TextVectors

    task = samples[0].context
    if positions := dict.fromkeys(x.position for x in samples if x.position):
        return TextVectors(
            [(layer, None, x) for x in positions for layer in task.layers], "float32"
        )
    return WordVectors(task.layers, cast("Pooling", task.result.pooling), "float32")


def vector_similarities(
    changed: ChangedPass, vectors: Mapping[int, Any], before: Mapping[int, Any]
) -> Iterator[Row]:
    """Mean cosine of words' vectors with those before, by layer; for the last layer also CKA.

    Args:
        vectors, before: vectors by layer, each (words, H).
    """
    import torch

    for layer, after in vectors.items():
        axes = {**changed.axes, "at": layer}
        cosines = torch.nn.functional.cosine_similarity(after, before[layer])
        yield Row("cosine", float(cosines.mean()), changed.layer, n=len(after), axes=axes)
        if layer == max(before):
            _, cka = linear_cka(after.cpu().numpy(), before[layer].cpu().numpy())
            yield Row("unbiased_cka", cka, changed.layer, n=len(after), axes=axes)


def csv_lines_by_task(record: Record) -> Iterator[Mapping[str, AxisValue]]:
    """All numbers, with the predicted task in a column named ``task``."""
    for line in csv_lines(record):
        yield {"task" if name == "predicts" else name: value for name, value in line.items()}
