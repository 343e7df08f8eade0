"""Probe families by name: how each is fitted, and what makes its head."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.records.probe_spec import PROBES, ProbeSpec

if TYPE_CHECKING:
    from probes.training.family import Head

Maker = Callable[[ProbeSpec], "Head"]
"""Gives the head of a specification; imports torch no sooner than it is called."""

families: Registry[Maker] = Registry("probe family")


def family(spec: ProbeSpec) -> Callable[[Maker], Maker]:
    """Decorate a function from a specification to its head: that makes it a probe family.

    Args:
        spec: how it is fitted; `--probes` calls it by its `family`.

    Raises:
        UserError: the name cannot stand in a file's name, the strengths cannot be searched, or
            there is such a family already.
    """
    if not re.fullmatch(r"[a-z0-9_]{1,40}", spec.family):
        raise UserError(
            f"Probe family {spec.family!r}: the name stands in file names; use up to 40 of a-z, "
            "0-9 and _."
        )
    if not spec.strengths or min(spec.strengths) <= 0:
        raise UserError(f"Probe family {spec.family!r}: give one or more strengths above 0.")

    def decorate(make: Maker) -> Maker:
        families.add(spec.family, make, on_removal=lambda: PROBES.pop(spec.family))
        PROBES[spec.family] = spec
        return make

    return decorate


def head_of(spec: ProbeSpec) -> Head:
    """The formula of the probes that `spec` describes."""
    return families.get(spec.family)(spec)


@family(PROBES["linear"])
def linear(spec: ProbeSpec) -> Head:
    """Multinomial logistic regression, or linear regression."""
    from probes.training.linear import Linear

    return Linear()


@family(PROBES["mlp"])
def mlp(spec: ProbeSpec) -> Head:
    """One hidden layer of `spec.hidden` rectified units."""
    from probes.training.mlp import MLP

    return MLP(spec.hidden)


families.ship()
