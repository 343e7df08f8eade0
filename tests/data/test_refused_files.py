"""Files of users that are refused, in one line: file × content × options × message."""

import json

import pytest

from probes.common.errors import UserError
from probes.data.find import find_corpus

WORDS = {"task_from": ("ner_tags",)}
TEXT = {"text": "text", "label": ("mood",)}
CHAT = {"messages": "chat", "label": ("mood",)}
MOODS = [
    {"text": f"She said: {i}", "mood": "xy"[i % 2], "score": i / 4, "who": f"w{i // 2}"}
    for i in range(12)
]
BELOW_KEYS = json.dumps({"data": {"rows": MOODS}, "n": 3, "none": {}})
ROW = '{"tokens": ["a"], "ner_tags": %s}\n'
CONLL_2003 = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n"


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv(head, *rows):
    return "\n".join([head, *rows]) + "\n"


def changed(place, **values):
    """The moods, with one row changed."""
    return jsonl(*({**row, **values} if i == place else row for i, row in enumerate(MOODS)))


def chats(*messages, **more):
    return jsonl(*({"chat": messages, "mood": "xy"[i % 2], **more} for i in range(12)))


def tagged(words, tags):
    return {"tokens": words, "ner_tags": tags}


ASKED = {"role": "user", "content": "é?"}
IMAGE = {"type": "image", "url": "u"}
JSON = [
    ("a.jsonl", "", WORDS, "contains no row"),
    ("a.jsonl", ROW % '["O"]' + '{"tokens": [\n', WORDS, "a.jsonl, line 2: not JSON"),
    ("a.jsonl", '\n["a"]\n', WORDS, "line 2: not a JSON object"),
    ("a.json", '[{"a": 1}, 2]', WORDS, "element 2: not a JSON object"),
    ("a.json", '[{"a": 1}', WORDS, "not JSON"),
    ("a.json", "[]", WORDS, "contains no row"),
    ("a.json", '{"data": [{}]}', {**TEXT, "field": "data"}, "a.json: contains no row"),
    ("a.json", json.dumps({"data": MOODS}), WORDS, "the columns are data (if the rows lie below one of these keys, give --field KEY)."),
    ("a.json", json.dumps({"data": MOODS}, indent=1), WORDS, "a.json, line 1: not JSON"),
    ("a.json", json.dumps({"data": MOODS}, indent=1), WORDS, "give --field KEY"),
    ("a.jsonl", jsonl(*MOODS), {**TEXT, "field": "rows"}, "give --field KEY if the rows lie below a key."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "rows"}, "has no key 'rows' there; the keys are data, n, none."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "data.x"}, "--field data.x: "),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "data.x"}, "has no key 'x' there; the keys are rows."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "n"}, "has no rows there; name the key of an array."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "data"}, "has no rows there; name the key of an array."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "n.m"}, "has no key 'm' there; the keys are none."),
    ("a.json", BELOW_KEYS, {**TEXT, "field": "none.m"}, "has no key 'm' there; the keys are none."),
]  # fmt: skip
WORDS_AND_LABELS = [
    ("a.jsonl", '{"words": ["a"], "x": 1}\n', WORDS, "no column for tokens; the columns are words, x"),
    ("a.jsonl", '{"tokens": ["a"], "x": ["O"]}\n', WORDS, "no column for --task-from ner_tags"),
    ("a.jsonl", ROW % '["O"]' + "\n" + jsonl(tagged(["a", "b"], ["O"])), WORDS, "line 3: 2 tokens, but 1 labels in ner_tags"),
    ("a.jsonl", ROW % "[null]", WORDS, "a.jsonl has no label"),
    ("a.jsonl", ROW % '[["O"]]', WORDS, "line 1: ner_tags is a list, ['O']; write 'O' alone"),
    ("a.jsonl", ROW % "0.5" * 3 + ROW % '"x"', WORDS, "line 4: ner_tags is 'x', but other rows have"),
    ("a.jsonl", ROW % "1e39", WORDS, "is 1e+39, which is out of range; rescale it to at most 1e+18"),
    ("a.jsonl", ROW % "Infinity", WORDS, "line 1: ner_tags is inf, which is out of"),
    ("a.jsonl", jsonl(tagged(["a", " "], ["O", "O"])), WORDS, "line 1: token 2 is empty; remove it and its label"),
    ("a.jsonl", jsonl(tagged("a b", "O O")), WORDS, "tokens is not a list of strings: 'a b'"),
    ("a.jsonl", ROW % '["O"]' + ROW % '"O"', WORDS, "line 2: ner_tags is not a list of labels"),
    ("a.jsonl", jsonl({**tagged(["a"], ["O"]), "split": "x"}), WORDS, "unknown split 'x'"),
    ("a.jsonl", b'{"tokens": ["\xe9"], "ner_tags": ["O"]}\n', WORDS, "line 1: not UTF-8"),
    ("a-train.jsonl", ROW % '["O"]', WORDS, "has train, but no dev or test split"),
    ("a.csv", "", WORDS, "contains no row"),
    ("a.csv", csv("tokens,ner_tags"), WORDS, "contains no row"),
    ("a.csv", csv("tokens,ner_tags", "a b,O O", "c,d,O O"), WORDS, "line 3: 3 cells, but the header has 2"),
    ("a.csv", csv("tokens,ner_tags", '"a b,O O'), WORDS, "line 2: the row starting here is not CSV"),
    ("a.csv", csv("tokens,ner_tags", "a,O", '"b,O', "c,O"), WORDS, "line 3: the row starting here is not CSV"),
    ("a.csv", csv("tokens,ner_tags", "a b,O O", "c d,O O", "a b,O"), WORDS, "line 4: 2 tokens, but 1 labels"),
    ("a.csv", csv("tokens,tokens", "a,b"), WORDS, "line 1: two columns have the same name"),
    ("a.csv", csv("tokens,ner_tags", "a,0.5", "b,1.5", "c,oops"), WORDS, "line 4: ner_tags is 'oops', but other"),
    ("a.csv", b"tokens,ner_tags\n\xff,O\n", WORDS, "line 2: not UTF-8"),
    ("a.parquet", b"", WORDS, "cannot be read as a table"),
    ("a.parquet", b"PAR1 no parquet at all", WORDS, "cannot be read as a table"),
]  # fmt: skip
TEXTS = [
    ("a.jsonl", changed(3, text=" \u200b"), TEXT, "line 4: text is empty; remove the row."),
    ("a.jsonl", changed(3, text=None), TEXT, "line 4: text is empty; remove the row."),
    ("a.jsonl", changed(3, text=12), TEXT, "line 4: text is not a text: 12; correct the row."),
    ("a.jsonl", changed(3, text="a\ud800"), TEXT, "line 4: text has '\\ud800', half of a surrogate pair, which is no character; remove it."),
    ("a.jsonl", changed(2, mood=["x", "y"]), TEXT, "line 3: mood is a list, ['x', 'y']; keep one label."),
    ("a.jsonl", changed(11, mood="z"), TEXT, "--corpus a: labels of mood that occur in only one split: 1 of 3, such as 'z' in test (1 text, first row 12); merge or remove rare labels, or shuffle rows that are sorted."),
    ("a.jsonl", jsonl(*({**row, "id": i % 7} for i, row in enumerate(MOODS))), TEXT, "line 8: the id '0' is already used by line 1; remove one, or rename the column."),
    ("a.jsonl", jsonl(*MOODS), {**TEXT, "text": "txt"}, "no column for --text txt; the columns are text, mood, score, who."),
    ("a.jsonl", jsonl(*MOODS), {**TEXT, "label": ("x",)}, "no column for --label x; the columns are text, mood, score, who."),
    ("a.jsonl", jsonl(*MOODS), {**TEXT, "group": "x"}, "no column for --group x; the columns are text, mood, score, who."),
    ("a.jsonl", jsonl(*({**row, "mood": None} for row in MOODS)), TEXT, "has no label."),
    ("a.jsonl", chats({"role": "user"}), CHAT, 'line 1: message 1 of chat is not {"role"'),
    ("a.jsonl", chats({"role": "user", "content": None, "name": ""}), CHAT, "message 1 of chat is not"),
    ("a.jsonl", chats({"role": "user", "content": [IMAGE]}), CHAT, "leave it out"),
    ("a.jsonl", chats({"role": "user", "content": "\ud800"}), CHAT, "surrogates not allowed; correct the row"),
    ("a.jsonl", chats(ASKED, tools=["add"]), CHAT, "tools is not a list of objects"),
    ("a.jsonl", chats(ASKED, tools="add"), CHAT, "with tools beside it: Expecting value"),
]  # fmt: skip

