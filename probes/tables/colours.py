"""Colours of models in pages and figures, and shades of scores in the terminal."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.extraction.models.model_names import pretrained_name

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8639a", "#c08a00", "#3f9fdb")
"""After Okabe & Ito 2008, with the light ones darkened."""

_RAMP = (
    (68, 1, 84),
    (71, 45, 123),
    (59, 82, 139),
    (44, 114, 142),
    (33, 145, 140),
    (40, 174, 128),
    (94, 201, 98),
    (173, 220, 48),
    (253, 231, 37),
)
"""Points of viridis, the colour map of the heat maps."""


def shade(share: float) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, from the darkest shade (0) to the lightest (1)."""
    red, green, blue, _ = colours_of(np.array(share)).tolist()
    return red, green, blue


def colours_of(shares: Floats) -> NDArray[np.uint8]:
    """Red, green, blue and opacity of shares from 0 to 1; NaN is transparent. Shape (…, 4)."""
    is_number = ~np.isnan(shares)
    at = np.linspace(0, 1, len(_RAMP))
    channels = [np.interp(shares, at, [colour[i] for colour in _RAMP]) for i in range(3)]
    colours = np.stack([*channels, np.full(shares.shape, 255.0)], axis=-1)
    return np.where(is_number[..., None], colours, 0).round().astype(np.uint8)


def css(share: float) -> str:
    """The shade as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*shade(share))


def shades(n: int) -> list[str]:
    """Colours of `n` things that have an order, from dark to light; the lightest are left out."""
    return [css(0.92 * i / max(1, n - 1)) for i in range(n)]


def distinct_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: as different as possible, or of many, shades."""
    all_names = list(names)
    colours = COLOURS if len(all_names) <= len(COLOURS) else shades(len(all_names))
    return dict(zip(all_names, colours, strict=False))


def model_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each model, by its place in the alphabet; a random twin has that of its model.

    Pages and figures of the same models so agree, whichever of them a chart has.
    """
    all_names = list(names)
    models = {pretrained_name(name) for name in all_names}
    colours = distinct_colours(sorted(models, key=lambda name: (name.lower(), name)))
    return {name: colours[pretrained_name(name)] for name in all_names}
