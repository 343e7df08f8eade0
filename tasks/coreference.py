"""Coreference of given mentions (edge probing, Tenney et al. 2019b), in windows of a document."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from probes.data.sentence import Mention, Sentence
from probes.tasks.entities import head_of
from probes.tasks.task import Example, Excluded, task

DISTANCES = ("in one sentence", "one sentence apart", "two sentences apart")


@task("coreference", version=1, needs=["mentions", "heads"], shape="span pair", metric="accuracy",
      baseline="string match", window=len(DISTANCES),
      group="discourse")  # fmt: skip
def coreference(window: Sentence) -> Iterator[Example | Excluded]:
    """Whether two given mentions, at most two sentences apart, are of the same entity."""
    count = Counter(mention.entity for mention in window.mentions)
    # Without entities that are mentioned once: no pair with them corefers, which their form shows.
    mentions = [m for m in window.mentions if m.entity and count[m.entity] > 1]
    for number, later in enumerate(mentions):
        if sentence_of(later, window) < len(window.starts):
            continue
        if later.unfit:
            yield Excluded(later.unfit)
            continue
        before = [m for m in mentions[:number] if not m.unfit]
        others = [m for m in before if m.entity != later.entity and m.span[1] <= later.span[0]]
        for earlier in (m for m in before if m.entity == later.entity):
            if earlier.span[1] > later.span[0]:
                yield Excluded("one mention within the other")
                continue
            # As far away as the pair that corefers, so that distance does not tell either.
            place = sentence_of(earlier, window)
            beside = [m for m in others if sentence_of(m, window) == place]
            if not beside:
                yield Excluded("no mention of another entity beside the first")
                continue
            other = min(beside, key=lambda m: abs(m.span[0] - earlier.span[0]))
            others.remove(other)
            yield pair("same", earlier, later, window)
            yield pair("other", other, later, window)


def sentence_of(mention: Mention, window: Sentence) -> int:
    """The sentence of a window that a mention is in, from 1."""
    return bisect(window.starts, mention.span[0])


def pair(label: str, one: Mention, other: Mention, window: Sentence) -> Example:
    """The example of two mentions, the second of which is in the last sentence."""
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
    )
