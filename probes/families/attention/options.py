"""Options of measurements of attention. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from probes.records.values import Frozen

MIX_SENTENCES = 2000
"""Training sentences that mixes of heads are fitted to, by default."""


class AttentionOptions(Frozen):
    """Options of `attention`."""

    segments: Literal["one", "two"] = Field(
        default="one",
        description="two: pairs of neighbouring sentences, for block patterns, without relations",
    )
    mix_sentences: PositiveInt = Field(
        default=MIX_SENTENCES, description="training sentences for the mixes of heads"
    )


class ChangeOptions(Frozen):
    """Options of `attention_change`."""

    sentences: int = Field(
        default=500, ge=1, description="test sentences to compare; all their maps are in memory"
    )


OPTIONS = {"attention": AttentionOptions, "attention_change": ChangeOptions}
"""Options by measurement."""
