"""A record, computed again from its arrays, parameters and vectors."""

from statistics import variance

import networkx as nx
import numpy as np
import pytest
from scipy.stats import spearmanr

from probes import read_parameters
from probes.families.structure.trees import N_CONTROL_TREES
from probes.statistics.replicates import training_noise
from probes.statistics.significance import Errors, all_pairs, least_p_of_better, max_t

RANKS, LAYERS = (1, 3, 16), (0, 1, 2)
SCORES = ("uuas", "dspr", "root_accuracy", "nspr")
KINDS = ("distance", "depth")


def parts(arrays, split, metric, layer, rank):
    """Numerators and denominators of each sentence. Each (sentences, columns)."""
    place = list(arrays["layers"]).index(layer), list(arrays["ranks"]).index(rank)
    if metric == "uuas":
        hits, edges = arrays[f"{split}_hits"][place].sum(-1), arrays[f"{split}_edges"].sum(-1)
        return hits[:, None].astype(float), edges[:, None].astype(float)
    if metric == "root_accuracy":
        roots = arrays[f"{split}_roots"][place][:, None]
        return roots.astype(float), np.ones(roots.shape)
    values, lengths = arrays[f"{split}_{metric}"][place], arrays[f"{split}_lengths"]
    each = (lengths[:, None] == np.arange(5, 51)).astype(float)
    return each * values[:, None].astype(float), each


def score(found, of):
    """The mean, over columns that are not empty, of the ratio of sums. Shape (…, columns)."""
    ratios = np.divide(found, of, out=np.full(np.shape(found), np.nan), where=of > 0)
    return np.nanmean(ratios, axis=-1)


def clusters_summed(arrays, values, n_clusters):
    sums = np.zeros((n_clusters, values.shape[1]))
    np.add.at(sums, arrays["test_clusters"], values)
    return sums


def draws(n_clusters):
    rng = np.random.default_rng(0)
    return rng.multinomial(n_clusters, [1 / n_clusters] * n_clusters, 2000).astype(float)


def test_what_it_is_of(structure_run):
    facts, arrays = structure_run.facts, structure_run.arrays
    assert (facts["rank"], tuple(structure_run.record.extent)) == (16, LAYERS)
    assert structure_run.json["settings"] == {"ranks": "1,3,99"}
    assert arrays["ranks"].tolist() == [1, 3, 16, 0]
    assert arrays["layers"].tolist() == [0, 1, 2]
    assert (facts["resampled"], facts["clusters"]) == ("sentences", len(arrays["test_lengths"]))
    assert 20 < facts["clusters"] < 40
    assert facts["test_sentences"] + facts["test_left_out"] == 40
    kept = [structure_run.sentences[number] for number in arrays["test_sentences"]]
    assert arrays["test_lengths"].tolist() == [len(s) for s in kept]
    assert facts["test_words"] == sum(map(len, kept))
    assert facts["test_edges"] == arrays["test_edges"].sum()


@pytest.mark.parametrize("metric", SCORES)
def test_stored_arrays_have_all_scores_and_intervals(structure_run, metric):
    for split in ("dev", "test"):
        n_clusters = 40
        for layer in LAYERS:
            for rank in (*RANKS, 0):
                row = structure_run.rows.at(metric, layer, split, rank=rank)
                found, of = parts(structure_run.arrays, split, metric, layer, rank)
                assert row.value == pytest.approx(score(found.sum(0), of.sum(0)), rel=1e-6)
                if split == "test":
                    sums = [
                        clusters_summed(structure_run.arrays, x, n_clusters) for x in (found, of)
                    ]
                    resampled = score(*(draws(n_clusters) @ x for x in sums))
                    expected = np.quantile(resampled, [0.025, 0.975])
                    assert row.interval == pytest.approx(expected, rel=1e-6)