AS_TEXT = [
    ("[1 0 0 5]", "[0 0]"),
    ("(1, 0, 0, 5)", "(0, 0)"),
    ("{1, 0, 2, 5}", "{0, 1}"),
    ("tensor([1, 0, 0, 5])", "tensor([0, 0], device='cpu')"),
    ("[[1] [0] [0] [5]]", "[[0] [0]]"),
    ("['B-PER' 'O'\n 'O' 'B-LOC']", "['O' 'O']"),
    ("  [B-PER, O, O, B-LOC] ", "[]"),
]
COMMAS = [["3,7", "0,5", "2"], ["1.234,5", "2,0", "k. A."], ["1,234", "12,500", "7"], [",5", "1,", "1,2"]]  # fmt: skip
CHOICES = {"value": {"choices": ["pos"]}, "from_name": "label", "type": "choices"}
OF_OTHER_PROGRAMS = [
    ("a.conllu", CONLL_2003, {"split_by": "sentence"}, "as in CoNLL-2003"),
    *(("a.csv", csv("tokens,ner_tags", f'a b c d,"{x}"', f'a b,"{y}"'), WORDS, ": ner_tags is a list written as text") for x, y in AS_TEXT),
    *(("a.jsonl", jsonl(tagged([*"abcd"], x), tagged([*"ab"], y)), WORDS, "line 1: ner_tags is a list written as text") for x, y in AS_TEXT),
    ("a.csv", csv("tokens,ner_tags", '"[1 0 0 5]",O O O O', '"[0 0]",O O'), WORDS, ": tokens is a list written as text"),
    # R joins lists by bars.
    ("a.csv", csv("tokens,ner_tags", *["Bert|sees|Oslo,B-PER|O|B-LOC", "Eva|sees|old|Oslo,B-PER|O|O|B-LOC"] * 8), WORDS, "tokens is a list written as text: 'Bert|sees|Oslo'; save as JSON"),
    ("a.csv", csv("tokens,ner_tags", *["Bert sees Oslo,B-PER|O|B-LOC", "Eva sees old Oslo,B-PER|O|O|B-LOC"] * 8), WORDS, "ner_tags is a list written as text: 'B-PER|O|B-LOC'; save as JSON"),
    ("a.jsonl", jsonl(tagged(["Bert", "sees"], "B-PER|O"), tagged(["Eva", "sees", "Oslo"], "B-PER|O|B-LOC")) * 8, WORDS, "ner_tags is a list written as text: 'B-PER|O'; write a list"),
    # Numbers with a decimal comma.
    *(("a.csv", csv("text,mood", *(f't,"{x}"' for x in cells * 10)), TEXT, f"line 2: mood is '{cells[0]}', with a comma; write a num") for cells in COMMAS),
    *(("a.jsonl", jsonl(*(tagged(["a"], [x]) for x in cells * 10)), WORDS, "with a comma") for cells in COMMAS),
    # Label Studio.
    ("a.jsonl", changed(0, mood=[{"start": 0, "end": 3, "labels": ["PER"]}]), {"task_from": ("mood",)}, "for labels of whole texts, give --text text --label"),
    ("a.json", json.dumps([{"id": 1, "annotations": [{"result": [CHOICES]}], "data": {"text": "t"}}]), TEXT, "export JSON-MIN or CSV instead"),
]  # fmt: skip

