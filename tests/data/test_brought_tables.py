"""Tables as other programs write them: classes that became floats."""

import re
from collections import Counter

import pytest

from probes.__main__ import main
from probes.common.errors import UserError
from probes.data.find import find_corpus


def csv_file(folder, cells, head="text,label"):
    path = folder / "a.csv"
    rows = [f'"text {i}",{cell}' for i, cell in enumerate(cells)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def labels(path):
    source = find_corpus(str(path), text="text", label=("label",))
    corpus = source.load()
    found = [text.layer("column label")[0] for text in corpus]
    return source.columns["label"].kind, Counter(found), source.identity


def test_whole_floats_with_gaps_are_classes(tmp_path, capsys):
    kind, found, identity = labels(csv_file(tmp_path, ["", "1.0", "2.0", "0.0"] * 20))
    assert kind == "classification"
    assert found == {None: 20, "0": 20, "1": 20, "2": 20}
    assert identity["whole floats of label"] == "classes"
    assert "labels of label are whole floats and some are missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "cells",
    [["0.0", "1.0", "2.0"] * 20, ["", "0.5", "1.0"] * 20, ["", *(f"{i}.0" for i in range(59))]],
)
def test_other_floats_stay_numbers(cells, tmp_path):
    kind, _, identity = labels(csv_file(tmp_path, cells))
    assert kind == "regression"
    assert list(identity) == ["all 0", "rules for CSV", "--text"]


@pytest.mark.parametrize(
    ("files", "asked", "says"),
    [
        ({"a.jsonl": '{"text": "x", "label": ["good"]}'}, {}, "['good']; write 'good' alone"),
        ({"a.json": '{"data": [{}]}'}, {"field": "data"}, "a.json: contains no row"),
        ({"state.json": "{}", "dataset_info.json": "{}"}, {}, "was written by datasets.save_to_disk"),
        ({"dataset_dict.json": "{}"}, {}, "write each split by to_parquet"),
        ({"a.conllu": "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n"}, None, "as in CoNLL-2003"),
    ],
)  # fmt: skip
def test_what_other_programs_write_is_refused_with_the_remedy(files, asked, says, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    asked = {} if asked is None else {"text": "text", "label": ("label",), **asked}
    with pytest.raises(UserError) as refused:
        find_corpus(str(tmp_path), split_by="sentence", **asked).load()
    assert says in str(refused.value)


@pytest.mark.parametrize("given", ["run --vectors", "show", "board", "cache --cache-dir"])
def test_a_path_that_is_too_long_is_one_line(given, capsys):
    assert main([*given.split(), f"/{'long' * 2000}"]) == 2
    assert re.fullmatch(
        r"error: /(long)*…: the path is too long; name another.\n",
        capsys.readouterr().err,
    )


def test_labels_that_r_writes_where_they_are_missing_are_named(tmp_path, capsys):
    kind, found, _ = labels(csv_file(tmp_path, ["NA", "good", "bad"] * 20))
    assert kind == "classification"
    assert found == {"NA": 20, "good": 20, "bad": 20}
    assert "label: 20 labels NA, read as a class" in capsys.readouterr().err
