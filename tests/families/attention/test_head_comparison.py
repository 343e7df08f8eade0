"""Heads beside those of another model and of other layers, against scipy on maps of transformers."""

import shutil
from itertools import combinations

import numpy as np
import pytest
import torch
from head_numbers import PlainMaps
from measuring import command_line
from safetensors.torch import load_file, save_file
from scipy.spatial.distance import cosine, jensenshannon
from tiny_models import save

from probes.cli.main import main
from probes.data.conllu_files import read_conllu
from probes.data.sentence import Corpus, Sentence
from probes.families.attention.head_maps import change_of_maps, mean_distances, sample
from probes.frames.frame import load


@pytest.fixture(scope="module")
def bert(session_runs):
    return session_runs.model("bert")


@pytest.fixture(scope="module")
def small(session_runs):
    return session_runs.corpus(90)


@pytest.fixture(scope="module")
def tuned(bert, tmp_path_factory):
    """The same model with other weights in its second block."""
    folder = shutil.copytree(bert, tmp_path_factory.mktemp("models") / "tuned")
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.1.attention.self.query.weight"] *= -3
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def records_of_tuned(bert, tuned, small, tmp_path_factory):
    """By measurement, after a run of both models."""
    folder, measurements = tmp_path_factory.mktemp("heads"), "attention,head_similarity"
    assert main(command_line(measurements, [bert, tuned], small, folder)) == 0
    records = load(folder / "results").records().values()
    return {x.measurement: x for x in records if x.model.name == "tuned"}


def maps_of(folder, small):
    """Maps that transformers returns of test sentences. Each (blocks, heads, tokens, tokens)."""
    plain, test = PlainMaps(folder), read_conllu(small / "test.conllu", "en")
    maps = [x[0] for sentence in test if (x := plain.of_tokens(sentence.words)) is not None]
    assert 20 < len(maps) < 90
    return maps


def test_a_change_is_seen_in_the_block_that_changed_alone(records_of_tuned, bert, tuned, small):
    """Cosine of flattened maps, and divergence of rows, averaged over texts."""
    rows = records_of_tuned["attention_change"].rows
    assert len(rows) == 2 * 2 * 3
    for head in (None, 1, 2):
        same = [rows.at(x, 1, base="bert", head=head) for x in ("map_cosine", "map_divergence")]
        assert [(x.value, x.low, x.high) for x in same] == [(1, 1, 1), (0, 0, 0)]
    ours, theirs = maps_of(tuned, small), maps_of(bert, small)
    cosines, divergences = [], []
    for one, other in zip(ours, theirs, strict=True):
        pairs = list(zip(one[1], other[1], strict=True))
        cosines.append([1 - cosine(a.ravel(), b.ravel()) for a, b in pairs])
        divergences.append([(jensenshannon(a, b, axis=-1) ** 2).mean() for a, b in pairs])
    for metric, values in (("map_cosine", cosines), ("map_divergence", divergences)):
        expected = np.mean(values, axis=0)
        found = [rows.at(metric, 2, base="bert", head=head).value for head in (1, 2)]
        assert found == pytest.approx(expected, abs=1e-5)
        mean = rows.at(metric, 2, base="bert")
        assert mean.value == pytest.approx(expected.mean(), abs=1e-5)
        assert mean.low < mean.value < mean.high
    assert np.mean(divergences) > 0.001
    assert mean.n == len(ours)


def test_distances_within_and_between_layers(records_of_tuned, tuned, small):
    rows = records_of_tuned["head_similarity"].rows
    within, between = [], []
    for maps in maps_of(tuned, small):
        heads = {place: maps[place] for place in np.ndindex(maps.shape[:2])}
        distance = {
            frozenset(pair): jensenshannon(heads[pair[0]], heads[pair[1]], axis=-1).mean()
            for pair in combinations(heads, 2)
        }
        within.append([distance[frozenset({(b, 0), (b, 1)})] for b in (0, 1)])
        across = [distance[frozenset({(0, i), (1, j)})] for i in (0, 1) for j in (0, 1)]
        between.append(np.mean(across))
    for layer in (1, 2):
        inside = np.mean(within, axis=0)[layer - 1]
        for metric, value in (
            ("within", inside),
            ("between", np.mean(between)),
            ("difference", np.mean(between) - inside),
        ):
            row = rows.at(f"head_distance_{metric}", layer)
            assert row.value == pytest.approx(value, abs=1e-4)
            assert row.low < row.value < row.high


def test_equal_heads_have_no_distance_and_disjoint_ones_the_greatest():
    eye = torch.eye(6, dtype=torch.float64)
    maps = torch.stack([torch.stack([eye, eye]), torch.stack([eye.roll(1, 0), eye.roll(2, 0)])])
    greatest = np.log(2) ** 0.5
    expected = [[0, greatest], [greatest, greatest]]
    np.testing.assert_allclose(mean_distances(maps), expected, atol=1e-12)
    assert torch.isnan(mean_distances(maps[:, :1])[:, 0]).all()
    assert torch.isnan(mean_distances(maps[:1])[:, 1]).all()


def test_a_sentence_beyond_the_bound_does_not_end_the_sample():
    sizes = [900 if i % 3 else 5 for i in range(30)]
    test = tuple(Sentence(f"{i}", "en", ("a",) * n) for i, n in enumerate(sizes))
    assert sample(Corpus("c", "", "", {"test": test})) == list(range(0, 30, 3))
    assert sample(Corpus("c", "", "", {"test": test[1:3]})) == []


def test_the_cosine_of_maps_by_hand():
    one = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    other = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    value, divergence = change_of_maps(one, other)
    assert value == pytest.approx(0.5 / 1.5)
    assert divergence == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize(
    ("family", "changes", "said"),
    [
        ("gpt2", {}, "other and bert have other tokens for the same words"),
        (
            "bert",
            {"num_hidden_layers": 3},
            "other and bert have 3 layers × 2 heads and 2 layers × 2",
        ),
        ("bert", {"num_attention_heads": 4}, "have 2 layers × 4 heads and 2 layers × 2 heads"),
    ],
)
def test_models_whose_heads_or_tokens_do_not_correspond(
    family, changes, said, bert, small, tmp_path, capsys
):
    save(family, tmp_path / "other", **changes)
    assert main(command_line("attention", [bert, tmp_path / "other"], small, tmp_path)) == 0
    assert "left out attention_change of other: " in (error := capsys.readouterr().err)
    assert said in error
