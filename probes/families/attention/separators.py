"""Whether attention to special tokens is a no-op.

Clark et al. (2019), section 3.2 and figures 3 and 4: heads attend to [SEP] where attending more
or less to it hardly changes the outputs of the model, by gradients of its loss.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probes.common.errors import counted
from probes.examples.examples import NotServedError
from probes.families.attention.attention import block_layers, sample_view
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, NoOptions, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.of_families.ratios import RatioParts, ratio_estimate
from probes.statistics.partition import partition

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import Text, View
    from probes.measurements.context import ModelContext

KINDS = "first token", "separators", "other tokens"
"""Kinds of tokens that are attended to."""

METRICS = "attention_gradient", "relative_gradient", "attention_share"

MASKED = 0.15
"""Share of a text's words that a masked model has to predict (Devlin et al. 2019)."""


def _in_words(text: Text) -> Text:
    """A whole text as stretches between spaces, of which a masked model predicts some."""
    if text.rendered or not text.written:
        return text
    words = tuple(re.findall(r"\s*\S+(?:\s+\Z)?", text.words[0])) or text.words
    return replace(text, words=words, kept_span=(0, len(words)))


def _word_view(corpus: Corpus, options: NoOptions) -> View:
    """A few sentences of test, the same in every run, and texts as words."""
    from probes.extraction.reading.views import view_over

    return view_over(map(_in_words, sample_view(corpus, options).texts), "plain")


def _gradient_collector(corpus: Corpus, layers: Sequence[int], options: NoOptions) -> Collector:
    from probes.families.attention.head_maps import AttentionGradients

    rng, words = np.random.default_rng(0), {}
    for text in _word_view(corpus, options).texts:
        n = len(text.words)
        words[text] = rng.permutation(n)[: max(1, round(MASKED * n))]
    return AttentionGradients(words)


@measurement(
    "attention_gradients",
    version=3,
    head="needed",
    extent=block_layers,
    reads=_word_view,
    collector=_gradient_collector,
    shows=(
        Pivot(
            "gradients, by what is attended to",
            METRICS[:2],
            columns=("metric", "to"),
            note="Mean absolute gradient of the loss with respect to a weight of attention; "
            "relative: divided by that of other tokens.",
        ),
        Pivot("attention, %", METRICS[2:], columns=("to",)),
        Lines(
            "attention_gradients",
            METRICS[0],
            "Gradients of attention",
            "Mean absolute gradient of the loss with respect to a weight of attention, by the "
            "token that is attended to.",
            line="to",
        ),
    ),
)
def attention_gradients(context: ModelContext) -> Measured:
    """Gradient of the model's loss with respect to attention, to special and to other tokens.

    Raises:
        NotServedError: no sentence fits into the window; or a masked model has no mask token, or
            reads chats or other texts with special tokens.
    """
    from probes.extraction.reading.views import plain_text
    from probes.families.attention.head_maps import sample

    if not context.model.causal and any(text.rendered for text in context.view.texts):
        raise NotServedError("it reads in both directions, and would mask special tokens in texts")
    sentences = [context.corpus.splits["test"][i] for i in sample(context.corpus)]
    places = [context.view.index[_in_words(plain_text(sentence))] for sentence in sentences]
    values = context.of_texts("gradients")[places][:, [x - 1 for x in context.layers]]
    # Decoders have no separators; all models attend to the first and to other tokens.
    has_values = ~np.isnan(values[:, 0, [0, -1], 0]).any(1)
    if not has_values.any():
        raise NotServedError("no sentence of the sample fits the window and can be predicted")
    clusters = partition([x.document for x, y in zip(sentences, has_values, strict=True) if y])
    values = values[has_values].astype(np.float64)
    rows = []
    for kind, name in enumerate(KINDS):
        gradients, shares, uniform = np.moveaxis(values[:, :, kind], -1, 0)
        if np.isnan(gradients).any():
            continue
        axes, one = {"to": name}, np.ones_like(shares)
        rows.append(Row(METRICS[2], uniform.mean(), axes={**axes, "baseline": "uniform"}))
        parts = (gradients, one), (gradients, values[:, :, -1, 0]), (shares, one)
        for metric, (sums, counts) in zip(METRICS, parts, strict=True):
            for i, layer in enumerate(context.layers):
                estimate = ratio_estimate(RatioParts(sums[:, [i]], counts[:, i]), clusters)
                if metric != METRICS[1] or name != KINDS[-1]:
                    rows.append(Row.estimated(metric, estimate, layer, n=len(values), axes=axes))
    n_long = len(has_values) - len(values)
    reason = "longer than a window, or of one token"
    long = f"; {counted(n_long, 'sentence')} {reason}, left out" if n_long else ""
    note = f"{counted(len(values), 'test sentence')}{long}; intervals over {clusters.clusters}."
    return Measured(rows, notes=[note])
