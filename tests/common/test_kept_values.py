"""Values kept in the user's cache folder: found again, never of another key, never damaged."""

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import probes
from probes.common import kept_values
from probes.common.files import digest_of_code
from probes.common.kept_values import FILE, find, keep, kept, key_of


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBES_CACHE_DIR", str(tmp_path))
    return tmp_path / FILE


VALUE = [[1, 2], None, "ä\ud800", 0.1 + 0.2, {"x": True}]


def test_a_value_is_made_once(file):
    made = []

    def make():
        made.append(1)
        return VALUE

    assert [kept(lambda: key_of("a", 1), make) for _ in range(3)] == [VALUE] * 3
    assert len(made) == 1
    assert find(key_of("a", 2)) == []
    assert kept(lambda: key_of("none", 1), lambda: None) is None
    assert find(key_of("none", 1)) == [None]


def test_what_changes_while_a_value_is_made_is_not_kept(file):
    keys = iter(["before", "after"])
    assert kept(lambda: next(keys), lambda: "of either") == "of either"
    assert find("before") == find("after") == []


def test_a_key_is_of_its_kind_of_all_of_its_basis_and_of_the_code(monkeypatch):
    keys = {key_of("a", 1, (2, 3)), key_of("b", 1, (2, 3)), key_of("a", 1, (2, 4)), key_of("a", 1)}
    assert len(keys) == 4
    key = key_of("a", 1)
    assert key_of("a", 1) == key
    monkeypatch.setattr(kept_values, "versions", lambda: ("other code", "3.11"))
    assert key_of("a", 1) != key


def test_the_digest_of_code_is_of_names_and_contents(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "inner" / "b.py").write_text("2")
    before = digest_of_code([tmp_path])
    (tmp_path / "notes.txt").write_text("3")
    assert digest_of_code([tmp_path]) == before
    (tmp_path / "inner" / "b.py").write_text("3")
    changed = digest_of_code([tmp_path])
    (tmp_path / "inner" / "b.py").rename(tmp_path / "inner" / "c.py")
    assert len({before, changed, digest_of_code([tmp_path])}) == 3


def truncate(path):
    path.write_bytes(path.read_bytes()[:5000])


def overwrite(path):
    path.write_bytes(b"no database" * 999)


def change_value(path):
    content, value = (
        path.read_bytes(),
        zlib.compress(json.dumps([key_of("a", 1), VALUE]).encode(), 1),
    )
    at = content.index(value) + len(value) // 2
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


def move_value(path):
    with sqlite3.connect(path) as database:
        database.execute("UPDATE kept SET key = ?", (key_of("a", 1),))


def change_type(path):
    with sqlite3.connect(path) as database:
        database.execute("UPDATE kept SET key = ?, content = 7", (key_of("a", 1),))


@pytest.mark.parametrize("damage", [truncate, overwrite, change_value, move_value, change_type])
def test_a_damaged_file_is_made_anew_with_one_line(file, damage, capsys):
    keep(key_of("a", 0 if damage in (move_value, change_type) else 1), VALUE)
    damage(file)
    assert kept(lambda: key_of("a", 1), lambda: "new") == "new"
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{file}: ")
    assert "damaged (" in said[0]
    assert find(key_of("a", 1)) == ["new"]
    assert capsys.readouterr().err == ""


def test_where_nothing_can_be_kept_all_is_made(tmp_path, monkeypatch, capsys):
    (tmp_path / "cache").write_text("a file, no folder")
    monkeypatch.setenv("PROBES_CACHE_DIR", str(tmp_path / "cache"))
    numbers = iter((1, 2))
    assert [kept(lambda: key_of("a", 1), lambda: next(numbers)) for _ in range(2)] == [1, 2]
    assert capsys.readouterr().err == ""


def test_several_processes_write_at_once(file):
    code = (
        "import sys\nfrom probes.common.kept_values import *\n"
        "for i in range(100): keep(key_of('of all', i), i); keep(key_of(sys.argv[1], i), i)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    for kind in ("of all", *"abc"):
        assert [find(key_of(kind, i)) for i in range(100)] == [[i] for i in range(100)]


def test_a_file_of_too_many_bytes_is_begun_anew(file, monkeypatch):
    monkeypatch.setattr(kept_values, "MOST", 1 << 18)
    for i in range(80):
        keep(key_of("a", i), os.urandom(5_000).hex())
    assert len(find(key_of("a", 79))) == 1
    assert find(key_of("a", 0)) == []
    assert file.stat().st_size < 1.2 * (1 << 18)
    keep(key_of("long", 1), os.urandom(1 << 16).hex())
    assert find(key_of("long", 1)) == []


def test_python_may_lack_sqlite(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert kept(lambda: key_of("a", 1), lambda: 1) == 1
    assert not file.exists()


def test_keys_are_of_the_code_that_was_imported(tmp_path):
    """A session may last while its checkout is brought up to date."""
    for name in kept_values._PACKAGES:
        (tmp_path / name).mkdir()
    (tmp_path / "common" / "kept_values.py").write_text(Path(kept_values.__file__).read_text())
    code = (
        "import importlib.util, pathlib, sys\n"
        "spec = importlib.util.spec_from_file_location('kept', 'common/kept_values.py')\n"
        "spec.loader.exec_module(module := importlib.util.module_from_spec(spec))\n"
        "pathlib.Path(sys.argv[1], 'later.py').write_text('')\n"
        "print(module.key_of('a'))"
    )
    root = str(Path(probes.__file__).parents[1])
    keys = [
        subprocess.run(
            [sys.executable, "-c", code, folder],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root},
            check=True,
            capture_output=True,
        ).stdout
        for folder in ("probes", "data", "data")
    ]
    # The first session wrote a file after its import, which the second one has; the third another.
    assert len(set(keys)) == 3
