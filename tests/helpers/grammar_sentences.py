"""Annotated sentences of the grammar with nouns between subject and verb, for agreement."""

from __future__ import annotations

from itertools import islice

from grammar_pairs import OTHER, agreeing, drawn, near, persons
from sample_grammar.generate import Sentences

from probes.data.sentence import ROOT, Corpus, Sentence


def attractors() -> Corpus:
    """300, 60 and 160 sentences; the models of the grammar fill in nearly all of their verbs."""
    grammar = Sentences(77, "train")
    made = iter([sentence(i, grammar) for i in range(520)])
    sizes = {"train": 300, "dev": 60, "test": 160}
    splits = {split: tuple(islice(made, n)) for split, n in sizes.items()}
    return Corpus("attractors", "1", "MIT", splits)


def sentence(i: int, grammar: Sentences) -> Sentence:
    """*The cooks near the nurse are sleeping .*, with as much annotation as agreement needs.

    Every fourth noun between has the subject's number, which else would say that of the verb. A
    fifth may lack the auxiliary: the forms of other verbs have different numbers of pieces.
    """
    number = ("Sing", "Plur")[i % 2]
    subject = persons(grammar, number)
    subject.words += near(grammar, number if i % 4 == i // 4 % 4 else OTHER[number])
    verb = drawn(grammar, "intransitive")
    words, _ = agreeing(grammar, verb, subject, [], auxiliary=i % 5 > 0)
    forms = [word.form for word in words]
    forms[0] = forms[0].capitalize()
    feats = [
        {} if word.feats == "_" else dict(x.split("=") for x in word.feats.split("|"))
        for word in words
    ]
    predicate = len(words) - 1
    places = {id(word): i for i, word in enumerate(words)}
    heads = [
        ROOT if i == predicate else places.get(id(word.head), predicate)
        for i, word in enumerate(words)
    ]
    relations = [word.deprel if word.head else "dep" for word in words]
    relations[1], relations[predicate] = "nsubj", "root"
    heads[1] = predicate
    return Sentence(
        id=f"s{i}",
        language="en",
        words=(*forms, "."),
        upos=(*(word.upos for word in words), "PUNCT"),
        feats=(*feats, {}),
        heads=(*heads, predicate),
        deprels=(*relations, "punct"),
        lemmas=(*(word.lemma for word in words), "."),
        written=(forms[0], *(f" {form}" for form in forms[1:]), "."),
    )
