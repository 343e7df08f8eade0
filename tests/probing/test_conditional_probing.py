"""The gain of a layer over layer 0, against scikit-learn, scipy and planted information."""

import numpy as np
import pytest
from drawn import column, curve, svg, texts, view_of
from planted_context import planted_data, task_context
from results_by_hand import changed, evidence_record, make_result
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from probes.boards.layer_tables import score_table
from probes.measurements.measurement import get_measurement
from probes.records.probe_spec import PROBES
from probes.records.row import Row, Rows

LINEAR = PROBES["linear"]
SIZES = {"train": 1500, "dev": 300, "test": 600}
C = 1 / 30


def measured(vectors, labels, layers=(1,), **task):
    """The rows of conditional probing of planted data."""
    context = task_context(planted_data(vectors, labels, **task), dict.fromkeys(layers, 1))
    return Rows.of(get_measurement("conditional_probing")(context))


def features_of(vectors, *layers):
    """Features of each split: standardised as scikit-learn does, layers concatenated."""
    scalers = [StandardScaler().fit(vectors["train"][k]) for k in layers]
    return {
        split: np.concatenate([s.transform(x[k]) for s, k in zip(scalers, layers, strict=True)], 1)
        for split, x in vectors.items()
    }


def noise(seed, n_layers=2, n_features=6):
    rng = np.random.default_rng(seed)
    return {split: rng.normal(2, 3, (n_layers, n, n_features)) for split, n in SIZES.items()}


def classes(vectors, bias=(0, 0, 0)):
    """Three classes that depend on both layers, and on chance."""
    rng = np.random.default_rng(9)
    weights = rng.normal(size=(vectors["train"].shape[2], 3))
    found = {}
    for split, x in vectors.items():
        score = (x[0] + x[1] - 4) @ weights / 4 + rng.gumbel(size=(x.shape[1], 3)) + bias
        found[split] = ["abc"[k] for k in score.argmax(1)]
    return found


def coded(vectors, labels, layers, **more):
    """Bits of each test label, and what is predicted, by scikit-learn's probe of the same prior."""
    x = features_of(vectors, *layers)
    model = LogisticRegression(**{"C": C, "max_iter": 3000, "tol": 1e-10, **more})
    p = model.fit(x["train"], labels["train"]).predict_proba(x["test"])
    column = [list(model.classes_).index(label) for label in labels["test"]]
    return -np.log2(p[np.arange(len(p)), column]), model.predict(x["test"])


def half(values):
    """Half a 95 % interval of a mean, by the central limit theorem."""
    return 1.96 * np.std(values) / np.sqrt(len(values))


def test_bits_and_points_are_those_of_scikit_learn():
    vectors = noise(0, 3)
    labels = classes(vectors)
    rows = measured(vectors, labels, (1, 2))
    gold = np.array(labels["test"])
    alone, said_alone = coded(vectors, labels, [0])
    for layer in (1, 2):
        both, said_both = coded(vectors, labels, [0, layer])
        right = (said_both == gold).astype(float) - (said_alone == gold)
        bits, points = rows.at("added_bits", layer), rows.at("added_points", layer)
        assert bits.value == pytest.approx((alone - both).mean(), abs=2e-4)
        assert points.value == pytest.approx(right.mean(), abs=1.01 / len(gold))
        for row, values in ((bits, alone - both), (points, right)):
            assert (row.high - row.low) / 2 == pytest.approx(half(values), rel=0.06)
    # Layer 1 has a share in the labels, layer 2 has none.
    assert rows.at("added_bits", 1).value > 0.3
    assert rows.at("added_bits", 2).value == pytest.approx(0, abs=0.02)
    assert rows.at("examples_left_out") is None


