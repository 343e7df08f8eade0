"""Tables as other programs write them, and tables in Python."""

import json
import re
from collections import Counter
from decimal import Decimal
from itertools import product

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, List, Value
from killing import ROOT
from table_files import write_rows

from probes.__main__ import main
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.in_memory import is_in_memory, tables_in
from probes.data.labelled import find_columns
from probes.data.sources import CorpusRequest
from probes.tasks.columns import task_of


def write_labels(path, values):
    return write_rows(path, [{"text": f"text {i}", "label": x} for i, x in enumerate(values)])


def labels(path):
    source = find_corpus(str(path), text="text", label=("label",))
    counts = Counter(text.layer("column label")[0] for text in source.load())
    return source.columns["label"].kind, counts, source.identity


WHOLE = "labels of label are whole floats and some are missing"
NA = "label: 20 labels NA, read as a class"
CLASSES, NUMBERS = "classification", "regression"


@pytest.mark.parametrize(
    ("cells", "kind", "expected", "says"),
    [
        (["", "1.0", "2.0", "0.0"], CLASSES, [None, "1", "2", "0"], WHOLE),
        (["0.0", "1.0", "2.0"], NUMBERS, [0, 1, 2], ""),
        (["", "0.5", "1.0"], NUMBERS, [None, 0.5, 1], ""),
        (["NA", "good", "bad"], CLASSES, ["NA", "good", "bad"], NA),
        (["a,b", "1,2", "x"], CLASSES, ["a,b", "1,2", "x"], ""),
    ],
)
def test_cells_of_csv_are_classes_or_numbers(cells, kind, expected, says, tmp_path, capsys):
    found, counts, identity = labels(write_labels(tmp_path / "a.csv", cells * 20))
    assert (found, counts) == (kind, dict.fromkeys(expected, 20))
    said = capsys.readouterr().err
    assert [x for x in (WHOLE, NA) if x in said] == ([says] if says else [])
    assert identity.get("whole floats of label") == ("classes" if says == WHOLE else None)
    # What was read before there were further rules is taken up.
    assert says == WHOLE or list(identity) == ["all 0", "rules for CSV", "--text"]


def test_many_whole_floats_with_a_gap_stay_numbers(tmp_path):
    cells = ["", *(f"{i}.0" for i in range(59))]
    assert labels(write_labels(tmp_path / "a.csv", cells))[0] == NUMBERS


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *(([none, "x", "y"], [None, "x", "y"]) for none in (None, float("nan"), "nan", " ", [])),
        ([["pos"], ["neg"], []], ["pos", "neg", None]),  # as Doccano exports classes
    ],
)
def test_values_of_json_may_be_missing_or_alone_in_a_list(values, expected, tmp_path):
    path = write_labels(tmp_path / "a.jsonl", values * 20)
    assert labels(path)[1] == dict.fromkeys(expected, 20)


@pytest.mark.parametrize("words", ["Haus", "das Haus", "im alten Haus"])
def test_features_joined_by_bars_are_classes(words, tmp_path):
    rows = [{"tokens": words, "feats": f"Case=Nom|Number={x}"} for x in ("Sing", "Plur") * 10]
    corpus = find_corpus(write_rows(tmp_path / "a.csv", rows), task_from=("feats",)).load()
    found = {x.layer("column feats") for x in corpus}
    assert found == {("Case=Nom|Number=Sing",), ("Case=Nom|Number=Plur",)}


