"""Threshold from a corpus of negatives: few of its texts are above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes.examples.examples import NotServedError
from probes.extraction.reading.views import plain_text
from probes.measurements.measurement import NEGATIVES_THRESHOLD, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.probing.scores import resolution, rows_above, true_rate
from probes.probing.stored_probes import StoredProbes, why_not_transferred
from probes.records.row import Row
from probes.statistics.ranking_metrics import rate_interval, threshold_at

if TYPE_CHECKING:
    from probes.measurements.context import TaskContext


@measurement(
    NEGATIVES_THRESHOLD,
    after="scores",
    missing=lambda task, probe, _: (
        why_not_transferred(probe) if task.fpr else "it has no threshold"
    ),
    shows=(Pivot("from {negatives}", columns=("metric",), apart="task"),),
)
def negatives_threshold(context: TaskContext) -> Measured:
    """Rates on test above the threshold that few enough texts of another corpus are above.

    Rows by layer, with this corpus as the axis `negatives`: the smallest threshold with at most the
    share `Task.fpr` of its texts above it, with their number as n; and the false-positive rate and
    the hit rate on test. The note is of the best layer; texts of a group count as fewer.

    Raises:
        NotServedError: there is no such corpus, or none of its texts has the task's position.
        UserError: a text has special tokens of the model's chat template.
    """
    from probes.extraction.reading.text_vectors import pieces_at

    task, split, notes, rows = context.task, context.tokenizer, [], []
    if not (context.negatives and split and task.fpr and task.position):
        raise NotServedError("it needs --threshold-from CORPUS, and a model that reads text")
    corpus, view, vectors = context.negatives()
    sentences, index, texts = [], [], list(map(plain_text, corpus.splits["train"]))
    for number, (text, pieces) in enumerate(zip(texts, split(texts), strict=True)):
        if not text.rendered:
            text_of = f"--threshold-from {corpus.name}: text {number + 1}"
            split.chats.require_plain(text.words[0], text_of)
        if task.position.kind == "first" or pieces_at(task.position, text, pieces):
            sentences.append(corpus.splits["train"][number])
            index.append(view.index[text])
    if not (n := len(index)):
        raise NotServedError(f"no text of {corpus.name} has the position {task.position.name}")
    group = np.unique([x.document or x.id for x in sentences], return_inverse=True)[1]
    first = vectors.starts[index]
    spans = np.stack([first, first + vectors.lengths[index]], axis=1)
    probes, axes = StoredProbes(context, context.layers), {"negatives": corpus.name}
    for layer, on_test in zip(context.layers, context.predicted(context.layers), strict=True):
        margins = probes.of_examples(layer, vectors, [spans])
        threshold = threshold_at(task.fpr, margins)
        rows.append(Row("threshold", threshold, layer, n=n, axes=axes))
        rows += rows_above(context.scorers["test"].gold, on_test > threshold, layer, axes)
        if layer == context.result.best_layer:
            above = (margins > threshold).astype(np.float64)
            of_best = resolution(corpus.name, int(above.sum()), n)
            rate = true_rate(*rate_interval(above, group))
            notes.append(f"{task.name}, layer {layer}: {of_best}; {rate}.")
    in_train = {sentence.words for sentence in context.corpus.splits["train"]}
    for kind, n_texts in (
        ("without this position", len(texts) - n),
        ("that also occur in train", sum(sentence.words in in_train for sentence in sentences)),
    ):
        if n_texts:
            notes.append(f"{task.name}: texts of {corpus.name} {kind}: {n_texts:,}.")
    return Measured(rows, notes=notes)
