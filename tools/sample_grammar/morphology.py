"""English inflection, and the words of the closed classes."""

from __future__ import annotations

import re

from sample_grammar.lexicon import listed
from sample_grammar.tree import Word

PLURALS = dict(
    pair.split(":")
    for pair in listed(
        "child:children goose:geese mouse:mice wolf:wolves knife:knives leaf:leaves scarf:scarves "
        "potato:potatoes tomato:tomatoes sheep:sheep fish:fish deer:deer series:series "
        "aircraft:aircraft"
    )
)
"""Irregular plurals, among them nouns that show no number."""

PRINCIPAL_PARTS = {
    line.split()[0]: (line.split()[1], line.split()[2])
    for line in """
    have had had
    do did done
    break broke broken
    freeze froze frozen
    sink sank sunk
    spin spun spun
    swing swung swung
    light lit lit
    ring rang rung
    tear tore torn
    bend bent bent
    burn burned burned
    shut shut shut
    hurt hurt hurt
    give gave given
    send sent sent
    lend lent lent
    show showed shown
    sell sold sold
    teach taught taught
    tell told told
    write wrote written
    throw threw thrown
    buy bought bought
    think thought thought
    say said said
    know knew known
    hear heard heard
    see saw seen
    forget forgot forgotten
    run ran run
    swim swam swum
    sing sang sung
    sleep slept slept
    fall fell fallen
    fly flew flown
    come came come
    go went gone
    stand stood stood
    sit sat sat
    find found found
    catch caught caught
    steal stole stolen
    hide hid hidden
    hold held held
    meet met met
    draw drew drawn
    build built built
    eat ate eaten
    drink drank drunk
    cut cut cut
    leave left left
    read read read
    feed fed fed
    ride rode ridden
    drive drove driven
    wear wore worn
    set set set
    rise rose risen
    wake woke woken
    bite bit bitten
    """.strip().splitlines()
}
DOUBLING = frozenset(
    listed(
        "stop drop plan chop wrap map pet trim shop rob run swim spin shut sit cut forget set "
        "bag ship"
    )
)
"""Verbs that double their last consonant."""


def plural(noun: str) -> str:
    """The plural form of a noun."""
    if noun.endswith("man"):
        return noun[:-3] + "men"
    return PLURALS.get(noun) or add_s(noun)


def add_s(stem: str) -> str:
    """Plural of a noun, third person of a verb."""
    if re.search(r"(s|x|z|ch|sh)$", stem) or stem in ("go", "do"):
        return stem + "es"
    return stem[:-1] + "ies" if re.search(r"[^aeiou]y$", stem) else stem + "s"


def verb_form(lemma: str, tag: str) -> str:
    """Inflect a verb other than *be* for one of the PTB tags VB VBP VBZ VBD VBN VBG."""
    if tag in ("VB", "VBP"):
        return lemma
    if tag == "VBZ":
        return "has" if lemma == "have" else add_s(lemma)
    if tag in ("VBD", "VBN") and lemma in PRINCIPAL_PARTS:
        return PRINCIPAL_PARTS[lemma][tag == "VBN"]
    stem = lemma + lemma[-1] if lemma in DOUBLING else lemma
    if tag == "VBG" and stem.endswith("ie"):
        return stem[:-2] + "ying"
    if tag == "VBG":
        return (stem[:-1] if re.search(r"[^eoy]e$", stem) else stem) + "ing"
    if stem.endswith("e"):
        return stem + "d"
    return stem[:-1] + "ied" if re.search(r"[^aeiou]y$", stem) else stem + "ed"


