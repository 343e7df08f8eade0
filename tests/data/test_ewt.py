"""The English Web Treebank: skeletons of PropBank, ratings of UDS, and their join with UD."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.data.chunks import Tree
from probes.data.ewt import (
    IDS,
    JOINED,
    NO_DOCUMENT,
    NO_RATED_SENTENCE,
    NO_SENTENCE,
    OTHER_LENGTH,
    OTHER_TAGS,
    RATED_ANEW,
    RATINGS_JOINED,
    SUBSPACES,
    Skeleton,
    Skeletons,
    join_propbank,
    join_ratings,
    read_ratings,
    read_skeletons,
)
from probes.data.find import find_corpus
from probes.data.sentence import ROOT, SPLITS, Corpus, Frame, Rating, Sentence
from probes.frames.record_status import why_outdated
from probes.tasks.constituents import constituent, top_constituents
from probes.tasks.srl import srl
from probes.tasks.task import Example

GOOD = """\
google/ewt/reviews/00/007.xml 0 0 [WORD] PRP (TOP(S(NP*) - -         (ARG0*) (ARG0*)
google/ewt/reviews/00/007.xml 0 1 [WORD] VBD (VP*        give give.01 (V* *
google/ewt/reviews/00/007.xml 0 2 [WORD] RP  (PRT*)      - -         *) *
google/ewt/reviews/00/007.xml 0 3 [WORD] VBG (S(VP*))    try try.01   (ARG1*) (V*)
google/ewt/reviews/00/007.xml 0 4 [WORD] RB  (ADVP*))    - -         (C-V*) (R-ARGM-TMP*)
google/ewt/reviews/00/007.xml 0 5 [WORD] .   *))         - -         * *

