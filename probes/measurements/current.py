"""Whether a stored record is what this version of the suite would compute."""

from __future__ import annotations

from probes.extraction.windows import WINDOW_RULE
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.plugin_keys import as_loaded, digests, source_of
from probes.records.probe_spec import PROBES
from probes.records.record import Inputs, Record, record_key
from probes.tasks.builtin import version_of


def has_current_numerics(record: Record) -> bool:
    """Whether this version would find the same for the record's own inputs and settings.

    A measurement that is not loaded is taken to be unchanged.
    """
    task = record.task
    inputs = Inputs(
        model=record.model.digest,
        corpus=record.corpus.digest_of_task or record.corpus.digest,
        pooling=record.pooling,
        dtype=record.dtype,
        windows=WINDOW_RULE,
        task=task.name if task else "",
        task_version=task.version if task else 0,
        kind=task.kind if task else "",
        probe=record.probe,
        project=record.project if record.probe else None,
        plug_ins=digests(x for x in record.plug_ins if x.kind != "measurement"),
    )
    name = record.measurement
    version, of_results = record.measurement_version, False
    if name in measurements:
        version, of_results = get_measurement(name).version, get_measurement(name).of_results
    # What type the base of a pair ran in is not in the record, nor are the keys of scores.
    digest = record.inputs if record.base or of_results else inputs.digest
    key = record_key(digest, name, version, record.settings, source_of(record.plug_ins))
    return key == record.key


def is_current(record: Record) -> bool:
    """Whether this version, with the plug-ins it has now, would compute this record.

    A column of the user's data, or a plug-in that is not loaded, is taken to be unchanged.
    """
    if not as_loaded(record) or not has_current_numerics(record):
        return False
    if record.task is None or record.probe is None:
        return True
    version = version_of(record.task.name)
    probe = PROBES.get(record.probe.family, record.probe)
    return version in (None, record.task.version) and record.probe == probe
