"""Reports of `check` about tasks, on sentences counted by hand."""

import random

import pytest
from flat_trees import with_flat_trees

from probes.cli.check_task import check_task
from probes.data.find import find_corpus
from probes.data.sentence import Corpus, Sentence
from probes.tasks.builtin import tasks
from probes.tasks.task import Example, Task
from probes.tasks.validation import TaskError


def tagged_sentence(id, words, upos):
    words, upos = tuple(words.split()), tuple(upos.split())
    return Sentence(id, "en", words, upos=upos, xpos=upos, heads=(-1,) * len(words))


SPLITS = {
    "train": (("1", "the dog saw the saw", "D N V D N"), ("2", "dogs bark", "N V")),
    "dev": (("3", "cats see", "N V"),),
    "test": (("4", "dogs bark", "N V"), ("5", "the saw ran off", "D N V P")),
}
"""Sentences with their names and tags."""

TAGGED = {split: tuple(tagged_sentence(*x) for x in given) for split, given in SPLITS.items()}
CORPUS = Corpus("tiny", "1", "CC0-1.0", TAGGED)


def by_word(s):
    return [Example(tag, (i, i + 1), type=s.words[i]) for i, tag in enumerate(s.upos)]


def task_of(rule, needs=("upos",), kind="classification", metric="accuracy"):
    return Task("t", 1, needs, "word", kind, metric, (), rule, "")


def test_counts_leaks_and_baselines():
    report = check_task(task_of(by_word), CORPUS)
    leaks = report.leakage
    counts = {"N": (3, 1, 2), "D": (2, 0, 1), "V": (2, 1, 2), "P": (0, 0, 1)}
    assert report.examples.label_counts == counts
    assert report.majority == pytest.approx(3 / 7)
    # the, dog, saw, dogs, bark; of test's six words: dogs, bark, the, saw.
    assert (leaks.types, leaks.seen) == (5, pytest.approx(4 / 6))
    # "saw" is V and N once each; V comes first, and test has N.
    assert leaks.by_type == pytest.approx(3 / 4)
    assert (leaks.n_test, leaks.in_train) == (6, 2)
    assert (leaks.repeated, leaks.contradictory) == (0, 0)
    # Most frequent: N, right twice of six.
    assert report.baselines["majority"]["accuracy"] == pytest.approx(2 / 6)
    assert report.errors == ()
    assert len(report.warnings) == 3
    for part in (
        "1 test example has a label that does not occur in train, so no probe can predict it: 'P'",
        "2 of 6 test examples occur word for word in train",
        "fewer than",
    ):
        assert part in "\n".join(report.warnings)


def test_shares_of_several_labels_are_of_examples_and_their_order_does_not_matter():
    def rule(s):
        for i, tag in enumerate(s.upos):
            both = (tag, "any") if s.id in ("1", "3") else ("any", tag)
            yield Example(both if tag == "N" else (tag,), (i, i + 1), type=s.words[i])

    report = check_task(task_of(rule, kind="multi-label", metric="micro_f1"), CORPUS)
    assert report.examples.label_counts["N"] == (3, 1, 2)
    assert report.majority == pytest.approx(3 / 7)
    assert report.leakage.in_train == 2
    # Of dogs, bark, the, saw: the last is V and N once each in train, V first; test has N.
    assert report.leakage.by_type == pytest.approx(3 / 4)


def test_reading_an_undeclared_layer_is_an_error():
    def rule(s):
        return [Example(s.upos[i] + s.xpos[i], (i, i + 1)) for i in range(len(s.words))]

    report = check_task(task_of(rule), CORPUS)
    assert report.read_layers == {"upos", "xpos"}
    (error,) = report.errors
    assert "reads xpos" in error
    assert "needs=['upos', 'xpos']" in error
    assert any("no type=" in warning for warning in report.warnings)


def test_a_declared_layer_that_is_never_read_is_a_warning():
    report = check_task(task_of(by_word, ("upos", "heads")), CORPUS)
    said = "needs= lists heads, which the rule never reads"
    assert any(warning.startswith(said) for warning in report.warnings)


@pytest.mark.parametrize(
    "name", [name for name in tasks if not {"mentions", "ratings"} & {*tasks.get(name).needs}]
)
def test_the_suites_own_tasks_pass(name):
    limit = None if name in ("coordination-inversion", "word-content") else 80
    report = check_task(tasks.get(name), with_flat_trees(find_corpus("sample", limit=limit).load()))
    assert report.errors == ()
    assert report.read_layers == set(tasks.get(name).needs)


def test_random_rules_and_rules_with_memory_are_refused():
    before = []

    def remembers(s):
        before.append(s.id)
        return [Example(f"{len(before) % 2}", (0, 1))]

    def guesses(s):
        return [Example(str(random.random()), (0, 1))]

    said = r"yielded different examples of sentence '\d' when run twice"
    for rule in (remembers, guesses):
        with pytest.raises(TaskError, match=said):
            check_task(task_of(rule), CORPUS)
