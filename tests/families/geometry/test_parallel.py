"""Parallel sentences, against vectors made by transformers and scikit-learn's neighbours."""

import numpy as np
import pytest
from plain_passes import hand_vectors
from sklearn.neighbors import NearestNeighbors
from tiny_runs import run

from probes.cli.main import main
from probes.statistics.bootstrap import resample

TEXT = "the old dog sees a cat near house she gave him some books and he read"
WORDS = TEXT.split()
N_PAIRS = 40


def translated(words):
    """Every second word of the list by its neighbour, in reverse order."""
    places = [WORDS.index(word) for word in reversed(words)]
    return [WORDS[place - place % 2] for place in places]


def written(path, sentences):
    lines = []
    for name, words in sentences.items():
        lines.append(f"# sent_id = {name}")
        lines += [
            f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\t{'root' if i == 1 else 'dep'}\t_\t_"
            for i, word in enumerate(words, start=1)
        ]
        lines.append("")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Sentences in file order, and two files; each has a sentence that the other lacks."""
    folder, rng = tmp_path_factory.mktemp("parallel"), np.random.default_rng(0)
    pairs = {f"n{i}": rng.choice(WORDS, int(rng.integers(2, 9))).tolist() for i in range(N_PAIRS)}
    others = {name: translated(words) for name, words in reversed(pairs.items())}
    ours = written(folder / "aa_own.conllu", {**pairs, "alone": ["dog"]})
    theirs = written(folder / "bb_other.conllu", {"w1": ["cat"], "w2": ["cat"], **others})
    return folder, pairs, ours, theirs


@pytest.fixture(scope="module")
def record(files, tiny_bert):
    folder, _, ours, theirs = files
    found = run(
        tiny_bert,
        folder,
        corpus=ours,
        split_by="sentence",
        measurements="parallel",
        options={"parallel": {"file": theirs}},
        twins=0,
        limit=None,
    )
    (each,) = found.measured.values()
    return each


def by_hand(model, sentences):
    """Means of words, each of which is the mean of its pieces. Shape (layers, sentences, H)."""
    return np.stack([vectors.mean(1) for vectors in hand_vectors(model, sentences)], axis=1)


def test_translations_are_retrieved_as_by_scikit_learn(files, record, tiny_bert):
    _, pairs, _, _ = files
    own = by_hand(tiny_bert, pairs.values())
    other = by_hand(tiny_bert, map(translated, pairs.values()))
    assert record.facts["sentences"] == N_PAIRS
    for layer in range(3):
        for vectors in (None, "centred"):
            both = [x[layer] - (x[layer].mean(0) if vectors else 0) for x in (own, other)]
            for start, end, name in ((0, 1, "bb_other"), (1, 0, "aa_own")):
                index = NearestNeighbors(n_neighbors=1, metric="cosine").fit(both[end])
                hits = index.kneighbors(both[start])[1][:, 0] == np.arange(N_PAIRS)
                row = record.rows.at("retrieval_accuracy", layer, among=name, vectors=vectors)
                # Stored vectors are fp16, which may decide one sentence.
                assert row.value == pytest.approx(hits.mean(), abs=1.1 / N_PAIRS)
                assert row.n == N_PAIRS
                if row.value == hits.mean():
                    ends = np.quantile(resample(N_PAIRS) @ hits / N_PAIRS, [0.025, 0.975])
                    assert row.interval == pytest.approx(tuple(ends), abs=1e-6)
        one, two = own[layer] - own[layer].mean(0), other[layer] - other[layer].mean(0)
        grams = [x @ x.T for x in (one, two)]
        expected = (grams[0] * grams[1]).sum() / np.prod([np.linalg.norm(g) for g in grams])
        assert record.rows.at("cka_of_languages", layer).value == pytest.approx(expected, abs=1e-3)
        means = own[layer].mean(0), other[layer].mean(0)
        cosine = means[0] @ means[1] / np.prod([np.linalg.norm(x) for x in means])
        assert record.rows.at("centroid_cosine", layer).value == pytest.approx(cosine, abs=1e-3)


def test_what_has_no_translation_is_counted(record):
    pairs, _ = record.notes
    assert pairs == (
        "40 pairs of sentences; 1 sentence of the corpus and 2 of the file have no translation."
    )


def refused(capsys, model, corpus, *more):
    given = ["--model", model, "--corpus", corpus, "--split-by", "sentence"]
    status = main([*given, "--measurements", "parallel", *more])
    return status, capsys.readouterr().err


def test_files_that_cannot_be_used_are_refused(files, tiny_bert, tmp_path, capsys):
    folder, _, ours, _ = files
    alone = written(tmp_path / "cc.conllu", {"x": ["dog"]})
    output = ["--output", str(tmp_path / "results"), "--cache-dir", str(folder / "cache")]
    for more, why in (
        ([], "--measurements parallel: it needs --parallel-file."),
        (["--parallel-file", "nowhere"], "--parallel-file nowhere: there is no such file; give a"),
        (["--parallel-file", alone], "0 sentences have a sent_id of aa_own. Give a file"),
    ):
        status, said = refused(capsys, str(tiny_bert), ours, *more, *output)
        assert (status, why in said) == (2, True), said
