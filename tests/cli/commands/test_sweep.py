"""`python -m probes sweep`: what runs, what fails alone, what is found again."""

import re
import shutil

import pandas as pd
import pytest
from tiny_runs import files_of

from probes.__main__ import main

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("short_schedule")]


@pytest.fixture
def sweep(tiny_bert, tmp_path, monkeypatch, capsys):
    """Runs a sweep of two folders' models; returns the status, what was printed and what was said."""
    monkeypatch.chdir(tmp_path)
    for step in (900, 1000):
        shutil.copytree(tiny_bert, tmp_path / "c" / f"checkpoint-{step}")
        with (tmp_path / "c" / f"checkpoint-{step}" / "vocab.txt").open("a") as file:
            file.write(f"[unused{step}]\n")

    def sweep(*arguments, head='models = ["c/*/"]', defaults="", runs=""):
        (tmp_path / "s.toml").write_text(
            f"""
{head}
[defaults]
tasks = ["pos"]
probes = "linear"
evidence = "none"
limit = 30
twins = 0
device = "cpu"
cache_dir = "cache"
{defaults}
[[runs]]
corpora = ["sample"]
{runs}
"""
        )
        status = main(["sweep", "s.toml", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return sweep


def progress(out):
    """Done, failed, waiting of each table of progress."""
    rows = re.findall(r"^ *(\d+) +(\d+) +(\d+) *$", out, re.MULTILINE)
    return [tuple(map(int, row)) for row in rows]


def test_each_run_is_made_and_nothing_twice(sweep, tmp_path):
    runs = '[[runs]]\ncorpora = ["sample"]\nmodels = ["c/checkpoint-900"]\ntasks = ["depth"]\n'
    status, out, err = sweep(runs=runs)
    assert status == 0
    assert "run     1 of 2 · sample · 2 models" in err
    assert "run     2 of 2 · sample · 1 model" in err
    assert progress(out) == [(1, 0, 1), (2, 0, 0)]
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    made = set(zip(board.model, board.task, strict=True))
    assert made == {
        ("checkpoint-900", "pos"),
        ("checkpoint-1000", "pos"),
        ("checkpoint-900", "depth"),
    }
    before = files_of(tmp_path)
    status, out, _ = sweep(runs=runs)
    assert (status, progress(out)) == (0, [(1, 0, 1), (2, 0, 0)])
    assert files_of(tmp_path) == before


def test_a_model_that_is_not_found_costs_that_model_alone(sweep, hub_cache, tmp_path):
    head = 'models = ["nowhere@{1,2}", "c/*/"]'
    status, out, err = sweep("--offline", head=head, runs='[[runs]]\ncorpora = ["sample"]\n')
    assert status == 1
    assert progress(out) == [(0, 1, 1), (0, 2, 0)]
    assert "missing nowhere@1 on sample: --model nowhere@1: not in the local hub cache" in err
    assert "missing nowhere@2 on sample: " in err
    assert "the same command goes on with what is missing" in err
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.model) == {"checkpoint-900", "checkpoint-1000"}


def test_a_model_that_cannot_be_loaded_costs_that_model_alone(sweep, tmp_path):
    broken = tmp_path / "c" / "checkpoint-900" / "model.safetensors"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:2000])
    status, out, err = sweep()
    assert (status, progress(out)) == (1, [(0, 1, 0)])
    assert "the models of this run are taken one by one, since together: " in err
    (line,) = [x for x in err.splitlines() if x.startswith("missing ")]
    assert line.startswith("missing c/checkpoint-900/ on sample: ")
    assert set(pd.read_csv(tmp_path / "results" / "leaderboard.csv").model) == {"checkpoint-1000"}
    before = files_of(tmp_path)
    broken.write_bytes(whole)
    status, out, _ = sweep()
    assert (status, progress(out)) == (0, [(1, 0, 0)])
    after = files_of(tmp_path)
    assert len(after) == 2 * len(before) == 2
    assert before.items() <= after.items()


