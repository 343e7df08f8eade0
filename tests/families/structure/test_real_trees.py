"""Trees and baselines of EWT, against counts word by word."""

from itertools import pairwise

import numpy as np
import pytest
from planted_trees import trees

from probes.data.find import find_corpus
from probes.data.sentence import ROOT
from probes.families.structure.fitting import exact_batches
from probes.families.structure.sentence_scores import chain_hits, gold_edges
from probes.families.structure.trees import BINS

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def ewt_test(real_data):
    return find_corpus("ewt", data_dir=real_data).load().splits["test"]


@pytest.mark.slow
def test_edges_found_by_linking_neighbours(ewt_test):
    expected = {name: [0, 0] for name in BINS}
    with_punctuation = [0, 0]
    for sentence in ewt_test:
        edges = {frozenset(edge) for edge in enumerate(sentence.heads) if ROOT not in edge}
        with_punctuation[0] += sum(abs(i - j) == 1 for i, j in edges)
        with_punctuation[1] += len(edges)
        words = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
        chain = {frozenset(pair) for pair in pairwise(words)}
        for edge in edges:
            if edge <= set(words):
                (name,) = (x for x, (a, b) in BINS.items() if a <= max(edge) - min(edge) <= b)
                expected[name][0] += edge in chain
                expected[name][1] += 1
    assert with_punctuation[0] / with_punctuation[1] == pytest.approx(0.4051, abs=5e-5)

    found = trees(*ewt_test)
    batches = exact_batches(found, np.arange(sum(map(len, ewt_test))), "cpu")
    hits = chain_hits(found, batches)[0].sum(0, dtype=np.int64)
    edges = gold_edges(found, batches)[0].sum(0, dtype=np.int64)
    assert np.stack([hits, edges], 1).tolist() == list(expected.values())
    assert (hits.sum(), edges.sum()) == (8589, 19952)
    assert found.edges.sum() == 19952


def test_roots_that_are_punctuation(ewt_test):
    lengths = [len(s) for s in ewt_test if s.upos[s.heads.index(ROOT)] == "PUNCT"]
    assert len(lengths) == 31
    found = trees(*ewt_test)
    # Sentences of one word are left out.
    assert found.punctuation_roots == sum(n > 1 for n in lengths) == 1
    assert sum(found.left_out.values()) == sum(len(s) == 1 for s in ewt_test)
