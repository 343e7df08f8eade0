"""Coreference of given mentions (edge probing, Tenney et al. 2019b), in windows of a document."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from probes.data.sentence import Mention, Sentence
from probes.tasks.entities import FORMS, head_of
from probes.tasks.task import Example, Excluded, task

DISTANCES = ("in one sentence", "one sentence apart", "two sentences apart")
LONG = 5
"""Cues do not distinguish lengths from here on."""


@task("coreference", version=2, needs=["mentions", "heads", "upos"], shape="span pair",
      metric="accuracy", baseline="string match", cues_baseline="form and length",
      window=len(DISTANCES), group="discourse")  # fmt: skip
def coreference(window: Sentence) -> Iterator[Example | Excluded]:
    """Whether two given mentions, at most two sentences apart, are of the same entity."""
    count = Counter(mention.entity for mention in window.mentions)
    # Skip entities that are mentioned once: pairs with them never corefer, and their form shows it.
    mentions = [m for m in window.mentions if m.entity and count[m.entity] > 1]
    for number, later in enumerate(mentions):
        if sentence_of(later, window) < len(window.starts):
            continue
        if later.unfit:
            yield Excluded(later.unfit)
            continue
        before = [m for m in mentions[:number] if not m.unfit]
        candidates = [m for m in before if m.entity != later.entity and m.span[1] <= later.span[0]]
        for earlier in (m for m in before if m.entity == later.entity):
            if earlier.span[1] > later.span[0]:
                yield Excluded("one mention within the other")
                continue
            # Match the coreferent pair in distance, form and, if possible, length, so that none of
            # these gives the answer away.
            sentence_number, form = sentence_of(earlier, window), form_of(earlier, window)
            matches = [
                m
                for m in candidates
                if sentence_of(m, window) == sentence_number
                and form_of(m, window) == form
                and (m.span[1] <= earlier.span[0] or earlier.span[1] <= m.span[0])
            ]
            if not matches:
                yield Excluded("no mention of another entity of the same form beside the first")
                continue
            distractor = min(matches, key=lambda m: mention_difference(m, earlier))
            candidates.remove(distractor)
            yield pair("same", earlier, later, window)
            yield pair("other", distractor, later, window)


def sentence_of(mention: Mention, window: Sentence) -> int:
    """Number of a mention's sentence in a window, from 1."""
    return bisect(window.starts, mention.span[0])


def form_of(mention: Mention, window: Sentence) -> str:
    """Form of a mention, by its head: pronoun, name, or common noun."""
    return FORMS.get(window.upos[head_of(mention.span, window.heads)], "common noun or other")


def mention_difference(one: Mention, other: Mention) -> tuple[int, int]:
    """Difference of two mentions in length, then the distance between their starts."""
    (start, end), (first, last) = one.span, other.span
    return abs((end - start) - (last - first)), abs(start - first)


def cues_of(one: Mention, other: Mention, window: Sentence) -> tuple[str, ...]:
    """Form, length and shared words of two mentions, and their pronouns and articles."""
    words = [tuple(x.lower() for x in window.words[slice(*m.span)]) for m in (one, other)]
    lengths = [min(len(tokens), LONG) for tokens in words]
    forms = [
        words[i][0] if window.upos[m.span[0]] in ("DET", "PRON") else form_of(m, window)
        for i, m in enumerate((one, other))
    ]
    cues = [f"lengths {lengths}", f"forms {forms}"]
    cues += [f"{number}: {form}" for number, form in enumerate(forms)]
    if {*words[0]} & {*words[1]}:
        cues.append("share a word")
    if len(words[0]) == len(words[1]):
        cues.append("equally long")
    return tuple(cues)


def pair(label: str, one: Mention, other: Mention, window: Sentence) -> Example:
    """Make the example of two mentions; the second is in the last sentence."""
    first, second = (" ".join(window.words[slice(*m.span)]).lower() for m in (one, other))
    heads = (window.words[head_of(m.span, window.heads)].lower() for m in (one, other))
    match = "same" if first == second else "other"
    distance = DISTANCES[len(window.starts) - sentence_of(one, window)]
    return Example(
        label,
        one.span,
        other.span,
        type=" ".join(heads),
        groups=(distance, f"{match} words"),
        reference=match,
        cues=cues_of(one, other, window),
    )
