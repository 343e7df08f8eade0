"""Heads as points, whose distances say how differently they attend (Clark et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probes.common.arrays import Floats

FEWEST_HEADS = 3
"""With fewer there is nothing to be drawn in two dimensions."""


@dataclass(frozen=True)
class HeadClusters:
    """Distances of heads: the square roots of their mean Jensen–Shannon divergence.

    The root is a metric (Endres & Schindelin 2003), also of a mean over tokens, which is what
    multidimensional scaling needs; the divergence itself, which the source sums, is not one.
    """

    positions: Floats
    """In two dimensions, by metric multidimensional scaling. Shape (layers, heads, 2), or without
    layers if there are fewer than three heads, or all are the same."""
    stress: float | None
    """How badly distances are kept: Kruskal's stress-1; 0 is best, .2 poor."""
    within: float | None
    """Mean distance of two heads of one layer."""
    between: float | None
    """Mean distance of two heads of different layers."""
    within_layers: tuple[float | None, ...]
    """`within` by layer."""
    nearest_in_layer: float | None
    """Share of heads whose nearest other head is in the same layer; ties count in part."""
    nearest_by_chance: float | None
    """The same if any other head were as likely to be the nearest."""


def distances(divergence: Floats) -> Floats:
    """Of heads, from their mean divergences in nats; at most √ln 2 = .83. Shape (heads, heads)."""
    found: Floats = np.sqrt(np.clip(divergence, 0, None))
    return found


def clusters(divergence: Floats, n_layers: int) -> HeadClusters:
    """Where heads lie, and whether those of one layer lie together.

    Args:
        divergence: the mean divergence of every two heads, layer by layer. Shape (heads, heads).
    """
    far = distances(divergence)
    layer = np.repeat(np.arange(n_layers), len(far) // n_layers)
    same, other = layer[:, None] == layer, ~np.eye(len(far), dtype=bool)
    positions, stress = scaled(far)
    nearest = by_chance = None
    if len(far) > 1:
        least = np.where(other, far, np.inf)
        closest = least == least.min(1, keepdims=True)
        nearest = float(((closest & same).sum(1) / closest.sum(1)).mean())
        by_chance = float((same & other).sum() / other.sum())
    return HeadClusters(
        positions=positions.reshape(-1, len(far) // n_layers, 2),
        stress=stress,
        within=_mean(far[same & other]),
        between=_mean(far[~same]),
        within_layers=tuple(
            _mean(far[(layer[:, None] == each) & same & other]) for each in range(n_layers)
        ),
        nearest_in_layer=nearest,
        nearest_by_chance=by_chance,
    )


def scaled(far: Floats) -> tuple[Floats, float | None]:
    """Metric multidimensional scaling to two dimensions, and its normalised stress.

    It starts from classical scaling, so that nothing is random.

    Args:
        far: distances. Shape (n, n).

    Returns:
        positions (n, 2) and stress; (0, 2) and None if there is nothing to be drawn.
    """
    if len(far) < FEWEST_HEADS or not far.any():
        return np.empty((0, 2)), None
    from sklearn.manifold import MDS

    scaling = MDS(2, metric="precomputed", init="classical_mds", n_init=1, normalized_stress=True)
    positions: Floats = scaling.fit_transform(far)
    return positions, float(scaling.stress_)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
