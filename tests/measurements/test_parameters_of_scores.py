"""Stored parameters give the predictions of their record again, computed with numpy alone."""

import json

import numpy as np
import pytest
from changed_measurement import change_measurement
from safetensors import safe_open
from tiny_runs import run

import probes.run.runner as runner
from probes.measurements.context import TaskContext
from probes.measurements.measurement import get_measurement
from probes.records.parameters import parameters_path, read_parameters
from probes.records.record_files import read_arrays

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.fixture
def spans(monkeypatch):
    """By task and layer, the mean vectors of the spans of test examples (spans, n, hidden size)."""
    found, measured = {}, runner._found

    def noted(job, context):
        data = context.data
        for layer in context.layers:
            vectors = np.concatenate(data._vectors.arrays(f"layer-{layer:02d}")).astype(np.float64)
            found[job.task, layer] = np.stack(
                [[vectors[a:b].mean(0) for a, b in span] for span in data._rows["test"]]
            )
        return measured(job, context)

    monkeypatch.setattr(runner, "_found", noted)
    return found


def outputs(arrays, layer, x):
    """What a probe computes from the vectors of one or two spans."""

    def of(name):
        return arrays[f"layer-{layer:02d}.{name}"].astype(np.float64)

    features = (np.concatenate(x, 1) - of("mean")) * of("scale")
    if "projection" in arrays:
        each = np.split(features, len(x), axis=1)
        features = np.concatenate([part @ arrays["projection"] for part in each], 1)
        features *= of("projected-scale")
    found = features @ of("weight").T + of("bias")
    if f"layer-{layer:02d}.weight-2" in arrays:
        found = np.maximum(found, 0) @ of("weight-2").T + of("bias-2")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("project", [None, 5])
def test_they_predict_what_the_record_says(tiny_bert, tmp_path, spans, project):
    tasks = ("pos", "depth", "srl", "roles")
    results = run(tiny_bert, tmp_path, tasks=tasks, seeds=2, project=project)
    compared = 0
    for result in results.results:
        arrays = read_parameters(tmp_path / "cache", result.key)
        with safe_open(parameters_path(tmp_path / "cache", result.key), framework="np") as file:
            classes = json.loads(file.metadata()["about"])["classes"]
        (path,) = (tmp_path / "results").rglob(f"*-scores-{result.key[:8]}.json")
        predicted = read_arrays(path)["predicted"]
        for place, layer in enumerate(result.extent):
            found = outputs(arrays, layer, spans[result.task.name, layer])
            first = predicted[place, 0]
            if result.task.kind == "regression":
                mean, deviation = arrays["label-unit"]
                np.testing.assert_allclose(found[:, 0] * deviation + mean, first, atol=1e-3)
            elif result.task.kind == "multi-label":
                bits = np.unpackbits(first, axis=1)[:, : len(classes)]
                clear = np.abs(found) > 1e-3
                assert np.array_equal((found > 0)[clear], bits[clear])
            else:
                top = np.sort(found, 1)
                clear = top[:, -1] - top[:, -2] > 1e-3
                assert np.array_equal(found.argmax(1)[clear], first[clear])
                right = np.array(classes)[first] == np.array(classes)[found.argmax(1)]
                assert right.mean() > 0.99
            assert len(found) == result.examples.n["test"]
            compared += 1
    assert compared == len(tasks) * 2 * 3


def test_scores_without_them_are_whole_and_evidence_fits_them_again(
    tiny_bert, tmp_path, monkeypatch
):
    settings = {"tasks": ("pos", "depth"), "probes": "linear"}
    results = run(tiny_bert, tmp_path, **settings)
    first = {r.key: read_parameters(tmp_path / "cache", r.key) for r in results}
    types = {name: array.dtype for each in first.values() for name, array in each.items()}
    assert types.pop("label-unit") == np.float64
    assert set(types.values()) == {np.dtype(np.float32)}
    again, fits = {}, []

    def asked(context):
        fits.clear()
        again[context.result.key] = context.parameters([2, 1]), len(fits)
        return measure(context)

    measure, fit = get_measurement("training_variance").function, TaskContext.fits
    change_measurement(monkeypatch, "training_variance", function=asked)
    monkeypatch.setattr(TaskContext, "fits", lambda *a, **k: fits.append(a) or fit(*a, **k))
    evidence = {"quick": False, "evidence": "training_variance", "twins": 0}

    run(tiny_bert, tmp_path, overwrite="missing", **settings, **evidence)
    assert {key: n for key, (_, n) in again.items()} == dict.fromkeys(first, 0)
    for path in (tmp_path / "cache" / "parameters").iterdir():
        path.unlink()
    for path in (tmp_path / "results").rglob("*-training_variance-*"):
        path.unlink()
    change_measurement(monkeypatch, "scores", function=None)
    run(tiny_bert, tmp_path, **settings, **evidence)
    assert again.keys() == first.keys()
    for key, (found, n) in again.items():
        assert n == 1
        for name, array in found.items():
            np.testing.assert_allclose(array, first[key][name], rtol=1e-3, atol=1e-4, err_msg=name)
        assert any(name.startswith("layer-01") for name in found)
        assert not any(name.startswith("layer-00") for name in found)
    assert not list((tmp_path / "cache" / "parameters").iterdir())


def test_a_cache_that_cannot_be_written_costs_nothing_but_a_line(tiny_bert, tmp_path, capsys):
    settings = {"tasks": ("pos",), "probes": "linear"}
    run(tiny_bert, tmp_path, **settings)
    folder = tmp_path / "cache" / "parameters"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    (result,) = run(tiny_bert, tmp_path, overwrite="always", **settings)
    assert len(result.layers) == 3
    said = capsys.readouterr().err
    assert "parameters of pos · linear are not kept: " in said
    assert "cannot be written" in said
