"""Results that a later run takes from earlier ones; invariance of scores."""

import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from finding_rows import values_along
from plugged_in import change_measurement
from tiny_runs import assert_close, files_of, found_in, run, scores, shortened_schedule

import probes
from probes.common.errors import UserError
from probes.extraction.reading.windows import WINDOW_RULE
from probes.measurements.measurement import EVIDENCE
from probes.records.record import Inputs

pytestmark = pytest.mark.usefixtures("short_schedule")

SAMPLE = Path(__file__).parents[2] / "data" / "sample"

run_linear = partial(run, tasks="pos", probes="linear")


def test_further_tasks_of_a_group_cost_no_forward_pass(tiny_bert, tmp_path, capsys):
    run_linear(tiny_bert, tmp_path, verbose=True)
    assert "encode  " in capsys.readouterr().err
    found = scores(run_linear(tiny_bert, tmp_path, tasks="morphology", verbose=True))
    assert "encode  " not in capsys.readouterr().err
    assert {"feats.Number", "feats.VerbForm", "lemma-script"} <= {task for task, _, _ in found}
    alone = scores(run_linear(tiny_bert, tmp_path, tasks="feats.Number", overwrite="always"))
    assert alone == {key: value for key, value in found.items() if key[0] == "feats.Number"}


def test_more_layers_and_seeds_extend_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("mlp",)}
    (one,) = run(tiny_bert, tmp_path, layers=(1,), **settings).results
    assert one.extent == {1: 1}
    (two,) = run(tiny_bert, tmp_path, layers=(2,), seeds=2, **settings).results
    assert two.layers == (1, 2)
    # Predictions of all layers make one array.
    assert two.extent == {1: 2, 2: 2}
    strengths = [x for x in two.rows.along("seed") if x.metric == "strength"]
    assert [(x.layer, x.axes["seed"]) for x in strengths] == [(1, 1), (2, 1)]
    known = {key: value for key, value in scores([two]).items() if key[-1] == 1}
    assert_close(scores([one]), known)
    (three,) = run(tiny_bert, tmp_path, **settings).results
    assert three.extent == {0: 2, 1: 2, 2: 2}
    assert three.key == one.key
    assert len(list((tmp_path / "results").rglob("pos-mlp-*.json"))) == 1
    (whole,) = run(tiny_bert, tmp_path / "whole", seeds=2, **settings).results
    assert_close(scores([three]), scores([whole]))


def test_whether_test_names_few_documents_is_part_of_keys(tiny_bert, tmp_path):
    """Earlier versions resampled sentences; records of other corpora stay as they are."""
    sentences = (SAMPLE / "test.conllu").read_text(encoding="utf-8").strip().split("\n\n")

    def keys(documents):
        named = [f"# newdoc id = {i}\n" * (i < documents) + x for i, x in enumerate(sentences)]
        file = tmp_path / "one.conllu"
        file.write_text("\n\n".join([*named, ""]), encoding="utf-8")
        settings = {"corpus": str(file), "layers": 1, "limit": None, "split_by": "sentence"}
        (found,) = run_linear(tiny_bert, tmp_path / f"{documents}", **settings).results
        inputs = Inputs(
            model=found.model.digest,
            corpus=found.corpus.digest,
            pooling="mean",
            dtype="float32",
            windows=WINDOW_RULE,
            task="pos",
            task_version=found.task.version,
            kind="classification",
            probe=found.probe,
        )
        few = inputs.model_copy(update={"few_documents": True})
        few_clusters = found.examples.clusters < 20
        return few_clusters, found.inputs == inputs.digest, found.inputs == few.digest

    # Test has 40 sentences: without documents, all in a few, or each in its own.
    assert keys(0) == (False, True, False)
    assert keys(5) == (True, False, True)
    assert keys(400) == (False, True, False)


def test_evidence_that_is_asked_for_later_does_not_fit_the_scores_again(
    tiny_bert, tmp_path, monkeypatch
):
    def never(*arguments, **named):
        raise AssertionError("computed again")

    settings = {"tasks": ("pos",)}
    quick = run(tiny_bert, tmp_path, **settings)
    before = files_of(tmp_path, "*-scores-*")
    assert len(before) == 4  # two records with their predictions
    change_measurement(monkeypatch, "scores", function=never)
    found = run(tiny_bert, tmp_path, evidence="training_variance", **settings)
    assert files_of(tmp_path, "*-scores-*") == before
    assert scores(found) == scores(quick)
    assert all("training_variance" in result.evidence for result in found.results)
    # A full run serves a quick one, whose tables lose nothing.
    tables = {path: path.read_text() for path in tmp_path.rglob("layers.md")}
    assert "training variance · standard deviation" in "".join(tables.values())
    change_measurement(monkeypatch, "training_variance", function=never)
    assert scores(run(tiny_bert, tmp_path, **settings)) == scores(quick)
    assert {path: path.read_text() for path in tmp_path.rglob("layers.md")} == tables


def test_every_unit_resumes_alone(tiny_bert, tmp_path):
    first = run_linear(tiny_bert, tmp_path, evidence=tuple(EVIDENCE))
    made = ["scores", *(name for name in EVIDENCE if name != "sparse_probing")]
    assert len(files_of(tmp_path)) == len(made)
    for measurement in made:
        before = files_of(tmp_path)
        (lost,) = (path for path in before if path.name.startswith(f"pos-linear-{measurement}-"))
        lost.unlink()
        again = run_linear(tiny_bert, tmp_path, evidence=tuple(EVIDENCE))
        after = files_of(tmp_path)
        assert after.keys() == before.keys()
        assert {path for path in after if after[path] != before[path]} == {lost}
        assert found_in(again) == found_in(first)


