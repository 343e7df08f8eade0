"""Options of structural probes. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from probes.common.wording import names_in
from probes.records.values import Frozen


def _ranks(text: str) -> str:
    """Ranks in ascending order, each once."""
    names = names_in(text)
    if not names or not all(name.isdecimal() and int(name) for name in names):
        raise ValueError("give whole numbers from 1 on, separated by commas")
    return ",".join(map(str, sorted({int(name) for name in names})))


class StructureOptions(Frozen):
    """Options of `structure`."""

    ranks: Annotated[str, AfterValidator(_ranks)] = Field(
        default="1,2,4,8,16,32,64,128", description="ranks of the probes"
    )

    def up_to(self, hidden_size: int) -> list[int]:
        """The ranks, with the hidden size in the place of all that are above it."""
        return sorted({min(int(rank), hidden_size) for rank in self.ranks.split(",")})


OPTIONS = {"structure": StructureOptions}
"""Options by measurement."""
