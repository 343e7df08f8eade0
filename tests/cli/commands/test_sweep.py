"""`python -m probes sweep`: what runs, what fails alone, what is found again."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from tiny_runs import files_of

from probes.__main__ import main
from probes.cli.commands.sweep import read_sweep
from probes.common.errors import UserError

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("short_schedule")]

ROOT = Path(__file__).parents[3]

MODELS = 'model = ["c/checkpoint-900", "c/checkpoint-1000"]'


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Reads a file of this text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def runs(text, **overriding):
        path = Path("s.toml")
        path.write_text(text)
        return read_sweep(path, overriding)

    return runs


def test_a_run_has_the_options_of_the_command_line(runs):
    first, second = runs(
        """
output = "out"
model = ["a", "b"]
evidence = "standard"
seeds = 2
threads = 1
[[run]]
corpus = ["sample"]
tasks = ["pos", "depth"]
offline = true
[[run]]
corpus = "conll2000"
model = "random:c"
seeds = 3
offline = false
quick = true
evidence = "none"
measurements = ["probes", "structure"]
structure-ranks = [1, 2]
""",
        workers="2",
    )
    assert (first.models, second.models) == (("a", "b"), ("random:c",))
    for name, both in {
        "corpus": (("sample",), ("conll2000",)),
        "tasks": (("pos", "depth"), ()),
        "offline": (True, False),
        "seeds": (2, 3),
        "twins": (1, 0),
        "evidence": (("standard",), ("none",)),
        "options": ({}, {"structure": {"ranks": "1,2"}}),
        "output": (Path("out"), Path("out")),
        "threads": (1, 1),
        "workers": (2, 2),
    }.items():
        assert (getattr(first.config, name), getattr(second.config, name)) == both
    assert first.command == (
        "python run_probes.py --output=out --model a b --evidence=standard --seeds=2 --threads=1 "
        "--corpus sample --tasks=pos,depth --offline --workers=2"
    )


def test_options_with_a_value_may_be_true_or_false(runs):
    (run,) = runs(
        GOOD + 'measurements = "pairs"\npairs-malformed = true\npairs-word-ends = false\n'
    )
    assert run.config.options == {"pairs": {"malformed": "true", "word_ends": "false"}}


def test_options_given_to_the_command_come_before_the_files(runs):
    text = 'output = "a"\nengine = "ray"\naddress = "auto"\n[[run]]\nmodel = "m"\n'
    (run,) = runs(text)
    assert (run.config.output, run.config.engine, run.config.address) == (Path("a"), "ray", "auto")
    (run,) = runs(text, output="b", address="ray://host:1")
    assert (run.config.output, run.config.address) == (Path("b"), "ray://host:1")


GOOD = '[[run]]\nmodel = "m"\n'

REFUSED = [
    ("[[run]\n", ": not TOML (Expected ']]' at the end of an array declaration (at line 1, column 6)); correct it."),
    ("seeds = " + 5000 * "9" + "\n" + GOOD, ": a number has thousands of digits, or brackets nest too deeply; correct it."),
    ("a = " + 3000 * "[" + "\n" + GOOD, ": a number has thousands of digits, or brackets nest too deeply; correct it."),
    ('model = "m"\n', ": no runs; give each a table [[run]]."),
    ('run = "m"\n', ": no runs; give each a table [[run]]."),
    (GOOD + '[[run]]\ncorpus = "sample"\n', ", run 2: no model; give model or vectors."),
    (GOOD + "task = 1\n", ", run 1: unknown argument '--task=1'. Did you mean '--tasks'?"),
    (GOOD + "task_from = 'y'\n", ", run 1: unknown argument '--task_from=y'. Did you mean '--task-from'?"),
    (GOOD + 'tasks = ["pos", "deptth"]\n', ", run 1: Unknown task 'deptth'. Did you mean 'depth'?"),
    (GOOD + GOOD + "seeds = 0\n", ", run 2: --seeds 0: give a number of at least 1."),
    ("seeds = 0\n" + GOOD, ", run 1: --seeds 0: give a number of at least 1."),
    (GOOD + 'engine = "rya"\n', ", run 1: --engine rya: give local or ray."),
    (GOOD + 'corpus = "./nowhere"\n', ", run 1: --corpus ./nowhere: there is no such file or folder."),
    (GOOD + "corpus = []\n", ", run 1: --corpus: expected at least one argument"),
    (GOOD + 'offline = "yes"\n', ", run 1: --offline: ignored explicit argument 'yes'"),
    (GOOD + 'measurements = "structure"\nstructure-ranks = 0\n', ", run 1: --structure-ranks 0: give whole numbers from 1 on, separated by commas."),
    (GOOD + "structure.steps = 0\n", ", run 1: structure = {'steps': 0}: give text, a number, true or false."),
    (GOOD + "version = true\n", ", run 1: version: not a setting of single runs; give it on the command line."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_mistake_is_answered_with_its_run_and_what_to_do(runs, text, said):
    with pytest.raises(UserError) as refused:
        runs(text)
    assert str(refused.value) == f"s.toml{said}"


def test_the_sweep_of_the_literature_is_valid():
    runs = read_sweep(ROOT / "sweeps" / "bertology.toml", {})
    assert [run.config.corpus for run in runs] == [("ewt",), ("gum",), ("sample",), ("blimp",)]
    assert [run.config.evidence for run in runs] == [("standard",)] * 4
    for run in runs:
        assert len(run.models) == len({name.lower() for name in run.models}) == 10
        assert all(name.count("/") == 1 for name in run.models)


def test_the_sweep_of_the_published_results_is_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    treebanks = [
        f"pud/{language}_pud-ud-test.conllu" for language in ("en", "de", "fr", "fi", "hi")
    ]
    for file in (*treebanks, "cities.csv", "negated.csv", "numbers.csv"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    published = read_sweep(ROOT / "sweeps" / "published.toml", {})
    corpora = [run.config.corpus for run in published]
    assert {"completion": {"malformed": "true"}} in [run.config.options for run in published]
    assert corpora[:4] == [("sample",)] * 4
    assert tuple(treebanks) in corpora
    assert corpora[-1] == ("ewt",)


@pytest.fixture
def sweep(tiny_bert, tmp_path, monkeypatch, capsys):
    """Runs a sweep of two folders' models; returns the status, what was printed and what was said."""
    monkeypatch.chdir(tmp_path)
    for step in (900, 1000):
        shutil.copytree(tiny_bert, tmp_path / "c" / f"checkpoint-{step}")
        with (tmp_path / "c" / f"checkpoint-{step}" / "vocab.txt").open("a") as file:
            file.write(f"[unused{step}]\n")

    def sweep(*arguments, shared=MODELS, runs=""):
        (tmp_path / "s.toml").write_text(SETTINGS.format(shared=shared, runs=runs))
        status = main(["sweep", "s.toml", *map(str, arguments)])
        return status, *capsys.readouterr()

    return sweep


