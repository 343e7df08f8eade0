"""Malformed text: scores of probes on distorted sentences.

Test sentences are read again with their words shuffled, their second half cut off, subjects and
objects dropped (Primer in BERTology, section 4.1, on Ettinger 2020), or names replaced by others of
their type (ibid., on Balasubramanian et al. 2020). The reported probes are applied to the examples
whose words remain, with the gold labels of the intact sentences, and compared with predictions on
the same examples in intact text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.data.perturbations import PERTURBATIONS, Changed, Perturbation, moved, perturbations_of
from probes.data.sentence import Sentence
from probes.examples.examples import NotServedError, Split
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text, view_over
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Found, Level, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.stored_probes import StoredProbes, why_not
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.metrics import metrics
from probes.tasks.task import Task

if TYPE_CHECKING:
    from probes.extraction.windows import Pooling
    from probes.measurements.context import TaskContext

NOTE = (
    "Score on intact text minus score on malformed text, for the same probe, test examples and "
    "gold labels. Sentences that do not change are left out. Intervals are over test documents or "
    "sentences."
)


def _missing(task: Task, probe: ProbeSpec, level: Level) -> str:
    """The reason for not measuring a task and probe."""
    if why := why_not(probe):
        return why
    whole = task.shape in ("sentence", "text")
    return "a malformed sentence need not have the label of the whole one" if whole else ""


@measurement(
    "malformed",
    after="scores",
    version=2,
    missing=_missing,
    views=(
        *(
            Pivot(
                f"drop, {name}",
                ("malformed_drop",),
                columns=("task",),
                where={"perturbation": name},
                note=NOTE * (name == PERTURBATIONS[0]),
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
def malformed(context: TaskContext) -> Found:
    """Scores of the same probes on shuffled, cut and incomplete sentences, and with other names.

    Rows by layer and perturbation: score on malformed text, score of the same examples in intact
    text, and difference. Facts have the number of examples.

    Raises:
        NotServedError: the task changes sentences, no example survives, or the run uses given
            vectors.
    """
    split, total = context.examples.splits["test"], len(context.examples.targets("test"))
    if context.examples.view != "plain":
        raise NotServedError("its examples hide words or bring texts of their own")
    if not context.model.window:
        raise NotServedError("given vectors cannot be computed for malformed text")
    every = {
        name: survivors(context.corpus.splits["test"], split, perturb)
        for name, perturb in perturbations_of(context.corpus).items()
    }
    counts = {name: len(each.kept) for name, each in every.items()}
    every = {name: each for name, each in every.items() if counts[name]}
    if not every:
        raise NotServedError("no test example survives in malformed text")
    predicted = _predicted(context, every)
    remaining = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    return Found(
        [
            row
            for name, each in every.items()
            for row in _compared(context, name, each.kept, predicted[name])
        ],
        facts={"test_examples": total, **counts},
        notes=[f"{context.task.name}: of {total:,} test examples remain {remaining}."],
    )


class Survivors(NamedTuple):
    """The test examples whose words remain side by side in malformed sentences.

    Attributes:
        kept: numbers of the examples. Shape (m,).
        texts: malformed sentence of each example.
        spans: spans of each example in that sentence. Shape (m, spans, 2).
    """

    kept: Ints
    texts: Sequence[Text]
    spans: Ints


def survivors(sentences: Sequence[Sentence], split: Split, perturb: Perturbation) -> Survivors:
    """The examples of a split that survive a perturbation of its sentences."""
    changed = [perturb(sentence) or Changed((), ()) for sentence in sentences]
    texts = [Text(words, (0, len(words))) for words, _ in changed]
    kept, spans = [], []
    for i, (number, example) in enumerate(zip(split.sentence, split.examples, strict=True)):
        given = (span for span in (example.span, example.span2) if span)
        places = [moved(span, changed[number].order) for span in given]
        if None not in places:
            kept.append(i)
            spans.append(places)
    own = [texts[number] for number in split.sentence[kept]]
    return Survivors(np.array(kept, dtype=np.int64), own, np.array(spans, dtype=np.int64))


def _predicted(context: TaskContext, every: dict[str, Survivors]) -> dict[str, NDArray[Any]]:
    """Predictions for the survivors of each perturbation, by layer. Each (L, m, …)."""
    from probes.extraction.collectors import WordVectors

    layers = context.layers
    probes = StoredProbes(context, layers)
    view = view_over((text for each in every.values() for text in each.texts), "own")
    places = {
        name: np.array([view.index[text] for text in each.texts]) for name, each in every.items()
    }
    intact = context.predicted(layers)
    predicted = {name: intact[:, each.kept].copy() for name, each in every.items()}
    pooling, site = cast("Pooling", context.result.pooling), context.task.site
    collector = WordVectors(layers, pooling, "float32", [site])
    for shard, found in context.read(view, collector):
        for name, each in every.items():
            (here,) = np.isin(places[name], shard.index).nonzero()
            if not len(here):
                continue
            start = shard.starts[np.searchsorted(shard.index, places[name][here])]
            spans = each.spans[here] + start[:, None, None]
            for row, layer in enumerate(layers):
                said = probes.predict(layer, found[layer_part(layer, site)], spans)
                predicted[name][row, here] = said
    return predicted


def _compared(
    context: TaskContext, name: str, kept: Ints, malformed: NDArray[Any]
) -> Iterator[Row]:
    """The rows of a perturbation.

    Args:
        kept: numbers of the test examples. Shape (m,).
        malformed: predictions in malformed text. Shape (L, m, …).
    """
    gold, metric = context.scorers["test"].gold, metrics.get(context.task.metric)
    of_kept = np.isin(np.arange(len(gold.labels)), kept)
    gold = gold.part(of_kept)
    both = np.concatenate([malformed, context.predicted(context.layers)[:, kept]])

    def with_drops(scores: Floats) -> Floats:
        """Scores on both kinds of text (2 L, …), with their differences. Shape (3, L, …)."""
        pair = scores.reshape(2, len(malformed), *scores.shape[1:])
        return np.concatenate([pair, pair[1:] - pair[:1]])

    values = with_drops(metric(gold, both))
    between = np.full((*values.shape, 2), np.nan)
    if (draws := draws_of(gold)) is not None:
        between = interval(with_drops(replicates(metric, gold, both, draws)))
    names = "malformed_score", "intact_score", "malformed_drop"
    for metric_name, of_layers, ends_of_layers in zip(names, values, between, strict=True):
        for layer, value, pair in zip(context.layers, of_layers, ends_of_layers, strict=True):
            axes = {"perturbation": name}
            yield Row(metric_name, value, layer, *ends(bounds(pair)), n=len(kept), axes=axes)
