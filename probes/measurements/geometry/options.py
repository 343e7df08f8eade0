"""Options of measurements of geometry. Shown in help, so nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer

from probes.common.files import sha256
from probes.records.values import Frozen

MOST_SEED = 10**8
"""The highest seed; k-means takes none above 2³² − 1, and each of its starts has one of its own."""


class GeometryOptions(Frozen):
    """What can be set."""

    seed: int = Field(
        default=0, ge=0, le=MOST_SEED, description="seed of random words and of k-means"
    )
    least: int = Field(
        default=5, ge=2, description="sentences a word type must occur in to be measured"
    )


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("there is no such file; give a CoNLL-U file")
    return path


class ParallelOptions(Frozen):
    """What has to be given."""

    file: Annotated[Path, AfterValidator(_there), PlainSerializer(sha256)] = Field(
        description="CoNLL-U file of translations with the sent_id of the corpus"
    )
    """Known to records by what is in it, not by where it is."""


OPTIONS = {"geometry": GeometryOptions, "parallel": ParallelOptions}
"""By measurement."""