SETTINGS = """
tasks = "pos"
probes = "linear"
evidence = "none"
limit = 30
twins = 0
device = "cpu"
cache-dir = "cache"
{shared}
[[run]]
corpus = "sample"
{runs}
"""


def states(out):
    """The last column of the table at the end."""
    return re.findall(r"^ *\d+  +\S+ +\d models? +(done|\d things? missing)", out, re.MULTILINE)


def board(tmp_path):
    return pd.read_csv(tmp_path / "results" / "leaderboard.csv")


def test_each_run_is_made_and_nothing_twice(sweep, tmp_path):
    runs = '[[run]]\ncorpus = "sample"\nmodel = "c/checkpoint-900"\ntasks = "depth"\n'
    status, out, err = sweep(runs=runs)
    assert status == 0
    assert "run     1 of 2 · sample · 2 models" in err
    assert "run     2 of 2 · sample · 1 model" in err
    assert states(out) == ["done", "done"]
    tasks = board(tmp_path).groupby("model").task.unique().map(set).to_dict()
    assert tasks == {"checkpoint-900": {"pos", "depth"}, "checkpoint-1000": {"pos"}}
    before = files_of(tmp_path)
    status, out, _ = sweep(runs=runs)
    assert (status, states(out)) == (0, ["done", "done"])
    assert files_of(tmp_path) == before


