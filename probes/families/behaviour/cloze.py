"""Cloze agreement (Goldberg 2019): does the model itself prefer the right form of a hidden verb?

The examples are those of the task `agreement`. The probe of every layer reads a verb's number from
a vector; the model fills in the verb. Probes are trained with balanced classes, but the model may
prefer one number whatever the sentence says. So the model's log-odds are cut at a threshold
fitted on train before the two are compared, and both numbers count alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import NUMBERS, TASK, Forms, Question, VerbAnswers, answers_of
from probes.families.behaviour import WordOptions
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Level, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, informative
from probes.statistics.of_families.ratios import RatioParts, ratio_estimate
from probes.statistics.of_families.two_answers import (
    TwoAnswers,
    fitted_threshold,
    p_values_of_answers,
)
from probes.tasks.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats, Ints
    from probes.measurements.context import TaskContext

_BY_LAYER = {
    "decodable": "one",
    "both": "both",
    "decodable_only": "one_only",
    "used_only": "other_only",
    "neither": "neither",
    "error_consistency": "kappa",
}
"""Name in `agreement_rates` of each metric of probe and model."""

_ALIKE = "both numbers alike"

_TRAINING = 1000
"""Number of random training verbs on which the threshold is fitted."""


def _reason_without_cloze(task: Task, probe: ProbeSpec, level: Level) -> str:
    """The reason for not measuring a task; only `agreement` hides a word with two forms."""
    return "" if task.name == TASK else f"only {TASK} hides a word that has another form"


@measurement(
    "cloze",
    options=WordOptions,
    after="scores",
    version=3,
    needs=("lemmas",),
    head="needed",
    variant_for_items="completion",
    shares_arrays=True,
    also_for_twins=True,
    missing=_reason_without_cloze,
    shows=(
        Pivot(
            "the model's own answers, %",
            ("cloze_accuracy",),
            rows="group",
            columns=("baseline", "threshold", "tokens"),
            places={1: "forms of one token", ("threshold", "train"): "threshold of train"},
            below=("answer_threshold",),
            note="Percentage of verbs whose right form is more probable than the other number.",
        ),
        Pivot(
            "decodable and used, %",
            (*_BY_LAYER, "decodable_less_used"),
            columns=("metric",),
            note="Decodable: the probe is right; used: the model is right, with the threshold of "
            "train. Same verbs; both numbers count alike. κ: agreement beyond chance.",
        ),
        Lines(
            "decodable_and_used",
            "decodable",
            title="agreement: decodable in layers, and used",
            note="Level: the model's own answers on the same verbs.",
            levels={"used": "used"},
        ),
    ),
)
def cloze(context: TaskContext) -> Measured:
    """Agreement: the model's own answers, beside those of the probes of layers.

    Rows of test: ``cloze_accuracy`` overall, by the ``group`` of attractors, by the verb's number
    and as the mean over both numbers. Each is repeated for the ``baseline`` of the commoner number,
    and with the ``threshold`` fitted on ``train``. Examples whose two forms have one token each
    have ``tokens`` 1. ``answer_threshold`` is that threshold: log p(singular) − log p(plural), in
    nats, above which the answer is singular.

    The other metrics use the threshold and are means over both numbers, so that ``used`` and
    ``decodable`` are balanced accuracies: ``used``; by layer ``decodable``, for the probe on the
    same examples; the shares ``both``, ``decodable_only``, ``used_only`` and ``neither``;
    ``decodable_less_used`` with p, corrected over layers; and ``error_consistency``, agreement of
    errors beyond chance (κ; Geirhos et al. 2020, eq. 3), computed within each number.

    Arrays: ``used`` (examples,), 1 where the model prefers the right form, ½ for a tie, NaN for
    excluded examples; ``log_odds`` of the right form.

    Raises:
        NotServedError: no test example has another form in the training split, or no training
            example of one number can be used.
    """
    split = context.examples.splits["test"]
    forms = Forms.of(context.corpus.splits["train"])
    verb_questions = _questions(context, forms, "test")
    reasons = Counter(x for x in verb_questions if isinstance(x, str))
    if not (questions := [x for x in verb_questions if not isinstance(x, str)]):
        raise NotServedError("no verb of test has a form of the other number in train")
    is_compared = np.array([not isinstance(x, str) for x in verb_questions])
    all_answers = verb_answers(context, questions)
    # The longer of two forms is less likely for that reason alone.
    comparable = all_answers.comparable
    if not comparable.all():
        reasons["with forms of different numbers of tokens"] = int((~comparable).sum())
    if not comparable.any():
        raise NotServedError("no verb of test has two forms of as many tokens")
    is_compared[is_compared] = comparable
    answers = VerbAnswers(all_answers.log_odds[comparable], all_answers.n_tokens[comparable])
    preferred, one_token = answers.right, (answers.n_tokens == 1).all(axis=1)
    part, sentence = split.partition, split.sentence[is_compared]

    def parts(values: Floats, some: NDArray[np.bool_] | slice = slice(None)) -> RatioParts:
        return RatioParts.of_examples(values[some], sentence[some], len(part.of_sentence))

    def row(name: str, values: RatioParts, layer: int | None = None, **axes: Any) -> Row:
        estimate = ratio_estimate(values, part)
        return Row(name, estimate.value, layer, *ends(estimate.interval), n=values.n, axes=axes)

    gold, train = (context.examples.targets(name) for name in ("test", "train"))
    commonest = gold == np.bincount(train[train >= 0]).argmax()
    majority = commonest[is_compared].astype(float)
    singular = gold[is_compared] == context.examples.classes.index(NUMBERS[0])
    threshold, n_fitted = _threshold_of_train(context, forms)
    # Log-odds are those of the right form, but the threshold is one of singular against plural.
    less = answers.log_odds - np.where(singular, threshold, -threshold)
    answer_sets: list[tuple[dict[str, Any], Floats]] = [
        ({}, preferred),
        ({"baseline": "majority"}, majority),
        ({"threshold": "train"}, answers._replace(log_odds=less).right),
    ]
    rows = [row("cloze_accuracy", parts(x), **axes) for axes, x in answer_sets]
    rows.append(Row("answer_threshold", threshold, split="train", n=n_fitted))
    examples = [x for x, is_used in zip(split.examples, is_compared, strict=True) if is_used]
    groups = [(*x.groups, f"verb {x.label}") for x in examples]
    for name in sorted({name for names in groups for name in names}):
        some = np.array([name in names for names in groups])
        rows += [
            row("cloze_accuracy", parts(x, some), group=name, **axes) for axes, x in answer_sets
        ]
    if one_token.any():
        rows.append(row("cloze_accuracy", parts(preferred, one_token), tokens=1))
    right = (context.predicted(context.layers) == gold)[:, is_compared].astype(float)
    decodable = dict(zip(context.layers, right, strict=True))
    rows += _balanced_rows(answer_sets, decodable, singular, part.of_sentence[sentence], part.n)
    used, log_odds = np.full((2, len(verb_questions)), np.nan)
    used[is_compared], log_odds[is_compared] = preferred, answers.log_odds
    facts = {"examples": len(preferred)} | {f"left out, {x}": n for x, n in reasons.items()}
    notes = [f"{n} of {len(verb_questions)} verbs are left out: {x}." for x, n in reasons.items()]
    if not context.corpus.splits["test"][split.sentence[0]].written:
        notes.append("The corpus does not say how words are spaced: each has a space before it.")
    return Measured(rows, {"used": used, "log_odds": log_odds}, facts=facts, notes=notes)


def _balanced_rows(
    answer_sets: Sequence[tuple[dict[str, Any], Floats]],
    decodable: Mapping[int, Floats],
    singular: NDArray[np.bool_],
    cluster: Ints,
    n_clusters: int,
) -> Iterator[Row]:
    """Rows in which both numbers count alike: the model alone, then beside the probe of each layer.

    Args:
        answer_sets: axes, and 1 where an answer is right; the model with the threshold comes last.
        decodable: 1 where the probe of a layer is right.
    """
    for axes, right in answer_sets:
        two = TwoAnswers(right, right, singular, cluster, n_clusters)
        yield _answer_row("cloze_accuracy", two, "other", group=_ALIKE, **axes)
    used = answer_sets[-1][1]
    two = TwoAnswers(used, used, singular, cluster, n_clusters)
    yield _answer_row("used", two, "other")
    layers = {x: TwoAnswers(y, used, singular, cluster, n_clusters) for x, y in decodable.items()}
    tests = p_values_of_answers(list(layers.values()))
    for (layer, two), p in zip(layers.items(), tests, strict=True):
        yield from (_answer_row(name, two, of, layer) for name, of in _BY_LAYER.items())
        yield _answer_row("decodable_less_used", two, "difference", layer, p)


def verb_answers(context: TaskContext, questions: Sequence[Question]) -> VerbAnswers:
    """The model's answers to questions."""
    from probes.extraction.reading.token_scores import TokenScores, joined_token_scores
    from probes.extraction.reading.views import view_over

    view = view_over((text for question in questions for text in question), "written")
    shard_arrays = list(context.read(view, TokenScores()))
    parts = [{name: x.numpy() for name, x in arrays.items()} for _, arrays in shard_arrays]
    scores = joined_token_scores(view, [shard for shard, _ in shard_arrays], parts)
    return answers_of(scores.with_word_ends() if context.options.word_ends else scores, questions)