google/ewt/reviews/00/007.xml 1 0 [WORD] UH  (TOP(INTJ*)) - -
"""


def read(content: str) -> Skeletons:
    return read_skeletons({"reviews/00/007.xml.gold_skel": content.encode()})


def test_a_skeleton():
    first, second = read(GOOD)["reviews-007"]
    assert first.tags == ("PRP", "VBD", "RP", "VBG", "RB", ".")
    parts = Tree("PRT", 2, 3, (2,)), Tree("S", 3, 4, (Tree("VP", 3, 4, (3,)),))
    verb_phrase = Tree("VP", 1, 5, (1, *parts, Tree("ADVP", 4, 5, (4,))))
    clause = Tree("S", 0, 6, (Tree("NP", 0, 1, (0,)), verb_phrase, 5))
    assert first.tree == Tree("TOP", 0, 6, (clause,))
    assert first.frames == (
        Frame("give.01", (1, 3), (("ARG0", (0, 1)), ("ARG1", (3, 4)), ("C-V", (4, 5)))),
        Frame("try.01", (3, 4), (("ARG0", (0, 1)), ("R-ARGM-TMP", (4, 5)))),
    )
    assert second == Skeleton(("UH",), Tree("TOP", 0, 1, (Tree("INTJ", 0, 1, (0,)),)), ())


@pytest.mark.parametrize(
    ("damage", "replacement", "message"),
    [
        ("(PRT*)      - -         *) *", "(PRT*)      - -         *)", "9 columns instead of 10"),
        ("0 2 [WORD]", "0 3 [WORD]", "word '3' instead of sentence 0, word 2"),
        ("1 0 [WORD]", "2 0 [WORD]", "sentence '2'"),
        ("(S(VP*))", "(S(VP*", r"\(S is not closed"),
        ("(S(VP*))", "(S(VP*))))))", "unmatched closing bracket at word 3"),
        ("(TOP(INTJ*))", "(TOP(INTJ*)", r"\(TOP is not closed"),
        ("(TOP(INTJ*))", "*", "not form a single tree"),
        ("(TOP(INTJ*))", "(TOP(INTJ))", "not valid bracketing"),
        ("try try.01", "try -", "1 predicates, but 2 columns"),
        ("(V*)", "(ARG2*)", "try.01 has 0 V brackets"),
        ("(V* *", "(V* (V*)", "try.01 has 2 V brackets"),
    ],
)
def test_damage_is_reported_with_member_and_line(damage, replacement, message):
    assert GOOD.count(damage) == 1
    with pytest.raises(UserError, match=message) as raised:
        read(GOOD.replace(damage, replacement))
    assert "reviews/00/007.xml.gold_skel, line " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_text_that_is_not_utf8():
    with pytest.raises(UserError, match=r"x\.gold_skel: not UTF-8 at byte 7"):
        read_skeletons({"x.gold_skel": b"google \xff"})


TREE = Tree("TOP", 0, 2, (Tree("S", 0, 2, (Tree("NP", 0, 1, (0,)), Tree("VP", 1, 2, (1,)))),))
FRAME = Frame("bark.01", (1, 2), (("ARG0", (0, 1)),))
SKELETON = Skeleton(("NNS", "VBP"), TREE, (FRAME,))


def tagged(id: str, words: str = "Dogs bark", xpos: str = "NNS VBP") -> Sentence:
    return Sentence(id, "en", tuple(words.split()), xpos=tuple(xpos.split()))


def test_a_sentence_takes_chunks_and_frames_and_keeps_the_rest():
    (joined,), counts = join_propbank([tagged("reviews-007-0001")], {"reviews-007": [SKELETON]})
    given, read = tagged("reviews-007-0001"), {"chunks": ("B-NP", "B-VP"), "frames": (FRAME,)}
    assert joined == replace(given, **read)
    assert joined.constituents == TREE.constituents()
    assert +counts == {JOINED: 1}
    half = tagged("reviews-007-0001", xpos="NNS NN")
    assert join_propbank([half], {"reviews-007": [SKELETON]})[1][JOINED] == 1


@pytest.mark.parametrize(
    ("unlike", "reason"),
    [
        (tagged("email-007-0001"), NO_DOCUMENT),
        (tagged("nonsense"), NO_DOCUMENT),
        (tagged("reviews-007-0000"), NO_SENTENCE),
        (tagged("reviews-007-0002"), NO_SENTENCE),
        (tagged("reviews-007-last"), NO_SENTENCE),
        (tagged("reviews-007-0001", "Dogs bark .", "NNS VBP ."), OTHER_LENGTH),
        (tagged("reviews-007-0001", xpos="JJ NN"), OTHER_TAGS),
        (tagged("reviews-007-0001", xpos=""), OTHER_TAGS),
    ],
)
def test_a_sentence_that_does_not_join_stays_as_it_is_and_is_counted(unlike, reason):
    (same,), counts = join_propbank([unlike], {"reviews-007": [SKELETON]})
    assert same is unlike
    assert +counts == {reason: 1}


@pytest.fixture(scope="module")
def ewt(real_data):
    return find_corpus("ewt", data_dir=real_data, offline=True).load()


@pytest.mark.real_data
def test_annotation_of_the_release(ewt):
    frames = [frame for s in ewt for frame in s.frames]
    assert len(frames) == 50182
    assert sum(f.predicate[1] - f.predicate[0] > 1 for f in frames) == 808
    assert sum(all(label == "C-V" for label, _ in f.arguments) for f in frames) == 8611
    parts = [ewt.splits[split] for split in SPLITS]
    roles = [
        Counter(e.label for s in part for e in srl(s) if hasattr(e, "label")) for part in parts
    ]
    assert [count.total() for count in roles] == [81255, 9563, 9321]
    assert len(roles[0]) == 57
    phrases = [[e.label for s in x if s.constituents for e in constituent(s)] for x in parts]
    assert list(map(len, phrases)) == [168623, 20488, 20275]
    # As many as the release has nodes, without roots, a unary chain counting as many as it has.
    nodes = Counter(c.label for s in ewt for c in s.constituents if c.parent != ROOT)
    assert Counter(x for part in phrases for label in part for x in label.split("+")) == nodes
    top = [e for s in ewt.splits["test"] if s.constituents for e in top_constituents(s)]
    kept = Counter(e.label for e in top if isinstance(e, Example))
    assert (len(top), kept.total(), kept["NP_VP_."], kept["OTHER"]) == (2056, 1098, 504, 323)


@pytest.mark.real_data
def test_chunks_of_the_release(ewt):
    tags = [tag for s in ewt for tag in s.chunks]
    types = Counter(tag.partition("-")[2] or tag for tag in tags)
    share = {type_: round(n / len(tags), 3) for type_, n in types.items() if n > 1000}
    assert len(tags) == 254034
    assert share == {"NP": 0.497, "VP": 0.192, "O": 0.141, "PP": 0.087, "ADVP": 0.035,
                     "ADJP": 0.025, "SBAR": 0.014}  # fmt: skip
    brackets = [
        (s, i) for s in ewt.splits["test"] if s.chunks for i, x in enumerate(s.xpos) if x == "-LRB-"
    ]
    # 57 of the 113 began a noun chunk when brackets in front of a whole phrase were part of it.
    assert Counter(s.chunks[i] for s, i in brackets) == {"O": 85, "B-NP": 18, "I-NP": 7, "B-LST": 3}
    numbers = [s.words[i + 1 : i + 3] for s, i in brackets if s.chunks[i] == "B-NP"]
    assert all(number.isdecimal() and closing == ")" for number, closing in numbers)


NODE = "ewt-train-1-semantics-"


def values(**of: float) -> dict[str, dict[str, float]]:
    return {
        name.replace("_", "-"): {"value": value, "confidence": 1.0} for name, value in of.items()
    }


NODES: dict[str, dict[str, dict[str, Any]]] = {
    "protoroles": {
        f"{NODE}pred-2%%{NODE}arg-1": {"protoroles": values(volition=1.2, partitive=-0.0)}
    },
    "factuality": {
        f"{NODE}pred-2": {"factuality": values(factual=-1.1)},
        f"{NODE}subpred-1": {"subpredof": f"{NODE}arg-0", "factuality": values(factual=0.9)},
    },
    "genericity": {
        f"{NODE}predhead-2": {"headof": f"{NODE}pred-2", "genericity": values(arg_kind=0.3)}
    },
    "wordsense": {},
}


def written(folder: Path, nodes: dict[str, Any] = NODES, graph: str = "ewt-train-1") -> Any:
    """The files of a release with annotation of one sentence."""
    about = {"document_id": "reviews-1", "sentence_id": "reviews-1-0001"}
    files = {IDS: folder / "ud_ids.json", **{name: folder / f"{name}.zip" for name in SUBSPACES}}
    files[IDS].write_text(json.dumps({"ewt-train-1": about}))
    for name in SUBSPACES:
        with zipfile.ZipFile(files[name], "w") as archive:
            content = {"metadata": {}, "data": {graph: nodes[name]} if nodes[name] else {}}
            archive.writestr(f"{name}.json", json.dumps(content))
    return files


RATINGS = (
    # Of words from 0, the predicate first, by subspace and place.
    Rating("protoroles", (1, 0), {"volition": 1.2, "partitive": 0.0}),
    Rating("factuality", (0,), {"factual": 0.9}),
    Rating("factuality", (1,), {"factual": -1.1}),
    Rating("genericity", (1,), {"arg-kind": 0.3}),
)


def test_ratings_are_of_the_words_that_nodes_and_edges_name(tmp_path):
    found = read_ratings(written(tmp_path))
    assert {name: tuple(its) for name, its in found.items()} == {"reviews-1-0001": RATINGS}
    holding = [rating.holding for rating in RATINGS]
    assert holding == [("volition",), ("factual",), (), ("arg-kind",)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graph": "ewt-dev-7"}, r"protoroles.zip: .*'ewt-train-1.*' is no word of 'ewt-dev-7'"),
        ({"nodes": {**NODES, "wordsense": {f"{NODE}arg-0": {}}}}, r"zip: .*arg-0' is no word of"),
        ({"nodes": {**NODES, "wordsense": {f"{NODE}arg-1": {}}}}, r"zip: .*KeyError: 'wordsense'"),
        ({"nodes": {**NODES, "wordsense": {f"{NODE}arg-1": {"wordsense": {"act": 1}}}}}, r"wordsense.zip: .*TypeError"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_format_is_named(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        read_ratings(written(tmp_path, **change))


def test_a_damaged_archive_is_named(tmp_path):
    files = written(tmp_path)
    files["genericity"].write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"genericity.zip: not the normalised annotation of UDS"):
        read_ratings(files)


def test_ratings_join_unless_the_words_are_others_and_all_are_counted():
    splits = {
        "train": [tagged("a-0001"), tagged("a-0002")],
        "dev": [tagged("b-0001")],  # of a document that PropBank's release lacks
        "test": [tagged("a-0003")],  # without a rating
    }
    one = [Rating("factuality", (1,), {"factual": 1.0})]
    ratings = {"a-0001": one, "a-0002": [*one, *one], "b-0001": one, "gone-0001": one}
    longer = replace(SKELETON, tags=("NN",) * 3)
    skeletons = {"a": [SKELETON, longer, longer]}
    joined, counts = join_ratings(splits, skeletons, ratings)
    found = {split: [s.ratings for s in part] for split, part in joined.items()}
    assert found == {"train": [tuple(one), ()], "dev": [tuple(one)], "test": [()]}
    assert counts == {RATINGS_JOINED: 2, RATED_ANEW: 2, NO_RATED_SENTENCE: 1}


def test_a_rating_beyond_the_last_word_is_an_error():
    ratings = {"a-0001": [Rating("factuality", (2,), {"factual": 1.0})]}
    with pytest.raises(UserError, match="'a-0001': UDS rates its word 3, but it has 2"):
        join_ratings({"train": [tagged("a-0001")]}, {}, ratings)


def test_ratings_are_no_part_of_the_fingerprint_but_of_the_key_of_who_reads_them():
    plain = tagged("a-0001")
    rated = Sentence(plain.id, "en", plain.words, xpos=plain.xpos, ratings=RATINGS)
    splits = [{"train": (s,), "dev": (), "test": ()} for s in (plain, rated)]
    one, other = (Corpus("c", "1", "", x) for x in splits)
    assert one.fingerprint == other.fingerprint
    assert (one.layers, other.layers) == ({"xpos"}, {"xpos", "ratings"})


@pytest.fixture
def without_uds(real_data, tmp_path):
    """A folder with the files of `ewt` alone."""
    for name in ("ud-english-ewt-r2.16", "propbank-ewt"):
        (tmp_path / name).symlink_to(real_data / name)
    return tmp_path


@pytest.mark.real_data
def test_without_its_files_ewt_is_what_it_was(real_data, without_uds, tmp_path):
    folders = (real_data, without_uds)
    full, bare = (
        find_corpus("ewt", data_dir=x, offline=True, cache_dir=tmp_path / "cache") for x in folders
    )
    assert full.layers is not None
    assert bare.layers is not None
    assert full.layers - bare.layers == {"ratings"}
    # That of the published results.
    assert full.digest == bare.digest == bare.digest_for(["ratings"])
    assert full.digest.startswith("dcf02ed582a6d877")
    assert full.digest_for(["upos"]) == full.digest != full.digest_for(["ratings"])
    assert (full.absent, bare.absent) == (frozenset(), {"ratings"})
    assert bare.why_missing(["ratings"]) == (
        "ewt has no ratings yet (`python -m probes fetch ewt` gets them)"
    )
    with pytest.raises(UserError, match=r"factuality.zip, .*wordsense.zip not found"):
        find_corpus(
            "ewt", data_dir=without_uds, offline=True, cache_dir=tmp_path / "cache", complete=True
        )


@pytest.mark.real_data
def test_the_whole_release_is_joined_or_counted(ewt):
    counts = {
        # 16,550 have as many words as their skeleton; five of these are all but retagged.
        **{JOINED: 16545, NO_DOCUMENT: 43, NO_SENTENCE: 1, OTHER_LENGTH: 28, OTHER_TAGS: 5},
        **{RATINGS_JOINED: 125_342, NO_RATED_SENTENCE: 0, RATED_ANEW: 225},
        "sentences without complete chunks": 77,
        "dev sentences that also occur in train": 68,
        "test sentences that also occur in train": 94,
    }
    assert ewt.notes == counts
    assert counts[RATINGS_JOINED] + counts[RATED_ANEW] == 7_090 + 27_403 + 70_054 + 21_020
    joined = Counter(rating.subspace for s in ewt for rating in s.ratings)
    assert joined == {
        "protoroles": 7_076,  # 14 left out, 11 of them of the 6,088 pairs with 14 properties
        "factuality": 27_356,  # 47 of 27,403
        "genericity": 69_934,  # 120 of 70,054
        "wordsense": 20_976,  # 44 of 21,020
    }


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("subspace", "place", "share", "tags"),
    [
        ("factuality", 0, 0.99, {"VERB", "AUX"}),
        ("protoroles", 0, 0.99, {"VERB", "AUX"}),
        ("protoroles", 1, 0.96, {"NOUN", "PROPN", "PRON"}),
        ("wordsense", 0, 0.97, {"NOUN"}),
    ],
)
def test_the_words_are_those_that_were_rated(ewt, subspace, place, share, tags):
    """A shift by one word would give an article or a preposition as often as a noun."""
    found = [
        s.upos[r.words[place]] in tags for s in ewt for r in s.ratings if r.subspace == subspace
    ]
    assert sum(found) / len(found) > share


@pytest.mark.slow
@pytest.mark.real_data
def test_results_of_its_tasks_are_known_as_of_this_version(real_data, tiny_bert, tmp_path):
    settings = {"corpus": "ewt", "data_dir": real_data, "offline": True, "layers": "0"}
    results = run(tiny_bert, tmp_path, tasks="factuality,pos", probes="linear", **settings)
    outdated = {result.task.name: why_outdated(result) for result in results.results}
    assert outdated == {"factuality": "", "pos": ""}
    of_task = {result.task.name: bool(result.corpus.digest_of_task) for result in results.results}
    assert of_task == {"factuality": True, "pos": False}
