"""Measures of localisation against published numbers, hand computations and planted features."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from found_in_rows import mixes_in
from planted_context import task_context

from probes.measurements.measurement import get_measurement
from probes.probing.localisation import (
    FEW_CLUSTERS,
    NO_GAIN,
    NO_SCORE,
    centre_of_gravity,
    expected_layer,
    gain_and_expected_layer,
    kl_from_uniform,
    over_samples,
    rows_of_mixes,
)
from probes.records.probe_spec import PROBES
from probes.statistics.bootstrap import replicates, resample
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.training.batches import Batches, batch_bounds
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict

PUBLISHED = {
    "pos": (1.76, 3.39),
    "constituents": (2.38, 3.79),
    "dependencies-ewt": (2.52, 5.69),
    "entities": (2.42, 4.64),
    "srl": (2.59, 6.54),
    "coreference": (3.62, 9.47),
    "spr1": (4.29, 9.93),
    "relations-semeval": (4.16, 9.40),
}


@pytest.fixture(scope="module")
def cumulative(real_data):
    """Tenney et al.'s cumulative dev F1 by model and task."""
    path = real_data.parent / "reference" / "tenney2019-bert-cumulative-dev-f1.csv"
    if not path.is_file():
        pytest.skip(f"no published numbers at {path}")
    scores = {}
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            scores.setdefault((row["model"], row["task"]), []).append(float(row["dev_f1"]))
    return {key: np.array(values) for key, values in scores.items()}


@pytest.mark.real_data
@pytest.mark.parametrize("task", PUBLISHED)
def test_expected_layers_are_the_published_ones(cumulative, task):
    for size, published in zip(("base", "large"), PUBLISHED[task], strict=True):
        found = expected_layer(cumulative[f"bert-{size}-uncased", task])
        assert f"{found:.2f}" == f"{published:.2f}"


def simulated(n, shares):
    """Gold labels of n one-word sentences, and predictions of which these shares are right."""
    rng = np.random.default_rng(0)
    gold = Gold(np.ones(n, dtype=np.int64), np.arange(n), ("a", "b"), np.zeros(n, dtype=bool))
    right = np.arange(n) < np.round(np.array(shares) * n)[:, None]
    return gold, rng.permuted(right, axis=1).astype(np.int64)


def gain_and_layer(n, shares):
    gold, rows = simulated(n, shares)
    accuracy = metrics.get("accuracy")
    values = replicates(accuracy, gold, rows, resample(n))
    return gain_and_expected_layer(accuracy(gold, rows), values)


@pytest.mark.real_data
def test_a_gain_that_may_be_noise_has_no_expected_layer(cumulative):
    dpr = cumulative["bert-base-uncased", "dpr"]
    assert f"{expected_layer(dpr):.2f}" == "23.92"
    gain, layer = gain_and_layer(2000, dpr / 100)
    assert gain.interval[0] < 0 < gain.interval[1]
    assert (layer.value, layer.interval, layer.missing) == (None, None, NO_GAIN)
    gain, layer = gain_and_layer(2000, cumulative["bert-base-uncased", "pos"] / 100)
    assert layer.interval[0] < layer.value < layer.interval[1]
    assert layer.value == pytest.approx(1.76, abs=0.05)


def test_expected_layer_by_hand():
    assert expected_layer(np.array([0.5, 0.7, 0.8, 0.8])) == pytest.approx(
        (1 * 0.2 + 2 * 0.1) / 0.3
    )
    # A fall counts as one: no running maximum.
    assert expected_layer(np.array([0.5, 0.8, 0.7])) == pytest.approx((1 * 0.3 - 2 * 0.1) / 0.2)
    both = expected_layer(np.array([[0.5, 0.1], [0.6, 0.1], [0.9, 0.1]]))
    assert both[0] == pytest.approx((0.1 + 2 * 0.3) / 0.4)
    assert np.isnan(both[1])


def test_centre_of_gravity_and_divergence_by_hand():
    weights = np.array([0.5, 0.25, 0.25, 0])
    assert centre_of_gravity(weights) == pytest.approx(0.25 + 0.5)
    assert kl_from_uniform(weights) == pytest.approx(2 - 1.5)
    assert kl_from_uniform(np.full(5, 0.2)) == pytest.approx(0, abs=1e-12)
    assert kl_from_uniform(np.array([0, 0, 1.0, 0])) == pytest.approx(2)


