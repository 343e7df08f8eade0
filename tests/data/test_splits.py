"""Splits: in names, cut, overlapping."""

import pytest

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.data.splits import (
    cut_missing_splits,
    overlap,
    require_splits,
    split_in_name,
    with_distinct_ids,
    without_overlap,
)


def sentences(*texts, document=""):
    return tuple(
        Sentence(id=f"{document}{i}", language="en", words=tuple(text.split()), document=document)
        for i, text in enumerate(texts)
    )


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("en_ewt-ud-train", ("en_ewt-ud", "train", "")),
        ("de_hdt-ud-train-a-1", ("de_hdt-ud", "train", "a-1")),
        ("test", ("", "test", "")),
        ("my.validation", ("my", "dev", "")),
        ("train-00000-of-00001", ("", "train", "00000-of-00001")),
        ("test-suite-dev", ("test-suite", "dev", "")),
        ("contest", None),
        ("trainings", None),
    ],
)
def test_splits_stand_in_file_names(stem, expected):
    assert split_in_name(stem) == expected


def test_a_missing_split_is_named_with_the_remedy():
    require_splits(["train", "dev", "test"], None, "c")
    require_splits(["test"], "sentence", "c")
    with pytest.raises(UserError) as caught:
        require_splits(["test"], None, "c")
    assert str(caught.value).startswith("c: has test, but no train or dev split; add the files")
    assert str(caught.value).endswith("--split-by document (or sentence) to divide all sentences.")
    with pytest.raises(UserError, match="to cut it from train"):
        require_splits(["train", "test"], None, "c")


def test_dev_is_cut_from_the_end_of_train():
    train = sentences(*map(str, range(21)))
    parts, notes = cut_missing_splits({"train": train, "test": sentences("x")}, "sentence", "c")
    assert (len(parts["train"]), len(parts["dev"])) == (18, 3)  # a tenth, rounded up
    assert parts["train"] + parts["dev"] == train
    assert notes == {"dev sentences cut from train, by sentence": 3}


def test_dev_and_test_without_train_are_cut_together():
    dev = sentences(*map(str, range(12)))
    parts, notes = cut_missing_splits({"dev": dev, "test": sentences(*"abcdefgh")}, "sentence", "c")
    assert "".join(s.words[0] for s in parts["test"]) == "gh"
    assert "".join(s.words[0] for s in parts["dev"]) == "ef"
    assert len(parts["train"]) == 16
    assert notes == {f"{x} sentences cut from all, by sentence": 2 for x in ("test", "dev")}


def test_documents_stay_whole():
    documents = [sentences("a", "b", "c", document=f"d{i}") for i in range(10)]
    parts, _ = cut_missing_splits({"train": sum(documents, ())}, "document", "c")
    assert [s.document for s in parts["test"]] == ["d9"] * 3
    assert [s.document for s in parts["dev"]] == ["d8"] * 3


@pytest.mark.parametrize(
    ("part", "split_by", "message"),
    [
        (sentences("a", "b", "c", "d"), "document", "has no document boundaries; use --split"),
        (sentences("a", "b", document="d"), "document", "too few documents"),
        (sentences("a", "b"), "sentence", "too few sentences"),
    ],
)
def test_what_cannot_be_cut_is_an_error(part, split_by, message):
    with pytest.raises(UserError, match=message):
        cut_missing_splits({"train": part}, split_by, "c")


def test_overlap_is_counted_and_dropped_from_train_only():
    parts = {"train": sentences("a b", "c", "a b", "d"), "dev": sentences("c")}
    parts["test"] = sentences("a b", "e", "a b")
    counts = {"dev": 1, "test": 2}
    assert overlap(parts) == {
        f"{x} sentences that also occur in train": n for x, n in counts.items()
    }
    splits, notes = without_overlap(parts)
    assert [s.words for s in splits["train"]] == [("d",)]
    assert splits["test"] == parts["test"]
    assert list(notes.values()) == [3]
    with pytest.raises(UserError, match="--drop-overlap"):
        without_overlap({"train": sentences("a"), "dev": (), "test": sentences("a")})


def test_ids_that_restart_get_the_name_of_the_file():
    one, other = sentences("a b", "c", document="d"), sentences("e f", "c", document="d")
    assert with_distinct_ids({"x.conllu": one}) == {"x.conllu": one}
    found = with_distinct_ids({"f/x.conllu": one, "f/y.conllu": other})
    assert [s.id for part in found.values() for s in part] == ["x-d0", "x-d1", "y-d0", "y-d1"]
    assert [s.document for part in found.values() for s in part] == ["x-d", "x-d", "y-d", "y-d"]
    assert [s.words for s in found["f/y.conllu"]] == [("e", "f"), ("c",)]
    for parts in ({"x.conllu": one, "y.conllu": one}, {"f/x.conllu": one, "g/x.conllu": other}):
        name = list(parts)[1]
        with pytest.raises(UserError, match=f"{name}: the sent_id 'd0' also occurs in .*x.conllu"):
            with_distinct_ids(parts)
