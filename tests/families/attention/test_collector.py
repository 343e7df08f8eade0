"""Parts of the collector, against slow passes that return whole maps."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.stats
import torch
from head_numbers import eager_maps
from sentences import sentence_of
from tiny_models import build
from tiny_readings import collected

from probes.data.sentence import ROOT
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import plain_text
from probes.families.attention.collector import HeadSums, most_attended, trees_of_maps
from probes.families.attention.heads import STATISTICS, TOKENS

SENTENCES = [
    "the old dog sees a cat near the house",
    "she gave him some books and he read them",
    "birds sing when the sun is up .",
    "light",
    "the boats counts lightkeepers",
    "she counts",
]


GIVEN = [sentence_of(text) for text in SENTENCES]
TEXTS = [plain_text(each) for each in GIVEN]

MODELS = [
    ("bert", "BertModel"),
    ("gpt2", "GPT2Model"),
    ("llama-3", "LlamaModel"),
    ("gemma2", "Gemma2Model"),
    ("mpnet", "MPNetModel"),
    ("t5", "T5EncoderModel"),
]


@pytest.fixture(params=MODELS, ids=[name for name, _ in MODELS])
def encoder(request):
    name, kind = request.param
    return Encoder(*build(name, kind), name=name, device="cpu")


def maps_of(encoder, text):
    """The maps of all blocks and heads of one text, alone, and the places of each word's tokens."""
    (pieces,) = encoder.split([text])
    first, bounds = len(encoder.words.prefix), pieces.bounds
    places = [list(range(first + a, first + b)) for a, b in itertools.pairwise(bounds)]
    return eager_maps(encoder, text).astype(np.float64), places


def between(maps, places):
    """Attention between words of one map."""
    columns = np.stack([maps[:, own].sum(1) for own in places], axis=1)
    return np.stack([columns[own].mean(0) for own in places])


@pytest.mark.parametrize("batch_tokens", [1, 400])
def test_everything_is_that_of_whole_maps(encoder, batch_tokens):
    found = collected(encoder, TEXTS, HeadSums(), batch_tokens)
    row = n_mean = 0
    mean_maps = 0.0
    for number, text in enumerate(TEXTS):
        maps, places = maps_of(encoder, text)
        n_tokens = maps.shape[-1]
        if n_tokens == TOKENS:
            mean_maps, n_mean = mean_maps + maps, n_mean + 1
        for block, heads in enumerate(maps):
            for head, its in enumerate(heads):
                seen = visible(encoder, block, n_tokens)
                compare_statistics(found["statistics"][number, block, head], its, seen, places)
                given = its.mean(0)
                for word, own in enumerate(places):
                    at = row + word, block, head
                    assert found["received"][at] == pytest.approx(given[own].sum(), abs=1e-5)
                compare_words(found, row, block, head, between(its, places))
        row += len(places)
    assert found["n_mean_maps"].tolist() == [n_mean]
    if n_mean:
        np.testing.assert_allclose(found["mean_maps"], mean_maps, atol=1e-4)


def visible(encoder, block, n_tokens):
    """Number of tokens that each token may attend to."""
    if not encoder.info.causal:
        return [n_tokens] * n_tokens
    kinds = getattr(encoder.model.config, "layer_types", None) or ["full_attention"] * (block + 1)
    sliding = kinds[block] == "sliding_attention"
    window = encoder.model.config.sliding_window if sliding else n_tokens
    return [min(i + 1, window) for i in range(n_tokens)]


def compare_statistics(found, maps, seen, places):
    n = len(maps)
    shares = [scipy.stats.entropy(maps[i]) / np.log(seen[i]) for i in range(n) if seen[i] > 1]
    suffix = list(range(places[-1][-1] + 1, n))
    expected = {
        "entropy": np.mean(shares) if shares else np.nan,
        "first": maps[:, 0].mean(),
        "separators": maps[:, suffix].sum(1).mean() if suffix else np.nan,
        "offset -2": np.trace(maps, offset=-2) / n,
        "offset +0": np.trace(maps) / n,
        "offset +1": np.trace(maps, offset=1) / n,
        "vertical": sum(
            its.sum(0)[np.argsort(-other.sum(0), kind="stable")[:2]].sum() / n
            for its, other in ((maps[::2], maps[1::2]), (maps[1::2], maps[::2]))
        ),
        "diagonal": sum(np.trace(maps, offset=x) for x in (-1, 0, 1)) / n,
    }
    for name, value in expected.items():
        at = found[STATISTICS.index(name)]
        if np.isnan(value):
            assert torch.isnan(at), name
        else:
            assert float(at) == pytest.approx(value, abs=1e-5), name


