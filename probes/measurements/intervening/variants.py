"""Passes in which something is changed, and what each is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from probes.records.row import Place

if TYPE_CHECKING:
    from probes.extraction.interventions import Intervention


class Variant(NamedTuple):
    """A pass of a model, of which there are several, numbered from 0.

    Attributes:
        interventions: what is changed; nothing in an untouched pass.
        layer: the lowest layer that is changed; 0 of an untouched pass.
        axes: says what is changed, in rows.
        against: the numbers of the passes that it is compared with, and the axes by which rows say
            so; none of an untouched pass.
    """

    interventions: tuple[Intervention, ...] = ()
    layer: int = 0
    axes: Mapping[str, Place] = {}
    against: tuple[tuple[int, Mapping[str, Place]], ...] = ()

    @property
    def is_base(self) -> bool:
        """Whether it is only there to be compared with."""
        return not self.against


class Comparison(NamedTuple):
    """Two variants by number, the changed one and the other; and what rows say of it."""

    changed: int
    other: int
    layer: int
    axes: Mapping[str, Place]

    @property
    def family(self) -> tuple[tuple[str, Place], ...]:
        """Comparisons of one family are tested together: all heads, layers, or shares of heads."""
        return tuple(sorted((k, x) for k, x in self.axes.items() if k not in ("head", "pruned")))


def comparisons(variants: Sequence[Variant]) -> list[Comparison]:
    """All that variants are compared with."""
    return [
        Comparison(number, other, its.layer, {**its.axes, **axes})
        for number, its in enumerate(variants)
        for other, axes in its.against
    ]
