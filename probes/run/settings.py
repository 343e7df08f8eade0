"""From what the user asked for to a valid configuration, or one line that says what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, get_type_hints

from pydantic import ValidationError

from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.wording import first_fault, quoted
from probes.data.find import require_known
from probes.data.sources import Source
from probes.measurements.measurement import (
    LEVELS,
    TRANSFER,
    corpus_measurements,
    get_measurement,
    measurements,
    probe_measurements,
)
from probes.measurements.plugins import discover, require_loaded
from probes.records.probe_spec import PROBES
from probes.records.values import Frozen
from probes.run.config import RunConfig, as_several
from probes.tasks.builtin import TASK_GROUPS, tasks
from probes.tasks.morphology import is_morphological

_Function = TypeVar("_Function", bound=Callable[..., object])


def takes_settings(*without: str) -> Callable[[_Function], _Function]:
    """Let help and completion show the settings of a run in place of a function's ``**settings``.

    Args:
        without: settings that the function does not take.
    """
    types = get_type_hints(RunConfig)
    settings = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.get_default(call_default_factory=True),
            annotation=types[name],
        )
        for name, field in RunConfig.model_fields.items()
        if name not in without
    ]

    def shown(function: _Function) -> _Function:
        own = inspect.signature(function)
        *named, _ = own.parameters.values()
        signature = own.replace(parameters=[*named, *settings])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return shown


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
        settings = {"evidence": "none", "twins": 0, **settings}
    try:
        config = RunConfig.model_validate(settings)
    except ValidationError as error:
        raise UserError(_refusal(error)) from error
    require_loaded((*config.probes, *config.tasks, *config.corpus))
    for names in (config.tested, *((name,) for name in config.trained_elsewhere)):
        require_known(names, (*config.task_from, *config.label))
    _require_texts(config)
    for name in config.probes:
        if name not in PROBES:
            raise UserError(f"--probes {name}: no such probe family. {did_you_mean(name, PROBES)}")
    _require_measurements(config)
    config = _with_named_evidence(config)
    _require_transferable(config)
    _require_sites(config)
    if config.address is not None and config.engine != "ray":
        raise UserError(f"--address {config.address}: of a Ray cluster; add --engine ray.")
    if config.gpus_per_model is not None and config.engine != "ray":
        raise UserError(f"--gpus-per-model {config.gpus_per_model}: on Ray; add --engine ray.")
    for flag, columns in (("task-from", config.task_from), ("label", config.label)):
        for name in columns:
            if not name.isprintable():
                raise UserError(f"--{flag} {name!r}: not a printable name; rename the column.")
    for name in config.tasks:
        if name not in (*config.own_tasks, *TASK_GROUPS) and not is_morphological(name):
            tasks.get(name)
    for name in (*config.about_corpus, *config.evidence_names):
        options_of(config, name)
    return config


def _require_transferable(config: RunConfig) -> None:
    """Check that there are probes to transfer, and corpora between which they can be.

    Raises:
        UserError: there are not.
    """
    if config.transfer and not TRANSFER:
        raise UserError("--transfer: no measurement of transfer is installed.")
    if TRANSFER and TRANSFER in config.evidence:
        raise UserError(f"--evidence {TRANSFER}: use --transfer, with several corpora.")
    if config.transfer and not config.trained_elsewhere:
        raise UserError("--transfer: give two corpora or more after --corpus.")
    if config.transfer and "probes" not in config.measurements:
        given = ",".join(config.measurements)
        raise UserError(f"--measurements {given}: --transfer is of probes; add probes to these.")


def _require_texts(config: RunConfig) -> None:
    """Check that what is said of texts goes together.

    Raises:
        UserError: it does not.
    """
    given = ",".join(config.sentence_pooling)
    if config.text and not config.label:
        raise UserError(f"--text {config.text}: name the column of its labels with --label.")
    if config.label and not config.text:
        raise UserError(
            f"--label {','.join(config.label)}: of texts, whose column --text names; labels of "
            "words, or of sentences given as tokens, are named by --task-from."
        )
    if config.text and config.task_from:
        raise UserError(f"--task-from {','.join(config.task_from)}: with --text, use --label.")
    if config.text and config.pooling != "mean":
        raise UserError(f"--pooling {config.pooling}: of words; use --sentence-pooling.")
    if not config.text and config.sentence_pooling != ("mean",):
        raise UserError(f"--sentence-pooling {given}: of texts; name their column with --text.")


def _require_sites(config: RunConfig) -> None:
    """Check that there is something to be read at the sites.

    Raises:
        UserError: there is not.
    """
    if config.task_sites == [None]:
        return
    given = ",".join(config.sites)
    if config.text:
        raise UserError(f"--sites {given}: does not apply to vectors of texts; omit it.")
    if "probes" not in config.measurements:
        raise UserError(f"--sites {given}: applies to probes only; add probes to --measurements.")
    if config.layers == (0,):
        raise UserError(f"--layers 0: no block's; --sites {given} needs layers from 1.")


def _require_measurements(config: RunConfig) -> None:
    """Check the names and options of measurements.

    Raises:
        UserError: one does not exist, or is not of the kind that its flag names.
    """
    require_loaded((*config.measurements, *config.evidence, *config.options))
    for name in config.options:
        measurements.get(name)
    about_corpus = [x.name for x in corpus_measurements()]
    evidence = [x.name for x in probe_measurements()]
    for name in config.measurements:
        if name == "scores":
            raise UserError(f"--measurements {name}: they are what probes stands for; use probes.")
        known = ("probes", *about_corpus, *evidence)
        if name not in known:
            raise UserError(
                f"--measurements {name}: no such measurement. {did_you_mean(name, known)}"
            )
    given = ",".join(config.evidence)
    if "none" in config.evidence and len(config.evidence) > 1:
        raise UserError(f"--evidence {given}: none goes alone.")
    if {"standard", "full"} <= set(config.evidence):
        raise UserError(f"--evidence {given}: give standard or full, not both.")
    known = (*LEVELS, *evidence)
    for name in config.evidence:
        if name not in known:
            raise UserError(f"--evidence {name}: no such evidence. {did_you_mean(name, known)}")


def _with_named_evidence(config: RunConfig) -> RunConfig:
    """Evidence that `--measurements` names, and what needs all scores, as probes with these.

    Without "probes" beside it, it is all the evidence that is asked for, unless `--evidence` says
    more.
    """
    evidence = [x.name for x in probe_measurements()]
    named = [name for name in config.measurements if name in evidence]
    others = [name for name in config.measurements if name not in (*named, "probes")]
    if not named and not any(get_measurement(name).of_results for name in others):
        return config
    given = [name for name in config.evidence if name != "none"]
    if "probes" not in config.measurements and "evidence" not in config.model_fields_set:
        given = []
    every = (*given, *named) or ("none",)
    changed = {"measurements": ("probes", *others), "evidence": every}
    return config.model_copy(update=changed)


def for_items(config: RunConfig, source: Source) -> RunConfig:
    """The configuration for a corpus of items, of which other measurements may be meant."""
    if not source.items:
        return config
    stand_ins = [get_measurement(name).for_items for name in config.evidence_names]
    if not (meant := [name for name in stand_ins if name]):
        return config
    others = config.about_corpus
    return config.model_copy(update={"measurements": (*others, *meant), "evidence": ("none",)})


def options_of(config: RunConfig, name: str) -> Frozen:
    """The options of a measurement, as the user set them.

    Raises:
        UserError: a value that cannot be used, named with its flag.
    """
    try:
        return get_measurement(name).options.model_validate(config.options.get(name, {}))
    except ValidationError as error:
        field, value, why = first_fault(error)
        flag = f"--{name}-{field}".replace("_", "-")
        if why == "is missing":
            raise UserError(f"--measurements {name}: it needs {flag}.") from error
        raise UserError(f"{flag} {quoted(value)}: {why}.") from error


def _refusal(error: ValidationError) -> str:
    """The first invalid setting, in the words of the command line."""
    field, value, why = first_fault(error)
    if field not in RunConfig.model_fields:
        return f"unknown setting {field!r}. {did_you_mean(field, RunConfig.model_fields)}"
    shown = "" if value in ((), []) else f" {quoted(value)}"
    return f"--{field.replace('_', '-')}{shown}: {why}."
