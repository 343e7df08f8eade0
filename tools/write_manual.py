"""Writes build/manual/: the pages of the manual as they lie in the repository, and its reference.

python tools/write_manual.py            # `make docs` does, and builds the site from them

Pages keep their places, so that a link leads to the same page here, in the site and on the web.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import probes
from probes.__main__ import COMMANDS
from probes.__main__ import main as command
from probes.boards.leaderboard_csv import BEHAVIOUR_COLUMNS, LONG_COLUMNS
from probes.cli.commands.figure import TREE
from probes.cli.figures import figure_names
from probes.cli.main import main as run
from probes.statistics.metrics import metrics
from probes.statistics.quantities import quantities

ROOT = Path(__file__).parents[1]
MANUAL = ROOT / "build" / "manual"
PUBLISHED = ROOT / "results" / "published"

PAGES = (
    "*.md",
    "CITATION.cff",
    "docs/*.md",
    "docs/img/*",
    "data/cards/*.md",
    "examples/*.ipynb",
    "results/README.md",
    "sweeps/*.toml",
)

ROOMS = {
    "cli": "Running, loading, plotting",
    "common": "Errors",
    "data": "Sentences and corpora",
    "tasks": "Tasks",
    "statistics": "Metrics and quantities",
    "training": "Probes",
    "measurements": "Measurements and views",
    "tables": "Tables and charts",
    "records": "Records and rows",
    "extraction": "Inside a model",
}
"""Sections of the page on `probes`, by where a name is defined."""


def copy_pages() -> None:
    """Copy what the manual consists of."""
    for pattern in PAGES:
        for page in ROOT.glob(pattern):
            copy = MANUAL / page.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, copy)


def link_package() -> None:
    """One package, where a checkout has probes/ and three folders beside it."""
    package = ROOT / "build" / "package" / "probes"
    package.mkdir(parents=True)
    for folder in (*(ROOT / "probes").iterdir(), *(ROOT / x for x in ("common", "data", "tasks"))):
        (package / folder.name).symlink_to(folder)


def printed(main: Callable[[Sequence[str]], int], *arguments: str) -> str:
    """What a command prints, as a block."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main(arguments)
    return f"```text\n{text.getvalue().strip()}\n```\n"


def command_line() -> Iterator[str]:
    """The help of every command, and the lists."""
    yield "# Command line\n"
    yield "Generated from the parsers.\n"
    yield "## python run_probes.py\n"
    yield printed(run, "--help")
    for flag in ("--list-tasks", "--list-measurements", "--list-corpora"):
        yield f"## python run_probes.py {flag}\n"
        yield printed(run, flag)
    for name in COMMANDS:
        yield f"## python -m probes {name}\n"
        yield printed(command, name, "--help")


def columns() -> Iterator[str]:
    """The columns of CSV files that have rows as they are, and every registered number."""
    yield "# Columns and quantities\n"
    yield "Those of `leaderboard.csv` are described [with the leaderboard](../leaderboard.md); the"
    yield "table below says what the names in a column `metric` mean.\n"
    for file, names in (("measurements.csv", LONG_COLUMNS), ("behaviour.csv", BEHAVIOUR_COLUMNS)):
        yield f"`{file}` has the columns {', '.join(f'`{name}`' for name in names)}.\n"
    yield "| name | what it is | unit | lies within | better | source |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for registry in (metrics, quantities):
        for name in registry:
            its = registry.get(name)
            low, high = its.bounds
            within = f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
            cells = (
                f"`{name}`",
                its.label or name.replace("_", " "),
                "%" if its.percent else its.unit,
                within if math.isfinite(low) else "",
                "lower" if its.lower_is_better else "",
                its.source,
            )
            yield f"| {' | '.join(cells)} |"


def names() -> Iterator[str]:
    """The public names, for mkdocstrings."""
    stub = ast.parse((ROOT / "probes" / "__init__.pyi").read_text("utf-8"))
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for statement in stub.body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            rooms[statement.module.split(".")[1]] += [each.name for each in statement.names]
    yield "# probes\n"
    yield inspect.cleandoc(probes.__doc__ or "").partition("\n")[0] + "\n"
    yield "Everything that plug-ins and notebooks need is imported from `probes` itself.\n"
    for room, title in ROOMS.items():
        yield f"## {title}\n"
        for name in sorted(rooms[room], key=str.lower):
            yield f"::: probes.{name}\n"


CHOICES: tuple[list[str], ...] = ([], ["--task", "pos"], ["--measurement", "geometry"])
"""Some figures are of one task's evidence, some of several measurements."""


def drawn(figure: str, folder: Path) -> str | None:
    """The command that draws a figure of the first corpus that serves it; None if none does."""
    picture = folder / f"{figure}.svg"
    for corpus in sorted({path.name for path in PUBLISHED.glob("*/*/")}):
        places = sorted(PUBLISHED.glob(f"*/{corpus}"))
        for choice in CHOICES:
            shown = places[:1] if figure == TREE else places
            given = ["figure", figure, *map(str, shown), "-o", str(picture), "--wide", *choice]
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = command(given)
            if status == 0:
                where = f"results/{'M' if figure == TREE else '*'}/{corpus}"
                line = ["python -m probes figure", figure, where, "-o", picture.name, "--wide"]
                return " ".join([*line, *choice])
    return None


def gallery(folder: Path) -> Iterator[str]:
    """The lines of the page of figures; the pictures are written into its folder."""
    yield "# Gallery\n"
    yield "Every figure that these results serve, with the command that draws it from yours. What"
    yield "each shows: [the report and figures](../report.md#figures).\n"
    missing = []
    for figure in (*figure_names(), TREE):
        if line := drawn(figure, folder):
            yield f"## {figure}\n\n    {line}\n\n![{figure}]({figure}.svg)\n"
        else:
            missing.append(f"`{figure}`")
    if missing:
        yield f"Not drawn, since these results lack what they are of: {', '.join(missing)}.\n"


def main() -> None:
    """Write all pages anew."""
    os.environ["COLUMNS"] = "90"
    for folder in (MANUAL, ROOT / "build" / "package"):
        shutil.rmtree(folder, ignore_errors=True)
    copy_pages()
    link_package()
    reference = MANUAL / "docs" / "reference"
    reference.mkdir()
    for page, lines in (("command-line", command_line), ("columns", columns), ("api", names)):
        (reference / f"{page}.md").write_text("\n".join(lines()) + "\n", encoding="utf-8")
    pictures = "\n".join(gallery(reference))
    (reference / "gallery.md").write_text(pictures + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
