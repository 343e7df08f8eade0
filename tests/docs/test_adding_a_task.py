"""The guide: its files are written, its commands run, and what it shows is what they print."""

import json
import re
import tomllib

import pytest
from guides import Guide

from probes.statistics.metrics import metrics

GUIDE = Guide("adding-a-task.md")
COMMANDS = GUIDE.commands

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the guide, as its reader would have them."""
    GUIDE.write(tmp_path)
    for split in ("dev", "test"):
        (tmp_path / f"{split}.tagged").write_text((tmp_path / "train.tagged").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(folder, tiny_bert):
    """Runs a command of the guide, with a tiny model in the place of the real one."""
    return lambda command: GUIDE.run(command, tiny_bert)


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_every_command_runs_and_prints_what_the_guide_shows(command, shown, run, capsys):
    assert run(command) == 0, capsys.readouterr().err
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in shown:
        assert line in printed


def test_there_are_commands_and_files():
    assert len(COMMANDS) == 9
    assert len(GUIDE.blocks("python")) == 11


def test_every_file_can_be_included_with_the_others(folder, run, capsys):
    files = [path.name for path in sorted(folder.glob("*.py")) if not path.stem.startswith("test_")]
    listed = "python run_probes.py --list-tasks --format json --include "
    assert run(listed + ",".join(files)) == 0
    rows = json.loads(capsys.readouterr().out)
    marked = [row["name"] for row in rows if row["summary"].endswith(".py]")]
    names = ["article", "dependents", "features", "frequency", "passive", "same_chunk", "tense"]
    assert marked == names


def test_the_token_task_is_as_short_as_promised(folder):
    assert len((folder / "tense.py").read_text().strip().splitlines()) <= 25


def test_the_package_is_found_when_it_is_installed(folder, install, run, capsys):
    (toml,) = GUIDE.blocks("toml")
    ((group, points),) = tomllib.loads(toml)["project"]["entry-points"].items()
    install("tense", (folder / "tense.py").read_text(), points, group)
    assert run("python run_probes.py --list-tasks --format csv") == 0
    assert "[tense of dist-tense 2.1]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["classification", "regression", "multi-label"])
def test_the_guide_lists_the_metrics_of_each_kind(kind):
    (row,) = re.findall(rf"^\| `{kind}` \|.*\|(.*)\|$", GUIDE.path.read_text(), re.M)
    known = {name for name in metrics if kind in metrics.get(name).kinds}
    assert set(re.findall(r"`(\w+)`", row)) - {"also"} == known
