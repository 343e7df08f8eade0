"""Clauses: verbs with their arguments; infinitives, complement and adverbial clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sample_grammar.adjuncts import MOTION, Adjunct, Adjuncts
from sample_grammar.lexicon import listed
from sample_grammar.morphology import function_word
from sample_grammar.tree import Binding, Chunk, Clause, Phrase, Words, chunk, hang
from sample_grammar.valencies import THING, VALENCIES, Slot, Valency
from sample_grammar.verbs import Form, finite_form, verb_group

KINDS = {
    "transitive": 20, "causative": 12, "inchoative": 12, "intransitive": 6, "motion": 7,
    "double object": 6, "to dative": 6, "control": 10, "raising": 4, "object control": 5,
    "saying": 10, "asking": 3, "telling": 2, "particle": 4, "prepositional": 7, "having": 5,
}  # fmt: skip
"""Constructions and how often each is drawn."""

NESTING = frozenset(("control", "raising", "object control", "saying", "asking", "telling"))
NESTED = {kind: weight for kind, weight in KINDS.items() if kind in NESTING}
PLAIN = {kind: weight for kind, weight in KINDS.items() if kind not in NESTING}
STATIVE = frozenset(
    listed(
        "like love hate fear know believe want need have seem appear admire see hear remember "
        "forget notice think hope wonder"
    )
)
NO_PASSIVE = frozenset(listed("have do like want hate fear miss forget"))
CLAUSAL = ("xcomp", "ccomp")
SUBJECT = -1
"""The place of the subject among the slots of a valency; complements count from 0."""


@dataclass(frozen=True)
class Gap:
    """An argument that does not stand in its place.

    Attributes:
        place: `SUBJECT`, or the number of the complement.
        binding: the words that bear its role, none if nothing does.
        agreement: if it is the subject, what the verb agrees with.
        front: a relative or interrogative phrase that opens the clause in its stead.
    """

    place: int
    binding: Binding
    agreement: Phrase | None = None
    front: Phrase | None = None


def passive(valency: Valency, *, by: bool) -> Valency:
    """The passive construction, with or without its agent, which precedes a clause."""
    first, *rest = valency.complements
    agent = valency.subject._replace(function="obl:agent", preposition="by")
    promoted = first._replace(function="nsubj:pass")
    complements = [*rest, agent] if by else rest
    complements.sort(key=lambda slot: slot.function in CLAUSAL)
    return replace(valency, subject=promoted, complements=tuple(complements))


def can_passivise(valency: Valency) -> bool:
    """Whether the verb has an object to promote, and English does promote it."""
    objects = valency.complements and valency.complements[0].function in ("obj", "iobj")
    return bool(objects) and valency.lemma not in NO_PASSIVE


class Clauses(Adjuncts):
    """Draws clauses."""

    def valency(
        self, kinds: Mapping[str, float], level: int, subject: str = "", passivise: float = 0.3
    ) -> Valency:
        """A verb in a construction; nesting ones become rare with depth.

        Args:
            subject: a class that the subject must be able to come from.
            passivise: how often a verb with an object is made passive.
        """
        names = list(kinds)
        weights = [kinds[k] / (1 + 0.6 * level) if k in NESTING else kinds[k] for k in names]
        while True:
            valency = self.verb(VALENCIES[self.rng.choices(names, weights)[0]])
            if can_passivise(valency) and self.chance(passivise):
                valency = passive(valency, by=self.chance(0.45))
            if not subject or subject in valency.subject.classes:
                return valency

    def verb(self, valencies: Sequence[Valency]) -> Valency:
        """One verb that the split may use."""
        return self.draw(valencies, lambda valency: valency.lemma)

    def finite(self, valency: Valency) -> Form:
        """A finite form that suits the verb."""
        is_passive = valency.subject.function == "nsubj:pass"
        return finite_form(self.rng, passive=is_passive, stative=valency.lemma in STATIVE)

    def clause(
        self,
        valency: Valency,
        form: Form,
        level: int,
        gap: Gap | None = None,
        subject: Phrase | None = None,
        vp: Chunk | None = None,
        adjuncts: int = 1,
    ) -> Clause:
        """One clause.

        Args:
            gap: an argument that is not realised in its place.
            subject: the subject, if it is already there; else one is drawn.
            vp: the chunk of the verb before, which an infinitive continues.
            adjuncts: at most so many adjuncts after the complements.
        """
        if gap and gap.place == SUBJECT:
            subject, binding, agreement = None, gap.binding, gap.agreement
        else:
            subject = subject or self.noun_phrase(valency.subject.classes, level, "Nom")
            binding, agreement = [("", subject.words)], subject
        adverb = self.middle_adverb(form)
        group = verb_group(valency.lemma, valency.roleset, form, agreement, adverb)
        if vp:
            for word in group.words:
                word.chunk = vp
        main, frame = group.main, group.frame
        frame.bind(valency.subject.role, binding)
        words: Words = []
        if gap and gap.front:
            slot = valency.subject if gap.place == SUBJECT else valency.complements[gap.place]
            words += hang(gap.front, main, slot.function)
        words += group.fronted
        words += hang(subject, main, valency.subject.function) if subject else []
        clause = Clause([*words, *group.words], main, frame=frame, binding=binding)
        self.add_complements(clause, valency, level, gap, vp or group.vp)
        for adjunct in self.adjuncts(valency, form, level, adjuncts, binding):
            frame.bind(adjunct.role, [("", adjunct.phrase.words)])
            clause.words += hang(adjunct.phrase, main, adjunct.relation)
        return clause

    def middle_adverb(self, form: Form) -> tuple[str, Phrase] | None:
        """Perhaps an adverb for the verb group."""
        if not form.finite or not self.chance(0.13):
            return None
        if self.chance(0.3):
            return "ARGM-MNR", self.adverb("manner in the middle")
        return "ARGM-TMP", self.adverb("always")

    def add_complements(
        self, clause: Clause, valency: Valency, level: int, gap: Gap | None, vp: Chunk
    ) -> None:
        """Append objects, obliques, complement clauses and the particle.

        An infinitive right after its verb continues the verb's chunk, *wants to buy*, but not
        after a passive, where a trace stands between: *was asked* / *to leave*.
        """
        main, frame = clause.head, clause.frame
        controller = clause.binding
        given = gap.place if gap else None
        waiting = bool(valency.particle) and any(
            slot.function == "obj" and place != given
            for place, slot in enumerate(valency.complements)
        )
        if valency.particle and not waiting:
            self.add_particle(clause, valency.particle)
        for place, slot in enumerate(valency.complements):
            if gap and place == given:
                frame.bind(slot.role, gap.binding)
                continue
            joins = clause.words[-1] is main and valency.subject.function != "nsubj:pass"
            phrase = self.complement(slot, level, controller, vp if joins else None)
            late = phrase.head.xpos == "PRP" or (len(phrase.words) < 5 and self.chance(0.5))
            if waiting and not late:
                self.add_particle(clause, valency.particle)
            binding: Binding = [("", phrase.words)]
            frame.bind(slot.role, binding)
            clause.words = clause.words + hang(phrase, main, slot.function)
            if waiting and late:
                self.add_particle(clause, valency.particle)
            waiting = False
            if slot.function == "obj":
                controller = binding

    def add_particle(self, clause: Clause, form: str) -> None:
        """*Up*, *out*, *down*: part of the predicate, a C-V if the object comes between."""
        word = function_word(form, "ADP", "RP")
        chunk("PRT", [word])
        if clause.words[-1] is clause.head:
            clause.frame.predicate = [clause.head, word]
        else:
            clause.frame.bind("C-V", [("", [word])])
        clause.words = clause.words + hang(Phrase([word], word), clause.head, "compound:prt")

    def complement(self, slot: Slot, level: int, controller: Binding, vp: Chunk | None) -> Phrase:
        """What fills a complement slot."""
        if slot.function == "xcomp":
            return self.infinitive(level + 1, controller, vp)
        if slot.function == "ccomp":
            whether = slot.classes == ("whether",)
            marker = self.rng.choice(("whether", "if")) if whether else "that"
            return self.marked(marker if whether or self.chance(0.75) else "", level + 1)
        if slot.preposition:
            inner = self.noun_phrase(slot.classes, level + 1)
            return self.prepositional(slot.preposition, inner)
        return self.noun_phrase(slot.classes, level + 1)

    def infinitive(
        self, level: int, binding: Binding, vp: Chunk | None = None, *, plain: bool = False
    ) -> Clause:
        """A *to* infinitive whose understood subject, a person, is `binding`.

        Args:
            vp: the chunk of the verb before, which the infinitive continues.
            plain: only verbs that take no clause themselves.
        """
        gap = Gap(SUBJECT, binding)
        if not plain and self.chance(0.1):
            return self.copular(Form("TO"), level, "person", gap, vp=vp)
        kinds = PLAIN if plain else {k: w for k, w in KINDS.items() if k != "raising"}
        valency = self.valency(kinds, level, "person", passivise=0.12)
        form = Form("TO", passive=valency.subject.function == "nsubj:pass")
        return self.clause(valency, form, level, gap, vp=vp)

    def finite_clause(self, level: int, adjuncts: int = 1) -> Clause:
        """A declarative clause."""
        if self.chance(0.16):
            kind = self.rng.choice(("person", "person", "animal", "idea", "event", *THING, "place"))
            return self.copular(finite_form(self.rng, stative=True), level, kind)
        if self.chance(0.05):
            return self.existential(level)
        valency = self.valency(KINDS, level)
        return self.clause(valency, self.finite(valency), level, adjuncts=adjuncts)

    def marked(self, marker: str, level: int) -> Clause:
        """A subordinate clause with its conjunction, or without."""
        clause = self.finite_clause(level, adjuncts=0 if level > 2 else 1)
        if marker:
            if marker == "when":
                word = function_word("when", "ADV", "WRB", "PronType=Rel")
                chunk("ADVP", [word])
            else:
                word = function_word(marker, "SCONJ", "IN")
                chunk("SBAR", [word])
            relation = "advmod" if marker == "when" else "mark"
            clause.words = hang(Phrase([word], word), clause.head, relation) + clause.words
        return clause

    def copular(
        self,
        form: Form,
        level: int,
        kind: str,
        gap: Gap | None = None,
        vp: Chunk | None = None,
        subject: Phrase | None = None,
    ) -> Clause:
        """*The guards are ready*: the predicate is the head, *be* bears the frame."""
        if gap:
            binding, agreement = gap.binding, gap.agreement
        else:
            subject = subject or self.noun_phrase((kind,), level, "Nom")
            binding, agreement = [("", subject.words)], subject
        roll = self.rng.random()
        if roll < 0.65:
            comment = self.adjective_phrase(kind)
        elif roll < 0.85 or kind not in ("person", "animal"):
            comment = self.place(level + 1)
        else:
            number = agreement.number if agreement else "Sing"
            comment = self.common(kind, level + 2, number)
        comment_words = comment.words
        group = verb_group("be", "be.01", form, agreement, predicate=comment.head)
        if vp:
            for word in group.words:
                word.chunk = vp
        group.frame.bind("ARG1", binding)
        group.frame.bind("ARG2", [("", comment_words)])
        words: Words = []
        if gap and gap.front:
            words += hang(gap.front, comment.head, "nsubj")
        words += group.fronted
        words += hang(subject, comment.head, "nsubj") if subject else []
        words += [*group.words, *comment_words]
        return Clause(words, comment.head, frame=group.frame, binding=binding)

    def existential(self, level: int) -> Clause:
        """*There are two boats near the bridge*: *be* is the verb."""
        kind = self.rng.choice(("person", "animal", *THING, "event"))
        thing = self.noun_phrase((kind,), level, number=self.number())
        form = replace(finite_form(self.rng, stative=True), perfect=False)
        expletive = function_word("there", "PRON", "EX")
        chunk("NP", [expletive])
        group = verb_group("be", "be.02", form, thing)
        group.frame.bind("ARG1", [("", thing.words)])
        words = hang(Phrase([expletive], expletive), group.main, "expl") + group.words
        words = words + hang(thing, group.main, "nsubj")
        where = self.place(level + 1)
        group.frame.bind("ARGM-LOC", [("", where.words)])
        words = words + hang(where, group.main, "obl")
        return Clause(words, group.main, frame=group.frame, binding=[("", thing.words)])

    def adjuncts(
        self, valency: Valency, form: Form, level: int, most: int, binding: Binding
    ) -> list[Adjunct]:
        """The adjuncts that end a clause."""
        found: list[Adjunct] = []
        heavy = any(slot.function in CLAUSAL for slot in valency.complements)
        wanted = 1 if valency.roleset in MOTION else 0.3 - 0.08 * level
        if most and not heavy and self.chance(wanted):
            found.append(self.simple_adjunct(valency.roleset, form, level))
        if most and level < 2 and not heavy and form.finite and self.chance(0.22):
            able = (
                valency.complements
                and valency.lemma not in STATIVE
                and "person" in (valency.subject.classes)
            )
            if able and binding and not found and self.chance(0.6) and not form.passive:
                purpose = self.infinitive(level + 2, binding, plain=True)
                found.append(Adjunct("ARGM-PRP", "advcl", purpose))
            else:
                found.append(self.adverbial_clause(level + 1))
        return found

    def adverbial_clause(self, level: int) -> Adjunct:
        """*Because*, *when*, *if* … and a clause."""
        marker, role = self.rng.choice(
            [("because", "ARGM-CAU"), ("since", "ARGM-CAU"), ("since", "ARGM-CAU")]
            + [("if", "ARGM-ADV"), ("although", "ARGM-ADV")]
            + [(m, "ARGM-TMP") for m in listed("before after until before after when while as as")]
        )
        return Adjunct(role, "advcl", self.marked(marker, level))
