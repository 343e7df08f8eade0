"""Samples that probes are fitted to, and losses that are not finite."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted_trees import random_trees, trees
from planted_vectors import PlantedVectors

from probes.data.sentence import Corpus
from probes.extraction.reading.vectors import Sharded
from probes.families.structure import fitting
from probes.families.structure.fit_and_score import fit_and_score, sample_weights
from probes.statistics.partition import partition
from probes.tasks.validation import TaskError


def test_samples_are_of_documents_drawn_with_replacement():
    sentences = random_trees(120, 8, seed=0, shortest=1)
    its = trees(*sentences)
    assert len(its.lengths) < 120  # those of one word are left out
    documents = [f"d{place**2 // 480}" for place in range(120)]  # the first ones are the longest
    context = SimpleNamespace(partition=lambda split: partition(documents), device="cpu")
    weights = sample_weights(context, its)
    assert sorted(weights) == [0, 1, 2, 3]
    assert weights[0].tolist() == [1] * len(its.lengths)
    for sample in (1, 2, 3):
        found, by_document = weights[sample].numpy(), {}
        assert found.mean() == pytest.approx(1)
        for place, weight in zip(its.sentences, found, strict=True):
            by_document.setdefault(documents[place], set()).add(float(weight))
        assert all(len(each) == 1 for each in by_document.values())
        # In proportion to how often each is drawn: some never, some once, some twice.
        drawn = sorted(set().union(*by_document.values()))
        assert np.array(drawn[:3]) / drawn[1] == pytest.approx([0, 1, 2])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize("size", [1, 1e30])
def test_a_dev_loss_that_is_not_finite_is_an_error(size, monkeypatch):
    monkeypatch.setattr(fitting, "EPOCHS", 1)
    monkeypatch.setattr(fitting, "FEWEST_STEPS", 10)
    splits = {name: random_trees(10, 6, i) for i, name in enumerate(("train", "dev", "test"))}
    rng = np.random.default_rng(0)

    def vectors(sentence, layer):
        # Large in dev alone, so that what is learnt is finite.
        return rng.normal(size=(len(sentence), 5)) * (size if sentence in splits["dev"] else 1)

    context = PlantedVectors(Corpus("toy", "1", "MIT", splits), (3,), None, vectors)
    context.device = torch.device("cpu")
    context.model = SimpleNamespace(digest="m")
    context.vectors = SimpleNamespace(layer=lambda x: Sharded([context.all_rows[x]]))
    if size == 1:
        rows = fit_and_score(context, [2], 2).rows
        assert {row.layer for row in rows if row.metric == "uuas"} == {3}
        return
    with pytest.raises(TaskError, match="the dev loss at layer 3 is not finite"):
        fit_and_score(context, [2], 2)
