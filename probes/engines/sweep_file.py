"""A sweep: a TOML file of models, corpora and settings, as the runs that it asks for."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.toml_lines import Place, TomlFile
from probes.common.wording import counted, first_fault, quoted
from probes.engines.config import RunConfig, as_several
from probes.engines.settings import validate
from probes.engines.slurm import Slurm
from probes.extraction.model_names import RANDOM_NAME
from probes.measurements.measurement import get_measurement
from probes.records.base import Frozen

Names = Annotated[tuple[str, ...], BeforeValidator(as_several)]

ELSEWHERE = {
    "address": "put it at the top of the file, or give --address",
    "corpus": "name corpora = […] in [[runs]]",
    "corpora": "put it in [[runs]]",
    "dry_run": "give --dry-run on the command line",
    "engine": "put it at the top of the file, or give --engine",
    "models": "put it in [[runs]], or at the top of the file, above the first table",
    "output": "put it at the top of the file, or give --output",
    "transfer": "give --transfer to run_probes.py",
    "quick": 'say evidence = "none" and twins = 0 instead',
}
"""Keys that are no settings of a table, and what to do about them."""


class SweepFile(Frozen):
    """The keys of the file."""

    output: Path = Path("results")
    engine: Literal["local", "ray", "slurm"] = "local"
    address: str | None = None
    slurm: Slurm = Slurm()
    """What is asked of SLURM, if it is the engine."""
    models: Names = ()
    """Of runs that name none; see `expanded_models`."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Fields of `RunConfig`."""
    runs: tuple[dict[str, Any], ...] = Field(min_length=1)
    """Each has the fields of `RunsTable`, and fields of `RunConfig` that override the defaults."""


