"""Sentences whose words or clauses may have changed places (BShift, CoordInv: Conneau et al. 2018).

A coin, seeded by the words alone, decides whether a sentence is changed. Classes are therefore
about equally large, no sentence occurs in both forms, and exclusion does not depend on the coin.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from probes.data.sentence import ROOT, Sentence
from probes.tasks.distance import path_up
from probes.tasks.task import Example, Excluded, task

Words = tuple[str, ...]

INTACT = "intact"

FUNCTION_WORDS = {"ADP", "ADV", "AUX", "DET", "PART", "PRON", "SCONJ"}


def chance(name: str, sentence: Sentence) -> Random:
    """Random numbers for the task called `name`, seeded by the words."""
    return Random(" ".join((name, *sentence.words)))


@task("bigram-shift", version=1, needs=["upos"], shape="sentence", metric="accuracy",
      group="syntax")  # fmt: skip
def bigram_shift(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether two neighbouring words of a sentence have changed places."""
    words, draw = sentence.words, chance("bigram-shift", sentence)
    # A capital or a full stop within the sentence would show without any syntax.
    places = [
        i
        for i in range(1, len(words) - 1)
        if "PUNCT" not in sentence.upos[i : i + 2] and words[i].lower() != words[i + 1].lower()
    ]
    if not places:
        yield Excluded("no two words to exchange")
        return
    i = draw.choice(places)
    changed_words = (*words[:i], words[i + 1], words[i], *words[i + 2 :])
    label, shown_words = draw.choice(((INTACT, words), ("shifted", changed_words)))
    yield Example(label, (0, len(shown_words)), words=shown_words)


@task("coordination-inversion", version=2, needs=["upos", "heads", "deprels", "lemmas"],
      shape="sentence", metric="accuracy", reference="the shorter clause first",
      cues_reference="function words of each clause", group="syntax")  # fmt: skip
def coordination_inversion(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether the two coordinate clauses of a sentence have changed places."""
    parts = coordinate_clauses(sentence)
    if parts is None:
        yield Excluded("not two coordinate clauses")
        return
    first, link, second, end = parts
    # The first word keeps a capital; other words have one only if their lemma does.
    first_word, second_word = first[0], second[0]
    if second_word[0].islower() and first_word[0].isupper():
        second_word = second_word[0].upper() + second_word[1:]
    if sentence.lemmas[0][0].islower() and first_word == first_word.capitalize():
        first_word = first_word.lower()
    changed_words = (second_word, *second[1:], *link, first_word, *first[1:], *end)
    draw = chance("coordination-inversion", sentence)
    label, shown_words = draw.choice(((INTACT, sentence.words), ("inverted", changed_words)))
    shorter_first = (len(first) <= len(second)) == (label == INTACT)
    start = len(first) + len(link)
    clauses = range(len(first)), range(start, start + len(second))
    cues = [
        f"{number}: {sentence.words[i].lower()}"
        for number, clause in enumerate(clauses if label == INTACT else clauses[::-1])
        for i in clause
        if sentence.upos[i] in FUNCTION_WORDS
    ]
    yield Example(
        label,
        (0, len(shown_words)),
        words=shown_words,
        reference=INTACT if shorter_first else "inverted",
        cues=tuple(cues),
    )


def coordinate_clauses(sentence: Sentence) -> tuple[Words, Words, Words, Words] | None:
    """First clause, conjunction with punctuation, second clause, and final punctuation.

    None unless both clauses have a subject and nothing else is in the sentence.
    """
    s, root = sentence, sentence.heads.index(ROOT)
    with_subject = {
        head
        for head, relation in zip(s.heads, s.deprels, strict=True)
        if relation.split(":")[0] in ("nsubj", "csubj", "expl")
    }
    conjuncts = [i for i, head in enumerate(s.heads) if head == root and s.deprels[i] == "conj"]
    if len(conjuncts) != 1 or not {root, *conjuncts} <= with_subject:
        return None
    subtree = [i for i in range(len(s)) if conjuncts[0] in path_up(s.heads, i)]
    start, end = subtree[0], subtree[-1] + 1
    while s.upos[start - 1] == "PUNCT" and start > 1:
        start -= 1
    second_start = next((i for i in range(start, end) if s.upos[i] not in ("PUNCT", "CCONJ")), end)
    are_whole = len(subtree) == end - subtree[0] and root < start and second_start < end
    are_linked = "CCONJ" in s.upos[start:second_start] and s.upos[0] not in ("PUNCT", "CCONJ")
    if not (are_whole and are_linked) or any(tag != "PUNCT" for tag in s.upos[end:]):
        return None
    return s.words[:start], s.words[start:second_start], s.words[second_start:end], s.words[end:]
