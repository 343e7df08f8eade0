"""The set of roles of a gold predicate (PropBank, Palmer et al. 2005)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task(
    "roles",
    version=1,
    needs=["frames", "upos"],
    shape="span",
    kind="multi-label",
    metric="micro_f1",
    also=["macro_f1_20", "exact_match"],
    group="semantics",
)
def roles(sentence: Sentence) -> Iterator[Example]:
    """The set of PropBank roles, core and adjunct, of a given predicate in its sentence."""
    for frame in sentence.frames:
        # Continuations (C-) and references (R-) count as the role that they belong to.
        labels = {label.removeprefix("R-").removeprefix("C-") for label, _ in frame.arguments}
        lemma = frame.roleset.rpartition(".")[0]
        tag = sentence.upos[frame.predicate[0]]
        yield Example(
            tuple(sorted(labels - {"V"})),
            frame.predicate,
            type=lemma,
            groups=(f"predicate {tag}",) if tag in ("VERB", "NOUN", "ADJ", "AUX") else (),
        )
