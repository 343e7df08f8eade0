"""The record of a job: what was found, with everything that it depends on, and provenance."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from probes import __version__
from probes.measurements.context import ModelContext, PairContext
from probes.measurements.measurement import Measured
from probes.measurements.plugin_keys import plug_ins_of
from probes.records.header import CorpusRecord, TaskRecord
from probes.records.probe_spec import PROBES
from probes.records.record import SCHEMA_VERSION, Record
from probes.records.result import Result
from probes.records.row import Rows
from probes.run.announcements import corpus_counts
from probes.run.corpus_reader import CorpusReader
from probes.run.jobs import Job
from probes.run.model_run import ModelRun
from probes.tasks.task import Task


def record_of(
    run: ModelRun,
    reader: CorpusReader,
    job: Job,
    context: ModelContext,
    measured: Measured,
    seconds: dict[str, float],
    scores: Result | None,
) -> Record:
    """The record of what was found.

    Args:
        seconds: by step.
        scores: those that it is evidence for.
    """
    task = run.task(job.task)
    return Record(
        schema_version=SCHEMA_VERSION,
        suite_version=__version__,
        measurement=job.measurement,
        measurement_version=job.definition.version,
        settings=dict(job.options),
        key=job.key,
        inputs=job.inputs,
        extent=context.extent,
        # Evidence is shown with exactly these scores: if they are measured again, it is too.
        behind=scores.headline if scores else {},
        model=context.model,
        base=context.base.model if isinstance(context, PairContext) else None,
        corpus=_corpus_record(run, task),
        task=_task_record(task) if task else None,
        view=context.view.name,
        pooling=run.config.pooling,
        dtype=run.model.dtype,
        probe=PROBES[job.family] if job.family else None,
        plug_ins=plug_ins_of(task, job.family, job.measurement),
        project=run.config.project,
        encoding=context.stored.encoding.model_copy(update={"chats": run.model.chats}),
        seconds=seconds,
        provenance={
            **provenance(run.command or "python", context.device),
            **_footprint(reader),
            **reader.description.notes,
            "written": datetime.now(UTC).isoformat(),
        },
        arrays=tuple(sorted(measured.arrays)),
        facts=dict(measured.facts),
        notes=tuple(measured.notes),
        rows=Rows.of(measured.rows),
        examples=measured.examples,
    )


def _footprint(reader: CorpusReader) -> dict[str, str]:
    """Words per second of the forward pass on this machine, and bytes of the weights on disk.

    What is not known is left out: of vectors that were stored before, of a model in memory.
    """
    weights = sum(n for name, n, _ in reader.model.source.stamps if name.endswith(".safetensors"))
    sizes = {"words_per_second": reader.speed or 0, "bytes_on_disk": weights}
    return {name: f"{number:.0f}" for name, number in sizes.items() if number}


def _corpus_record(run: ModelRun, task: Task | None) -> CorpusRecord:
    source, corpus = run.corpus.source, run.corpus.value
    of_task = source.digest_for(task.needs) if task else source.digest
    sentences, words = corpus_counts(corpus)
    return CorpusRecord(
        name=corpus.name,
        version=corpus.version,
        licence=corpus.licence,
        citation=source.citation,
        silver=tuple(sorted(source.silver)),
        digest=source.digest,
        digest_of_task=of_task if of_task != source.digest else "",
        fingerprint=corpus.fingerprint,
        sentences=sentences,
        words=words,
        notes=dict(corpus.notes),
        group=source.group,
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
        site=task.site,
        fpr=task.fpr,
    )


PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy")


def provenance(command: str, device: torch.device) -> dict[str, str]:
    """Command, versions and machine of this run; what is unknown is left out."""
    facts = {
        "command": command,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "processor": _processor(),
        "cores": str(os.cpu_count() or ""),
        "memory": _memory(),
        "device": _device(device),
        "threads": str(torch.get_num_threads()),
        "git": _git(),
        "probes": __version__,
        "schema": str(SCHEMA_VERSION),
        **{package: version(package) for package in PACKAGES},
    }
    return {name: value for name, value in facts.items() if value}


@cache
def _processor() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _memory() -> str:
    """The machine's main memory."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return ""
    return f"{size / 2**30:.0f} GiB"


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


@cache
def _git() -> str:
    """Commit of the suite's repository, and whether tracked files were changed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        commit = _output(root, "rev-parse", "HEAD")
        changed = _output(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + " with changes" * bool(changed)


def _output(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()
