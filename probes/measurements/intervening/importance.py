"""Importance of heads: how much a loss depends on each (Michel et al. 2019).

The gradient of the loss at a gate on the head's output: absolute value of the sum over a text,
expectation over texts of dev. It is what a first-order approximation says that zeroing the head
costs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from probes.measurements.intervening.own_answers import LOSS, Variant, one_word_each
from probes.measurements.intervening.probed_sample import Sample, drawn, read_samples
from probes.measurements.stored_probes import StoredProbes
from probes.records.row import Place, Row
from probes.statistics.bootstrap import means

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.extraction.collectors import Collector
    from probes.extraction.views import Text, View
    from probes.extraction.windows import Pooling
    from probes.measurements.context import Context

IMPORTANCE, AGREEMENT = "importance", "rank_correlation"

Head = tuple[int, int]
"""Its block and number, from 1."""

OfHeads = Mapping[Head, float]
"""A number of each head."""


def importance_for_probes(
    context: Context, tasks: Sequence[Context], n_sentences: int
) -> Iterator[Row]:
    """Of each task, for its stored probe of the last layer.

    Args:
        tasks: those whose probes can be applied again.
        n_sentences: of dev, drawn at random; equal ones count once.
    """
    import torch

    from probes.extraction.head_collectors import ProbeGradients

    dev = context.corpus.splits["dev"]
    once = {dev[i].words: i for i in drawn(len(dev), n_sentences)}
    sentences = np.sort([*once.values()])
    by_view: dict[str, list[Sample]] = defaultdict(list)
    for task in tasks:
        by_view[task.examples.view].append(Sample(task, "dev", sentences))
    last, document = context.model.n_layers, context.partition("dev").of_sentence
    for name, every in by_view.items():
        samples = [each for each in every if len(each.kept)]
        if not samples:
            continue
        ((_, view, first, vectors),) = read_samples(context, samples, [Variant()], name)
        errors = torch.stack([_errors(each, vectors[last], first) for each in samples])
        ends = [*list(first.values())[1:], errors.shape[1]]
        of_text = {x: errors[:, i:j] for (x, i), j in zip(first.items(), ends, strict=True)}
        pooling = cast("Pooling", samples[0].context.result.pooling)
        found = _read(context, view, ProbeGradients(of_text, pooling))
        for number, each in enumerate(samples):
            own = {x: document[s] for x, s in zip(each.texts, each.sentences, strict=True)}
            its = found[[view.index[text] for text in own], number]
            yield from _rows(context, its, np.array([*own.values()]), each.context.task.name)


def importance_for_model(context: Context, n_sentences: int) -> Iterator[Row]:
    """For the model's own loss: the surprisal of one word of each sentence.

    Raises:
        NoHeadError: it has no language-model head.
    """
    from probes.extraction.head_collectors import SurprisalGradients
    from probes.extraction.views import view_over

    dev = context.corpus.splits["dev"]
    sentences = drawn(len(dev), n_sentences)
    texts = one_word_each([dev[i] for i in sentences])
    view = view_over(texts, "written")
    found = _read(context, view, SurprisalGradients())[[view.index[x] for x in texts], 0]
    yield from _rows(context, found, context.partition("dev").of_sentence[sentences], LOSS)


def _errors(sample: Sample, vectors: Any, first: Mapping[Text, int]) -> Any:
    """The gradient of the loss of the last layer's probe at the vectors of words."""
    its = sample.context
    labels = its.examples.targets("dev")[sample.kept]
    last = its.model.n_layers
    return StoredProbes(its, [last]).errors(last, vectors, sample.spans(first), labels)


def _read(context: Context, view: View, collector: Collector) -> Floats:
    """What a collector finds of each text. Shape (texts, losses, blocks, heads)."""
    parts = [(shard.index, arrays) for shard, arrays in context.read(view, collector)]
    order = np.argsort(np.concatenate([index for index, _ in parts]))
    found: Floats = np.concatenate([arrays["found"].numpy() for _, arrays in parts])[order]
    return found


def _rows(context: Context, gradients: Floats, document: Ints, predicts: str) -> Iterator[Row]:
    """The importance of each head; intervals resample documents.

    Args:
        gradients: shape (texts, blocks, heads).
    """
    n, _, n_heads = gradients.shape
    sizes = np.abs(gradients.astype(np.float64)).reshape(n, -1)
    for number, each in enumerate(means(sizes, document, context.partition("dev").n, "documents")):
        layer, head = divmod(number, n_heads)
        axes = {"head": head + 1, "predicts": predicts}
        yield Row.estimated(IMPORTANCE, each, layer + 1, split="dev", n=n, axes=axes)


def normalised(importance: OfHeads) -> dict[Head, float]:
    """Divided by the l2 norm of those of the layer, as Michel et al. order heads."""
    squares: dict[int, float] = defaultdict(float)
    for (layer, _), value in importance.items():
        squares[layer] += value**2
    return {head: x / math.sqrt(squares[head[0]] or 1.0) for head, x in importance.items()}


def agreement(importance: OfHeads, ablation: OfHeads, predicts: str) -> Row:
    """Spearman's correlation of importance and what disabling each head costs, with its p-value."""
    from scipy.stats import spearmanr  # slow to import

    found = spearmanr([importance[head] for head in ablation], list(ablation.values()))
    axes: dict[str, Place] = {"predicts": predicts, "heads": len(ablation)}
    return Row(AGREEMENT, found.statistic, n=len(ablation), p=found.pvalue, axes=axes)
