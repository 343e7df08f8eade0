"""The results of one or more folders, each measurement once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.terminal import progress
from probes.results import Result, find_results

Identity = tuple[str, str, str]


def identity(result: Result) -> Identity:
    """What no two results of a leaderboard share: model, revision and key.

    The key is over the weights or the seed they were drawn with, the corpus, the task and its
    version (and so the view), the probe's specification, pooling, projection and precision.
    """
    return result.model.name, result.model.revision, result.key


def scores_of(result: Result) -> dict[str, Any]:
    """All that a result says besides where, when and with what it was computed."""
    aside = {"seconds", "provenance", "suite_version", "encoding", "schema_version"}
    return result.model_dump(exclude=aside)


def unique_results(*folders: Path) -> dict[Path, Result]:
    """All results below the folders by path; of one measurement the fullest.

    Copies arise where results are shared: `results/published` lies below `results`.
    """
    chosen: dict[Identity, Path] = {}
    found: dict[Path, Result] = {}
    differing: list[str] = []
    for path, result in _all(folders):
        before = chosen.get(identity(result))
        if before is None or _fullness(path, result) > _fullness(before, found[before]):
            kept, dropped = path, before
            chosen[identity(result)], found[path] = path, result
        else:
            kept, dropped = before, path
            found[path] = result
        if dropped is not None:
            left_out = found.pop(dropped)
            if scores_of(left_out) != scores_of(found[kept]):
                differing.append(f"{dropped}: {kept} is of the same key, with other content")
    if differing:
        more = f" (and {len(differing) - 1} more such)" if len(differing) > 1 else ""
        progress.say(f"left out {differing[0]}{more}")
    return found


def _all(folders: tuple[Path, ...]) -> Iterator[tuple[Path, Result]]:
    seen: set[Path] = set()
    for folder in folders:
        for path, result in find_results(folder).items():
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path, result


def _fullness(path: Path, result: Result) -> tuple[bool, int, int, bool]:
    # Only with its predictions beside it can a result be compared with another.
    predictions = path.with_suffix(".npz").exists()
    return not result.quick, len(result.layers), len(result.layers[0].cells), predictions
