"""Labelled data of the user's own: JSON Lines, CSV, Parquet, the hub; sound and damaged."""

import json
from functools import partial

import pytest
from datasets import ClassLabel, Features, List, Value
from table_files import write_rows, write_splits
from tiny_runs import run

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sources import LabelColumn
from probes.tasks.columns import NO_LABEL, task_of

ROWS = [
    {"tokens": ["Anna", "lives", "in", "Oslo"], "ner_tags": ["B-PER", "O", "O", "B-LOC"]},
    {"tokens": ["NA", "12", "I"], "ner_tags": ["O", "O", "O"]},
    {"tokens": ["New", "York", "sleeps"], "ner_tags": ["B-LOC", "I-LOC", "O"]},
]


def labels(corpus, column="ner_tags", split="train"):
    return [list(sentence.layer(f"column {column}")) for sentence in corpus.splits[split]]


def test_class_numbers_get_the_names_that_the_dataset_gives_them(tmp_path):
    tags, moods = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], ["sad", "glad"]
    features = {"ner_tags": List(ClassLabel(names=tags)), "mood": ClassLabel(names=moods)}
    features = Features({"tokens": List(Value("string")), **features})
    rows = [{**row, "ner_tags": list(map(tags.index, row["ner_tags"]))} for row in ROWS]
    rows = [{**row, "mood": mood} for row, mood in zip(rows, (0, 1, -1), strict=True)]
    paths = write_splits(tmp_path, rows, "parquet", features=features)
    source = find_corpus(*paths, task_from=("ner_tags", "mood"))
    assert source.columns["mood"] == LabelColumn("mood", "sentence", "classification")
    corpus = source.load()
    assert labels(corpus) == [row["ner_tags"] for row in ROWS]
    assert labels(corpus, "mood") == [["sad"], ["glad"], [None]]  # -1 is a withheld label


def test_text_is_taken_as_it_stands(tmp_path):
    path = tmp_path / "my.CSV"
    path.write_text("\n\ntokens,y\n2020-01-01 NA,01\n10\u00a0000 x,1\nTRUE true,TRUE\n", "utf-8")
    source = find_corpus(str(path), task_from=("y",), split_by="sentence")
    assert source.columns["y"] == LabelColumn("y", "sentence", "classification")
    corpus = source.load()
    words = [("2020-01-01", "NA"), ("10\u00a0000", "x"), ("TRUE", "true")]
    assert [s.words for s in corpus] == words
    assert [s.layer("column y") for s in corpus] == [("01",), ("1",), ("TRUE",)]


def test_a_path_is_no_pattern(tmp_path):
    for name, word in (("m[12]", "right"), ("m1", "wrong")):
        rows = [{"tokens": [word], "y": label} for label in ("p", "q", "r")]
        for ending in ("jsonl", "parquet"):
            write_rows(tmp_path / f"{name}.{ending}", rows)
    for ending in ("jsonl", "parquet"):
        corpus = find_corpus(str(tmp_path / f"m[12].{ending}"), task_from=("y",)).load()
        assert {s.words for s in corpus} == {("right",)}


def test_labels_that_are_not_given_are_left_out_and_counted(tmp_path):
    rows = [{"tokens": ["a", "b"], "y": y} for y in (["X", None], [-100, "Z"], None)]
    source = find_corpus(*write_splits(tmp_path, rows), task_from=("y",))
    task = task_of(source.columns["y"])
    found = [task.examples(s) for s in source.load().splits["train"]]
    read = [[getattr(e, "label", e) for e in part] for part in found]
    assert read == [["X", NO_LABEL], [NO_LABEL, "Z"], [NO_LABEL] * 2]