PAIRS, FACTS = "sentence_good,sentence_bad", "subject,template,object"
PAIR = {"sentence_good": "a", "sentence_bad": "b"}
ITEMS = [
    ("a.csv", csv(PAIRS, "A b.,A c.", '"Two\nlines.",Two.', "x,"), {}, "line 5: sentence_bad is empty or not text"),
    ("a.jsonl", jsonl(PAIR) + "\n" + jsonl({**PAIR, "sentence_bad": 3}), {}, "line 3: sentence_bad is empty or not text"),
    ("a.jsonl", jsonl(PAIR, {"sentence_good": "a"}), {}, "line 2: sentence_bad is empty or not text"),
    ("a.csv", csv(f"{PAIRS},group", "a,b,  "), {}, "line 2: group is empty or not text"),
    ("a.json", json.dumps([PAIR, {**PAIR, "sentence_good": " "}]), {}, "row 2: sentence_good is empty or not text"),
    ("a.csv", csv(FACTS, "O,[X] is.,N"), {}, "line 2: the template '[X] is.' must have exactly one [Y]"),
    ("a.csv", csv(FACTS, "O,[Y] [Y] [X],N"), {}, "line 2: the template '[Y] [Y] [X]' must have exactly one [Y]"),
    ("a.csv", csv(FACTS, "O,is [Y],N"), {}, "line 2: the template 'is [Y]' must have exactly one [X]"),
    ("a.csv", csv(FACTS, ",[X] [Y],N"), {}, "line 2: subject is empty or not text"),
    ("a.csv", csv(PAIRS, "a,b"), {"group": "x"}, "--group: does not apply to --corpus"),
]  # fmt: skip
OTHERS = [
    ("a.jsonl", "x", {}, "a.jsonl, line 1: not JSON"),
    ("a.txt", "x", {}, "give a spaCy pipeline with --annotate"),
    ("a.md", "x", {}, "a.md: not a format that can be read; give .conllu, .csv, .json, .jsonl, .parquet or .txt"),
    ("a-train.conllu", "x", {"task_from": ("x",)}, "--task-from: does not apply to --corpus"),
    ("mine.conllu", "", {}, "mine.conllu: the file is empty."),
    ("en_x-ud-dev.conllu", "", {}, "en_x-ud-dev.conllu: the file is empty."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [*JSON, *WORDS_AND_LABELS, *TEXTS, *OF_OTHER_PROGRAMS, *ITEMS, *OTHERS],
)
def test_a_file_is_refused_in_one_line(name, content, options, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as refused:
        find_corpus(str(path), **options).load()
    assert message in str(refused.value)
    assert str(path) in str(refused.value) or "--corpus" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({"state.json": "{}", "dataset_info.json": "{}"}, "", "was written by datasets.save_to_disk"),
        ({"dataset_dict.json": "{}"}, "", "write each split by to_parquet"),
        ({"a.conllu": "x", "b.jsonl": "x"}, "*", "files of the kinds .conllu, .jsonl; give files of one kind"),
        ({"a.csv": csv(PAIRS, "a,b"), "b.csv": csv(FACTS, "a,[X] [Y],b")}, "*", "some files hold pairs, others facts; give one kind"),
        ({"a.csv": csv(PAIRS, "a,b"), "b.csv": csv("text,label", "a,b")}, "*", "minimal pairs have the columns sentence_good"),
    ],
)  # fmt: skip
def test_a_folder_is_refused_in_one_line(files, pattern, message, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as refused:
        find_corpus(str(tmp_path / pattern)).load()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
