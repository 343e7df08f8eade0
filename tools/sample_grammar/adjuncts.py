"""Adjuncts: when, where, how, with whom."""

from __future__ import annotations

from dataclasses import dataclass

from sample_grammar.lexicon import NOUNS, listed
from sample_grammar.morphology import determiner, function_word, noun
from sample_grammar.phrases import Phrases
from sample_grammar.tree import Phrase, Word, chunk, hang
from sample_grammar.verbs import Form

MOTION = frozenset(
    listed("walk.01 run.02 swim.01 jump.03 march.01 race.01 rush.01 travel.01 hurry.01 crawl.01")
)
ROLLING = frozenset(listed("roll.01 bounce.01 move.01 drop.01 sail.01"))
INSTRUMENT = frozenset(listed("break.01 open.01 crack.01 shatter.01"))
HANDLING = frozenset(
    listed("cut.01 clean.01 touch.01 measure.01 chop.01 fix.02 repair.01 turn.01 move.01 lift.01")
)
"""Verbs whose *with a hammer* is ARGM-MNR; of the ones above it is ARG2."""


@dataclass(frozen=True)
class Adjunct:
    """An adjunct with its PropBank role and dependency relation."""

    role: str
    relation: str
    phrase: Phrase


class Adjuncts(Phrases):
    """Draws adjuncts that are not clauses."""

    def simple_adjunct(self, roleset: str, form: Form, level: int) -> Adjunct:
        """An adjunct that suits the verb."""
        if roleset in MOTION | ROLLING and self.chance(0.65):
            return self.path(level)
        if roleset in INSTRUMENT | HANDLING and self.chance(0.3):
            tool = self.common("instrument", level + 3, self.number())
            role = "ARG2" if roleset in INSTRUMENT else "ARGM-MNR"
            return Adjunct(role, "obl", self.prepositional("with", tool))
        draw = self.rng.choice((self.time, self.time, self.where, self.manner, self.company))
        return draw(form, level)

    def path(self, level: int) -> Adjunct:
        """Along, across, to or into a place."""
        preposition = self.rng.choice(listed("to to to into along across through past over from"))
        where = self.common("place", level + 2, self.number())
        role = "ARGM-GOL" if preposition in ("to", "into") else "ARGM-DIR"
        return Adjunct(role, "obl", self.prepositional(preposition, where))

    def where(self, form: Form, level: int) -> Adjunct:
        """At a place."""
        if self.chance(0.22):
            return Adjunct("ARGM-LOC", "advmod", self.adverb("where"))
        return Adjunct("ARGM-LOC", "obl", self.place(level))

    def time(self, form: Form, level: int) -> Adjunct:
        """At a time that suits the tense."""
        roll = self.rng.random()
        if roll < 0.2:
            word = "soon" if form.modal else "once" if form.tag == "VBD" else "now"
            return self.time_adverb(self.pick([word, "then", "again", "early", "late", "before"]))
        if roll < 0.3:
            noun_ = {"VBD": "yesterday"}.get(form.tag, "tomorrow" if form.modal else "today")
            return Adjunct("ARGM-TMP", "obl:unmarked", self.bare_noun(noun_))
        if roll < 0.42:
            return Adjunct("ARGM-TMP", "obl:unmarked", self.period(past=form.tag == "VBD"))
        if roll < 0.5 and form.tag == "VBD":
            return self.ago()
        if form.perfect and roll < 0.75:
            inner = self.weekday() if self.chance(0.5) else self.common("event", level + 3, "Sing")
            return Adjunct("ARGM-TMP", "obl", self.prepositional("since", inner))
        if roll < 0.62:
            return Adjunct("ARGM-TMP", "obl", self.prepositional("on", self.weekday()))
        if roll < 0.8:
            return Adjunct("ARGM-TMP", "obl", self.prepositional("in", self.part_of_day()))
        preposition = self.rng.choice(listed("before after during until after before"))
        inner = self.common("event", level + 2, self.number())
        return Adjunct("ARGM-TMP", "obl", self.prepositional(preposition, inner))

    def time_adverb(self, form: str) -> Adjunct:
        """One adverb of time."""
        word = function_word(form, "ADV", "RB")
        chunk("ADVP", [word])
        return Adjunct("ARGM-TMP", "advmod", Phrase([word], word))

    def bare_noun(self, form: str) -> Phrase:
        """*Yesterday*, *today*, *tomorrow*: nouns."""
        word = noun(form, "Sing")
        chunk("NP", [word])
        return Phrase([word], word)

    def period(self, *, past: bool) -> Phrase:
        """*Last week*, *every morning*."""
        head = noun(self.pick(NOUNS["period"]), "Sing")
        if past and self.chance(0.6):
            first, relation = Word("last", "last", "ADJ", "JJ", "Degree=Pos"), "amod"
        else:
            first, relation = determiner("every"), "det"
        words = [*hang(Phrase([first], first), head, relation), head]
        chunk("NP", words)
        return Phrase(words, head)

    def ago(self) -> Adjunct:
        """*Two weeks ago*: the noun hangs on the adverb and is a chunk of its own."""
        number = self.rng.choice(("two", "three", "four", "many"))
        count, unit = determiner(number), noun(self.pick(NOUNS["unit"]), "Plur")
        words = [*hang(Phrase([count], count), unit, "nummod" if count.upos == "NUM" else "amod")]
        words.append(unit)
        chunk("NP", words)
        ago = function_word("ago", "ADV", "RB")
        chunk("ADVP", [ago])
        words = [*hang(Phrase(words, unit), ago, "obl:unmarked"), ago]
        return Adjunct("ARGM-TMP", "advmod", Phrase(words, ago))

    def weekday(self) -> Phrase:
        """A day of the week."""
        form = self.pick(NOUNS["day"])
        word = Word(form, form, "PROPN", "NNP", "Number=Sing")
        chunk("NP", [word])
        return Phrase([word], word)

    def part_of_day(self) -> Phrase:
        """*The morning*, *the winter*."""
        head, the = noun(self.pick(NOUNS["time"]), "Sing"), determiner("the")
        words = [*hang(Phrase([the], the), head, "det"), head]
        chunk("NP", words)
        return Phrase(words, head)

    def manner(self, form: Form, level: int) -> Adjunct:
        """How: an adverb, *with care*, *like a bird*."""
        roll = self.rng.random()
        if roll < 0.6:
            return Adjunct("ARGM-MNR", "advmod", self.adverb("manner"))
        if roll < 0.8:
            inner, preposition = self.quality(), "with"
        else:
            kind = self.rng.choice(("person", "animal"))
            inner, preposition = self.common(kind, level + 4, self.number()), "like"
        return Adjunct("ARGM-MNR", "obl", self.prepositional(preposition, inner))

    def quality(self) -> Phrase:
        """*Care*, *joy*: no article."""
        head = noun(self.pick(NOUNS["quality"]), "Sing")
        chunk("NP", [head])
        return Phrase([head], head)

    def company(self, form: Form, level: int) -> Adjunct:
        """*With her brother*."""
        inner = self.noun_phrase(("person", "animal"), level + 2)
        return Adjunct("ARGM-COM", "obl", self.prepositional("with", inner))
