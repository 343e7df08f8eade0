"""The join of UD English-EWT with the PropBank release."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from probes.data.conllu_files import read_conllu
from probes.data.ewt_join import (
    JOINED,
    NO_DOCUMENT,
    NO_SENTENCE,
    OTHER_LENGTH,
    OTHER_TAGS,
    JoinCounts,
    join,
)
from probes.data.propbank import Skeleton, Tree, read_skeletons
from probes.data.sentence import ROOT, SPLITS, Frame, Sentence
from probes.tasks.constituents import constituent, top_constituents
from probes.tasks.srl import srl
from probes.tasks.task import Example

TREE = Tree("TOP", 0, 2, (Tree("S", 0, 2, (Tree("NP", 0, 1, (0,)), Tree("VP", 1, 2, (1,)))),))
FRAME = Frame("bark.01", (1, 2), (("ARG0", (0, 1)),))
SKELETON = Skeleton(("NNS", "VBP"), TREE, (FRAME,))


def sentence(id: str, words: str = "Dogs bark", xpos: str = "NNS VBP") -> Sentence:
    return Sentence(id, "en", tuple(words.split()), xpos=tuple(xpos.split()))


def test_a_sentence_takes_chunks_and_frames_and_keeps_the_rest() -> None:
    (joined,), counts = join([sentence("reviews-007-0001")], {"reviews-007": [SKELETON]})
    assert joined == Sentence(
        "reviews-007-0001",
        "en",
        ("Dogs", "bark"),
        xpos=("NNS", "VBP"),
        chunks=("B-NP", "B-VP"),
        frames=(FRAME,),
    )
    assert joined.constituents == TREE.constituents()
    assert +counts == {JOINED: 1}


@pytest.mark.parametrize(
    ("unlike", "reason"),
    [
        (sentence("email-007-0001"), NO_DOCUMENT),
        (sentence("nonsense"), NO_DOCUMENT),
        (sentence("reviews-007-0000"), NO_SENTENCE),
        (sentence("reviews-007-0002"), NO_SENTENCE),
        (sentence("reviews-007-last"), NO_SENTENCE),
        (sentence("reviews-007-0001", "Dogs bark .", "NNS VBP ."), OTHER_LENGTH),
        (sentence("reviews-007-0001", xpos="JJ NN"), OTHER_TAGS),
        (sentence("reviews-007-0001", xpos=""), OTHER_TAGS),
    ],
)
def test_a_sentence_that_does_not_join_stays_as_it_is_and_is_counted(
    unlike: Sentence, reason: str
) -> None:
    (same,), counts = join([unlike], {"reviews-007": [SKELETON]})
    assert same is unlike
    assert +counts == {reason: 1}


def test_half_of_the_tags_suffice() -> None:
    _, counts = join([sentence("reviews-007-0001", xpos="NNS NN")], {"reviews-007": [SKELETON]})
    assert counts[JOINED] == 1


@pytest.fixture(scope="module")
def ewt(real_data: Path) -> dict[str, tuple[list[Sentence], JoinCounts]]:
    skeletons = read_skeletons(next(real_data.rglob("propbank-release-*.tar.gz")))
    return {
        split: join(
            read_conllu(next(real_data.rglob(f"en_ewt-ud-{split}.conllu")), "en"), skeletons
        )
        for split in SPLITS
    }


@pytest.mark.slow
@pytest.mark.real_data
def test_what_joins(ewt: dict[str, tuple[list[Sentence], JoinCounts]]) -> None:
    total: JoinCounts = Counter()
    for sentences, counts in ewt.values():
        assert counts[JOINED] == sum(bool(s.chunks) for s in sentences)
        assert all(len(s.chunks) == len(s) for s in sentences if s.chunks)
        total += counts
    # 16,550 have as many words as their skeleton; five of these are all but retagged.
    assert total == {
        JOINED: 16545,
        NO_DOCUMENT: 43,
        NO_SENTENCE: 1,
        OTHER_LENGTH: 28,
        OTHER_TAGS: 5,
    }


@pytest.mark.real_data
def test_predicates_and_roles(ewt: dict[str, tuple[list[Sentence], JoinCounts]]) -> None:
    frames = [f for sentences, _ in ewt.values() for s in sentences for f in s.frames]
    assert len(frames) == 50182
    assert sum(f.predicate[1] - f.predicate[0] > 1 for f in frames) == 808
    assert sum(all(label == "C-V" for label, _ in f.arguments) for f in frames) == 8611
    roles = {
        split: Counter(e.label for s in sentences for e in srl(s) if isinstance(e, Example))
        for split, (sentences, _) in ewt.items()
    }
    assert {split: count.total() for split, count in roles.items()} == {
        "train": 81255,
        "dev": 9563,
        "test": 9321,
    }
    assert len(roles["train"]) == 57


@pytest.mark.real_data
def test_constituents(ewt: dict[str, tuple[list[Sentence], JoinCounts]]) -> None:
    found = {
        split: [e for s in sentences if s.constituents for e in constituent(s)]
        for split, (sentences, _) in ewt.items()
    }
    assert {split: len(examples) for split, examples in found.items()} == {
        "train": 168623,
        "dev": 20488,
        "test": 20275,
    }
    # As many as the release has nodes, without roots, a unary chain counting as many as it has.
    labels = Counter(x for examples in found.values() for e in examples for x in e.label.split("+"))
    nodes = [c for sentences, _ in ewt.values() for s in sentences for c in s.constituents]
    assert labels == Counter(c.label for c in nodes if c.parent != ROOT)
    top = [e for s in ewt["test"][0] if s.constituents for e in top_constituents(s)]
    kept = Counter(e.label for e in top if isinstance(e, Example))
    assert (len(top), kept.total(), kept["NP_VP_."], kept["OTHER"]) == (2056, 1098, 504, 323)


@pytest.mark.real_data
def test_chunks(ewt: dict[str, tuple[list[Sentence], JoinCounts]]) -> None:
    tags = [tag for sentences, _ in ewt.values() for s in sentences for tag in s.chunks]
    types = Counter(tag.partition("-")[2] or tag for tag in tags)
    share = {type_: round(n / len(tags), 3) for type_, n in types.items()}
    assert len(tags) == 254034
    assert share == {
        "NP": 0.497,
        "VP": 0.192,
        "O": 0.141,
        "PP": 0.087,
        "ADVP": 0.035,
        "ADJP": 0.025,
        "SBAR": 0.014,
        "INTJ": 0.004,
        "PRT": 0.003,
        "CONJP": 0.001,
        "LST": 0.001,
        "UCP": 0.0,
    }


@pytest.mark.real_data
def test_opening_brackets_begin_chunks_in_telephone_numbers_and_list_markers_only(
    ewt: dict[str, tuple[list[Sentence], JoinCounts]],
) -> None:
    chunked = [s for s in ewt["test"][0] if s.chunks]
    places = [(s, i) for s in chunked for i, tag in enumerate(s.xpos) if tag == "-LRB-"]
    found = Counter(s.chunks[i] for s, i in places)
    # 57 of the 113 began a noun chunk when brackets in front of a whole phrase were part of it.
    assert found == {"O": 85, "B-NP": 18, "I-NP": 7, "B-LST": 3}
    for sentence, i in places:
        if sentence.chunks[i] == "B-NP":
            assert sentence.words[i + 1].isdecimal()
            assert sentence.words[i + 2] == ")"
