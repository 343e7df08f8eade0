"""Attention of verbs and reflexives to their subject, or to another noun (Lin et al. 2019).

The other noun is the last one between the subject and the verb. It is an *attractor* if it has
another number. CLAMS has no annotation; the rule here is for its English sentences, all of whose
nouns follow *the*.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.data.sentence import Corpus, Sentence
from probes.families.attention.links import Asked, Question, answers, of_links
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import SUBJECTS
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.tasks.agreement import NOUNS, agreement, conjuncts, number_of
from probes.tasks.task import Example

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

ATTRACTED = "verb, attractor", "reflexive, attractor"

PARADIGMS = tuple(
    f"en.{name}"
    for name in ("prep_", "subj_rel", "obj_rel_across", "obj_rel_no_comp_across", "reflexives_ac")
)
"""Beginnings of the names of CLAMS's paradigms in which the first noun is the subject, and another
one stands between it and the verb or the reflexive."""

LEAST = 1e-9
"""Smaller weights count as this, so that confusion is finite."""


def of_treebank(corpus: Corpus) -> Asked:
    """The verbs of the task `agreement` that agree with their subject."""
    return {x: [(s, [*verbs(s)]) for s in corpus.splits[x]] for x in ("dev", "test")}


def verbs(sentence: Sentence) -> Iterator[Question]:
    """The verbs of a sentence with another noun between them and their subject."""
    s = sentence
    for verb in agreement(s):
        if not isinstance(verb, Example) or verb.groups[:1] not in (
            ("0 attractors",),
            ("1+ attractors",),
        ):
            continue
        subject, (place, _) = int(verb.cue or 0), verb.span
        between = range(subject + 1, place) if subject < place else range(subject - 1, place, -1)
        nouns = set(range(len(s))) - conjuncts(s, subject)
        numbers = [(i, number_of(s.feats[i])) for i in between if i in nouns and s.upos[i] in NOUNS]
        if numbers := [x for x in numbers if x[1]]:
            yield of_two_nouns("verb", place, subject, numbers[-1][0], numbers[-1][1] != verb.label)


def of_two_nouns(
    kind: str, place: int, subject: int, other: int, attracts: bool, paradigm: str = ""
) -> Question:
    """The question whether a word attends to its subject or to another noun."""
    features = (f"{kind}, {'attractor' if attracts else 'same number'}",)
    links = tuple(((place, place + 1), (noun, noun + 1)) for noun in (subject, other))
    return Question((*features, *[paradigm] * (attracts and bool(paradigm))), links)


def of_pairs(corpus: Corpus) -> Asked:
    """The grammatical sentences of CLAMS; those of every other subject, by name, are test."""
    sentences: dict[str, tuple[str, Sentence, Question]] = {}
    for item in corpus.items:
        if not item.paradigm.startswith(PARADIGMS):
            continue
        words, bad = ("".join(item.texts[x]).split() for x in ("good", "bad"))
        place = next(
            i for i, (one, other) in enumerate(zip(words, bad, strict=False)) if one != other
        )
        nouns = [i + 1 + (words[i + 1] == "taxi") for i in range(place) if words[i] == "the"]
        subject, other = nouns[0], nouns[-1]
        names = [words[i].removesuffix("s") for i in (subject, other)]
        paradigm = item.paradigm.partition(".")[2]
        kind = "reflexive" if paradigm.startswith("reflexive") else "verb"
        attracts = words[subject].endswith("s") != words[other].endswith("s")
        asked = of_two_nouns(kind, place, subject, other, attracts, paradigm)
        # Resampled by subject and noun: their sentences differ in little else.
        sentence = Sentence(item.id, "en", tuple(words), document=" ".join(names))
        sentences.setdefault(" ".join(words), (names[0], sentence, asked))
    subjects = sorted({subject for subject, *_ in sentences.values()})
    return {
        split: [(s, [asked]) for x, s, asked in sentences.values() if subjects.index(x) % 2 == i]
        for i, split in enumerate(("dev", "test"))
    }


def share_and_confusion(question: Question, weights: Floats) -> Floats:
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


measure = partial(
    measurement,
    views=(
        Pivot(
            "mean over heads",
            ("confusion",),
            columns=("feature",),
            where={"baseline": [None, "uniform"]},
            mean="head",
            note="Confusion, in bits: −log₂ of the subject's share of the attention to subject and "
            "other noun, which is 1 if both get the same.",
        ),
        Cells(
            "subject_heads",
            "confusion",
            across="head",
            title="Confusion of subject and attractor",
            note="Bits; 1 if a head attends to both alike.",
            where={"feature": ATTRACTED, "baseline": None},
            apart="feature",
        ),
    ),
)


@measure("subject_heads", needs=("upos", "feats", "heads", "deprels"), **of_links(of_treebank))
def subject_heads(context: ModelContext) -> Found:
    """Attention of verbs to their subject, beside attention to the noun before the verb.

    Raises:
        NotServedError: there are too few verbs.
    """
    return of_nouns(context, of_treebank(context.corpus))


@measure("subject_heads_of_pairs", needs=("pairs",), **of_links(of_pairs))
def subject_heads_of_pairs(context: ModelContext) -> Found:
    """Attention of verbs and reflexives to their subject in English CLAMS.

    Raises:
        NotServedError: the corpus has no such pairs.
    """
    return of_nouns(context, of_pairs(context.corpus))


def of_nouns(context: ModelContext, asked: Asked) -> Found:
    """Shares and confusion of all heads, and the heads with the greatest share on dev."""
    answered = answers(context, asked, share_and_confusion)

    def scored(feature: str) -> Iterator[ScoredHeads]:
        share = answered.parts(feature, np.s_[0, :, :-1])
        uniform = answered.parts(feature, np.s_[0, 0, -1])
        axes = {"feature": feature}
        yield ScoredHeads("subject_share", axes, ("verb to noun",), share, uniform, "uniform", 0.5)

    def rows(feature: str) -> Iterator[Row]:
        heads, axes = answered.heads, {"feature": feature}
        confusion, uniform = (
            answered.parts(feature, x)["test"] for x in (np.s_[1, :, :-1], np.s_[1, :, -1])
        )
        yield from heads.rows("confusion", confusion, axes)
        for layer, bits in zip(heads.layers, uniform.scores.tolist(), strict=True):
            yield Row("confusion", round(bits, 6), layer, axes={**axes, "baseline": "uniform"})

    return answered.findings(SUBJECTS, scored, rows)
