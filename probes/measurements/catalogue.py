"""Families of measurements, one for each folder of `probes/families`, and their registrations."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import NamedTuple

from probes.records.values import Frozen

_FAMILIES = "probes.families"


class Command(NamedTuple):
    """A sub-command, or a figure, that shows records of one measurement.

    Attributes:
        summary: one line of help.
        measurement: the measurement whose records it shows.
        module: has ``add_arguments(parser)``; of a sub-command ``tables(records, options, where)``,
            of a figure ``draw(records, options, style, where)``.
    """

    summary: str
    measurement: str
    module: str


@dataclass(frozen=True)
class Family:
    """Registrations of a family: the value of `FAMILY` in its `__init__.py`.

    A module is named without the family's folder, and imported when it is used.

    Attributes:
        measurements: module of each measurement of a corpus as a whole, or of a pair of models.
        evidence: module of each measurement behind scores; it is made only if it is named.
        options: options of measurements, whose fields become flags.
        commands: sub-commands, by name.
        figures: figures that are not charts of a measurement's rows, by name.
        claims: module with ``CLAIMS``, a tuple of `probes.boards.claims.rules.Claim`.
        comparison: module whose tables compare models. It has ``compared(records)``, which chooses
            records, ``ranked_tables`` and ``paired_tables`` of these, ``CSV_NAME``,
            ``CSV_COLUMNS``, and ``csv_table(frame)``.
        transfer: the evidence that ``--transfer`` asks for, and its module, which has
            ``transfer_tables(results)``.
    """

    measurements: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, type[Frozen]] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    figures: Mapping[str, Command] = field(default_factory=dict)
    claims: str = ""
    comparison: str = ""
    transfer: str = ""


@cache
def measurement_families() -> Mapping[str, Family]:
    """All families, by the name of their package."""
    families = {}
    for module_info in pkgutil.iter_modules(importlib.import_module(_FAMILIES).__path__):
        package = f"{_FAMILIES}.{module_info.name}"
        families[package] = importlib.import_module(package).FAMILY
    return families


def family_modules(kind: str) -> Iterator[ModuleType]:
    """The modules that families register as `kind`: "claims", "comparison" or "transfer"."""
    for package, family in measurement_families().items():
        if module := getattr(family, kind):
            yield importlib.import_module(f"{package}.{module}")


def registered(kind: str) -> dict[str, str]:
    """By name, the full names of the modules of all `kind`: "measurements" or "evidence"."""
    return {
        name: f"{package}.{module}"
        for package, family in measurement_families().items()
        for name, module in getattr(family, kind).items()
    }


def registered_commands(kind: str) -> dict[str, Command]:
    """All sub-commands or figures by name, with the full names of their modules."""
    return {
        name: command._replace(module=f"{package}.{command.module}")
        for package, family in measurement_families().items()
        for name, command in getattr(family, kind).items()
    }
