"""Which points of a plane have room for their text, and on which side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from probes.records.scatter import ScatterPoint

MARGIN = 0.08
"""Room around the points of a plane, relative to its side."""

LETTER = 0.58
"""Mean width of a letter, relative to its height."""


class Box(NamedTuple):
    """A rectangle with sides along the axes."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Whether the two have more than an edge in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )


def plane(points: Sequence[ScatterPoint]) -> Box:
    """The square around points, with a margin; of points in one place, a square of side 1."""
    xs, ys = [p.x for p in points], [p.y for p in points]
    side = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    x, y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    half = side * (0.5 + MARGIN)
    return Box(x - half, y - half, x + half, y + half)


def sides(points: Sequence[ScatterPoint], extent: float, marker: float, letter: float) -> list[str]:
    """On which side of each point its text is written; empty where there is no room for it.

    A text gets the first side on which it lies within the plane and on no marker or earlier text.

    Args:
        extent: side of the drawn plane, in points.
        marker, letter: height of markers and letters, in points.

    Returns:
        "right", "left", "top", "bottom" or an empty string, for each point.
    """
    if not points:
        return []
    square = plane(points)
    scale = extent / (square.right - square.left)
    centres = [((p.x - square.left) * scale, (p.y - square.bottom) * scale) for p in points]
    half = marker / 2
    taken = [Box(x - half, y - half, x + half, y + half) for x, y in centres]
    found = []
    for point, (x, y) in zip(points, centres, strict=True):
        width, height = LETTER * letter * len(point.text), 1.2 * letter
        candidates = {
            "right": Box(x + half, y - height / 2, x + half + width, y + height / 2),
            "left": Box(x - half - width, y - height / 2, x - half, y + height / 2),
            "top": Box(x - width / 2, y + half, x + width / 2, y + half + height),
            "bottom": Box(x - width / 2, y - half - height, x + width / 2, y - half),
        }
        side = next((s for s, box in candidates.items() if _free(box, taken, extent)), "")
        side = side if point.text else ""
        if side:
            taken.append(candidates[side])
        found.append(side)
    return found


def _free(box: Box, taken: Sequence[Box], extent: float) -> bool:
    inside = min(box.left, box.bottom) >= 0 and max(box.right, box.top) <= extent
    return inside and not any(box.meets(other) for other in taken)
