"""Labels of constituents: given ones, those above a word, and those that make up a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import ROOT, Sentence
from probes.tasks.sentence_shape import length_class
from probes.tasks.task import Example, Excluded, task

SIZES = ((1, "1 word"), (3, "2–3 words"), (9, "4–9 words"), (float("inf"), "10+ words"))
"""Groups of the breakdown: maximum number of words, and name."""

TOP_SEQUENCES = (
    "ADVP_NP_VP_.", "CC_ADVP_NP_VP_.", "CC_NP_VP_.", "IN_NP_VP_.", "NP_ADVP_VP_.", "NP_NP_VP_.",
    "NP_PP_.", "NP_VP_.", "PP_NP_VP_.", "RB_NP_VP_.", "SBAR_NP_VP_.", "SBAR_VP_.", "S_CC_S_.",
    "S_NP_VP_.", "S_VP_.", "VBD_NP_VP_.", "VP_.", "WHADVP_SQ_.", "WHNP_SQ_.",
)  # fmt: skip
"""The 19 classes of Conneau et al. (2018), beside OTHER."""

PUNCTUATION_TAGS = frozenset((".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP"))


@task("constituent", version=1, needs=["constituents"], shape="span",
      metric="accuracy", also=["macro_f1_20"], group="syntax")  # fmt: skip
def constituent(sentence: Sentence) -> Iterator[Example]:
    """The label of a given constituent (Tenney et al. 2019b); unary chains have one, as S+VP."""
    labels: dict[tuple[int, int], list[str]] = {}
    for node in sentence.constituents:
        if node.parent != ROOT:  # the label of the whole tree is always TOP
            labels.setdefault(node.span, []).append(node.label)
    for (start, end), chain in labels.items():
        size = next(name for most, name in SIZES if end - start <= most)
        first_word = sentence.words[start]
        yield Example("+".join(chain), (start, end), type=first_word, groups=(size,))


@task("parent-constituent", version=1, needs=["constituents"],
      metric="accuracy", also=["macro_f1_20"], group="syntax")  # fmt: skip
def parent_constituent(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The label of the smallest constituent that a word is in (Liu et al. 2019)."""
    return ancestors(sentence, 0)


@task("grandparent-constituent", version=1, needs=["constituents"],
      metric="accuracy", also=["macro_f1_20"], group="syntax")  # fmt: skip
def grandparent_constituent(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The label of the constituent just above the smallest one of a word (Liu et al. 2019)."""
    return ancestors(sentence, 1)


@task("top-constituents", version=1, needs=["constituents", "xpos"], shape="sentence",
      metric="accuracy", also=["macro_f1"], group="syntax")  # fmt: skip
def top_constituents(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The top constituents of a sentence, in 20 classes (TopConst, Conneau et al. 2018)."""
    sequence = top_sequence(sentence)
    if not sequence:
        yield Excluded("not one constituent below the root")
    elif PUNCTUATION_TAGS.intersection(sequence[:-1]) or sequence[-1:] != ["."]:
        yield Excluded("punctuation within, or no full stop")
    else:
        label = "_".join(sequence)
        yield Example(
            label if label in TOP_SEQUENCES else "OTHER",
            (0, len(sentence)),
            groups=(f"{length_class(sentence)} words",),
        )


def ancestors(sentence: Sentence, steps: int) -> Iterator[Example | Excluded]:
    """For each word, the label of the constituent `steps` above the word's smallest one."""
    labels_above: list[list[str]] = [[] for _ in sentence.words]
    for node in sentence.constituents:
        for word in range(*node.span):
            labels_above[word].insert(0, node.label)
    for word, labels in enumerate(labels_above):
        if len(labels) > steps:
            yield Example(labels[steps], (word, word + 1), type=sentence.words[word])
        else:
            yield Excluded("no constituent that far above")


def top_sequence(sentence: Sentence) -> list[str]:
    """Labels and tags of the children of the constituent below the root.

    Empty unless there is exactly one constituent below the root.
    """
    below = [i for i, node in enumerate(sentence.constituents) if node.parent == 0]
    if len(below) != 1:
        return []
    parts = {node.span: node.label for node in sentence.constituents if node.parent == below[0]}
    covered_words = {word for span in parts for word in range(*span)}
    parts |= {(i, i + 1): tag for i, tag in enumerate(sentence.xpos) if i not in covered_words}
    return [parts[span] for span in sorted(parts)]
