"""Minimal pairs of the grammar that writes the embedded corpus, with the fields of BLiMP.

A sentence about agreement has one singular and one plural noun, both for persons, and all its
other words but the one in question suit both numbers: which words there are tells nothing, only
their order does. Half of the good sentences want the singular and half the plural.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from sample_grammar.generate import Sentences
from sample_grammar.lexicon import NOUNS
from sample_grammar.morphology import add_s, determiner, noun, plural, verb_form
from sample_grammar.tree import Phrase, Words, text
from sample_grammar.valencies import VALENCIES, Valency
from sample_grammar.verbs import Form, verb_group

Pair = tuple[Words, Words]
OTHER = {"Sing": "Plur", "Plur": "Sing"}
PERSONS = tuple(lemma for lemma in NOUNS["person"] if plural(lemma) == add_s(lemma))
DEMONSTRATIVES = {"Sing": ("this", "that"), "Plur": ("these", "those")}


def minimal_pairs(each: int, seed: int, seen: Collection[str] = ()) -> list[dict[str, str]]:
    """So many pairs of every UID; no good sentence is drawn twice, or is in `seen`."""
    grammar = Sentences(seed, "train")
    pairs: dict[str, dict[str, str]] = {}
    for uid, draw in PHENOMENA.items():
        term = "word_order" if uid == "word_order" else uid.split("_agreement")[0] + "_agreement"
        wanted = len(pairs) + each
        while len(pairs) < wanted:
            good, bad = map(written, draw(grammar, ("Sing", "Plur")[len(pairs) % 2]))
            if good not in pairs and good not in seen:
                pairs[good] = {
                    "sentence_good": good,
                    "sentence_bad": bad,
                    "UID": uid,
                    "linguistics_term": term,
                }
    return list(pairs.values())


def agreement(grammar: Sentences, number: str) -> Pair:
    """*The cook watches the nurses*: the subject's noun is the only one before the verb."""
    valency, rest = drawn(grammar, "transitive"), persons(grammar, OTHER[number]).words
    return agreeing(grammar, valency, persons(grammar, number), rest)


def attractor(grammar: Sentences, number: str) -> Pair:
    """*The cooks near the nurse are sleeping*: a noun of the other number stands between."""
    subject = persons(grammar, number)
    subject.words += near(grammar, OTHER[number])
    return agreeing(grammar, drawn(grammar, "intransitive"), subject, [], auxiliary=True)


def relative(grammar: Sentences, number: str) -> Pair:
    """*The cooks that watched the nurse are sleeping*: the other noun is in a relative clause."""
    subject = persons(grammar, number)
    _, front = grammar.relativiser(subject, "person")
    subject.words += [*front.words, *watched(grammar), *persons(grammar, OTHER[number]).words]
    return agreeing(grammar, drawn(grammar, "intransitive"), subject, [], auxiliary=True)


def determiner_noun(grammar: Sentences, number: str) -> Pair:
    """*The cook watched these nurses*: the demonstrative agrees with its noun."""
    before = [*persons(grammar, OTHER[number]).words, *watched(grammar)]
    head, distance = persons(grammar, number).head, grammar.rng.choice((0, 1))
    right, wrong = (determiner(DEMONSTRATIVES[n][distance]) for n in (number, OTHER[number]))
    return [*before, right, head], [*before, wrong, head]


def word_order(grammar: Sentences, number: str) -> Pair:
    """*The cooks near nurse the watched the guests*: an article after its noun or before *near*."""
    good = [*persons(grammar, number).words, *near(grammar, OTHER[number]), *watched(grammar)]
    good += persons(grammar, number).words
    i = grammar.rng.choice((2, 3, len(good) - 2))
    return good, [*good[:i], good[i + 1], good[i], *good[i + 2 :]]


PHENOMENA: dict[str, Callable[[Sentences, str], Pair]] = {
    "subject_verb_agreement": agreement,
    "subject_verb_agreement_attractor": attractor,
    "subject_verb_agreement_relative_clause": relative,
    "determiner_noun_agreement": determiner_noun,
    "word_order": word_order,
}


def drawn(grammar: Sentences, kind: str) -> Valency:
    """A verb whose nouns can all be persons, and whose present tense is no other form or word."""
    while True:
        valency = grammar.verb(VALENCIES[kind])
        slots = (valency.subject, *valency.complements)
        clear = valency.lemma not in (verb_form(valency.lemma, "VBD"), "like")
        if clear and all("person" in slot.classes for slot in slots):
            return valency


def persons(grammar: Sentences, number: str) -> Phrase:
    """*The* and a noun for persons, of regular plural."""
    head = noun(grammar.pick(PERSONS), number)
    return Phrase([determiner("the"), head], head, number)


def near(grammar: Sentences, number: str) -> Words:
    """*Near the nurse*."""
    preposition = grammar.rng.choice(("near", "beside"))
    return grammar.prepositional(preposition, persons(grammar, number)).words


def watched(grammar: Sentences) -> Words:
    """A transitive verb in the past tense, which shows no number."""
    valency = drawn(grammar, "transitive")
    return verb_group(valency.lemma, valency.roleset, Form("VBD"), None).words


def agreeing(
    grammar: Sentences, valency: Valency, subject: Phrase, rest: Words, *, auxiliary: bool = False
) -> Pair:
    """A clause whose verb agrees with its subject, and one whose verb does not.

    Args:
        auxiliary: only verbs with auxiliaries.
    """
    other = replace(subject, number=OTHER[subject.number])
    while True:
        form = grammar.finite(valency)
        good, bad = (
            verb_group(valency.lemma, valency.roleset, form, s).words for s in (subject, other)
        )
        if text(good) != text(bad) and (len(good) > 1 or not auxiliary):
            return [*subject.words, *good, *rest], [*subject.words, *bad, *rest]


def written(words: Words) -> str:
    """The sentence with its capital letter and its full stop."""
    line = text(words)
    return line[0].upper() + line[1:] + "."