def compare_words(found, row, block, head, weights):
    n = len(weights)
    others = weights - np.diag(np.diag(weights))
    rows = slice(row, row + n)
    for direction, its in enumerate((others, others.T)):
        most = found["most"][rows, block, head, direction].tolist()
        greatest = its.max(1)
        for word in range(n):
            if greatest[word] <= 0:
                assert most[word] == -1
            else:  # rounding may decide between equals
                assert most[word] != word
                assert its[word, most[word]] == pytest.approx(greatest[word], abs=1e-6)
    for tree, graph in enumerate((weights, weights.T, weights + weights.T)):
        heads = found["trees"][rows, block, head, tree].tolist()
        assert heads.count(ROOT) == 1
        weight = sum(graph[i, j] for i, j in enumerate(heads) if j != ROOT)
        assert weight == pytest.approx(best_tree(graph, directed=tree < 2), abs=1e-5)


def best_tree(weights, *, directed):
    """The weight of the maximum spanning tree; word i depends on word j with weights[i, j]."""
    n = len(weights)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(
        (j, i, weights[i, j]) for i in range(n) for j in range(n) if i != j
    )
    if n == 1:
        return 0.0
    solve = nx.maximum_spanning_arborescence if directed else nx.maximum_spanning_tree
    return float(solve(graph).size("weight"))


def test_a_uniform_head_is_found_uniform():
    """One whose queries are all 0."""
    model, tokenizer = build("bert", "BertModel")
    with torch.no_grad():
        query = model.encoder.layer[1].attention.self.query
        query.weight[:8], query.bias[:8] = 0, 0  # the first of two heads of 8 dimensions
    encoder = Encoder(model, tokenizer, name="bert", device="cpu")
    found = collected(encoder, TEXTS, HeadSums())["statistics"]
    torch.testing.assert_close(found[:, 1, 0], found[:, 1, 2], equal_nan=True)
    entropy = STATISTICS.index("entropy")
    torch.testing.assert_close(found[:, 1, 0, entropy], torch.ones(len(TEXTS)))
    assert (found[:, 1, 1, entropy] < 0.999).all()


def test_a_text_of_several_windows_is_left_out():
    encoder = Encoder(*build("bert", "BertModel"), name="bert", device="cpu")
    long = plain_text(sentence_of(" ".join(["light"] * 60)))
    both = collected(encoder, [TEXTS[0], long], HeadSums())
    alone = collected(encoder, TEXTS[:1], HeadSums())
    n = len(TEXTS[0].words)
    assert torch.isnan(both["statistics"][1]).all()
    assert (both["most"][n:] == -1).all()
    assert torch.isnan(both["received"][n:]).all()
    for part in ("statistics", "received", "most", "trees"):
        size = len(alone[part])
        torch.testing.assert_close(both[part][:size], alone[part], equal_nan=True)


def test_equal_weights_go_to_the_first_word():
    weights = torch.full((1, 1, 3, 3), 0.2)
    found = most_attended(weights)
    assert found[0, :, 0].tolist() == [[1, 1], [0, 0], [0, 0]]
    heads = trees_of_maps(weights, torch.tensor([3]))
    assert heads[0, :, 0].tolist() == [[ROOT] * 3, [0] * 3, [0] * 3]


def test_a_decoder_does_not_choose_what_it_cannot_see():
    weights = torch.tril(torch.ones(3, 3)).view(1, 1, 3, 3) / 3
    found = most_attended(weights)
    assert found[0, :, 0].tolist() == [[-1, 1], [0, 2], [0, -1]]
