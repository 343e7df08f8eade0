"""Clauses that modify a noun: relative clauses, full and reduced, and *a plan to build*."""

from __future__ import annotations

from dataclasses import replace

from sample_grammar.clauses import STATIVE, SUBJECT, Clauses, Gap, can_passivise, passive
from sample_grammar.lexicon import allowed, listed
from sample_grammar.morphology import function_word
from sample_grammar.tree import Binding, Clause, Phrase, chunk, hang
from sample_grammar.valencies import VALENCIES, Valency
from sample_grammar.verbs import Form, finite_form

PLAIN = ("transitive", "causative", "inchoative", "intransitive", "double object", "to dative",
         "particle", "prepositional", "having")  # fmt: skip
TO_NOUNS = frozenset(listed("plan promise offer hope dream wish need order"))


class Modifiers(Clauses):
    """Adds clauses to nouns."""

    def subjects(self, kind: str) -> list[Valency]:
        """Usable verbs whose subject can be of this class."""
        return [v for v in self.plain() if kind in v.subject.classes]

    def objects(self, kind: str) -> list[Valency]:
        """Usable verbs whose direct object, standing first, can be of this class."""
        found = [v for v in self.plain() if v.complements and v.complements[0].function == "obj"]
        return [v for v in found if kind in v.complements[0].classes]

    def plain(self) -> list[Valency]:
        """Verbs that take no clause, in every construction."""
        return [v for name in PLAIN for v in VALENCIES[name] if allowed(v.lemma, self.split)]

    def add_clause(self, phrase: Phrase, kind: str, level: int) -> None:
        """A relative clause, a participle or an infinitive after the noun."""
        antecedent = list(phrase.words)
        clause: Clause | None
        if phrase.head.lemma in TO_NOUNS and self.chance(0.6):
            clause, relation = self.infinitive(level + 2, []), "acl"
        elif self.chance(0.28):
            clause, relation = self.participle(phrase, kind, level + 1), "acl"
        else:
            clause, relation = self.relative(phrase, kind, level + 1), "acl:relcl"
        if clause:
            phrase.words = antecedent + hang(clause, phrase.head, relation)

    def participle(self, phrase: Phrase, kind: str, level: int) -> Clause | None:
        """*The vase broken by the girl*, *the guard watching the gate*."""
        gap = Gap(SUBJECT, [("", list(phrase.words))])
        promoted = [v for v in self.objects(kind) if can_passivise(v)]
        active = [v for v in self.subjects(kind) if v.lemma not in STATIVE]
        if promoted and (not active or self.chance(0.65)):
            valency = passive(self.verb(promoted), by=self.chance(0.6))
            return self.clause(valency, Form("VBN"), level, gap)
        return self.clause(self.verb(active), Form("VBG"), level, gap) if active else None

    def relative(self, phrase: Phrase, kind: str, level: int) -> Clause:
        """A full relative clause, on its subject or its object."""
        roll = self.rng.random() - (0.2 if kind == "person" else 0)
        if roll < 0.34 and self.objects(kind):
            return self.object_relative(phrase, kind, level)
        binding, front = self.relativiser(phrase, kind)
        gap = Gap(SUBJECT, binding, phrase, front)
        promoted = [v for v in self.objects(kind) if can_passivise(v)]
        if promoted and roll < 0.54:
            valency = passive(self.verb(promoted), by=self.chance(0.5))
        elif self.subjects(kind) and roll < 0.9:
            valency = self.verb(self.subjects(kind))
        else:
            return self.copular(finite_form(self.rng, stative=True), level, kind, gap)
        return self.clause(valency, self.finite(valency), level, gap)

    def object_relative(self, phrase: Phrase, kind: str, level: int) -> Clause:
        """*The vase that the girl broke*, *the vase the girl broke*."""
        valency = self.verb(self.objects(kind))
        if self.chance(0.35):
            gap = Gap(0, [("", list(phrase.words))])
        else:
            binding, front = self.relativiser(phrase, kind)
            gap = Gap(0, binding, front=front)
        number = self.number(phrase.number) if self.chance(0.6) else ""
        subject = self.noun_phrase(valency.subject.classes, level + 1, "Nom", number)
        form = replace(self.finite(valency), negated=False)
        return self.clause(valency, form, level, gap, subject)

    def relativiser(self, phrase: Phrase, kind: str) -> tuple[Binding, Phrase]:
        """*Who*, *which* or *that*, and what it and its antecedent bear together."""
        form = self.rng.choice(("who", "that") if kind == "person" else ("which", "that", "that"))
        word = function_word(form, "PRON", "WP" if form == "who" else "WDT", "PronType=Rel")
        chunk("NP", [word])
        return [("", list(phrase.words)), ("R-", [word])], Phrase([word], word)
