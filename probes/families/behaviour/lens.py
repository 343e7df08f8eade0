"""The logit lens: answers of each layer through the model's own head, beside the layer's probe.

A probe may decode what the model could not say (nostalgebraist 2020; Geva et al. 2021).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK, Forms
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Level, Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.probing.scores import intervals_by_metric
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.metrics import metrics
from probes.tasks.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats, Ints
    from probes.measurements.context import TaskContext


def _reason_without_lens(task: Task, probe: ProbeSpec, level: Level) -> str:
    """The reason for not measuring a task; agreement and tasks that label words have none."""
    if task.site:
        return "the head reads layers"
    if task.name == TASK or (task.shape == "word" and task.kind == "classification"):
        return ""
    return "the lens answers only agreement and tasks with one label per word"


@measurement(
    "lens",
    after="scores",
    version=2,
    head="needed",
    also_for_twins=True,
    shares_arrays=True,
    missing=_reason_without_lens,
    shows=(
        Pivot("readable through the model's own head, %", ("readable",), columns=("task",)),
        Lines(
            "readable",
            ("decodable", "readable"),
            title="{task}: decodable and readable",
            note="Readable: the layer's answer through the model's own head. Used: the last "
            "layer's answer, which is the model's own.",
            levels={"used": "used"},
        ),
    ),
    use_columns=(
        UseColumn(
            "readable",
            "Readable: the layer's answer through the model's own head.",
            "readable",
            {"baseline": None},
            decodable="decodable",
        ),
    ),
)
def lens(context: TaskContext) -> Measured:
    """Answers of each layer through the model's own head, beside its probe.

    For `agreement`, the answer is the more probable of the verb's two forms, if each has one token.
    For a task that labels words, it is the label with the highest probability: the sum over tokens
    of the token's probability times the share of the label among the token's training occurrences.

    Rows by layer: ``readable`` and ``decodable``, the accuracy of lens and probe on the same
    examples (balanced if probes are trained with balanced classes); the ``baseline`` of the
    commonest label; for agreement ``used``, the answers of the last layer and thus of the model.

    Raises:
        NotServedError: no example can be answered.
    """
    ask = _form_answers if context.task.name == TASK else _label_answers
    predicted, is_answered = ask(context)
    if not is_answered.any():
        raise NotServedError("no example can be answered with one token of the model")
    gold = context.scorers["test"].gold.part(is_answered)
    balanced = "balanced_accuracy"
    metric = balanced if context.task.metric == balanced else "accuracy"

    def row(name: str, labels: NDArray[Any], layer: int | None, **axes: Any) -> Row:
        predictions = labels[is_answered][None]
        (pair,) = intervals_by_metric(gold, [metric], predictions)[metric]
        (value,) = metrics.get(metric)(gold, predictions).tolist()
        return Row(name, value, layer, *ends(pair), n=predictions.size, axes=axes)

    train = context.examples.targets("train")
    commonest = np.full(len(is_answered), np.bincount(train[train >= 0]).argmax())
    rows = [row("readable", commonest, None, baseline="majority")]
    probes = context.predicted(context.layers)
    for layer, lens_answer, probe in zip(context.layers, predicted, probes, strict=True):
        rows += [row("readable", lens_answer, layer), row("decodable", probe, layer)]
        if layer == context.model.n_layers and context.task.name == TASK:
            rows.append(row("used", lens_answer, None))
    n, of = int(is_answered.sum()), len(is_answered)
    notes = [f"{context.task.name}: {of - n} of {of} examples cannot be answered."]
    return Measured(rows, facts={"examples": n}, notes=notes if n < of else ())


def _form_answers(context: TaskContext) -> tuple[Ints, NDArray[np.bool_]]:
    """The number that each layer prefers (L, n), and which examples can be asked (n,)."""
    split, forms = context.examples.splits["test"], Forms.of(context.corpus.splits["train"])
    numbers, n = context.examples.classes, len(split.examples)
    words = np.full((n, len(numbers)), "", dtype=object)
    for i, (number, example) in enumerate(zip(split.sentence, split.examples, strict=True)):
        sentence = context.corpus.splits["test"][number]
        if sentence.lemmas and example.hide is not None:
            other_form = forms.other_form(sentence, example.hide)
            form = sentence.words[example.hide]
            words[i] = [form if name == example.label else other_form for name in numbers]
    answers = sorted({str(word) for word in words.ravel()} - {""})
    probabilities, has_token = answers_at(context, [{word: 1.0} for word in answers])
    column_of = {word: i for i, word in enumerate(answers) if has_token[i]}
    is_answered = np.array([all(word in column_of for word in pair) for pair in words])
    # Words without a column get any: their examples are not answered.
    columns = np.array([[column_of.get(word, 0) for word in pair] for pair in words])
    p_forms = np.take_along_axis(probabilities, columns[None], axis=2)
    return p_forms.argmax(2), is_answered & ~np.isnan(p_forms).any(axis=(0, 2))


def _label_answers(context: TaskContext) -> tuple[Ints, NDArray[np.bool_]]:
    """The label that each layer prefers (L, n), and which examples can be asked (n,)."""
    train = context.examples.splits["train"]
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    labels = context.examples.targets("train")
    for text, (start, _), label in zip(train.texts, train.spans, labels, strict=True):
        counts[text.words[start]][int(label)] += 1
    answers: list[dict[str, float]] = [{} for _ in context.examples.classes]
    for word, of_word in counts.items():
        for label, count in of_word.items():
            answers[label][word] = count / of_word.total()
    probabilities, _ = answers_at(context, answers)
    return probabilities.argmax(2), np.asarray(~np.isnan(probabilities).any(axis=(0, 2)))


def answers_at(
    context: TaskContext, answers: Sequence[Mapping[str, float]]
) -> tuple[Floats, list[bool]]:
    """Probabilities of answers at test examples (L, n, answers), and True for known answers."""
    from probes.extraction.reading.shards import kept_words, row_of_each_text
    from probes.extraction.reading.views import view_over
    from probes.families.behaviour.lens_collector import LensAnswers

    split = context.examples.splits["test"]
    view = view_over(split.texts, context.examples.view)
    collector = LensAnswers(context.layers, answers, after=context.examples.view == "cut")
    shard_arrays = list(context.read(view, collector))
    first = row_of_each_text([shard for shard, _ in shard_arrays], kept_words(view.texts))
    # Of a text with a hidden word, a single row is stored.
    rows = [
        first[view.index[text]] + (start - text.kept_span[0] if example.hide is None else 0)
        for text, example, (start, _) in zip(split.texts, split.examples, split.spans, strict=True)
    ]
    parts = np.concatenate([arrays["answers"].numpy() for _, arrays in shard_arrays])
    return parts[rows].swapaxes(0, 1), collector.has_token
