"""Draws every figure that results serve, and a page that shows each with the command behind it.

python tools/draw_gallery.py            # build/gallery, of results/published
python tools/draw_gallery.py --results results --output gallery
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

from probes.__main__ import main as command
from probes.cli.commands.figure import TREE
from probes.cli.figures import figure_names

ROOT = Path(__file__).parents[1]

PUBLISHED = ROOT / "results" / "published"

CHOICES: tuple[list[str], ...] = ([], ["--task", "pos"], ["--measurement", "geometry"])
"""Some figures are of one task's evidence, some of several measurements."""


def drawn(figure: str, results: Path, folder: Path) -> str | None:
    """The command that draws a figure of the first corpus that serves it; None if none does."""
    picture = folder / f"{figure}.svg"
    for corpus in sorted({path.name for path in results.glob("*/*/")}):
        places = sorted(results.glob(f"*/{corpus}"))
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


def gallery(results: Path, folder: Path) -> Iterator[str]:
    """The lines of the page; the pictures are written into its folder."""
    yield "# Gallery\n"
    yield "Every figure that these results serve, with the command that draws it from yours. What"
    yield "each shows: [the report and figures](../report.md#figures).\n"
    missing = []
    for figure in (*figure_names(), TREE):
        if line := drawn(figure, results, folder):
            yield f"## {figure}\n\n    {line}\n\n![{figure}]({figure}.svg)\n"
        else:
            missing.append(f"`{figure}`")
    if missing:
        yield f"Not drawn, since these results lack what they are of: {', '.join(missing)}.\n"


def main() -> None:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=PUBLISHED, help="default: the published")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "gallery")
    given = parser.parse_args()
    os.makedirs(given.output, exist_ok=True)
    lines = "\n".join(gallery(given.results, given.output))
    (given.output / "gallery.md").write_text(lines + "\n", encoding="utf-8")
    print(given.output / "gallery.md")


if __name__ == "__main__":
    main()