@pytest.mark.parametrize(
    ("kind", "one", "other", "expected"),
    [
        ("classification", "X", "Z", [("X", None), (None, "Z")]),
        ("regression", "0.5", "1.5", [(0.5, None), (None, 1.5)]),
    ],
)
@pytest.mark.parametrize("none", ["-100", "NaN", "nan"])
def test_in_csv_labels_that_are_not_given_are_texts(tmp_path, kind, one, other, expected, none):
    rows = [{"tokens": ["a", "b"], "y": [one, none]}, {"tokens": ["c", "d"], "y": [none, other]}]
    source = find_corpus(*write_splits(tmp_path, rows, "csv"), task_from=("y",))
    assert source.columns["y"].kind == kind
    assert [s.layer("column y") for s in source.load().splits["train"]] == expected


def test_whole_and_decimal_numbers_in_different_files_are_numbers(tmp_path):
    write_rows(tmp_path / "my-train.jsonl", [{"tokens": ["a"], "y": i} for i in range(3)])
    for split in ("dev", "test"):
        write_rows(tmp_path / f"my-{split}.jsonl", [{"tokens": ["a"], "y": 0.5}])
    source = find_corpus(str(tmp_path), task_from=("y",))
    assert source.columns["y"] == LabelColumn("y", "sentence", "regression")
    assert [s.layer("column y") for s in source.load().splits["train"]] == [(0.0,), (1.0,), (2.0,)]


def test_a_column_may_be_called_like_an_annotation_layer(tmp_path):
    rows = [{"tokens": row["tokens"], "upos": row["ner_tags"]} for row in ROWS]
    source = find_corpus(*write_splits(tmp_path, rows), task_from=("upos",))
    assert source.layers == {"column upos"}
    examples = task_of(source.columns["upos"]).examples(source.load().splits["train"][0])
    assert [e.label for e in examples] == ROWS[0]["ner_tags"]


def test_one_file_without_a_split_is_cut_and_a_column_split_is_heeded(tmp_path):
    path = write_rows(tmp_path / "my.jsonl", ROWS * 10)
    whole = find_corpus(path, task_from=("ner_tags",)).load()
    assert [len(whole.splits[s]) for s in ("train", "dev", "test")] == [24, 3, 3]
    assert whole.notes["dev sentences cut from all, by sentence"] == 3
    splits = ("test", "train", "validation")
    own = [{**row, "split": split} for row, split in zip(ROWS, splits, strict=True)]
    split = find_corpus(write_rows(tmp_path / "own.jsonl", own), task_from=("ner_tags",)).load()
    assert split.splits["dev"][0].words[0] == "New"
    # Documents come back, and stay together.
    documents = [{**row, "document": f"d{i % 5}"} for i, row in enumerate(ROWS * 10)]
    by = find_corpus(write_rows(tmp_path / "doc.jsonl", documents), task_from=("ner_tags",)).load()
    assert [len(by.splits[s]) for s in ("train", "dev", "test")] == [18, 6, 6]


def test_odd_rows_are_counted(tmp_path):
    rows = [*ROWS, {"tokens": [], "ner_tags": []}]
    rows[0] = {**ROWS[0], "ner_tags": ["I-PER", "O", "O", "B-LOC"]}
    notes = find_corpus(*write_splits(tmp_path, rows), task_from=("ner_tags",)).load().notes
    assert notes["rows without tokens, left out"] == 3
    assert notes["ner_tags: tags that continue no chunk, read as beginnings"] == 3


def test_brackets_in_text_are_no_lists(tmp_path):
    path = tmp_path / "my.csv"
    rows = ['"[ laughs ]",p', '"[CLS] a b [SEP]",q', '"( no , really )",p', "a [MASK],(ii)"]
    path.write_text("tokens,y\n" + "\n".join(rows * 8) + "\n")
    corpus = find_corpus(str(path), task_from=("y",)).load()
    assert len(list(corpus)) == 32


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_that_holds_the_rows_is_no_row(tmp_path, indent):
    path = tmp_path / "my.json"
    path.write_text(json.dumps({"data": ROWS}, indent=indent))
    found = find_corpus(str(path), task_from=("ner_tags",), field="data").load()
    read = [label for split in found.splits for label in labels(found, split=split)]
    assert sorted(read) == sorted(row["ner_tags"] for row in ROWS)


