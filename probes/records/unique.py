"""The results of one or more folders, without duplicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from probes.common.terminal import progress
from probes.common.wording import counted
from probes.records.files import find_results, is_published
from probes.records.result import Result

Identity = tuple[str, str, str]


def identity(result: Result) -> Identity:
    """What identifies a measurement: the model's name and revision, and the key.

    Two results with the same identity are duplicates. The key covers the weights, or the seed that
    they were drawn with, the corpus, the task and its version (and so the view), the probe's
    specification, pooling, projection and precision.
    """
    return result.model.name, result.model.revision, result.key


def scores_of(result: Result) -> dict[str, Any]:
    """The content of a result, without where, when and with what it was computed."""
    aside = {"seconds", "provenance", "suite_version", "encoding", "schema_version"}
    return result.model_dump(exclude=aside)


def unique_results(*folders: Path) -> dict[Path, Result]:
    """All results below the folders by path, one of every measurement.

    Of duplicates, the one in the folder named first is kept, and within a folder the most complete
    one. Published results come after all others, whatever the order of the folders.
    """
    found = sorted(_all(folders), key=lambda each: each.rank)
    alike: dict[Identity, list[_Found]] = defaultdict(list)
    for each in found:
        alike[identity(each.result)].append(each)
    kept, differing = set(), []
    for same in alike.values():
        best = max(same, key=lambda each: (*(-n for n in each.rank), *_fullness(each)))
        kept.add(best.path)
        if len(same) > 1:
            scores = scores_of(best.result)
            differing += [(x.path, best.path) for x in same if scores_of(x.result) != scores]
    if differing:
        duplicates = counted(len(differing), "duplicate result")
        progress.say(f"left out {duplicates}; -v says which")
        for path, best_path in differing:
            progress.detail(f"left out {path}: {best_path} has the same key and other content")
    return {each.path: each.result for each in found if each.path in kept}


class _Found(NamedTuple):
    """A result and its rank: whether it is published, then the place of its folder."""

    rank: tuple[int, int]
    path: Path
    result: Result


def _all(folders: tuple[Path, ...]) -> Iterator[_Found]:
    seen: set[Path] = set()
    for place, folder in enumerate(folders):
        for path, result in find_results(folder).items():
            resolved = path.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield _Found((is_published(resolved), place), path, result)


def _fullness(found: _Found) -> tuple[bool, int, int, bool]:
    # A result can be compared with another only if its predictions are there.
    result, predictions = found.result, found.path.with_suffix(".npz").exists()
    return not result.quick, len(result.layers), len(result.layers[0].cells), predictions
