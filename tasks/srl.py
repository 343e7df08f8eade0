"""Semantic-role labelling of gold spans (edge probing, Tenney et al. 2019b)."""

from __future__ import annotations

from collections.abc import Iterator

from data.sentence import Sentence
from tasks.task import Example, task


@task(
    "srl",
    version=1,
    needs=["frames"],
    shape="span pair",
    metric="accuracy",
    also=["macro_f1_20"],
)
def srl(sentence: Sentence) -> Iterator[Example]:
    """The PropBank role that a span plays for a predicate, both given."""
    for frame in sentence.frames:
        for label, span in frame.arguments:
            if label not in ("V", "C-V"):
                lemma = frame.roleset.rpartition(".")[0]
                words = " ".join(sentence.words[slice(*span)])
                yield Example(
                    label, frame.predicate, span, type=f"{lemma} {words}", groups=groups(label)
                )


def groups(label: str) -> tuple[str, ...]:
    """Core (ARG0 to ARG5, ARGA), adjunct (ARGM), and both together without `R-` and `C-`."""
    if label.startswith(("R-", "C-")):
        return ()
    return ("adjunct" if label.startswith("ARGM") else "core", "without R- and C-")