def test_rows_whose_document_is_null_are_of_no_document(tmp_path):
    none = [None, float("nan"), "", "  ", "NaN", "None", "null"]
    documents = [f"d{i // 2}" for i in range(8)] + none * 2 + none[:3]
    rows = [{**ROWS[i % 3], "document": document} for i, document in enumerate(documents)]
    path = write_rows(tmp_path / "my.jsonl", rows)
    corpus = find_corpus(path, task_from=("ner_tags",)).load()
    assert [len(corpus.splits[s]) for s in ("train", "dev", "test")] == [19, 3, 3]
    assert {s.document for s in corpus} == {"d0", "d1", "d2", "d3", ""}
    assert corpus.notes["rows that name no document"] == 17
    with pytest.raises(UserError, match="17 of 25 sentences name no document; use --split-by sen"):
        find_corpus(path, task_from=("ner_tags",), split_by="document").load()


@pytest.mark.parametrize("edge", [" ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u2060", "\t \n"])
def test_spaces_at_the_edges_of_words_are_removed_and_counted(tmp_path, edge):
    rows = [{"tokens": [f"{t}{edge}" for t in row["tokens"]], "y": "ab"[i % 2]}
            for i, row in enumerate(ROWS)]  # fmt: skip
    rows[1]["tokens"] = [f"{edge}10\u00a0000", "x"]
    corpus = find_corpus(*write_splits(tmp_path, rows), task_from=("y",)).load()
    assert [s.words for s in corpus.splits["train"]] == [
        ("Anna", "lives", "in", "Oslo"),
        ("10\u00a0000", "x"),
        ("New", "York", "sleeps"),
    ]
    assert corpus.notes["words with spaces at their edges, which were removed"] == 3 * 8
    rows[1]["tokens"] = ["a", edge]
    with pytest.raises(UserError, match="line 2: token 2 is empty"):
        find_corpus(write_rows(tmp_path / "one.jsonl", rows), task_from=("y",))


def test_joiners_at_the_edges_of_words_stay(tmp_path):
    # A zero-width non-joiner decides which shape the letter before it has.
    rows = [{"tokens": ["\u0645\u06cc\u200c", "x"], "y": y} for y in "ab"]
    corpus = find_corpus(*write_splits(tmp_path, rows), task_from=("y",)).load()
    assert corpus.splits["train"][0].words[0] == "\u0645\u06cc\u200c"
    assert "words with spaces at their edges, which were removed" not in corpus.notes


BIO = ["B-PER", "I-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC"]


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ("B I I O B B I", "BIO tags (without types), read as BIO"),
        ("B I L O U B L", "BILOU tags (without types), read as BIO"),
        ("B-PER I-PER I-PER O B-LOC B-LOC I-LOC", "BIO tags"),
        ("B-PER I-PER L-PER O U-LOC B-LOC L-LOC", "BILOU tags, read as BIO"),
        ("B-PER I-PER E-PER O S-LOC B-LOC E-LOC", "BIOES tags, read as BIO"),
        ("B-PER M-PER E-PER O S-LOC B-LOC E-LOC", "BMES tags, read as BIO"),
        ("B-PER M-PER E-PER O W-LOC B-LOC E-LOC", "BMEW tags, read as BIO"),
        ("B_PER I_PER I_PER O B_LOC B_LOC I_LOC", "BIO tags (with _), read as BIO"),
        ("B_PER I_PER L_PER O U_LOC B_LOC L_LOC", "BILOU tags (with _), read as BIO"),
        ("PER-B PER-I PER-I O LOC-B LOC-B LOC-I", "BIO tags (types first), read as BIO"),
        ("PER_B PER_I PER_E O LOC_S LOC_B LOC_E", "BIOES tags (types first), read as BIO"),
    ],
)
def test_chunk_tags_of_other_schemes_are_read_as_bio(tmp_path, tags, name):
    rows = [{"tokens": [f"w{i}" for i in range(7)], "ner": tags.split()}]
    source = find_corpus(*write_splits(tmp_path, rows), task_from=("ner",))
    corpus = source.load()
    bio = [x if x == "O" else f"{x[0]}-chunk" for x in BIO] if "types)" in name else BIO
    assert labels(corpus, "ner") == [bio]
    assert not corpus.notes.keys() - {"dev sentences that also occur in train",
                                      "test sentences that also occur in train"}  # fmt: skip
    task = task_of(source.columns["ner"])
    assert (task.metric, task.reading) == ("span_f1", name)
    assert [e.label for e in task.examples(corpus.splits["train"][0])] == bio


