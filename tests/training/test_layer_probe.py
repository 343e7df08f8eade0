"""LayerProbe against scikit-learn: its conventions, and its solutions on the same numbers."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import probes
from probes.records.probe_spec import PROBES
from probes.training.layer_probe import LayerProbe

N, H = 800, 12


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch):
    """Enough for what is as easy as here."""
    spec = PROBES["mlp"].model_copy(update={"min_steps": 150, "hidden": 32})
    monkeypatch.setitem(PROBES, "mlp", spec)


@pytest.fixture(scope="module")
def vectors():
    """Correlated, of very different scales, far from 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N + 400, H)) @ (np.eye(H) + 0.3 * rng.normal(size=(H, H)))
    return x * np.geomspace(0.01, 100, H) + 10 * rng.normal(size=H)


@pytest.fixture(scope="module")
def logits(vectors):
    rng = np.random.default_rng(1)
    return (vectors - vectors.mean(0)) / vectors.std(0) @ rng.normal(size=(H, 5))


def noisy_classes(logits, n_classes):
    noise = np.random.default_rng(2).gumbel(size=(len(logits), n_classes))
    return (logits[:, :n_classes] + noise).argmax(1)


def reference(n_classes, **settings):
    """scikit-learn's of the same prior: with two classes, training has two weights that are each
    other's negative."""
    c = (2 if n_classes == 2 else 1) / 30
    return make_pipeline(
        StandardScaler(), LogisticRegression(C=c, tol=1e-9, max_iter=10_000, **settings)
    )


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_linear_probe_is_logistic_regression(vectors, logits, n_classes, weights):
    y = np.array(["NOUN", "VERB", "ADJ", "ADV", "X"])[noisy_classes(logits, n_classes)]
    theirs = reference(n_classes, class_weight=weights).fit(vectors[:N], y[:N])
    ours = LayerProbe(class_weight=weights).fit(vectors[:N], y[:N])
    # float32 has seven digits; L-BFGS takes 40 steps. Measured: 2e-5 of the largest weight.
    scaler, model = theirs
    weight, bias, given = ours.coef_, ours.intercept_, vectors[N:]
    logits, expected = ours.decision_function(given), theirs.decision_function(given)
    assert weight.shape == model.coef_.shape
    assert logits.shape == expected.shape
    if n_classes > 2:  # a number added to the biases of all classes changes nothing
        logits = logits - logits.mean(1, keepdims=True)
    bias = bias + weight @ scaler.mean_
    largest = np.abs(model.coef_).max()
    np.testing.assert_allclose(weight * scaler.scale_, model.coef_, atol=2e-4 * largest)
    np.testing.assert_allclose(bias - bias.mean() * (n_classes > 2), model.intercept_, atol=1e-3)
    np.testing.assert_allclose(logits, expected, atol=2e-3)
    np.testing.assert_allclose(ours.predict_proba(given), theirs.predict_proba(given), atol=1e-4)
    assert np.array_equal(ours.predict(given), theirs.predict(given))
    assert ours.score(given, y[N:]) == theirs.score(given, y[N:]) > 0.6
    assert list(ours.classes_) == list(model.classes_)


def test_label_sets_are_a_logistic_regression_for_each_label(vectors, logits):
    y = (logits[:, :3] + np.random.default_rng(3).logistic(size=(len(logits), 3)) > 0).astype(int)
    one = LogisticRegression(C=1 / 30, tol=1e-9, max_iter=10_000)
    theirs = make_pipeline(StandardScaler(), OneVsRestClassifier(one)).fit(vectors[:N], y[:N])
    ours = LayerProbe().fit(vectors[:N], y[:N])
    assert ours.kind_ == "multi-label"
    given = vectors[N:]
    np.testing.assert_allclose(ours.predict_proba(given), theirs.predict_proba(given), atol=1e-4)
    assert np.array_equal(ours.predict(given), theirs.predict(given))
    assert ours.score(given, y[N:]) == theirs.score(given, y[N:]) > 0.4


def test_a_regression_is_ridge_with_the_strength_that_is_best_on_dev(vectors, logits):
    y = logits[:, 0] * 1000 + 1e6 + 2000 * np.random.default_rng(4).normal(size=len(logits))
    dev = vectors[N : N + 200], y[N : N + 200]
    every = [
        make_pipeline(StandardScaler(), Ridge(alpha=N * strength)).fit(vectors[:N], y[:N])
        for strength in PROBES["linear"].ridge_l2
    ]
    theirs = max(every, key=lambda model: model.score(*dev))
    ours = LayerProbe().fit(vectors[:N], y[:N], dev=dev)
    given = vectors[N + 200 :]
    np.testing.assert_allclose(ours.predict(given), theirs.predict(given), atol=1e-4 * y.std())
    assert ours.kind_ == "regression"
    assert not hasattr(ours, "predict_proba")
    assert not hasattr(ours, "classes_")
    held_out = LayerProbe().fit(vectors[:N], y[:N])
    assert held_out.score(given, y[N + 200 :]) == pytest.approx(
        ours.score(given, y[N + 200 :]), abs=0.01
    )