def test_classes_are_integers_where_other_files_have_gaps(tmp_path, capsys):
    for split, cells in (("train", "012"), ("dev", ["0.0", "1.0", "2.0", ""]), ("test", "012")):
        write_labels(tmp_path / f"my-{split}.csv", [*cells] * 4)
    kind, found, identity = labels(tmp_path)
    assert (kind, set(found)) == ("classification", {"0", "1", "2", None})
    assert identity["whole floats of label"] == "classes"
    assert WHOLE in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 1.0, 2, None] * 5, {"1": 10, "2": 5, None: 5}),
        ([[1.0, 2.0, float("nan")], [1, 2, 1]] * 10, {"1": 30, "2": 20, None: 10}),
        ([[1, 1.5, None]] * 20, {1.0: 20, 1.5: 20, None: 20}),
        ([[1, 2.0]] * 20, {1.0: 20, 2.0: 20}),
        ([("x", "y"), ("y", "y")] * 10, {"x": 10, "y": 30}),
        ([[np.float32(0.5), np.float32("nan")]] * 20, {0.5: 20, None: 20}),
        ([[np.str_("x"), pandas.NaT]] * 20, {"x": 20, None: 20}),
        ([[np.int64(1), pandas.NA]] * 20, {"1": 20, None: 20}),
        ([np.array([np.True_, pandas.NA], dtype=object)] * 20, {"True": 20, None: 20}),
        ([Decimal("0.5"), Decimal("1"), None, Decimal("2.5")] * 5, {0.5: 5, 1: 5, 2.5: 5, None: 5}),
        ([Decimal("1"), Decimal("2")] * 10, {"1": 10, "2": 10}),
        ([pandas.Interval(0, 1), pandas.Period("2020")] * 10, {"(0, 1]": 10, "2020": 10}),
    ],
)
def test_what_labels_in_python_are(column, expected):
    lists = [len(x) if isinstance(x, (list, tuple, np.ndarray)) else 1 for x in column]
    table = {"tokens": [tuple(map(np.str_, "abc"[:n])) for n in lists], "label": column}
    corpus = in_python(table, text="", task_from=("label",), label=()).load()
    found = Counter(y for x in corpus for y in x.layer("column label"))
    assert found == expected
    assert all(type(word) is str for x in corpus for word in x.words)


@pytest.mark.parametrize("given", ["run --vectors", "show", "board", "cache --cache-dir"])
def test_a_path_that_is_too_long_is_one_line(given, capsys):
    assert main([*given.split(), f"/{'long' * 2000}"]) == 2
    assert re.fullmatch(
        r"error: /(long)*…: the path is too long; name another.\n", capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("edge", "ending"), [*product([" ", "\u00a0", "\u3000", "\u200b"], ["jsonl"]), (" ", "csv"), (" ", "parquet")]
)  # fmt: skip
def test_labels_that_differ_by_spaces_at_their_edges_are_one(edge, ending, tmp_path):
    note = "labels with spaces at their edges, which were removed"
    moods = ["pos", "neg", f"pos{edge}", f"{edge}neg"] * 10
    path = write_labels(tmp_path / f"texts.{ending}", moods)
    _, counts, identity = labels(path)
    assert counts == {"pos": 20, "neg": 20}
    # What had been read with other classes is not taken up.
    assert identity["labels of label"] == "without spaces at their edges"
    notes = find_corpus(path, text="text", label=("label",)).load().notes
    assert notes[f"label: {note}"] == 20
    rows = [{"tokens": ["a", "b", "c"], "tags": ["B-PER", f"I-PER{edge}", f"{edge}O"]}] * 10
    path = write_rows(tmp_path / f"words.{ending}", rows)
    corpus = find_corpus(path, task_from=("tags",)).load()
    assert {x.layer("column tags") for x in corpus} == {("B-PER", "I-PER", "O")}
    # In CSV, plain spaces separate labels.
    n = 0 if (ending, edge) == ("csv", " ") else 20
    assert corpus.notes.get(f"tags: {note}", 0) == n


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("mark", [";", "\t"])
def test_the_remedy_for_other_separators_works(mark, quote, tmp_path):
    path, new = tmp_path / "mine.csv", tmp_path / "new.csv"
    rows = [("text", "label"), *((f"text {i}", f"{i},5") for i in range(30))]
    path.write_text("".join(mark.join(f"{quote}{x}{quote}" for x in row) + "\n" for row in rows))
    with pytest.raises(UserError, match="line 1: columns are separated by") as refused:
        labels(path)
    remedy = re.search(r"in pandas, (.*)\)\.$", str(refused.value))[1]
    exec(f"pandas.{remedy}", {"pandas": pandas, "FILE": path, "NEW": new})
    kind, found, _ = labels(new)
    assert (kind, found) == ("regression", Counter(i + 0.5 for i in range(30)))


