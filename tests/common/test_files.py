"""Folder names, temporary files, folders searched through links."""

import contextlib
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.common.errors import UserError
from probes.common.files import folder_name, matching_files, published

HOSTILE = [
    *("../../etc", "a/b", "/", "", ".", "..", "...", "a--b", "-x", " x", "x ", "x.", "~", "a\\b"),
    *("CON", "con", "nul", "aux.", "aux.txt", "LPT1", "com9.json", "a\nb", "a\0b", "模型", "😀"),
    *("x" * 300, "x" * 299 + "y", "Foo", "foo", "FOO", "org/Foo", "org/foo", "org--foo", "\ud800"),
]


def is_safe(folder):
    assert folder.isascii()
    assert folder.isprintable()
    assert set(folder) & set('/\\:*?"<>| \0') == set()
    assert 0 < len(folder) <= 110
    assert not folder.startswith((".", "-"))
    assert not folder.endswith(".")
    stem = folder.partition(".")[0].lower()
    assert stem not in ("con", "prn", "aux", "nul", "com9", "lpt1")


def test_hostile_names_give_safe_folders_that_differ_without_regard_to_case():
    folders = [folder_name(name) for name in HOSTILE]
    for folder in folders:
        is_safe(folder)
    assert len({folder.lower() for folder in folders}) == len(HOSTILE)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("bert-base-uncased", "bert-base-uncased"),
        ("google/bert_uncased", "google--bert_uncased"),
        ("../../etc", "etc-74ccf3c5"),
        ("con", "_con-1143da2b"),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2-07db4e1f"),
    ],
)
def test_names_stay_readable(name, folder):
    assert folder_name(name) == folder


@given(st.text(), st.text())
def test_no_two_names_share_a_folder(one, other):
    is_safe(folder_name(one))
    same = folder_name(one).lower() == folder_name(other).lower()
    assert same == (one == other)


def test_temporary_files_of_killed_runs_are_swept_and_those_of_others_kept(tmp_path):
    old, fresh = tmp_path / ".part-a.json", tmp_path / ".part-b.json"
    for path in (old, fresh):
        path.write_text("half")
    os.utime(old, (0, time.time() - 3700))
    with published(tmp_path / "x.json") as temporary:
        temporary.write_text("whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".part-b.json", "x.json"]


def test_what_breaks_off_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    with contextlib.suppress(ZeroDivisionError), published(path) as temporary:
        temporary.write_text("ne")
        raise ZeroDivisionError
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "f").write_text("")
    with (
        pytest.raises(UserError, match=r"f/x\.json: cannot be written"),
        published(tmp_path / "f" / "x.json"),
    ):
        pass


def test_links_to_folders_are_searched_once_and_loops_end(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "data" / "link" / "up").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    assert matching_files(tmp_path / "data", "*.txt", "a*") == [
        tmp_path / "data" / "link" / "a.txt"
    ]
