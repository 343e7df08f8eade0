"""Attention of verbs and reflexives to their subject, or to another noun (Lin et al. 2019).

The other noun is the last one between the subject and the verb. It is an *attractor* if it has
another number. CLAMS has no annotation; the rule here is for its English sentences, all of whose
nouns follow *the*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.data.sentence import Corpus, Sentence
from probes.families.attention.links import (
    LinkQuestion,
    LinkQuestions,
    link_answers,
    link_arguments,
)
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import SUBJECTS
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.tasks.agreement import NOUNS, agreement, conjuncts, number_of
from probes.tasks.task import Excluded

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

PARADIGMS = {
    **dict.fromkeys(("prep_", "subj_rel", "reflexives_across"), 0),
    **dict.fromkeys(("obj_rel_across", "obj_rel_no_comp_across"), 0),
    **dict.fromkeys(("obj_rel_within", "obj_rel_no_comp_within", "reflexive_sent_comp"), -1),
}
"""Which of two nouns is the subject, by the beginnings of the names of CLAMS's paradigms."""

BOTH_ORDERS = "obj_rel", "reflexive"
"""Beginnings of those that have as many sentences of either order."""

NOUN_KINDS = "same number", "attractor"

LEAST = float(np.finfo(np.float32).tiny)
"""A weight of 0 counts as this, so that confusion is finite."""


def verb_questions(corpus: Corpus) -> LinkQuestions:
    """The verbs of the task `agreement` that agree with their subject."""
    return {x: [(s, [*verbs(s)]) for s in corpus.splits[x]] for x in ("dev", "test")}


def verbs(sentence: Sentence) -> Iterator[LinkQuestion]:
    """The verbs of a sentence with another noun between them and their subject."""
    s = sentence
    for verb in agreement(s):
        if isinstance(verb, Excluded) or "attractors" not in "".join(verb.groups):
            continue
        subject, (index, _) = int(verb.cue or 0), verb.span
        between = range(min(subject, index) + 1, max(subject, index))
        nouns = [
            i
            for i in sorted(between, key=lambda i: abs(index - i))
            if s.upos[i] in NOUNS and i not in conjuncts(s, subject) and number_of(s.feats[i])
        ]
        if nouns:
            attracts = number_of(s.feats[nouns[0]]) != verb.label
            yield noun_question(index, subject, nouns[0], [f"verb, {NOUN_KINDS[attracts]}"])


def noun_question(index: int, subject: int, other: int, features: Sequence[str]) -> LinkQuestion:
    """The question whether a word attends to its subject or to another noun."""
    links = tuple(((index, index + 1), (noun, noun + 1)) for noun in (subject, other))
    return LinkQuestion(tuple(features), links)


def pair_questions(corpus: Corpus) -> LinkQuestions:
    """The grammatical sentences of CLAMS; those of every other subject, by name, are test.

    Sentences with the subject last are in groups of both orders alone. A head that attends to the
    first of two nouns is right in half of these.
    """
    sentences: dict[tuple[int | str, ...], tuple[str, Sentence, LinkQuestion]] = {}
    for item in corpus.items:
        language, _, paradigm = item.paradigm.partition(".")
        order = next((x for name, x in PARADIGMS.items() if paradigm.startswith(name)), None)
        if language != "en" or order is None:
            continue
        words, bad = ("".join(item.texts[x]).split() for x in ("good", "bad"))
        index = next(i for i, (x, y) in enumerate(zip(words, bad, strict=True)) if x != y)
        # The noun of *the taxi driver*, the only compound, is its second word.
        nouns = [i + 1 + (words[i + 1] == "taxi") for i in range(index) if words[i] == "the"]
        subject, other = nouns[order], nouns[-1 - order]
        kind = "reflexive" if paradigm.startswith("reflexive") else "verb"
        attracts = words[subject].endswith("s") != words[other].endswith("s")
        features = [f"{kind}, {NOUN_KINDS[attracts]}"] * (order == 0)
        features += [f"{kind}, both orders"] * (attracts and paradigm.startswith(BOTH_ORDERS))
        # Resampled by both nouns: their sentences differ in little else.
        one, two = (words[i].removesuffix("s") for i in (subject, other))
        sentence = Sentence(item.id, "en", tuple(words), document=f"{one} {two}")
        # A reflexive of either gender is wrong, so that sentences come twice.
        question = noun_question(index, subject, other, features)
        sentences.setdefault((index, *words), (one, sentence, question))
    subjects = sorted({subject for subject, *_ in sentences.values()})
    return {
        split: [(s, [q]) for x, s, q in sentences.values() if subjects.index(x) % 2 == i]
        for i, split in enumerate(("dev", "test"))
    }


def share_and_confusion(question: LinkQuestion, weights: Floats) -> Floats:
    """Subject's share of the attention to both nouns, and confusion, in bits.

    Confusion is the binary cross-entropy of this share (Lin et al. 2019, section 4). NaN if one of
    both cannot be seen.

    Args:
        weights: shape (2, layers, heads + 1).

    Returns:
        shape (2, layers, heads + 1).
    """
    if not weights[..., -1].all():
        return np.full_like(weights, np.nan)
    floored = np.maximum(weights, LEAST)
    share: Floats = floored[0] / floored.sum(0)
    return np.stack([share, -np.log2(share)])


subject_measurement = partial(
    measurement,
    shows=(
        Pivot(
            "mean over heads",
            ("confusion",),
            columns=("feature",),
            where={"baseline": [None, "uniform"]},
            mean="head",
            note="Confusion, in bits: −log₂ of the subject's share of the attention to subject and "
            "other noun, which is 1 if both get the same.",
        ),
    ),
)


@subject_measurement(
    "subject_heads", needs=("upos", "feats", "heads", "deprels"), **link_arguments(verb_questions)
)
def subject_heads(context: ModelContext) -> Measured:
    """Attention of verbs to their subject, beside attention to the noun before the verb."""
    return subject_findings(context, verb_questions(context.corpus))


@subject_measurement("subject_heads_of_pairs", needs=("pairs",), **link_arguments(pair_questions))
def subject_heads_of_pairs(context: ModelContext) -> Measured:
    """Attention of verbs and reflexives to their subject in English CLAMS."""
    return subject_findings(context, pair_questions(context.corpus))


def subject_findings(context: ModelContext, questions: LinkQuestions) -> Measured:
    """Shares and confusion of all heads, and the heads with the greatest share on dev."""
    answers = link_answers(context, questions, share_and_confusion)
    heads, scored = answers.heads, []
    rows: list[Row] = []
    for feature in answers.frequent:
        axes = {"feature": feature}
        share, uniform = (answers.parts(feature, x) for x in (np.s_[0, :, :-1], np.s_[0, 0, -1]))
        way = ("verb to noun",)
        scored.append(ScoredHeads("subject_share", axes, way, share, uniform, "uniform", 0.5))
        rows += heads.rows("confusion", answers.parts(feature, np.s_[1, :, :-1])["test"], axes)
        bits = answers.parts(feature, np.s_[1, :, -1])["test"].scores
        for layer, value in zip(heads.layers, bits.tolist(), strict=True):
            rows.append(Row("confusion", value, layer, axes={**axes, "baseline": "uniform"}))
    return answers.findings(SUBJECTS, scored, rows)
