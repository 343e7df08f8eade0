"""Structural probes. Which layers hold dependency trees, and in how many dimensions?

- Are distances in the tree distances of projected vectors, and depths their lengths?
- How much of a tree does a linear map of each layer recover, beyond linking neighbours?

Sources: Hewitt & Manning 2019.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from probes.common.errors import names_in
from probes.measurements.catalogue import Command, Family
from probes.records.values import Frozen


def _rank_list(text: str) -> str:
    """Ranks in ascending order, each once."""
    names = names_in(text)
    if not names or not all(name.isdecimal() and int(name) for name in names):
        raise ValueError("give whole numbers from 1 on, separated by commas")
    return ",".join(map(str, sorted({int(name) for name in names})))


class StructureOptions(Frozen):
    """Options of `structure`."""

    ranks: Annotated[str, AfterValidator(_rank_list)] = Field(
        default="1,2,4,8,16,32,64,128", description="ranks of the probes"
    )

    def up_to(self, hidden_size: int) -> list[int]:
        """The ranks, with the hidden size in the place of all that are above it."""
        return sorted({min(int(rank), hidden_size) for rank in self.ranks.split(",")})


FAMILY = Family(
    measurements={"structure": "structure"},
    options={"structure": StructureOptions},
    figures={"tree": Command("the trees of one sentence", "structure", "tree_figure")},
    claims="claims",
)
