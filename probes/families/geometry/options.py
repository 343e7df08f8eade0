"""Options of measurements of geometry. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, ValidationInfo

from probes.common.files import sha256
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


OPTIONS = {"geometry": GeometryOptions, "parallel": ParallelOptions}
"""Options by measurement."""
