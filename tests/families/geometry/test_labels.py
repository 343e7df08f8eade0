"""Items to cluster (words, chunks, predicates by lemma), from sentences written by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
from planted_vectors import PlantedVectors

from probes.data.sentence import Corpus, Frame, Sentence
from probes.families.geometry import GeometryOptions
from probes.families.geometry.labelled_words import MOST, label_sets


def context(test, train=(), dev=(), seed=0):
    splits = {"train": tuple(train), "dev": tuple(dev), "test": tuple(test)}
    corpus = Corpus("c", "1", "MIT", splits)
    number = {s.id: i for i, split in splits.items() for i, s in enumerate(split)}
    return PlantedVectors(
        corpus,
        (0,),
        GeometryOptions(seed=seed),
        # The split's first letter, the sentence and the word.
        lambda s, layer: np.array([[ord(s.id[0]), number[s.id], w] for w in range(len(s))]),
    )


def sentences(n, split="test", **layers):
    words = ("a", "b", "c", "d", "e")
    return [Sentence(f"{split}{i}", "en", words, **layers) for i in range(n)]


def test_of_words_every_tag_is_clustered():
    its = context(sentences(6, upos=("X", "Y", "X", "Y", "X")), train=sentences(3, "train"))
    found = label_sets(its)
    assert list(found) == ["upos"]
    (group,) = found["upos"].groups
    vectors = group.vectors(its.vectors.layer(0))
    assert sorted(map(tuple, vectors[:, 1:].astype(int))) == [*product(range(6), range(5))]
    assert set(vectors[:, 0]) == {ord("t")}
    assert (group.sentence == vectors[:, 1]).all()
    for number in (0, 1):
        assert len(set(vectors[group.labels == number, 2] % 2)) == 1
    assert found["upos"].counts == {"items": 30, "available": 30, "classes": 2, "left_out": 0}
    assert found["upos"].note == "30 items, 2 classes"


def test_of_chunks_the_first_and_the_last_word():
    tags = ("B-NP", "I-NP", "I-NP", "O", "B-VP")
    without = replace(sentences(1, "t-more")[0], words=("x", "y"))
    its = context([*sentences(12, chunks=tags), without])
    found = label_sets(its)["chunks"]
    (group,) = found.groups
    vectors = group.vectors(its.vectors.layer(0))
    assert vectors.shape == (24, 6)
    assert (vectors[:, 1] == group.sentence).all()
    spans = {(int(row[2]), int(row[5])) for row in vectors}
    assert spans == {(0, 2), (4, 4)}
    for number in (0, 1):
        assert len(set(vectors[group.labels == number, 2])) == 1
    assert found.note == "24 items, 2 classes; left out: 2"


def frames(*rolesets):
    return tuple(Frame(roleset, (place, place + 1), ()) for place, roleset in enumerate(rolesets))


def test_predicates_of_all_splits_are_grouped_by_lemma_without_rare_senses():
    its = context(
        sentences(6, frames=frames("run.01", "see.01")),
        train=sentences(12, "train", frames=frames("run.01", "run.02")),
        dev=[
            *sentences(4, "dev", frames=frames("run.03", "go.01", "go.02")),
            *sentences(3, "even", frames=frames("go.01", "go.02")),
        ],
    )
    found = label_sets(its)["senses"]
    # run: 18 × 01, 12 × 02, 4 × 03, which is rare; go: 7 + 7, a rare lemma; see: one sense.
    (group,) = found.groups
    assert sorted(np.bincount(group.labels)) == [12, 18]
    vectors = group.vectors(its.vectors.layer(0))
    second = group.labels == np.bincount(group.labels).argmin()
    assert set(vectors[second, 2]) == {1}
    assert found.counts == {
        "items": 30, "available": 30, "classes": 2, "left_out": 4 + 14 + 6, "lemmas": 1,
    }  # fmt: skip
    assert found.note == "30 items, 2 classes of 1 lemma; left out: 24"


def test_what_cannot_be_clustered_says_why():
    few = sentences(
        2, upos=("X", "Y", "X", "Y", "X"), chunks=("B-NP",) * 5, frames=frames("run.01")
    )
    found = {name: each.missing for name, each in label_sets(context(few)).items()}
    assert found == {
        "upos": "fewer than 10 items per class in test",
        "chunks": "test has fewer than two classes",
        "senses": "no lemma occurs 20 times in senses that occur 5 times",
    }
    absent = label_sets(context(sentences(1), train=sentences(1, "train", upos=("X",) * 5)))
    assert absent["upos"].note == "none: test has fewer than two classes"
    assert label_sets(context(sentences(2))) == {}


def test_of_many_items_a_seeded_sample_is_clustered():
    many = sentences(1_200, upos=("X", "Y", "X", "Y", "X"))
    first, again, other = (label_sets(context(many, seed=seed))["upos"] for seed in (0, 0, 1))
    assert first.note == "5,000 of 6,000 items, 2 classes"
    rows = [each.groups[0].rows[:, 0] for each in (first, again, other)]
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()
    assert len(np.unique(rows[0])) == MOST
