"""Geometry. How do the vectors of words lie in space, layer by layer?

- Do vectors fill the space, or lie in a narrow cone (Ethayarajh 2019)?
- How much do the vectors of one word differ between sentences?
- Do vectors form clusters of word senses and word classes?
- Do two models have similar spaces (CKA)?
- Do the vectors of one word depend on its place in the sentence?
"""

from __future__ import annotations

from pydantic import Field

from probes.measurements.catalogue import Family
from probes.records.values import Frozen

MOST_SEED = 10**8
"""The highest seed: k-means accepts up to 2³² − 1, and each start has its own."""


class GeometryOptions(Frozen):
    """Options of `geometry`."""

    seed: int = Field(
        default=0, ge=0, le=MOST_SEED, description="seed of random words and of k-means"
    )
    least: int = Field(
        default=5, ge=2, description="sentences a word type must occur in to be measured"
    )


FAMILY = Family(
    measurements={
        "geometry": "geometry",
        "model_similarity": "geometry",
        "position_share": "position_share",
    },
    options={"geometry": GeometryOptions},
    claims="claims",
)
