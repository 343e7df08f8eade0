"""Sizes, fonts and colours of all figures, and how they are saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from probes.common.files import published
from probes.extraction.model_names import pretrained_name
from probes.rendering.palette import COLOURS, distinct

COLUMN, WIDE = 3.3, 6.8
"""Widths in inches: of a column, and of a page of two."""

MARKERS = "osD^v*"

_SETTINGS: Any = {
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,
    # Type 42 fonts can be searched and edited; publishers refuse Type 3.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "probes",
    "savefig.dpi": 300,
}


@contextmanager
def saved(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A new figure, which is written to `path` on leaving the context."""
    with rc_context(_SETTINGS), warnings.catch_warnings():
        # Letters of a model's name that are not in the font are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        with published(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:].lower())


def looks(models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each model is drawn: random twins in their model's colour, dotted, with open markers."""
    bases = list(dict.fromkeys(map(pretrained_name, models)))
    found = {}
    for model in models:
        place, random = bases.index(pretrained_name(model)), model != pretrained_name(model)
        colour = COLOURS[place % len(COLOURS)]
        found[model] = {
            "color": colour,
            "marker": MARKERS[place // len(COLOURS) % len(MARKERS)],
            "linestyle": ":" if random else "-",
            "markerfacecolor": "white" if random else colour,
        }
    return found


def looks_of_lines(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each line of one model is drawn: in a colour of its own; many, from dark to light."""
    return {
        line: {"color": colour, "marker": MARKERS[place % len(MARKERS)]}
        for place, (line, colour) in enumerate(distinct(lines).items())
    }
