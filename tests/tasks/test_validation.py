"""Valid and invalid output of the rule of a task."""

import pytest
from rules import task_of

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded
from probes.tasks.validation import TaskError

SENTENCE = Sentence("s7", "en", ("a", "b", "c"))


INVALID = {
    "classification": [
        (("NOUN", (0, 1)), "('NOUN', (0, 1)), which is neither an Example nor"),
        (None, "None, which is neither"),
        (Excluded(3), "a reason that is not a string"),
        (Example(1.5, (0, 1)), "the label 1.5 (float); a class must be a string"),
        (Example(True, (0, 1)), "the label True (bool); a class must be a string"),
        (Example("\ud800", (0, 1)), "a class must be a string"),
        (Example(("a",), (0, 1)), "a class must be a string"),
        (Example("x", 0), "the span 0; a span is a pair of integers"),
        (Example("x", (0, 1.0)), "the span (0, 1.0); a span"),
        (Example("x", [0, 1]), "the span [0, 1]; a span"),
        (Example("x", (0, 1), 2), "the span 2; a span"),
        (Example("x", (0, 4)), "the span (0, 4) for 3 words"),
        (Example("x", (1, 1)), "must not be empty"),
        (Example("x", (-1, 1)), "the span (-1, 1)"),
        (Example("x", (0, 1), type=3), "type=3; a type must be a string"),
        (Example("x", (0, 1), groups="ab"), "groups='ab'; groups must be a tuple"),
        (Example("x", (0, 1), hide="b"), "hide='b'; it must be the index of a word"),
        (Example("x", (0, 1), reference=None), "reference=None"),
    ],
    "regression": [
        (Example("3", (0, 1)), "the label '3' (str); a label of a regression must be a finite"),
        (Example(float("nan"), (0, 1)), "the label nan (float)"),
        (Example(float("inf"), (0, 1)), "the label inf (float)"),
        (Example(1e300, (0, 1)), "the label 1e+300"),
        (Example(-1e19, (0, 1)), "the label -1e+19 (float)"),
        (Example(True, (0, 1)), "the label True (bool)"),
    ],
    "multi-label": [
        (Example("x", (0, 1)), "must be a tuple of strings"),
        (Example(("x", 1), (0, 1)), "must be a tuple of strings"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "item", "message"), [(kind, *row) for kind in INVALID for row in INVALID[kind]]
)
def test_invalid_output_is_reported_with_the_sentence(kind, item, message):
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
