"""`python -m probes figure tree`."""

import numpy as np
import pytest
from corpus_records import corpus_record, geometry, store_record
from drawn import column

from probes.data.find import find_corpus
from probes.families.structure.tree_figure import edges_of
from probes.records.record_files import write_record


def title_of(chart):
    title = chart.to_dict()["title"]
    return title if isinstance(title, str) else " ".join(title["text"])


def test_edges_are_right_wrong_or_of_words_that_are_left_out():
    # The cat sat . — gold: The → cat → sat ← . ; found: The — sat, cat — sat; the point left out.
    edges = edges_of((1, 2, -1, 2), (2, 2, -1, -2))
    assert [*edges.itertuples(index=False, name=None)] == [
        (-1, 2, "gold", False),
        (0, 1, "gold", False),
        (1, 2, "gold", False),
        (2, 3, "gold, of punctuation", False),
        (-1, 2, "predicted", True),
        (0, 2, "wrong", True),
        (1, 2, "predicted", True),
    ]


@pytest.fixture(scope="module")
def sample():
    return find_corpus("sample").load()


@pytest.fixture
def trees(tmp_path, sample):
    """Writes a record of structural probes on `sample`; sentence 1 is left out."""

    def trees(**more):
        heads = [list(sentence.heads) for sentence in sample.splits["test"]]
        heads[0] = [-2] * len(heads[0])
        model, changes = more.get("model", "m"), more.get("corpus", {})
        record = corpus_record("structure", [], 2, model=model, arrays=("trees",))
        corpus = {"name": "sample", "fingerprint": sample.fingerprint, **changes}
        record = record.model_copy(update={"corpus": record.corpus.model_copy(update=corpus)})
        array = more.get("array", np.concatenate(heads).astype(np.int32))
        path = tmp_path / "r" / model / "sample" / "structure-00000000.json"
        path.parent.mkdir(parents=True)
        write_record(path, record, {"trees": array})
        return tmp_path / "r"

    return trees


def test_a_sentence_is_counted_from_one_and_its_words_come_from_the_corpus(trees, sample, draws):
    status, tree, _ = draws("tree", trees(), "--sentence", 12)
    assert status == 0
    sentence = sample.splits["test"][11]
    assert tuple(column(tree, "word")) == sentence.words
    assert set(column(tree, "kind")) == {"gold", "predicted"}
    n = len(sentence) - 1
    assert title_of(tree) == f"m, sample 1, test sentence 12: {n} of {n} edges"


def test_by_default_it_is_the_first_of_eight_to_fifteen_words_that_has_a_tree(trees, sample, draws):
    status, tree, said = draws("tree", trees())
    lengths = [len(sentence) for sentence in sample.splits["test"]]
    place = next(i for i, n in enumerate(lengths) if i > 0 and 8 <= n <= 15)
    assert status == 0
    assert tuple(column(tree, "word")) == sample.splits["test"][place].words
    assert f"sentence {place + 1}; --sentence draws another one" in said


@pytest.mark.parametrize(
    ("more", "arguments", "why"),
    [
        ({}, ("--sentence", 1), "--sentence 1: it was left out"),
        ({}, ("--sentence", 401), "--sentence 401: the test split has sentences 1 to 400"),
        ({}, ("--sentence", 0), "--sentence 0: the test split has sentences 1 to 400"),
        ({}, ("--sentence", "x"), "--sentence x: not a whole number"),
        ({"corpus": {"fingerprint": "0" * 64}}, (), "sample: not the corpus of structure-"),
        ({"corpus": {"name": "nowhere"}}, (), "Unknown corpus 'nowhere'"),
        ({"array": np.zeros(3, np.int32)}, (), "trees of 3 words, but the test split has 5,738"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(trees, draws, more, arguments, why):
    status, tree, said = draws("tree", trees(**more), *arguments)
    assert (status, tree) == (2, None)
    assert why in said


def test_trees_of_one_model_at_a_time(trees, tmp_path, draws):
    folder, empty = trees(), tmp_path / "empty"
    trees(model="n")
    said = draws("tree", folder)[2]
    assert "trees of m on sample, n on sample; name the folder of one model" in said
    assert draws("tree", folder / "n", "--sentence", 2)[0] == 0
    empty.mkdir()
    store_record(empty, geometry([0.3] * 3))
    said = draws("tree", empty)[2]
    assert "no predicted trees; run with --measurements structure" in said
