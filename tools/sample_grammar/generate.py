"""Draws the sentences of the corpus and writes its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sample_grammar.clauses import NESTED, PLAIN, SUBJECT, Gap
from sample_grammar.modifiers import Modifiers
from sample_grammar.morphology import function_word
from sample_grammar.tree import Clause, Phrase, Word, Words, check, chunk, hang, text, to_conllu
from sample_grammar.valencies import VALENCIES
from sample_grammar.verbs import Form, verb_group

SEED = 20240229
SIZES = {"train": 2000, "dev": 400, "test": 400}
SHORTEST, LONGEST = 4, 27


class Sentences(Modifiers):
    """Draws whole sentences."""

    def sentence(self) -> Words:
        """One sentence with its final punctuation."""
        draws: list[tuple[int, Callable[[], tuple[Clause, str]]]] = [
            (31, self.statement), (24, self.nested), (12, self.fronted), (6, self.coordinated),
            (4, self.inverted), (7, self.question), (6, self.wh_question), (6, self.command),
            (3, self.interjection),
        ]  # fmt: skip
        weights = [weight for weight, _ in draws]
        clause, mark = self.rng.choices([draw for _, draw in draws], weights)[0]()
        end = function_word(mark, "PUNCT", ".")
        words = clause.words + hang(Phrase([end], end), clause.head, "punct")
        words[0].form = words[0].form[0].upper() + words[0].form[1:]
        return words

    def statement(self) -> tuple[Clause, str]:
        """A plain declarative sentence."""
        return self.finite_clause(0, adjuncts=1), "."

    def nested(self) -> tuple[Clause, str]:
        """A clause or an infinitive within the clause."""
        valency = self.valency(NESTED, 0)
        return self.clause(valency, self.finite(valency), -1, adjuncts=0), "."

    def fronted(self) -> tuple[Clause, str]:
        """An adjunct, most often with a comma, before the clause."""
        clause = self.finite_clause(0, adjuncts=0)
        if self.chance(0.45):
            adjunct = self.adverbial_clause(1)
        else:
            form = Form("VBD" if self.chance(0.5) else "VBP")
            draw = self.rng.choice((self.time, self.time, self.where, self.company))
            adjunct = draw(form, 1)
        clause.frame.bind(adjunct.role, [("", adjunct.phrase.words)])
        words = hang(adjunct.phrase, clause.head, adjunct.relation)
        if adjunct.relation == "advcl" or self.chance(0.6):
            words = words + self.comma(adjunct.phrase.head)
        clause.words = words + clause.words
        return clause, "."

    def comma(self, head: Word) -> Words:
        """A comma that hangs on `head`."""
        word = function_word(",", "PUNCT", ",")
        return hang(Phrase([word], word), head, "punct")

    def coordinated(self) -> tuple[Clause, str]:
        """Two clauses, or two verbs that share their subject."""
        conjunction = function_word(self.rng.choice(("and", "and", "but")), "CCONJ", "CC")
        valency = self.valency(PLAIN, 1)
        opening: Words = []
        if self.chance(0.5) and "person" in valency.subject.classes:
            past = Form("VBD", passive=valency.subject.function == "nsubj:pass")
            subject = self.noun_phrase(("person",), 1, "Nom")
            first = self.clause(valency, past, 1, subject=subject, adjuncts=0)
            other = self.valency(PLAIN, 1, "person", passivise=0)
            second = self.clause(other, Form("VBD"), 2, Gap(SUBJECT, first.binding))
        else:
            first = self.clause(valency, self.finite(valency), 1, adjuncts=0)
            second = self.finite_clause(1, adjuncts=0)
            opening = self.comma(second.head)
        words = opening + hang(Phrase([conjunction], conjunction), second.head, "cc")
        first.words = first.words + words + hang(second, first.head, "conj")
        return first, "."

    def inverted(self) -> tuple[Clause, str]:
        """*On the table stood two vases.*"""
        lemma = self.rng.choice(("stand", "sit"))
        kinds = ("person", "animal") if lemma == "sit" else ("person", "portable", "fragile")
        subject = self.noun_phrase(kinds, 1, number=self.number())
        where = self.place(1)
        form = Form(self.rng.choice(("VBP", "VBP", "VBD")))
        group = verb_group(lemma, f"{lemma}.01", form, subject)
        group.frame.bind("ARG1", [("", subject.words)])
        group.frame.bind("ARG2", [("", where.words)])
        words = hang(where, group.main, "obl") + group.words
        words = words + hang(subject, group.main, "nsubj")
        return Clause(words, group.main, frame=group.frame, binding=[("", subject.words)]), "."

    def question(self) -> tuple[Clause, str]:
        """*Did the guard open the door?*"""
        if self.chance(0.3):
            form = Form(self.rng.choice(("VBP", "VBP", "VBD")), inverted=True)
            return self.copular(form, 0, self.rng.choice(("person", "animal", "portable"))), "?"
        valency = self.valency(PLAIN, 0)
        form = replace(self.finite(valency), inverted=True, negated=False)
        return self.clause(valency, form, 0), "?"

    def wh_question(self) -> tuple[Clause, str]:
        """*Who broke the vase?*, *Which door did the guard open?*"""
        singular = Phrase([], function_word("", "X", "X"))
        if self.chance(0.4):
            word = function_word("who", "PRON", "WP", "PronType=Int")
            chunk("NP", [word])
            valency = self.valency(PLAIN, 0, "person")
            form = replace(self.finite(valency), negated=False)
            gap = Gap(SUBJECT, [("", [word])], singular, Phrase([word], word))
            return self.clause(valency, form, 0, gap), "?"
        valency = self.verb(VALENCIES[self.rng.choice(("transitive", "causative", "to dative"))])
        if self.chance(0.5):
            kind = valency.complements[0].classes[0]
            noun_phrase = self.common(kind, 4, self.number())
            which = function_word("which", "DET", "WDT", "PronType=Int")
            noun_phrase = self.asked(which, noun_phrase)
        else:
            person = "person" in valency.complements[0].classes
            word = function_word("who" if person else "what", "PRON", "WP", "PronType=Int")
            chunk("NP", [word])
            noun_phrase = Phrase([word], word)
        gap = Gap(0, [("", noun_phrase.words)], front=noun_phrase)
        form = replace(self.finite(valency), inverted=True, negated=False)
        return self.clause(valency, form, 0, gap), "?"

    def asked(self, which: Word, phrase: Phrase) -> Phrase:
        """*Which* and the noun, without its former determiner."""
        words = [*hang(Phrase([which], which), phrase.head, "det"), phrase.head]
        chunk("NP", words)
        return Phrase(words, phrase.head, phrase.number)

    def command(self) -> tuple[Clause, str]:
        """*Please watch the light!*"""
        kinds = {kind: weight for kind, weight in PLAIN.items() if kind != "having"}
        valency = self.valency(kinds, 0, "person", passivise=0)
        clause = self.clause(valency, Form("VB"), 0, Gap(SUBJECT, []))
        if self.chance(0.35):
            self.open_with("please", clause)
        return clause, self.rng.choice((".", "!"))

    def interjection(self) -> tuple[Clause, str]:
        """*Well, the cook left.*"""
        clause = self.finite_clause(0, adjuncts=0)
        self.open_with(self.rng.choice(("well", "well", "no", "no", "yes")), clause)
        return clause, "."

    def open_with(self, form: str, clause: Clause) -> None:
        """Put an interjection before the clause."""
        word = function_word(form, "INTJ", "UH")
        chunk("INTJ", [word])
        comma = [] if form == "please" else self.comma(word)
        clause.frame.bind("ARGM-DIS", [("", [word])])
        clause.words = hang(Phrase([word], word), clause.head, "discourse") + comma + clause.words


def sentences(split: str, seen: set[str]) -> Iterator[Words]:
    """The sentences of one split; none of them is in `seen`, to which they are added."""
    grammar = Sentences(SEED, split)
    wanted = SIZES[split]
    while wanted:
        words = grammar.sentence()
        line = text(words)
        if SHORTEST <= len(words) <= LONGEST and line.lower() not in seen:
            check(words)
            seen.add(line.lower())
            wanted -= 1
            yield words


def write(folder: Path) -> None:
    """Write the three files into `folder`."""
    seen: set[str] = set()
    for split in SIZES:
        blocks = (
            to_conllu(words, f"{split}-{i:04}")
            for i, words in enumerate(sentences(split, seen), start=1)
        )
        (folder / f"{split}.conllu").write_text("".join(blocks), encoding="utf-8", newline="\n")
