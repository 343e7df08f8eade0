"""Rows and their columns."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.records.row import Row, Rows
from probes.records.values import Estimate

FINITE = st.none() | st.floats(allow_nan=False, allow_infinity=False)
AXES = st.dictionaries(
    st.sampled_from(["head", "rank", "kind"]), st.integers(-5, 500) | st.text(max_size=3)
)


@given(
    st.lists(
        st.builds(
            Row,
            st.text(min_size=1, max_size=4),
            FINITE,
            st.none() | st.integers(0, 24),
            FINITE,
            FINITE,
            st.sampled_from(["train", "dev", "test"]),
            st.none() | st.integers(0, 10**6),
            FINITE,
            st.text(max_size=3),
            AXES,
        ),
        max_size=6,
    )
)
def test_rows_are_the_same_after_they_were_columns_and_a_file(rows):
    columns = Rows.of(rows)
    assert list(columns) == rows
    assert list(Rows.model_validate_json(columns.model_dump_json())) == rows
    assert len(columns) == len(rows)


def test_numbers_of_numpy_become_plain_ones_and_nan_none():
    rows = Rows.of(
        [
            Row("m", np.float32(0.5), np.int64(3), n=np.int32(7), axes={"head": np.int64(2)}),
            Row("m", np.nan, low=np.float64("nan"), p=np.float64(0.25)),
        ]
    )
    assert (rows.value, rows.layer, rows.n, rows.low) == (
        (0.5, None),
        (3, None),
        (7, None),
        (None, None),
    )
    assert rows.p == (None, 0.25)
    assert rows.axes == {"head": (2, None)}
    assert all(type(x) in (int, float, type(None)) for x in (*rows.value, *rows.axes["head"]))
    assert json.loads(rows.model_dump_json())["value"] == [0.5, None]


def test_columns_of_nothing_but_defaults_are_not_in_the_file():
    rows = Rows.of([Row("m", None, 0), Row("m", 0.5, 1, why="few", axes={"head": 1})])
    stored = json.loads(rows.model_dump_json())
    assert stored == {
        "metric": ["m", "m"],
        "value": [None, 0.5],
        "layer": [0, 1],
        "why": ["", "few"],
        "axes": {"head": [None, 1]},
    }
    assert json.loads(Rows().model_dump_json()) == {}
    assert list(Rows.model_validate({})) == []
    assert list(Rows.model_validate({"metric": ["m"]})) == [Row("m", None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([Row("m", float("inf"))], "finite"),
        ([Row("m", "many")], "could not convert string to float: 'many'"),
        ([Row("m", 1.0, axes={"task": "pos"})], "an axis cannot be called 'task'; rename it"),
        ([Row("m", 1.0, axes={"low": 1})], "an axis cannot be called 'low'; rename it"),
        ([("m", 1.0)], "compute.. gave .'m', 1.0. where a Row is expected"),
    ],
)
def test_what_is_no_row_is_refused(rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Rows.of(rows)


def test_columns_of_different_lengths_are_refused():
    stored = json.loads(Rows.of([Row("m", 1.0), Row("m", 2.0)]).model_dump_json())
    stored["value"].pop()
    with pytest.raises(ValueError, match="columns of different lengths"):
        Rows.model_validate(stored)


def test_an_estimate_is_a_row_with_its_interval_or_the_reason():
    known = Estimate(value=0.5, interval=(0.4, 0.7))
    assert Row.estimated("ami", known, 2, axes={"labels": "upos"}) == Row(
        "ami", 0.5, 2, 0.4, 0.7, axes={"labels": "upos"}
    )
    few = Estimate(value=0.5, interval=None, missing="few words")
    assert Row.estimated("ami", few) == Row("ami", 0.5, why="few words")


def test_texts_that_recur_are_numbered_in_the_file_and_read_back():
    features = (None, "nouns", -1)
    rows = [Row("m", float(i), i, axes={"feature": features[i % 3]}) for i in range(60)]
    stored = json.loads(Rows.of(rows).model_dump_json())
    assert stored["metric"] == {"distinct": ["m"], "at": [0] * 60}
    assert stored["axes"]["feature"] == {"distinct": [None, "nouns", -1], "at": [0, 1, 2] * 20}
    assert stored["layer"] == list(range(60))
    assert Rows.model_validate(stored) == Rows.of(rows)
    stored["metric"]["at"][0] = 1
    with pytest.raises(KeyError):
        Rows.model_validate(stored)
