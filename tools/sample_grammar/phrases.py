"""Noun phrases, prepositional phrases, adjective phrases and adverbs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from sample_grammar.lexicon import ADJECTIVES, ADVERBS, NOUNS, allowed, listed
from sample_grammar.morphology import determiner, function_word, noun, pronoun
from sample_grammar.tree import Phrase, Word, Words, chunk, hang
from sample_grammar.valencies import AMBIGUOUS, THING

T = TypeVar("T")

MASS = frozenset(
    listed("ice butter wax snow chocolate cheese frost rice bread meat soup stew straw work")
) | frozenset(NOUNS["quality"])
UNMARKED = frozenset(listed("sheep fish deer series aircraft"))
"""Nouns whose form shows no number; only their determiner does."""

NOVEL = 0.35
"""How often dev and test ask for a word that train lacks, where the class has one."""

TWOFOLD = 0.5
"""How often a word that is a verb and also a noun or an adjective is asked for, if three are."""

DEEPEST = 5
"""The level from which noun phrases have no more modifiers."""

VOWEL = ("a", "e", "i", "o", "u", "hour", "honest")
"""What *an* goes before; no noun or adjective of ours is like *unicorn*."""

PREPOSITIONS = {
    "place": "in near behind by beside at inside outside",
    "portable": "on under near beside behind",
    "fragile": "near behind beside",
}
"""Prepositions of place by class of noun."""

MODIFIERS = {
    "person": (("in near behind by from beside outside", "place"), ("with with like", "portable"),
               ("with", "animal"), ("in", "cloth"), ("near like beside", "person")),
    "animal": (("in near behind from inside", "place"), ("near like behind with", "animal person")),
    "event": (("in at near outside", "place"), ("for with", "person"), ("before after", "event")),
    "idea": (("about for", "event place person"), ("from", "person"), ("since before", "event")),
    "song": (("about for", "animal person event"),),
    "letter": (("about", "event idea"), ("from to for", "person")),
    "place": (("near behind by past over", "place"), ("of with", "person")),
    "": (("on under near behind in by", "place portable"), ("from for", "person"),
         ("with", "portable"), ("from in", "place")),
}  # fmt: skip
"""What may follow a noun of a class: prepositions, and classes of their objects."""


class Phrases:
    """Draws phrases at random; one instance writes one split.

    Args:
        seed: the same seed and split give the same sentences.
        split: decides which words may be used.
    """

    def __init__(self, seed: int, split: str) -> None:
        self.rng = random.Random(f"{seed} {split}")
        self.split = split

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def pick(self, words: Sequence[str]) -> str:
        """One word that the split may use."""
        return self.draw(words, lambda word: word)

    def draw(self, items: Sequence[T], lemma: Callable[[T], str]) -> T:
        """One item whose lemma the split may use; unseen and ambiguous ones are preferred."""
        usable = [item for item in items if allowed(lemma(item), self.split)]
        novel = [item for item in usable if not allowed(lemma(item), "train")]
        ambiguous = [item for item in usable if lemma(item) in AMBIGUOUS]
        if novel and self.chance(NOVEL):
            return self.rng.choice(novel)
        twofold = len(ambiguous) > 2 and self.chance(TWOFOLD)
        return self.rng.choice(ambiguous if twofold else usable)

    def number(self, other_than: str = "") -> str:
        """Singular or plural, most often another than `other_than`.

        Plural a little more often: names and mass nouns are singular already.
        """
        if other_than and self.chance(0.6):
            return "Plur" if other_than == "Sing" else "Sing"
        return "Plur" if self.chance(0.55) else "Sing"

    def noun_phrase(
        self, classes: Sequence[str], level: int, case: str = "Acc", number: str = ""
    ) -> Phrase:
        """A noun phrase of one of these classes.

        Args:
            level: how deep it lies; deeper phrases are simpler.
            case: of a pronoun, Nom or Acc.
            number: Sing or Plur; any if empty.
        """
        kind = self.rng.choice(classes)
        roll = self.rng.random()
        if not number and kind == "person" and roll < 0.26:
            return self.personal_pronoun(case) if roll < 0.15 else self.name()
        if not number and kind in THING and case == "Acc" and roll < 0.05:
            return self.demonstrative()
        phrase = self.common(kind, level, number or self.number(), subject=case == "Nom")
        if level < 2 and not number and self.chance(0.025):
            return self.coordinate(phrase, self.common(kind, 3, self.number()))
        return phrase

    def personal_pronoun(self, case: str) -> Phrase:
        """A personal pronoun that stands for people."""
        key = self.rng.choice(
            [("Sing", 1, ""), ("Plur", 1, ""), ("", 2, ""), ("Plur", 3, "")]
            + [("Sing", 3, "Masc")] + [("Sing", 3, "Fem")] * 3
        )  # fmt: skip
        word = pronoun(key, case)
        chunk("NP", [word])
        return Phrase([word], word, key[0] or "Plur", key[1])

    def name(self) -> Phrase:
        """A given name."""
        form = self.pick(NOUNS["name"])
        word = Word(form, form, "PROPN", "NNP", "Number=Sing")
        chunk("NP", [word])
        return Phrase([word], word)

    def demonstrative(self) -> Phrase:
        """*That* or *this* on its own."""
        form = self.rng.choice(("that", "that", "this"))
        word = Word(form, form, "PRON", "DT", "Number=Sing|PronType=Dem")
        chunk("NP", [word])
        return Phrase([word], word)

    def coordinate(self, first: Phrase, second: Phrase) -> Phrase:
        """Two noun phrases with *and*."""
        both = function_word("and", "CCONJ", "CC")
        words = first.words + hang(Phrase([both], both), second.head, "cc")
        return Phrase(words + hang(second, first.head, "conj"), first.head, "Plur")

    def common(self, kind: str, level: int, number: str, *, subject: bool = False) -> Phrase:
        """A common noun with determiner and modifiers."""
        lemma = self.pick(NOUNS[kind])
        number = "Sing" if lemma in MASS else number
        head = noun(lemma, number)
        before: Words = []
        if self.chance(0.20):
            before += self.adjective(kind, head)
        if kind in (*THING, "closable", "vehicle") and self.chance(0.12):
            before += self.compound(head)
        elif before and kind in THING and self.chance(0.15):
            head.form, head.lemma = ("one" if number == "Sing" else "ones"), "one"
        first = self.determine(head, (before or [head])[0], number, level)
        chunk("NP", first[-1:] + before + [head] if first else [*before, head])
        phrase = Phrase([*first, *before, head], head, number)
        return self.modified(phrase, kind, level, subject) if level < DEEPEST else phrase

    def adjective(self, kind: str, head: Word) -> Words:
        """An attributive adjective, or a numeral-like one."""
        table = ADJECTIVES.get(kind, ADJECTIVES["thing"])
        form = self.pick([a for a in table if a not in ("well", "ready")])
        word = Word(form, form, "ADJ", "JJ", "Degree=Pos")
        return hang(Phrase([word], word), head, "amod")

    def compound(self, head: Word) -> Words:
        """A noun before the noun."""
        lemma = self.pick([m for m in NOUNS["material"] if m != head.lemma])
        word = noun(lemma, "Sing")
        return hang(Phrase([word], word), head, "compound")

    def determine(self, head: Word, first: Word, number: str, level: int) -> Words:
        """What stands before the rest of the noun phrase: nothing, a determiner, a possessor."""
        roll = self.rng.random()
        if head.lemma not in UNMARKED:
            if roll < 0.10:
                key = self.rng.choice(
                    [("Sing", 3, "Fem")] * 4
                    + [("Sing", 3, "Masc"), ("Plur", 3, ""), ("Sing", 1, ""), ("Plur", 1, "")]
                )
                owner = pronoun(key, "Gen")
                return hang(Phrase([owner], owner), head, "nmod:poss")
            if roll < 0.16 and level < 3:
                return self.possessor(head)
            if roll < 0.25 and (number == "Plur" or head.lemma in MASS):
                return []
            if roll < 0.62:
                word = determiner("the")
                return hang(Phrase([word], word), head, "det")
        sing = "a a a that that this every another one"
        plur = "two three several many these those some four few all"
        choices = (sing if number == "Sing" else plur).split()
        choices += ["no"] if level == 0 else []
        choices = ["the", "that", "this", "some", "all"] if head.lemma in MASS else choices
        if head.lemma in UNMARKED:
            choices = [c for c in choices if c not in ("no", "some", "all")]
        word = determiner(self.rng.choice(choices))
        if word.form == "a" and first.form.startswith(VOWEL):
            word.form = "an"
        relation = {"NUM": "nummod", "ADJ": "amod"}.get(word.upos, "det")
        return hang(Phrase([word], word), head, relation)

    def possessor(self, head: Word) -> Words:
        """*the cook 's*: the clitic opens the next chunk, so it comes last."""
        owner = self.name() if self.chance(0.3) else self.common("person", 4, self.number())
        form = "'" if owner.head.form.endswith("s") else "'s"
        clitic = Word(form, "'s", "PART", "POS")
        words = owner.words + hang(Phrase([clitic], clitic), owner.head, "case")
        return hang(Phrase(words, owner.head), head, "nmod:poss")

    def modified(self, phrase: Phrase, kind: str, level: int, subject: bool) -> Phrase:
        """Perhaps add a prepositional phrase or a clause after the noun, to subjects most."""
        roll = self.rng.random() + 0.045 * level - (0.23 if subject else 0)
        if roll < 0.24 and phrase.head.lemma != "one":
            prepositions, classes = self.rng.choice(MODIFIERS.get(kind, MODIFIERS[""]))
            inner = self.common(
                self.rng.choice(classes.split()), level + 1, self.number(phrase.number)
            )
            pp = self.prepositional(self.rng.choice(prepositions.split()), inner)
            phrase.words = phrase.words + hang(pp, phrase.head, "nmod")
        elif roll < 0.42 and level < DEEPEST - 1:
            self.add_clause(phrase, kind, level)
        return phrase

    def add_clause(self, phrase: Phrase, kind: str, level: int) -> None:
        """Add a relative clause; the clauses live in clauses.py."""
        raise NotImplementedError

    def prepositional(self, preposition: str, inner: Phrase) -> Phrase:
        """A preposition and its object."""
        word = function_word(preposition, "ADP", "IN")
        chunk("PP", [word])
        return Phrase(hang(Phrase([word], word), inner.head, "case") + inner.words, inner.head)

    def place(self, level: int) -> Phrase:
        """A prepositional phrase of place."""
        kind = self.rng.choice(("place", "place", "place", "portable", "fragile"))
        preposition = self.rng.choice(PREPOSITIONS[kind].split())
        return self.prepositional(preposition, self.common(kind, level + 2, self.number()))

    def adjective_phrase(self, kind: str) -> Phrase:
        """A predicative adjective, perhaps with an adverb of degree."""
        form = self.pick(ADJECTIVES.get(kind, ADJECTIVES["thing"]))
        head = Word(form, form, "ADJ", "JJ", "Degree=Pos")
        words: Words = []
        if self.chance(0.35):
            words = hang(self.adverb("degree"), head, "advmod")
        chunk("ADJP", [*words, head])
        return Phrase([*words, head], head)

    def adverb(self, kind: str) -> Phrase:
        """One adverb of a kind."""
        word = function_word(self.pick(ADVERBS[kind]), "ADV", "RB")
        chunk("ADVP", [word])
        return Phrase([word], word)
