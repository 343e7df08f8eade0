"""Scores and p-values as tables print them."""

from __future__ import annotations

import numpy as np

from probes.statistics.metrics import is_percent, quantity
from probes.statistics.significance import borderline


def shown(value: float | None, metric: str) -> str:
    """A score as tables print it: 94.7 for a share, .766 for a correlation, – if undefined."""
    if value is None or np.isnan(value):
        return "–"
    if is_percent(metric):
        return f"{100 * value:.1f}"
    digits = quantity(metric).digits
    text = f"{value:.{digits}f}" if digits else f"{value:,.0f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def shown_sd(value: float, metric: str) -> str:
    """A standard deviation of scores, with one digit more than they have: 0.12, .0031."""
    if is_percent(metric):
        return f"{100 * value:.2f}"
    return f"{value:.4f}".replace("0.", ".", 1)


def shown_p(p: float) -> str:
    """A p-value as tables print it, which say so if other resamples may lead to another side."""
    text = "<.001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)
    return f"{text} (borderline)" if borderline(p) else text