def test_stored_arrays_have_baselines_controls_and_recall(structure_run):
    arrays, rows = structure_run.arrays, structure_run.rows
    for split in ("dev", "test"):
        edges, of_draws = arrays[f"{split}_edges"].sum(), arrays[f"{split}_control_edges"]
        chain = arrays[f"{split}_chain_hits"].sum() / edges
        assert rows.at("chain_uuas", split=split).value == pytest.approx(chain)
        for layer in LAYERS:
            draws = arrays[f"{split}_control_hits"][layer].sum((1, 2)) / of_draws.sum((1, 2))
            assert arrays[f"{split}_control_uuas"][layer] == pytest.approx(draws)
            assert len(draws) == N_CONTROL_TREES
            assert len(set(draws)) > 2
            found = draws.mean()
            of = layer, split
            assert rows.at("control_uuas", *of, rank=16).value == pytest.approx(found)
            uuas = arrays[f"{split}_hits"][layer, 2].sum() / edges
            assert rows.at("selectivity", *of, rank=16).value == pytest.approx(uuas - found)
            low, high = rows.at("selectivity", *of, rank=16).interval
            assert low < uuas - found < high
    hits = [*arrays["test_hits"][:, 2], arrays["test_chain_hits"]]
    for layer, each in zip((*LAYERS, None), hits, strict=True):
        metric = "chain_recall" if layer is None else "recall"
        found = [rows.at(metric, layer, words=x).value for x in ("1", "2", "3–5", "6+")]
        assert found == pytest.approx(each.sum(0) / arrays["test_edges"].sum(0))


def test_intervals_of_controls_carry_the_variance_of_draws(structure_run):
    """t times the layer's own standard deviation over draws is added."""
    arrays, n = structure_run.arrays, 40
    name = f"{structure_run.record.model.digest} {structure_run.record.corpus.fingerprint} control trees"

    def resampled(found, of):
        found, of = (
            clusters_summed(arrays, x.sum(-1)[:, None].astype(float), n) for x in (found, of)
        )
        return (draws(n) @ found / (draws(n) @ of))[:, 0]

    for layer in LAYERS:
        sd = np.std(arrays["test_control_uuas"][layer], ddof=1)
        spread = structure_run.rows.at("control_uuas_draw_sd", layer, rank=16).value
        assert spread == pytest.approx(sd)
        noise = training_noise(
            f"{name} {layer}", [0], sd / np.sqrt(N_CONTROL_TREES), N_CONTROL_TREES - 1, 2000
        )[0]
        gold = resampled(arrays["test_hits"][layer, 2], arrays["test_edges"])
        pairs = zip(arrays["test_control_hits"][layer], arrays["test_control_edges"], strict=True)
        mean = np.mean([resampled(*pair) for pair in pairs], axis=0)
        for metric, values in (("control_uuas", mean), ("selectivity", gold - mean)):
            interval = structure_run.rows.at(metric, layer, rank=16).interval
            expected = np.quantile(values + noise, [0.025, 0.975])
            assert interval == pytest.approx(expected, abs=1e-6)
            assert np.ptp(interval) > np.ptp(np.quantile(values, [0.025, 0.975]))


@pytest.mark.parametrize("metric", SCORES)
def test_tests_between_layers(structure_run, metric):
    refits = structure_run.arrays["test_refits"][:, SCORES.index(metric)]
    assert refits.shape == (3, 3)
    sd, df = structure_run.rows.at(f"{metric}_training_sd", rank=16).value, 6
    assert sd == pytest.approx(np.sqrt(np.mean([variance(each) for each in refits.tolist()])))

    n, values, influences, scores = 40, [], [], []
    for layer in LAYERS:
        found, of = parts(structure_run.arrays, "test", metric, layer, 16)
        sums = [clusters_summed(structure_run.arrays, x, n) for x in (found, of)]
        values.append(score(*(draws(n) @ x for x in sums)))
        # Σ over columns of (a_c − r b_c) / b, divided by the number of columns.
        a, b = (x.sum(0) for x in sums)
        used = b > 0
        each = (sums[0] - sums[1] * (a / np.where(used, b, 1)))[:, used] / b[used]
        influences.append(each.mean(1))
        scores.append(score(a, b))
    record = structure_run.record
    name = f"{record.model.digest} {record.corpus.fingerprint} {metric}"
    values = np.stack(values) + training_noise(name, LAYERS, sd, df, 2000)
    errors = Errors(np.stack(influences), np.full(3, sd**2), draws(n))
    pairs = all_pairs(3)
    expected = least_p_of_better(
        np.array(scores), pairs, max_t(np.array(scores), [(values, errors)], pairs)
    )
    found = [structure_run.rows.at(f"{metric}_p_best", layer, rank=16).value for layer in LAYERS]
    assert found == pytest.approx(expected, abs=2e-3)
    assert max(expected) == 1


