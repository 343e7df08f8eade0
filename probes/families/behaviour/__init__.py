"""Behaviour. What does a model say under its own language-model head?

- Does it prefer the right sentence of a minimal pair, and the right completion of a context?
- Does it fill in the hidden verb, and does a probe know more than the model says?
- At which layer does the answer appear (logit lens)?
"""

from __future__ import annotations

from pydantic import Field

from probes.measurements.catalogue import Family
from probes.records.values import Frozen


class WordOptions(Frozen):
    """Options of `cloze`."""

    word_ends: bool = Field(
        default=True,
        description="whether the end of a word counts as part of it, in causal models whose "
        "tokens begin with a space: true or false",
    )


class ItemOptions(WordOptions):
    """Options of `pairs` and `completion`."""

    malformed: bool = Field(
        default=False, description="whether to measure shuffled and cut texts, too: true or false"
    )


FAMILY = Family(
    measurements={"pairs": "pairs", "completion": "completion"},
    evidence={"cloze": "cloze", "lens": "lens"},
    options={"pairs": ItemOptions, "completion": ItemOptions, "cloze": WordOptions},
    claims="claims",
    comparison="model_comparison",
)
