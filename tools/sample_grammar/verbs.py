"""The verb group: auxiliaries, negation, adverbs and the verb, in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from sample_grammar.lexicon import listed
from sample_grammar.morphology import function_word, present_tag, verb
from sample_grammar.tree import Chunk, Frame, Phrase, Word, Words, chunk, hang

MODALS = listed("can will must may might should could would can will")


@dataclass(frozen=True)
class Form:
    """How a verb is conjugated.

    Attributes:
        tag: VBP present, VBD past, VB imperative, TO infinitive, VBN or VBG reduced clauses.
        modal: takes the place of tense if not empty.
    """

    tag: str
    modal: str = ""
    perfect: bool = False
    progressive: bool = False
    passive: bool = False
    negated: bool = False
    inverted: bool = False

    @property
    def finite(self) -> bool:
        """Whether it is a full clause's verb."""
        return self.tag in ("VBP", "VBD")


def finite_form(rng: random.Random, *, passive: bool = False, stative: bool = False) -> Form:
    """A finite form at random; statives have no progressive."""
    form = Form(rng.choice(("VBP", "VBP", "VBP", "VBD", "VBD")), passive=passive)
    roll = rng.random()
    if roll < 0.12:
        form = replace(form, modal=rng.choice(MODALS), tag="VBP")
    elif roll < 0.24:
        form = replace(form, perfect=True, tag="VBP")
    elif roll < 0.46 and not stative:
        form = replace(form, progressive=True)
    return replace(form, negated=rng.random() < 0.06)


@dataclass(eq=False)
class VerbGroup:
    """A verb group; `fronted` holds an auxiliary or copula that precedes the subject."""

    words: Words
    main: Word
    fronted: Words
    frame: Frame
    vp: Chunk


def verb_group(
    lemma: str,
    roleset: str,
    form: Form,
    subject: Phrase | None,
    adverb: tuple[str, Phrase] | None = None,
    predicate: Word | None = None,
) -> VerbGroup:
    """Build the group and the frame of its main verb, with ARGM-MOD and ARGM-NEG.

    Args:
        subject: what the finite verb agrees with.
        adverb: role and adverb to stand after the first auxiliary, or before the verb.
        predicate: of a copula, the word that the group hangs on.
    """
    parts = (["have"] if form.perfect else []) + (["be"] if form.progressive else [])
    parts += ["be"] if form.passive else []
    bare = form.finite and not (parts or form.modal)
    if bare and lemma != "be" and (form.negated or form.inverted):
        parts, bare = ["do"], False
    number, person = (subject.number, subject.person) if subject else ("Sing", 3)
    tag = present_tag(number, person) if form.tag == "VBP" else form.tag
    auxiliaries: Words = []
    if form.tag == "TO":
        auxiliaries.append(function_word("to", "PART", "TO"))
        tag = "VB"
    if form.modal:
        auxiliaries.append(Word(form.modal, form.modal, "AUX", "MD", "VerbForm=Fin"))
        tag = "VB"
    for i, part in enumerate(parts):
        auxiliaries.append(verb(part, tag, number, person, aux=True))
        passive = form.passive and i == len(parts) - 1
        tag = {"have": "VBN", "do": "VB"}.get(part, "VBN" if passive else "VBG")
    main = verb(lemma, tag, number, person, aux=predicate is not None)
    if form.passive or form.tag == "VBN":
        main.feats += "|Voice=Pass"
    if form.tag == "VB":
        main.feats = "Mood=Imp|Person=2|VerbForm=Fin"
    main.frame = frame = Frame(roleset, [main])
    head = predicate or main
    for word in auxiliaries:
        passive = form.passive and word is auxiliaries[-1]
        relation = "mark" if word.xpos == "TO" else "aux:pass" if passive else "aux"
        hang(Phrase([word], word), head, relation)
        if word.xpos == "MD":
            frame.bind("ARGM-MOD", [("", [word])])
    if predicate:
        hang(Phrase([main], main), predicate, "cop")
    between: Words = []
    if form.negated:
        word = function_word("not", "PART", "RB", "Polarity=Neg")
        between += hang(Phrase([word], word), head, "advmod")
        frame.bind("ARGM-NEG", [("", [word])])
    if adverb:
        between += hang(adverb[1], head, "advmod")
        frame.bind(adverb[0], [("", adverb[1].words)])
    return _arrange([*auxiliaries, main], between, form, frame, lemma == "be" and bare)


def _arrange(verbs: Words, between: Words, form: Form, frame: Frame, simple_be: bool) -> VerbGroup:
    """Order and chunk the group.

    As in CoNLL-2000 the VP runs from the first auxiliary to the verb with all that stands
    between; an adverb before the first verb is an ADVP of its own; *not* after *be* and an
    auxiliary before the subject belong to no chunk.
    """
    main = verbs[-1]
    if form.inverted:
        return VerbGroup([*between, *verbs[1:]], main, verbs[:1], frame, chunk("VP", verbs[1:]))
    if simple_be:
        return VerbGroup([main, *between], main, [], frame, chunk("VP", [main]))
    if len(verbs) == 1:
        return VerbGroup([*between, main], main, [], frame, chunk("VP", [main]))
    words = [verbs[0], *between, *verbs[1:]]
    return VerbGroup(words, main, [], frame, chunk("VP", words))
