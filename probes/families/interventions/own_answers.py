"""Changed passes, and the model's own answers in them: loss and agreement of verbs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.verb_forms import TASK, Forms, Question, answers_of, spaced
from probes.records.row import AxisValue, Row
from probes.records.values import ends
from probes.statistics.bootstrap import RESAMPLES, bounds, informative, summed
from probes.statistics.metrics import quantity
from probes.statistics.of_families.ratios import RatioParts, ratio_intervals
from probes.statistics.partition import Partition
from probes.statistics.replicates import Spread, pooled, training_noise
from probes.statistics.significance import smallest_drop
from probes.statistics.sums import sparse_matrix

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Sentence
    from probes.extraction.changing.interventions import Intervention
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.extraction.reading.views import Text
    from probes.measurements.context import ModelContext


class Variant(NamedTuple):
    """One of several passes of a model, which are numbered from 0.

    Attributes:
        interventions: changes of the pass; empty if it is untouched.
        layer: lowest changed layer; 0 if untouched.
        axes: description of the change in rows.
        against: passes to compare with, as number and axes of the comparison; empty if untouched.
            The number of a first draw stands for all draws.
        first_draw: number of the first draw of the same change; None if there is only one.
    """

    interventions: tuple[Intervention, ...] = ()
    layer: int = 0
    axes: Mapping[str, AxisValue] = {}
    against: tuple[tuple[int, Mapping[str, AxisValue]], ...] = ()
    first_draw: int | None = None

    @property
    def is_base(self) -> bool:
        """Whether the pass only serves as a reference."""
        return not self.against


# The `repr` of a comparison seeds noise: another name of a field would change numbers.
class Comparison(NamedTuple):
    """Two sets of passes to compare: draws of a change, and of another change or untouched.

    Attributes:
        changed, other: numbers of the passes.
        share: share of the variance between draws that enters the difference of the two means.
    """

    changed: tuple[int, ...]
    other: tuple[int, ...]
    layer: int
    axes: Mapping[str, AxisValue]
    share: float

    @property
    def family(self) -> tuple[tuple[str, AxisValue], ...]:
        """Axes shared by comparisons that are tested together: all heads, layers, or shares."""
        within = "head", "percent_disabled"
        return tuple(sorted((k, x) for k, x in self.axes.items() if k not in within))

    def spread(self, scores: Sequence[float] | Mapping[int, float]) -> Spread | None:
        """Variation of the difference over other draws; None if nothing was drawn.

        A change compared with draws counts as one more draw. The question is if it has more effect
        than one random change, not than the mean of five.

        Args:
            scores: scores by number of the pass.
        """
        return pooled([[scores[i] for i in x] for x in (self.changed, self.other)], self.share)


def comparisons(variants: Sequence[Variant]) -> list[Comparison]:
    """All comparisons of the passes, with all draws of a change in one."""
    draws: dict[int, tuple[int, ...]] = {}
    for number, variant in enumerate(variants):
        first = number if variant.first_draw is None else variant.first_draw
        draws[first] = (*draws.get(first, ()), number)
    compared = []
    for first, changed in draws.items():
        variant = variants[first]
        for reference, axes in variant.against:
            sides = [changed] + ([] if variants[reference].is_base else [draws[reference]])
            share = sum(1 / len(x) for x in sides)
            all_axes = {**variant.axes, **axes}
            compared.append(Comparison(changed, draws[reference], variant.layer, all_axes, share))
    return compared


NO_HEAD = "The model's own answers are left out: it has no language-model head."

ANSWERS = LOSS, CLOZE, SMALLEST, LOG_ODDS = (
    "loss_increase",
    "cloze_drop",
    "smallest_drop",
    "log_odds_drop",
)

_MASKED = 0.15
"""Share of words to mask at once for a masked model, as in training."""


@dataclass(frozen=True)
class Questions:
    """Texts and verbs for the model's own answers.

    Attributes:
        texts: sentences as written.
        words: places of the words whose surprisal is the loss, by text.
        verbs: texts with the right and the wrong form of each verb.
        of_text, of_verb: number in the split of each text's and each verb's sentence.
        split: name of the split.
    """

    texts: Sequence[Text]
    words: Mapping[Text, Ints]
    verbs: Sequence[Question]
    of_text: Ints
    of_verb: Ints
    partition: Partition
    split: str


def questions_in(context: ModelContext, split: str, sample: Ints) -> Questions:
    """Words of a sample of sentences; for test also all verbs of the split."""
    sentences, verbs, of_verb = context.corpus.splits[split], [], []
    for scored in context.tasks if split == "test" else ():
        if scored.task.name == TASK:
            forms = Forms.of(context.corpus.splits["train"])
            examples = scored.examples.splits[split]
            for number, example in zip(examples.sentence, examples.examples, strict=True):
                question = forms.question(sentences[number], example)
                if not isinstance(question, str):
                    verbs.append(question)
                    of_verb.append(number)
    texts, words = loss_words([sentences[i] for i in sample], context.model.causal)
    some = [i for i, text in enumerate(texts) if len(words[text])]
    numbers = sample[some], np.array(of_verb, dtype=int)
    partition = context.partition(split)
    return Questions([texts[i] for i in some], words, verbs, *numbers, partition, split)


def loss_words(sentences: Sequence[Sentence], causal: bool) -> tuple[list[Text], dict[Text, Ints]]:
    """Written texts, and the places of the words whose surprisal is the loss.

    Only words with a letter count. A causal model scores all of them, a masked model a random
    sample with at least one word per text.
    """
    from probes.extraction.reading.views import Text

    rng, texts, words = np.random.default_rng(0), [], {}
    for sentence in sentences:
        stretches = tuple(sentence.written or spaced(sentence.words))
        text = Text(stretches, (0, len(stretches)), written=True)
        texts.append(text)
        if text not in words:
            with_letter = [i for i, x in enumerate(stretches) if any(map(str.isalpha, x))]
            size = len(with_letter) if causal else math.ceil(_MASKED * len(with_letter))
            words[text] = np.sort(rng.permutation(np.array(with_letter, dtype=int))[:size])
    return texts, words


def own_answers(
    context: ModelContext, variants: Sequence[Variant], questions: Questions
) -> Iterator[Row]:
    """Increase of loss, and drop of agreement, from one pass to another.

    Raises:
        NoHeadError: the model has no language-model head.
    """
    from probes.extraction.reading.token_scores import LossOfWords, TokenScores

    compared, n = comparisons(variants), len(questions.partition.of_sentence)

    def rows(
        name: str, values: Sequence[Floats], sentence: Ints, counts: Ints | Floats
    ) -> Iterator[Row]:
        sums = summed(sparse_matrix(drops(values).T), sentence, n).toarray()
        parts = RatioParts(sums, np.bincount(sentence, counts, n).astype(np.float64))
        scores, noise = [float(x.sum() / counts.sum()) for x in values], None
        if spreads := {i: x for i, change in enumerate(compared) if (x := change.spread(scores))}:
            noise = np.zeros((len(compared), RESAMPLES))
            for i, spread in spreads.items():
                (noise[i],) = training_noise(f"{name} {compared[i]}", [0], *spread, RESAMPLES)
        pairs = ratio_intervals(parts, questions.partition, noise, quantity(name).bounds)
        estimates = zip(parts.scores.tolist(), pairs, strict=True)
        for change, (value, pair) in zip(compared, estimates, strict=True):
            between = ends(informative(bounds(pair)))
            yield Row(
                name, value, change.layer, *between, questions.split, parts.n, axes=change.axes
            )

    def drops(values: Sequence[Floats]) -> Floats:
        """Before minus after; for draws, the mean over all pairs."""
        return np.stack(
            [
                np.mean([values[j] - values[i] for i in x.changed for j in x.other], axis=0)
                for x in compared
            ]
        )

    if questions.texts:
        losses, collector = [], LossOfWords(questions.words)
        for pass_scores in _scores_by_pass(context, variants, questions.texts, collector):
            order = [pass_scores.view.index[text] for text in questions.texts]
            losses.append(np.add.reduceat(pass_scores.within_word, pass_scores.first)[order])
            # Each pass reads the same texts, so any of them has their numbers of pieces.
            pieces = np.add.reduceat(pass_scores.pieces, pass_scores.first)[order]
        yield from rows(LOSS, losses, questions.of_text, pieces)
    texts = [text for x in questions.verbs for text in x]
    scores = _scores_by_pass(context, variants, texts, TokenScores()) if texts else ()
    answers = [answers_of(pass_scores.with_word_ends(), questions.verbs) for pass_scores in scores]
    if answers and (comparable := answers[0].comparable).any():
        of_verb, ones = questions.of_verb[comparable], np.ones(comparable.sum())
        right = [x.right[comparable] for x in answers]
        yield from rows(CLOZE, right, of_verb, ones)
        yield from rows(LOG_ODDS, [x.log_odds[comparable] for x in answers], of_verb, ones)
        for change, values in zip(compared, drops(right), strict=True):
            if len(change.changed) > 1 or len(change.other) > 1:
                continue  # the formula does not include the variance of draws
            churn = float(np.abs(values).mean() - abs(values.mean()))
            value = smallest_drop(churn, len(values))
            yield Row(SMALLEST, value, change.layer, n=len(values), axes=change.axes)


def _scores_by_pass(
    context: ModelContext, variants: Sequence[Variant], texts: Iterable[Text], collector: Collector
) -> Iterator[ScoredStretches]:
    """The collector's scores in each pass, in order."""
    from probes.extraction.reading.shards import Shard
    from probes.extraction.reading.token_scores import joined_token_scores
    from probes.extraction.reading.views import view_over

    view = view_over(texts, "written")
    shard = Shard(0, np.arange(len(view.texts)), view.texts)
    changes = [variant.interventions for variant in variants]
    for _, arrays in context.read_changed(view, collector, changes):
        parts = {name: array.numpy() for name, array in arrays.items()}
        yield joined_token_scores(view, [shard], [parts])