def verb(lemma: str, tag: str, number: str = "Sing", person: int = 3, *, aux: bool = False) -> Word:
    """A verb or auxiliary in the form that `tag` names, agreeing where English does."""
    form = _be(tag, number, person) if lemma == "be" else verb_form(lemma, tag)
    agreement = f"Number={number}|Person={person}|" if person != 2 else f"Person={person}|"
    feats = {
        "VB": "VerbForm=Inf",
        "VBP": f"Mood=Ind|{agreement}Tense=Pres|VerbForm=Fin",
        "VBZ": f"Mood=Ind|{agreement}Tense=Pres|VerbForm=Fin",
        "VBD": f"Mood=Ind|{agreement}Tense=Past|VerbForm=Fin",
        "VBN": "Tense=Past|VerbForm=Part",
        "VBG": "Tense=Pres|VerbForm=Part",
    }[tag]
    return Word(form, lemma, "AUX" if aux else "VERB", tag, feats)


def _be(tag: str, number: str, person: int) -> str:
    plural_form = number == "Plur" or person == 2
    if tag == "VBD":
        return "were" if plural_form else "was"
    if tag == "VBP":
        return "are" if plural_form else "am"
    return {"VB": "be", "VBZ": "is", "VBN": "been", "VBG": "being"}[tag]


def present_tag(number: str, person: int) -> str:
    """VBZ for the third person singular, else VBP."""
    return "VBZ" if number == "Sing" and person == 3 else "VBP"


def noun(lemma: str, number: str) -> Word:
    """A common noun."""
    form = lemma if number == "Sing" else plural(lemma)
    return Word(form, lemma, "NOUN", "NN" if number == "Sing" else "NNS", f"Number={number}")


PRONOUNS = {
    ("Sing", 1, ""): ("I", "me", "my"),
    ("Plur", 1, ""): ("we", "us", "our"),
    ("", 2, ""): ("you", "you", "your"),
    ("Sing", 3, "Masc"): ("he", "him", "his"),
    ("Sing", 3, "Fem"): ("she", "her", "her"),
    ("Sing", 3, "Neut"): ("it", "it", "its"),
    ("Plur", 3, ""): ("they", "them", "their"),
}
"""Nominative, accusative and possessive, by number, person and gender."""


def pronoun(key: tuple[str, int, str], case: str) -> Word:
    """A personal pronoun; `case` is Nom, Acc or Gen."""
    number, person, gender = key
    column = ("Nom", "Acc", "Gen").index(case)
    form = PRONOUNS[key][column]
    feats = [] if gender == "Neut" and case != "Gen" else [f"Case={case}"]
    feats += [f"Gender={gender}"] if gender else []
    feats += [f"Number={number}"] if number else []
    feats += [f"Person={person}"]
    feats += ["Poss=Yes"] if case == "Gen" else []
    lemma = form if case == "Gen" else PRONOUNS[key][0]
    tag = "PRP$" if case == "Gen" else "PRP"
    return Word(form, lemma, "PRON", tag, "|".join([*feats, "PronType=Prs"]))


def determiner(form: str) -> Word:
    """An article, demonstrative, quantifier or numeral; all stand before the noun."""
    number = {"this": "Sing", "that": "Sing", "these": "Plur", "those": "Plur"}.get(form)
    if number:
        lemma = {"these": "this", "those": "that"}.get(form, form)
        return Word(form, lemma, "DET", "DT", f"Number={number}|PronType=Dem")
    if form in ("one", "two", "three", "four"):
        return Word(form, form, "NUM", "CD", "NumForm=Word|NumType=Card")
    if form in ("many", "several", "few"):
        return Word(form, form, "ADJ", "JJ", "Degree=Pos")
    kind = {"the": "Definite=Def|PronType=Art", "a": "Definite=Ind|PronType=Art"}.get(form)
    quantifier = {"some": "Ind", "another": "Ind", "no": "Neg"}.get(form, "Tot")
    return Word(form, form, "DET", "DT", kind or f"PronType={quantifier}")


def function_word(form: str, upos: str, xpos: str, feats: str = "_") -> Word:
    """A preposition, conjunction, particle, adverb or punctuation mark."""
    return Word(form, form, upos, xpos, feats)