def test_full_evidence_extends_what_standard_evidence_found(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("mlp",), "layers": (0, 1, 2)}
    (some,) = run(tiny_bert, tmp_path, evidence="selectivity", **settings).results
    standard = some.evidence["selectivity"]
    assert standard.extent == dict.fromkeys({0, some.best_layer, 2}, 3)
    (whole,) = run(tiny_bert, tmp_path, evidence="full", **settings).results
    full = whole.evidence["selectivity"]
    assert full.extent == {0: 3, 1: 3, 2: 3}
    assert full.key == standard.key
    for layer in standard.extent:
        before, after = (values_along(x.rows, "draw", "accuracy", layer) for x in (standard, full))
        assert len(before) == 3
        assert after == pytest.approx(before, abs=0.021)


def test_overwrite_never_refuses_to_replace_a_result(tiny_bert, tmp_path):
    run_linear(tiny_bert, tmp_path)
    with pytest.raises(UserError, match=r"exists already, and --overwrite is 'never'"):
        run_linear(tiny_bert, tmp_path, overwrite="never")
    before = files_of(tmp_path)
    run_linear(tiny_bert, tmp_path, overwrite="never", tasks="chunking")
    assert before.items() < files_of(tmp_path).items()


def test_overwrite_always_recomputes_stored_layers_too(tiny_bert, tmp_path):
    run_linear(tiny_bert, tmp_path)
    (again,) = run_linear(tiny_bert, tmp_path, layers=1, overwrite="always").results
    assert again.layers == (0, 1, 2)
    before = files_of(tmp_path)
    for _ in range(2):
        run_linear(tiny_bert, tmp_path, overwrite="always", evidence="selectivity")
        after = files_of(tmp_path)
        assert len(after) == 2
        assert not before.items() & after.items()
        before = after


def test_different_models_of_one_name_do_not_share_results(tiny_bert, tmp_path):
    other = tmp_path / "elsewhere" / "tiny-bert"
    shutil.copytree(tiny_bert, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    with pytest.raises(UserError, match="different models with the same name"):
        probes.run_probes([tiny_bert, other], limit=60, output=tmp_path / "r", device="cpu")
    run_linear(tiny_bert, tmp_path)
    run_linear(other, tmp_path)
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert board.revision.nunique() == 2
    assert len(list((tmp_path / "results").glob("tiny-bert-*/sample/layers.csv"))) == 2


def test_recomputing_gives_identical_numbers(tiny_bert, tmp_path):
    settings = {"tasks": ("pos", "chunking"), "overwrite": "always"}
    first = run(tiny_bert, tmp_path, cache_dir=tmp_path / "one", **settings)
    second = run(tiny_bert, tmp_path, cache_dir=tmp_path / "two", **settings)
    assert scores(first) == scores(second)


@pytest.fixture(scope="module")
def usual_scores(tiny_bert, tmp_path_factory):
    with shortened_schedule():
        return scores(run_linear(tiny_bert, tmp_path_factory.mktemp("usual"), tasks=()))


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_tokens": 16},
        {"batch_tokens": 4096},
        {"device": "map"},  # which puts a model on a GPU if there is one
        {"tasks": "pos"},
        {"tasks": "agreement"},
    ],
    ids=str,
)
def test_scores_depend_neither_on_batches_nor_on_devices_nor_on_other_tasks(
    settings, usual_scores, tiny_bert, tmp_path
):
    if "device" in settings:
        pytest.importorskip("accelerate")
    found = scores(run_linear(tiny_bert, tmp_path, **{"tasks": "pos,agreement", **settings}))
    assert_close(found, {key: usual_scores[key] for key in found})


@pytest.mark.slow
def test_a_finding_depends_on_nothing_that_is_measured_beside_it(tiny_bert, tmp_path):
    """To the last bit: neither on other tasks, families and evidence, nor on the order of runs."""
    everything = found_in(
        run(tiny_bert, tmp_path / "all", tasks=("pos", "depth"), evidence=tuple(EVIDENCE))
    )
    # Linear probes have mixes, pairs of layers, and codes of classes; MLPs have none of them.
    assert len(everything) == 2 * (2 * 3 + 2) + 1
    for family in ("linear", "mlp"):
        settings = {"tasks": ("depth",), "probes": (family,)}
        for name in reversed(EVIDENCE):
            alone = found_in(run(tiny_bert, tmp_path / "some", evidence=name, **settings))
            assert alone == {key: everything[key] for key in alone}
            assert ("depth", family, name) in alone or name in (
                "conditional_probing",
                "description_length",
                "localisation",
                "sparse_probing",
            )


def test_layer_0_of_the_masked_view_encodes_only_position(tiny_bert, tmp_path):
    (result,) = run_linear(tiny_bert, tmp_path, tasks="agreement", limit=400).results
    assert result.score(result.layers[0]) == pytest.approx(0.5, abs=0.12)
    assert result.references["subject's Number"]["balanced_accuracy"] > 0.95
    assert {"0 attractors", "1+ attractors"} < set(result.examples.groups)


def test_a_projection_gives_a_separate_result_with_fewer_parameters(tiny_bert, tmp_path):
    (full,) = run_linear(tiny_bert, tmp_path).results
    (narrow,) = run_linear(tiny_bert, tmp_path, project=4).results
    # 16 or 4 features and a bias for each of 15 tags.
    parameters = [result.facts["probe_parameters"] for result in (full, narrow)]
    assert parameters == [15 * 17, 15 * 5]
    assert (narrow.project, narrow.key != full.key) == (4, True)
    assert full.score(full.layers[2]) > narrow.score(narrow.layers[2])
