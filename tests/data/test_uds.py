"""The join of UD English-EWT with the ratings of UDS."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.data import registered
from probes.data.find import find_corpus
from probes.data.propbank import Skeleton, Tree
from probes.data.sentence import SPLITS, Corpus, Rating, Sentence
from probes.data.uds import IDS, JOINED, NO_SENTENCE, OTHER_WORDS, SUBSPACES, join, read_ratings
from probes.examples.examples import collect_examples
from probes.measurements.plugin_keys import is_current
from probes.tasks.builtin import tasks

NODE = "ewt-train-1-semantics-"


def values(**of: float) -> dict[str, dict[str, float]]:
    return {
        name.replace("_", "-"): {"value": value, "confidence": 1.0} for name, value in of.items()
    }


NODES: dict[str, dict[str, dict[str, Any]]] = {
    "protoroles": {
        f"{NODE}pred-2%%{NODE}arg-1": {"protoroles": values(volition=1.2, partitive=-0.0)},
    },
    "factuality": {
        f"{NODE}pred-2": {"factuality": values(factual=-1.1)},
        f"{NODE}subpred-1": {
            "subpredof": f"{NODE}arg-0",
            "factuality": values(factual=0.9),
        },
    },
    "genericity": {
        f"{NODE}predhead-2": {"headof": f"{NODE}pred-2", "genericity": values(arg_kind=0.3)},
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


def test_ratings_are_of_the_words_that_nodes_and_edges_name(tmp_path: Path) -> None:
    found = read_ratings(written(tmp_path))
    assert {name: tuple(its) for name, its in found.items()} == {"reviews-1-0001": RATINGS}
    assert [rating.holding for rating in RATINGS] == [
        ("volition",),
        ("factual",),
        (),
        ("arg-kind",),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graph": "ewt-dev-7"}, r"protoroles.zip: .*'ewt-train-1.*' is no word of 'ewt-dev-7'"),
        ({"nodes": {**NODES, "wordsense": {f"{NODE}arg-0": {}}}}, r"zip: .*arg-0' is no word of"),
        ({"nodes": {**NODES, "wordsense": {f"{NODE}arg-1": {}}}}, r"zip: .*KeyError: 'wordsense'"),
        (
            {"nodes": {**NODES, "wordsense": {f"{NODE}arg-1": {"wordsense": {"act": 1}}}}},
            r"wordsense.zip: .*TypeError",
        ),
    ],
)
def test_what_is_not_of_the_format_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_ratings(written(tmp_path, **change))


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    files = written(tmp_path)
    files["genericity"].write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"genericity.zip: not the normalised annotation of UDS"):
        read_ratings(files)


def skeleton(n_words: int) -> Skeleton:
    return Skeleton(("NN",) * n_words, Tree("TOP", 0, n_words, tuple(range(n_words))), ())


def sentence(name: str, text: str = "Dogs bark") -> Sentence:
    words = tuple(text.split())
    return Sentence(name, "en", words, xpos=("NN",) * len(words))


def test_ratings_join_unless_the_words_are_others_and_all_are_counted() -> None:
    splits = {
        "train": [sentence("a-0001"), sentence("a-0002")],
        "dev": [sentence("b-0001")],  # of a document that PropBank's release lacks
        "test": [sentence("a-0003")],  # without a rating
    }
    one = [Rating("factuality", (1,), {"factual": 1.0})]
    ratings = {"a-0001": one, "a-0002": [*one, *one], "b-0001": one, "gone-0001": one}
    skeletons = {"a": [skeleton(2), skeleton(3), skeleton(3)]}
    joined, counts = join(splits, skeletons, ratings)
    found = {split: [s.ratings for s in part] for split, part in joined.items()}
    assert found == {"train": [tuple(one), ()], "dev": [tuple(one)], "test": [()]}
    assert counts == {JOINED: 2, OTHER_WORDS: 2, NO_SENTENCE: 1}


def test_a_rating_beyond_the_last_word_is_an_error() -> None:
    ratings = {"a-0001": [Rating("factuality", (2,), {"factual": 1.0})]}
    with pytest.raises(UserError, match="'a-0001': UDS rates its word 3, but it has 2"):
        join({"train": [sentence("a-0001")]}, {}, ratings)


def test_ratings_are_no_part_of_the_fingerprint_but_of_the_key_of_who_reads_them() -> None:
    plain = sentence("a-0001")
    rated = Sentence(plain.id, "en", plain.words, xpos=plain.xpos, ratings=RATINGS)
    one, other = (
        Corpus("c", "1", "", {"train": (s,), "dev": (), "test": ()}) for s in (plain, rated)
    )
    assert one.fingerprint == other.fingerprint
    assert (one.layers, other.layers) == ({"xpos"}, {"xpos", "ratings"})


@pytest.fixture
def without_uds(real_data: Path, tmp_path: Path) -> Path:
    """A folder with the files of `ewt` alone."""
    for name in ("ud-english-ewt-r2.16", "propbank-ewt"):
        (tmp_path / name).symlink_to(real_data / name)
    return tmp_path


@pytest.mark.real_data
def test_without_its_files_ewt_is_what_it_was(
    real_data: Path, without_uds: Path, tmp_path: Path
) -> None:
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


@pytest.fixture(scope="module")
def ewt(real_data: Path) -> Corpus:
    return find_corpus("ewt", data_dir=real_data, offline=True).load()


@pytest.mark.slow
@pytest.mark.real_data
def test_the_whole_release_is_joined_or_counted(ewt: Corpus) -> None:
    left_out = {JOINED: 125_342, NO_SENTENCE: 0, OTHER_WORDS: 225}
    assert {name: ewt.notes[name] for name in left_out} == left_out
    assert sum(left_out.values()) == 7_090 + 27_403 + 70_054 + 21_020
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
def test_the_words_are_those_that_were_rated(
    ewt: Corpus, subspace: str, place: int, share: float, tags: set[str]
) -> None:
    """A shift by one word would give an article or a preposition as often as a noun."""
    found = [
        s.upos[r.words[place]] in tags for s in ewt for r in s.ratings if r.subspace == subspace
    ]
    assert sum(found) / len(found) > share


TABLE = "| | train | dev | test |"


@pytest.mark.slow
@pytest.mark.real_data
def test_the_card_counts_what_the_tasks_find(ewt: Corpus) -> None:
    card = (registered.HERE / "cards" / "uds.md").read_text().splitlines()
    lines = [TABLE, "| --- | ---: | ---: | ---: |"]
    for name in (
        "proto-roles",
        "factuality",
        "supersense",
        "argument-genericity",
        "predicate-genericity",
        "sense",
    ):
        found = collect_examples(tasks.get(name), ewt, "masked")
        parts = [found.splits[split] for split in SPLITS]
        rows = {"examples": [len(part.examples) for part in parts]}
        for reason in parts[0].excluded:
            rows[f"left out, {reason}"] = [part.excluded[reason] for part in parts]
        if found.label_sets:
            rows |= {f"`{label}`": list(n) for label, n in found.label_counts.items()}
        for what, counts in rows.items():
            lines.append(f"| {name}: {what} | " + " | ".join(f"{n:,}" for n in counts) + " |")
    start = card.index(TABLE)
    assert card[start : start + len(lines)] == lines


@pytest.mark.slow
@pytest.mark.real_data
def test_results_of_its_tasks_are_known_as_of_this_version(
    real_data: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    results = run(
        tiny_bert,
        tmp_path,
        corpus="ewt",
        data_dir=real_data,
        offline=True,
        tasks="factuality,pos",
        probes="linear",
        layers="0",
    )
    current = {result.task.name: is_current(result) for result in results}
    assert current == {"factuality": True, "pos": True}
    of_task = {result.task.name: bool(result.corpus.digest_of_task) for result in results}
    assert of_task == {"factuality": True, "pos": False}
