"""Whole runs: multi-label tasks, and evidence against the scores that it stands behind."""

import numpy as np
import pytest
import torch
from finding_rows import value_of, values_along
from planted_context import task_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from tiny_runs import of_all_layers, run, shortened_schedule

import probes
from probes.__main__ import main
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.extraction.models.loading import load_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import vectors_of, word_vectors
from probes.frames.joined_results import find_results
from probes.measurements.measurement import get_measurement
from probes.probing.scores import gold_of
from probes.records.probe_spec import PROBES
from probes.records.record_files import read_arrays
from probes.records.row import Rows
from probes.run.inputs import find_models
from probes.statistics.bootstrap import RESAMPLES
from probes.statistics.replicates import p_best_of, pooled, training_noise
from probes.tasks.builtin import tasks
from probes.training.dataset import ProbingData


def one_vs_rest(strength, x, held):
    """scikit-learn's probe with the same objective."""
    model = LogisticRegression(C=1 / (strength * len(x)), max_iter=2000, tol=1e-8)
    return OneVsRestClassifier(model).fit(x, held)


def test_a_probe_on_real_vectors_is_scikit_learns(tiny_bert, tmp_path):
    corpus = find_corpus("sample", limit=300).load()
    examples = collect_examples(tasks.get("roles"), corpus, "masked")
    view = examples.view_of(corpus)
    (found,) = find_models([str(tiny_bert)], probes.run.config.RunConfig(twins=0))
    model, tokenizer, _ = load_model(found.source, "cpu", "float32", False)
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    reading = word_vectors(tmp_path, encoder.info, "float32", view, range(3))
    vectors = vectors_of(reading, encoder, 512)
    spec, device = PROBES["linear"], torch.device("cpu")
    data = ProbingData(examples, view, vectors, device, project=None)
    outcome = get_measurement("scores")(task_context(data, {0: 1, 2: 1}, spec))
    features = data.features([0, 2])
    train = data.batches("train", features["train"])
    held = examples.members[:, : len(examples.classes)]
    rows = Rows.of(outcome.rows)
    for row, layer in enumerate((0, 2)):
        model = one_vs_rest(
            rows.at("strength", layer, "train").value,
            features["train"].block(slice(None))[row].numpy(),
            held[train.labels[0]],
        )
        theirs = model.predict(features["test"].block(slice(None))[row].numpy())
        wanted = examples.members[examples.targets("test")]
        theirs = np.pad(theirs, ((0, 0), (0, wanted.shape[1] - theirs.shape[1])))
        expected = f1_score(wanted, theirs, average="micro")
        assert rows.at("micro_f1", layer).value == pytest.approx(expected, abs=0.004)
        ours = np.unpackbits(outcome.arrays["predicted"][row, 0], axis=-1, count=held.shape[1])
        assert (ours != theirs[:, : held.shape[1]]).mean() < 0.005


