"""Texts with labels: what is read of tables, and what is refused, with its place and a remedy."""

import json

import pytest

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sources import LabelColumn
from probes.tasks.columns import task_of
from probes.tasks.positions import Position

FIRST = Position("first")

ROWS = [
    {"text": f" She  said:\n{word}! ", "mood": mood, "score": i / 4, "who": f"w{i // 2}"}
    for i, (word, mood) in enumerate(zip("abcdefghijkl", "xyxyxyxyxyxy", strict=True))
]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def found(path, **asked):
    return find_corpus(str(path), **{"text": "text", "label": ("mood",), **asked})


def columns(source):
    return list(source.columns.values())


def test_a_row_is_a_text_as_it_was_written(tmp_path):
    source = found(jsonl(tmp_path / "a.jsonl", ROWS), label=("mood", "score"))
    assert columns(source) == [
        LabelColumn("mood", "text", "classification"),
        LabelColumn("score", "text", "regression"),
    ]
    corpus = source.load()
    assert [text.words for text in corpus.splits["train"]] == [(r["text"],) for r in ROWS[:8]]
    assert all(text.whole for text in corpus)
    assert [t.layer("column score") for t in corpus.splits["test"]] == [(2.5,), (2.75,)]
    assert {split: len(part) for split, part in corpus.splits.items()} == {
        "train": 8,
        "dev": 2,
        "test": 2,
    }


def test_groups_are_kept_whole(tmp_path):
    rows = [{**row, "who": f"w{i % 6}"} for i, row in enumerate(ROWS)]
    rows = [{**row, "mood": "xy"[i // 6]} for i, row in enumerate(rows)]
    corpus = found(jsonl(tmp_path / "a.jsonl", rows), group="who").load()
    groups = [{text.document for text in part} for part in corpus.splits.values()]
    assert sorted(name for part in groups for name in part) == [f"w{i}" for i in range(6)]


def test_groups_of_test_that_occur_in_train_are_counted(tmp_path):
    rows = [{**r, "split": ("train", "dev", "test")[i // 4]} for i, r in enumerate(ROWS)]
    corpus = found(jsonl(tmp_path / "a.jsonl", [{**r, "who": "one"} for r in rows]), group="who")
    assert corpus.load().notes["test texts of a group that also occurs in train"] == 4


def test_text_group_and_field_are_part_of_the_identity(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"data": {"rows": ROWS}, "more": ROWS}))
    given = [
        {"field": "data.rows"},
        {"field": "more"},
        {"field": "data.rows", "group": "who"},
        {"field": "data.rows", "text": "who"},
    ]
    digests = {found(tmp_path / "a.json", **asked).digest for asked in given}
    assert len(digests) == len(given)


def test_uneven_classes_are_scored_by_balanced_accuracy(tmp_path):
    def column(moods):
        rows = [{**row, "mood": mood} for row, mood in zip(ROWS, moods, strict=True)]
        return columns(found(jsonl(tmp_path / "a.jsonl", rows)))[0]

    even, uneven = column("xxxxxxxxxyyy"), column("xxxxxxxxxxyy")
    assert (even.uneven, uneven.uneven) == (False, True)
    assert task_of(even, FIRST).metric == "accuracy"
    assert task_of(uneven, FIRST).metric == "balanced_accuracy"
    assert task_of(uneven, FIRST).name == "mood@first"
    assert "uneven" in task_of(uneven, FIRST).reading


def changed(place, **values):
    return [{**row, **values} if i == place else row for i, row in enumerate(ROWS)]


REFUSED = [
    (changed(3, text=" \u200b"), {}, "line 4: text is empty; remove the row."),
    (changed(3, text=None), {}, "line 4: text is empty; remove the row."),
    (changed(3, text=12), {}, "line 4: text is not a text: 12; correct the row."),
    (
        changed(3, text="a\ud800"),
        {},
        "line 4: text has '\\ud800', half of a surrogate pair, which is no character; remove it.",
    ),
    (changed(2, mood=["x", "y"]), {}, "line 3: mood is a list, ['x', 'y']; keep one label."),
    (
        changed(11, mood="z"),
        {},
        "--corpus a: labels of mood that occur in only one split: 1 of 3, such as 'z' in test (1 "
        "text, first row 12); merge or remove rare labels, or shuffle rows that are sorted.",
    ),
    (
        [{**row, "id": i % 7} for i, row in enumerate(ROWS)],
        {},
        "line 8: the id '0' is already used by line 1; remove one, or rename the column.",
    ),
    (ROWS, {"text": "txt"}, "no column for --text txt; the columns are text, mood, score, who."),
    (ROWS, {"label": ("x",)}, "no column for --label x; the columns are text, mood, score, who."),
    (ROWS, {"group": "x"}, "no column for --group x; the columns are text, mood, score, who."),
    (ROWS, {"field": "rows"}, "give --field KEY if the rows lie below a key."),
    ([{**row, "mood": None} for row in ROWS], {}, "has no label."),
]


@pytest.mark.parametrize(("rows", "asked", "message"), REFUSED, ids=[x[-1][:30] for x in REFUSED])
def test_refused_in_one_line(tmp_path, rows, asked, message):
    with pytest.raises(UserError) as refused:
        found(jsonl(tmp_path / "a.jsonl", rows), **asked).load()
    assert str(refused.value).endswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("rows", "has no key 'rows' there; the keys are data, n, none."),
        ("data.x", "has no key 'x' there; the keys are rows."),
        ("n", "has no rows there; name the key of an array."),
        ("data", "has no rows there; name the key of an array."),
        ("n.m", "has no key 'm' there; the keys are none."),
        ("none.m", "has no key 'm' there; the keys are none."),
    ],
)
def test_a_wrong_field_is_refused(tmp_path, field, message):
    (tmp_path / "a.json").write_text(json.dumps({"data": {"rows": ROWS}, "n": 3, "none": {}}))
    with pytest.raises(UserError) as refused:
        found(tmp_path / "a.json", field=field)
    assert str(refused.value).startswith(f"--field {field}: ")
    assert str(refused.value).endswith(message)
