"""Keys of records of plug-ins, in files and in notebooks."""

import sys

import pandas as pd
import pytest
from board_by_hand import put
from plugged_in import TASK, example_file, guide_file, run_included
from results_by_hand import changed
from tiny_runs import of_all_layers

from probes import load_results
from probes.common.errors import UserError
from probes.frames.joined_results import find_results
from probes.frames.record_status import why_outdated
from probes.measurements.plugin_keys import REGISTRIES
from probes.measurements.plugins import load_file
from probes.records.header import PlugIn
from probes.records.probe_spec import PROBES

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


def test_a_result_is_reused_until_the_file_changes(write, run_with, capsys):
    path = write(TASK)
    (first,) = run_with(path, tasks=("mine",)).results
    assert first.plug_ins == (
        PlugIn(
            kind="task",
            name="mine",
            source=str(path),
            distribution="",
            sha256=first.plug_ins[0].sha256,
        ),
    )
    assert not why_outdated(first)
    (again,) = run_with(path, tasks=("mine",)).results
    assert again == first
    (other,) = run_with(write(TASK.replace("NOUN", "VERB")), tasks=("mine",)).results
    assert other.key != first.key
    assert other.examples.labels["noun"] != first.examples.labels["noun"]
    assert not why_outdated(other)
    assert why_outdated(first)
    assert [r.key for r in find_results(path.parent / "results").values()] == [other.key]


def test_results_of_two_sources_never_share_a_column(write, run_with):
    path = write(TASK)
    run_with(path, tasks=("mine", "pos"))
    (newer,) = run_with(write(TASK + "# changed\n"), tasks=("mine",)).results
    (table,) = (path.parent / "results").rglob("layers.csv")
    columns = [name for name in pd.read_csv(table).columns if not name.endswith(("low", "high"))]
    assert sorted(columns) == ["layer", "mine (linear)", "pos (linear)"]
    csv = pd.read_csv(path.parent / "results" / "leaderboard.csv", keep_default_na=False)
    by_task = csv.groupby("task").plug_ins.unique().map(sorted).to_dict()
    assert by_task["pos"] == [""]
    assert by_task["mine"] == [f"task mine {newer.plug_ins[0].sha256[:8]}"]


def test_of_two_sources_of_which_none_is_loaded_the_newest_has_the_column(write, run_with):
    path = write(TASK)
    run_with(path, tasks=("mine",))
    (newer,) = run_with(write(TASK.replace("NOUN", "VERB")), tasks=("mine",)).results
    load_file(write(TASK.replace('"mine"', '"other"')))
    run_with(tasks=("pos",))
    (table,) = (path.parent / "results").rglob("layers.csv")
    scores = pd.read_csv(table)["mine (linear)"]
    assert scores.tolist() == pytest.approx(list(newer.headline.values()), rel=1e-5)


def test_stored_results_of_a_metric_that_is_not_loaded_have_no_intervals(tmp_path):
    put(tmp_path, "m", "pos", 5)
    (result,) = find_results(tmp_path).values()
    assert of_all_layers(result) is not None
    assert of_all_layers(changed(result, "task", metric="unknown")) is None


