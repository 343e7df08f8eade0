"""Learnt mixes of heads against scipy and networkx, on planted heads, and on maps of transformers."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from head_numbers import PlainMaps
from planted_heads import context, maps_of, onto, random_corpus, share, to_head
from random_trees import random_heads
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from probes.data.sentence import ROOT
from probes.examples.examples import NotServedError
from probes.extraction.reading.shards import single_shard
from probes.families.attention.head_maps import sample
from probes.families.attention.head_mix import STRENGTHS, fitted_weights, head_mix
from probes.records.parameters import read_parameters
from probes.records.row import Rows


def objective(flat, groups, strength):
    """Sum of −log p by word, in float64, and the prior's part; weights of attention as it is."""
    w, u = flat.reshape(2, -1)
    total = n = cells = 0
    squares = np.zeros(len(w))
    for maps, heads in groups:
        squares, cells = squares + (maps.astype(float) ** 2).sum((1, 2, 3)), cells + maps[0].size
        for s, i in zip(*np.nonzero(heads != ROOT), strict=True):
            others = [j for j in range(heads.shape[1]) if j != i]
            scores = {j: w @ maps[:, s, i, j] + u @ maps[:, s, j, i] for j in others}
            total += logsumexp([*scores.values()]) - scores[heads[s, i]]
            n += 1
    scale = np.sqrt(squares / cells)
    return (total + strength / 2 * (np.stack([w, u]) ** 2 * scale**2).sum()) / n


def test_weights_are_those_of_scipy_at_convergence():
    rng, groups = np.random.default_rng(5), []
    for n, count in ((3, 12), (5, 9)):
        maps = rng.dirichlet(np.ones(n), (3, count, n)).astype(np.float32)
        heads = np.array([random_heads(n, rng) for _ in range(count)])
        heads[0, :2] = ROOT  # not counted, as punctuation
        groups.append((maps, heads))
    strengths = (10.0, 0.5)
    found = fitted_weights(groups, strengths)
    for weights, strength in zip(found, strengths, strict=True):
        exact = minimize(objective, np.zeros(6), (groups, strength), "BFGS", tol=1e-8)
        assert np.abs(exact.x).max() > 0.1
        np.testing.assert_allclose(weights.ravel(), exact.x, rtol=2e-3, atol=2e-3)


def planted(of, maps, **more):
    """The context of a model whose maps of a sentence are given; words are tokens."""
    sentences = {s.words: s for s in of}

    def read(view, collector):
        parts = {}
        for place, text in enumerate(view.texts):
            if (sentence := sentences[text.words]).id not in more.get("long", ()):
                parts[f"maps {place}"] = torch.from_numpy(maps(sentence)).half()
                parts[f"ids {place}"] = torch.arange(len(sentence))
        yield single_shard(view), parts

    return replace(context(of, maps, **more), read=read, title="planted")


def every_second(of, first):
    """Half of the attention of every second word is to its head; all else is even."""
    found = np.full((len(of), len(of)), 1 / len(of))
    found[first::2] = (found[first::2] + to_head(of)[first::2]) / 2
    return found


HEADS = (
    (lambda of: every_second(of, 0), lambda of: np.full((len(of), len(of)), 1 / len(of))),
    (lambda of: onto([0] * len(of)), lambda of: every_second(of, 1)),
)
"""The second head of the second layer finds what the first head of the first does not."""


def counts(of, i):
    return of.deprels[i] != "punct"


def of_head(sentences, first):
    """UAS of `every_second`. A word that attends to all others alike is said to choose the first."""

    def right(of, i):
        return i % 2 == first or of.heads[i] == (0 if i else 1)

    return share(sentences, right, counts)


def test_two_heads_have_the_tree_of_which_each_has_half():
    of = random_corpus()
    found = head_mix(planted(of, lambda s: maps_of(s, HEADS)))
    rows = Rows.of(found.rows)
    test = of.splits["test"]
    for metric in ("uas", "uuas"):
        assert rows.at(metric, mix="all heads").value == 1
        assert rows.at(metric, None, "dev", mix="all heads").value == 1
        for layer in (1, 2):
            assert rows.at(metric, layer).value < 0.85
    single = max((of_head(of.splits["dev"], at), of_head(test, at)) for at in (0, 1))[1]
    assert rows.at("uas", baseline="best head").value == pytest.approx(single, abs=1e-6)
    for chain, step in (("right-branching", -1), ("left-branching", 1)):
        value = share(test, lambda s, i, step=step: s.heads[i] == i + step, counts)
        assert rows.at("uas", baseline=chain).value == pytest.approx(value)
    above = rows.at("above_baseline", measure="uas", baseline="best head")
    assert above.value == pytest.approx(1 - single, abs=1e-6)
    assert above.low < above.value < above.high
    assert above.p < 0.01
    w, u = found.parameters["mix"][2]
    assert {*np.argsort(w)[2:]} == {0, 3}
    assert np.abs(u).max() < w[[0, 3]].min() / 3
    assert found.facts["strength"] in STRENGTHS