IOB1 = [
    ("I-PER", "O", "I-LOC", "I-LOC"),
    ("I-PER", "B-PER", "O", "I-LOC"),
    ("I-LOC", "I-PER", "B-PER", "I-PER"),
]
IOB2 = [("B-PER", "O", "B-LOC", "I-LOC"), ("B-PER", "B-PER", "O", "B-LOC"), ("B-LOC", "B-PER", "B-PER", "I-PER")]  # fmt: skip


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_iob1_has_the_classes_of_a_file_converted_by_hand(ending, tmp_path):
    def read(name, tags):
        rows = [{"tokens": ["a", "b", "c", f"d{i}"], "tags": list(tags[i % 3])} for i in range(30)]
        source = find_corpus(write_rows(tmp_path / f"{name}.{ending}", rows), task_from=("tags",))
        corpus = source.load()
        return source, [x.layer("column tags") for x in corpus], corpus.notes

    one, by_hand = read("iob1", IOB1), read("iob2", IOB2)
    assert one[1] == by_hand[1]
    assert one[2]["tags: tags that continue no chunk, read as beginnings"] == 10 * 6
    tasks = [task_of(source.columns["tags"]) for source, *_ in (one, by_hand)]
    assert [task.metric for task in tasks] == ["span_f1"] * 2
    assert [task.reading for task in tasks] == ["IOB tags, read as BIO", "BIO tags"]
    assert "tags of tags" in one[0].identity
    assert "tags of tags" not in by_hand[0].identity
    # IOB1 without chunks that touch has no B at all.
    _, found, _ = read("bare", [("I-PER", "O", "I-LOC", "O")] * 3)
    assert set(found) == {("B-PER", "O", "B-LOC", "O")}


DOCCANO = [
    {"id": i, "text": f"Ann-Marie sees Oslo {i}.", "label": [[0, 9, "PER"], [15, 19, "LOC"]]}
    for i in range(30)
]
LABEL_STUDIO = [
    {
        "id": row["id"],
        "text": row["text"],
        "label": [{"start": a, "end": b, "text": row["text"][a:b], "labels": [x]} for a, b, x in row["label"]],
        "annotator": 1,
    }
    for row in DOCCANO
]  # fmt: skip


@pytest.mark.parametrize("rows", [DOCCANO, LABEL_STUDIO])
def test_exported_spans_are_refused_with_a_remedy_that_works(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "export.json"  # as the page calls it, whichever wrote it
    path.write_text(json.dumps(rows))
    lines = write_rows(tmp_path / "export.jsonl", rows)
    if rows is DOCCANO:
        path.write_text((tmp_path / "export.jsonl").read_text())
    with pytest.raises(UserError, match=r"docs/corpora.md, Annotation tools\)\.$"):
        labels(lines if rows is DOCCANO else path)
    page = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
    exec(re.search(r"### Annotation tools.*?```python\n(.*?)```", page, re.DOTALL)[1], {})
    source = find_corpus("my.jsonl", task_from=("tags",))
    assert task_of(source.columns["tags"]).reading == "BIO tags"
    (first, *_) = source.load()
    assert first.words == ("Ann", "-", "Marie", "sees", "Oslo", "0", ".")
    assert first.layer("column tags") == ("B-PER", "I-PER", "I-PER", "O", "B-LOC", "O", "O")


def in_python(given, **asked):
    request = CorpusRequest(("in memory",), **{"text": "text", "label": ("label",), **asked})
    return find_columns("in memory", tables_in(given), request)


TEXTS = {"text": [f"text {i}" for i in range(60)], "label": [("x", "y")[i % 2] for i in range(60)]}
NUMBERED = Features({"text": Value("string"), "label": ClassLabel(names=["x", "y"])})


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        {name: np.array(values) for name, values in TEXTS.items()},
        pandas.DataFrame(TEXTS),
        Dataset.from_dict(TEXTS),
        Dataset.from_dict(TEXTS).cast(NUMBERED),
        Dataset.from_dict(TEXTS).with_format("numpy"),
        {name: Dataset.from_dict(TEXTS)[name] for name in TEXTS},
    ],
)
def test_tables_in_python_are_alike(given):
    assert is_in_memory(given)
    found, expected = in_python(given), in_python(pandas.DataFrame(TEXTS))
    assert (found.digest, found.load()) == (expected.digest, expected.load())


def parts(make=dict):
    return {
        split: make({name: values[a:b] for name, values in TEXTS.items()})
        for split, a, b in (("train", 0, 20), ("validation", 20, 40), ("test", 40, 60))
    }