def test_bits_are_those_of_the_optimum_where_probes_of_scores_end_above_it():
    """Layer 0 knows 200 types, in directions of very different variance; layer 1 the label."""
    rng = np.random.default_rng(11)
    axes = np.linalg.qr(rng.normal(size=(32, 32)))[0] / np.arange(1, 33)[:, None]
    vectors_of, label_of = rng.normal(size=(200, 32)) @ axes, rng.integers(0, 6, 200)
    shares, basis = 1 / np.arange(1, 201), rng.normal(size=(6, 32))
    vectors, labels = {}, {}
    for split, n in {"train": 3000, "dev": 300, "test": 1500}.items():
        types = rng.choice(200, n, p=shares / shares.sum())
        known = np.where(rng.random(n) < 0.1, rng.integers(0, 6, n), label_of[types])
        vectors[split] = np.stack([vectors_of[types], basis[known] + 2 * rng.normal(size=(n, 32))])
        labels[split] = ["abcdef"[k] for k in known]
    bits = measured(vectors, labels, words=5).at("added_bits", 1)
    alone, both = (coded(vectors, labels, layers)[0] for layers in ([0], [0, 1]))
    assert bits.value == pytest.approx((alone - both).mean(), abs=2e-4)


def test_bits_of_balanced_classes_are_under_the_distribution_of_training():
    vectors = noise(2)
    labels = classes(vectors, bias=(6, 0, 0))
    rows = measured(vectors, labels, metric="balanced_accuracy")
    bits, gold = rows.at("added_bits", 1), np.array(labels["test"])
    (alone, said_alone), (both, said_both) = (
        coded(vectors, labels, layers, class_weight="balanced") for layers in ([0], [0, 1])
    )
    names, counts = np.unique(labels["train"], return_counts=True)
    assert counts.max() > 5 * counts.min()
    weights = (1 / counts)[np.searchsorted(names, gold)]
    assert bits.value == pytest.approx(np.average(alone - both, weights=weights), abs=5e-4)
    assert bits.value != pytest.approx((alone - both).mean(), abs=5e-3)
    points = [balanced_accuracy_score(gold, said) for said in (said_both, said_alone)]
    assert rows.at("added_points", 1).value == pytest.approx(points[0] - points[1], abs=0.02)


def test_bits_of_label_sets_are_those_of_their_labels_together():
    vectors = noise(3)
    rng = np.random.default_rng(4)
    held = {
        split: (x[0] + x[1])[:, :3] + 4 * rng.normal(size=(x.shape[1], 3)) > [4, 6, 8]
        for split, x in vectors.items()
    }
    labels = {
        split: [tuple(name for name, has in zip("abc", row, strict=True) if has) for row in each]
        for split, each in held.items()
    }
    labels["test"][0] = ("a", "d")
    rows = measured(vectors, labels, kind="multi-label", metric="micro_f1")
    bits, scores = [], []
    for layers in ([0], [0, 1]):
        x = features_of(vectors, *layers)
        model = LogisticRegression(C=C, max_iter=3000, tol=1e-10)
        p = OneVsRestClassifier(model).fit(x["train"], held["train"]).predict_proba(x["test"])
        bits.append(-np.log2(np.where(held["test"], p, 1 - p)).sum(1)[1:].mean())
        gold = np.column_stack([held["test"], np.zeros(600)])
        gold[0] = [1, 0, 0, 1]
        given = np.column_stack([p > 0.5, np.zeros(600)])
        scores.append(f1_score(gold, given, average="micro"))
    assert rows.at("examples_left_out").value == 1
    assert rows.at("added_bits", 1).value == pytest.approx(bits[0] - bits[1], abs=5e-4)
    assert rows.at("added_points", 1).value == pytest.approx(scores[1] - scores[0], abs=0.003)


def test_points_of_a_regression_are_those_of_ridge_regression_and_it_has_no_bits():
    vectors = noise(5)
    rng = np.random.default_rng(6)
    weights = rng.normal(size=6)
    labels = {
        split: ((x[0] + x[1]) @ weights + 9 * rng.normal(size=x.shape[1])).tolist()
        for split, x in vectors.items()
    }
    rows = measured(vectors, labels, kind="regression", metric="corpus_spearman")
    scores = []
    for layers in ([0], [0, 1]):
        x = features_of(vectors, *layers)
        models = [
            Ridge(alpha=strength * 1500).fit(x["train"], labels["train"])
            for strength in LINEAR.ridge_l2
        ]
        best = min(models, key=lambda m: ((m.predict(x["dev"]) - labels["dev"]) ** 2).mean())
        scores.append(spearmanr(best.predict(x["test"]), labels["test"]).statistic)
    points = rows.at("added_points", 1)
    assert points.value == pytest.approx(scores[1] - scores[0], abs=1e-4)
    assert points.low < points.value < points.high
    assert points.value > 0.1
    assert rows.with_metric("added_bits") == rows.with_metric("examples_left_out") == []


