"""`probes.Vectors` and `probes.probe`: arrays of the user's own, checked from outside."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from killing import ROOT
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import BertConfig, BertModel

import probes
from probes.boards.floors import with_floor
from probes.boards.layer_tables import score_tables
from probes.frames.record_status import why_outdated


def probed(vectors, folder, **settings):
    """Results of linear probes without evidence, in `folder`."""
    places = {"output": folder / "results", "cache_dir": folder / "cache"}
    return probes.probe(vectors, **{"evidence": "none", "probes": "linear", **places, **settings})


def classes(n=600, seed=0):
    """Four classes that layer 6 separates in part, and layer 0 not at all."""
    numbers = np.random.default_rng(seed)
    y = numbers.integers(0, 4, n)
    noise = numbers.normal(size=(n, 16)).astype(np.float32)
    return {0: noise, 6: noise + 0.8 * numbers.normal(size=(4, 16))[y]}, y


SPLITS = ["train"] * 400 + ["dev"] * 100 + ["test"] * 100


def test_scores_are_those_of_scikit_learn(tmp_path):
    layers, y = classes()
    named = {"splits": SPLITS, "name": "mine", "task": "reading", "corpus": "senses"}
    (result,) = probed(probes.Vectors(layers, y, **named), tmp_path).results
    names = result.model.name, result.corpus.name, result.task.name
    assert names == ("mine", "senses", "reading")
    for layer, x in layers.items():
        scaler = StandardScaler().fit(x[:400])
        other = LogisticRegression(C=1 / 30, max_iter=2000).fit(scaler.transform(x[:400]), y[:400])
        expected = other.score(scaler.transform(x[500:]), y[500:])
        assert result.headline[layer] == pytest.approx(expected, abs=0.0101)  # one example
    assert result.headline[6] > result.headline[0] + 0.3
    assert (result.examples.resampled, result.examples.clusters) == ("sentences", 100)
    # No two arrays share a key, and the same arrays are not probed twice.
    (again,) = probed(probes.Vectors(layers, y, **named), tmp_path).results
    assert again.provenance == result.provenance
    changed = {**layers, 6: layers[6] + 1e-3}
    (other,) = probed(probes.Vectors(changed, y, **named), tmp_path).results
    assert other.key != result.key


def test_two_classes_are_ordered_as_scikit_learn_says(tmp_path):
    layers, y = classes()
    y, x = y > 1, layers[6]
    (result,) = probed(probes.Vectors({6: x}, y, splits=SPLITS), tmp_path).results
    probe = probes.read_probe(tmp_path / "results", "label", 6, cache_dir=tmp_path / "cache")
    margins = probe.decision_function(x[500:])
    false, true, _ = roc_curve(y[500:], margins)
    expected = {
        "auroc": roc_auc_score(y[500:], margins),
        "average_precision": average_precision_score(y[500:], margins),
        "recall_at_5_fpr": true[false <= 0.05].max(),
    }
    assert {x: result.at(x, 6).value for x in expected} == pytest.approx(expected, abs=1e-6)


def test_test_examples_of_one_class_are_not_ranked(tmp_path, capsys):
    layers, y = classes()
    y = y > 1
    y[500:] = True
    (result,) = probed(probes.Vectors({6: layers[6]}, y, splits=SPLITS), tmp_path).results
    for metric in ("auroc", "average_precision", "recall_at_5_fpr"):
        row = result.at(metric, 6)
        assert (row.value, row.interval, row.why) == (None, None, "one class in test")
    table = " ".join(capsys.readouterr().out.split())
    for word in ("one", "class", "test"):
        assert re.search(rf"average precision, best layer – .*\b{word}\b.* recall at", table)


def test_the_first_example_of_the_manual(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "vectors.md").read_text(encoding="utf-8")
    monkeypatch.setenv("PROBES_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)
    found = names["results"].table()["label"]
    assert found[6] > found[0] + 0.3
    assert f"{found[6]:.2f}" in capsys.readouterr().out


def test_evidence_is_that_of_models(tmp_path):
    layers, y = classes(900)
    types = [f"type {i % 40}" for i in range(900)]
    groups = np.arange(900) // 3
    vectors = probes.Vectors(layers, y, groups=groups, types=types)
    (result,) = probed(vectors, tmp_path, evidence="standard").results
    assert {"training_variance", "selectivity", "description_length"} <= set(result.evidence)
    assert (result.examples.resampled, result.examples.clusters) == ("documents", 30)
    assert result.examples.typed
    untyped = probes.Vectors(layers, y, groups=groups)
    (result,) = probed(untyped, tmp_path, evidence="selectivity").results
    assert not result.examples.typed
    assert not result.evidence


def test_groups_are_never_divided_and_splits_are_drawn_by_seed():
    layers, y = classes(600)
    groups = np.arange(600) // 6
    one, same, other = (probes.Vectors(layers, y, groups=groups, seed=x).splits for x in (0, 0, 1))
    assert one == same != other
    for group in range(100):
        assert len({one[i] for i in range(600) if groups[i] == group}) == 1
    assert [one.count(split) for split in ("train", "dev", "test")] == [480, 60, 60]


def test_numbers_and_sets_are_labels_too(tmp_path):
    layers, y = classes(400)
    slope = layers[6] @ np.linspace(-1, 1, 16) + 0.01
    (result,) = probed(probes.Vectors(layers, slope, task="slope"), tmp_path).results
    assert result.task.kind == "regression"
    assert result.headline[6] > 0.99

    sets = [{f"c{label}", "odd" if label % 2 else "even"} for label in y]
    (result,) = probed(probes.Vectors(layers, sets, task="sets"), tmp_path).results
    assert result.task.kind == "multi-label"
    assert set(result.examples.classes) == {"c0", "c1", "c2", "c3", "even", "odd"}
    assert result.headline[6] > result.headline[0] + 0.2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layers": {}}, "no layers; give {layer: array}"),
        ({"layers": {0: np.zeros((3, 2))}}, "3 vectors at layer 0, 600 labels"),
        ({"layers": {0: np.zeros(600)}}, r"layer 0 is float64 of shape \(600,\)"),
        ({"layers": np.zeros((600, 2))}, r"or an array of shape \(layers, examples, dimensions\)"),
        ({"layers": np.zeros((2, 3, 2))}, "3 vectors at layer 0, 600 labels"),
        ({"layers": np.zeros((0, 600, 2))}, "no layers; give {layer: array}"),
        ({"labels": ["a"] * 500 + ["b"] * 100, "splits": SPLITS}, "train has only the class 'a'"),
        ({"layers": {0: [[1, 2], [3]]}}, r"layer 0 is not an array of numbers \("),
        ({"layers": {"0": np.zeros((600, 2))}}, "layer '0': give whole numbers from 0"),
        ({"layers": {1: np.full((600, 2), np.nan)}}, r"layer 1, example 0 \(from 0\): a value is NaN"),
        ({"labels": [1] * 599 + [None]}, r"labels\[599\] is None, not a class like the others"),
        ({"labels": [1.5] * 599 + [float("nan")]}, r"labels\[599\] is nan, not a number"),
        ({"labels": ["a", "b"] * 299 + ["a", float("nan")]}, r"labels\[599\] is nan, not a class"),
        ({"labels": np.array(["a", "b"] * 299 + ["a", np.nan])}, r"labels\[599\] is .*nan.*, not a class"),
        ({"labels": [{"a"}] * 599 + [{"a", None}]}, r"labels\[599\] is .*None.*, not a set"),
        ({"groups": ["a", "b", None] * 200}, r"groups\[2\] is None; 200 of 600 are missing"),
        ({"groups": [1.0, float("nan"), 2.0] * 200}, r"groups\[1\] is nan; 200 of 600 are missing"),
        ({"groups": [pd.NA, 1, 2, "nan"] * 150}, r"groups\[0\] is <NA>; 300 of 600 are missing"),
        ({"types": ["a", "None", None] * 200}, r"types\[2\] is None; 200 of 600 are missing"),
        ({"types": [pd.NaT, *"ab" * 299, np.nan]}, r"types\[0\] is NaT; 2 of 600 are missing"),
        ({"labels": [10**400] + [0.5] * 599}, r"labels\[0\] is 10*, not a number up to 1e\+18"),
        ({"labels": [{"a"}] * 599 + [{"a", " "}]}, r"labels\[599\] is .*, not a set"),
        ({"labels": [{"a"}] * 599 + [{"a", "nan"}]}, r"labels\[599\] is .*, not a set"),
        ({"labels": [[0, 1]] + [[1, 0, 1]] * 599}, r"labels\[1\] is \[1, 0, 1\], with a class twice; give the names"),
        ({"labels": [{"a"}] * 599 + ["a"]}, r"labels\[599\] is 'a', not a set of classes"),
        ({"labels": [0.0, 1.0] * 299 + [0.0, float("nan")]}, r"labels\[599\] is nan, not a class"),
        ({"labels": [0.5] * 600, "kind": "classification"}, r"labels\[0\] is 0.5, not a class"),
        ({"labels": ["a"] * 600, "kind": "regression"}, r"labels\[0\] is 'a', not a number"),
        ({"labels": ["a"] * 600, "kind": "multi-label"}, r"labels\[0\] is 'a', not a set of classes"),
        ({"labels": [{0.5, 1}] * 600}, r"labels\[0\] is {0.5, 1}, not a set of classes"),
        ({"kind": "regresion"}, "kind='regresion': Did you mean 'regression'"),
        ({"groups": [1, 2]}, "2 groups, 600 labels"),
        ({"types": ["a"]}, "1 types, 600 labels"),
        ({"splits": ["trian"] * 600}, r"splits\[0\] is 'trian'. Did you mean 'train'"),
        ({"splits": ["train"] * 600}, "dev has no examples; omit splits="),
        ({"groups": [1] * 600}, "1 groups are too few to draw splits; give splits="),
        ({"layers": {0: csr_array([[0.0], [np.nan]] * 300)}}, r"layer 0, example 1 \(from 0\): a value is NaN"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(change, says):
    layers, y = classes()
    given = {"layers": layers, "labels": list(y), **change}
    with pytest.raises(probes.UserError, match=says) as error:
        probes.Vectors(**given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more_layers", "setting", "message"),
    [
        ({}, {"tasks": "pos"}, "tasks=: the vectors determine it"),
        ({}, {"limit": 20}, "limit=: the vectors determine it"),
        ({}, {"workers": 2}, "vectors are in memory"),
        ({}, {"measurements": "attention"}, "given vectors have no attention"),
        ({1: np.zeros((600, 3))}, {}, "layer 1 has the shape"),
    ],
)
def test_settings_that_do_not_fit_the_vectors_are_refused(more_layers, setting, message, tmp_path):
    layers, y = classes()
    vectors = probes.Vectors({**layers, **more_layers}, y)
    with pytest.raises(probes.UserError, match=message):
        probed(vectors, tmp_path, **setting)


@pytest.mark.parametrize("dtype", [int, np.int8, float, np.float32, bool, object])
def test_whole_numbers_of_any_type_are_the_same_classes(dtype):
    """In a list, an array or a tensor; the rule is that of `LayerProbe`."""
    layers, y = classes()
    y, x = (y > 1).astype(dtype), layers[6]
    given = [y, list(y), y.tolist(), [1.0 if label else False for label in y]]
    given += [] if dtype is object else [torch.tensor(y), list(torch.tensor(y))]
    for labels in given:
        vectors = probes.Vectors(layers, labels)
        assert (vectors.kind, {*vectors.labels}) == ("classification", {"0", "1"})
        assert vectors.labels == [str(int(label)) for label in y]
    sets = probes.Vectors(layers, [{label, 2} for label in y])
    assert {*sets.labels} == {("0", "2"), ("1", "2")}
    if dtype is not object:
        probe = probes.LayerProbe().fit(x, y)
        assert (probe.kind_, probe.classes_.tolist()) == ("classification", [0, 1])
        assert probe.score(x, y.astype(int)) == probe.score(x, y.astype(float)) > 0.6


def test_kinds_are_those_of_fitted_probes(capsys):
    """Fractions make a regression; many whole numbers that are floats are said to be classes."""
    layers, y = classes()
    numbers = np.arange(600) % 21
    said = "Vectors: 21 whole numbers are classes; kind='regression' predicts them"
    for labels, kind, expected, warned in (
        (y, "auto", "classification", False),
        (y.astype(float), "auto", "classification", False),
        (y.astype(float), "regression", "regression", False),
        (y, "regression", "regression", False),
        (y + 0.5, "auto", "regression", False),
        (numbers, "auto", "classification", False),
        (numbers.astype(float), "auto", "classification", True),
        (numbers.astype(float), "regression", "regression", False),
    ):
        vectors = probes.Vectors(layers, labels, kind=kind)
        assert vectors.kind == expected
        assert (said in capsys.readouterr().err) == warned
        assert probes.LayerProbe(kind=kind).fit(layers[6], labels).kind_ == expected


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0), (0.1, 1000), (1e6, 0)])
def test_numbers_of_any_size_keep_what_they_say(scale, offset, tmp_path):
    layers, y = classes()
    given = {6: layers[6].astype(np.float64)}
    plain, scaled = (
        probed(probes.Vectors(x, y, splits=SPLITS), tmp_path).table()["label"]
        for x in (given, {6: scale * given[6] + offset})
    )
    assert scaled[6] == pytest.approx(plain[6], abs=0.011)


def test_labels_groups_and_types_that_are_written_in_two_ways_are_one():
    layers, y = classes()
    pairs = [("pos", "neg\u00a0", " pos", "neg")[i % 4] for i in range(600)]
    vectors = probes.Vectors(layers, pairs, task="mood")
    assert set(vectors.labels) == {"pos", "neg"}
    (note,) = vectors.source().load().notes.items()
    assert note == ("mood: labels with spaces at their edges, which were removed", 300)
    sets = probes.Vectors(layers, [{"a", " a"}] * 300 + [{"b"}] * 300)
    assert set(sets.labels) == {("a",), ("b",)}
    twice = [(i // 2 if i % 2 else float(i // 2)) for i in range(600)]
    given = probes.Vectors(layers, y, groups=twice, types=twice)
    assert given.groups == given.types
    assert len(set(given.groups)) == 300
    assert given.groups[0::2] == given.groups[1::2]
    # Names that were one way or the other stay, and with them the keys of results.
    assert probes.Vectors(layers, y, groups=np.arange(600.0)).groups[:2] == ["0.0", "1.0"]


def test_groups_that_splits_divide_are_counted(capsys):
    layers, y = classes()
    # A group counts once, in however many splits it is.
    for n, divided in ((300, 200), (10, 10)):
        probes.Vectors(layers, y, splits=SPLITS, groups=[f"{i % n}" for i in range(600)])
        said = capsys.readouterr().err
        assert f"Vectors: {divided} groups are divided among splits" in said
        assert "omit splits=" in said


@pytest.mark.parametrize("n", [19, 20])
def test_with_few_groups_in_test_nothing_is_tested(n, tmp_path, capsys):
    layers, y = classes()
    groups = [f"test {i % n}" if split == "test" else f"{i}" for i, split in enumerate(SPLITS)]
    given = probes.Vectors(layers, y, splits=SPLITS, groups=groups)
    found = probed(given, tmp_path, evidence="training_variance")
    said = "19 named documents or groups in test; with fewer than 20 there are no intervals"
    assert capsys.readouterr().err.count(said) == (n == 19)
    (result,) = found.results
    assert (result.examples.resampled, result.examples.clusters) == ("documents", n)
    assert not why_outdated(result)
    # Layer 6 knows the classes, layer 0 does not.
    p_values = [result.row("training_variance", "p_best", layer).value for layer in (0, 6)]
    assert (p_values[0] is None, p_values[1]) == ((True, None) if n == 19 else (False, 1.0))
    (table,) = score_tables([with_floor(x) for x in found.results])
    below, above = (row.cells[1] for row in table.rows[:2])
    assert (below.floored, above.best, above.tied, below.tied) == (True, True, False, False)
    assert [x.interval is None for x in (below, above)] == [n == 19] * 2
    none = "No intervals and no tests: fewer than 20 test documents."
    floor = "▽ not significantly above the floor (or, where there are no intervals, not above it)."
    assert table.notes == (none, floor) if n == 19 else "±" in table.notes[0]


def test_probes_of_all_tokens_are_refused(tmp_path):
    given = probes.Vectors({0: X}, Y, splits=["train", "dev", "test"] * 100, name="mine")
    line = "--probes attention: reads all tokens of a text, and mine has one vector for each; leave"
    with pytest.raises(probes.UserError, match=line):
        probed(given, tmp_path, probes="linear,attention")


X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
Y = np.arange(300) % 2


@pytest.mark.parametrize("given", [(X, Y), (X,), (probes.Vectors({0: X}, Y), Y)])
def test_probe_says_what_to_write(given):
    with pytest.raises(probes.UserError, match=r"write probe\(Vectors\(\{0: x\}, y\)\)"):
        probes.probe(*given)


def test_tensors_in_bfloat16_are_cast():
    given = torch.tensor(X).bfloat16()
    assert (probes.Vectors({0: given}, Y).layers[0] == given.float().numpy()).all()


def test_codes_in_a_sparse_matrix_have_the_scores_of_a_dense_one(tmp_path, monkeypatch):
    codes = np.tile(np.where(X > 0.5, X, 0), (8, 1))
    shapes, dense, scores = [], csr_array.toarray, []
    monkeypatch.setattr(csr_array, "toarray", lambda x: shapes.append(x.shape) or dense(x))
    makes = coo_array, csr_matrix, csc_array
    for given in (codes, *(make(codes) for make in makes)):
        vectors = probes.Vectors({0: given}, np.tile(Y, 8))
        results = probed(vectors, tmp_path / f"{len(scores)}", probes="linear,sparse")
        scores.append([result.score(0) for result in results.results])
    assert scores == [scores[0]] * 4
    blocks = [n for n, width in shapes if width == codes.shape[1]]
    assert sum(blocks) == len(makes) * len(codes)
    assert max(blocks) < len(codes) / 2


def test_noise_is_not_above_the_floor_and_flags_are_not_named(tmp_path, capsys):
    probed(probes.Vectors({0: X, 1: X}, Y, types=Y.astype(str)), tmp_path)
    printed = capsys.readouterr()
    said = printed.err
    assert " is not significantly above the floor of " in printed.out
    assert " · a class per example, accuracy" in said
    assert "next    the call without evidence='none' adds the evidence behind these scores" in said


def test_a_model_whose_scales_are_of_a_whole_batch_is_refused(tmp_path):
    small = {"vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = torch.ao.quantization.quantize_dynamic(BertModel(BertConfig(**small)), {nn.Linear})
    with pytest.raises(
        probes.UserError, match=r"BertModel is quantised by torch\.ao.*; use torchao"
    ):
        probes.run_probes(model, lambda: None, corpus="sample", output=tmp_path)


def test_arrays_of_all_layers_are_numbered_from_the_embeddings():
    layers, y = classes(60)
    stacked = np.stack([layers[0], layers[6]])
    on_tape = torch.tensor(stacked, requires_grad=True) * 1  # as nnsight saves it
    for given in (stacked, torch.tensor(stacked), on_tape, list(stacked), list(on_tape)):
        vectors = probes.Vectors(given, y)
        assert list(vectors.layers) == [0, 1]
        for number, layer in enumerate((0, 6)):
            assert (np.asarray(vectors.layers[number]) == layers[layer]).all()
