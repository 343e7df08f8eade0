"""The keys of records, over everything that decides their content, and the names of their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from probes.common.files import folder_name
from probes.records.probe_spec import ProbeSpec
from probes.records.values import Frozen

RESAMPLING = 2
"""Part of every key of probes, to be raised when other resamples would be drawn: documents, if at
least 20 are named. Which sentences make up a document follows from the corpus, and so from its
digest."""


def numerics_version(kind: str, family: str) -> int:
    """Part of every key of probes, to be raised when the same inputs would give other scores.

    Args:
        kind: the kind of the task.
        family: the probe family.
    """
    if family == "linear":
        return 10
    return 12 if kind == "regression" else 11


class Inputs(Frozen):
    """What is measured: model, text, vectors, and for probes the task and how they are fitted."""

    model: str
    base: str = ""
    """The model that this one is compared with, with its type; empty for none."""
    corpus: str
    pooling: str
    dtype: str
    windows: str
    task: str = ""
    task_version: int = 0
    kind: str = ""
    """The kind of the task; see `numerics_version`."""
    probe: ProbeSpec | None = None
    project: int | None = None
    scores: tuple[str, ...] = ()
    """Keys of the scores of all tasks that are measured together; none for others."""
    plug_ins: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the sources of plug-ins; see `probes.measurements.plugin_keys.digests`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the inputs and the version of the numerics."""
        content = self.model_dump(mode="json")
        kind = content.pop("kind")
        for name in ("base", "scores"):
            if not content[name]:
                del content[name]
        if self.probe is not None:
            content["numerics"] = numerics_version(kind, self.probe.family)
            content["resampling"] = RESAMPLING
        # The type of the products in training, which keys have had since it could be chosen.
        content["fit_dtype"] = "float32" if self.probe else ""
        return _sha256(content)


def record_key(
    inputs: str, measurement: str, version: int, settings: Mapping[str, Any], source: str = ""
) -> str:
    """The key of a record.

    Args:
        inputs: the digest of its inputs.
        version: that of the measurement.
        settings: options of the measurement.
        source: SHA-256 of the measurement's source, if it is a plug-in.
    """
    content = {"inputs": inputs, "measurement": measurement, "version": version}
    return _sha256({**content, "settings": dict(settings), "source": source})


def record_name(task: str, family: str, measurement: str, key: str) -> str:
    """Name of a record's file; task and family are empty for a measurement of a corpus."""
    parts = [folder_name(task), family] if task else []
    return "-".join([*parts, measurement, f"{key[:8]}.json"])


def _sha256(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
