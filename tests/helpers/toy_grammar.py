"""A toy grammar of English agreement: minimal pairs with the fields of BLiMP, and a corpus.

A sentence about agreement has one singular and one plural noun, both for persons. Its other words,
but for the one in question, suit both numbers. So the words alone tell nothing, only their order
does. Half of the good sentences want the singular and half the plural.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import NamedTuple

from probes.data.sentence import ROOT, Corpus, Sentence

OTHER = {"Sing": "Plur", "Plur": "Sing"}
PERSONS, INTRANSITIVE, TRANSITIVE = map(
    str.split,
    (
        "cook guide guard nurse judge host coach pilot guest farmer student doctor baker sailor "
        "dancer driver visitor boy girl friend uncle cousin queen king captain clerk tailor witness",
        "dance laugh smile work play talk paint shout arrive rest walk jump march travel appear",
        "watch follow praise blame thank fear call answer question push kick sketch greet calm",
    ),
)
DEMONSTRATIVES = {"Sing": ("this", "that"), "Plur": ("these", "those")}
AUXILIARIES = (
    ("be", "Pres", {"Sing": "is", "Plur": "are"}, "ing"),
    ("be", "Past", {"Sing": "was", "Plur": "were"}, "ing"),
    ("have", "Pres", {"Sing": "has", "Plur": "have"}, "ed"),
    ("do", "Pres", {"Sing": "does", "Plur": "do"}, ""),
)
"""Lemma, tense, forms, and the ending of the verb after it."""


class Word(NamedTuple):
    """A word with its annotation."""

    form: str
    upos: str
    lemma: str
    feats: dict[str, str]


Pair = tuple[list[Word], list[Word]]


def minimal_pairs(each: int, seed: int, seen: Collection[str] = ()) -> list[dict[str, str]]:
    """So many pairs of every UID. No good sentence occurs twice or in `seen`."""
    rng = Random(seed)
    pairs: dict[str, dict[str, str]] = {}
    for uid, draw in PHENOMENA.items():
        term = "word_order" if uid == "word_order" else uid.split("_agreement")[0] + "_agreement"
        wanted = len(pairs) + each
        while len(pairs) < wanted:
            good, bad = map(written, draw(rng, ("Sing", "Plur")[len(pairs) % 2]))
            if good not in pairs and good not in seen:
                pair = {"sentence_good": good, "sentence_bad": bad}
                pairs[good] = {**pair, "UID": uid, "linguistics_term": term}
    return list(pairs.values())


def agreement(rng: Random, number: str) -> Pair:
    """*The cook watches the nurses*: the subject's noun is the only one before the verb."""
    subject, rest = persons(rng, number), persons(rng, OTHER[number])
    return agreeing(rng, subject, number, TRANSITIVE, 0.2, rest)


def attractor(rng: Random, number: str) -> Pair:
    """*The cooks near the nurse are dancing*: a noun of the other number stands between."""
    subject = persons(rng, number) + near(rng, OTHER[number])
    return agreeing(rng, subject, number, INTRANSITIVE)


def relative(rng: Random, number: str) -> Pair:
    """*The cooks that watched the nurse are dancing*: the other noun is in a relative clause."""
    subject = [*persons(rng, number), plain(rng.choice(("who", "that")), "PRON")]
    subject += [watched(rng), *persons(rng, OTHER[number])]
    return agreeing(rng, subject, number, INTRANSITIVE)


def determiner_noun(rng: Random, number: str) -> Pair:
    """*The cook watched these nurses*: the demonstrative agrees with its noun."""
    before = [*persons(rng, OTHER[number]), watched(rng)]
    head, distance = persons(rng, number)[1], rng.choice((0, 1))
    right, wrong = (plain(DEMONSTRATIVES[n][distance], "DET") for n in (number, OTHER[number]))
    return [*before, right, head], [*before, wrong, head]


def word_order(rng: Random, number: str) -> Pair:
    """*The cooks near nurse the watched the guests*: an article after its noun or before *near*."""
    good = [*persons(rng, number), *near(rng, OTHER[number]), watched(rng), *persons(rng, number)]
    i = rng.choice((2, 3, len(good) - 2))
    return good, [*good[:i], good[i + 1], good[i], *good[i + 2 :]]


