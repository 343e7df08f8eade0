"""Changed sentences, by hand."""

import pytest
from rules import corpus_of
from sentences import bracketed, sentence_with_tree

from probes.data.sentence import Mention, Sentence
from probes.probing import malformed
from probes.probing.malformed import Changed, OtherNames, moved

TEXT = "The dog that I fed brought me a bone today ."
WORDS = TEXT.split()
HEADS = (1, 5, 4, 4, 1, -1, 5, 8, 5, 5, 5)
RELATIONS = "det nsubj obj nsubj acl:relcl root iobj det obj obl:tmod punct"
DEPRELS = RELATIONS.split()


def order_of(perturb):
    """The words that remain; each is the one of the intact sentence."""

    def of(given):
        found = perturb(given)
        assert found is None or found.words == tuple(given.words[i] for i in found.order)
        return found and found.order

    return of


cut, shuffled, without_arguments = map(
    order_of, (malformed.cut, malformed.shuffled, malformed.without_arguments)
)


def example_sentence(words=WORDS, heads=HEADS, deprels=DEPRELS, name="s1"):
    return sentence_with_tree(heads, deprels, words=words, name=name)


def test_subjects_and_objects_go_with_all_that_depends_on_them():
    assert [WORDS[i] for i in without_arguments(example_sentence())] == ["brought", "today", "."]
    # Of a clause that remains, too.
    words, heads = ["Go", "when", "the", "sun", "is", "seen"], (-1, 5, 3, 5, 5, 0)
    deprels = "root", "mark", "det", "nsubj:pass", "aux:pass", "advcl"
    order = without_arguments(example_sentence(words, heads, deprels))
    assert [words[i] for i in order] == ["Go", "when", "is", "seen"]


@pytest.mark.parametrize("deprel", ["dobj", "nsubjpass", "dative", "nsubj:outer", "csubj", "obl"])
def test_which_relations_go(deprel):
    order = without_arguments(example_sentence(["See", "it"], (-1, 0), ("root", deprel)))
    assert order == (None if deprel in ("csubj", "obl") else (0,))


def test_without_arguments_or_trees_nothing_changes_and_a_root_always_remains():
    assert without_arguments(example_sentence(["Go", "home"], (-1, 0), ("root", "advmod"))) is None
    assert without_arguments(example_sentence(["Go", "home"], (), ())) is None
    assert without_arguments(example_sentence(["Birds", "!"], (-1, 0), ("nsubj", "punct"))) is None
    assert without_arguments(example_sentence(["Birds", "fly"], (-1, 0), ("nsubj", "obj"))) == (0,)


def test_the_first_half_is_left_of_a_cut_sentence():
    words = "abcde"
    halves = [cut(example_sentence(words[:n], (), ())) for n in (1, 2, 3, 4, 5)]
    assert halves == [None, (0,), (0, 1), (0, 1), (0, 1, 2)]


def test_a_sentence_is_always_shuffled_in_the_same_way():
    order = shuffled(example_sentence())
    assert order == (10, 5, 0, 3, 6, 1, 4, 8, 7, 2, 9)
    assert sorted(order) == list(range(11))
    # Whatever it says, since other annotation or another case does not change its id.
    assert shuffled(example_sentence([word.lower() for word in WORDS], (), ())) == order
    orders = {shuffled(example_sentence(name=f"s{i}")) for i in range(100)}
    assert len(orders) == 100
    # Each word is as likely anywhere: of 2,000 sentences 500 ± 19 begin with any of four.
    first = [shuffled(example_sentence("abcd", (), (), f"t{i}")) or (0,) for i in range(2000)]
    assert all(430 < [x[0] for x in first].count(k) < 570 for k in range(4))
    assert shuffled(example_sentence("a", (), ())) is None


def test_a_span_survives_where_its_words_stay_side_by_side_and_in_order():
    order = (4, 5, 6, 1, 3, 2)
    assert moved((4, 7), order) == (0, 3)
    assert moved((5, 6), order) == (1, 2)
    assert moved((2, 3), order) == (5, 6)
    for lost in ((1, 4), (2, 4), (6, 8), (0, 1), (0, 2), (1, 3)):
        assert moved(lost, order) is None
    assert moved((3, 4), (3,)) == (0, 1)
    assert moved((3, 5), (3,)) is None


def named(name, text, document="", feats=None):
    """A sentence in which capitalised words are proper nouns; mentions by type, feats by word."""
    words, spans = bracketed(text)
    tags = tuple("PROPN" if word[0].isupper() else "NOUN" for word in words)
    every = tuple({"Number": (feats or {}).get(word, "Sing")} for word in words)
    mentions = tuple(Mention(f"e{i}", kind, span) for i, (kind, span) in enumerate(spans))
    return Sentence(name, "en", words, upos=tags, feats=every, mentions=mentions, document=document)


def test_names_are_replaced_by_others_of_their_type_length_and_morphology():
    train = (
        named("a", "[person Ann Lee] met [person Bob] in Paris"),
        # The city of the shortest mention around it, not of the person that it is said of.
        named("b", "[person men of [place Rome]] saw [person Eve]"),
        named("c", "[person the Smiths of [place Rome]]", feats={"Smiths": "Plur"}),
    )
    replace = OtherNames(corpus_of(train, (), ()))

    def of(text, **more):
        return replace(named("t", text, **more))

    # Alone of its kind, as are "Ann Lee" of two words, "Smiths" and, without a type, "Paris".
    assert of("[person Ann Lee] saw") is None
    assert of("[person Bob] saw") == Changed(("Eve", "saw"), (0, 1))
    assert of("[person Eve] saw [person Bob]").words == ("Bob", "saw", "Eve")
    assert of("[person Zed] saw").words[0] in ("Bob", "Eve")
    assert of("[place Rome]") is None
    assert of("[place Milan]").words == ("Rome",)
    assert of("[person Joneses]", feats={"Joneses": "Plur"}).words == ("Smiths",)
    assert of("[place Joneses]", feats={"Joneses": "Plur"}) is None
    assert of("no name") is None
    # The same name in all sentences of a document; in many documents either.
    names = [{of("[person Zed]", document=f"d{i}").words for _ in range(2)} for i in range(99)]
    assert all(len(same) == 1 for same in names)
    assert set.union(*names) == {("Bob",), ("Eve",)}
