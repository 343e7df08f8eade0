"""Geometry. How do the vectors of words lie in space, layer by layer?

- Do vectors fill the space, or lie in a narrow cone (Ethayarajh 2019)?
- How much do the vectors of one word differ between sentences?
- Do vectors form clusters of word senses and word classes?
- Do translations have similar vectors? Do two models have similar spaces (CKA)?
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, ValidationInfo

from probes.common.files import sha256
from probes.measurements.catalogue import Family
from probes.records.values import STORED, Frozen

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


def _there(path: Path, info: ValidationInfo) -> Path:
    is_digest = info.context == STORED  # as records have it
    if not (is_digest or path.is_file()):
        raise ValueError("there is no such file; give a CoNLL-U file")
    return path


class ParallelOptions(Frozen):
    """Options of `parallel`."""

    file: Annotated[Path, AfterValidator(_there), PlainSerializer(sha256)] = Field(
        description="CoNLL-U file of translations with the sent_id of the corpus"
    )
    """Records identify the file by its content, not by its path."""


FAMILY = Family(
    measurements={
        "geometry": "geometry",
        "parallel": "parallel",
        "model_similarity": "model_similarity",
    },
    options={"geometry": GeometryOptions, "parallel": ParallelOptions},
    claims="claims",
)