@pytest.fixture
def cell(monkeypatch):
    """Runs a cell of a notebook; what it registers is taken back when the test is over."""
    for registry in REGISTRIES.values():
        for name in ("_entries", "_defined"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    for name, spec in PROBES.items():
        monkeypatch.setitem(PROBES, name, spec)  # so that others are taken out
    space = {"__name__": "__main__"}
    cells = []

    def run(text):
        cells.append(text)
        exec(compile(text, f"<ipython-input-{len(cells)}>", "exec"), space)

    yield run
    for name in ("low_rank",):
        PROBES.pop(name, None)


@pytest.fixture
def measured(tiny_bert, tmp_path, capsys):
    """Runs the tiny model on what has been defined; its records, and whether they were there."""

    def run(**settings):
        found = run_included(tiny_bert, tmp_path, **{"tasks": ("mine",), **settings})
        said = capsys.readouterr().err
        return (*found.results, *found.others), "result exists already" in said

    return run


NOUNS = {"train": 173, "dev": 192, "test": 184}
VERBS = {"train": 108, "dev": 112, "test": 108}
"""How many words of the first 60 sentences of each split of `sample` have these tags."""


def counts(result):
    return dict(zip(NOUNS, result.examples.labels["noun"], strict=True))


HELPED = """\
from probes import Example, task

WANTED = "NOUN"


@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    for i, tag in enumerate(sentence.upos):
        yield Example(label(tag), (i, i + 1), type=sentence.words[i])


def label(tag):
    return "noun" if tag == WANTED else "other"
"""


def test_a_task_that_is_defined_again_is_measured_again_and_counts(cell, measured, tmp_path):
    cell(HELPED)
    (first,), there = measured()
    assert (counts(first), there) == (NOUNS, False)
    cell(f"# run again\n{HELPED}")
    (again,), there = measured()
    assert (again, there) == (first, True)
    cell(HELPED.replace('WANTED = "NOUN"', 'WANTED = "VERB"'))
    (other,), there = measured()
    assert (counts(other), there) == (VERBS, False)
    assert other.plug_ins[0].source == "this session"
    (loaded,) = load_results(tmp_path / "results").results
    assert loaded.key == other.key
    cell(HELPED)
    (back,), there = measured()
    assert (back, there) == (first, True)
    (loaded,) = load_results(
        tmp_path / "results"
    ).results  # what is defined now, though it is older
    assert loaded.key == first.key


METRIC = """\
from probes import Metric, mean_parts, mean_value, metrics

def right(gold, predicted):
    return mean_parts(gold, 1.0 * (predicted == gold.labels))

metrics.add("share_right", Metric(right, mean_value))
"""


@pytest.mark.slow
def test_a_metric_a_family_and_a_measurement_count(cell, measured):
    family = example_file("low_rank.py").replace("min_steps=600", "min_steps=24")
    of = guide_file("word_norms.py", "adding-a-measurement.md")
    cell(TASK.replace('"accuracy"', '"share_right", also=["accuracy"]'))
    cell(METRIC)
    cell(family)
    cell(of)

    def run():
        asked = {"probes": ("low_rank",), "measurements": ("probes", "word_norms")}
        return measured(**asked)[0]

    scores, norms = run()
    kinds = [each.kind for each in scores.plug_ins]
    assert kinds == ["task", "metric", "probe family"]
    assert [each.kind for each in norms.plug_ins] == ["measurement"]
    assert run() == (scores, norms)
    cell(METRIC.replace("1.0 *", "2.0 *"))
    doubled, same = run()
    assert same == norms
    assert scores.layers == doubled.layers
    for layer in scores.layers:
        once, twice = (each.at("share_right", layer).value for each in (scores, doubled))
        assert twice > 0
        assert twice == pytest.approx(2 * once)
    cell(METRIC)
    cell(family.replace("torch.zeros(", "torch.ones("))
    other, same = run()
    assert (other.key != scores.key, same) == (True, norms)
    cell(family)
    cell(of.replace("np.linalg.norm(", "3 * np.linalg.norm("))
    same, tripled = run()
    assert same == scores
    assert tripled.rows.layer == norms.rows.layer
    assert tripled.rows.value == pytest.approx([3 * mean for mean in norms.rows.value])


CORPUS = """\
from pathlib import Path
from probes import SPLITS, Corpus, Registered, Sentence, corpora

def read(source):
    sentence = lambda split: Sentence(split, "en", WORDS, upos=("DET", "NOUN", "VERB"))
    return Corpus("own", "1", "CC0-1.0", {split: (sentence(split),) for split in SPLITS})

WORDS = ("the", "dog", "barks")
corpora.add("own", Registered("own", "1", "CC0-1.0", "Mine.", {}, read, frozenset({"upos"})))
"""


def test_a_corpus_counts(cell, measured):
    cell(CORPUS)
    (first,), _ = measured(corpus="own", tasks=("pos",), limit=None)
    (again,), there = measured(corpus="own", tasks=("pos",), limit=None)
    assert (again, there) == (first, True)
    cell(CORPUS.replace('"dog"', '"old"'))
    (other,), there = measured(corpus="own", tasks=("pos",), limit=None)
    assert not there
    assert other.corpus.digest != first.corpus.digest


def test_what_depends_on_what_cannot_be_told_is_refused(cell, measured):
    cell("ONCE = (i for i in [1])\n" + TASK.replace("    for", "    ONCE\n    for"))
    with pytest.raises(UserError) as error:
        measured()
    assert str(error.value) == (
        "The task 'mine' of this session depends on something without a digest (TypeError: cannot "
        "pickle 'generator' object), so changes would go unnoticed. Move it to its own file, and "
        "pass that as include=."
    )
    measured(tasks=("pos",))


def test_workers_refuse_what_a_session_defines(cell, measured):
    cell(TASK)
    with pytest.raises(UserError) as error:
        measured(workers=2)
    assert str(error.value) == (
        "The task 'mine': another process does not find it as it is defined here; move it to a file "
        "of its own, and give that as include=, or leave workers= and engine= out."
    )


IMPORTING = """\
from helper import WANTED
from probes import Example, task

@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    from own.deep import label
    for i, tag in enumerate(sentence.upos):
        yield Example(label(tag), (i, i + 1), type=sentence.words[i])
"""


@pytest.fixture
def included(run_with, write, monkeypatch, tmp_path):
    """Runs a file of `--include` with the modules that it imports."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def run(wanted="NOUN", noun="noun"):
        write(f'WANTED = "{wanted}"\n', "helper.py")
        write("", "own/__init__.py")
        write(
            "from helper import WANTED\nfrom .names import NAME\n\n"
            "def label(tag):\n    return NAME if tag == WANTED else 'other'\n",
            "own/deep.py",
        )
        write(f'NAME = "{noun}"\n', "own/names.py")
        (found,) = run_with(write(IMPORTING), tasks=("mine",)).results
        return found

    yield run
    for name in set(sys.modules) - before:
        sys.modules.pop(name)


@pytest.mark.slow
def test_modules_that_an_included_file_imports_count(included):
    first = included()
    assert counts(first) == NOUNS
    assert included() == first
    assert counts(included(wanted="VERB")) == VERBS
    assert set(included(noun="name").examples.labels) == {"name", "other"}
    assert included() == first
