"""Answers of commands that read results: the same again without work, and never a stale one."""

import os
import shutil

import pytest
from board_by_hand import put
from plugged_in import TASK

from probes.__main__ import main
from probes.cli import answers
from probes.common import kept_values


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBES_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(answers, "_YOUNG", 0)
    for model, wrong in (("first", 40), ("close", 42), ("low", 200)):
        put(tmp_path / "results", model, "pos", wrong)
    return tmp_path / "results"


@pytest.fixture
def runs(monkeypatch):
    """The commands that were run, not answered."""
    from probes.cli.commands import leaderboard

    names, run = [], leaderboard.run

    def counting(options):
        names.append("leaderboard")
        return run(options)

    monkeypatch.setattr(leaderboard, "run", counting)
    return names


def ask(capsys, *arguments, status=0):
    assert main(["leaderboard", *map(str, arguments)]) == status
    return capsys.readouterr()


@pytest.mark.parametrize("form", ["table", "md", "csv", "json", "latex"])
def test_the_same_is_printed_again_without_work(folder, runs, form, capsys):
    (folder / "first" / "c" / "damaged-12345678.json").write_text("{")
    first = ask(capsys, folder, "--format", form)
    assert "first" in first.out
    assert "damaged-12345678.json" in first.err
    assert ask(capsys, folder, "--format", form) == first
    assert len(runs) == 1


def a_record(folder):
    return sorted(folder.rglob("pos-*.json"))[0]


def change_in_place(folder, monkeypatch):
    """A digit of a score, with the size and time of change that the file had."""
    path = a_record(folder)
    before, content = path.stat(), path.read_text()
    changed = content.replace('"first"', '"fi2st"').replace('"close"', '"cl2se"')
    assert changed != content
    with path.open("r+") as file:
        file.write(changed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def delete_record(folder, monkeypatch):
    a_record(folder).unlink()


def delete_arrays(folder, monkeypatch):
    a_record(folder).with_suffix(".npz").unlink()


def add_record(folder, monkeypatch):
    put(folder, "new", "pos", 30)


def add_twin(folder, monkeypatch):
    put(folder, "random:first", "pos", 41, random_seed=0)


def narrow(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")


def other_code(folder, monkeypatch):
    monkeypatch.setattr(kept_values, "versions", lambda: ("other code",))


@pytest.mark.parametrize(
    "change",
    [change_in_place, delete_record, delete_arrays, add_record, add_twin, narrow, other_code],
)
def test_whatever_an_answer_depends_on_makes_it_anew(folder, runs, change, monkeypatch, capsys):
    before = ask(capsys, folder)
    change(folder, monkeypatch)
    after = ask(capsys, folder)
    assert len(runs) == 2
    monkeypatch.setattr(answers, "find", lambda key: [])
    assert ask(capsys, folder) == after
    assert (after == before) == (change is other_code)


def test_a_twin_in_the_folder_beside_counts(folder, runs, capsys):
    before = ask(capsys, folder / "first")
    add_twin(folder, None)
    assert ask(capsys, folder / "first").out != before.out
    assert len(runs) == 2


def test_the_working_folder_itself_may_be_named(folder, runs, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = ask(capsys, ".")
    assert ask(capsys, ".") == before
    add_record(folder, None)
    assert ask(capsys, ".").out != before.out
    assert len(runs) == 2


def test_twins_beside_the_file_that_a_link_names_count(folder, runs, tmp_path, capsys):
    linked = tmp_path / "links" / "first" / "c"
    linked.mkdir(parents=True)
    for path in (folder / "first" / "c").iterdir():
        (linked / path.name).symlink_to(path)
    before = ask(capsys, tmp_path / "links")
    add_twin(folder, None)
    assert ask(capsys, tmp_path / "links").out != before.out
    assert len(runs) == 2


def test_a_working_folder_that_was_deleted_is_no_defect(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    expected = ask(capsys, folder)
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert ask(capsys, folder) == expected


def test_other_options_are_another_question_and_plug_ins_are_always_asked(
    folder, runs, tmp_path, capsys
):
    plug_in = tmp_path / "extra.py"
    plug_in.write_text(TASK.replace("mine", "of_answers"))
    for _ in range(2):
        ask(capsys, folder)
        ask(capsys, folder, "--together")
    assert len(runs) == 2
    # Its code may read files that nobody knows of.
    for n in (3, 4):
        ask(capsys, folder, "--include", plug_in)
        assert len(runs) == n


def test_relative_names_are_of_the_working_folder(folder, runs, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    first = ask(capsys, "results")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copytree(folder / "low", other / "results" / "low")
    monkeypatch.chdir(other)
    assert ask(capsys, "results") != first
    assert len(runs) == 2


def test_errors_and_what_was_changed_just_now_are_not_kept(folder, runs, monkeypatch, capsys):
    ask(capsys, folder, "--task", "no-task", status=2)
    ask(capsys, folder, "--task", "no-task", status=2)
    assert len(runs) == 2
    monkeypatch.setattr(answers, "_YOUNG", 10**12)
    ask(capsys, folder)
    ask(capsys, folder)
    assert len(runs) == 4


def test_a_record_that_changes_while_it_is_read_is_not_kept(folder, runs, monkeypatch, capsys):
    from probes.cli.commands import leaderboard

    run = leaderboard.run

    def with_change(options):
        status = run(options)
        delete_record(folder, None)
        return status

    monkeypatch.setattr(leaderboard, "run", with_change)
    stale = ask(capsys, folder)
    monkeypatch.setattr(leaderboard, "run", run)
    assert ask(capsys, folder).out != stale.out


@pytest.mark.parametrize(
    "arguments",
    [["claims"], ["show"], ["show", "--by", "label"], ["compare", "first", "low", "--results"]],
)
def test_every_command_that_reads_answers_again(folder, arguments, monkeypatch, capsys):
    texts = []
    for _ in range(2):
        assert main([*arguments, str(folder), "--format", "csv"]) == 0
        texts.append(capsys.readouterr())
    assert texts[0] == texts[1]
    assert "low" in texts[0].out or "no breakdown" in texts[0].err
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probes.frames.frame.load", None)
        assert main([*arguments, str(folder), "--format", "csv"]) == 0