@pytest.mark.parametrize(
    "given", [parts(), parts(pandas.DataFrame), DatasetDict(parts(Dataset.from_dict))]
)
def test_splits_of_tables_in_python_are_kept(given, capsys):
    assert is_in_memory(given)
    given["unsupervised"] = given["all"] = given["train"]
    corpus = in_python(given).load()
    for split, start in (("train", 0), ("dev", 20), ("test", 40)):
        assert [x.words[0] for x in corpus.splits[split]] == TEXTS["text"][start : start + 20]
        assert [x.layer("column label")[0] for x in corpus.splits[split]] == ["x", "y"] * 10
    said = capsys.readouterr().err
    assert all(f"skipped the split {x!r} of the table" in said for x in ("unsupervised", "all"))


def test_splits_that_are_exchanged_have_another_digest():
    one = parts()
    other = {**one, "test": one["validation"], "validation": one["test"]}
    assert in_python(one).digest != in_python(other).digest


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Dataset.from_dict(TEXTS).to_iterable_dataset(), "load it without streaming=True"),
        ({**TEXTS, "label": ["x"]}, "columns of different lengths: 60 text, 1 label"),
        ({**TEXTS, "label": "x"}, "label is a str, not a list of values"),
        ({**TEXTS, "label": 5}, "label is a int, not a list of values"),
        ({}, "a table of the columns none; give one with rows"),
        ({"train": TEXTS}, "has train, but no dev or test split"),
        ({"training": TEXTS, "holdout": TEXTS}, "has no train, dev or test split; rename its spl"),
        ({**TEXTS, "label": np.array(5)}, "label is a ndarray, not a list of values"),
        ({**TEXTS, "label": [10**400, 0.5] * 30}, "row 1: label is 10*…, which is out of range"),
        ({**TEXTS, "label": [b"x"] * 60}, "row 1: label is b'x', a bytes; give text or a number"),
        ({**TEXTS, "label": [{"x"}] * 60}, "row 1: label is {'x'}, a set; give text or a number"),
        ({**TEXTS, "label": torch.arange(60)}, r"row 1: label is tensor\(0\), a Tensor; give text"),
        ({**TEXTS, "label": [("x", "y")] * 60}, r"row 1: label is a list, \['x', 'y'\]; keep one"),
    ],
)
def test_what_is_no_table_is_refused(given, says):
    assert is_in_memory(given)
    with pytest.raises(UserError, match=says):
        in_python(given, split_by="sentence" if "holdout" in given else None)


@pytest.mark.parametrize("given", [np.array(["a"]), pyarrow.table(TEXTS), pandas.Series(["a"])])
def test_arrays_and_other_tables_are_refused(given):
    with pytest.raises(UserError, match=r"^corpus=\w+: no table that is read; give a pandas"):
        is_in_memory(given)


def test_images_are_not_read():
    paths = {"image": ["none.png"] * 60, "images": [["none.png"]] * 60}
    given = Dataset.from_dict({**TEXTS, **paths}).cast_column("image", Image())
    given = given.cast_column("images", List(Image()))
    assert in_python(given).digest == in_python(TEXTS).digest


def test_groups_are_one_where_other_files_have_gaps(tmp_path):
    def documents(number):
        for split in ("train", "dev", "test"):
            rows = [
                {"text": f"{split} {i}", "label": "xy"[i % 2], "who": number(i, split)}
                for i in range(12)
            ]
            write_rows(tmp_path / f"my-{split}.csv", rows)
        source = find_corpus(str(tmp_path), text="text", label=("label",), group="who")
        corpus = source.load()
        return source.identity, [x.document for x in corpus], corpus.notes

    of_ints, integers, notes = documents(lambda i, _: i % 6)
    mixed, found, other = documents(lambda i, split: f"{i % 6}.0" if split == "dev" else i % 6)
    assert (found, other) == (integers, notes)
    assert notes["dev texts of a group that also occurs in train"] == 12
    assert set(mixed) - set(of_ints) == {"equal documents"}
    # Names that are one way throughout stay.
    _, names, _ = documents(lambda i, _: f"{i % 6}.0")
    assert names == [f"{x}.0" for x in integers]