PHENOMENA: dict[str, Callable[[Random, str], Pair]] = {
    "subject_verb_agreement": agreement,
    "subject_verb_agreement_attractor": attractor,
    "subject_verb_agreement_relative_clause": relative,
    "determiner_noun_agreement": determiner_noun,
    "word_order": word_order,
}


def agreeing(
    rng: Random,
    subject: list[Word],
    number: str,
    verbs: list[str],
    bare: float = 0,
    rest: Collection[Word] = (),
) -> Pair:
    """Two clauses: the verb agrees in the first. A share of `bare` have no auxiliary."""
    verb, (lemma, tense, forms, suffix) = rng.choice(verbs), rng.choice(AUXILIARIES)
    negation = [plain("not", "PART")] if lemma == "do" or rng.random() < 0.1 else []
    main = [*negation, Word(inflected(verb, suffix), "VERB", verb, {})]
    if rng.random() < bare:
        lemma, tense, forms, main = verb, "Pres", {"Sing": inflected(verb, "s"), "Plur": verb}, []

    def clause(number: str) -> list[Word]:
        feats = {"Number": number, "Tense": tense, "VerbForm": "Fin"}
        finite = Word(forms[number], "AUX" if main else "VERB", lemma, feats)
        return [*subject, finite, *main, *rest]

    return clause(number), clause(OTHER[number])


def persons(rng: Random, number: str) -> list[Word]:
    """*The* and a noun for persons."""
    lemma, suffix = rng.choice(PERSONS), {"Sing": "", "Plur": "s"}[number]
    noun = Word(inflected(lemma, suffix), "NOUN", lemma, {"Number": number})
    return [plain("the", "DET"), noun]


def near(rng: Random, number: str) -> list[Word]:
    """*Near the nurse*."""
    return [plain(rng.choice(("near", "beside")), "ADP"), *persons(rng, number)]


def watched(rng: Random) -> Word:
    """A transitive verb in the past tense, which shows no number."""
    lemma = rng.choice(TRANSITIVE)
    return Word(inflected(lemma, "ed"), "VERB", lemma, {"Tense": "Past", "VerbForm": "Fin"})


def plain(form: str, upos: str) -> Word:
    """A word without features that is its own lemma."""
    return Word(form, upos, form, {})


def inflected(stem: str, suffix: str) -> str:
    """The stem with *-s*, *-ed*, *-ing* or nothing."""
    if suffix == "s":
        return stem + ("es" if stem.endswith(("s", "ch", "sh")) else "s")
    return (stem.removesuffix("e") if suffix else stem) + suffix


def written(words: list[Word]) -> str:
    """The sentence with its capital letter and its full stop."""
    return " ".join(word.form for word in words).capitalize() + "."


def attractors(train: int = 300, seed: int = 77) -> Corpus:
    """Annotated sentences with nouns between subject and verb; 60 for dev, 160 for test."""
    rng = Random(seed)
    made = tuple(annotated(i, rng) for i in range(220 + train))
    splits = {"dev": made[:60], "test": made[60:220], "train": made[220:]}
    return Corpus("attractors", "1", "MIT", splits)


def annotated(i: int, rng: Random) -> Sentence:
    """*The cooks near the nurse are dancing .*, with as much annotation as agreement needs.

    Every second noun between has the subject's number, so it does not tell the verb's. Every fifth
    sentence has no auxiliary, and its verb in the other number is often longer by a piece.
    """
    number = ("Sing", "Plur")[i % 2]
    subject = persons(rng, number) + near(rng, number if i // 2 % 2 else OTHER[number])
    words, _ = agreeing(rng, subject, number, INTRANSITIVE, bare=i % 5 == 0)
    words[0] = words[0]._replace(form="The")
    words.append(Word(".", "PUNCT", ".", {}))
    predicate = len(words) - 2
    names = {"AUX": "aux", "PART": "advmod", "VERB": "root", "PUNCT": "punct"}
    relations = ("det", "nsubj", "case", "det", "nmod", *(names[word.upos] for word in words[5:]))
    heads = [1, predicate, 4, 4, 1, *[predicate] * (len(words) - 5)]
    heads[predicate] = ROOT
    forms, upos, lemmas, feats = zip(*words, strict=True)
    return Sentence(
        id=f"s{i}",
        language="en",
        words=forms,
        upos=upos,
        feats=feats,
        heads=tuple(heads),
        deprels=relations,
        lemmas=lemmas,
        written=("The", *(f" {form}" for form in forms[1:-1]), "."),
    )
