"""The guide: its files are written, its commands run, and what it shows is what they print."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from probes.__main__ import main as probes_main
from probes.cli.main import main as run_main
from probes.records.probe_spec import PROBES

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-task.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)

pytestmark = pytest.mark.usefixtures("plug_ins")


def blocks(*languages):
    return [body for language, body in BLOCK.findall(GUIDE.read_text()) if language in languages]


COMMANDS = [block.removeprefix("$ ").partition("\n") for block in blocks("console")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the guide, as its reader would have them."""
    for block in blocks("python", "text"):
        name, _, content = block.removeprefix("# ").partition("\n")
        (tmp_path / name).write_text(content)
    for split in ("dev", "test"):
        (tmp_path / f"{split}.tagged").write_text((tmp_path / "train.tagged").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(folder, tiny_bert, monkeypatch):
    """Runs a command of the guide, with a tiny model in the place of the real one."""
    for name in ("linear", "mlp"):
        short = PROBES[name].model_copy(update={"epochs": 1, "min_steps": 24})
        monkeypatch.setitem(PROBES, name, short)

    def run(command):
        words = shlex.split(command.replace("all-MiniLM-L6-v2", str(tiny_bert)))
        if words[:2] == ["python", "run_probes.py"]:
            small = ["--limit", "60", "--cache-dir", "cache", "--device", "cpu"]
            return run_main([*words[2:], *small])
        if words[:3] == ["python", "-m", "probes"]:
            return probes_main(words[3:])
        path = os.pathsep.join(sys.path)
        return subprocess.run(
            [sys.executable, *words[1:]], check=False, env={**os.environ, "PYTHONPATH": path}
        ).returncode

    return run


@pytest.mark.parametrize("command", [command for command, _, _ in COMMANDS])
def test_every_command_runs_and_prints_what_the_guide_shows(command, run, capsys):
    assert run(command) == 0, capsys.readouterr().err
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = {command: output for command, _, output in COMMANDS}[command]
    for line in shown.splitlines():
        if line != "…":
            assert " ".join(line.split()) in printed


def test_there_are_commands_and_files():
    assert len(COMMANDS) == 8
    assert len(blocks("python")) == 10


def test_every_file_can_be_included_with_the_others(folder, run, capsys):
    files = [path.name for path in sorted(folder.glob("*.py")) if not path.stem.startswith("test_")]
    assert run(f"python run_probes.py --list-tasks --include {','.join(files)}") == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if line.endswith(".py]")]
    names = ["article", "dependents", "features", "passive", "same_chunk", "tense"]
    assert [line.split()[0] for line in marked] == names


def test_the_token_task_is_as_short_as_promised(folder):
    assert len((folder / "tense.py").read_text().strip().splitlines()) <= 25


def test_the_package_is_found_when_it_is_installed(folder, run, capsys, monkeypatch):
    import tomllib

    (toml,) = blocks("toml")
    project = tomllib.loads(toml)["project"]
    site = folder / "site"
    info = site / "tense_probe-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [
        f"[{g}]\n{name} = {value}" for g, points in groups.items() for name, value in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (site / "tense.py").write_text((folder / "tense.py").read_text())
    monkeypatch.syspath_prepend(site)
    assert run("python run_probes.py --list-tasks") == 0
    assert "[tense of tense-probe 1.0]" in capsys.readouterr().out
    sys.modules.pop("tense")
