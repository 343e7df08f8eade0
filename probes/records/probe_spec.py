"""Settings of the probes of a family."""

from __future__ import annotations

import hashlib

from pydantic import Field

from probes.records.values import Frozen


class ProbeSpec(Frozen):
    """Settings of one family's fits; part of every result's key."""

    family: str
    hidden: int = 0
    """Units of the hidden layer, or heads of an attention probe; 0 for a linear probe."""
    l2: tuple[float] = (30.0,)
    """L2 strength times the number of training examples: the precision of a Gaussian prior on the
    weights of standardised features. One value, in a tuple as records have it."""
    ridge_l2: tuple[float, ...] = ()
    """L2 strengths from which linear regression in closed form takes the best by dev loss."""
    learning_rate: float
    """Adam's initial learning rate; for a convex family that for 512 features (see
    `probes.training.trainer.convex_rate`)."""
    batch: int = Field(default=512, ge=1, le=512)
    """Examples per step of Adam."""
    epochs: int
    """Passes of Adam over the training examples; from there a convex probe is fitted until it
    converges (see `probes.training.convex`)."""
    min_steps: int = 0
    """The least number of steps, however few `epochs` take."""
    checks: int = 1
    """Number of evaluations of the dev loss; the best parameters are kept. A convex probe is
    evaluated at its optimum."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything that the specification says."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


PROBES: dict[str, ProbeSpec] = {
    "linear": ProbeSpec(
        family="linear",
        ridge_l2=(3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1),
        learning_rate=0.02,
        epochs=5,
        min_steps=200,
    ),
    "mlp": ProbeSpec(
        family="mlp",
        hidden=256,
        learning_rate=0.005,
        batch=256,
        epochs=3,
        min_steps=400,
        checks=4,
    ),
    "mean-difference": ProbeSpec(family="mean-difference", learning_rate=0, epochs=0),
    "sparse": ProbeSpec(family="sparse", learning_rate=0, epochs=0),
    "token-max": ProbeSpec(
        family="token-max", learning_rate=0.02, batch=64, epochs=5, min_steps=300, checks=10
    ),
}
PROBES["attention"] = PROBES["token-max"].model_copy(update={"family": "attention", "hidden": 4})
PROBES |= {
    name: PROBES["linear"].model_copy(update={"family": name})
    for name in ("token-mean", "multi-layer")
}
"""Settings by name; `probes.training.families.probe_family` adds those of plug-ins."""