def loops(structure_run, layer, distance, depth):
    """UUAS, DSpr, root accuracy, NSpr, and trees, from vectors and matrices."""
    right = edges = roots = 0
    correlations, trees, first = {}, [], 0
    for number, sentence in enumerate(structure_run.sentences):
        n, rows = len(sentence), structure_run.vectors[layer][first : first + len(sentence)]
        first += n
        if number not in structure_run.arrays["test_sentences"]:
            trees += [-2] * n
            continue
        z, deep = rows @ distance.T.astype(float), rows @ depth.T.astype(float)
        graph = nx.Graph((i, head) for i, head in enumerate(sentence.heads) if head >= 0)
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        gold = [[lengths[i][j] for j in range(n)] for i in range(n)]
        far, depths = ((z[:, None] - z[None]) ** 2).sum(-1), (deep**2).sum(-1)
        words = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
        complete = nx.Graph()
        complete.add_weighted_edges_from((i, j, far[i, j]) for i in words for j in words if i < j)
        tree = nx.minimum_spanning_tree(complete)
        tree.add_nodes_from(words)
        right += sum(lengths[i][j] == 1 for i, j in tree.edges)
        edges += sum(i in words and j in words for i, j in graph.edges)
        root, gold_root = min(words, key=lambda i: depths[i]), sentence.heads.index(-1)
        roots += root == gold_root
        above = {child: parent for parent, child in nx.bfs_edges(tree, root)}
        trees += [-1 if i == root else above.get(i, -2) for i in range(n)]
        dspr = np.mean([spearmanr(far[i], gold[i]).statistic for i in range(n)])
        nspr = spearmanr(depths, gold[gold_root]).statistic
        correlations.setdefault(n, []).append((dspr, nspr))
    dspr, nspr = np.mean(
        [np.mean(each, 0) for n, each in correlations.items() if 5 <= n <= 50], axis=0
    )
    found = right / edges, dspr, roots / len(structure_run.arrays["test_lengths"]), nspr
    return dict(zip(SCORES, found, strict=True)), trees


def test_stored_matrices_applied_to_the_models_vectors_have_the_scores_of_the_record(structure_run):
    matrices = read_parameters(structure_run.folder / "cache", structure_run.record.key)
    names = {f"{k}.layer-{x:02d}.rank-{r:03d}" for k in KINDS for x in LAYERS for r in RANKS}
    assert matrices.keys() == names
    best = np.argmax([structure_run.rows.at("uuas", x, "dev", rank=16).value for x in LAYERS])
    for layer in LAYERS:
        for rank in RANKS:
            pair = [matrices[f"{kind}.layer-{layer:02d}.rank-{rank:03d}"] for kind in KINDS]
            assert all(matrix.shape == (rank, 16) for matrix in pair)
            scores, trees = loops(structure_run, layer, *pair)
            found = {x: structure_run.rows.at(x, layer, rank=rank).value for x in SCORES}
            assert found == pytest.approx(scores, abs=2e-4)
            if (layer, rank) == (best, 16):
                assert structure_run.arrays["trees"].tolist() == trees
    scores, _ = loops(structure_run, 1, np.eye(16), np.eye(16))
    found = {x: structure_run.rows.at(x, 1, rank=0).value for x in SCORES}
    assert found == pytest.approx(scores, abs=2e-4)