def test_models_are_compared_with_the_first_one_or_not_at_all(sweep, tmp_path):
    measured = 'measurements = ["model_similarity"]'
    shutil.copytree(tmp_path / "c" / "checkpoint-900", tmp_path / "base")
    head = 'models = ["base", "./none", "c/checkpoint-900"]'
    status, _, err = sweep(head=head, defaults=measured)
    assert status == 1
    assert "missing ./none on sample: " in err
    records = list((tmp_path / "results").glob("*/sample/model_similarity-*.json"))
    assert [path.parts[-3].startswith("checkpoint-900") for path in records] == [True]
    head = 'models = ["./none", "base", "c/checkpoint-900"]'
    status, _, err = sweep("--output", "other", head=head, defaults=measured)
    assert status == 1
    assert "missing base on sample: ./none, with which it is compared, is missing" in err
    assert not list((tmp_path / "other").glob("*/sample/*.json"))


def test_a_corpus_that_fails_does_not_stop_the_next_run(sweep, tmp_path):
    (tmp_path / "bad.conllu").write_text("1\tone\n\n")
    runs = '[[runs]]\ncorpora = ["bad.conllu", "sample"]\nmodels = ["c/checkpoint-900"]\n'
    status, out, err = sweep(runs=runs)
    assert status == 1
    assert progress(out) == [(1, 0, 2), (1, 1, 1), (2, 1, 0)]
    assert re.search(
        r"missing c/checkpoint-900 on bad.conllu: |missing bad.conllu · 1 model: ", err
    )


def test_a_dry_run_says_what_remains_and_writes_nothing(sweep, tmp_path):
    status, out, err = sweep("--dry-run")
    assert status == 0
    assert out.count("scores") == 2
    assert "0 records exist already" in " ".join(out.split())
    assert not (tmp_path / "results").exists()
    sweep()
    status, out, err = sweep("--dry-run")
    assert status == 0
    assert "checkpoint-900: nothing remains to be computed; 1 record exists already" in err


def test_the_command_line_overrides_the_file(sweep, tmp_path):
    assert sweep("--output", "mine", "--cache-dir", "kept")[0] == 0
    assert (tmp_path / "mine" / "leaderboard.csv").is_file()
    assert (tmp_path / "kept" / "vectors").is_dir()
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "cache").exists()


def test_ctrl_c_stops_everything(sweep, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("probes.cli.sweeping.run_models", stop)
    status, out, err = sweep(runs='[[runs]]\ncorpora = ["sample"]\n')
    assert (status, progress(out)) == (130, [])
    assert "the same command continues from them" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workers", "0"), "error: --workers 0: give a number of at least 1."),
        (("--engine", "rya"), "error: --engine rya: give local, ray or slurm."),
        (("--address", "auto"), "error: --address auto: of a Ray cluster; add --engine ray."),
    ],
)
def test_flags_are_refused_in_the_words_of_the_command_line(sweep, arguments, said):
    status, _, err = sweep(*arguments)
    assert (status, err.strip()) == (2, said)


def test_a_job_of_slurm_runs_the_same_sweep(sweep, tmp_path, monkeypatch):
    head = 'models = ["c/*/"]\nengine = "slurm"\nslurm.nodes = 3'
    status, out, _ = sweep("--dry-run", "--output", "o", "--offline", head=head)
    assert status == 0
    assert "#SBATCH --nodes=3" in out
    assert f"-m probes sweep {tmp_path}/s.toml --output o --offline" in out
    assert sweep("--engine", "slurm", "--dry-run")[1].startswith("#!")
    given = []
    monkeypatch.setattr("probes.cli.commands.sweep.submit", lambda text: given.append(text) or "17")
    status, said, _ = sweep("--output", "o", "--offline", head=head)
    assert (status, said, given) == (0, "submitted as job 17\n", [out])
    assert not (tmp_path / "o").exists()


def test_a_job_of_slurm_has_no_address(sweep):
    status, _, err = sweep("--engine", "slurm", "--address", "auto")
    assert status == 2
    assert err.startswith("error: --address auto: ")


def test_the_job_runs_on_ray_though_the_file_says_slurm(sweep, monkeypatch):
    seen = []
    monkeypatch.setattr("probes.cli.sweeping.measure_all", lambda runs, _: seen.extend(runs) or {})
    head = 'models = ["c/*/"]\nengine = "slurm"'
    assert sweep("--engine", "ray", "--address", "auto", head=head)[0] == 0
    assert [(run.config.engine, run.config.address) for run in seen] == [("ray", "auto")]
