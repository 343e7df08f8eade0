"""The guides of docs/: their files, and their commands with what these print."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from probes.__main__ import main as probes_main
from probes.cli.main import main as run_main

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


class Guide:
    """A guide, or one of its sections, whose code blocks are files and commands."""

    def __init__(self, name, section=""):
        self.path, self.section = DOCS / name, section

    def blocks(self, *languages):
        """The contents of its blocks in some languages."""
        text = self.path.read_text(encoding="utf-8")
        if self.section:
            _, text = text.split(f"\n## {self.section}\n")
            text = text.split("\n## ")[0]
        found = BLOCK.findall(text)
        return [body for language, body in found if language in languages]

    @property
    def commands(self):
        """Each command with the lines that it prints, without repeated spaces."""
        found = []
        for block in self.blocks("console"):
            command, _, output = block.removeprefix("$ ").partition("\n")
            lines = (" ".join(line.split()) for line in output.splitlines() if line != "…")
            found.append((command, list(lines)))
        return found

    def follow(self, model, capsys, edit):
        """Run all of its commands, one after the other, and expect the lines that it shows.

        Args:
            edit: called after a template was written.
        """
        for command, shown in self.commands:
            assert self.run(command, model) == 0, (command, capsys.readouterr().err)
            lines = re.sub("[│┃]", " ", capsys.readouterr().out).splitlines()
            printed = [" ".join(line.split()) for line in lines]
            for line in shown:
                assert line in printed, command
            if " new-" in command:
                edit()

    def write(self, folder):
        """Write its files; the first line of each is its name."""
        for block in self.blocks("python", "text"):
            name, _, content = block.removeprefix("# ").partition("\n")
            (folder / name).write_text(content)

    def run(self, command, model):
        """Run one of its commands, with a tiny model in the place of the real one."""
        command, _, file = command.partition(" > ")
        if file:
            with open(file, "w", encoding="utf-8") as out, contextlib.redirect_stdout(out):
                return self.run(command, model)
        words = shlex.split(command.replace("all-MiniLM-L6-v2", str(model)))
        if words[:2] == ["python", "run_probes.py"]:
            small = ["--limit", "60", "--cache-dir", "cache", "--device", "cpu"]
            return run_main([*words[2:], *small])
        if words[:3] == ["python", "-m", "probes"]:
            return probes_main(words[3:])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, *words[1:]],
            check=False,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(done.stdout)
        return done.returncode
