"""The results of one or more folders, each measurement once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from probes.common.terminal import progress
from probes.records.files import find_results, is_published
from probes.records.result import Result

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
    """All results below the folders by path; of one measurement, found twice, one.

    That is the one in the folder named first, and within a folder the fullest; published ones stand
    behind all others, whatever the order.
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
        several = "s" * (len(differing) > 1)
        progress.say(f"left out {len(differing)} duplicate result{several}; -v says which")
        for path, best_path in differing:
            progress.detail(f"left out {path}: {best_path} is of the same key, with other content")
    return {each.path: each.result for each in found if each.path in kept}


class _Found(NamedTuple):
    """A result, and how far behind it stands: whether it is published, then its folder's place."""

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
    # Only with its predictions beside it can a result be compared with another.
    result, predictions = found.result, found.path.with_suffix(".npz").exists()
    return not result.quick, len(result.layers), len(result.layers[0].cells), predictions
