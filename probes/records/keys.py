"""The key of a result, over everything that decides its scores, and the name of its file."""

from __future__ import annotations

import hashlib
import json

from pydantic import Field

from probes.common.files import folder_name
from probes.records.base import Frozen
from probes.records.probe_spec import ProbeSpec


def numerics_version(kind: str, family: str) -> int:
    """Part of every key, to be raised when the same inputs would give other scores.

    Args:
        kind: the kind of the task.
        family: the probe family.
    """
    if family == "linear":
        return 9
    return 11 if kind == "regression" else 10


class FitKey(Frozen):
    """Everything that decides the scores of a result, apart from which layers and seeds it has."""

    model: str
    corpus: str
    task: str
    task_version: int
    kind: str
    """The kind of the task; see `numerics_version`."""
    probe: ProbeSpec
    pooling: str
    dtype: str
    fit_dtype: str
    project: int | None
    windows: str
    plug_ins: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the sources of plug-ins; see `probes.measurements.plugin_keys.digests`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the key and the version of the numerics."""
        content = self.model_dump(mode="json")
        content["numerics"] = numerics_version(content.pop("kind"), self.probe.family)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def result_name(task: str, family: str, key: str) -> str:
    """Name of a result's file."""
    return f"{folder_name(task)}-{family}-{key[:8]}.json"