def _questions(context: TaskContext, forms: Forms, split: str) -> list[Question | str]:
    """A question for each example of a split, or the reason why there is none."""
    part, sentences = context.examples.splits[split], context.corpus.splits[split]
    return [
        forms.question(sentences[number], example)
        for number, example in zip(part.sentence, part.examples, strict=True)
    ]


def _threshold_of_train(context: TaskContext, forms: Forms) -> tuple[float, int]:
    """The threshold on log p(singular) − log p(plural), and the number of verbs it is fitted on."""
    questions = _questions(context, forms, "train")
    some = [i for i, x in enumerate(questions) if not isinstance(x, str)]
    some = [some[i] for i in np.random.default_rng(0).permutation(len(some))[:_TRAINING]]
    answers = verb_answers(context, [x for i in some if not isinstance(x := questions[i], str)])
    examples = context.examples.splits["train"].examples
    singular = np.array([examples[i].label == NUMBERS[0] for i in some], dtype=bool)
    log_odds = np.where(singular, answers.log_odds, -answers.log_odds)
    comparable = answers.comparable
    for of_number, name in zip((singular, ~singular), NUMBERS, strict=True):
        if not (of_number & comparable).any():
            raise NotServedError(f"no verb of train with Number={name} has two forms to compare")
    return fitted_threshold(log_odds[comparable], singular[comparable]), int(comparable.sum())


def _answer_row(
    name: str,
    two: TwoAnswers,
    of: str,
    layer: int | None = None,
    p: float | None = None,
    **axes: Any,
) -> Row:
    value, pair = two.estimate(of)
    low, high = ends(informative(bounds(pair)))
    return Row(name, value, layer, low, high, n=len(two.one), p=p, axes=axes)
