"""Morphology of any treebank: a task for each feature, and one for lemmas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from functools import lru_cache, partial

from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.tasks.task import Example, Excluded, Rule, Task

VERSION = 1
FEATURE = "feats."
"""Prefix of a feature in the name of the task."""
LEMMA_SCRIPT = "lemma-script"

ENOUGH = 20
"""Words in train that a value or edit script needs, besides one in dev and one in test."""

NO_LEMMA = Excluded("no lemma")
RARE = Excluded(f"edit script of fewer than {ENOUGH} words in train, or none in dev or test")


def is_morphological(name: str) -> bool:
    """Whether a task of this name is made from a treebank."""
    return name.startswith(FEATURE) or name == LEMMA_SCRIPT


def morphology(corpus: Corpus) -> tuple[dict[str, Task], dict[str, str]]:
    """Tasks of a treebank's features (Ács et al. 2023) and lemmas, each with at least two labels.

    A label is a value or an edit script with `ENOUGH` words. Values with fewer words are classes
    too. A value such as ``Fem,Masc`` is a separate class.

    Returns:
        tasks by name; and for missing tasks, the reason by name.
    """
    train, *held_out = (
        Counter(label for sentence in corpus.splits[split] for label in labels_of(sentence))
        for split in SPLITS
    )
    labels: dict[str, set[str]] = {LEMMA_SCRIPT: set()}
    for name, label in train.keys() | set().union(*held_out):
        of_task = labels.setdefault(name, set())
        if train[name, label] >= ENOUGH and all(count[name, label] for count in held_out):
            of_task.add(label)
    tasks, reasons = {}, {}
    for name, classes in sorted(labels.items()):
        if len(classes) > 1:
            tasks[name] = _task(name, frozenset(classes))
        else:
            reasons[name] = (
                f"{f'only {min(classes)}' if classes else 'no label'} has {ENOUGH} words in train "
                "and some in dev and test; a task needs two labels"
            )
    return tasks, reasons


def _task(name: str, classes: frozenset[str]) -> Task:
    rule: Rule
    if name == LEMMA_SCRIPT:
        layer, summary = "lemmas", "The edit script from a word's form to its lemma."
        rule = partial(script_of, classes)
    else:
        feature = name.removeprefix(FEATURE)
        layer, summary, rule = "feats", f"A word's {feature}.", partial(value_of, feature)
    return Task(
        name=name,
        version=VERSION,
        needs=(layer,),
        shape="word",
        kind="classification",
        metric="accuracy",
        also=("macro_f1",),
        rule=rule,
        summary=summary,
        group="morphology",
    )


def labels_of(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """Yield pairs of task and label for the words of a sentence."""
    for feats in sentence.feats:
        yield from ((FEATURE + name, value) for name, value in feats.items())
    yield from ((LEMMA_SCRIPT, script) for script in scripts_of(sentence) if script)


def value_of(name: str, sentence: Sentence) -> Iterator[Example]:
    """The value of a feature, for every word that has it."""
    for i, feats in enumerate(sentence.feats):
        if name in feats:
            yield Example(feats[name], (i, i + 1), type=sentence.words[i])


def script_of(classes: Collection[str], sentence: Sentence) -> Iterator[Example | Excluded]:
    """The edit script from a word's form to its lemma, if it is one of the classes."""
    for i, script in enumerate(scripts_of(sentence)):
        if script in classes:
            yield Example(script, (i, i + 1), type=sentence.words[i])
        else:
            yield RARE if script else NO_LEMMA


def scripts_of(sentence: Sentence) -> list[str]:
    """Edit script of every word; empty for words without a lemma."""
    pairs = zip(sentence.words, sentence.lemmas, strict=True) if sentence.lemmas else ()
    return [edit_script(*pair) if pair[1] != "_" or pair[0] == "_" else "" for pair in pairs]


@lru_cache(1 << 17)
def edit_script(form: str, lemma: str) -> str:
    """Edits at both ends that turn a form into a lemma (Straka 2018), ignoring case.

    ``…-3+y`` turns *cities* into *city*, and ``…`` keeps the form. If form and lemma share no
    letter, the script is the lemma itself.
    """
    form, lemma = form.lower(), lemma.lower()
    start, at, size = SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
    if not size:
        return lemma
    end = len(form) - start - size
    return f"{_edit(start, lemma[:at])}…{_edit(end, lemma[at + size :])}"


def _edit(n_removed: int, added: str) -> str:
    return (f"-{n_removed}" if n_removed else "") + (f"+{added}" if added else "")