def test_a_loss_or_too_few_sentences_have_no_expected_layer():
    gain, layer = gain_and_layer(1000, [0.9, 0.7, 0.6])
    assert gain.value == pytest.approx(-0.3)
    assert gain.interval[1] < 0
    assert (layer.value, layer.missing) == (None, NO_GAIN)
    gain, layer = gain_and_expected_layer(np.array([0.1, 0.9]), None)
    assert (gain.value, gain.interval, gain.missing) == (pytest.approx(0.8), None, FEW_CLUSTERS)
    assert (layer.value, layer.missing) == (None, FEW_CLUSTERS)
    gain, layer = gain_and_expected_layer(np.array([0.1, np.nan]), np.zeros((2, 9)))
    assert (gain.value, gain.missing, layer.missing) == (None, NO_SCORE, NO_SCORE)


def test_the_t_interval_over_samples_by_hand():
    # Two samples deviate by .3 and −.4 from the value of the split that they are drawn from.
    found = over_samples(np.array([2.0, 2.3, 1.6]), most=3.0)
    half = 4.302653 * np.sqrt((0.3**2 + 0.4**2) / 2)
    assert found.value == 2.0
    assert found.interval == (pytest.approx(2 - half), 3.0)
    assert over_samples(np.array([0.1, 0.4]), most=3.0).interval[0] == 0
    same = over_samples(np.array([2.0, 2.0, 2.0]), most=3.0)
    assert (same.value, same.interval, same.missing) == (2.0, (2.0, 2.0), None)


class PlainScorer:
    """Accuracy or Spearman of predictions, as `Scorer` has them."""

    def __init__(self, labels, sentences, classes):
        names = [str(c) for c in range(classes)]
        nothing = np.zeros(len(labels), dtype=bool)
        self.gold = Gold(labels.numpy(), sentences.numpy(), tuple(names), nothing)
        self.names = ("accuracy",) if classes else ("corpus_spearman",)

    def scores(self, rows):
        found = metrics.get(self.names[0])(self.gold, rows)
        return [{self.names[0]: float(value)} for value in found]


PLANTED = 2


def planted(n, seed, regression, strength=1.5):
    """Four layers of noise, the label added to some features of one."""
    torch.manual_seed(seed)
    x = torch.randn(4, n, 8)
    y = torch.randn(n) if regression else torch.randint(3, (n,))
    code = y[:, None] * torch.ones(3) if regression else torch.eye(3)[y]
    x[PLANTED, :, :3] += strength * code
    sentences = torch.arange(n) // 4
    return Batches(InMemory(x), y[None], torch.ones(1, n), sentences, batch_bounds(sentences))


class PlantedData:
    """Stands for `ProbingData`: planted features in place of stored vectors."""

    def __init__(self, regression, at_once, strength):
        sizes = {"train": 3000, "dev": 800, "test": 800}
        self._parts = {
            split: planted(n, i, regression, strength) for i, (split, n) in enumerate(sizes.items())
        }
        self.n_outputs, self.sets, self.width_read = 0 if regression else 3, None, 8
        self.scorers = {
            split: PlainScorer(
                self._parts[split].labels[0], self._parts[split].sentences, self.n_outputs
            )
            for split in ("dev", "test")
        }
        kind = "regression" if regression else "classification"
        self.examples = SimpleNamespace(task=SimpleNamespace(kind=kind))
        self._at_once = at_once

    def group_layers(self, memory, spec, n_cells):
        return self._at_once, 1

    def features(self, layers, room):
        assert list(layers) == [0, 1, 2, 3]
        return {split: part.features for split, part in self._parts.items()}

    def batches(self, split, features):
        assert features is self._parts[split].features
        return self._parts[split]

    def sentences(self, split):
        return self._parts[split].sentences

    def computed_once(self, features, room):
        return features

    def in_labels_unit(self, predicted):
        return predicted


def planted_findings(regression, at_once=9, strength=1.5):
    """Findings of localisation, predictions, those of plain probes, and the test scorer."""
    data = PlantedData(regression, at_once, strength)
    found = get_measurement("localisation")(task_context(data, dict.fromkeys(range(4), 1)))
    train, dev, test = data._parts.values()
    plain = fit(train, dev, data.n_outputs, PROBES["linear"], [FitSeed()])
    isolated = predict(plain, test.features, data.n_outputs, PROBES["linear"])[:, 0].numpy()
    return mixes_in(found), found.arrays["predicted"], isolated, data.scorers["test"]


