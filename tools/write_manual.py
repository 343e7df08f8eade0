"""Writes build/manual/: a copy of the repository's pages, and a generated reference.

    python tools/write_manual.py            # `make docs` runs this and builds the site

Pages keep their paths, so that links work in the repository, in the site and on the web.
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
from probes.boards.leaderboard_csv import LONG_COLUMNS
from probes.cli.chart_files import figure_names
from probes.cli.main import main as run
from probes.measurements.catalogue import family_modules, registered_commands
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
    "examples/*.py",
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
"""Sections of the page on `probes`, by the room that defines a name."""


def copy_pages() -> None:
    """Copy the pages of the manual."""
    for pattern in PAGES:
        for page in ROOT.glob(pattern):
            copy = MANUAL / page.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, copy)


def printed(main: Callable[[Sequence[str]], int], *arguments: str) -> str:
    """Output of a command, as a block."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main(arguments)
    return f"```text\n{text.getvalue().strip()}\n```\n"


def command_line() -> Iterator[str]:
    """Yield the help of every command, and the lists."""
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
    """Yield the columns of long CSV files, and a table of all registered numbers."""
    yield "# Columns and quantities\n"
    yield "For columns of `leaderboard.csv`, see [the leaderboard](../leaderboard.md). The table"
    yield "below explains the names in a column `metric`.\n"
    further = ((module.CSV_NAME, module.CSV_COLUMNS) for module in family_modules("comparison"))
    for file, names in (("measurements.csv", LONG_COLUMNS), *further):
        yield f"`{file}` has the columns {', '.join(f'`{name}`' for name in names)}.\n"
    yield "| name | what it is | unit | lies within | better | source |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for registry in (metrics, quantities):
        for name in registry:
            known = registry.get(name)
            low, high = known.bounds
            within = f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
            cells = (
                f"`{name}`",
                known.label or name.replace("_", " "),
                "%" if known.percent else known.unit,
                within if math.isfinite(low) else "",
                "lower" if known.lower_is_better else "",
                known.source,
            )
            yield f"| {' | '.join(cells)} |"


def names() -> Iterator[str]:
    """Yield the public names, for mkdocstrings."""
    stub = ast.parse((ROOT / "probes" / "__init__.pyi").read_text("utf-8"))
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for statement in stub.body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            rooms[statement.module.split(".")[0]] += [each.name for each in statement.names]
    yield "# probes\n"
    yield inspect.cleandoc(probes.__doc__ or "").partition("\n")[0] + "\n"
    yield "Everything that plug-ins and notebooks need is imported from `probes` itself.\n"
    for room, title in ROOMS.items():
        yield f"## {title}\n"
        for name in sorted(rooms[room], key=str.lower):
            yield f"::: probes.{name}\n"


OF_ONE_MODEL = tuple(registered_commands("figures"))
"""Figures that families draw of the records of one model."""

CHOICES: tuple[list[str], ...] = ([], ["--task", "pos"], ["--measurement", "geometry"])
"""Options to try: some figures need one task, or one of several measurements."""


def drawn(figure: str, folder: Path) -> str | None:
    """The command that drew a figure, from the first corpus that has the data; None if none has."""
    picture = folder / f"{figure}.svg"
    for corpus in sorted({path.name for path in PUBLISHED.glob("*/*/")}):
        places = sorted(PUBLISHED.glob(f"*/{corpus}"))
        for choice in CHOICES:
            shown = places[:1] if figure in OF_ONE_MODEL else places
            given = ["figure", figure, *map(str, shown), "-o", str(picture), "--wide", *choice]
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = command(given)
            if status == 0:
                where = f"results/{'M' if figure in OF_ONE_MODEL else '*'}/{corpus}"
                line = ["python -m probes figure", figure, where, "-o", picture.name, "--wide"]
                return " ".join([*line, *choice])
    return None


def gallery(folder: Path) -> Iterator[str]:
    """Yield the lines of the page of figures; pictures are written to the page's folder."""
    yield "# Gallery\n"
    yield "All figures that the published results allow, each with the command to draw it from your"
    yield "own results. For what they show, see [the report and figures](../report.md#figures).\n"
    missing = []
    for figure in (*figure_names(), *OF_ONE_MODEL):
        if line := drawn(figure, folder):
            yield f"## {figure}\n\n    {line}\n\n![{figure}]({figure}.svg)\n"
        else:
            missing.append(f"`{figure}`")
    if missing:
        yield f"Not drawn, since the published results lack the data: {', '.join(missing)}.\n"


def main() -> None:
    """Write all pages."""
    os.environ["COLUMNS"] = "90"
    shutil.rmtree(MANUAL, ignore_errors=True)
    copy_pages()
    reference = MANUAL / "docs" / "reference"
    reference.mkdir()
    for page, lines in (("command-line", command_line), ("columns", columns), ("api", names)):
        (reference / f"{page}.md").write_text("\n".join(lines()) + "\n", encoding="utf-8")
    pictures = "\n".join(gallery(reference))
    (reference / "gallery.md").write_text(pictures + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