def test_tags_that_continue_no_chunk_begin_one_and_are_counted(tmp_path):
    tags = ["U-PER", "L-PER", "O", "I-LOC", "L-LOC", None, "L-PER", "B-PER", "I-LOC"]
    rows = [{"tokens": [f"w{i}" for i in range(9)], "ner": tags}]
    corpus = find_corpus(*write_splits(tmp_path, rows), task_from=("ner",)).load()
    expected = ["B-PER", "B-PER", "O", "B-LOC", "I-LOC", "None", "B-PER", "B-PER", "B-LOC"]
    assert [str(label) for label in labels(corpus, "ner")[0]] == expected
    assert corpus.notes["ner: tags that continue no chunk, read as beginnings"] == 3 * 4


@pytest.mark.parametrize(
    "tags",
    [
        "S-bar B-side S-bar O-ring",
        "NN-S NN-P VB-D NN-S",
        "A-x B-x O O",
        "S M L S",
        "B I B I",
        "PER-B O LOC 0",
        "NP-S O VP-S O",
    ],
)
def test_labels_that_only_look_like_chunk_tags_are_classes(tmp_path, tags):
    rows = [{"tokens": ["a", "b", "c", "d"], "y": tags.split()}]
    source = find_corpus(*write_splits(tmp_path, rows), task_from=("y",))
    assert source.columns["y"] == LabelColumn("y", "word", "classification")
    assert labels(source.load(), "y") == [tags.split()]
    assert task_of(source.columns["y"]).reading == "a class per word"


def test_a_damaged_row_of_parquet_is_named_by_its_number(tmp_path):
    path = write_rows(tmp_path / "my.parquet", [*ROWS, {"tokens": ["a", "b"], "ner_tags": ["O"]}])
    with pytest.raises(UserError, match=r"my\.parquet, row 4: 2 tokens, but 1 labels"):
        find_corpus(path, task_from=("ner_tags",))


run_linear = partial(run, probes="linear", layers=(0, 1), limit=None)


