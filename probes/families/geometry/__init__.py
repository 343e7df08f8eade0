"""Geometry. How do the vectors of words lie in space, layer by layer?

- Do vectors fill the space, or lie in a narrow cone (Ethayarajh 2019)?
- How much do the vectors of one word differ between sentences?
- Do vectors form clusters of word senses and word classes?
- Do two models have similar spaces (CKA)?
- Do the vectors of one word depend on its place in the sentence?
- Do languages lie apart, and are translations each other's nearest sentences?
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

from probes.common.errors import names_in
from probes.common.files import sha256
from probes.measurements.catalogue import Family
from probes.records.values import Frozen

MOST_SEED = 10**8
"""The highest seed: k-means accepts up to 2³² − 1, and each start has its own."""


class GeometryOptions(Frozen):
    """Options of `geometry`."""

    seed: int = Field(
        default=0, ge=0, le=MOST_SEED, description="seed of the choice of words and of k-means"
    )
    least: int = Field(
        default=5, ge=2, description="least number of sentences in which a word occurs"
    )


def _files(files: str | dict[str, str]) -> tuple[Path, ...]:
    """Paths of files, separated by commas; of a record, their names."""
    if isinstance(files, dict):
        return tuple(map(Path, files))
    paths = tuple(map(Path, names_in(files)))
    if missing := [path for path in paths if not path.is_file()]:
        raise ValueError(f"{missing[0]} is no file; give CoNLL-U files, separated by commas")
    return paths


def _digests(paths: tuple[Path, ...]) -> dict[str, str]:
    """Content of files by name; the name of a file names its language."""
    return {path.name: sha256(path) for path in paths}


class ParallelSentencesOptions(Frozen):
    """Options of `parallel_sentences`."""

    files: Annotated[tuple[Path, ...], BeforeValidator(_files), PlainSerializer(_digests)] = Field(
        default=(),
        description="CoNLL-U files, separated by commas, with translations under the same sent_id",
    )


FAMILY = Family(
    measurements={
        "geometry": "geometry",
        "model_similarity": "geometry",
        "position_share": "position_share",
        "parallel_sentences": "parallel_sentences",
    },
    options={"geometry": GeometryOptions, "parallel_sentences": ParallelSentencesOptions},
    claims="claims",
)
