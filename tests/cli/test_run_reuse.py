"""What a later run takes from earlier ones."""

import pandas as pd
import pytest
from tiny_runs import assert_close, run, scores

import probes
from probes.boards.comparable import SAME_LAYER_TABLE, differences
from probes.common.errors import UserError
from probes.measurements.current import is_current
from probes.training.streamed import standard_scale

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


def test_vectors_are_reused_without_a_forward_pass(tiny_bert, tmp_path, monkeypatch):
    first = run(tiny_bert, tmp_path, probes=("linear",))
    monkeypatch.setattr("probes.extraction.encoder.Encoder.encode", None)
    again = run(tiny_bert, tmp_path, probes=("linear",), overwrite="always")
    assert scores(first) == scores(again)


def test_features_are_standardised_once_for_all_tasks_of_the_same_words(
    tiny_bert, tmp_path, monkeypatch
):
    standardised, scale = [], standard_scale

    def counted(*given):
        standardised.append(given)
        return scale(*given)

    monkeypatch.setattr("probes.training.dataset.standard_scale", counted)
    run(tiny_bert, tmp_path, tasks=("pos", "depth"))
    assert len(standardised) == 3  # layers; the words of both tasks and families are the same
    run(tiny_bert, tmp_path, tasks=("pos", "srl"), probes=("linear",), overwrite="always")
    assert len(standardised) == 3 + 2 * 3


def test_more_layers_and_seeds_extend_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    (one,) = run(tiny_bert, tmp_path, layers=(1,), **settings)
    (two,) = run(tiny_bert, tmp_path, layers=(2,), seeds=2, **settings)
    assert [layer.layer for layer in two.layers] == [1, 2]
    assert [cell.seed for cell in two.layers[0].cells] == [0, 1]
    known = {key: value for key, value in scores([two]).items() if key[-1] == 1}
    assert_close(scores([one]), known)
    assert len(list((tmp_path / "results").rglob("pos-linear-*.json"))) == 1


def test_a_quick_result_is_completed_by_a_full_run_and_a_full_one_serves_a_quick_run(
    tiny_bert, tmp_path
):
    settings = {"tasks": ("pos",), "probes": ("linear",), "twins": 0}
    (quick,) = run(tiny_bert, tmp_path, **settings)
    assert (quick.quick, len(quick.layers[0].cells)) == (True, 1)
    assert (quick.localisation, quick.control) == (None, None)
    (whole,) = run(tiny_bert, tmp_path, quick=False, **settings)
    assert (whole.quick, len(whole.layers[0].cells)) == (False, 3)
    # What is trained beside a probe changes no more than how its products are rounded.
    assert_close(scores([whole]), scores([quick]))
    (again,) = run(tiny_bert, tmp_path, **settings)
    assert again == whole


def test_overwrite_never_refuses_to_replace_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    with pytest.raises(UserError, match=r"exists already, and --overwrite is 'never'"):
        run(tiny_bert, tmp_path, overwrite="never", **settings)


def test_overwrite_always_recomputes_stored_layers_too(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (again,) = run(tiny_bert, tmp_path, layers=(1,), overwrite="always", **settings)
    assert [layer.layer for layer in again.layers] == [0, 1, 2]


def test_models_that_share_a_cache_do_not_share_vectors(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    own = scores(run(tiny_bert, tmp_path, **settings))
    twin = scores(run(f"random:{tiny_bert}", tmp_path, **settings))
    assert own != twin
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.model) == {"tiny-bert", "random:tiny-bert"}


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


def test_a_result_without_its_arrays_is_computed_again(tiny_bert, tmp_path):
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (arrays,) = (tmp_path / "results").rglob("*.npz")
    arrays.unlink()
    run(tiny_bert, tmp_path, **settings)
    assert arrays.exists()


@pytest.mark.parametrize("other", [{"tune": True}, {"fit_dtype": "bfloat16"}])
def test_another_specification_or_precision_has_results_and_tables_of_its_own(
    tiny_bert, tmp_path, other
):
    settings = {"tasks": ("pos",), "limit": 40}
    plain, apart = (run(tiny_bert, tmp_path, **settings, **each) for each in ({}, other))
    assert not {r.key for r in plain} & {r.key for r in apart}
    assert len({r.probe.family for r in apart}) == len(list(apart)) == 2
    for result, tried in (
        (plain.results[0], (30.0,)),
        (apart.results[0], apart.results[0].probe.l2),
    ):
        n = result.examples.n["train"]
        used = {round(n * layer.cells[0].l2, 2) for layer in result.layers}
        assert used <= set(tried)
    assert differences(plain.results[0], apart.results[0], SAME_LAYER_TABLE)
    assert all(map(is_current, apart))
