"""Records that may be passed on where a licence forbids text: sums instead of predictions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.joined_results import joined
from probes.measurements.localisation import Localisation
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.resampled import as_sums
from probes.measurements.resampled_mixes import mix_sums
from probes.measurements.scores import SUMS
from probes.records.files import Arrays, has_arrays, read_arrays
from probes.records.record import Record
from probes.records.result import SCORES

_FOLDERS = re.compile(r"(?:^|(?<=[=,:]))(?:~[^/]*|\.\.?|[A-Za-z]:)?[/\\](?:[^=,/\\]+[/\\])*")
"""The folders of a path that says where something lies on a machine."""


def with_sums(records: Mapping[Path, Record]) -> dict[Path, tuple[Record, Arrays]]:
    """The records with what each document, or sentence, contributes to the metric as their arrays.

    Every score, interval and p-value of the headline metric can be computed from these. Arrays of
    other measurements, which may hold anything, are left out unless they say that theirs do not. A
    record whose sums cannot be computed is left out and named.
    """
    results = joined(records)
    scores = {
        record.key: path
        for path, result in results.items()
        for record in result.evidence.values()
        if record.measurement == Localisation.name
    }

    def sums_of(record: Record, path: Path) -> Arrays:
        if record.arrays and (_shares_arrays(record) or has_arrays(path, SUMS)):
            return read_arrays(path)
        if record.arrays and record.measurement == SCORES:
            return as_sums(results[path], path)
        if record.arrays and (its := scores.get(record.key)):
            return {"sums": mix_sums(results[its], its, path)}
        return {}

    found = {}
    for path, record in records.items():
        try:
            arrays = sums_of(record, path)
        except UserError as error:
            progress.say(f"left out {path.name}: {error}")
            continue
        said = {k: _named(x) if k == "command" else x for k, x in record.provenance.items()}
        update = {"arrays": tuple(arrays), "provenance": said}
        found[path] = record.model_copy(update=update), arrays
    return found


def _named(command: str) -> str:
    """A command without the folders of local paths; empty if it is none."""
    try:
        return shlex.join(_FOLDERS.sub("", word) for word in shlex.split(command))
    except ValueError:
        return ""


def _shares_arrays(record: Record) -> bool:
    """Whether its measurement is known to keep nothing that a licence may forbid."""
    name = record.measurement
    return name in measurements and get_measurement(name).shares_arrays