def test_an_mlp_solves_what_a_linear_probe_cannot():
    x = np.random.default_rng(0).normal(size=(3000, 4))
    y = x[:, 0] * x[:, 1] > 0
    fitted = {
        family: LayerProbe(family).fit(x[:2000], y[:2000], dev=(x[2000:2500], y[2000:2500]))
        for family in ("linear", "mlp")
    }
    assert fitted["linear"].score(x[2500:], y[2500:]) < 0.6
    assert fitted["mlp"].score(x[2500:], y[2500:]) > 0.9
    again = clone(fitted["mlp"]).fit(x[:2000], y[:2000], dev=(x[2000:2500], y[2000:2500]))
    other = LayerProbe("mlp", seed=1).fit(x[:2000], y[:2000], dev=(x[2000:2500], y[2000:2500]))
    assert np.array_equal(again.coefs_[0], fitted["mlp"].coefs_[0])
    assert not np.array_equal(other.coefs_[0], fitted["mlp"].coefs_[0])
    assert [weight.shape for weight in again.coefs_] == [(4, 32), (32, 1)]


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_any_labels_and_any_vectors(vectors, logits, family):
    index = noisy_classes(logits, 2)
    expected = LayerProbe(family).fit(vectors, index).predict(vectors)
    for names in (["b", "c"], [False, True], [3, 7], [1.0, 2.0]):
        y = np.array(names)[index]
        for given, labels in (
            (vectors.tolist(), y.tolist()),
            (torch.tensor(vectors, requires_grad=True), y),
            (vectors.astype(np.float32), list(y)),
        ):
            found = LayerProbe(family).fit(given, labels)
            assert found.kind_ == "classification"
            assert found.classes_.tolist() == names
            assert found.predict(given).dtype == np.asarray(labels).dtype
            assert np.array_equal(found.predict(given), np.array(names)[expected])
    half = LayerProbe(family).fit(torch.tensor(vectors).bfloat16(), torch.tensor(index))
    assert half.score(vectors, index) == pytest.approx((expected == index).mean(), abs=0.05)


def test_what_scikit_learn_does_with_estimators(vectors, logits):
    y = noisy_classes(logits, 3)
    pipeline = make_pipeline(StandardScaler(), LayerProbe(kind="classification"))
    assert cross_val_score(pipeline, vectors, y, cv=3).min() > 0.6
    search = GridSearchCV(LayerProbe(), {"family": ["linear", "mlp"]}, cv=2).fit(vectors, y)
    assert search.best_score_ > 0.6
    auc = cross_val_score(LayerProbe(), vectors, y == 0, cv=3, scoring="roc_auc")
    assert auc.min() > 0.7
    refitted = search.best_estimator_.set_params(family="linear").fit(vectors, y)
    assert refitted.coef_.shape == (3, H)
    assert not hasattr(refitted.set_params(family="mlp").fit(vectors, y), "coef_")
    assert repr(LayerProbe("mlp", seed=3)) == "LayerProbe(family='mlp', seed=3)"
    assert probes.LayerProbe is LayerProbe


@pytest.mark.parametrize(
    ("settings", "change", "error", "said"),
    [
        ({"family": "linaer"}, {}, probes.UserError, "family='linaer': Did you mean 'linear'"),
        ({"kind": "regresion"}, {}, probes.UserError, "kind='regresion': Did you mean 'regression'"),
        ({"device": "gpu"}, {}, probes.UserError, "--device gpu"),
        ({"kind": "multi-label"}, {}, ValueError, "does not fit labels that are multiclass"),
        ({"kind": "classification"}, {"y": np.linspace(0, 1, 90)}, ValueError, "continuous"),
        ({}, {"y": np.full((90, 2), 0.5)}, ValueError, "continuous-multioutput"),
        ({"kind": "regression"}, {"y": ["a"] * 90}, ValueError, "could not convert"),
        ({}, {"y": [1] * 90}, ValueError, "only one class"),
        ({}, {"y": [1] * 89}, ValueError, "inconsistent numbers of samples"),
        ({}, {"x": np.full((90, 2), np.nan)}, ValueError, "contains NaN"),
        ({}, {"groups": [1, 2]}, ValueError, "inconsistent numbers of samples"),
        ({}, {"dev": (np.ones((3, 1)), [0, 1, 2])}, ValueError, "X has 1 features"),
        ({}, {"dev": (np.ones((3, 2)), [7, 8, 9])}, ValueError, "dev has none of the classes of y"),
        ({"kind": "regression", "class_weight": "balanced"}, {}, ValueError, "only 'balanced', of classes"),
        ({"class_weight": {0: 2}}, {}, ValueError, "class_weight={0: 2}: only"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(settings, change, error, said):
    given = {"x": np.arange(180.0).reshape(90, 2), "y": np.arange(90) % 3, **change}
    with pytest.raises(error, match=said):
        LayerProbe(**settings).fit(**given)
