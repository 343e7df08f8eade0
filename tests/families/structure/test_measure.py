"""The measurement as a whole, on vectors that a test plants."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from corpus_records import corpus_record
from planted_trees import planted, sentence_of_nouns
from planted_vectors import PlantedVectors
from random_trees import random_heads

from probes.data.sentence import ROOT, Corpus
from probes.examples.examples import NotServedError
from probes.families.structure import StructureOptions, fitting
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.records.row import Rows

LAYERS = (0, 1)


def corpus_of_trees(lengths, n=30):
    rng = np.random.default_rng(0)
    splits = {
        split: tuple(
            sentence_of_nouns(random_heads(int(rng.choice(lengths)), rng), name=f"{split}{i}")
            for i in range(n)
        )
        for split in ("train", "dev", "test")
    }
    return Corpus("toy", "1", "MIT", splits)


def path_vectors(of, layer):
    """At layer 1, squared distances of words are those in the tree; at layer 0, noise."""
    if layer == 0:
        return np.random.default_rng(sum(map(ord, of.id))).normal(size=(len(of), 10))
    return planted(of.heads, 10)


def compute(of):
    its = PlantedVectors(of, LAYERS, StructureOptions(ranks="2,10"), path_vectors)
    its.device = torch.device("cpu")
    its.model = SimpleNamespace(digest="m", hidden_size=10, name="m")
    found = get_measurement("structure")(its)
    return its, found, Rows.of(found.rows)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(fitting, "FEWEST_STEPS", 300)


def test_vectors_whose_distances_are_those_of_trees_need_no_probe():
    its, found, rows = compute(corpus_of_trees([6, 7, 8]))
    for metric in ("uuas", "dspr", "root_accuracy", "nspr"):
        assert rows.at(metric, 1, rank=0).value == 1
        noise, exact = (rows.at(metric, x, "dev", rank=10).value for x in LAYERS)
        assert noise < exact
    # A chain finds what networkx says that trees and paths share.
    shared = total = 0
    for each in its.corpus.splits["test"]:
        gold = nx.Graph((i, head) for i, head in enumerate(each.heads) if head != ROOT)
        shared += len(nx.intersection(gold, nx.path_graph(len(each))).edges)
        total += gold.number_of_edges()
    assert rows.at("chain_uuas").value == pytest.approx(shared / total)
    assert found.facts["test_edges"] == total


def test_a_metric_without_any_score_has_no_best_layer():
    _, found, rows = compute(corpus_of_trees([3, 4]))
    assert all(rows.at("dspr", x, rank=10).value is None for x in LAYERS)
    record = corpus_record("structure", rows, 1, facts=found.facts)
    scores = measurement_tables(get_measurement("structure"), [record])[0]
    dspr = [row.cells[2] for row in scores.rows[: len(LAYERS)]]
    assert [(cell.value, cell.best) for cell in dspr] == [(None, False)] * 2
    uuas = [row.cells[1].best for row in scores.rows[: len(LAYERS)]]
    assert uuas == [False, True]
    assert "in sentences of 5 to 50 words" in " ".join(scores.notes)


def test_a_corpus_without_trees_is_not_served_and_says_why():
    with pytest.raises(NotServedError, match=r"of train has a tree to be found: 30 of one word"):
        compute(corpus_of_trees([1]))
