"""The base class of records: frozen, without unknown fields, with printable names."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from probes.common.errors import printable


class Frozen(BaseModel):
    """A record: its fields cannot be changed, and unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Name = Annotated[str, AfterValidator(printable)]
"""A name in a record; characters that cannot be printed are escaped."""
