"""Semantic role labelling of gold spans (edge probing, Tenney et al. 2019b)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence, Span
from probes.tasks.task import Example, task

DISTANCES = ((0, "0"), (2, "1–2"), (6, "3–6"), (float("inf"), "7+"))
"""Groups by number of words between predicate and argument: maximum number, and name."""


@task(
    "srl",
    version=2,
    needs=["frames"],
    shape="span pair",
    metric="accuracy",
    also=["macro_f1_20"],
    group="semantics",
)
def srl(sentence: Sentence) -> Iterator[Example]:
    """The PropBank role of a given argument span for a given predicate."""
    for frame in sentence.frames:
        for label, span in frame.arguments:
            if label not in ("V", "C-V"):
                # With the whole span as type, train would lack the types of most test arguments.
                lemma, first_word = frame.roleset.rpartition(".")[0], sentence.words[span[0]]
                yield Example(
                    label,
                    frame.predicate,
                    span,
                    type=f"{lemma} {first_word}",
                    groups=(*groups(label), *distance_group(frame.predicate, span)),
                )


def distance_group(predicate: Span, argument: Span) -> tuple[str, ...]:
    """Group by number of words between the two (bins of He et al. 2017); empty on overlap."""
    words = max(predicate[0] - argument[1], argument[0] - predicate[1])
    bins = (name for most, name in DISTANCES if words <= most)
    return () if words < 0 else (f"{next(bins)} words between",)


def groups(label: str) -> tuple[str, ...]:
    """Core (ARG0 to ARG5, ARGA) or adjunct (ARGM), and both without `R-` and `C-` labels."""
    if label.startswith(("R-", "C-")):
        return ()
    return ("adjunct" if label.startswith("ARGM") else "core", "without R- and C-")
