"""Tense, and number of subject and object, of the main clause (Conneau et al. 2018).

The type is the form of the word that shows the label. The type majority is therefore the score of
someone who finds that word and knows only its form. Types that train lacks correspond to the paper,
where no such form is in two splits.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import ROOT, Sentence
from probes.tasks.agreement import NOUNS, number_of, predicate_forms
from probes.tasks.task import Example, Excluded, task

TENSES = ("Past", "Pres")


@task("main-tense", version=1, needs=["feats", "heads", "deprels"], shape="sentence",
      metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def tense(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether the main clause of a sentence is in the past or the present tense."""
    s = sentence
    forms = predicate_forms(s, s.heads.index(ROOT))
    finite = [i for i in forms if s.feats[i].get("VerbForm") == "Fin"]
    verbs = [i for i in finite if s.feats[i].get("Tense") in TENSES]
    if len(verbs) != 1:
        yield Excluded("several verbs in past or present" if verbs else "no verb in either tense")
        return
    (verb,) = verbs
    yield Example(s.feats[verb]["Tense"], (0, len(s)), type=s.words[verb])


@task("subject-number", version=1, needs=["upos", "feats", "heads", "deprels"],
      shape="sentence", metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def subject_number(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether the subject of the main clause, a noun, is singular or plural."""
    return number_of_noun(sentence, "nsubj")


@task("object-number", version=1, needs=["upos", "feats", "heads", "deprels"],
      shape="sentence", metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def object_number(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether the direct object of the main clause, a noun, is singular or plural."""
    return number_of_noun(sentence, "obj")


def number_of_noun(sentence: Sentence, relation: str) -> Iterator[Example | Excluded]:
    """Yield the example of the only noun with `relation` (or a subtype) to the root."""
    s, root = sentence, sentence.heads.index(ROOT)
    nouns = [
        i
        for i, (head, deprel) in enumerate(zip(s.heads, s.deprels, strict=True))
        if head == root and deprel.split(":")[0] == relation and s.upos[i] in NOUNS
    ]
    if len(nouns) != 1:
        yield Excluded(f"{'several nouns are' if nouns else 'no noun is'} {relation} of the root")
    elif (number := number_of(s.feats[nouns[0]])) in ("Sing", "Plur"):
        yield Example(number, (0, len(s)), type=s.words[nouns[0]])
    else:
        yield Excluded("noun without Number")
