"""Changed passes, and the model's own answers in them: its loss, and its agreement of verbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.measurements.verb_forms import TASK, Forms, Question, answered, spaced
from probes.records.row import Place, Row
from probes.records.values import ends
from probes.statistics.bootstrap import RESAMPLES, informative, means
from probes.statistics.partition import Partition
from probes.statistics.replicates import Spread, pooled, training_noise

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Sentence
    from probes.extraction.interventions import Intervention
    from probes.extraction.views import Text
    from probes.measurements.context import Context


class Variant(NamedTuple):
    """A pass of a model, of which there are several, numbered from 0.

    Attributes:
        interventions: what is changed; nothing in an untouched pass.
        layer: the lowest layer that is changed; 0 of an untouched pass.
        axes: says what is changed, in rows.
        against: the numbers of the passes that it is compared with, and the axes by which rows say
            so; none of an untouched pass. The number of a first draw stands for all.
        first_draw: the number of the first draw of the same change; None if it is the only one.
    """

    interventions: tuple[Intervention, ...] = ()
    layer: int = 0
    axes: Mapping[str, Place] = {}
    against: tuple[tuple[int, Mapping[str, Place]], ...] = ()
    first_draw: int | None = None

    @property
    def is_base(self) -> bool:
        """Whether it is only there to be compared with."""
        return not self.against


class Comparison(NamedTuple):
    """The variants of two changes, the second of which may be none; and what rows say of it.

    Attributes:
        changed, other: the numbers of their draws.
        share: of the variance between draws, what goes into the difference of the two means.
    """

    changed: tuple[int, ...]
    other: tuple[int, ...]
    layer: int
    axes: Mapping[str, Place]
    share: float

    @property
    def family(self) -> tuple[tuple[str, Place], ...]:
        """Comparisons of one family are tested together: all heads, layers, or shares of heads."""
        return tuple(sorted((k, x) for k, x in self.axes.items() if k not in ("head", "pruned")))

    def spread(self, scores: Sequence[float] | Mapping[int, float]) -> Spread | None:
        """How much other draws would change the difference; None where nothing was drawn.

        What is compared with draws counts as one draw more: the question is whether it does more
        than a change drawn at random does, not than the mean of five such changes.

        Args:
            scores: by number of the variant.
        """
        found = pooled([[scores[i] for i in each] for each in (self.changed, self.other)])
        return found and Spread(found.sd * self.share**0.5, found.df)


def comparisons(variants: Sequence[Variant]) -> list[Comparison]:
    """All that variants are compared with, all draws of a change at once."""
    draws: dict[int, tuple[int, ...]] = {}
    for number, its in enumerate(variants):
        first = number if its.first_draw is None else its.first_draw
        draws[first] = (*draws.get(first, ()), number)
    found = []
    for first, changed in draws.items():
        its = variants[first]
        for other, axes in its.against:
            drawn = [changed] + ([] if variants[other].is_base else [draws[other]])
            share = sum(1 / len(each) for each in drawn)
            every = {**its.axes, **axes}
            found.append(Comparison(changed, draws[other], its.layer, every, share))
    return found


LOSS, CLOZE = "loss_increase", "cloze_drop"


@dataclass(frozen=True)
class Questions:
    """What the model itself is asked.

    Attributes:
        words: one word of each sentence, whose surprisal is the loss.
        verbs: the right and the wrong form of verbs.
        of_word, of_verb: the cluster of each.
    """

    words: list[Text]
    verbs: list[Question]
    of_word: Ints
    of_verb: Ints
    partition: Partition


def questions(context: Context, sample: Ints) -> Questions:
    """One word of each sentence of a sample of test, drawn at random, and its verbs."""
    test, split = context.corpus.splits["test"], context.partition("test")
    words = one_word_each([test[i] for i in sample])
    verbs, of_verb = [], []
    for each in context.of_results:
        if each.task.name == TASK:
            forms, own = Forms.of(context.corpus.splits["train"]), each.examples.splits["test"]
            for number, example in zip(own.sentence, own.examples, strict=True):
                question = forms.question(test[number], example)
                if not isinstance(question, str) and number in sample:
                    verbs.append(question)
                    of_verb.append(split.of_sentence[number])
    return Questions(words, verbs, split.of_sentence[sample], np.array(of_verb, dtype=int), split)


def one_word_each(sentences: Sequence[Sentence]) -> list[Text]:
    """Written texts, in each of which one word, drawn at random, is kept."""
    from probes.extraction.views import Text

    rng, words = np.random.default_rng(0), []
    for sentence in sentences:
        stretches = sentence.written or spaced(sentence.words)
        full = [i for i, stretch in enumerate(stretches) if stretch.strip()]
        word = int(rng.choice(full))
        words.append(Text(tuple(stretches), (word, word + 1), written=True))
    return words


def own_answers(context: Context, variants: Sequence[Variant], asked: Questions) -> Iterator[Row]:
    """By how much the loss is higher, and agreement worse, in one pass than in another.

    Raises:
        NoHeadError: it has no language-model head.
    """
    from probes.extraction.shards import Shard
    from probes.extraction.token_scores import TokenScores, scored
    from probes.extraction.views import view_over

    texts = [*asked.words, *(text for each in asked.verbs for text in each)]
    view = view_over(texts, "written")
    shard = Shard(0, np.arange(len(view.texts)), view.texts)
    changes = [variant.interventions for variant in variants]
    losses: dict[int, Floats] = {}
    rights: dict[int, Floats] = {}
    for number, arrays in context.read_changed(view, TokenScores(), changes):
        parts = {name: array.numpy() for name, array in arrays.items()}
        found = scored(view, [shard], [parts])
        surprisal = found.surprisal("within_word")
        losses[number] = surprisal[[found.place(text) for text in asked.words]]
        answers = answered(found, asked.verbs)
        alike, rights[number] = answers.comparable, answers.right[answers.comparable]
    for each in comparisons(variants):
        pairs = list(product(each.changed, each.other))
        for name, given, sign, cluster in (
            (LOSS, losses, 1, asked.of_word),
            (CLOZE, rights, -1, asked.of_verb[alike]),
        ):
            if len(cluster):
                values = sign * np.mean([given[i] - given[j] for i, j in pairs], axis=0)
                spread = each.spread({i: float(x.mean()) for i, x in given.items()})
                drawn = f"{name} {each.axes}"
                noise = (
                    training_noise(drawn, [each.layer], *spread, RESAMPLES)[0] if spread else 0.0
                )
                (its,) = means(values[:, None], cluster, asked.partition.n, "documents", noise)
                low, high = ends(informative(its.interval))
                yield Row(name, its.value, each.layer, low, high, n=len(values), axes=each.axes)
