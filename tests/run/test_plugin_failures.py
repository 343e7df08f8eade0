"""What fails in a plug-in costs its own results, and is named with file and line."""

import pytest
from plugged_in import TASK, guide_file

from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.measurements.plugins import load_file
from probes.tasks.builtin import tasks

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")

RAISING = TASK.replace(
    "        yield", "        if i == 3: raise KeyError('Number')\n        yield"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RAISING, "the rule raised KeyError: 'Number'. Fix {path}, line 7."),
        (
            TASK.replace("(i, i + 1)", "(i, 99)"),
            "the rule yielded the span (0, 99) for 17 words; spans are [start, end) and must not be empty. "
            "Fix {path}, line 3.",
        ),
        (
            TASK.replace(
                "        yield", "        sentence.feats[i]['Number'] = 'Plur'\n        yield"
            ),
            "the rule raised TypeError: sentences are immutable, since other tasks read them too; "
            "change a copy. Fix {path}, line 7.",
        ),
        (
            "SEEN = set()\n"
            + TASK.replace("    for i", "    if sentence.id in SEEN: return\n    for i")
            + "    SEEN.add(sentence.id)\n",
            "yielded different examples of sentence 'train-0001' when run twice. A rule may depend "
            "only on the sentence",
        ),
        (
            TASK.replace("(i, i + 1)", "(i, i + 1), (i, i + 1)"),
            "a span2 in a task of shape 'word'. Fix {path}, line 3.",
        ),
    ],
)
def test_a_failing_rule_is_named_and_the_other_tasks_continue(
    text, message, write, run_with, tiny_bert, tmp_path, capsys
):
    path = write(text)
    results = run_with(path, tasks=("mine", "pos"))
    assert [result.task.name for result in results] == ["pos"]
    ((what, why),) = results.failed.items()
    assert what == "tiny-bert · mine"
    assert message.format(path=path) in why
    assert f"missing tiny-bert · mine: {why}" in capsys.readouterr().err
    line = "--tasks mine,pos --quick --probes linear --limit 60 --device cpu"
    places = ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "cache")]
    given = ["--model", str(tiny_bert), "--include", str(path)]
    assert main([*given, *line.split(), *places]) == 1
    assert list((tmp_path / "r").rglob("pos-linear-*.json"))


def test_the_error_of_a_rule_with_a_stand_in_names_the_rules_own_line(write):
    text = TASK.replace("(i, i + 1)", "(i, 9)").replace(
        'needs=["upos"]', 'needs=["xpos"], stand_ins={"xpos": "upos"}'
    )
    path = write(text)
    load_file(path)
    served = tasks.get("mine").on({"upos"})
    with pytest.raises(UserError, match=rf"span \(0, 9\) for 1 words; .* Fix {path}, line 3\."):
        served.examples(Sentence("s", "en", ("dog",), upos=("NOUN",)))


FAILING_METRIC = """
from probes import Metric, class_parts, metrics

def value(sums):
    {body}

metrics.add("bad", Metric(class_parts, value))
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return 1 / 0",
            "the metric 'bad' raised ZeroDivisionError: division by zero. Fix {path}, line 5.",
        ),
        ("return 'x'", "the metric 'bad' of {path}"),
    ],
)
def test_a_failing_metric_costs_only_its_own_task(body, message, write, run_with):
    path = write(FAILING_METRIC.format(body=body), "bad.py")
    task = write(TASK.replace('"accuracy"', '"bad"'))
    results = run_with(path, task, tasks=("mine", "pos"))
    assert [result.task.name for result in results] == ["pos"]
    assert message.format(path=path) in results.failed["tiny-bert · mine · linear"]


def test_a_failing_probe_family_costs_only_its_own_results(write, run_with):
    text = guide_file("low_rank.py").replace("u, a) + b", "u, a)[..., 1:] + b")  # too few outputs
    path = write(text, "low_rank.py")
    results = run_with(path, tasks=("pos",), probes=("low_rank", "linear"))
    assert [result.probe.family for result in results] == ["linear"]
    assert f"the probe family 'low_rank' of {path}" in results.failed["tiny-bert · pos · low_rank"]


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_a_probe_family_that_cannot_be_made_costs_only_its_own_results(write, run_with, memory):
    text = guide_file("low_rank.py").replace("self.rank = spec.hidden", "1 / 0")
    path = write(text, "low_rank.py")
    results = run_with(path, tasks=("pos",), probes=("low_rank", "linear"), memory=memory)
    assert [result.probe.family for result in results] == ["linear"]
    assert "ZeroDivisionError" in results.failed["tiny-bert · pos · low_rank"]


@pytest.mark.parametrize("other", ["linear", "mlp"])
def test_a_family_that_writes_to_its_features_is_refused_and_changes_no_other_score(
    other, write, run_with, tmp_path
):
    text, place = guide_file("low_rank.py"), "return v @ shared_input("
    assert place in text
    path = write(text.replace(place, f"features.mul_(0)\n        {place}"), "low_rank.py")
    (alone,) = run_with(path, tasks=("pos",), probes=(other,), output=tmp_path / "alone")
    both = run_with(path, tasks=("pos",), probes=("low_rank", other))
    assert "LowRank writes to its features" in both.failed["tiny-bert · pos · low_rank"]
    (beside,) = both
    assert (beside.probe.family, beside.layers) == (other, alone.layers)
