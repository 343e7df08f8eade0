"""What a rule may give, and what is said of anything else."""

import pytest

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.tasks.checked import TaskError
from probes.tasks.task import Example, Excluded, Task

SENTENCE = Sentence("s7", "en", ("a", "b", "c"))


def task_of(rule, kind="classification"):
    return Task("t", 1, (), "word", kind, "accuracy", (), rule, "")


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [
        (("NOUN", (0, 1)), "classification", "('NOUN', (0, 1)), which is neither an Example nor"),
        (None, "classification", "None, which is neither"),
        (Excluded(3), "classification", "a reason that is no string"),
        (Example(1.5, (0, 1)), "classification", "the label 1.5 (float); a class is a string"),
        (Example(True, (0, 1)), "classification", "the label True (bool); a class is a string"),
        (Example("\ud800", (0, 1)), "classification", "a class is a string"),
        (Example("x", 0), "classification", "the span 0; a span is a pair of numbers"),
        (Example("x", (0, 1.0)), "classification", "the span (0, 1.0); a span"),
        (Example("x", [0, 1]), "classification", "the span [0, 1]; a span"),
        (Example("x", (0, 1), 2), "classification", "the span 2; a span"),
        (Example("x", (0, 4)), "classification", "the span (0, 4) in 3 words"),
        (Example("x", (1, 1)), "classification", "not empty"),
        (Example("x", (-1, 1)), "classification", "the span (-1, 1)"),
        (Example("x", (0, 1), type=3), "classification", "type=3; a type is a string"),
        (Example("x", (0, 1), groups="ab"), "classification", "groups='ab'; groups are a tuple"),
        (Example("x", (0, 1), hide="b"), "classification", "hide='b'; it is the number of a word"),
        (Example("x", (0, 1), reference=None), "classification", "reference=None"),
        (Example("3", (0, 1)), "regression", "the label '3' (str); regression takes finite"),
        (Example(float("nan"), (0, 1)), "regression", "the label nan (float)"),
        (Example(float("inf"), (0, 1)), "regression", "the label inf (float)"),
        (Example(1e300, (0, 1)), "regression", "the label 1e+300"),
        (Example(-1e19, (0, 1)), "regression", "the label -1e+19 (float); regression takes finite"),
        (Example(True, (0, 1)), "regression", "the label True (bool)"),
        (Example("x", (0, 1)), "multi-label", "takes a tuple of strings"),
        (Example(("x", 1), (0, 1)), "multi-label", "takes a tuple of strings"),
    ],
)
def test_nonsense_is_named_with_the_sentence(item, kind, message):
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
def test_sense_is_passed_on(item, kind):
    assert task_of(lambda sentence: [item], kind).examples(SENTENCE) == [item]


def test_a_rule_that_forgets_to_yield_is_told_so():
    with pytest.raises(TaskError, match="the rule returned None; it has to yield examples"):
        task_of(lambda sentence: None).examples(SENTENCE)


def test_what_a_rule_raises_is_put_in_one_line():
    def rule(sentence):
        yield Example("x", (0, 1))
        raise KeyError("Number\nand more")

    with pytest.raises(TaskError) as error:
        task_of(rule).examples(SENTENCE)
    assert "\n" not in str(error.value)
    assert "sentence 's7': the rule raised KeyError: 'Number\\nand more'" in str(error.value)
    assert isinstance(error.value, UserError)


def test_a_value_whose_repr_raises_or_is_endless_is_named_all_the_same():
    class Bad:
        def __repr__(self):
            raise ValueError

    for item in (Bad(), "x" * 10_000):
        with pytest.raises(TaskError) as error:
            task_of(lambda sentence, item=item: [item]).examples(SENTENCE)
        assert len(str(error.value)) < 300
