"""Valid and invalid output of the rule of a task."""

import pytest

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded, Task
from probes.tasks.validation import TaskError

SENTENCE = Sentence("s7", "en", ("a", "b", "c"))


def task_of(rule, kind="classification"):
    return Task("t", 1, (), "word", kind, "accuracy", (), rule, "")


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [
        (("NOUN", (0, 1)), "classification", "('NOUN', (0, 1)), which is neither an Example nor"),
        (None, "classification", "None, which is neither"),
        (Excluded(3), "classification", "a reason that is not a string"),
        (Example(1.5, (0, 1)), "classification", "the label 1.5 (float); a class must be a string"),
        (
            Example(True, (0, 1)),
            "classification",
            "the label True (bool); a class must be a string",
        ),
        (Example("\ud800", (0, 1)), "classification", "a class must be a string"),
        (Example(("a",), (0, 1)), "classification", "a class must be a string"),
        (Example("x", 0), "classification", "the span 0; a span is a pair of integers"),
        (Example("x", (0, 1.0)), "classification", "the span (0, 1.0); a span"),
        (Example("x", [0, 1]), "classification", "the span [0, 1]; a span"),
        (Example("x", (0, 1), 2), "classification", "the span 2; a span"),
        (Example("x", (0, 4)), "classification", "the span (0, 4) for 3 words"),
        (Example("x", (1, 1)), "classification", "must not be empty"),
        (Example("x", (-1, 1)), "classification", "the span (-1, 1)"),
        (Example("x", (0, 1), type=3), "classification", "type=3; a type must be a string"),
        (
            Example("x", (0, 1), groups="ab"),
            "classification",
            "groups='ab'; groups must be a tuple",
        ),
        (
            Example("x", (0, 1), hide="b"),
            "classification",
            "hide='b'; it must be the index of a word",
        ),
        (Example("x", (0, 1), reference=None), "classification", "reference=None"),
        (
            Example("3", (0, 1)),
            "regression",
            "the label '3' (str); a label of a regression must be a finite",
        ),
        (Example(float("nan"), (0, 1)), "regression", "the label nan (float)"),
        (Example(float("inf"), (0, 1)), "regression", "the label inf (float)"),
        (Example(1e300, (0, 1)), "regression", "the label 1e+300"),
        (
            Example(-1e19, (0, 1)),
            "regression",
            "the label -1e+19 (float); a label of a regression must be a finite",
        ),
        (Example(True, (0, 1)), "regression", "the label True (bool)"),
        (Example("x", (0, 1)), "multi-label", "must be a tuple of strings"),
        (Example(("x", 1), (0, 1)), "multi-label", "must be a tuple of strings"),
    ],
)
def test_invalid_output_is_reported_with_the_sentence(item, kind, message):
    with pytest.raises(TaskError) as error:
        task_of(lambda sentence: [item], kind).examples(SENTENCE)
    assert message in str(error.value)
    assert "'s7'" in str(error.value)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (Example("x", (0, 3), type="a", groups=("g",), hide=None), "classification"),
        (Example(3, (0, 1)), "regression"),
        (Example(1e18, (0, 1)), "regression"),
        (Example(3, (0, 1)), "classification"),
        (Example((), (0, 1)), "multi-label"),
        (Example(("a", "b"), (2, 3)), "multi-label"),
        (Excluded("why"), "classification"),
    ],
)
def test_valid_output_is_returned(item, kind):
    assert task_of(lambda sentence: [item], kind).examples(SENTENCE) == [item]


def test_a_rule_without_yield_is_an_error():
    with pytest.raises(TaskError, match="the rule returned None; it must yield examples"):
        task_of(lambda sentence: None).examples(SENTENCE)


def test_an_exception_of_a_rule_becomes_one_line():
    def rule(sentence):
        yield Example("x", (0, 1))
        raise KeyError("Number\nand more")

    with pytest.raises(TaskError) as error:
        task_of(rule).examples(SENTENCE)
    assert "\n" not in str(error.value)
    assert "sentence 's7': the rule raised KeyError: 'Number\\nand more'" in str(error.value)
    assert isinstance(error.value, UserError)


def test_a_value_with_a_failing_or_very_long_repr_is_reported_too():
    class Bad:
        def __repr__(self):
            raise ValueError

    for item in (Bad(), "x" * 10_000):
        with pytest.raises(TaskError) as error:
            task_of(lambda sentence, item=item: [item]).examples(SENTENCE)
        assert len(str(error.value)) < 300