@pytest.mark.parametrize("regression", [False, True], ids=["classes", "numbers"])
def test_a_planted_feature_is_found_at_its_layer_by_every_measure(regression):
    found, predicted, isolated, scorer = planted_findings(regression)
    name = scorer.names[0]
    alone = [row[name] for row in scorer.scores(isolated)]
    assert int(np.argmax(alone)) == PLANTED
    assert found.expected_layer.value == pytest.approx(PLANTED, abs=0.15)
    assert found.expected_layer.interval == pytest.approx((PLANTED, PLANTED), abs=0.25)
    assert found.centre_of_gravity.value == pytest.approx(PLANTED, abs=0.1)
    low, high = found.centre_of_gravity.interval
    assert low <= found.centre_of_gravity.value <= high
    # Of 2 bits: the last traces of a useless layer cost so little that they fade slowly.
    assert found.kl.value > 1
    assert found.mixes[3].weights[PLANTED] > 0.8
    # Learnt on the whole split, and on two samples of it.
    assert len(found.sample_weights) == 3
    assert found.sample_weights[0] == pytest.approx(found.mixes[3].weights)
    assert found.sample_weights[1] != found.sample_weights[2]
    assert all(row[PLANTED] > 0.8 for row in found.sample_weights)
    # The mix of layer 0 alone is the probe of layer 0, fitted as that is.
    if regression:
        np.testing.assert_allclose(predicted[0], isolated[0], atol=1e-4)
    else:
        assert (predicted[0] != isolated[0]).mean() < 0.02
    # The mix up to the planted layer is as good as that layer.
    assert found.mixes[PLANTED].test.value == pytest.approx(alone[PLANTED], abs=0.02)
    low, high = found.mixes[PLANTED].test.interval
    assert low < found.mixes[PLANTED].test.value < high
    # The stored predictions give the recorded scores.
    stored = [row[name] for row in scorer.scores(predicted)]
    assert stored == pytest.approx([mix.test.value for mix in found.mixes])


def test_features_of_pure_noise_have_no_expected_layer():
    found, _, _, _ = planted_findings(False, strength=0.0)
    assert found.total_gain.interval[0] < 0 < found.total_gain.interval[1]
    assert (found.expected_layer.value, found.expected_layer.why) == (None, NO_GAIN)


def test_what_follows_from_weights_and_predictions_by_hand():
    """Three layers; of 400 one-word sentences the mixes get 200, 300 and 300 right."""
    n = 400
    labels, sentences = torch.ones(n, dtype=torch.int64), torch.arange(n)
    scorer = PlainScorer(labels, sentences, 2)
    rows = np.stack([np.arange(n) < right for right in (200, 300, 300)]).astype(np.int64)
    weights = np.array(
        [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25], [0.5, 0, 0.5]]
    )
    found = mixes_in(
        rows_of_mixes(
            weights, [0.1, 0.2, 0.3], {"dev": rows, "test": rows}, {"dev": scorer, "test": scorer}
        )
    )
    assert [mix.weights for mix in found.mixes] == [[1], [0.5, 0.5], [0.25, 0.25, 0.5]]
    assert [mix.strength for mix in found.mixes] == [0.1, 0.2, 0.3]
    assert [mix.test.value for mix in found.mixes] == [0.5, 0.75, 0.75]
    half = 1.96 * np.sqrt(0.25 * 0.75 / n)
    assert found.mixes[2].test.interval == pytest.approx((0.75 - half, 0.75 + half), abs=0.006)
    # 100 words more, all of them gained by layer 1.
    assert found.total_gain.value == 0.25
    assert found.total_gain.interval == pytest.approx((0.25 - half, 0.25 + half), abs=0.006)
    assert found.expected_layer.value == 1
    assert found.expected_layer.interval == (1, 1)
    # Centre 1.25, of the samples 1 and 1: an error of .25; the largest centre is 2.
    assert found.centre_of_gravity.value == 1.25
    assert found.centre_of_gravity.interval == pytest.approx((1.25 - 4.302653 * 0.25, 2))
    # log₂ 3 less an entropy of 1.5 bits; of the samples 1.5 and 1: an error of √(.5² / 2), whose
    # interval reaches beyond 0 and log₂ 3, the least and the most that there can be.
    assert found.kl.value == pytest.approx(np.log2(3) - 1.5)
    assert found.kl.interval == pytest.approx((0, np.log2(3)))
    assert found.sample_weights == weights[2:].tolist()