class RunsTable(Frozen):
    """What a table [[runs]] says besides settings: one run for each of its corpora."""

    corpora: Annotated[
        tuple[Annotated[Names, Field(min_length=1)], ...],
        BeforeValidator(as_several),
        Field(min_length=1),
    ]
    """Each a name or a path, or several paths of one corpus."""
    models: Names = ()


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        models: as `--model` takes them; without the twins that the configuration adds.
    """

    config: RunConfig
    models: tuple[str, ...]

    @property
    def title(self) -> str:
        """What messages call it: ``ewt · 4 models``."""
        return f"{self.corpus} · {counted(len(self.models), 'model')}"

    @property
    def corpus(self) -> str:
        """The corpus as the file names it."""
        return " ".join(self.config.corpus)

    @property
    def compares(self) -> bool:
        """Whether something compares the other models with the first one."""
        named = map(get_measurement, self.config.about_corpus)
        return any(its.of_two_models or its.of_pairs for its in named)


@dataclass(frozen=True)
class Sweep:
    """A sweep, all of it checked.

    Attributes:
        file: what its file says.
    """

    file: SweepFile
    runs: tuple[SweepRun, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The models of all runs, without duplicates."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.models))

    def of_model(self, name: str) -> Sweep:
        """The part of one model, beside the first one of a run where that is compared with others.

        Raises:
            UserError: no run has this model.
        """
        if name not in self.models:
            raise UserError(
                f"--model {name}: no run of this file has it. {did_you_mean(name, self.models)}"
            )
        found = []
        for run in self.runs:
            if name in run.models:
                beside = run.models[:1] if run.compares else ()
                found.append(replace(run, models=tuple(dict.fromkeys((*beside, name)))))
        return replace(self, runs=tuple(found))


def read_sweep(path: Path, overriding: Mapping[str, object]) -> Sweep:
    """Read a sweep.

    Args:
        overriding: fields of `RunConfig` that count for every run, whatever the file says.

    Raises:
        UserError: the file cannot be read; or a value cannot be used, named with its line.
    """
    file = TomlFile(path)
    try:
        sweep = SweepFile.model_validate(file.values)
    except ValidationError as error:
        raise _refusal(file, (), error, SweepFile) from error
    _refuse(file, ("defaults",), sweep.defaults, ELSEWHERE)
    shared = sweep.model_dump(include={"output", "engine", "address"}, exclude_unset=True)
    if sweep.engine == "slurm":
        del shared["engine"]  # its job has another one
    found = []
    for number, given in enumerate(sweep.runs):
        place = "runs", number
        own = {key: value for key, value in given.items() if key in RunsTable.model_fields}
        settings = {key: value for key, value in given.items() if key not in own}
        _refuse(file, place, settings, ELSEWHERE)
        try:
            table = RunsTable.model_validate(own)
        except ValidationError as error:
            raise _refusal(file, place, error, RunsTable) from error
        names = table.models or sweep.models
        if not names:
            why = f"models is missing; {ELSEWHERE['models']}."
            raise file.error(place, why)
        of_models = (*place, "models") if table.models else ("models",)
        models = expanded_models(file, of_models, names)
        merged = {**sweep.defaults, **settings, **shared, **overriding}
        places: dict[str, Place] = {key: ("defaults", key) for key in sweep.defaults}
        places |= {key: (*place, key) for key in settings} | {key: (key,) for key in shared}
        for index, corpus in enumerate(table.corpora):
            at = {**places, "corpus": (*place, "corpora", index)}
            found.append(SweepRun(_validated(file, {**merged, "corpus": corpus}, at), models))
    return Sweep(sweep, tuple(found))


def expanded_models(file: TomlFile, place: Place, names: tuple[str, ...]) -> tuple[str, ...]:
    """The models that names, braces and patterns stand for, without duplicates.

    ``M@step{1,2}`` stands for ``M@step1`` and ``M@step2``, ``checkpoints/*/`` for all folders of
    that place, in the order of the numbers in their names; both may follow ``random:``.

    Args:
        place: where the names stand.

    Raises:
        UserError: a pattern fits no folder.
    """
    found: dict[str, None] = {}
    for number, given in enumerate(names):
        for name in _without_braces(given):
            twin = RANDOM_NAME.fullmatch(name)
            pattern = twin["model"] if twin else name
            prefix = name.removesuffix(pattern)
            folders = [pattern]
            if glob.has_magic(pattern):
                folders = [each for each in glob.glob(pattern) if Path(each).is_dir()]
                if not folders:
                    why = f"models = {name}: no folder fits the pattern; correct or remove it."
                    raise file.error((*place, number), why)
            for folder in sorted(folders, key=in_natural_order):
                found[prefix + folder] = None
    return tuple(found)


def in_natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts names by the numbers in them: checkpoint-900 before checkpoint-1000."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _without_braces(name: str) -> Iterator[str]:
    braces = re.fullmatch(r"(.*?)\{([^{}]*)\}(.*)", name, re.DOTALL)
    if not braces:
        yield name
        return
    before, choices, after = braces.groups()
    for choice in choices.split(","):
        yield from _without_braces(before + choice.strip() + after)


def _validated(
    file: TomlFile, settings: Mapping[str, object], places: Mapping[str, Place]
) -> RunConfig:
    """The configuration of a run.

    Args:
        places: where those of the file stand; the others are the command line's.

    Raises:
        UserError: one of them cannot be used.
    """
    try:
        return validate(settings)
    except UserError:
        # Which one: that with which the others, one after the other, are refused. Those that other
        # settings name come first.
        first = {"include": 0, "task_from": 1, "address": 3, "corpus": 3}
        tried: dict[str, object] = {}
        for key in sorted(settings, key=lambda key: first.get(key, 2)):
            tried[key] = settings[key]
            try:
                validate(tried)
            except UserError as error:
                if key not in places:
                    raise
                why = re.sub(rf"^--{key.replace('_', '-')}( .*?)?: ", "", str(error))
                given = f"{'corpora' if key == 'corpus' else key} = {quoted(settings[key])}"
                raise file.error(places[key], f"{given}: {why}") from error
        raise


def _refuse(
    file: TomlFile, place: Place, settings: Mapping[str, object], keys: Mapping[str, str]
) -> None:
    for key in settings:
        if key in keys:
            raise file.error((*place, key), f"{key} is no setting of this table; {keys[key]}.")


def _refusal(
    file: TomlFile, place: Place, error: ValidationError, model: type[Frozen]
) -> UserError:
    """The first invalid value of the file itself."""
    key, value, why = first_fault(error)
    within = (*place, *(loc := error.errors()[0]["loc"]))
    if key in RunConfig.model_fields and key not in model.model_fields:
        return file.error(within, f"{key} is a setting; put it in [defaults] or [[runs]].")
    if key not in model.model_fields:
        return file.error(
            within, f"there is no key {key!r}. {did_you_mean(key, model.model_fields)}"
        )
    if key not in (file.values["runs"][place[1]] if place else file.values):
        return file.error(within, f'{key} is missing; give [[runs]] with corpora, such as ["ewt"].')
    named = ".".join(part for part in loc if isinstance(part, str))
    return file.error(within, f"{named} = {quoted(value)}: {why}.")
