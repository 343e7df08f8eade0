"""Validation of settings: a configuration, or one line that names the flag at fault."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, get_type_hints

from pydantic import ValidationError

from probes.common.errors import UserError, first_fault, listed, quoted
from probes.common.registry import did_you_mean, nearest
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
from probes.tasks.positions import Position

_Function = TypeVar("_Function", bound=Callable[..., object])

_OTHER_TYPES = {
    "corpus": "Any",
    "layers": "int | str | Sequence[int]",
    "batch_tokens": "int | str | None",
    "memory": "int | str | None",
}
"""Types of values that validation turns into those of `RunConfig`."""


def accepted_type(name: str) -> str:
    """Type of the values that a setting accepts from Python, as type checkers read it."""
    text = _OTHER_TYPES.get(name) or inspect.formatannotation(get_type_hints(RunConfig)[name])
    if text.startswith("tuple"):
        item = "str | Path" if "Path" in text else "str"
        return f"{item} | Sequence[{item}]"
    text = re.sub(r"Optional\[(.+)\]", r"\1 | None", text.replace("typing.", ""))
    return re.sub(r"pathlib\.(_local\.)?Path", "str | Path", text)


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
    described = "\n".join(
        f"    {x.name} ({accepted_type(x.name)}, default "
        f"{str(x.default) if isinstance(x.default, Path) else repr(x.default)}): "
        f"{RunConfig.model_fields[x.name].description}"
        for x in settings
    )

    def with_settings(function: _Function) -> _Function:
        signature_in_code = inspect.signature(function)
        *parameters, _ = signature_in_code.parameters.values()
        signature = signature_in_code.replace(parameters=[*parameters, *settings])
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nSettings:\n{described}"
        return function

    return with_settings


def validate(settings: Mapping[str, object]) -> RunConfig:
    """Load plug-ins, and check all that needs no file of a corpus or a model.

    Args:
        settings: by field of `RunConfig`; absent ones keep their defaults.

    Raises:
        UserError: a value that cannot be used, named with its flag; or a plug-in that cannot be
            loaded.
    """
    include = as_several(settings.get("include", ()))
    paths = isinstance(include, (tuple, list)) and all(isinstance(x, (str, Path)) for x in include)
    # Anything else is reported with the other values below.
    discover(include if paths else ())
    # Before validation, so that --evidence and --twins beside --quick still count.
    if settings.get("quick"):
        settings = {"evidence": "none", "twins": 0, **settings}
    try:
        config = RunConfig.model_validate(settings)
    except ValidationError as error:
        raise UserError(_refusal(error)) from error
    require_loaded((*config.probes, *config.tasks, *config.corpus))
    for names in (config.tested, *((name,) for name in config.trained_elsewhere)):
        require_known(names, (*config.task_from, *config.label))
    for name in config.probes:
        if name not in PROBES:
            raise UserError(f"--probes {name}: no such probe family. {did_you_mean(name, PROBES)}")
    _require_measurements(config)
    config = _with_named_evidence(config)
    for conflict, message in _conflicts(config):
        if conflict:
            raise UserError(message)
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


def _conflicts(config: RunConfig) -> Iterator[tuple[object, str]]:
    """Conflicts between settings: whether each occurs, and its message."""
    # Not validators of fields: pydantic's messages would name one flag, and these need two.
    text, label, task_from = config.texts, ",".join(config.label), ",".join(config.task_from)
    positions, sites = ",".join(config.positions), ",".join(config.sites)
    measured = ",".join(config.measurements)
    other_sites, probed = config.task_sites != [None], config.trains_probes
    on_ray = config.engine == "ray"
    flag = "--text" if config.text else "--messages"
    yield config.text and config.messages, f"--messages {config.messages}: not with --text."
    yield text and not label, f"{flag} {text}: name the column of its labels with --label."
    yield (
        config.fpr != RunConfig.model_fields["fpr"].default and not config.metric,
        f"--fpr {config.fpr:g}: needs --metric auroc or recall_at_fpr.",
    )
    yield (
        config.threshold_from and not (config.metric and text),
        f"--threshold-from {config.threshold_from}: needs --metric, and --text or --messages.",
    )
    yield config.special_tokens and not text, "--special-tokens: needs --text or --messages."
    of_roles = any(Position.parse(name).role for name in config.positions)
    yield (
        of_roles and not config.messages,
        f"--positions {positions}: roles need chats; name their column with --messages.",
    )
    yield (
        label and not text,
        f"--label {label} needs --text COLUMN. For labels of words, use --task-from {label}.",
    )
    yield text and task_from, f"--task-from {task_from}: with {flag}, use --label."
    yield (
        text and config.pooling != "mean",
        f"--pooling {config.pooling} pools words. For texts, use --positions.",
    )
    yield (
        not text and positions != "mean",
        f"--positions {positions} applies to texts; name their column with --text.",
    )
    yield config.transfer and not TRANSFER, "--transfer: no measurement of transfer is installed."
    yield (
        TRANSFER and TRANSFER in config.evidence,
        f"--evidence {TRANSFER}: use --transfer, with several corpora.",
    )
    yield (
        config.transfer and not config.trained_elsewhere,
        "--transfer: give two corpora or more after --corpus.",
    )
    yield (
        config.transfer and not probed,
        f"--measurements {measured}: --transfer needs scores; add scores to these.",
    )
    of_scores = {f"--sites {sites}": other_sites, f"--positions {positions}": positions != "mean"}
    for setting, is_changed in of_scores.items():
        applies = f"{setting}: applies to scores only; add scores to --measurements."
        yield is_changed and not probed, applies
    yield (
        other_sites and config.layers == (0,),
        f"--layers 0: not a block; --sites {sites} needs layers from 1.",
    )
    yield (
        config.address is not None and not on_ray,
        f"--address {config.address} names a Ray cluster; add --engine ray.",
    )
    yield (
        config.gpus_per_model is not None and not on_ray,
        f"--gpus-per-model {config.gpus_per_model} needs Ray; add --engine ray.",
    )


def _require_measurements(config: RunConfig) -> None:
    """Check the names and options of measurements."""
    require_loaded((*config.measurements, *config.evidence, *config.options))
    for name in config.options:
        measurements.get(name)
    evidence = [x.name for x in probe_measurements()]
    names_given = ",".join(config.evidence)
    if "none" in config.evidence and len(config.evidence) > 1:
        raise UserError(f"--evidence {names_given}: none goes alone.")
    if {"standard", "full"} <= set(config.evidence):
        raise UserError(f"--evidence {names_given}: give standard or full, not both.")
    about_corpus = ("scores", *(x.name for x in corpus_measurements()))
    for flag, noun, names, allowed in (
        ("measurements", "measurement", config.measurements, (*about_corpus, *evidence)),
        ("evidence", "evidence", config.evidence, (*LEVELS, *evidence)),
    ):
        for name in names:
            if name not in allowed:
                near = "scores" if name in ("probe", "probing") else nearest(name, allowed)
                hint = f"Did you mean {near!r}?" if near else "--list-measurements lists all."
                if flag == "evidence" and not near:
                    hint = f"Give {listed(LEVELS, 'or')}; {hint}"
                raise UserError(f"--{flag} {name}: no such {noun}. {hint}")


def _with_named_evidence(config: RunConfig) -> RunConfig:
    """Add evidence that `--measurements` names to `evidence`.

    Without "scores" beside it, no other evidence is gathered unless `--evidence` names it.
    """
    named_evidence = [x for x in config.measurements if get_measurement(x).is_evidence]
    if not any(get_measurement(x).after == "scores" for x in config.measurements):
        return config
    other_evidence = [name for name in config.evidence if name != "none"]
    if "scores" not in config.measurements and "evidence" not in config.model_fields_set:
        other_evidence = []
    all_evidence = (*other_evidence, *named_evidence) or ("none",)
    return config.model_copy(update={"evidence": all_evidence})


def config_for_items(config: RunConfig, source: Source) -> RunConfig:
    """The configuration with evidence replaced by what measures items, if the corpus has items."""
    if not source.items:
        return config
    stand_ins = [get_measurement(name).variant_for_items for name in config.evidence_names]
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
        given = config.options.get(name, {})
        return get_measurement(name).options.model_validate(given, context=config)
    except ValidationError as error:
        field, value, fault = first_fault(error)
        flag = f"--{name}-{field}".replace("_", "-")
        if fault == "is missing":
            raise UserError(f"--measurements {name}: it needs {flag}.") from error
        raise UserError(f"{flag}{_quoted_value(value)}: {fault}.") from error


def _refusal(error: ValidationError) -> str:
    """The first invalid setting, in the words of the command line."""
    field, value, fault = first_fault(error)
    if field not in RunConfig.model_fields:
        return f"unknown setting {field!r}. {did_you_mean(field, RunConfig.model_fields)}"
    return f"--{field.replace('_', '-')}{_quoted_value(value)}: {fault}."


def _quoted_value(value: object) -> str:
    return "" if value in ((), []) else f" {quoted(value)}"
