"""How the probes of a family are fitted."""

from __future__ import annotations

from probes.records.base import Frozen


class ProbeSpec(Frozen):
    """How probes of one family are fitted; part of every result's key."""

    family: str
    hidden: int = 0
    """Units of the hidden layer; 0 for a linear probe."""
    strengths: tuple[float, ...]
    """L2 strengths of the search, each the same multiple of the one before. By dev loss, an MLP
    takes the best; a linear fit takes the least point of a parabola there."""
    refinement: tuple[float, ...]
    """Multiples of each of them that the closed form chooses from; an iterative linear fit takes
    one strength between the best of the search and its neighbours."""
    search: float = 1.0
    """Length of a linear probe's search, as a share of the full fit; others search by full fits."""
    step: float
    """Adam's step at the start that is tried first; it falls to 0 linearly, in codes and mixes
    quadratically. A linear probe's full fit goes on from the best of the search with three quarters
    of that one's step."""
    passes: int
    """Passes over the training set in a full fit."""
    min_steps: int
    """Least number of steps of a full fit, whatever the passes."""
    checks: int
    """How often in a full fit the dev loss is looked at; the best parameters are kept. With 1
    that is the end: a convex probe is fitted until it converges."""


PROBES: dict[str, ProbeSpec] = {
    "linear": ProbeSpec(
        family="linear",
        strengths=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        refinement=(0.3, 1.0, 3.0),
        # A shorter search finds strong penalties best.
        search=0.5,
        step=0.02,
        passes=4,
        min_steps=1600,
        checks=1,
    ),
    "mlp": ProbeSpec(
        family="mlp",
        hidden=256,
        strengths=(1e-4, 1e-3, 1e-2, 1e-1),
        refinement=(1.0,),
        step=0.005,
        passes=3,
        min_steps=400,
        checks=12,
    ),
}
"""By name; `probes.training.families.probe_family` adds those of plug-ins."""
