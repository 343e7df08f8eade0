"""The files that `new-task` writes: a task of each shape and kind to start from, and its test."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True)
class Start:
    """A small task to start from.

    Attributes:
        summary: what it predicts.
        needs: annotation layers that its rule reads.
        rule: the body of the rule, as Python.
        expected: what the rule yields for the test's sentence, as Python.
    """

    summary: str
    needs: tuple[str, ...]
    rule: str
    expected: str


STARTS = {
    ("word", "classification"): Start(
        "Whether a word is a noun.",
        ("upos",),
        """\
    for i, tag in enumerate(sentence.upos):
        label = "noun" if tag == "NOUN" else "other"
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(label, (i, i + 1), type=sentence.words[i])
""",
        """\
    Example("other", (0, 1), type="The"),
    Example("noun", (1, 2), type="dogs"),
    Example("other", (2, 3), type="bark"),
    Example("other", (3, 4), type="."),
""",
    ),
    ("word", "regression"): Start(
        "The number of dependents of a word.",
        ("heads",),
        """\
    for i, word in enumerate(sentence.words):
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(float(sentence.heads.count(i)), (i, i + 1), type=word)
""",
        """\
    Example(0.0, (0, 1), type="The"),
    Example(1.0, (1, 2), type="dogs"),
    Example(2.0, (2, 3), type="bark"),
    Example(0.0, (3, 4), type="."),
""",
    ),
    ("word", "multi-label"): Start(
        "The morphological features of a word.",
        ("feats",),
        """\
    for i, feats in enumerate(sentence.feats):
        label = tuple(f"{name}={value}" for name, value in feats.items())  # may be empty
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(label, (i, i + 1), type=sentence.words[i])
""",
        """\
    Example(("Definite=Def",), (0, 1), type="The"),
    Example(("Number=Plur",), (1, 2), type="dogs"),
    Example(("Tense=Pres", "VerbForm=Fin"), (2, 3), type="bark"),
    Example((), (3, 4), type="."),
""",
    ),
    ("pair", "classification"): Start(
        "The dependency relation of a word to its head; both are given.",
        ("heads", "deprels"),
        """\
    for i, head in enumerate(sentence.heads):
        if head == ROOT:
            yield Excluded("root")  # not an example; counted by reason
            continue
        # The probe sees both words; the control task has one random label per type.
        pair = f"{sentence.words[i]} {sentence.words[head]}"
        yield Example(sentence.deprels[i], (i, i + 1), (head, head + 1), type=pair)
""",
        """\
    Example("det", (0, 1), (1, 2), type="The dogs"),
    Example("nsubj", (1, 2), (2, 3), type="dogs bark"),
    Excluded("root"),
    Example("punct", (3, 4), (2, 3), type=". bark"),
""",
    ),
    ("pair", "regression"): Start(
        "The distance in words between a word and its head; both are given.",
        ("heads",),
        """\
    for i, head in enumerate(sentence.heads):
        if head == ROOT:
            yield Excluded("root")  # not an example; counted by reason
            continue
        # The probe sees both words; the control task has one random label per type.
        pair = f"{sentence.words[i]} {sentence.words[head]}"
        yield Example(float(abs(head - i)), (i, i + 1), (head, head + 1), type=pair)
""",
        """\
    Example(1.0, (0, 1), (1, 2), type="The dogs"),
    Example(1.0, (1, 2), (2, 3), type="dogs bark"),
    Excluded("root"),
    Example(1.0, (3, 4), (2, 3), type=". bark"),
""",
    ),
    ("span", "classification"): Start(
        "The type of a base chunk; its words are given.",
        ("chunks",),
        """\
    for start, tag in enumerate(sentence.chunks):
        if tag.startswith("B-"):
            end = start + 1
            while end < len(sentence) and sentence.chunks[end].startswith("I-"):
                end += 1
            # The probe sees the mean of the words [start, end).
            yield Example(tag[2:], (start, end), type=" ".join(sentence.words[start:end]))
""",
        """\
    Example("NP", (0, 2), type="The dogs"),
    Example("VP", (2, 3), type="bark"),
""",
    ),
    ("span", "regression"): Start(
        "The number of words in a base chunk.",
        ("chunks",),
        """\
    for start, tag in enumerate(sentence.chunks):
        if tag.startswith("B-"):
            end = start + 1
            while end < len(sentence) and sentence.chunks[end].startswith("I-"):
                end += 1
            # The probe sees the mean of the words [start, end).
            yield Example(float(end - start), (start, end), type=sentence.words[start])
""",
        """\
    Example(2.0, (0, 2), type="The"),
    Example(1.0, (2, 3), type="bark"),
