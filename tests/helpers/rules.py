"""Tasks of a rule that a test writes, and their examples in a corpus of a few sentences."""

from probes.data.sentence import Corpus
from probes.examples.examples import collect_examples
from probes.tasks.task import Task


def task_of(
    rule, kind="classification", metric="accuracy", *, shape="word", also=(), needs=(), **fields
):
    """A task with this rule."""
    return Task("t", 1, needs, shape, kind, metric, also, rule, "", **fields)


def corpus_of(train, dev=None, test=None):
    """A corpus of these sentences; dev and test are those of train if they are not given."""
    splits = {"train": train, "dev": train if dev is None else dev}
    splits["test"] = train if test is None else test
    return Corpus("c", "1", "MIT", {split: tuple(part) for split, part in splits.items()})


def examples_of(rule, train, dev=None, test=None, *, hiding="masked", **task):
    """The examples that the rule finds; for the other arguments see the functions above."""
    return collect_examples(task_of(rule, **task), corpus_of(train, dev, test), hiding)
