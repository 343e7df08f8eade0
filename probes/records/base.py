"""What all records share: frozen fields, no unknown ones, printable names."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from probes.common.errors import printable


class Frozen(BaseModel):
    """A record: no field can be changed, none is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Name = Annotated[str, AfterValidator(printable)]
"""What a record calls something; what cannot be printed stands as its escape."""
