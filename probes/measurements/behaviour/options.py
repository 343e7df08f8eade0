"""Options of measurements of items. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from pydantic import Field

from probes.records.values import Frozen


class ItemOptions(Frozen):
    """What can be set of a measurement of items."""

    malformed: bool = Field(
        default=False,
        description="also measure shuffled and cut texts: true or false",
    )


OPTIONS = {"pairs": ItemOptions, "completion": ItemOptions}
"""By measurement."""
