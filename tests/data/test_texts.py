"""Texts with labels: what is read of tables, and what is refused, with its place and a remedy."""

import json

import pytest
from table_files import write_rows

from probes.common.errors import UserError
from probes.data.chats import chat_of, texts_of
from probes.data.find import find_corpus
from probes.data.labelled import find_columns
from probes.data.sources import CorpusRequest, LabelColumn
from probes.data.splits import UNNAMED
from probes.extraction.reading.views import plain_view
from probes.tasks.columns import task_of
from probes.tasks.positions import Position

FIRST = Position("first")

ROWS = [
    {"text": f" She  said:\n{word}! ", "mood": mood, "score": i / 4, "who": f"w{i // 2}"}
    for i, (word, mood) in enumerate(zip("abcdefghijkl", "xyxyxyxyxyxy", strict=True))
]


def source_of_texts(path, **asked):
    return find_corpus(str(path), **{"text": "text", "label": ("mood",), **asked})


def columns(source):
    return list(source.columns.values())


def test_a_row_is_a_text_as_it_was_written(tmp_path):
    source = source_of_texts(write_rows(tmp_path / "a.jsonl", ROWS), label=("mood", "score"))
    assert columns(source) == [
        LabelColumn("mood", "text", "classification"),
        LabelColumn("score", "text", "regression"),
    ]
    corpus = source.load()
    assert [text.words for text in corpus.splits["train"]] == [(r["text"],) for r in ROWS[:8]]
    assert all(text.whole for text in corpus)
    assert [t.layer("column score") for t in corpus.splits["test"]] == [(2.5,), (2.75,)]
    sizes = {split: len(part) for split, part in corpus.splits.items()}
    assert sizes == {"train": 8, "dev": 2, "test": 2}


def test_groups_are_kept_whole(tmp_path):
    rows = [{**row, "who": f"w{i % 6}"} for i, row in enumerate(ROWS)]
    rows = [{**row, "mood": "xy"[i // 6]} for i, row in enumerate(rows)]
    corpus = source_of_texts(write_rows(tmp_path / "a.jsonl", rows), group="who").load()
    groups = [{text.document for text in part} for part in corpus.splits.values()]
    assert sorted(name for part in groups for name in part) == [f"w{i}" for i in range(6)]


def test_groups_of_test_that_occur_in_train_are_counted(tmp_path):
    rows = [{**r, "split": ("train", "dev", "test")[i // 4]} for i, r in enumerate(ROWS)]
    path = write_rows(tmp_path / "a.jsonl", [{**row, "who": "one"} for row in rows])
    notes = source_of_texts(path, group="who").load().notes
    assert notes["test texts of a group that also occurs in train"] == 4


def test_text_group_and_field_are_part_of_the_identity(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"data": {"rows": ROWS}, "more": ROWS}))
    rows = {"field": "data.rows"}
    given = [rows, {"field": "more"}, {**rows, "group": "who"}, {**rows, "text": "who"}]
    digests = {source_of_texts(tmp_path / "a.json", **asked).digest for asked in given}
    assert len(digests) == len(given)


def test_uneven_classes_are_scored_by_balanced_accuracy(tmp_path):
    def column(moods):
        rows = [{**row, "mood": mood} for row, mood in zip(ROWS, moods, strict=True)]
        return columns(source_of_texts(write_rows(tmp_path / "a.jsonl", rows)))[0]

    even, uneven = column("xxxxxxxxxyyy"), column("xxxxxxxxxxyy")
    assert (even.uneven, uneven.uneven) == (False, True)
    assert task_of(even, FIRST).metric == "accuracy"
    assert task_of(uneven, FIRST).metric == "balanced_accuracy"
    assert task_of(uneven, FIRST).name == "mood@first"
    assert "uneven" in task_of(uneven, FIRST).reading


def chats(path, *rows, **more):
    given = [{"chat": row, "mood": "xy"[i % 2], **more} for i, row in enumerate(rows * 6)]
    source = source_of_texts(write_rows(path, given), text="", messages="chat")
    return source, source.load().splits["train"][0].words[0]


ASKED = {"role": "user", "content": "é?"}


def test_chats_of_roles_and_contents_alone_keep_their_keys(tmp_path):
    source, text = chats(tmp_path / "a.jsonl", [ASKED], [{**ASKED, "name": None}])
    assert text == '[{"role": "user", "content": "\\u00e9?"}]'
    assert "chats" not in source.identity
    # As they were when keys beside role and content were dropped.
    assert plain_view(source.load()).digest[:16] == "3cc9339743c04816"
    plain, _ = chats(tmp_path / "a.jsonl", [ASKED], [ASKED], who="me")
    again, _ = chats(tmp_path / "a.jsonl", [ASKED], [ASKED], who="me", tools=[])
    assert "chats" not in {**plain.identity, **again.identity}


def test_chats_keep_all_keys_and_tools(tmp_path):
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": 1, "b": None}]}
    tools = [{"name": "add"}]
    source, text = chats(tmp_path / "a.jsonl", [ASKED, called], tools=tools)
    messages = [ASKED, {"role": "assistant", "tool_calls": [{"id": 1, "b": None}]}]
    assert chat_of(text) == (messages, tools)
    assert texts_of(text) == ["é?", '\n[{"id": 1, "b": null}]', '[{"name": "add"}]']
    assert chats(tmp_path / "b.jsonl", [ASKED, called], tools=json.dumps(tools))[1] == text
    parts = [{"type": "text", "text": "a", "image": None}, {"type": "text", "text": "b"}]
    _, text = chats(tmp_path / "c.jsonl", [{"role": "user", "content": parts}])
    assert texts_of(text) == ["ab"]
    frame = {"chat": [[ASKED, called]] * 12, "mood": ["x", "y"] * 6}
    request = CorpusRequest(("m",), messages="chat", label=("mood",))
    digests = {
        find_columns("m", {UNNAMED: {**frame, "tools": [each] * 12}}, request).digest
        for each in (tools, [{"name": "sub"}], float("nan"))
    }
    assert len(digests) == 3
    assert source.identity["chats"]


def test_messages_name_the_column_of_groups(tmp_path, capsys):
    path = write_rows(
        tmp_path / "a.jsonl", [{**r, "who": "w"[: i % 3]} for i, r in enumerate(ROWS)]
    )
    with pytest.raises(UserError) as caught:
        source_of_texts(path, group="who").load()
    assert str(caught.value) == "--corpus a: 4 of 12 texts name no who; use --split-by sentence."
    path = write_rows(tmp_path / "e.jsonl", ROWS)
    with pytest.raises(UserError) as caught:
        source_of_texts(path, split_by="document").load()
    assert str(caught.value) == (
        "--corpus e: has no document boundaries; name their column with --group, or use --split-by "
        "sentence."
    )
    one = write_rows(tmp_path / "b.jsonl", [{**row, "who": "one"} for row in ROWS])
    for asked, several in (({"group": "who"}, "values of who"), ({"limit": 1}, "texts")):
        path = one if "group" in asked else write_rows(tmp_path / "c.jsonl", ROWS[:2])
        with pytest.raises(UserError, match=f"too few {several} to cut test and dev from"):
            source_of_texts(path, **asked).load()
    splits = [{**r, "split": ("train", "dev", "test")[i // 4]} for i, r in enumerate(ROWS)]
    capsys.readouterr()
    source_of_texts(write_rows(tmp_path / "d.jsonl", splits), split_by="sentence")
    assert capsys.readouterr().err == (
        "--split-by sentence: has no effect, since --corpus d has all splits\n"
    )
