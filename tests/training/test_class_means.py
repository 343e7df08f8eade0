"""Mean-difference and sparse probes against numbers by hand and scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, one_cell, planted
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

from probes import LayerProbe
from probes.records.probe_spec import PROBES
from probes.training.batches import bootstrap_batches
from probes.training.class_means import features_by_variance
from probes.training.fit import FitSeed, fit, predict

MEANS, SPARSE = PROBES["mean-difference"], PROBES["sparse"]


def test_two_means_by_hand():
    """Means (1, 0) and (4, 4): the direction is (3, 4), the threshold half-way at (2.5, 2)."""
    x = [[0, 1], [2, -1], [3, 4], [5, 4]]
    probe = LayerProbe("mean-difference").fit(x, ["a", "a", "b", "b"])
    np.testing.assert_allclose(probe.coef_, [[3, 4]], rtol=1e-5)
    np.testing.assert_allclose(probe.intercept_, [-(3 * 2.5 + 4 * 2)], rtol=1e-5)
    # Just before the plane, and just behind it.
    assert list(probe.predict([[2.5, 1.99], [2.5, 2.01]])) == ["a", "b"]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_nearest_mean_is_scikit_learns(n_classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 8)) * np.geomspace(0.1, 100, 8) + 10 * rng.normal(size=8)
    y = ((x - x.mean(0)) / x.std(0) @ rng.normal(size=(8, n_classes))).argmax(1)
    theirs = NearestCentroid().fit(x[:800], y[:800])
    ours = LayerProbe("mean-difference", class_weight="balanced").fit(x[:800], y[:800])
    assert np.array_equal(ours.predict(x[800:]), theirs.predict(x[800:]))
    assert ours.coef_.shape == (1 if n_classes == 2 else n_classes, 8)
    differences = np.diff(theirs.centroids_, axis=0)
    found = ours.coef_ if n_classes == 2 else np.diff(ours.coef_, axis=0)
    np.testing.assert_allclose(found, differences, atol=1e-4 * np.abs(differences).max())


def best_features(x, y, weights):
    """Features by variance of class means, as numpy computes it."""
    shares = np.bincount(y, weights, N_CLASSES) / weights.sum()
    means = np.stack([np.average(x[y == c], 0, weights[y == c]) for c in range(N_CLASSES)])
    centre = shares @ means
    return np.argsort(-(shares @ (means - centre) ** 2))


@pytest.mark.parametrize("sample", [0, 3])
def test_a_sparse_probe_is_logistic_regression_on_the_features_that_differ_most(sample):
    train, dev = planted(1500, 1), planted(400, 2)
    # More than sixteen features, of which the new ones tell nothing.
    train, dev = (
        one_cell(torch.cat([each.features.values, noise], 2), each.labels[0], each.sentences)
        for each, noise in ((train, torch.randn(2, 1500, 12)), (dev, torch.randn(2, 400, 12)))
    )
    fitted = fit(train, dev, N_CLASSES, SPARSE, [FitSeed(sample=sample)])
    weights = bootstrap_batches(train, [sample]).weights[0].double().numpy()
    x, y = train.features.values[1].double().numpy(), train.labels[0].numpy()
    chosen = best_features(x, y, weights)[:16]
    assert set(range(12)) <= set(chosen)  # those that the labels were made from
    weight = fitted.parameters[0][1, 0].numpy()
    assert set(np.flatnonzero(np.abs(weight).sum(0))) == set(chosen)
    # The prior of a fit counts the training examples, here those of the sample.
    theirs = LogisticRegression(C=1500 / weights.sum() / 30, tol=1e-9, max_iter=5000)
    theirs.fit(x[:, chosen], y, weights)
    np.testing.assert_allclose(weight[:, chosen], theirs.coef_, atol=2e-3)
    said = predict(fitted, dev.features, N_CLASSES, SPARSE)[1, 0].numpy()
    expected = theirs.predict(dev.features.values[1].numpy()[:, chosen])
    assert (said == expected).mean() > 0.99


def test_features_of_each_label_set_are_ranked_by_itself():
    x = torch.tensor([[0.0, 0, 0], [0, 0, 1], [5, 1, 0], [5, 1, 1]])[None]
    data = one_cell(x, torch.tensor([0, 0, 1, 1]), n_cells=2)
    data = replace(data, labels=torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]))
    assert features_by_variance(data, 2)[0].tolist() == [[0, 1, 2], [2, 0, 1]]


@pytest.mark.parametrize("spec", [MEANS, SPARSE], ids=["mean-difference", "sparse"])
def test_a_class_that_a_sample_lacks_is_never_predicted(spec):
    train, dev = planted(600, 1), planted(200, 2)
    train = replace(train, weights=(train.labels != 2).float())
    fitted = fit(train, dev, N_CLASSES, spec, [FitSeed()])
    assert 2 not in predict(fitted, dev.features, N_CLASSES, spec)
    assert fitted.dev_loss.isfinite().all()


@pytest.mark.parametrize("family", ["mean-difference", "sparse"])
def test_tasks_without_one_class_each_are_refused(family):
    x = np.random.default_rng(0).normal(size=(50, 3))
    for y, kind in ((x[:, 0], "regression"), (x > 0, "multi-label")):
        with pytest.raises(ValueError, match=f"{family} probes need .* the task is {kind}"):
            LayerProbe(family).fit(x, y)