def test_sentences_beyond_the_window_count_nowhere():
    of = random_corpus()
    long = {s.id for split in of.splits.values() for s in split[::3]}
    found = head_mix(planted(of, lambda s: maps_of(s, HEADS), long=long))
    assert found.facts["train_sentences"] == 80
    rows = Rows.of(found.rows)
    kept = [s for s in of.splits["test"] if s.id not in long]
    n = sum(s.heads[i] != ROOT and counts(s, i) for s in kept for i in range(len(s)))
    assert rows.at("uas", mix="all heads").n == n
    assert rows.at("uas", mix="all heads").value == 1
    short = planted(of, lambda s: maps_of(s, HEADS), long={s.id for s in of.splits["train"]})
    with pytest.raises(NotServedError, match="no sentence of train fits"):
        head_mix(short)


def linked(chances, heads, counted):
    """Words whose link to their head is in the maximum spanning tree of networkx."""
    graph = nx.Graph()
    for i, j in zip(*np.triu_indices(len(chances), 1), strict=True):
        graph.add_edge(i, j, weight=chances[i, j] + chances[j, i])
    tree = nx.maximum_spanning_tree(graph)
    return sum(tree.has_edge(i, heads[i]) for i in counted)


def test_a_run_scores_trees_of_maps_of_transformers(session_runs):
    run = session_runs.measure("head_mix", session_runs.model("bert"), session_runs.corpus(90))
    record = run.record
    weights = read_parameters(run.folder / "cache", record.key)["mix"]
    right, links, n = np.zeros(3), np.zeros(3), 0
    single, layer_head = 0, record.facts["uas"]
    cell = (int(layer_head[0]) - 1) * 2 + int(layer_head[2]) - 1
    for sentence, maps in PlainMaps(run.model).of_treebank(run.corpus / "test.conllu"):
        if len(sentence) == 1:
            continue
        maps, heads = np.concatenate(maps), sentence.heads
        counted = [
            i for i, x in enumerate(sentence.deprels) if heads[i] != ROOT and x[:5] != "punct"
        ]
        n += len(counted)
        alone = maps[cell] if layer_head.endswith("dependent to head") else maps[cell].T
        alone = alone - 2 * np.eye(len(sentence))
        single += sum(alone[i].argmax() == heads[i] for i in counted)
        for mix, (w, u) in enumerate(weights.astype(float)):
            scores = np.einsum("k,kij->ij", w, maps) + np.einsum("k,kji->ij", u, maps)
            np.fill_diagonal(scores, -np.inf)
            right[mix] += sum(scores[i].argmax() == heads[i] for i in counted)
            links[mix] += linked(softmax(scores, axis=1), heads, counted)
    rows = record.rows
    assert 100 < n == rows.at("uas", 1).n
    for mix, axes in enumerate(({"layer": 1}, {"layer": 2}, {"mix": "all heads"})):
        assert rows.at("uas", **axes).value == pytest.approx(right[mix] / n, abs=2.5 / n)
        assert rows.at("uuas", **axes).value == pytest.approx(links[mix] / n, abs=2.5 / n)
    assert rows.at("uas", baseline="best head").value == pytest.approx(single / n, abs=1e-6)
    above = rows.at("above_baseline", measure="uas", baseline="best head")
    assert above.value == pytest.approx((right[2] - single) / n, abs=2.5 / n)
    assert record.facts["train_sentences"] <= 90


def test_the_sample_of_train_is_drawn_from_train():
    of = random_corpus(n=30)
    assert sample(of, "train", 8) == sorted(sample(of, "train", 8))
    assert len({*sample(of, "train", 8)}) == 8
    assert {*sample(of, "train", 8)} < {*sample(of, "train", 20)}
