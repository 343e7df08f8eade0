"""Attention in pairs of sentences, against maps of transformers for its tokenizer's own pairs."""

import numpy as np
import pandas as pd
import pytest
from head_numbers import HeadNumbers, PlainMaps
from killing import small_corpus
from measuring import command_line, measure

from probes.cli.main import main
from probes.data.conllu_files import read_conllu
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.families.attention.heads import classes
from probes.families.attention.segments import corpus_of_pairs, neighbours, strangers


@pytest.fixture(scope="module")
def segments_run(session_runs, tmp_path_factory):
    """Of a model with room for 100 tokens, on documents of three sentences."""
    folder = tmp_path_factory.mktemp("segments")
    corpus = small_corpus(folder / "small", 90)
    path = corpus / "test.conllu"
    sentences = path.read_text(encoding="utf-8").strip().split("\n\n")
    documents = [f"# newdoc id = d{i}\n" * (i % 3 == 0) + x for i, x in enumerate(sentences)]
    path.write_text("\n\n".join(documents) + "\n\n", encoding="utf-8")
    model = session_runs.model("bert", max_position_embeddings=100)
    return measure("segment_attention", model, corpus, folder)


@pytest.fixture(scope="module")
def record(segments_run):
    return segments_run.record


@pytest.fixture(scope="module")
def expected(segments_run):
    """Numbers of each pair that fits, by name. Each (layers, heads)."""
    test = tuple(read_conllu(segments_run.corpus / "test.conllu", "en"))
    pairs = [(test[i], test[i + 1]) for i in range(0, 90, 3)]
    control = corpus_of_pairs(Corpus("c", "", "", {"test": test})).splits["control"]
    plain, found = PlainMaps(segments_run.model), []
    for (first, second), pair in zip(pairs, control, strict=True):
        assert pair.words[: len(first)] == first.words
        other = pair.words[len(first) :]
        numbers = [
            of_pair(plain, first.words, x, first.upos + second.upos) for x in (second.words, other)
        ]
        if all(numbers):
            found.append({**numbers[0], "control": numbers[1]["other"]})
    return pd.DataFrame(found)


def of_pair(plain, first, second, upos):
    if (found := plain.of_tokens(first, second)) is None:
        return None
    maps, tokens = found
    n = maps.shape[-1]
    segment = np.array([-1 if x is None else x for x in tokens.sequence_ids(0)])
    word = [
        x if s != 1 else x + len(first) for x, s in zip(tokens.word_ids(0), segment, strict=True)
    ]
    special, words = np.flatnonzero(segment < 0), np.flatnonzero(segment >= 0)
    assert len(special) == 3
    rows = [(i, np.flatnonzero(segment == segment[i])) for i in words]
    own = np.mean([maps[..., i, j].sum(-1) for i, j in rows], axis=0)
    marks = [[i for i in range(n) if word[i] == w] for w, x in enumerate(upos) if x == "PUNCT"]
    given_to = [maps[..., at].sum(-1).mean(-1) for at in marks if at]
    return {
        "first": maps[..., 0].mean(-1),
        "separators": maps[..., special[1:]].sum(-1).mean(-1),
        "previous": np.trace(maps, -1, -2, -1) / n,
        "punctuation": np.max(given_to, axis=0) if given_to else np.full(maps.shape[:2], np.nan),
        "own": own,
        "other": 1 - own - maps[:, :, words][..., special].sum(-1).mean(-1),
        "uniform own": np.mean([len(j) for _, j in rows]) / n,
    }


def test_statistics_of_pairs_are_those_of_transformers_maps(record, expected):
    assert 20 <= len(expected) < 30  # others are too long
    assert record.facts == {"pairs": len(expected), "too_long": 30 - len(expected)}
    heads = HeadNumbers(record.rows)
    of = {
        "first": heads.of("first"),
        "separators": heads.of("separators"),
        "previous": heads.of("offset", -1),
        "punctuation": heads.of("feature", "punctuation"),
        "own": heads.of("pattern", "block"),
        "other": heads.of("other_segment"),
    }
    for name, found in of.items():
        values = np.nanmean(np.stack(expected[name]), axis=0)
        np.testing.assert_allclose(found.values, values, atol=2e-5, err_msg=name)
    uniform = np.unique(of["own"].baseline)
    assert uniform == pytest.approx(expected["uniform own"].mean(), abs=1e-5)
    assert abs(of["own"].values - of["other"].values).max() > 0.05


def test_neighbours_are_compared_with_strangers(record, expected):
    near, far = (np.stack(expected[name]).mean(-1) for name in ("other", "control"))
    for layer in (1, 2):
        for end, values in (("", near), ("_control", far), ("_difference", near - far)):
            row = record.rows.at(f"other_segment{end}", layer)
            assert row.value == pytest.approx(values[:, layer - 1].mean(), abs=2e-5)
            assert row.low < row.value < row.high
            assert row.n == len(expected)


def test_a_model_without_a_second_segment_has_one_line(
    session_runs, segments_run, tmp_path, capsys
):
    model, corpus = session_runs.model("gpt2"), segments_run.corpus
    assert main(command_line("segment_attention", model, corpus, tmp_path)) == 0
    said = capsys.readouterr().err
    assert "left out segment_attention of gpt2: it has no second segment" in said


def sentences(*documents):
    return [
        Sentence(str(i), "en", (f"w{i}",) * (1 + i % 4), document=name)
        for i, name in enumerate(documents)
    ]


def test_neighbouring_sentences_of_a_document_are_pairs():
    given = sentences("a", "a", "a", "b", "b", "", "", "c", "d", "d", "d", "d")
    found = [(int(first.id), int(other.id)) for first, other in neighbours(given)]
    assert found == [(0, 1), (3, 4), (8, 9), (10, 11)]


def test_strangers_have_another_document_and_nearly_the_same_length():
    lengths = {"a": [5, 9], "b": [1, 8], "c": [6, 20]}
    pairs = [
        (Sentence(x, "en", ("x",), document=x), Sentence(f"{x}{n}", "en", ("y",) * n, document=x))
        for x, of in lengths.items()
        for n in of
    ]
    found = strangers(pairs)
    assert [first for first, _ in found] == [first for first, _ in pairs]
    assert [other.id for _, other in found] == ["c6", "c20", "a5", "a9", "b8", "a9"]
    assert all(x.document != y.document for x, y in found)


def test_a_corpus_needs_two_documents_with_pairs():
    for documents in ("aaaa", ["", "", ""], "abcd"):
        corpus = Corpus("c", "", "", {"test": tuple(sentences(*documents))})
        with pytest.raises(NotServedError, match="no two documents of test have two sentences"):
            corpus_of_pairs(corpus)


def test_a_head_that_stays_in_its_segment_is_a_block():
    masses = {"vertical": [0.1, 0.3, 0.5], "diagonal": [0.2, 0.3, 0.4], "block": [0.6, 0.9, 0.4]}
    found = classes(pd.DataFrame(masses)).tolist()
    assert found == ["block", "vertical + diagonal", "vertical + diagonal"]
    found = classes(pd.DataFrame(masses).assign(diagonal=-0.9, block=[0.6, 0.45, -0.2])).tolist()
    assert found == ["block", "heterogeneous", "vertical"]
