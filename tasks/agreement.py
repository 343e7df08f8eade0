"""Subject-verb agreement with the verb hidden (after Linzen et al. 2016, Goldberg 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded, task

PLURAL_ONLY = {"Ptan": "Plur"}
"""Pluralia tantum such as *scissors* take a plural verb."""


@task(
    "agreement",
    version=1,
    needs=["upos", "feats", "heads", "deprels"],
    metric="balanced_accuracy",
    also=["accuracy"],
    reference="subject's Number",
)
def agreement(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether a hidden finite verb is singular or plural, predicted from its position."""
    s = sentence
    nouns = [i for i, tag in enumerate(s.upos) if tag in ("NOUN", "PROPN")]
    for subject in nouns:
        if not s.deprels[subject].startswith("nsubj"):
            continue
        verb = finite_verb(s, s.heads[subject])
        if isinstance(verb, Excluded):
            yield verb
            continue
        number = s.feats[verb]["Number"]
        between = range(min(subject, verb) + 1, max(subject, verb))
        attractors = sum(i in between and number_of(s.feats[i]) not in ("", number) for i in nouns)
        yield Example(
            number,
            (verb, verb + 1),
            type=s.words[subject],
            hide=verb,
            cue=subject,
            groups=("1+ attractors" if attractors else "0 attractors",),
            reference=number_of(s.feats[subject]),
        )


def finite_verb(sentence: Sentence, predicate: int) -> int | Excluded:
    """The only verb form that shows number among a predicate, its `aux*` and its `cop`."""
    s = sentence
    forms = [
        i
        for i, (head, relation) in enumerate(zip(s.heads, s.deprels, strict=True))
        if i == predicate or (head == predicate and relation.split(":")[0] in ("aux", "cop"))
    ]
    marked = [
        i
        for i in forms
        if s.feats[i].get("VerbForm") == "Fin" and s.feats[i].get("Number") in ("Sing", "Plur")
    ]
    if not marked:
        return Excluded("no finite verb with Number")
    if len(marked) > 1:
        return Excluded("several finite verbs with Number")
    (verb,) = marked
    if s.language == "en" and not shows_number(s.words[verb], s.feats[verb].get("Tense")):
        return Excluded("form does not show number")
    return verb


def number_of(feats: Mapping[str, str]) -> str:
    """The number that a noun requires of its verb; empty if it is not annotated."""
    number = feats.get("Number", "")
    return PLURAL_ONLY.get(number, number)


def shows_number(form: str, tense: str | None) -> bool:
    """Whether an English finite form differs between singular and plural."""
    return tense == "Pres" or form.lower() in ("was", "were")
