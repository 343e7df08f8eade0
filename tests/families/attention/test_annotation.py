"""Annotation of words by hand, offsets of EWT against published figures, and classes of heads."""

import numpy as np
import pandas as pd
import pytest
from sentences import sentence_with_tree

from probes.data.find import find_corpus
from probes.data.sentence import ROOT, Sentence
from probes.families.attention.annotation import annotation_of, best_offset, frequent_relations
from probes.families.attention.heads import classes

THREE = (
    sentence_with_tree([1, ROOT, 1, 1], ["nsubj:pass", "root", "aux", "punct"]),
    sentence_with_tree([ROOT], ["root"]),
    sentence_with_tree([1, 2, ROOT], ["det", "nsubj", "root"]),
)


def gold(*sentences, left_out=()):
    return annotation_of(sentences, np.isin(np.arange(len(sentences)), left_out))


def places(words):
    return np.flatnonzero(words).tolist()


def test_words_by_relation():
    found = gold(*THREE)
    assert found.sentence.tolist() == [0, 0, 0, 0, 1, 2, 2, 2]
    assert found.position.tolist() == [0, 1, 2, 3, 0, 0, 1, 2]
    assert found.lengths(found.of("all")).tolist() == [4, 4, 4, 3, 3]
    assert found.head.tolist() == [1, -1, 1, 1, -1, 1, 2, -1]
    assert {name: places(words) for name, words in found.relations.items()} == {
        "all": [0, 2, 3, 5, 6],
        "all but punct": [0, 2, 5, 6],
        "aux": [2],
        "det": [5],
        "nsubj": [0, 6],
        "nsubj:pass": [0],
        "punct": [3],
    }
    assert found.n_sentences == 3


def test_sentences_that_are_left_out_have_neither_heads_nor_features():
    tags = [{"upos": ("NOUN",) * len(s)} for s in THREE]
    tagged = [sentence_with_tree(s.heads, s.deprels, **t) for s, t in zip(THREE, tags, strict=True)]
    found = gold(*tagged, left_out=[0])
    assert found.head.tolist() == [-1] * 5 + [1, 2, -1]
    assert places(found.relations["all"]) == [5, 6]
    assert "aux" not in found.relations
    assert places(found.features["nouns"]) == [4, 5, 6, 7]
    assert places(found.of("aux")) == []


def test_sentences_without_heads_among_others():
    found = gold(THREE[0], Sentence("s", "en", ("a", "b")))
    assert found.head.tolist() == [1, -1, 1, 1, -1, -1]
    assert places(found.relations["all"]) == [0, 2, 3]
    assert gold(Sentence("s", "en", ("a", "b"))).relations == {}


def test_features_by_hand():
    deprels = ["csubj", "nsubj:pass", "obj", "obl", "root", "punct", "iobj"]
    upos = ("VERB", "PROPN", "NOUN", "PRON", "AUX", "PUNCT", "ADV")
    feats = ({}, {"PronType": "Neg"}, {}, {"PronType": "Prs"}, {}, {}, {"Polarity": "Neg"})
    found = gold(sentence_with_tree([4, 4, 4, 4, ROOT, 4, 4], deprels, upos=upos, feats=feats))
    assert {name: places(words) for name, words in found.features.items()} == {
        "punctuation": [5],
        "nouns": [1, 2],
        "verbs": [0],
        "pronouns": [3],
        "subjects": [0, 1],
        "objects": [2],
        "negation": [1, 6],
    }
    assert list(gold(*THREE).features) == ["subjects", "objects"]


def test_relations_that_are_rare_or_unknown_in_train_are_counted():
    def repeated(**counts):
        each = [
            sentence_with_tree([1, ROOT], [name, "root"])
            for name, n in counts.items()
            for _ in range(n)
        ]
        return gold(*each)

    dev = repeated(det=20, obj=19, amod=50, case=25, mark=20)
    test = repeated(det=20, obj=40, amod=19, nsubj=30, case=21, mark=22)
    train = repeated(det=1, obj=40, amod=40, nsubj=40, case=40)
    scored, rare = frequent_relations({"train": train, "dev": dev, "test": test})
    assert scored == ["all", "all but punct", "case", "det"]
    assert list(rare.items()) == [("obj", 40), ("nsubj", 30), ("mark", 22), ("amod", 19)]


def test_the_best_offset_is_the_nearest_of_equals_and_at_most_ten_words_away():
    def chosen(*distances):
        n, middle = 40, 20
        heads = [ROOT] * n
        for i, distance in enumerate(distances):
            heads[middle + i] = middle + i + distance
        of = gold(sentence_with_tree(heads, ["x" if head != ROOT else "root" for head in heads]))
        return best_offset(of, of.of("x"))

    assert chosen(3, 3, -1) == 3
    assert chosen(-2, -2, 4, 4, 4) == 4
    assert chosen(-3, 2) == 2
    assert chosen(-2, 2) == 2
    assert chosen(-10, -10, 1) == -10
    assert chosen(-11, -11, 5) == 5


PUBLISHED = {
    "all": (1, 31.5),
    "all but punct": (1, 34.1),
    "nsubj": (1, 32.5),
    "obj": (-2, 35.0),
    "det": (1, 56.9),
    "amod": (1, 74.6),
    "case": (1, 38.6),
    "advmod": (1, 50.2),
    "aux": (1, 51.0),
    "compound": (1, 71.3),
    "conj": (-2, 28.7),
    "xcomp": (-2, 55.6),
}
"""Offsets chosen on train of EWT, and their accuracy on test in percent."""


@pytest.mark.slow
@pytest.mark.real_data
def test_offsets_of_ewt(real_data):
    splits = find_corpus("ewt", data_dir=real_data).load().splits
    its = {name: annotation_of(each, np.zeros(len(each), bool)) for name, each in splits.items()}
    for relation, (offset, accuracy) in PUBLISHED.items():
        assert best_offset(its["train"], its["train"].of(relation)) == offset
        words = its["test"].of(relation)
        right = its["test"].head[words] == its["test"].position[words] + offset
        assert 100 * right.mean() == pytest.approx(accuracy, abs=0.06)


@pytest.mark.parametrize(
    ("masses", "expected"),
    [
        ({"vertical": 0.5, "diagonal": 0.1}, "vertical"),
        ({"vertical": 0.499, "diagonal": 0.1}, "heterogeneous"),
        ({"vertical": 0.1, "diagonal": 0.5}, "diagonal"),
        ({"vertical": 0.25, "diagonal": 0.25}, "vertical + diagonal"),
        ({"vertical": 0.25, "diagonal": 0.2}, "heterogeneous"),
        ({"vertical": 0.75, "diagonal": 0.2}, "vertical + diagonal"),
        ({"vertical": 0.75, "diagonal": 0.199}, "vertical"),
        ({"vertical": 0.199, "diagonal": 0.75}, "diagonal"),
        ({"vertical": 0.7, "diagonal": -0.5}, "vertical"),
    ],
)
def test_classes_at_the_borders_of_the_rule(masses, expected):
    assert classes(pd.DataFrame([masses])).tolist() == [expected]
