"""`leaderboard.csv`: columns, types, texts that spreadsheets would run, one row per layer."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from board_by_hand import edited, place_of, put, put_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from results_by_hand import mix_rows

from probes.boards.leaderboard_csv import COLUMNS, tidy, write_leaderboard
from probes.common.errors import printable
from probes.frames.joined_results import read_result
from probes.records.row import Row
from probes.tables.table import ESCAPE, csv_line, escaped_cell

DOCUMENT = (Path(__file__).parents[2] / "docs" / "leaderboard.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`[^|]+`) \| (text|integer|number|boolean) \|", re.MULTILINE)
KINDS = {name: kind for names, kind in ROW.findall(DOCUMENT) for name in re.findall(r"\w+", names)}
HOSTILE = ("=1+1", "+1", "-a", "@x", "'quoted", "NA", "nan", "12345e67", "007", "TRUE", "\tx", "1,5",
           "a;=cmd|x", 'a"b', "名前é", "two\nlines", "plain")  # fmt: skip
TEXTS = {name: str for name, kind in KINDS.items() if kind == "text"}


def unescaped(text):
    """The text that was given to `escaped_cell`, as docs/leaderboard.md tells readers to restore it."""
    return text.removeprefix(ESCAPE)


def read(folder):
    return pd.read_csv(write_leaderboard(folder), dtype=TEXTS, keep_default_na=False, na_values="")


def test_the_document_names_every_column_in_order():
    assert tuple(KINDS) == COLUMNS


def test_types_are_the_documented_ones_in_pandas(tmp_path):
    put(tmp_path, "m", "pos", 9, project=3)
    put(tmp_path, "random:m", "pos", 90, random_seed=1)
    frame = read(tmp_path).convert_dtypes()
    kinds = {"text": "string", "integer": "Int64", "number": "Float64", "boolean": "boolean"}
    for name, kind in KINDS.items():
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
    assert not escaped_cell(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unescaped(escaped_cell(text)) == text


def test_only_texts_that_would_run_are_preceded_by_an_apostrophe():
    assert [escaped_cell(text) for text in ("=1", "+a", "-a", "@a", "'a")] == [
        "'=1", "'+a", "'-a", "'@a", "''a",
    ]  # fmt: skip
    unchanged = ("NA", "007", "1", "TRUE", "1e5", "a=b", "")
    assert tuple(map(escaped_cell, unchanged)) == unchanged
    assert csv_line(["1", 1, 1.5, True, None]) == '"1",1,1.5,TRUE,\n'


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

    def more(content):
        content["rows"]["value"][place_of(content, "accuracy", 0)] = 0.26

    edited(tmp_path / "theirs" / "m" / "c" / path.name, more)
    assert read(tmp_path).score[0] == pytest.approx(0.25)
    assert (
        capsys.readouterr().err == "left out 1 duplicate result with other content; -v says which\n"
    )


def test_evidence_fills_columns_of_the_rows_of_its_scores(tmp_path):
    path = put(tmp_path, "m", "pos", 9, p_best=[0.03, None])
    put(tmp_path, "other", "pos", 9, p_best=False)
    evidence = {
        "selectivity": [Row("selectivity", 0.25, 1, 0.125, 0.375), Row("accuracy", 0.75, 1)],
        "conditional_probing": [Row("added_bits", 0.5, 1, 0.25, 0.75), Row("added_points", 0.0625, 1)],
        "description_length": [
            Row("codelength", 50.0, 0, 40.0, 80.0, split="train"),
            Row("compression", 4.0, 0, 2.5, 5.0, split="train"),
            Row("compression", 2.0, split="train", axes={"baseline": "labels alone"}),
        ],
        "localisation": mix_rows((0.5,), 0.0),
    }  # fmt: skip
    for name, rows in evidence.items():
        put_evidence(path, name, rows)
    expected = {
        # 200 / 50, between 200 / 80 and 200 / 40.
        "codelength": (50.0, None),
        "compression": (4.0, None),
        "compression_low": (2.5, None),
        "compression_high": (5.0, None),
        "expected_layer": (1.25, 1.25),
        "expected_layer_low": (1.0, 1.0),
        "expected_layer_high": (1.5, 1.5),
        "centre_of_gravity": (1.5, 1.5),
        "selectivity": (None, 0.25),
        "selectivity_low": (None, 0.125),
        "selectivity_high": (None, 0.375),
        "added_bits": (None, 0.5),
        "added_bits_low": (None, 0.25),
        "added_bits_high": (None, 0.75),
        "added_points": (None, 0.0625),
        "added_points_low": (None, None),
        "added_points_high": (None, None),
        "p_best": (0.03, None),
        "retraining_sd": (None, None),
        "sampling_sd": (0.01, 0.01),
        "training_sd": (0.01, 0.01),
    }
    frame, in_memory = read(tmp_path), pd.DataFrame(tidy([read_result(path)]))
    for found in (frame[:2], in_memory):
        numbers = found[[*expected]].astype(float)
        pd.testing.assert_frame_equal(numbers, pd.DataFrame(expected, dtype=float))
        assert set(found["evidence"]) == {" ".join(["training_variance", *evidence])}
    assert frame.loc[2:, [*expected, "evidence"]].isna().all(axis=None)


def test_evidence_behind_other_scores_is_left_out(tmp_path):
    path = put(tmp_path, "m", "pos", 9, wrongs=(30, 20, 9))
    few = [Row("p_best", 0.5, 0), Row("p_best", 0.25, 1)]
    scores = read_result(path).headline
    put_evidence(path, "training_variance", few, behind={**scores, 1: 0.5})
    assert read(tmp_path).p_best.isna().all()
    assert set(read(tmp_path).evidence.fillna("")) == {""}
    put_evidence(path, "training_variance", few)
    assert read(tmp_path).p_best.tolist()[:2] == [0.5, 0.25]
