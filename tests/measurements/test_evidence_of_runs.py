"""Evidence of whole runs, against the scores and predictions that it stands behind."""

import json

import numpy as np
import pytest
from found_in_rows import controls_in, mixes_in, variance_in
from stored_replicates import of_all_layers
from tiny_runs import run

from probes.common.errors import UserError
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results, read_result
from probes.measurements.scores import gold_of, read_predictions
from probes.statistics.bootstrap import RESAMPLES, interval
from probes.statistics.metrics import metrics
from probes.statistics.replicates import p_best_of, pooled, training_noise

EVIDENCE = ("training_variance", "selectivity", "conditional_probing", "localisation")


@pytest.fixture(scope="module")
def folder(tiny_bert, tmp_path_factory):
    from probes.records.probe_spec import PROBES

    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        for family, spec in PROBES.items():
            update = {"epochs": 1, "min_steps": 24, "hidden": spec.hidden // 16}
            patch.setitem(PROBES, family, spec.model_copy(update=update))
        patch.setattr("probes.training.scalar_mix._MIN_STEPS", 60)
        run(tiny_bert, folder, quick=False, evidence=EVIDENCE, twins=0, tasks=("pos", "depth"))
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """Paths and results by task and probe family."""
    results = find_results(folder / "results")
    return {(r.task.name, r.probe.family): (path, r) for path, r in results.items()}


UNITS = [(task, family) for task in ("pos", "depth") for family in ("linear", "mlp")]


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_what_there_is_of_each_probe(found, unit):
    _, result = found[unit]
    convex = {"conditional_probing", "localisation"} if "linear" in unit else set()
    assert result.evidence.keys() == {"training_variance", "selectivity"} | convex
    for record in result.evidence.values():
        assert record.inputs == result.inputs
        assert record.key != result.key
    best = result.best_layer
    dear = sorted({0, best, 2})
    every = [0, 1, 2] if "linear" in unit else dear
    n = 5 if "linear" in unit else 4
    assert result.evidence["training_variance"].extent == dict.fromkeys(every, n)
    assert result.evidence["selectivity"].extent == dict.fromkeys(every, 3)
    if convex:
        assert result.evidence["conditional_probing"].extent == {best or 2: 1}


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_stored_predictions_give_the_scores_and_their_intervals(found, unit):
    path, result = found[unit]
    arrays = read_predictions(path)
    metric = result.task.metric
    scores = metrics.get(metric)(gold_of(result, arrays), arrays["predicted"][:, 0])
    assert scores == pytest.approx([result.score(x) for x in result.layers], abs=1e-9)
    bounds = interval(of_all_layers(result, path).values)
    for layer, expected in zip(result.layers, bounds, strict=True):
        assert result.interval(layer) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_p_values_follow_from_predictions_and_spreads(found, unit):
    path, result = found[unit]
    variances = variance_in(result.found("training_variance"))
    seeds = pooled([[result.score(k), *x.reseeded] for k, x in variances.layers.items()])
    assert variances.seeds == (seeds if "mlp" in unit else None)
    both = pooled([x.resampled for x in variances.layers.values()])
    assert variances.both == both
    found = of_all_layers(result, path)
    noise = training_noise(result.key, range(3), both.sd, both.df, RESAMPLES)
    assert (found.noise == noise).all()
    assert variances.p_best == pytest.approx(p_best_of(found))


def test_fits_on_samples_differ_from_the_fit_on_the_whole_split(found):
    _, result = found["pos", "linear"]
    for layer in variance_in(result.found("training_variance")).layers.values():
        assert len(set(layer.resampled)) > 1


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_selectivity_is_that_of_the_scores(found, unit):
    _, result = found[unit]
    controls = controls_in(result.evidence["selectivity"])
    metric = "accuracy" if "pos" in unit else "nspr"
    assert controls.metric == metric == result.task.metric
    for layer in controls.layers:
        assert layer.task == pytest.approx(result.score(layer.layer))
        low, high = layer.interval
        assert low < layer.value < high
        assert layer.value == pytest.approx(layer.task - np.mean(layer.controls))
    assert controls.common == 3
    assert controls.sd == pooled([x.controls for x in controls.layers]).sd


def test_the_mix_of_layer_0_is_layer_0(found):
    path, result = found["pos", "linear"]
    mixes = mixes_in(result.found("localisation")).mixes
    assert len(mixes) == 3
    # The short schedule of these tests stops before a fit converges.
    assert mixes[0].test.value == pytest.approx(result.score(0), abs=0.02)
    record = result.evidence["localisation"]
    (beside,) = [p for p, r in load(path.parent).records().items() if r.key == record.key]
    with np.load(beside.with_suffix(".npz")) as stored:
        predicted = stored["predicted"]
    scores = metrics.get("accuracy")(gold_of(result, read_predictions(path)), predicted)
    assert scores == pytest.approx([mix.test.value for mix in mixes])


def test_adding_evidence_leaves_scores_alone_and_adding_layers_completes_it(
    tiny_bert, tmp_path, short_schedule
):
    few = {"tasks": ("pos",), "probes": ("linear",), "twins": 0}
    (result,) = run(tiny_bert, tmp_path, layers=(0, 1), **few)
    assert result.evidence == {}
    (path,) = find_results(tmp_path / "results")
    before = path.read_bytes(), path.stat().st_mtime_ns
    evidence = {"quick": False, "evidence": ("training_variance",)}
    (result,) = run(tiny_bert, tmp_path, layers=(0, 1), **few, **evidence)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    first = variance_in(result.found("training_variance"))
    assert list(first.layers) == [0, 1]
    assert list(first.p_best) == [0, 1]
    # More layers: scores and evidence are measured again, with the ones that were there.
    (result,) = run(tiny_bert, tmp_path, **few)
    assert sorted(result.extent) == [0, 1, 2]
    (result,) = run(tiny_bert, tmp_path, **few, **evidence)
    found = result.found("training_variance")
    second = variance_in(found)
    assert list(second.layers) == [0, 1, 2]
    assert list(second.p_best) == [0, 1, 2]
    assert {k: second.layers[k] for k in (0, 1)} == first.layers
    # Fewer layers: nothing is lost, and nothing is measured.
    stamps = {p: p.stat().st_mtime_ns for p in load(tmp_path / "results").records()}
    (result,) = run(tiny_bert, tmp_path, layers=(1,), **few, **evidence)
    assert {p: p.stat().st_mtime_ns for p in load(tmp_path / "results").records()} == stamps
    assert result.found("training_variance") == found
    assert read_result(path).found("training_variance") == found


@pytest.mark.parametrize("measurement", ["scores", "training_variance"])
def test_damaged_rows_end_the_run_and_is_named(tiny_bert, tmp_path, short_schedule, measurement):
    settings = {"tasks": ("pos",), "probes": ("linear",), "twins": 0, "quick": False}
    settings["evidence"] = ("training_variance",)
    run(tiny_bert, tmp_path, **settings)
    records = load(tmp_path / "results").records()
    (path,) = (path for path, record in records.items() if record.measurement == measurement)
    content = json.loads(path.read_text())
    content["rows"].pop("metric")
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"{path.name}: not a readable result .*metric"):
        run(tiny_bert, tmp_path, **settings)