@pytest.mark.usefixtures("short_schedule")
def test_a_whole_run_of_a_multi_label_task(tiny_bert, tmp_path):
    output = tmp_path / "results"
    found = probes.run_probes(
        str(tiny_bert), tasks=("roles",), limit=80, output=output, cache_dir=tmp_path, device="cpu"
    )
    result = next(
        r for r in found.results if r.probe.family == "linear" and r.model.random_seed is None
    )
    (path,) = output.glob(f"{tiny_bert.name}*/sample/roles-linear-scores-*.json")
    arrays = read_arrays(path)
    gold = gold_of(result, arrays)
    held, said = gold.indicators(arrays["predicted"][1, 0])
    assert result.score(1) == pytest.approx(f1_score(held, said, average="micro", zero_division=0))
    low, high = result.interval(1)
    assert low <= result.score(1) <= high
    ends = np.quantile(of_all_layers(result).values[1], [0.025, 0.975])
    assert ends == pytest.approx([low, high])
    controls = result.evidence["selectivity"]
    assert controls.facts["unit"] == "micro_f1"
    assert value_of(controls.rows, "micro_f1", 1) == result.score(1)
    codes = result.evidence_rows("description_length")
    uniform = value_of(codes, "codelength", split="train", baseline="uniform code")
    assert uniform == result.examples.n["train"] * len(gold.classes)
    assert 0 < value_of(codes, "codelength", 1, "train") < uniform
    assert value_of(codes, "codelength", split="train", baseline="labels alone") < uniform
    mixes = result.evidence_rows("localisation")
    (beside,) = output.glob(f"{tiny_bert.name}*/sample/roles-linear-localisation-*.json")
    of_mixes = read_arrays(beside)["predicted"]
    assert len(of_mixes) == 3
    for layer, given in enumerate(of_mixes):
        held, said = gold.indicators(given)
        f1 = f1_score(held, said, average="micro", zero_division=0)
        assert value_of(mixes, "mix_score", layer) == pytest.approx(f1)
    held, said = gold.indicators(arrays["predicted"][1, 0])
    f1 = f1_score(held, said, average=None, zero_division=0)
    by_name = dict(zip((*gold.classes, *gold.unseen), f1, strict=True))
    of_labels = [x for x in result.rows.along("label") if (x.metric, x.layer) == ("f1", 1)]
    assert of_labels
    expected = [by_name[x.axes["label"]] for x in of_labels]
    assert [x.value for x in of_labels] == pytest.approx(expected)
    groups = [x.axes["group"] for x in result.rows.along("group") if x.layer == 1]
    assert any(name.startswith("predicate ") for name in groups)
    binarizer = MultiLabelBinarizer()
    for layer in result.layers:
        frame = found.predictions("roles", layer)
        sets = binarizer.fit_transform([*frame["gold"], *frame["predicted"]])
        gold, predicted = np.split(sets, 2)
        assert f1_score(gold, predicted, average="micro") == pytest.approx(result.score(layer))
    names = dict.fromkeys(r.model.name for r in found.results)
    for command, *arguments in (
        ("show", path),
        ("leaderboard", output),
        ("compare", *names, "--results", output),
        ("export", output, tmp_path / "other", "--sums"),
        ("report", output),
    ):
        assert main([command, *map(str, arguments)]) == 0, command


EVIDENCE = ("training_variance", "selectivity")


@pytest.fixture(scope="module")
def results_by_unit(tiny_bert, tmp_path_factory):
    """Paths and results by task and probe family."""
    folder = tmp_path_factory.mktemp("run")
    with shortened_schedule():
        for tasks, family in (("pos,depth", "linear"), ("pos", "mlp")):
            run(tiny_bert, folder, evidence=EVIDENCE, tasks=tasks, probes=family)
        results = find_results(folder / "results")
    return {(r.task.name, r.probe.family): (path, r) for path, r in results.items()}


UNITS = ("pos", "linear"), ("depth", "linear"), ("pos", "mlp")


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_p_values_follow_from_predictions_and_spreads(results_by_unit, unit):
    _, result = results_by_unit[unit]
    rows, metric = result.evidence_rows("training_variance"), result.task.metric
    layers = [row.layer for row in rows.with_metric("layer_training_sd")]
    seeds = pooled([[result.score(k), *values_along(rows, "seed", metric, k)] for k in layers])
    both = pooled([values_along(rows, "sample", metric, k) for k in layers])
    for name, spread in (
        ("retraining_sd", seeds if "mlp" in unit else None),
        ("training_sd", both),
    ):
        row = rows.at(name)
        assert (row.value, row.n) == ((spread.sd, spread.df) if spread else (None, None))
    replicates = of_all_layers(result)
    noise = training_noise(result.key, range(3), both.sd, both.df, RESAMPLES)
    assert (replicates.noise == noise).all()
    p_best = {row.layer: row.value for row in rows.with_metric("p_best")}
    assert p_best == pytest.approx(p_best_of(replicates))


def test_fits_on_samples_differ_from_the_fit_on_the_whole_split(results_by_unit):
    _, result = results_by_unit["pos", "linear"]
    rows = result.evidence_rows("training_variance")
    for row in rows.with_metric("layer_training_sd"):
        assert len({*values_along(rows, "sample", "accuracy", row.layer)}) > 1


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_selectivity_is_that_of_the_scores(results_by_unit, unit):
    _, result = results_by_unit[unit]
    evidence = result.evidence["selectivity"]
    rows, metric = evidence.rows, "accuracy" if "pos" in unit else "nspr"
    assert evidence.facts["unit"] == metric == result.task.metric
    controls = []
    for row in rows.with_metric("selectivity"):
        controls.append(values_along(rows, "draw", metric, row.layer))
        assert value_of(rows, metric, row.layer) == pytest.approx(result.score(row.layer))
        assert row.value == pytest.approx(result.score(row.layer) - np.mean(controls[-1]))
        assert row.low < row.value < row.high
    assert len({*zip(*controls, strict=True)}) == 3
    assert value_of(rows, "control_sd") == pooled(controls).sd
