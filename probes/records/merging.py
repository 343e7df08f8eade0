"""Merges results from elsewhere into a folder, without changing or losing what is there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import writing
from probes.records.files import find_results, read_result
from probes.records.keys import result_name
from probes.records.result import Result
from probes.records.unique import Identity, identity, scores_of


@dataclass
class Merge:
    """What became of the results of a bundle, by their names in it.

    Attributes:
        added: results that were written.
        present: results that were there already, with the same scores.
        conflicts: results that were there already, and how their content differs.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)


def merge(staged: Path, names: list[str], output: Path) -> Merge:
    """Move results from `staged` below `output`, on the same file system.

    Raises:
        UserError: one cannot be read, has a newer schema, or does not match its name. Nothing is
            moved then.
    """
    arriving = {name: _read(staged / name, name) for name in names}
    places: dict[Identity, Path] = {}
    for path, result in find_results(output).items():
        if staged not in path.parents:
            places.setdefault(identity(result), path)
    found = Merge()
    for name, result in arriving.items():
        target = output / name
        # The same measurement may be stored in another folder.
        there = target if target.exists() else places.get(identity(result))
        if there is None:
            _move(staged / name, target)
            found.added.append(name)
        elif why := _difference(there, result):
            found.conflicts[name] = f"{there} {why}"
        else:
            _add_predictions(staged / name, there)
            found.present.append(name)
    return found


def _read(path: Path, name: str) -> Result:
    try:
        result = read_result(path)
    except UserError as error:
        raise UserError(f"{error}".replace(str(path), name)) from error
    if path.name != result_name(result.task.name, result.probe.family, result.key):
        raise UserError(f"{name}: the file name does not match the result in it.")
    return result


def _difference(there: Path, result: Result) -> str:
    """How a stored result differs from another of the same name; empty if it does not."""
    try:
        stored = read_result(there)
    except UserError:
        return "is there and cannot be read"
    if identity(stored) != identity(result):
        return "has another model or key"
    if scores_of(stored) == scores_of(result):
        return ""
    layers = {layer.layer: layer for layer in stored.layers}
    pairs = [
        (stored.score(layers[layer.layer]), result.score(layer))
        for layer in result.layers
        if layer.layer in layers
    ]
    if {layer.layer for layer in result.layers} != layers.keys():
        return "holds other layers"
    if any(len(x.cells) != len(layers[x.layer].cells) for x in result.layers):
        return "holds other seeds"
    if stored.quick != result.quick:
        return "differs in whether --quick was given"
    gap = max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=math.nan)
    return f"has other scores (headline ones on test by up to {gap:.2g})"


def _move(source: Path, target: Path) -> None:
    """Move a result; its predictions first, so that where the JSON is, they are too."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if (beside := source.with_suffix(".npz")).exists():
            beside.replace(target.with_suffix(".npz"))
        source.replace(target)


def _add_predictions(source: Path, there: Path) -> None:
    """Move predictions to a stored result that has none."""
    beside, wanted = source.with_suffix(".npz"), there.with_suffix(".npz")
    if beside.exists() and not wanted.exists():
        with writing(wanted):
            beside.replace(wanted)
