"""The verb, the auxiliary and the subject of the main clause (after Lin et al. 2019).

The reference is a rule of linear order: the first candidate in a sentence is the main one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from probes.data.sentence import ROOT, Sentence
from probes.tasks.agreement import predicate_forms
from probes.tasks.task import Example, task


@task("main-verb", version=2, needs=["upos", "heads"], reference="the first verb",
      metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def main_verb(sentence: Sentence) -> Iterator[Example]:
    """Whether a verb is the main verb of its sentence, the root of the dependency tree."""
    return main_or_other(sentence, ("VERB",), "verb", lambda i: sentence.heads[i] == ROOT)


@task("main-auxiliary", version=1, needs=["upos", "heads", "deprels"],
      reference="the first auxiliary", metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def main_auxiliary(sentence: Sentence) -> Iterator[Example]:
    """Whether an auxiliary is the (first) one of the main clause."""
    forms = predicate_forms(sentence, sentence.heads.index(ROOT))
    first = next((i for i in forms if sentence.upos[i] == "AUX"), None)
    return main_or_other(sentence, ("AUX",), "auxiliary", lambda i: i == first)


@task("subject-noun", version=2, needs=["upos", "heads", "deprels"], reference="the first noun",
      metric="balanced_accuracy", also=["accuracy"],
      group="syntax")  # fmt: skip
def subject_noun(sentence: Sentence) -> Iterator[Example]:
    """Whether a noun is the subject of its sentence's main clause."""
    roots = [i for i, head in enumerate(sentence.heads) if head == ROOT]
    return main_or_other(
        sentence, ("NOUN", "PROPN"), "noun",
        lambda i: sentence.deprels[i].startswith("nsubj") and sentence.heads[i] in roots,
    )  # fmt: skip


def main_or_other(
    sentence: Sentence, tags: tuple[str, ...], name: str, is_main: Callable[[int], bool]
) -> Iterator[Example]:
    """Yield an example for each word with one of `tags`; other tags would tell the label."""
    candidates = [i for i, tag in enumerate(sentence.upos) if tag in tags]
    for i in candidates:
        groups = (f"first {name}" if i == candidates[0] else f"later {name}",)
        label = "main" if is_main(i) else "other"
        linear = "main" if i == candidates[0] else "other"
        yield Example(label, (i, i + 1), type=sentence.words[i], groups=groups, reference=linear)
