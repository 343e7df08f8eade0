"""From what the user asked for to a valid configuration, or one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.wording import first_fault, quoted
from probes.data.find import require_known
from probes.engines.config import RunConfig, as_several
from probes.measurements.plugins import discover, require_loaded
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import TASK_GROUPS, tasks


def validate(settings: Mapping[str, object]) -> RunConfig:
    """Load the plug-ins and check everything that needs no file of a corpus or a model.

    Args:
        settings: by field of `RunConfig`; what is absent keeps its default.

    Raises:
        UserError: a value that cannot be used, named with its flag; or a plug-in that cannot be
            loaded.
    """
    include = as_several(settings.get("include", ()))
    paths = isinstance(include, (tuple, list)) and all(isinstance(x, (str, Path)) for x in include)
    # Anything else is reported with the other values below.
    discover(include if paths else ())
    if settings.get("quick"):
        settings = {"seeds": 1, "twins": 0, **settings}
    try:
        config = RunConfig.model_validate(settings)
    except ValidationError as error:
        raise UserError(_refusal(error)) from error
    require_loaded((*config.probes, *config.tasks, *config.corpus))
    require_known(config.corpus, config.task_from)
    for name in config.probes:
        if name not in PROBES:
            raise UserError(f"--probes {name}: no such probe family. {did_you_mean(name, PROBES)}")
    for name in config.task_from:
        if not name.isprintable():
            raise UserError(f"--task-from {name!r}: not a printable name; rename the column.")
    for name in config.tasks:
        if name not in (*config.task_from, *TASK_GROUPS):
            tasks.get(name)
    return config


def _refusal(error: ValidationError) -> str:
    """The first invalid setting, in the words of the command line."""
    field, value, why = first_fault(error)
    if field not in RunConfig.model_fields:
        return f"unknown setting {field!r}. {did_you_mean(field, RunConfig.model_fields)}"
    shown = "" if value in ((), []) else f" {quoted(value)}"
    return f"--{field.replace('_', '-')}{shown}: {why}."
