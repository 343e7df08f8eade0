"""How the probes of a family are fitted."""

from __future__ import annotations

from probes.records.base import Frozen


class ProbeSpec(Frozen):
    """How probes of one family are fitted; part of every result's key."""

    family: str
    hidden: int = 0
    """Units of the hidden layer; 0 for a linear probe."""
    strengths: tuple[float, ...]
    """L2 strengths of the search, a geometric series. By dev loss, an MLP takes the best one; a
    linear fit takes the minimum of a parabola through the best one and its neighbours."""
    refinement: tuple[float, ...]
    """Multiples of each strength that the closed form also tries; an iterative linear fit takes one
    strength between the best of the search and its neighbours instead."""
    search: float = 1.0
    """Length of a fit in a linear probe's search, as a share of a full fit; other families search
    by full fits."""
    step: float
    """Adam's initial learning rate that is tried first. It decays to 0 linearly, for codes and
    mixes quadratically. A linear probe's full fit starts from the best fit of the search, with
    three quarters of its learning rate."""
    passes: int
    """Epochs of a full fit."""
    min_steps: int
    """Minimum number of steps of a full fit, whatever the number of epochs."""
    checks: int
    """How often a full fit evaluates the dev loss; the best parameters are kept. With 1 it is
    evaluated only at the end: a convex probe is fitted until it converges."""


PROBES: dict[str, ProbeSpec] = {
    "linear": ProbeSpec(
        family="linear",
        strengths=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        refinement=(0.3, 1.0, 3.0),
        # In a shorter search strong penalties come out best.
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
