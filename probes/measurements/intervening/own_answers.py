"""The model's own answers in changed passes: its loss, and its agreement of verbs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from probes.measurements.intervening.variants import Variant, comparisons
from probes.measurements.verb_forms import TASK, Forms, Question, answered, spaced
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.bootstrap import informative, means
from probes.statistics.partition import Partition

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Sentence
    from probes.extraction.views import Text
    from probes.measurements.context import Context

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
        differences = (
            (LOSS, losses[each.changed] - losses[each.other], asked.of_word),
            (CLOZE, rights[each.other] - rights[each.changed], asked.of_verb[alike]),
        )
        for name, values, cluster in differences:
            if len(values):
                (its,) = means(values[:, None], cluster, asked.partition.n, "documents")
                low, high = ends(informative(its.interval))
                yield Row(name, its.value, each.layer, low, high, n=len(values), axes=each.axes)
