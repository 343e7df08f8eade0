"""What a later run takes from earlier ones."""

import pandas as pd
import pytest
from changed_measurement import change_measurement
from found_in_rows import controls_in
from tiny_runs import assert_close, files_of, found_in, run, scores

import probes
from probes.common.errors import UserError
from probes.measurements import probing
from probes.measurements.measurement import EVIDENCE
from probes.run.config import RunConfig
from probes.training.fit import Draw

pytestmark = pytest.mark.usefixtures("short_schedule")


def test_the_same_run_again_computes_nothing_and_changes_nothing(tiny_bert, tmp_path, monkeypatch):
    first = run(tiny_bert, tmp_path)
    before = {p: p.read_bytes() for p in (tmp_path / "results").rglob("*") if p.is_file()}

    def never(*args, **kwargs):
        raise AssertionError("the model was loaded, or the corpus read")

    monkeypatch.setattr("probes.extraction.loading.load_encoder", never)
    monkeypatch.setattr("probes.data.sources.Source.load", never)
    assert scores(run(tiny_bert, tmp_path)) == scores(first)
    after = {p: p.read_bytes() for p in (tmp_path / "results").rglob("*") if p.is_file()}
    kept = (".csv", ".json", ".md", ".npz")
    assert {p: b for p, b in after.items() if p.suffix in kept} == {
        p: b for p, b in before.items() if p.suffix in kept
    }


def test_further_tasks_of_a_group_cost_no_forward_pass(tiny_bert, tmp_path, monkeypatch):
    run(tiny_bert, tmp_path, tasks=("pos",), probes=("linear",))
    monkeypatch.setattr("probes.extraction.encoder.Encoder.encode", None)
    settings = {"probes": ("linear",)}
    found = scores(run(tiny_bert, tmp_path, tasks=("morphology",), **settings))
    assert {"feats.Number", "feats.VerbForm", "lemma-script"} <= {task for task, _, _ in found}
    alone = scores(
        run(tiny_bert, tmp_path, tasks=("feats.Number",), overwrite="always", **settings)
    )
    assert alone == {key: value for key, value in found.items() if key[0] == "feats.Number"}


def test_more_layers_and_seeds_extend_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("mlp",)}
    (one,) = run(tiny_bert, tmp_path, layers=(1,), **settings)
    assert one.extent == {1: 1}
    (two,) = run(tiny_bert, tmp_path, layers=(2,), seeds=2, **settings)
    assert two.layers == (1, 2)
    # Predictions of all layers make one array.
    assert two.extent == {1: 2, 2: 2}
    assert [
        (x.layer, x.axes["seed"]) for x in two.rows.along("seed") if x.metric == "strength"
    ] == [
        (1, 1),
        (2, 1),
    ]
    known = {key: value for key, value in scores([two]).items() if key[-1] == 1}
    assert_close(scores([one]), known)
    (three,) = run(tiny_bert, tmp_path, **settings)
    assert three.extent == {0: 2, 1: 2, 2: 2}
    assert three.key == one.key
    assert len(list((tmp_path / "results").rglob("pos-mlp-*.json"))) == 1
    (whole,) = run(tiny_bert, tmp_path / "whole", seeds=2, **settings)
    assert_close(scores([three]), scores([whole]))


def never(*arguments, **named):
    raise AssertionError("computed again")


def test_evidence_that_is_asked_for_later_does_not_fit_the_scores_again(
    tiny_bert, tmp_path, monkeypatch
):
    settings = {"tasks": ("pos", "depth")}
    quick = run(tiny_bert, tmp_path, **settings)
    before = files_of(tmp_path, "*-scores-*")
    assert len(before) == 8  # four records with their predictions
    fits, draws = probing.fit, []

    def noted(train, dev, n_outputs, spec, drawn, strengths):
        draws.append(tuple(drawn))
        return fits(train, dev, n_outputs, spec, drawn, strengths)

    change_measurement(monkeypatch, "scores", function=never)
    monkeypatch.setattr(probing, "fit", noted)
    found = run(tiny_bert, tmp_path, evidence="training_variance", **settings)
    assert files_of(tmp_path, "*-scores-*") == before
    samples = tuple(Draw(sample=n) for n in (1, 2, 3, 4, 5))
    further = (Draw(1), Draw(1, sample=1), Draw(2, sample=2), Draw(3, sample=3))
    assert set(draws) == {samples, further}
    assert scores(found) == scores(quick)
    assert all("training_variance" in result.evidence for result in found)
    # A full run serves a quick one, whose tables lose nothing.
    tables = {path: path.read_text() for path in tmp_path.rglob("layers.md")}
    assert "training variance · standard deviation" in "".join(tables.values())
    change_measurement(monkeypatch, "training_variance", function=never)
    assert scores(run(tiny_bert, tmp_path, **settings)) == scores(quick)
    assert {path: path.read_text() for path in tmp_path.rglob("layers.md")} == tables


