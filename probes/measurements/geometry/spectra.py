"""Singular values: how many dimensions vectors vary in."""

from __future__ import annotations

import numpy as np

from probes.statistics.sums import Rows, centred, cross_gram


def explainable_variance(rows: Rows) -> float:
    """The maximum explainable variance σ₁² / Σσ² (Ethayarajh 2019, definition 3), about the mean.

    The share of the variance that one direction explains. Of vectors that are not centred, as in
    the paper's formula, the first direction is about that of their mean, and its share at least
    about their mean cosine: it would repeat self-similarity. 1 if all vectors are the same.

    Args:
        rows: shape (n, H).
    """
    wide = rows.astype(np.float64)
    length = float((wide**2).sum())
    wide -= wide.mean(0)
    gram = wide @ wide.T if len(wide) < wide.shape[1] else wide.T @ wide
    total = float(np.trace(gram))
    # Equal vectors differ from their mean by rounding.
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 1e-12 * length else 1.0


def participation_ratio(rows: Rows) -> float | None:
    """(Σλ)² / Σλ² of the covariance's eigenvalues λ: d if d of them are equal and others 0.

    The number of dimensions that vectors vary in, large ones counting most (Gao et al. 2017). No
    eigenvalue is needed: the sums are tr C and ‖C‖²_F. None if the vectors do not vary.
    """
    gram = cross_gram(x := centred(rows), x)
    total, squares = float(np.trace(gram)), float((gram**2).sum())
    return total**2 / squares if squares > 0 else None
