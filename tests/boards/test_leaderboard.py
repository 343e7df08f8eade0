"""`leaderboard.csv`: columns, types, texts that spreadsheets would run, one row per layer."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from board_by_hand import put
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.boards.leaderboard_csv import COLUMNS, tidy, write_leaderboard
from probes.common.errors import printable
from probes.records.csv_text import csv_line, escaped, unescaped
from probes.records.files import read_result
from probes.records.payload import CodeRecord, Estimate, Localisation, MixResult

DOCUMENT = (Path(__file__).parents[2] / "docs" / "leaderboard.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (text|integer|number|boolean) \|", re.MULTILINE)
HOSTILE = ("=1+1", "+1", "-a", "@x", "'quoted", "NA", "nan", "12345e67", "007", "TRUE", "\tx", "1,5",
           "a;=cmd|x", 'a"b', "名前é", "two\nlines", "plain")  # fmt: skip
TEXTS = {name: str for name, kind in ROW.findall(DOCUMENT) if kind == "text"}


def read(folder):
    return pd.read_csv(write_leaderboard(folder), dtype=TEXTS, keep_default_na=False, na_values="")


def test_the_document_names_every_column_in_order():
    assert tuple(name for name, _ in ROW.findall(DOCUMENT)) == COLUMNS


def test_types_are_the_documented_ones_in_pandas(tmp_path):
    put(tmp_path, "m", "pos", 9, project=3)
    put(tmp_path, "random:m", "pos", 90, random_seed=1)
    frame = read(tmp_path).convert_dtypes()
    kinds = {"text": "string", "integer": "Int64", "number": "Float64", "boolean": "boolean"}
    for name, kind in ROW.findall(DOCUMENT):
        column = frame[name]
        if column.notna().any() and not (kind == "number" and str(column.dtype) == "Int64"):
            assert str(column.dtype) in (kinds[kind], "str"), name
    assert frame.random_seed.dropna().tolist() == [1, 1]
    assert frame.random.tolist() == [False, False, True, True]


def test_pandas_reads_hostile_names_as_they_were_given(tmp_path):
    for i, name in enumerate(HOSTILE):
        put(tmp_path, name, "pos", 9, model__revision=f"{i:04d}")
    frame = read(tmp_path)
    models = frame.model.map(unescaped)
    assert set(models) == set(map(printable, HOSTILE))
    assert not frame.model.str.match(r"[=+\-@\t\r\n]").any()
    assert set(frame.revision.map(unescaped)) == {f"{i:04d}" for i in range(len(HOSTILE))}


@settings(deadline=None)
@given(st.text())
def test_unescaped_is_the_inverse_of_escaped(text):
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unescaped(escaped(text)) == text


def test_only_texts_that_would_run_are_preceded_by_an_apostrophe():
    assert [escaped(text) for text in ("=1", "+a", "-a", "@a", "'a")] == [
        "'=1", "'+a", "'-a", "'@a", "''a",
    ]  # fmt: skip
    unchanged = ("NA", "007", "1", "TRUE", "1e5", "a=b", "")
    assert tuple(map(escaped, unchanged)) == unchanged
    assert csv_line(["1", 1, 1.5, True, None]) == '"1",1,1.5,TRUE,\n'


def test_r_reads_the_same_types(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("no Rscript here")
    for name in HOSTILE:
        put(tmp_path, name, "pos", 9)
    path = write_leaderboard(tmp_path)
    script = (
        f'd <- read.csv("{path}", fileEncoding="UTF-8", na.strings="", '
        'colClasses=c(model="character", corpus_version="character")); '
        "cat(nrow(d), ncol(d), class(d$model), class(d$layer), class(d$score), class(d$best), "
        "class(d$random_seed), class(d$key), class(d$corpus_version), sum(is.na(d$model)))"
    )
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    expected = f"{2 * len(HOSTILE)} {len(COLUMNS)} character integer numeric logical logical"
    assert done.stdout == f"{expected} character character 0"


def test_another_model_changes_no_other_row(tmp_path):
    put(tmp_path, "m", "pos", 9)
    before = write_leaderboard(tmp_path).read_text().splitlines()
    put(tmp_path, "a", "pos", 4)
    put(tmp_path, "=z", "pos", 3)
    after = write_leaderboard(tmp_path).read_text().splitlines()
    assert set(before) <= set(after)
    assert len(after) == 1 + 3 * 2


def test_a_measurement_stored_twice_has_one_row_per_layer(tmp_path, capsys):
    path = put(tmp_path, "m", "pos", 9)
    shutil.copytree(path.parents[1], tmp_path / "theirs" / "m")
    assert len(read(tmp_path)) == 2
    assert capsys.readouterr().err == ""
    content = json.loads(path.read_text())
    content["layers"][0]["cells"][0]["test"]["accuracy"] = 0.5
    (tmp_path / "theirs" / "m" / "c" / path.name).write_text(json.dumps(content))
    assert read(tmp_path).score[0] == pytest.approx(0.25)
    assert capsys.readouterr().err == "left out 1 duplicate result; -v says which\n"


def test_published_results_are_only_in_their_own_leaderboard(tmp_path):
    put(tmp_path, "m", "pos", 9)
    put(tmp_path / "published", "shipped", "pos", 9)
    assert set(read(tmp_path).model) == {"m"}
    assert set(read(tmp_path / "published").model) == {"shipped"}


def test_compression_expected_layer_and_time(tmp_path):
    result = read_result(put(tmp_path, "m", "pos", 9))
    none = Estimate(value=None, interval=None, missing="no gain")
    layers = (
        result.layers[0].model_copy(update={"codelength": 50.0, "codelength_interval": (40, 80)}),
        result.layers[1],
    )
    result = result.model_copy(
        update={
            "seconds": {"fit": 1.5, "score": 0.25},
            "layers": layers,
            "code": CodeRecord(ends=(9,), n_classes=2, uniform_bits=200.0, prior_bits=100.0),
            "localisation": Localisation(
                mixes=(MixResult(k=0, weights=(1.0,), l2=0.1, dev={}, test={}, intervals={}),),
                total_gain=none,
                expected_layer=Estimate(value=0.75, interval=(0.5, 1.0)),
                centre_of_gravity=none,
                kl=none,
                seed_weights=(),
            ),
        }
    )
    first, second = tidy([result]).to_dict("records")
    assert (first["compression"], first["compression_low"], first["compression_high"]) == (
        4,
        2.5,
        5,
    )
    assert pd.isna(second["compression"])
    assert (second["expected_layer"], second["expected_layer_high"]) == (0.75, 1.0)
    assert pd.isna(second["centre_of_gravity"])
    assert second["seconds"] == 1.75
