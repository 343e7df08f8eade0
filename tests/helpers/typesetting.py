"""Tables typeset by pdflatex."""

import re
import shutil
import subprocess

import pytest

SIGNS = re.compile(r"[ -~\n]*")

NO_LATEX = pytest.mark.skipif(
    not shutil.which("pdflatex")
    or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).returncode
    > 0,
    reason="there is no pdflatex with booktabs here",
)


def typeset(folder, text, options=""):
    """What pdflatex says of tables."""
    packages = rf"\documentclass[{options}]{{article}}\usepackage{{booktabs}}"
    document = rf"{packages}\begin{{document}}\listoftables {text}\end{{document}}"
    (folder / "paper.tex").write_text(document, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    said = [subprocess.run(command, cwd=folder, capture_output=True, check=False) for _ in "12"]
    assert said[1].returncode == 0, said[1].stdout.decode(errors="replace")[-2000:]
    return said[1].stdout
