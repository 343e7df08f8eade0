"""The record of a unit: what was found, with everything that it depends on."""

from __future__ import annotations

from probes import __version__
from probes.engines.announcements import corpus_counts
from probes.engines.model_run import ModelRun
from probes.engines.plan import Unit
from probes.engines.prepared import Prepared
from probes.measurements.measurement import Found, PairMeasurement, get_measurement
from probes.measurements.plugin_keys import measurement_plug_in, plug_ins_of
from probes.records.header import CorpusRecord, EncodingRecord, TaskRecord
from probes.records.provenance import provenance
from probes.records.record import SCHEMA_VERSION, AnyRecord, Extent, Record
from probes.records.result import SCORES
from probes.records.row import Rows
from probes.tasks.task import Task


def record_of(
    prepared: Prepared,
    unit: Unit,
    extent: Extent,
    found: Found,
    view: str,
    encoding: EncodingRecord,
    seconds: dict[str, float],
) -> AnyRecord:
    """The record of what was found.

    Args:
        view: the name of the view that was read.
        encoding: how what was read was computed.
        seconds: by step.
    """
    run, task, probe = prepared.run, unit.task, unit.probe
    config = run.config
    plug_ins = plug_ins_of(task, probe.family) if task and probe else ()
    return Record(
        schema_version=SCHEMA_VERSION,
        suite_version=__version__,
        measurement=unit.measurement,
        measurement_version=get_measurement(unit.measurement).version,
        settings=unit.options.model_dump(mode="json"),
        key=unit.key,
        inputs=unit.inputs,
        extent=extent,
        behind=_behind(run, unit),
        model=prepared.info,
        base=prepared.base.info if _is_pair(unit) and prepared.base else None,
        corpus=_corpus_record(run),
        task=_task_record(task) if task else None,
        view=view,
        pooling=config.pooling,
        dtype=run.model.dtype,
        fit_dtype=config.fit_dtype,
        probe=probe,
        plug_ins=(*plug_ins, *measurement_plug_in(unit.measurement)),
        project=config.project,
        encoding=encoding,
        seconds=seconds,
        provenance={
            **provenance(run.command or "python", prepared.device),
            **prepared.notes,
        },
        arrays=tuple(sorted(found.arrays)),
        facts=dict(found.facts),
        notes=tuple(found.notes),
        rows=Rows.of(found.rows),
        examples=found.examples,
    )


def _is_pair(unit: Unit) -> bool:
    return isinstance(get_measurement(unit.measurement), PairMeasurement)


def _behind(run: ModelRun, unit: Unit) -> dict[int, float | None]:
    """The scores that a unit of evidence stands behind."""
    if unit.measurement == SCORES or unit.task is None or unit.probe is None:
        return {}
    return run.results[unit.task.name, unit.probe.family].headline


def _corpus_record(run: ModelRun) -> CorpusRecord:
    source, corpus = run.corpus.source, run.corpus.value
    sentences, words = corpus_counts(corpus)
    return CorpusRecord(
        name=corpus.name,
        version=corpus.version,
        licence=corpus.licence,
        citation=source.citation,
        silver=tuple(sorted(source.silver)),
        digest=source.digest,
        fingerprint=corpus.fingerprint,
        sentences=sentences,
        words=words,
        notes=dict(corpus.notes),
        limit=run.config.limit,
        limited=corpus.limited,
    )


def _task_record(task: Task) -> TaskRecord:
    return TaskRecord(
        name=task.name,
        version=task.version,
        needs=task.needs,
        kind=task.kind,
        shape=task.shape,
        metric=task.metric,
    )
