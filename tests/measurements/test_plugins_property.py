"""Whatever a plug-in does, the user sees a report or one line."""

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from probes.cli.check_task import check_task
from probes.cli.commands.check import _print
from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.data.sentence import Corpus, Sentence
from probes.measurements.plugins import load_file
from probes.tasks.task import Example, Excluded, Task

FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = ("the", "old", "dog", "barks")
CORPUS = Corpus(
    "c",
    "1",
    "",
    {
        split: tuple(Sentence(f"{split}{n}", "en", WORDS[:n], upos=("X",) * n) for n in (2, 3, 4))
        for split in ("train", "dev", "test")
    },
)

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.floats(),
    st.text(max_size=3),
    st.tuples(st.integers(-1, 5), st.integers(-1, 5)),
    st.tuples(st.text(max_size=2)),
    st.lists(st.integers(), max_size=2),
)
spans = st.one_of(st.just((0, 1)), st.just((0, 1)), st.just((1, 2)), odd)
labels = st.one_of(st.sampled_from(["a", "b"]), st.floats(-2, 2), st.just(("a",)), odd)
examples = st.builds(
    Example,
    labels,
    spans,
    st.one_of(st.none(), spans),
    type=st.one_of(st.just("t"), odd),
    hide=st.one_of(st.none(), odd),
    groups=st.one_of(st.just(()), odd),
)
sound = st.builds(
    Example,
    st.sampled_from(["a", "b", "c\n\x1b[31m", "[/red]", ""]),
    st.just((0, 1)),
    type=st.sampled_from(["", "t", "u"]),
)


def outcome(rule, shape="word", kind="classification", metric="accuracy", also=()):
    """What a user sees of a task: a printed report, or a line."""
    try:
        report = check_task(Task("t", 1, (), shape, kind, metric, also, rule, ""), CORPUS)
    except UserError as error:
        said = str(error)
    else:
        _print(report, Console(file=io.StringIO(), width=80))
        return report
    assert "\n" not in said
    return said


@given(
    st.lists(st.one_of(examples, examples, odd, st.builds(Excluded, odd)), max_size=4),
    st.sampled_from(["word", "pair", "span", "span pair", "sentence"]),
    st.sampled_from([("classification", "accuracy"), ("regression", "corpus_spearman")]),
)
@FEW
def test_any_item_that_a_rule_yields(items, shape, kind):
    outcome(lambda sentence: items, shape, *kind)


@given(st.lists(st.lists(sound, min_size=1, max_size=3), min_size=1, max_size=5), st.booleans())
@FEW
def test_any_valid_examples_that_a_rule_yields(items, balanced):
    metric = "balanced_accuracy" if balanced else "accuracy"
    found = outcome(lambda s: items[len(s) % len(items)], metric=metric, also=("macro_f1",))
    if not isinstance(found, str):
        assert found.leakage.n_test == sum(len(items[n % len(items)]) for n in (2, 3, 4))


@given(
    st.sampled_from([ValueError, KeyError, RecursionError, OSError, StopIteration, MemoryError]),
    st.text(),
)
@FEW
def test_any_error_that_a_rule_raises(kind, message):
    def rule(sentence):
        raise kind(message)

    said = outcome(rule)
    assert f"the rule raised {kind.__name__}" in said
    assert said.isprintable()


@given(st.text(st.characters(exclude_categories=()), max_size=30))
@FEW
def test_any_content_of_an_included_file(tmp_path, text):
    path = tmp_path / "any.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError) as error:
        load_file(path)
    assert "\n" not in str(error.value)


@given(st.lists(st.text(max_size=4), max_size=6), st.text(max_size=4))
@FEW
def test_a_registry_keeps_order_and_refuses_duplicates(names, wanted):
    registry: Registry[int] = Registry("thing")
    for name in filter(lambda name: not name.isprintable(), names):
        with pytest.raises(UserError, match="unprintable characters"):
            registry.add(name, 0)
    names = list(filter(str.isprintable, names))
    for number, name in enumerate(names):
        if name in names[:number]:
            with pytest.raises(UserError, match=r"is defined twice, in .* and in this session"):
                exec("add(name, -1)", {"add": registry.add, "name": name, "__name__": "other"})
        registry.add(name, number)  # a module may replace what it has defined
    assert list(registry) == list(dict.fromkeys(names))
    if wanted in names:
        assert registry.get(wanted) == len(names) - 1 - names[::-1].index(wanted)
    else:
        with pytest.raises(UserError, match="Unknown thing"):
            registry.get(wanted)
