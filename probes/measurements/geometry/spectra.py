"""Singular values: how many dimensions vectors vary in."""

from __future__ import annotations

import numpy as np

from probes.measurements.geometry.sums import Rows, centred, cross_gram


def explainable_variance(rows: Rows) -> float:
    """The maximum explainable variance σ₁² / Σσ² (Ethayarajh 2019, definition 3).

    Of the vectors as they are, not centred: the share of their squared length that one direction
    has. 0 if all are 0.

    Args:
        rows: shape (n, H).
    """
    wide = rows.astype(np.float64)
    gram = wide @ wide.T if len(wide) < wide.shape[1] else wide.T @ wide
    total = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 0 else 0.0


def participation_ratio(rows: Rows) -> float | None:
    """(Σλ)² / Σλ² of the covariance's eigenvalues λ: d if d of them are equal and others 0.

    The number of dimensions that vectors vary in, large ones counting most (Gao et al. 2017). No
    eigenvalue is needed: the sums are tr C and ‖C‖²_F. None if the vectors do not vary.
    """
    gram = cross_gram(x := centred(rows), x)
    total, squares = float(np.trace(gram)), float((gram**2).sum())
    return total**2 / squares if squares > 0 else None
