"""Subject-verb agreement with the verb hidden (after Linzen et al. 2016, Goldberg 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded, task

NOUNS = ("NOUN", "PROPN")

PLURAL_ONLY = {"Ptan": "Plur"}
"""Pluralia tantum such as *scissors* take a plural verb."""


@task(
    "agreement",
    version=2,
    needs=["upos", "feats", "heads", "deprels"],
    metric="balanced_accuracy",
    also=["accuracy"],
    reference="subject's Number",
    group="syntax",
)
def agreement(sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether a hidden finite verb is singular or plural, predicted from its position."""
    s = sentence
    for subject, tag in enumerate(s.upos):
        if tag not in NOUNS or not s.deprels[subject].startswith("nsubj"):
            continue
        verb = finite_verb(s, s.heads[subject])
        if isinstance(verb, Excluded):
            yield verb
            continue
        number = s.feats[verb]["Number"]
        yield Example(
            number,
            (verb, verb + 1),
            type=s.words[subject],
            hide=verb,
            cue=subject,
            groups=attractor_group(s, subject, verb),
            reference=number_of(s.feats[subject]),
        )


def finite_verb(sentence: Sentence, predicate: int) -> int | Excluded:
    """The only verb form that shows number among a predicate, its `aux*` and its `cop`."""
    s = sentence
    forms = [
        i
        for i in predicate_forms(s, predicate)
        if s.feats[i].get("VerbForm") == "Fin" and s.feats[i].get("Number") in ("Sing", "Plur")
    ]
    if not forms:
        return Excluded("no finite verb with Number")
    if len(forms) > 1:
        return Excluded("several finite verbs with Number")
    (verb,) = forms
    if s.language == "en" and not shows_number(s.words[verb], s.feats[verb].get("Tense")):
        return Excluded("form does not show number")
    return verb


def predicate_forms(sentence: Sentence, predicate: int) -> list[int]:
    """A predicate with its `aux*` and `cop`, in order."""
    return [
        i
        for i, (head, relation) in enumerate(zip(sentence.heads, sentence.deprels, strict=True))
        if i == predicate or (head == predicate and relation.split(":")[0] in ("aux", "cop"))
    ]


def attractor_group(sentence: Sentence, subject: int, verb: int) -> tuple[str, ...]:
    """The breakdown by attractors (Linzen et al. 2016, section 2).

    An attractor is a noun between subject and verb that differs from the subject in number. Nouns
    that modify conjuncts count, but conjuncts themselves belong to the subject. If verb and subject
    differ in number (coordination, collectives), such a noun would not mislead, so these examples
    form a separate group. Subjects without annotated number are in no group.
    """
    s = sentence
    number = number_of(s.feats[subject])
    if not number:
        return ()
    if number != s.feats[verb]["Number"]:
        return ("subject of another Number",)
    parts = conjuncts(s, subject)
    between = range(min(subject, verb) + 1, max(subject, verb))
    has_attractor = any(
        s.upos[i] in NOUNS and i not in parts and number_of(s.feats[i]) not in ("", number)
        for i in between
    )
    return ("1+ attractors" if has_attractor else "0 attractors",)


def conjuncts(sentence: Sentence, first: int) -> set[int]:
    """A word and all conjuncts, including those attached to another conjunct."""
    s = sentence
    words, last = {first}, {first}
    while last:
        last = {
            i
            for i, (head, relation) in enumerate(zip(s.heads, s.deprels, strict=True))
            if head in last and relation.split(":")[0] == "conj"
        }
        words |= last
    return words


def number_of(feats: Mapping[str, str]) -> str:
    """The number that a noun requires of its verb; empty if it is not annotated."""
    number = feats.get("Number", "")
    return PLURAL_ONLY.get(number, number)


def shows_number(form: str, tense: str | None) -> bool:
    """Whether an English finite form shows singular or plural."""
    return tense == "Pres" or form.lower() in ("was", "were")