""",
    ),
    ("span pair", "classification"): Start(
        "The PropBank role of an argument; its predicate is given.",
        ("frames",),
        """\
    for frame in sentence.frames:
        for role, span in frame.arguments:
            # The probe sees the mean of each span's words.
            kind = f"{frame.roleset} {sentence.words[span[0]]}"
            yield Example(role, frame.predicate, span, type=kind)
""",
        """\
    Example("ARG0", (2, 3), (0, 2), type="bark.01 The"),
""",
    ),
    ("span pair", "regression"): Start(
        "The distance in words between the first words of a predicate and its argument.",
        ("frames",),
        """\
    for frame in sentence.frames:
        for _, span in frame.arguments:
            # The probe sees the mean of each span's words.
            kind = f"{frame.roleset} {sentence.words[span[0]]}"
            apart = abs(frame.predicate[0] - span[0])
            yield Example(float(apart), frame.predicate, span, type=kind)
""",
        """\
    Example(2.0, (2, 3), (0, 2), type="bark.01 The"),
""",
    ),
    ("sentence", "classification"): Start(
        "Whether a sentence contains an adverb.",
        ("upos",),
        """\
    label = "adverb" if "ADV" in sentence.upos else "none"
    # The probe sees the mean of all words.
    yield Example(label, (0, len(sentence)), type=sentence.words[0])
""",
        """\
    Example("none", (0, 4), type="The"),
""",
    ),
    ("sentence", "multi-label"): Start(
        "Which of noun, verb and adverb a sentence contains.",
        ("upos",),
        """\
    label = tuple(tag for tag in ("NOUN", "VERB", "ADV") if tag in sentence.upos)
    # The probe sees the mean of all words.
    yield Example(label, (0, len(sentence)), type=sentence.words[0])
""",
        """\
    Example(("NOUN", "VERB"), (0, 4), type="The"),
""",
    ),
    ("sentence", "regression"): Start(
        "The number of words in a sentence.",
        (),
        """\
    # The probe sees the mean of all words.
    yield Example(float(len(sentence)), (0, len(sentence)), type=sentence.words[0])
""",
        """\
    Example(4.0, (0, 4), type="The"),
""",
    ),
}
"""By shape and kind."""

METRICS = {
    "classification": ("accuracy", "macro_f1"),
    "multi-label": ("micro_f1", "exact_match"),
    "regression": ("corpus_spearman", "mae"),
}
"""By kind, the headline metric and a further one."""

TASK = Template('''"""$summary"""

from __future__ import annotations

from collections.abc import Iterator

from probes import $imports


@task(
    "$name",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames.
    needs=$needs,
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="$shape",
    # What is predicted: classification, multi-label or regression.
    kind="$kind",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="$metric",
    also=["$also"],
)
def $name(sentence: Sentence) -> Iterator[$yields]:
    """$summary"""
$rule''')

TEST = Template('''"""The task $name on a hand-written sentence."""

from pathlib import Path

from probes import $test_imports

load_file(Path(__file__).with_name("$name.py"))

SENTENCE = Sentence(
    id="1",
    language="en",
    words=("The", "dogs", "bark", "."),
    upos=("DET", "NOUN", "VERB", "PUNCT"),
    feats=(
        {"Definite": "Def"},
        {"Number": "Plur"},
        {"Tense": "Pres", "VerbForm": "Fin"},
        {},
    ),
    heads=(1, 2, ROOT, 2),
    deprels=("det", "nsubj", "root", "punct"),
    chunks=("B-NP", "I-NP", "B-VP", "O"),
    frames=(Frame("bark.01", (2, 3), (("ARG0", (0, 2)),)),),
)

EXPECTED = [
$expected]


def test_the_examples_of_a_sentence():
    assert get_task("$name").examples(SENTENCE) == EXPECTED
''')


def files(name: str, shape: str, kind: str) -> dict[str, str]:
    """The contents of the task's file and of its test, by file name."""
    start = STARTS[shape, kind]
    metric, also = METRICS[kind]
    root = ["ROOT"] if "ROOT" in start.rule else []
    excluded = ["Excluded"] if "Excluded" in start.rule else []
    words = {
        "name": name,
        "shape": shape,
        "kind": kind,
        "summary": start.summary,
        "needs": "[" + ", ".join(f'"{layer}"' for layer in start.needs) + "]",
        "metric": metric,
        "also": also,
        "rule": start.rule,
        "expected": start.expected,
        "imports": ", ".join([*root, "Example", *excluded, "Sentence", "task"]),
        "test_imports": ", ".join(
            ["ROOT", "Example", *excluded, "Frame", "Sentence", "get_task", "load_file"]
        ),
        "yields": " | ".join(["Example", *excluded]),
    }
    return {
        f"{name}.py": TASK.substitute(words),
        f"test_{name}.py": TEST.substitute(words),
    }
