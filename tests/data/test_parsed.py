"""Corpora that are kept as they were read."""

from dataclasses import fields
from functools import partial

import pytest

from probes.data.registered import read_once
from probes.data.sentence import Constituent, Corpus, Frame, Mention, Rating, Sentence
from probes.data.sources import Source

LAYERS = {
    "upos": ("PRON", "VERB"),
    "xpos": ("PRP", "VBZ"),
    "feats": ({"Person": "3", "Number": "Sing"}, {}),
    "heads": (1, -1),
    "deprels": ("nsubj", "root"),
    "chunks": ("B-NP", "B-VP"),
    "frames": (Frame("sleep.01", (1, 2), (("ARG0", (0, 1)),)),),
    "document": "weblog-1",
    "genre": "weblog",
    "lemmas": ("she", "sleep"),
    "written": ("She", " sleeps\n"),
    "mentions": (Mention("e1", "person", (0, 1), "1/2", {"head": "1"}), Mention("", "", (0, 0))),
    "starts": (0, 1),
    "ratings": (Rating("factuality", (1,), {"factual": 0.1 + 0.2, "other": -1e-17}),),
    "constituents": (Constituent("S", (0, 2), -1), Constituent("NP", (0, 1), 0)),
}


def read(calls, source):
    """Three sentences of train and one of test, of which one has every layer, others none."""
    calls.append(source.limit)
    rich = Sentence("1", "en", ("She\u2028", "sleeps"), **LAYERS)
    plain = [Sentence(str(n), "en", ("“", "é")) for n in (2, 3)]
    splits = {"train": (rich, *plain), "dev": (), "test": (Sentence("4", "he", ("x",)),)}
    return Corpus("name", "1", "MIT", splits, {"joined": 3})


def source(folder, calls, limit=None, sha256="a" * 64):
    reader = partial(read_once, partial(read, calls), folder)
    return Source("name", "1", "MIT", {}, {"train": sha256}, reader, limit=limit)


def every_field(corpus):
    return {
        split: [repr([getattr(s, field.name) for field in fields(s)]) for s in part]
        for split, part in corpus.splits.items()
    }


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 4])
def test_what_is_kept_is_what_was_read(tmp_path, limit):
    calls = []
    expected = source(tmp_path, calls, limit).load()
    # Only a whole corpus is kept.
    assert len(list(tmp_path.iterdir())) == (limit is None)
    source(tmp_path, calls).load()
    found = source(tmp_path, calls, limit).load()
    assert calls == [None] if limit is None else [limit, None]
    assert every_field(found) == every_field(expected)
    assert found == expected
    assert found.fingerprint == expected.fingerprint
    assert found.limited == (limit in (1, 2))
    assert found.notes.get("joined") == (None if found.limited else 3)
    # Another version replaces this one.
    (before,) = tmp_path.iterdir()
    source(tmp_path, calls, sha256="b" * 64).load()
    (after,) = tmp_path.iterdir()
    assert calls[-1] is None
    assert before != after


@pytest.mark.parametrize(
    "damaged",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"sleeps", b"sleepy"),
        lambda content: content.replace(b'"joined": 3', b'"joined": 4'),
        lambda content: b"\n".join(content.split(b"\n")[1:]),
    ],
)
def test_a_damaged_file_is_made_again(tmp_path, capsys, damaged):
    calls = []
    expected = source(tmp_path, calls).load()
    (path,) = tmp_path.iterdir()
    kept = path.read_bytes()
    path.write_bytes(damaged(kept))
    found = source(tmp_path, calls).load()
    assert every_field(found) == every_field(expected)
    assert found.notes == expected.notes
    assert calls == [None, None]
    assert f"{path}: damaged" in capsys.readouterr().err
    assert path.read_bytes() == kept


def test_a_folder_that_cannot_be_written_is_said_and_does_without(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    calls = []
    assert source(tmp_path / "file", calls).load().splits["dev"] == ()
    assert "name is not kept as it was read" in capsys.readouterr().err
