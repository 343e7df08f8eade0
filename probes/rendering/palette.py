"""The colours of `probes.tables.colours`, for the page."""

from probes.tables.colours import COLOURS, SYMBOLS, css, distinct, shade, shades

__all__ = ["COLOURS", "SYMBOLS", "css", "distinct", "shade", "shades"]
