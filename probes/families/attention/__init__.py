"""Attention. Where do the heads of a model attend?

- Which heads attend to neighbours, to special tokens, or to nearly everything?
- Which heads find syntactic relations, semantic roles or trees better than a fixed offset does?
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from probes.measurements.catalogue import Command, Family
from probes.records.values import Frozen


class AttentionOptions(Frozen):
    """Options of `attention`."""

    segments: Literal["one", "two"] = Field(
        default="one",
        description="two: pairs of neighbouring sentences, for block patterns, without relations",
    )


FAMILY = Family(
    measurements={"attention": "attention"},
    options={"attention": AttentionOptions},
    commands={
        "heads": Command(
            "Show what attention heads do: entropy, patterns, and relations beside fixed offsets.",
            "attention",
            "tables",
        )
    },
    claims="claims",
)
