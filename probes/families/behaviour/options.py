"""Options of measurements of items. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from pydantic import Field

from probes.records.values import Frozen


class ItemOptions(Frozen):
    """Options of `completion`."""

    malformed: bool = Field(
        default=False,
        description="also measure shuffled and cut texts: true or false",
    )


OPTIONS = {"pairs": ItemOptions, "completion": ItemOptions}
"""Options by measurement."""