def test_what_only_the_layer_knows_is_added_bit_by_bit():
    """Labels are two coins; layer 0 knows the first, the layer the second in nine cases of ten."""
    rng = np.random.default_rng(8)
    vectors, labels, wrong = {}, {}, {}
    for split, n in {"train": 8000, "dev": 500, "test": 2000}.items():
        coins = rng.integers(0, 2, (2, n))
        wrong[split] = rng.random(n) < 0.1
        vectors[split] = np.stack([coins[0], coins[1] ^ wrong[split]])[:, :, None] * 2.0 - 1
        labels[split] = [f"{a}{b}" for a, b in coins.T]
    rows = measured(vectors, labels, words=4)
    # 1 bit less the entropy of the error; in these test sentences errors are as frequent as they are.
    share = wrong["test"].mean()
    expected = 1 + (1 - share) * np.log2(0.9) + share * np.log2(0.1)
    assert expected == pytest.approx(1 - 0.469, abs=0.05)
    assert rows.at("added_bits", 1).value == pytest.approx(expected, abs=0.01)
    # Layer 0 guesses the second coin.
    assert rows.at("added_points", 1).value == pytest.approx(0.9 - 0.5, abs=0.03)


def test_few_sentences_have_no_intervals():
    vectors = noise(0)
    labels = classes(vectors)
    few = {split: x if split != "test" else x[:, :19] for split, x in vectors.items()}
    labels["test"] = labels["test"][:19]
    rows = measured(few, labels)
    bits, points = rows.at("added_bits", 1), rows.at("added_points", 1)
    assert (bits.interval, points.interval) == (None, None)
    assert bits.value > 0


FOUND = [
    Row("added_bits", 0.25, 1, 0.2, 0.3),
    Row("added_points", 0.125, 1, 0.1, 0.15),
    Row("added_bits", -0.5, 3),
    Row("added_points", -0.01, 3),
]
NUMBERS = [Row("added_points", 0.0625, 2, 0.06, 0.065)]


def with_found(payload=FOUND, task="pos", scores=(0.5, 0.9, 0.6, 0.7), **more):
    result = make_result(task, scores, p_best=False, **more)
    return result.with_evidence(evidence_record(result, "conditional_probing", payload))


def regression():
    result = with_found(NUMBERS, "depth", (0.5, 0.6, 0.7, 0.6), metric="nspr")
    return changed(result, "task", kind="regression")


def test_curves_are_of_bits_or_of_points_and_say_why_there_are_none():
    def bare(**more):
        return make_result(scores=(0.5, 0.7), p_best=False, **more)

    chart, missing = view_of(
        "conditional_probing",
        "conditional",
        {
            "full": with_found(),
            "scores": bare(),
            "mlp": bare(probe=PROBES["mlp"]),
            "part": bare(layers=(1, 2)),
            "one": make_result(scores=(0.5,), p_best=False, n_layers=2),
        },
    )
    assert set(column(chart, "model")) == {"full"}
    assert curve(chart) == [(1, 0.25, 0.2, 0.3), (3, -0.5, None, None)]
    assert "bits per example" in texts(svg(chart))
    assert missing == {
        "scores": "there is no record of it",
        "mlp": "only convex probes are fitted on concatenated layers",
        "part": "layer 0 was not probed",
        "one": "only layer 0 was probed",
    }
    one = {"m": regression()}
    assert view_of("conditional_probing", "conditional", one)[0] is None
    points, _ = view_of("conditional_probing", "conditional_points", one)
    assert curve(points) == [(2, 0.0625, 0.06, 0.065)]
    assert "added, NSpr" in texts(svg(points))


def test_the_table_of_scores_says_what_the_best_layer_adds():
    def added(*results):
        rows = [row.cells for row in score_table(results).rows]
        name = "adds to layer 0"
        return [[(x.text, x.half) for x in cells[1:]] for cells in rows if cells[0].text == name]

    without = make_result("srl", scores=(0.5, 0.9), p_best=False)
    assert added(with_found(), regression(), without) == [
        [("12.5", "2.5"), (".062", ".003"), ("–", "")]
    ]
    # The best layer is 0.
    assert added(with_found(scores=(0.9, 0.1, 0.1, 0.1))) == []
    assert added(without) == []
