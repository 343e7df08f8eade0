"""Constituents given, above a word, and below the sentence node, in trees written by hand."""

from dataclasses import replace

import pytest

from probes.data.chunks import Tree
from probes.data.in_memory import in_memory
from probes.data.sentence import SPLITS, Constituent, Corpus, Sentence
from probes.tasks.builtin import get_task
from probes.tasks.task import Example, Excluded

# (TOP (S (NP She) (VP likes (S (VP to (VP read)))) .))
READ = Tree("VP", 3, 4, (3,))
INNER = Tree("S", 2, 4, (Tree("VP", 2, 4, (2, READ)),))
LIKES = Tree(
    "TOP", 0, 5, (Tree("S", 0, 5, (Tree("NP", 0, 1, (0,)), Tree("VP", 1, 4, (1, INNER)), 4)),)
)
SENTENCE = Sentence(
    "s",
    "en",
    ("She", "likes", "to", "read", "."),
    xpos=("PRP", "VBZ", "TO", "VB", "."),
    constituents=LIKES.constituents(),
)


def of(name, sentence=SENTENCE):
    return get_task(name).examples(sentence)


def test_a_tree_as_a_list_has_each_constituent_before_its_parts():
    assert SENTENCE.constituents == (
        Constituent("TOP", (0, 5), -1),
        Constituent("S", (0, 5), 0),
        Constituent("NP", (0, 1), 1),
        Constituent("VP", (1, 4), 1),
        Constituent("S", (2, 4), 3),
        Constituent("VP", (2, 4), 4),
        Constituent("VP", (3, 4), 5),
    )


def test_keys_of_stored_results_do_not_depend_on_the_layer():
    """The files do; a corpus that was made in memory has none."""
    bare = replace(SENTENCE, constituents=())
    one, other = (Corpus("x", "", "", dict.fromkeys(SPLITS, (each,))) for each in (SENTENCE, bare))
    assert one.fingerprint == other.fingerprint
    assert (one.layers, other.layers) == ({"xpos", "constituents"}, {"xpos"})
    assert in_memory(one).digest != in_memory(other).digest


def test_a_constituent_is_labelled_with_its_unary_chain_and_without_the_root():
    assert of("constituent") == [
        Example("S", (0, 5), type="She", groups=("4–9 words",)),
        Example("NP", (0, 1), type="She", groups=("1 word",)),
        Example("VP", (1, 4), type="likes", groups=("2–3 words",)),
        Example("S+VP", (2, 4), type="to", groups=("2–3 words",)),
        Example("VP", (3, 4), type="read", groups=("1 word",)),
    ]


def test_constituents_above_a_word():
    parents, grandparents = (
        [(example.label, example.span, example.type) for example in of(name)]
        for name in ("parent-constituent", "grandparent-constituent")
    )
    assert parents == [
        ("NP", (0, 1), "She"),
        ("VP", (1, 2), "likes"),
        ("VP", (2, 3), "to"),
        ("VP", (3, 4), "read"),
        ("S", (4, 5), "."),
    ]
    # Of "to" it is the S of the same words; of the full stop the root.
    assert [label for label, _, _ in grandparents] == ["S", "S", "S", "VP", "TOP"]


def test_a_word_directly_below_the_root_has_no_grandparent():
    yes = Sentence("s", "en", ("Yes",), constituents=Tree("TOP", 0, 1, (0,)).constituents())
    assert of("parent-constituent", yes) == [Example("TOP", (0, 1), type="Yes")]
    assert of("grandparent-constituent", yes) == [Excluded("no constituent that far above")]


def sentence_of(*top):
    """A sentence whose node has these constituents and tags, one word each, below it."""
    parts = tuple(i if part in TAGS else Tree(part, i, i + 1, (i,)) for i, part in enumerate(top))
    tree = Tree("TOP", 0, len(top), (Tree("S", 0, len(top), parts),))
    tags = tuple(part if part in TAGS else "NN" for part in top)
    return Sentence("s", "en", ("w",) * len(top), xpos=tags, constituents=tree.constituents())


TAGS = (".", ",", "CC", "UH", ":")


@pytest.mark.parametrize(
    ("top", "label"),
    [
        (("NP", "VP", "."), "NP_VP_."),
        (("CC", "NP", "VP", "."), "CC_NP_VP_."),
        (("S", "CC", "S", "."), "S_CC_S_."),
        (("UH", "NP", "VP", "."), "OTHER"),
        (("ADJP", "."), "OTHER"),
    ],
)
def test_top_constituents(top, label):
    (found,) = of("top-constituents", sentence_of(*top))
    assert (found.label, found.span, found.groups) == (label, (0, len(top)), ("1–4 words",))


@pytest.mark.parametrize("top", [("PP", ",", "NP", "VP", "."), ("NP", "VP"), ("NP", "VP", ":")])
def test_sentences_with_other_punctuation_are_left_out(top):
    (found,) = of("top-constituents", sentence_of(*top))
    assert found == Excluded("punctuation within, or no full stop")


def test_the_top_constituents_of_a_nested_sentence_and_of_two():
    assert of("top-constituents")[0].label == "NP_VP_."
    two = Tree("TOP", 0, 2, (Tree("S", 0, 1, (0,)), Tree("S", 1, 2, (1,))))
    sentence = Sentence("s", "en", ("a", "."), xpos=("NN", "."), constituents=two.constituents())
    assert of("top-constituents", sentence) == [Excluded("not one constituent below the root")]