def test_every_unit_resumes_alone(tiny_bert, tmp_path):
    settings = {"tasks": ("pos", "depth"), "probes": ("linear",), "evidence": tuple(EVIDENCE)}
    first = run(tiny_bert, tmp_path, **settings)
    made = ["scores", *(name for name in EVIDENCE if name != "sparse_probing")]
    assert len(files_of(tmp_path)) == 2 * len(made) - 1  # depth has no description length
    for measurement in made:
        before = files_of(tmp_path)
        (lost,) = (path for path in before if path.name.startswith(f"pos-linear-{measurement}-"))
        lost.unlink()
        again = run(tiny_bert, tmp_path, **settings)
        after = files_of(tmp_path)
        assert after.keys() == before.keys()
        assert {path for path in after if after[path] != before[path]} == {lost}
        assert found_in(again) == found_in(first)


def test_full_evidence_extends_what_standard_evidence_found(tiny_bert, tmp_path, monkeypatch):
    settings = {"tasks": ("pos",), "probes": ("mlp",), "layers": (0, 1, 2)}
    (some,) = run(tiny_bert, tmp_path, evidence="selectivity", **settings)
    standard = some.evidence["selectivity"]
    assert standard.extent == dict.fromkeys({0, some.best_layer, 2}, 3)
    monkeypatch.setattr(RunConfig, "evidence_names", ("selectivity",))
    (whole,) = run(tiny_bert, tmp_path, evidence="full", **settings)
    full = whole.evidence["selectivity"]
    assert full.extent == {0: 3, 1: 3, 2: 3}
    assert full.key == standard.key
    controls = {each.layer: each.controls for each in controls_in(full).layers}
    for measured in controls_in(standard).layers:
        assert controls[measured.layer] == pytest.approx(measured.controls, abs=0.021)


def test_overwrite_never_refuses_to_replace_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    with pytest.raises(UserError, match=r"exists already, and --overwrite is 'never'"):
        run(tiny_bert, tmp_path, overwrite="never", **settings)
    before = files_of(tmp_path)
    run(tiny_bert, tmp_path, overwrite="never", tasks=("depth",), probes=("linear",))
    assert before.items() < files_of(tmp_path).items()


def test_overwrite_always_recomputes_stored_layers_too(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (again,) = run(tiny_bert, tmp_path, layers=(1,), overwrite="always", **settings)
    assert again.layers == (0, 1, 2)
    before = files_of(tmp_path)
    run(tiny_bert, tmp_path, overwrite="always", evidence="selectivity", **settings)
    (path,) = before
    assert files_of(tmp_path)[path] != before[path]
    both = files_of(tmp_path)
    run(tiny_bert, tmp_path, overwrite="always", evidence="selectivity", **settings)
    assert all(files_of(tmp_path)[path] != both[path] for path in both)


def test_a_renamed_model_folder_reuses_vectors_under_its_new_name(tiny_bert, tmp_path):
    import shutil

    renamed = tmp_path / "renamed"
    shutil.copytree(tiny_bert, renamed)
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (result,) = run(renamed, tmp_path, **settings)
    assert result.model.name == "renamed"
    assert len(list((tmp_path / "cache" / "vectors").glob("*/manifest.json"))) == 1


def test_different_models_of_one_name_do_not_share_results(tiny_bert, tmp_path):
    import shutil

    other = tmp_path / "elsewhere" / "tiny-bert"
    shutil.copytree(tiny_bert, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    with pytest.raises(UserError, match="different models with the same name"):
        probes.run_probes([tiny_bert, other], limit=60, output=tmp_path / "r", device="cpu")
    run(tiny_bert, tmp_path, **settings)
    run(other, tmp_path, **settings)
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert board.revision.nunique() == 2
    assert len(list((tmp_path / "results").glob("tiny-bert-*/sample/layers.csv"))) == 2
