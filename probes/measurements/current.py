"""Whether a stored result is what this version would compute."""

from __future__ import annotations

from probes.extraction.windows import WINDOW_RULE
from probes.measurements.plug_in_keys import as_loaded, digests
from probes.records.keys import FitKey
from probes.records.probe_spec import PROBES
from probes.records.result import Result
from probes.tasks.builtin import tasks


def of_this_numerics(result: Result) -> bool:
    """Whether this version would give the result's task and probe the same scores."""
    key = FitKey(
        model=result.model.digest,
        corpus=result.corpus.digest,
        task=result.task.name,
        task_version=result.task.version,
        kind=result.task.kind,
        probe=result.probe,
        pooling=result.pooling,
        dtype=result.dtype,
        project=result.project,
        windows=WINDOW_RULE,
        plug_ins=digests(result.plug_ins),
    )
    return key.digest == result.key


def is_current(result: Result) -> bool:
    """Whether a result is what this version would compute for the same inputs.

    What is not registered, being a column of the user's data or a plug-in that is not loaded, is
    taken at its word.
    """
    name = result.task.name
    version = tasks.get(name).version if name in tasks else result.task.version
    probe = PROBES.get(result.probe.family, result.probe)
    same = (result.task.version, result.probe) == (version, probe)
    loaded = as_loaded(result.task, result.probe.family, result.plug_ins)
    return same and loaded and of_this_numerics(result)
