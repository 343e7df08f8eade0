"""The records of one or more folders, without duplicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from probes.common.terminal import progress
from probes.common.wording import counted
from probes.records.files import find_records, is_complete, is_published
from probes.records.record import Record, fullness

Identity = tuple[str, str, str]


def identity(record: Record) -> Identity:
    """What identifies a measurement: the model's name and revision, and the key.

    Two records with the same identity are duplicates. The key covers the weights, or the seed that
    they were drawn with, the corpus, the task and its version (and so the view), the probe's
    specification, pooling, projection and precision, and the measurement with its settings.
    """
    return record.model.name, record.model.revision, record.key


def content_of(record: Record) -> dict[str, Any]:
    """The content of a record, without where, when and with what it was computed.

    Nor does it matter whether predictions are beside it, or sums instead, nor whether the digest of
    the configuration is there: that of the model covers it.
    """
    aside = ("seconds", "provenance", "suite_version", "encoding", "schema_version", "arrays")
    of_models = {name: {"configuration"} for name in ("model", "base")}
    return record.model_dump(exclude={**dict.fromkeys(aside, True), **of_models})


def unique_records(
    *folders: Path, find: Callable[[Path], dict[Path, Record]] = find_records
) -> dict[Path, Record]:
    """All records below the folders by path, one of every measurement.

    Of duplicates, the one in the folder named first is kept, and within a folder the most complete
    one. Published records come after all others, whatever the order of the folders.

    Args:
        find: gives all records below a folder.
    """
    found = sorted(_all(folders, find), key=lambda each: each.rank)
    alike: dict[Identity, list[_Found]] = defaultdict(list)
    for each in found:
        alike[identity(each.record)].append(each)
    kept, differing = set(), []
    for same in alike.values():
        best = max(same, key=lambda each: (*(-n for n in each.rank), *_fullness(each)))
        kept.add(best.path)
        if len(same) > 1:
            content = content_of(best.record)
            differing += [(x.path, best.path) for x in same if content_of(x.record) != content]
    if differing:
        duplicates = counted(len(differing), "duplicate result")
        progress.say(f"left out {duplicates}; -v says which")
        for path, best_path in differing:
            progress.detail(f"left out {path}: {best_path} has the same key and other content")
    return {each.path: each.record for each in found if each.path in kept}


class _Found(NamedTuple):
    """A record and its rank: whether it is published, then the place of its folder."""

    rank: tuple[int, int]
    path: Path
    record: Record


def _all(folders: tuple[Path, ...], find: Callable[[Path], dict[Path, Record]]) -> Iterator[_Found]:
    seen: set[Path] = set()
    for place, folder in enumerate(folders):
        for path, record in find(folder).items():
            resolved = path.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield _Found((is_published(resolved), place), path, record)


def _fullness(found: _Found) -> tuple[int, int, bool]:
    # Scores can be compared with others only if their predictions are there.
    return *fullness(found.record.extent), is_complete(found.path, found.record)
