"""Measures of localisation against published numbers, hand computations and planted features."""

import csv

import numpy as np
import pytest
from gold_by_hand import gold_of
from planted_context import planted_data, tagged_corpus, task_context

from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer
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
from probes.records.row import Rows
from probes.statistics.bootstrap import replicates, resample
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks
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
    rng, gold = np.random.default_rng(0), gold_of(np.ones(n, dtype=np.int64))
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


PLANTED = 2


def planted_findings(regression, strength=1.5):
    """Localisation of a label that is added to some features of one of four layers of noise.

    Returns:
        rows, predictions, those of plain probes, and the test scorer.
    """
    rng, vectors, labels = np.random.default_rng(0), {}, {}
    for split, n in {"train": 3000, "dev": 800, "test": 800}.items():
        y = rng.normal(size=n) if regression else rng.integers(0, 3, n)
        code = y[:, None] * np.ones(3) if regression else np.eye(3)[y]
        vectors[split] = rng.normal(size=(4, n, 8))
        vectors[split][PLANTED, :, :3] += strength * code
        labels[split] = y.tolist() if regression else [str(k) for k in y]
    about = {"kind": "regression", "metric": "corpus_spearman"} if regression else {}
    data = planted_data(vectors, labels, words=4, **about)
    found = get_measurement("localisation")(task_context(data, dict.fromkeys(range(4), 1)))
    features = data.features(range(4), 0)
    train, dev = (data.batches(split, features[split]) for split in ("train", "dev"))
    plain = fit(train, dev, data.n_outputs, PROBES["linear"], [FitSeed()])
    isolated = predict(plain, features["test"], data.n_outputs, PROBES["linear"])[:, 0].numpy()
    rows = Rows.of(found.rows)
    return rows, found.arrays["predicted"], data.in_labels_unit(isolated), data.scorers["test"]


def weights_of(rows, layer, **sample):
    """Weights of the mix of the layers up to one, by layer."""
    given = (rows.at("mix_weight", layer, "train", of=k, **sample) for k in range(layer + 1))
    return [row.value for row in given]


@pytest.mark.parametrize("regression", [False, True], ids=["classes", "numbers"])
def test_a_planted_feature_is_found_at_its_layer_by_every_measure(regression):
    rows, predicted, isolated, scorer = planted_findings(regression)
    name = scorer.names[0]
    alone = [row[name] for row in scorer.scores(isolated)]
    assert int(np.argmax(alone)) == PLANTED
    expected, centre = rows.at("expected_layer"), rows.at("centre_of_gravity")
    assert expected.value == pytest.approx(PLANTED, abs=0.15)
    assert expected.interval == pytest.approx((PLANTED, PLANTED), abs=0.25)
    assert centre.value == pytest.approx(PLANTED, abs=0.1)
    assert centre.low <= centre.value <= centre.high
    # Of 2 bits: the last traces of a useless layer cost so little that they fade slowly.
    assert rows.at("kl").value > 1
    # Learnt on the whole split, and on two samples of it.
    learnt = [weights_of(rows, 3), *(weights_of(rows, 3, sample=k) for k in (1, 2))]
    assert len({*map(tuple, learnt)}) == 3
    assert all(weights[PLANTED] > 0.8 for weights in learnt)
    # The mix of layer 0 alone is the probe of layer 0, fitted as that is.
    if regression:
        np.testing.assert_allclose(predicted[0], isolated[0], atol=1e-4)
    else:
        assert (predicted[0] != isolated[0]).mean() < 0.02
    # The mix up to the planted layer is as good as that layer.
    mixes = [rows.at("mix_score", layer) for layer in range(4)]
    assert mixes[PLANTED].value == pytest.approx(alone[PLANTED], abs=0.02)
    assert mixes[PLANTED].low < mixes[PLANTED].value < mixes[PLANTED].high
    # The stored predictions give the recorded scores.
    stored = [row[name] for row in scorer.scores(predicted)]
    assert stored == pytest.approx([row.value for row in mixes])


def test_features_of_pure_noise_have_no_expected_layer():
    rows, *_ = planted_findings(False, strength=0.0)
    gain, layer = rows.at("total_gain"), rows.at("expected_layer")
    assert gain.low < 0 < gain.high
    assert (layer.value, layer.why) == (None, NO_GAIN)


def test_what_follows_from_weights_and_predictions_by_hand():
    """Three layers; of 400 one-word sentences the mixes get 200, 300 and 300 right."""
    n, train = 400, [["w1"], ["w4"]]
    corpus = tagged_corpus({"train": train, "dev": [["w1"]] * n, "test": [["w1"]] * n})
    examples = collect_examples(tasks.get("pos"), corpus, "plain")
    predicted = np.stack([np.arange(n) >= right for right in (200, 300, 300)]).astype(np.int64)
    weights = np.array(
        [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25], [0.5, 0, 0.5]]
    )
    rows = Rows.of(
        rows_of_mixes(
            weights,
            [0.1, 0.2, 0.3],
            dict.fromkeys(("dev", "test"), predicted),
            {split: Scorer(examples, split) for split in ("dev", "test")},
        )
    )
    assert [weights_of(rows, k) for k in range(3)] == [[1], [0.5, 0.5], [0.25, 0.25, 0.5]]
    assert [weights_of(rows, 2, sample=k) for k in (1, 2)] == weights[3:].tolist()
    assert [rows.at("mix_strength", k, "train").value for k in range(3)] == [0.1, 0.2, 0.3]
    for split in ("dev", "test"):
        assert [rows.at("mix_score", k, split).value for k in range(3)] == [0.5, 0.75, 0.75]
    half = 1.96 * np.sqrt(0.25 * 0.75 / n)
    assert rows.at("mix_score", 2).interval == pytest.approx((0.75 - half, 0.75 + half), abs=0.006)
    # 100 words more, all of them gained by layer 1.
    gain, expected = rows.at("total_gain"), rows.at("expected_layer")
    assert (gain.value, expected.value, expected.interval) == (0.25, 1, (1, 1))
    assert gain.interval == pytest.approx((0.25 - half, 0.25 + half), abs=0.006)
    # Centre 1.25, of the samples 1 and 1: an error of .25; the largest centre is 2.
    centre, kl = rows.at("centre_of_gravity"), rows.at("kl")
    assert centre.value == 1.25
    assert centre.interval == pytest.approx((1.25 - 4.302653 * 0.25, 2))
    # log₂ 3 less an entropy of 1.5 bits; of the samples 1.5 and 1: an error of √(.5² / 2), whose
    # interval reaches beyond 0 and log₂ 3, the least and the most that there can be.
    assert kl.value == pytest.approx(np.log2(3) - 1.5)
    assert kl.interval == pytest.approx((0, np.log2(3)))
