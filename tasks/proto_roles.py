"""Semantic proto-roles of arguments (Dowty 1991; Reisinger et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.srl import distance_group
from probes.tasks.task import Example, Excluded, task

OF_ADVERBIALS = Excluded("rated as location, manner, purpose or time instead")


@task(
    "proto-roles",
    version=1,
    needs=["ratings"],
    shape="pair",
    kind="multi-label",
    metric="micro_f1",
    also=["macro_f1_20", "exact_match"],
    group="semantics",
)
def proto_roles(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The proto-role properties, of 14, that a given argument has in a given predicate's event."""
    for rating in sentence.ratings:
        if rating.subspace == "protoroles":
            if "instigation" not in rating.values:
                yield OF_ADVERBIALS
                continue
            predicate, argument = ((word, word + 1) for word in rating.words)
            # With both forms as type, train would lack the types of most test pairs.
            form = sentence.words[argument[0]]
            groups = distance_group(predicate, argument)
            yield Example(rating.holding, predicate, argument, type=form, groups=groups)
