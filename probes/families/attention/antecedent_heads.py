"""A head as coreference resolver (Clark et al. 2019, section 4.3).

An anaphor is a mention of an entity that was mentioned before. Its candidates are the earlier
mentions in the same window of sentences, of entities that the document mentions again. The word
that heads the anaphor chooses the candidate to whose head it attends most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.data.sentence import Corpus, Sentence, windows
from probes.families.attention.heads import CHANCE
from probes.families.attention.links import (
    LinkQuestion,
    LinkQuestions,
    link_answers,
    link_arguments,
)
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import ANTECEDENTS
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.of_families.ratios import ratio_estimate
from probes.tasks.coreference import form_of
from probes.tasks.entities import head_of

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

WINDOW = 5
"""Sentences that are read together."""

ALL_ANAPHORS = "all anaphors"

GUESSES = "nearest", "same head word", CHANCE
"""Baselines: the nearest candidate; the nearest with the same head word, or else the nearest; any
candidate."""


def mention_counts(sentences: Iterable[Sentence]) -> Counter[tuple[str, str]]:
    """Number of whole mentions of each entity of each document."""
    return Counter(
        (s.document, m.entity) for s in sentences for m in s.mentions if m.entity and not m.unfit
    )


def anaphor_questions(corpus: Corpus) -> LinkQuestions:
    """The anaphors of each sentence of dev and test, in the window that ends with it."""
    questions = {}
    for split in ("dev", "test"):
        times, sentences = mention_counts(corpus.splits[split]), []
        for s in corpus.splits[split]:
            mentions = (m for m in s.mentions if not m.unfit and times[s.document, m.entity] > 1)
            sentences.append(replace(s, mentions=tuple(mentions)))
        questions[split] = [(window, [*anaphors(window)]) for window in windows(sentences, WINDOW)]
    return questions


def anaphors(window: Sentence) -> Iterator[LinkQuestion]:
    """The mentions in the last sentence that have an antecedent in the window.

    The fixed scores of an anaphor: which head words are those of an antecedent, then the scores
    of `GUESSES`.
    """
    words = [word.lower() for word in window.words]
    heads = [head_of(mention.span, window.heads) for mention in window.mentions]
    # In the order of head words, so that the last candidate is the nearest.
    mentions = sorted(zip(heads, window.mentions, strict=True), key=lambda pair: pair[0])
    for head, later in mentions:
        right: dict[int, bool] = {}  # two mentions may have one head word
        for candidate, mention in mentions:
            if mention.span[1] <= later.span[0]:
                right[candidate] = right.get(candidate, False) or mention.entity == later.entity
        if later.span[0] >= window.starts[-1] and any(right.values()):
            links = tuple(((head, head + 1), (candidate, candidate + 1)) for candidate in right)
            same_word = [right[candidate] for candidate in right if words[candidate] == words[head]]
            scores = [float(x) for x in right.values()]
            guesses = scores[-1], float([*scores, *same_word][-1]), sum(scores) / len(scores)
            yield LinkQuestion((ALL_ANAPHORS, form_of(later, window)), links, (*scores, *guesses))


@measurement(
    "antecedent_heads",
    needs=("mentions", "heads", "upos"),
    shows=(
        Pivot(
            "baselines",
            ("antecedent",),
            rows="feature",
            columns=("baseline",),
            where={"layer": None, "direction": None, "baseline": ...},
            note="How often rules that see no attention choose an antecedent.",
        ),
    ),
    **link_arguments(anaphor_questions),
)
def antecedent_heads(context: ModelContext) -> Measured:
    """Heads that choose the antecedent of a mention."""

    def value(question: LinkQuestion, weights: Floats) -> Floats:
        """Whether each head is right, then the guesses. Shape (layers, heads + guesses)."""
        right, guesses = np.split(np.array(question.fixed_scores), [len(question.links)])
        hits = right[weights[..., :-1].argmax(0)]
        return np.hstack([hits, np.tile(guesses, (len(hits), 1))])

    questions = anaphor_questions(context.corpus)
    answers = link_answers(context, questions, value)
    scored, rows = [], []
    for feature in answers.frequent:
        hits = answers.parts(feature, np.s_[:, : -len(GUESSES)])
        # Guesses are repeated in every layer; those of the first are read.
        guessed = [answers.parts(feature, np.s_[0, i]) for i in range(-len(GUESSES), 0)]
        axes, way, chance = {"feature": feature}, ("anaphor to antecedent",), guessed[2]["test"]
        scored.append(
            ScoredHeads(
                "antecedent", axes, way, hits, guessed[1], GUESSES[1], float(chance.scores[0])
            )
        )
        for name, parts in zip(GUESSES, guessed, strict=True):
            estimate = ratio_estimate(parts["test"], answers.heads.test)
            rows.append(Row.estimated("antecedent", estimate, axes={**axes, "baseline": name}))
    test = context.corpus.splits["test"]
    # The first mention of an entity is no anaphor.
    n_anaphors = sum(times - 1 for times in mention_counts(test).values())
    n_questions = sum(len(of_window) for _, of_window in questions["test"])
    n_unfit = sum(bool(mention.unfit) for s in test for mention in s.mentions)
    notes = [
        f"Test: {n_questions:,} of {n_anaphors:,} anaphors have an antecedent in the {WINDOW} "
        "sentences that are read together."
        + (f" Left out: {n_unfit:,} in parts, or empty." if n_unfit else "")
    ]
    return answers.findings(ANTECEDENTS, scored, rows, notes)