def test_a_model_that_is_not_found_costs_that_model_alone(sweep, hub_cache, tmp_path):
    shared = 'model = ["nowhere@1", "nowhere@2", "c/checkpoint-900", "c/checkpoint-1000"]'
    runs = '[[run]]\nmodel = "c/checkpoint-900"\n'
    status, out, err = sweep("--offline", shared=shared, runs=runs)
    assert status == 1
    assert states(out) == ["2 things missing", "done"]
    for said in (
        "measuring the models of this run one by one, since together: ",
        "missing nowhere@1 on sample (run 1): --model nowhere@1: not in the local hub cache",
        "missing nowhere@2 on sample (run 1): ",
        "run the same command again to measure what is missing",
    ):
        assert said in err
    assert set(board(tmp_path).model) == {"checkpoint-900", "checkpoint-1000"}


def test_a_model_that_cannot_be_loaded_costs_that_model_alone(sweep, tmp_path):
    broken = tmp_path / "c" / "checkpoint-900" / "model.safetensors"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:2000])
    status, out, err = sweep()
    assert (status, states(out)) == (1, ["1 thing missing"])
    (line,) = [x for x in err.splitlines() if x.startswith("missing ")]
    assert line.startswith("missing c/checkpoint-900 on sample (run 1): ")
    assert set(board(tmp_path).model) == {"checkpoint-1000"}
    before = files_of(tmp_path)
    broken.write_bytes(whole)
    status, out, _ = sweep()
    assert (status, states(out)) == (0, ["done"])
    after = files_of(tmp_path)
    assert len(after) == 2 * len(before) == 2
    assert before.items() <= after.items()


def test_models_are_compared_with_the_first_one_or_not_at_all(sweep, tmp_path):
    measured = '\nmeasurements = "model_similarity"'
    shutil.copytree(tmp_path / "c" / "checkpoint-900", tmp_path / "base")
    shared = 'model = ["base", "./none", "c/checkpoint-900"]' + measured
    status, _, err = sweep(shared=shared)
    assert status == 1
    assert "missing ./none on sample (run 1): " in err
    records = list((tmp_path / "results").glob("*/sample/model_similarity-*.json"))
    assert [path.parts[-3].startswith("checkpoint-900") for path in records] == [True]
    shared = 'model = ["./none", "base", "c/checkpoint-900"]' + measured
    status, _, err = sweep("--output", "other", shared=shared)
    assert status == 1
    for name in ("base", "c/checkpoint-900"):
        assert f"missing {name} on sample (run 1): --model ./none: there is no such folder." in err
    assert not list((tmp_path / "other").glob("*/sample/*.json"))


def test_a_corpus_that_fails_does_not_stop_the_next_run(sweep, tmp_path):
    (tmp_path / "bad.conllu").write_text("1\tone\n\n")
    runs = '[[run]]\ncorpus = "bad.conllu"\n[[run]]\ncorpus = "sample"\n'
    status, out, err = sweep(shared='model = "c/checkpoint-900"', runs=runs)
    assert (status, states(out)) == (1, ["done", "1 thing missing", "done"])
    assert "missing c/checkpoint-900 on bad.conllu (run 2): " in err


def test_nothing_is_computed_before_all_runs_are_checked(sweep, tmp_path):
    status, _, err = sweep(runs='[[run]]\ncorpus = "sample"\nlayers = "x"\n')
    assert status == 2
    assert err.startswith("error: s.toml, run 2: --layers x: give all, every:N, or numbers")
    assert not (tmp_path / "results").exists()


def test_a_dry_run_says_what_remains_and_writes_nothing(sweep, tmp_path):
    status, out, err = sweep("--dry-run")
    assert status == 0
    assert out.count("scores") == 2
    assert "0 records exist already" in " ".join(out.split())
    assert not (tmp_path / "results").exists()
    sweep()
    status, out, err = sweep("--dry-run")
    assert (status, states(out)) == (0, [])
    assert "checkpoint-900: nothing remains to be computed; 1 record exists already" in err
    shutil.rmtree(tmp_path / "results")
    status, out, err = sweep("--dry-run")
    assert out.count("scores") == 2
    assert out.count("vectors: none to encode") == 2
