"""Batches of whole sentences, and bootstrap samples of documents or sentences."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, planted, with_cells

from probes.records.probe_spec import PROBES
from probes.statistics.partition import Partition
from probes.training.batches import (
    batch_bounds,
    bootstrap_weights,
    rebatched,
    resampled,
    shuffled_batches,
)
from probes.training.fit import Draw, fit


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


def test_batches_never_split_a_sentence():
    sentences = torch.tensor([3] * 300 + [1] * 300 + [2] * 700 + [5] * 10)
    assert batch_bounds(sentences, 500) == [0, 600, 1300, 1310]
    assert batch_bounds(torch.tensor([0])) == [0, 1]
    # Near equal: no small rest whose examples would be stepped on more often.
    bounds = batch_bounds(torch.arange(3985), 512)
    assert set(np.diff(bounds)) == {498, 499}


@pytest.mark.parametrize(("n", "size", "bounds"), [(9, 64, [0, 9]), (100, 30, [0, 35, 70, 100])])
def test_examples_are_cut_into_batches_again(n, size, bounds):
    train = planted(n, 1)
    again = rebatched(replace(train, bounds=[0, n]), size)
    assert again == replace(train, bounds=bounds)


def test_bootstrap_samples_draw_whole_sentences_and_seed_0_draws_each_once():
    sentences = torch.tensor([4, 4, 4, 1, 1, 7, 9, 9])
    assert bootstrap_weights(sentences, 0).tolist() == [1] * 8
    weights = bootstrap_weights(sentences, 5)
    for number in (1, 4, 7, 9):
        assert len(weights[sentences == number].unique()) == 1
    per_sentence = sum(weights[sentences == n][0].item() for n in (1, 4, 7, 9))
    assert per_sentence == 4
    # Independent of the layout.
    order = torch.tensor([5, 0, 1, 2, 6, 7, 3, 4])
    assert torch.equal(bootstrap_weights(sentences[order], 5), weights[order])


DOCUMENTS = np.arange(200) % 25
"""Of 200 sentences; those of a document do not stand together."""


def test_bootstrap_samples_keep_documents_whole():
    train = replace(planted(1000, 1), partition=Partition("documents", DOCUMENTS))
    of_example = DOCUMENTS[train.sentences]
    assert train.clusters.tolist() == of_example.tolist()
    drawn = torch.randint(25, (25,), generator=torch.Generator().manual_seed(3))
    expected = np.bincount(drawn, minlength=25)[of_example]
    none, sample = resampled(train, [0, 3]).weights
    assert (none == 1).all()
    assert sample.tolist() == expected.tolist()
    # Sentences of their own, where the corpus names no documents.
    alone = resampled(replace(train, partition=None), [3]).weights[0]
    per_document = [len(alone[of_example == document].unique()) for document in range(25)]
    assert min(per_document) > 1


def test_samples_of_documents_are_those_of_the_split_whatever_is_left_of_it():
    train = replace(planted(1000, 1), partition=Partition("documents", DOCUMENTS))
    part = train.part(slice(100, 600))
    assert part.clusters.tolist() == train.clusters[100:600].tolist()
    sample = resampled(train, [3])
    lean = sample.drawn()
    assert lean.clusters.tolist() == train.clusters[sample.weights[0] > 0].tolist()


def test_the_share_of_documents_that_samples_have():
    clusters = torch.from_numpy(DOCUMENTS)
    shares = [(bootstrap_weights(clusters, n) > 0).float().mean() for n in range(1, 401)]
    # 1 − (1 − 1/25)²⁵ = .640; the deviation of one sample is about .06.
    assert np.mean(shares) == pytest.approx(1 - (24 / 25) ** 25, abs=0.009)


def test_seeds_of_an_mlp_have_different_orders_and_end_in_different_places(data):
    train, dev = data[0].of_cells(slice(0, 1)), data[1].of_cells(slice(0, 1))
    orders = (islice(shuffled_batches(train, order), 8) for order in (0, 1))
    first, second = ([part.start for part, _ in order] for order in orders)
    assert first != second
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "epochs": 1, "min_steps": 40})
    alone = fit(train, dev, N_CLASSES, spec, [Draw()])
    both = fit(with_cells(train, 2), with_cells(dev, 2), N_CLASSES, spec, [Draw(0, 0), Draw(1, 1)])
    for one, two in zip(alone.parameters, both.parameters, strict=True):
        torch.testing.assert_close(one[:, 0], two[:, 0])
        assert not torch.allclose(two[:, 0], two[:, 1], atol=1e-3)
