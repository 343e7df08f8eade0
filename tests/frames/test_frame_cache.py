"""The cache behind `leaderboard.csv`: what is read again, and that it changes no row."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from board_by_hand import put, put_evidence

import probes.frames.frame as frame
from probes.boards.leaderboard_csv import LONG_COLUMNS, write_leaderboard
from probes.common.origin import Origin, loading
from probes.frames.frame import HEADERS, ROWS, load
from probes.measurements.measurement import measurement, measurements
from probes.records.row import Row
from probes.tables.table import csv_line


@pytest.fixture
def stored_results(tmp_path):
    put(tmp_path, "m", "pos", 9)
    put(tmp_path, "m", "srl", 19)
    put(tmp_path, "other", "pos", 99, p_best=False)
    return tmp_path


@pytest.fixture
def reads(monkeypatch):
    """The paths that are read, in order."""
    seen = []
    read_records = frame.read_records

    def recorded(paths, read):
        paths = list(paths)
        seen.extend(paths)
        return read_records(paths, read)

    monkeypatch.setattr(frame, "read_records", recorded)
    return seen


def leaderboard(folder):
    return write_leaderboard(folder).read_bytes()


def afresh(folder):
    """The leaderboard without a cache."""
    for name in (HEADERS, ROWS):
        (folder / name).unlink(missing_ok=True)
    return leaderboard(folder)


def records(folder):
    return sorted(folder.rglob("*-????????.json"))


def test_unchanged_files_are_read_once(stored_results, reads):
    first = leaderboard(stored_results)
    assert sorted(reads) == records(stored_results)
    reads.clear()
    assert leaderboard(stored_results) == first
    assert reads == []
    assert afresh(stored_results) == first


def test_an_edited_or_deleted_file_is_written_again(stored_results, reads):
    path = write_leaderboard(stored_results)
    first = path.read_bytes()
    path.write_bytes(b"edited")
    assert write_leaderboard(stored_results).read_bytes() == first
    path.unlink()
    assert write_leaderboard(stored_results).read_bytes() == first
    put(stored_results, "new", "pos", 4)
    assert b"new" in write_leaderboard(stored_results).read_bytes()
    assert len(reads) == len(records(stored_results))


def test_only_what_is_new_is_read(stored_results, reads):
    leaderboard(stored_results)
    reads.clear()
    path = put(stored_results, "new", "pos", 4, p_best=False)
    found = leaderboard(stored_results)
    assert reads == [path]
    assert found == afresh(stored_results)


@pytest.mark.parametrize("score", ["0.985", "0.98"], ids=["of another size", "of the same size"])
def test_a_changed_file_is_read_again(stored_results, reads, score):
    path = put(stored_results, "new", "pos", 4, p_best=False)
    before = leaderboard(stored_results)
    reads.clear()
    path.write_text(path.read_text().replace("0.99", score))
    time = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(time, time))
    found = leaderboard(stored_results)
    assert reads == [path]
    assert found != before
    assert f",{score},".encode() in found
    assert found == afresh(stored_results)


def test_a_deleted_file_has_no_rows(stored_results, reads):
    before = leaderboard(stored_results)
    path = put(stored_results, "new", "pos", 4)
    assert leaderboard(stored_results) != before
    shutil.rmtree(path.parents[1])
    reads.clear()
    assert leaderboard(stored_results) == before
    assert reads == []
    headers = pd.read_parquet(stored_results / HEADERS)
    assert not any(name.startswith("new") for name in headers["path"])
    assert {*pd.read_parquet(stored_results / ROWS)["path"]} == {*headers["path"]}


def rewritten(path, change):
    """Write a table of the cache again with a change."""
    table = pd.read_parquet(path)
    changed = change(table)
    changed.attrs = {**table.attrs, **changed.attrs}
    changed.to_parquet(path, index=False)


def of_everybody(value):
    """Gives every number of the rows, or every model, this value."""
    return lambda table: table.assign(**{"value" if "value" in table else "model": value})


DAMAGE = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:500]),
    "no Parquet": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "empty": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
    "made up": lambda path: rewritten(path, of_everybody(0.99912)),
    "without a column": lambda path: rewritten(path, lambda table: table.iloc[:, 1:]),
}


@pytest.mark.parametrize(
    ("damage", "name"),
    [*((damage, HEADERS) for damage in DAMAGE), *((damage, ROWS) for damage in DAMAGE)],
)
def test_a_damaged_or_made_up_cache_is_made_anew(stored_results, reads, damage, name, capsys):
    before = leaderboard(stored_results)
    tables = [pd.read_parquet(stored_results / each) for each in (HEADERS, ROWS)]
    DAMAGE[damage](stored_results / name)
    reads.clear()
    capsys.readouterr()
    assert leaderboard(stored_results) == before
    assert sorted(reads) == records(stored_results)
    if (damage, name) != ("deleted", HEADERS):
        assert capsys.readouterr().err == (
            f"{stored_results / HEADERS}: damaged, or not written by this version on this machine; all "
            "records are read again\n"
        )
    for each, table in zip((HEADERS, ROWS), tables, strict=True):
        pd.testing.assert_frame_equal(pd.read_parquet(stored_results / each), table)
    reads.clear()
    assert leaderboard(stored_results) == before
    assert reads == []


def test_a_copy_and_a_cache_that_has_no_checksums_are_no_damage(
    stored_results, tmp_path_factory, capsys
):
    before = leaderboard(stored_results)
    copy = shutil.copytree(stored_results, tmp_path_factory.mktemp("copies") / "copy")
    capsys.readouterr()
    assert leaderboard(copy) == before
    assert capsys.readouterr().err == ""


def test_without_a_home_directory_the_cache_is_not_used(stored_results, reads, monkeypatch):
    before = leaderboard(stored_results)
    monkeypatch.setattr(frame, "default_cache", lambda: Path("~nobody-of-this-name").expanduser())
    for _ in range(2):
        reads.clear()
        assert leaderboard(stored_results) == before
        assert sorted(reads) == records(stored_results)


def test_no_flipped_bit_changes_the_leaderboard(stored_results):
    before, draw = leaderboard(stored_results), np.random.default_rng(5)
    for _ in range(20):
        for name in (HEADERS, ROWS):
            content = bytearray((stored_results / name).read_bytes())
            content[draw.integers(len(content))] ^= 1 << draw.integers(8)
            (stored_results / name).write_bytes(content)
            assert leaderboard(stored_results) == before


def test_a_cache_of_another_version_is_not_used(stored_results, reads, monkeypatch):
    before = leaderboard(stored_results)
    monkeypatch.setattr(frame, "VERSION", "0")
    reads.clear()
    assert leaderboard(stored_results) == before
    assert sorted(reads) == records(stored_results)


def test_tables_and_cache_of_somebody_else_are_not_used(stored_results, reads):
    """Everything in a folder fits together, but was not written here."""
    before = leaderboard(stored_results)
    theirs = shutil.copytree(stored_results, stored_results.with_name("theirs"))
    rewritten(theirs / ROWS, of_everybody(0.99912))
    (theirs / "leaderboard.csv").write_text("made up")
    reads.clear()
    assert write_leaderboard(theirs).read_bytes() == before
    assert sorted(reads) == records(theirs)


def test_without_a_folder_for_checksums_there_is_no_cache(
    stored_results, reads, monkeypatch, capsys
):
    (stored_results / "file").write_text("")
    monkeypatch.setenv("PROBES_CACHE_DIR", str(stored_results / "file"))
    first = leaderboard(stored_results)
    assert "the cache of" in (said := capsys.readouterr().err)
    assert "will not be used" in said
    assert leaderboard(stored_results) == first
    assert sorted(reads) == sorted([*records(stored_results), *records(stored_results)])


def test_headers_and_rows_of_different_runs_are_not_used(stored_results, reads):
    leaderboard(stored_results)
    rows = (stored_results / ROWS).read_bytes()
    put(stored_results, "new", "pos", 4, p_best=False)
    after = leaderboard(stored_results)
    # As after a run that was killed between the two files.
    (stored_results / ROWS).write_bytes(rows)
    reads.clear()
    assert leaderboard(stored_results) == after
    assert sorted(reads) == records(stored_results)


def test_folders_that_overlap_give_every_number_once(stored_results):
    whole, more = load(stored_results), load(stored_results / "m", stored_results, stored_results)
    assert set(more.paths) == set(whole.paths)
    assert len(more.long(slice(None), [])) == len(whole.long(slice(None), [])) > 0


def test_a_damaged_record_is_named_every_time_and_read_again_when_it_is_whole(
    stored_results, capsys
):
    path = put(stored_results, "new", "pos", 4, p_best=False)
    text = path.read_text()
    path.write_text(text[:100])
    for _ in range(2):
        assert b'"new"' not in leaderboard(stored_results)
        assert f"left out {path}: not a readable result" in capsys.readouterr().err
    path.write_text(text)
    assert b'"new"' in leaderboard(stored_results)


def wug_of(context):
    """Wugs."""
    return WUGS


WUGS = [Row("wugs", 0.5, 1, 0.25, 0.75, "dev", axes={"head": 3, "kind": "a"}), Row("all", None)]


@pytest.fixture
def wug():
    """Registers the measurement as that of a plug-in, and takes it back."""
    found = []

    def register():
        with loading(Origin("wug.py", (), "a" * 64)) as loaded:
            measurement("wug", after="scores")(wug_of)
        found.append(loaded)

    yield register
    for loaded in found:
        if "wug" in measurements:
            loaded.unregister()


def test_numbers_of_plug_ins_are_rows_of_their_own_file(stored_results, wug):
    before = leaderboard(stored_results)
    wug()
    path = put(stored_results, "x", "pos", 9, p_best=False)
    leaderboard(stored_results)
    assert not (stored_results / "measurements.csv").exists()
    beside = put_evidence(path, "wug", WUGS, version=1)
    assert before == leaderboard(stored_results).replace(*_rows_of(stored_results, '"x"'))
    header, first, second = (
        (stored_results / "measurements.csv").read_text().splitlines(keepends=True)
    )
    key = f"sha256:{beside.stem[-8:]}"
    assert header == csv_line(LONG_COLUMNS)
    shared = ["x", None, "c", None, "pos", "linear", "wug"]
    wugs = [*shared, 1, "head=3 kind=a", "wugs", "dev", 0.5, 0.25, 0.75, key]
    assert first == csv_line(wugs)
    assert second == csv_line([*shared, None, "", "all", "test", None, None, None, key])
    # The rows go with their record.
    beside.unlink()
    leaderboard(stored_results)
    assert (stored_results / "measurements.csv").read_text() == header


def _rows_of(folder, name):
    """Rows of the leaderboard that begin with `name`, to be replaced by nothing."""
    lines = (folder / "leaderboard.csv").read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if line.startswith(name.encode())), b""
