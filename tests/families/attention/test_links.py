"""Links of predicates and arguments, and their controls, against placements written out by hand."""

import pytest

from probes.data.find import find_corpus
from probes.data.sentence import Frame, Sentence
from probes.extraction.views import plain_text
from probes.families.attention.links import Link, digest_of, links_of, text_links


def sentence(n, *frames, words=None):
    words = words or tuple(f"w{i}" for i in range(n))
    return Sentence("s", "en", words, frames=tuple(frames))


def frame(predicate, **arguments):
    """With underscores for hyphens in the names of roles."""
    found = tuple((role.replace("_", "-"), span) for role, span in arguments.items())
    return Frame("v.01", predicate, found)


WITH_TWO = sentence(8, frame((3, 4), ARG0=(0, 2), ARG1=(5, 6), ARGM_TMP=(7, 8)))


def placements(links, number):
    """Pairs of each placement of a link, by whether it is a control."""
    found = {False: [], True: []}
    for place, link in enumerate(links.link):
        if link == number:
            its = links.placement == place
            pairs = list(zip(links.row[its], links.column[its], strict=True))
            found[bool(links.control[place])].append(pairs)
    return found


@pytest.mark.parametrize(
    ("role", "span", "linked"),
    [
        ("ARG0", (0, 1), True),
        ("ARG5", (0, 1), True),
        ("ARG6", (0, 1), False),
        ("ARGM-LOC", (0, 1), False),
        ("C-ARG1", (0, 1), False),
        ("R-ARG0", (0, 1), False),
        ("ARG1", (0, 3), True),
        ("ARG1", (1, 4), True),  # one word between
        ("ARG1", (2, 5), False),  # neighbours
        ("ARG1", (0, 4), False),  # four words
        ("ARG1", (6, 8), False),  # neighbours
        ("ARG1", (7, 8), True),
        ("ARG1", (5, 6), False),  # the predicate itself
        ("ARG1", (4, 6), False),  # overlaps
    ],
)
def test_core_arguments_that_are_short_and_not_next_to_their_predicate(role, span, linked):
    found = links_of(sentence(9, Frame("v.01", (5, 6), ((role, span),))))
    assert found == ([Link(role, span, (5, 6))] if linked else [])


def test_controls_are_all_other_places_where_nothing_is_linked():
    (its,) = text_links([WITH_TWO]).values()
    assert its.links == (Link("ARG0", (0, 2), (3, 4)), Link("ARG1", (5, 6), (3, 4)))
    first = placements(its, 0)
    assert first[False] == [[(0, 3), (1, 3)]]
    # Two words on, it would hold (3, 5): the predicate and ARG1.
    assert first[True] == [[(1, 4), (2, 4)], [(3, 6), (4, 6)], [(4, 7), (5, 7)]]
    second = placements(its, 1)
    assert second[False] == [[(5, 3)]]
    # Two words back, it would hold (3, 1): the predicate and ARG0.
    assert second[True] == [[(2, 0)], [(4, 2)], [(6, 4)], [(7, 5)]]


def test_arguments_that_are_no_links_are_no_controls_either():
    its = text_links([sentence(6, frame((2, 3), ARG0=(0, 1), ARGM_NEG=(3, 4)))])
    (links,) = its.values()
    # (1, 3) and (3, 5) are free; (2, 4) too, but (0, 2) + 3 is beyond neither.
    assert placements(links, 0)[True] == [[(1, 3)], [(2, 4)], [(3, 5)]]
    neighbours = text_links([sentence(6, frame((2, 3), ARG0=(0, 1), ARGM_NEG=(4, 5)))])
    (links,) = neighbours.values()
    # (2, 4) is the predicate and its negation.
    assert placements(links, 0)[True] == [[(1, 3)], [(3, 5)]]


def test_a_link_that_fills_its_sentence_has_no_control():
    (its,) = text_links([sentence(3, frame((2, 3), ARG0=(0, 1)))]).values()
    assert placements(its, 0) == {False: [[(0, 2)]], True: []}


def test_sentences_of_equal_words_share_their_links():
    one = sentence(5, frame((0, 1), ARG1=(2, 3)))
    other = sentence(5, frame((0, 1), ARG1=(2, 3)), frame((4, 5), ARG0=(1, 2)))
    without = sentence(5)
    found = text_links([without, one, other, without])
    assert list(found) == [plain_text(one)]
    (its,) = found.values()
    assert its.links == (Link("ARG1", (2, 3), (0, 1)), Link("ARG0", (1, 2), (4, 5)))
    # (3, 1) would be one; (4, 2) too. (1, 4) and (4, 1) of the other sentence are no control.
    assert placements(its, 0)[True] == [[(3, 1)], [(4, 2)]]
    assert placements(its, 1)[True] == [[(0, 3)]]


def test_texts_without_links_are_left_out():
    assert text_links([sentence(5), sentence(3, frame((0, 1), ARG1=(1, 2)))]) == {}


def test_the_digest_tells_links_apart_and_is_empty_without_any():
    def digest(*sentences):
        return digest_of(text_links(sentences))

    base = sentence(6, frame((0, 1), ARG1=(2, 3)))
    others = [
        sentence(6, frame((0, 1), ARG2=(2, 3))),
        sentence(6, frame((0, 1), ARG1=(3, 4))),
        sentence(6, frame((1, 2), ARG1=(3, 4))),
        sentence(6, frame((0, 1), ARG1=(2, 3)), frame((1, 2), ARGM_TMP=(3, 4))),  # a control less
        sentence(6, frame((0, 1), ARG1=(2, 3)), words=tuple("abcdef")),
        sentence(6, frame((0, 1), ARG1=(2, 3)), frame((0, 1), ARG1=(4, 5))),
    ]
    assert digest(base) == digest(base, sentence(6))
    assert len({digest(each) for each in (base, *others)}) == 7
    assert digest() == digest(sentence(6)) == ""


@pytest.mark.slow
@pytest.mark.real_data
def test_links_of_ewt(real_data):
    corpus = find_corpus("ewt", data_dir=real_data).load()
    counts = [(len(each), len(links_of(each))) for each in corpus]
    assert sum(n for _, n in counts) == 17966
    assert sum(n > 0 for _, n in counts) == 8958
    # As Kovaleva et al. (2019) confine themselves to.
    assert sum(n for length, n in counts if length <= 12) == 3173
    assert sum(n > 0 for length, n in counts if length <= 12) == 2452