def test_columns_run_as_tasks(tiny_bert, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("probes.run.announcements.MANY_LABELS", 3)
    rows = [
        {**row, "mood": ("sad", "glad")[i % 2], "score": float(i)} for i, row in enumerate(ROWS * 4)
    ]
    for row in rows[1::3]:
        row["tokens"] = ["\U0001f602", "\U0001f602", "\U0001f602"]
    corpus = write_rows(tmp_path / "my.jsonl", rows)
    results = run_linear(
        tiny_bert, tmp_path, corpus=corpus, task_from=("ner_tags", "mood", "score")
    )
    found = {r.task.name: (r.task.shape, r.task.kind, r.task.metric) for r in results.results}
    assert found == {
        "ner_tags": ("word", "classification", "span_f1"),
        "mood": ("sentence", "classification", "accuracy"),
        "score": ("sentence", "regression", "corpus_spearman"),
    }
    # How a column was read can be seen without -v.
    said = capsys.readouterr().err
    for reading in ("BIO tags, span_f1", "a class per sentence, accuracy", "a number per sentence"):
        assert f" · {reading}" in said
    assert "        4 labels: fits take time and memory in proportion" in said
    assert "        2 labels: fits" not in said
    (found,) = {r.encoding.unknown_words for r in results.results}
    assert found >= 3  # equal sentences are read once
    assert f"{found} of 10 words contain [UNK] ({found / 10:.0%}), and vectors say little" in said
    # A later run on one column of the same file computes nothing, and keeps the table whole.
    (table,) = (tmp_path / "results").rglob("layers.csv")
    whole = table.read_text()
    assert "mood (linear)" in whole
    (again,) = run_linear(tiny_bert, tmp_path, corpus=corpus, task_from=("mood",)).results
    (first,) = (r for r in results.results if r.task.name == "mood")
    assert again.provenance == first.provenance
    assert table.read_text() == whole
    other = write_rows(tmp_path / "p.jsonl", [{"tokens": ["a"], "pos": ["X"]}] * 30)
    with pytest.raises(UserError, match="--task-from pos: the suite has a task of this name"):
        run_linear(tiny_bert, tmp_path, corpus=other, task_from=("pos",))


@pytest.fixture
def hub_dataset(tmp_path, monkeypatch):
    """A hub cache that holds a dataset, laid out by hand."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "hub" / "datasets--org--names"
    folder = repo / "snapshots" / commit
    (folder / "data").mkdir(parents=True)
    for split in ("train", "validation", "test"):
        write_rows(folder / "data" / f"{split}-00000-of-00001.parquet", ROWS)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return folder


def test_a_dataset_on_the_hub(hub_dataset):
    (hub_dataset / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    source = find_corpus("org/names", task_from=("ner_tags",), offline=True)
    assert source.version == "0123456789abcdef0123456789abcdef01234567"
    assert source.licence == "cc-by-4.0"
    assert labels(source.load(), split="dev") == [row["ner_tags"] for row in ROWS]
    with pytest.raises(UserError, match="no column for --task-from x"):
        find_corpus("org/names", task_from=("x",), offline=True)
    with pytest.raises(UserError, match="--corpus org/other: not in the local hub cache"):
        find_corpus("org/other", task_from=("x",), offline=True)


def test_a_dataset_with_configurations_is_named_with_one(hub_dataset):
    for name in ("one", "two"):
        (hub_dataset / name).mkdir()
        for split in ("train", "validation", "test"):
            write_rows(hub_dataset / name / f"{split}.parquet", ROWS if name == "one" else ROWS[:2])
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": f"{name}/{s}.parquet"} for s in ("train", "validation", "test")]}
        for name in ("one", "two")
    ]  # fmt: skip
    (hub_dataset / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    with pytest.raises(UserError, match=r"org/names:.*'one', 'two'|org/names.*one.*two"):
        find_corpus("org/names", task_from=("ner_tags",), offline=True)
    two = find_corpus("org/names:two", task_from=("ner_tags",), offline=True)
    assert len(two.load().splits["train"]) == 2


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../../../../secret.jsonl", "refers to the file .* outside the dataset|cannot be read"),
        ("https://example.org/x.jsonl", "its data are at another address"),
    ],
)
def test_a_dataset_cannot_have_other_files_read(hub_dataset, tmp_path, path, message):
    write_rows(tmp_path / "secret.jsonl", ROWS)
    head = f"configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {path}\n"
    (hub_dataset / "README.md").write_text(f"---\n{head}---\n")
    with pytest.raises(UserError, match=message):
        find_corpus("org/names", task_from=("ner_tags",), offline=True)


def test_code_in_a_dataset_is_never_run(hub_dataset, tmp_path):
    for path in (hub_dataset / "data").iterdir():
        path.unlink()
    for name in ("names", hub_dataset.name, "data"):
        (hub_dataset / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(UserError, match="org/names"):
        find_corpus("org/names", task_from=("ner_tags",), offline=True)
    assert not (tmp_path / "ran").exists()
