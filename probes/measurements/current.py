"""Whether a stored result is what this version of the suite would compute."""

from __future__ import annotations

from probes.extraction.windows import WINDOW_RULE
from probes.measurements.plugin_keys import as_loaded, digests
from probes.records.keys import FitKey
from probes.records.probe_spec import PROBES, tuned
from probes.records.result import Result
from probes.tasks.builtin import tasks


def has_current_numerics(result: Result) -> bool:
    """Whether this version would compute the same scores for the result's own task and probe."""
    key = FitKey(
        model=result.model.digest,
        corpus=result.corpus.digest,
        task=result.task.name,
        task_version=result.task.version,
        kind=result.task.kind,
        probe=result.probe,
        pooling=result.pooling,
        dtype=result.dtype,
        fit_dtype=result.fit_dtype,
        project=result.project,
        windows=WINDOW_RULE,
        plug_ins=digests(result.plug_ins),
    )
    return key.digest == result.key


def is_current(result: Result) -> bool:
    """Whether this version, with the tasks and probes it has now, would compute this result.

    A column of the user's data, or a plug-in that is not loaded, is taken to be unchanged.
    """
    name = result.task.name
    version = tasks.get(name).version if name in tasks else result.task.version
    probe = PROBES.get(result.probe.family, result.probe)
    same = result.task.version == version and result.probe in (probe, tuned(probe))
    loaded = as_loaded(result.task, result.probe.family, result.plug_ins)
    return same and loaded and has_current_numerics(result)
