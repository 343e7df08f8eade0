"""What was read of a corpus comes back from the cache as it was; whatever is wrong there is made anew."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.common.errors import UserError
from probes.common.origin import Origin
from probes.common.terminal import progress
from probes.data import labelled, sources, stored_corpora, treebank
from probes.data.arrow_columns import OtherTypeError, read_columns, write_columns
from probes.data.conllu_files import read_conllu
from probes.data.find import find_corpus
from probes.data.registered import corpora
from probes.data.sentence import (
    SPLITS,
    Constituent,
    Corpus,
    Frame,
    FrozenDict,
    Mention,
    Rating,
    Sentence,
)

TEXT = st.text(st.characters(exclude_categories=()), max_size=4)  # surrogates included
SPAN = st.tuples(st.integers(0, 9), st.integers(0, 300))
NAMES = st.dictionaries(TEXT, TEXT, max_size=2)
LABEL = st.one_of(st.none(), TEXT, st.floats(), st.lists(TEXT, max_size=2).map(tuple))


def tuples(entries):
    return st.lists(entries, max_size=3).map(tuple)


FEATS = NAMES.map(FrozenDict)
LAYERS = {
    **dict.fromkeys(("id", "language", "document", "genre"), TEXT),
    **dict.fromkeys(
        ("words", "upos", "xpos", "deprels", "chunks", "lemmas", "written"), tuples(TEXT)
    ),
    **dict.fromkeys(("whole", "chat", "special"), st.booleans()),
    "feats": tuples(FEATS),
    "heads": tuples(st.integers(-1, 40_000)),
    "starts": tuples(st.integers(-(2**63), 2**63 - 1)),
    "frames": tuples(st.builds(Frame, TEXT, SPAN, tuples(st.tuples(TEXT, SPAN)))),
    "columns": st.dictionaries(TEXT, tuples(LABEL), max_size=2),
    "mentions": tuples(st.builds(Mention, TEXT, TEXT, SPAN, TEXT, NAMES)),
    "ratings": tuples(
        st.builds(Rating, TEXT, tuples(st.integers(0, 9)), st.dictionaries(TEXT, st.floats()))
    ),
    "constituents": tuples(st.builds(Constituent, TEXT, SPAN, st.integers(-1, 9))),
}


def written_and_read(corpus, folder):
    path = folder / "c.arrow"
    write_columns(path, Corpus, corpus, {"key": "k"})
    return read_columns(path, Corpus, {"key": "k"})


def shown(value):
    """Value and types, all the way down."""
    if isinstance(value, tuple):
        return [type(value), *map(shown, value)]
    if isinstance(value, dict):
        return [type(value), *map(shown, value.items())]
    if hasattr(value, "__dataclass_fields__"):
        return [type(value), *(shown(getattr(value, field.name)) for field in fields(value))]
    return type(value), repr(value)


def require_equal(corpus, other):
    assert shown(corpus) == shown(other)
    assert corpus.fingerprint == other.fingerprint
    for one, two in zip(corpus, other, strict=True):
        assert repr(one) == repr(two)


def test_every_field_of_sentences_is_drawn():
    assert set(LAYERS) == {field.name for field in fields(Sentence)}


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.builds(Sentence, **LAYERS), max_size=4), st.booleans())
def test_sentences_come_back_with_equal_types_and_representations(tmp_path_factory, drawn, limited):
    splits = {"train": tuple(drawn), "dev": (), "test": tuple(drawn[:1])}
    corpus = Corpus("a", "", "CC", splits, {"note": 3}, limited)
    require_equal(corpus, written_and_read(corpus, tmp_path_factory.mktemp("drawn")))


def test_words_that_recur_are_interned_and_shared_features_stay_one_object(tmp_path):
    feats = FrozenDict(Number="Sing")
    sentences = tuple(Sentence(f"s{i}", "en", ("dog", "dog"), feats=(feats,)) for i in range(3))
    corpus = Corpus("a", "", "", dict.fromkeys(SPLITS, sentences))
    first, second, *_ = written_and_read(corpus, tmp_path)
    assert first.words[0] is sys.intern("".join(["d", "og"]))
    assert first.feats[0] is second.feats[0]
    with pytest.raises(TypeError, match="immutable"):
        first.feats[0]["Number"] = "Plur"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("words", ["a"]),
        ("words", None),
        ("words", frozenset(("a",))),
        ("words", (np.str_("a"),)),
        ("heads", (np.int64(0),)),
        ("heads", (True,)),
        ("heads", (2**63,)),
        ("columns", {"y": (1,)}),
        ("columns", {"y": (np.float64(1),)}),
        ("frames", (("break.01", (0, 1), ()),)),
        ("constituents", (Constituent("NP", (0, 1, 2), -1),)),
    ],
)
def test_a_value_of_another_type_than_declared_is_refused(tmp_path, field, value):
    sentence = replace(Sentence("s", "en", ("a",)), **{field: value})
    with pytest.raises(OtherTypeError):
        written_and_read(Corpus("a", "", "", dict.fromkeys(SPLITS, (sentence,))), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def messages(monkeypatch):
    said = []
    monkeypatch.setattr(
        progress, "forward", lambda level, message, *_: said.append((level, message))
    )
    return said


@pytest.fixture
def parses(monkeypatch):
    """The treebanks that were parsed; everything is worth storing."""
    monkeypatch.setattr(stored_corpora, "SHORTEST", 0.0)
    names = []
    monkeypatch.setattr(
        treebank, "read_conllu", lambda path, *args: names.append(path) or read_conllu(path, *args)
    )
    return names


WORD = "1\t{}\t{}\tNOUN\tNN\tNumber=Sing\t0\troot\t_\t_\n\n"


def conllu(folder, word="a"):
    folder.mkdir(exist_ok=True)
    for split in SPLITS:
        text = "".join(WORD.format(f"{word}{i}-{split}", word) for i in range(3))
        (folder / f"x_y-ud-{split}.conllu").write_text(text)
    return folder


def load(folder, cache, **fields):
    return find_corpus(str(folder), cache_dir=cache, **fields).load()


def stored_files(cache):
    return sorted((cache / stored_corpora.FOLDER).glob("*"))


def test_the_second_time_nothing_is_parsed(tmp_path, parses, messages):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    first = load(folder, cache)
    n_parses = len(parses)
    require_equal(first, load(folder, cache))
    # Elsewhere, but of equal names and content.
    (tmp_path / "b").mkdir()
    require_equal(first, load(folder.rename(tmp_path / "b" / "bank"), cache))
    assert len(parses) == n_parses
    assert len(stored_files(cache)) == 1
    assert messages == []


def test_whatever_changes_what_is_read_changes_the_key(tmp_path, parses, monkeypatch):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    source = find_corpus(str(folder), cache_dir=cache)
    source.load()
    path = folder / "x_y-ud-test.conllu"
    times = path.stat().st_mtime_ns
    variants = [replace(source, limit=1), replace(source, drop_overlap=True)]
    variants += [replace(source, name="other"), replace(source, licence="other")]
    for variant in variants:
        assert variant.load().name == variant.name
    monkeypatch.setattr(sources, "READERS_VERSION", -1)
    load(folder, cache)
    monkeypatch.setattr(stored_corpora, "readers", lambda: "other code")
    load(folder, cache)
    # One byte, with size and time as before.
    path.write_text(path.read_text().replace("a0-", "b0-"))
    os.utime(path, ns=(times, times))
    assert load(folder, cache).splits["test"][0].words == ("b0-test",)
    assert len(stored_files(cache)) == 1 + len(variants) + 3


def truncated(content):
    return content[: len(content) // 2]


def edited(content):
    return content.replace(b"a1-dev", b"a9-dev")


@pytest.mark.parametrize(
    "damage", [truncated, edited, lambda _: b"", lambda _: b"x" * 40, "foreign"]
)
def test_a_damaged_or_foreign_file_is_made_anew_with_a_line(tmp_path, parses, messages, damage):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    first = load(folder, cache)
    (path,) = stored_files(cache)
    sound = path.read_bytes()
    if damage == "foreign":
        load(conllu(tmp_path / "other", word="b"), cache)
        (other,) = {*stored_files(cache)} - {path}
        damaged = other.read_bytes()
    else:
        damaged = damage(sound)
    assert damaged != sound
    path.write_bytes(damaged)
    require_equal(first, load(folder, cache))
    ((level, line),) = messages
    assert level == "info"
    assert str(path) in line
    assert "read anew" in line
    assert "\n" not in line
    assert path.read_bytes() == sound


def test_without_a_cache_that_can_be_written_the_run_goes_on(tmp_path, parses, messages):
    folder = conllu(tmp_path / "bank")
    (tmp_path / "cache").write_text("a file")
    assert len(list(load(folder, tmp_path / "cache"))) == 9
    ((level, line),) = messages
    assert level == "debug"
    assert "not stored" in line


def test_files_that_change_while_they_are_read_are_not_stored(tmp_path, parses, monkeypatch):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    source = find_corpus(str(folder), cache_dir=cache)
    read = source.read

    def read_and_change(source):
        corpus = read(source)
        conllu(folder, word="b")
        return corpus

    replace(source, read=read_and_change).load()
    assert stored_files(cache) == []


TABLE = [{"tokens": ["a", "b"], "y": [None, ""], "document": 1, "z": 0.5}] * 3
TABLE += [{"tokens": ["c"], "y": ["NA"], "document": None, "z": None}] * 9


def test_a_table_is_neither_parsed_nor_inferred_again(tmp_path, parses, messages, monkeypatch):
    path, cache = tmp_path / "rows.jsonl", tmp_path / "cache"
    path.write_text("\n".join(map(json.dumps, TABLE)))
    about = {"cache_dir": cache, "task_from": ("y", "z"), "split_by": "sentence"}
    first = find_corpus(str(path), **about)
    corpus, said = first.load(), messages[:]
    messages.clear()
    with monkeypatch.context() as patch:
        patch.setattr(labelled, "read_table", None)
        second = find_corpus(str(path), **about)
        require_equal(corpus, second.load())
        assert messages == said  # of what was inferred
        about_first, about_second = (replace(x, read=len, loader=None) for x in (first, second))
        assert about_first == about_second
        assert repr(about_first) == repr(about_second)
        assert second.digest == first.digest
    # What is not stored of it is read, without messages.
    messages.clear()
    assert len(list(replace(second, limit=1).load())) == 3
    assert messages == []
    path.write_text(path.read_text().replace('"c"', '"d"'))
    with pytest.raises(UserError, match="changed while it was read"):
        replace(second, limit=2).load()


def test_other_label_columns_of_the_same_rows_are_read(tmp_path, parses):
    path, cache = tmp_path / "rows.jsonl", tmp_path / "cache"
    path.write_text("\n".join(map(json.dumps, TABLE)))
    for columns in (("y",), ("z",), ("y", "z"), ("z", "y")):
        about = {"task_from": columns, "split_by": "sentence"}
        stored = [find_corpus(str(path), cache_dir=cache, **about).load() for _ in range(2)]
        for corpus in stored:
            require_equal(find_corpus(str(path), **about).read_files(), corpus)
            assert list(corpus.splits["train"][0].columns) == [f"column {x}" for x in columns]


def test_facts_of_texts_with_special_tokens_are_stored(tmp_path, parses, monkeypatch):
    path = tmp_path / "rows.jsonl"
    rows = [{"text": f"text {i}", "y": "ab"[i % 2]} for i in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    about = {"cache_dir": tmp_path, "label": ("y",), "text": "text", "special_tokens": True}
    first = find_corpus(str(path), **about)
    monkeypatch.setattr(labelled, "read_table", None)
    assert find_corpus(str(path), **about).identity == first.identity


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_files_that_vanish_are_named_by_who_reads_them_or_were_read(tmp_path, parses, when):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    source = find_corpus(str(folder), cache_dir=cache)
    path = folder / "x_y-ud-test.conllu"
    if when == "before":
        path.unlink()
        with pytest.raises(UserError, match=r"x_y-ud-test\.conllu: cannot be read"):
            source.load()
    else:
        read = source.read
        vanishing = replace(source, read=lambda source: (read(source), path.unlink())[0])
        assert len(list(vanishing.load())) == 9
    assert stored_files(cache) == []


def test_what_a_plug_in_reads_is_not_stored(monkeypatch):
    assert find_corpus("sample").loader
    monkeypatch.setattr(corpora, "origin", lambda name: Origin("a plug-in", (), "0" * 64))
    assert find_corpus("sample").loader is None


def test_two_processes_store_the_same_corpus(tmp_path):
    folder, cache = conllu(tmp_path / "bank"), tmp_path / "cache"
    script = (
        "import sys; from pathlib import Path\n"
        "from probes.data import stored_corpora; stored_corpora.SHORTEST = 0\n"
        "from probes.data.find import find_corpus\n"
        "for i in range(20):\n"
        "    corpus = find_corpus(sys.argv[1], cache_dir=Path(sys.argv[2])).load()\n"
        "    [path.unlink(missing_ok=True) for path in Path(sys.argv[2]).glob('*/[0-9a-f]*') if i % 3]\n"
        "print(corpus.fingerprint)\n"
    )
    command = [sys.executable, "-c", script, str(folder), str(cache)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    outputs = [process.communicate() for process in processes]
    expected = find_corpus(str(folder)).read_files().fingerprint
    assert outputs == [(f"{expected}\n".encode(), b"")] * 2


def test_help_imports_no_pyarrow():
    script = "import sys, probes.data.find; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (("ewt",), {}),
        (("ewt",), {"limit": 50}),
        (("gum",), {"limit": 800}),
        (("conll2000",), {}),
        (("pud/en_*.conllu",), {"split_by": "sentence"}),
    ],
)
def test_real_corpora_come_back_equal(real_data, tmp_path, monkeypatch, names, settings):
    # Another test may have parsed it already.
    monkeypatch.setattr(stored_corpora, "SHORTEST", 0.0)
    names = [str(real_data / x) if "/" in x else x for x in names]
    source = find_corpus(*names, data_dir=real_data, cache_dir=tmp_path, **settings)
    corpus = source.load()
    assert stored_files(tmp_path)
    again = source.load()
    assert again.fingerprint == replace(again).fingerprint == corpus.fingerprint
    assert again == corpus
    for one, two in zip(corpus, again, strict=True):
        for field in fields(one):
            expected, value = getattr(one, field.name), getattr(two, field.name)
            assert value == expected
            assert type(value) is type(expected)
            assert repr(value) == repr(expected)
