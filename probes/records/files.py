"""Results on disk: a JSON file each, and beside it the per-example arrays as an archive."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from probes.common.errors import UserError
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.records.result import SCHEMA_VERSION, Result

PUBLISHED = "published"
"""Folder of the results that ship with the suite, in the one that users write to."""


_UNREADABLE = (
    MemoryError, OSError, ValueError, BadZipFile, EOFError, KeyError, RuntimeError, struct.error,
    zlib.error,
)  # fmt: skip
"""What reading a damaged archive may raise; for an encrypted or unknown kind it is RuntimeError."""

_NAMES = {"predicted", "layers", "gold", "sentence", "punctuation", "unseen"}

Arrays = Mapping[str, NDArray[Any]]
"""Per-example arrays by name: `predicted`, shape (layers, seeds, n); `layers`; of the n examples
`gold`, `sentence` and `punctuation`; and `unseen`, the names of the labels that train lacks. For
multi-label tasks `predicted` has the shape (layers, seeds, n, bytes), and there are `sets`: see
`probes.statistics.gold`."""


class SchemaError(UserError):
    """A result has another schema than this version reads.

    Attributes:
        version: its schema.
    """

    def __init__(self, path: Path, version: object) -> None:
        self.version = version
        super().__init__(
            f"{path}: result schema {version}, this version reads {SCHEMA_VERSION}; "
            "use the suite's version that wrote it, or another --output."
        )


def write_result(path: Path, result: Result, arrays: Arrays) -> None:
    """Write a result and its per-example arrays; each file is written whole or not at all.

    The arrays are written first, so that where the JSON is, they are too.
    """
    with published(path.with_suffix(".npz")) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
    with published(path) as temporary:
        temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")


def read_result(path: Path) -> Result:
    """Read the result at `path`.

    Raises:
        UserError: it cannot be read.
        SchemaError: it has another schema.
    """
    try:
        # Straight from text to records takes a third of the time of going through Python's objects.
        content = path.read_bytes()
        try:
            result = Result.model_validate_json(content)
            version = result.schema_version
        except ValidationError:
            version = json.loads(content)["schema_version"]
            if version == SCHEMA_VERSION:
                raise
        if version != SCHEMA_VERSION:
            raise SchemaError(path, version)
        return result
    except FileNotFoundError as error:
        raise UserError(f"{path}: there is no such file.") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
        first = str(error).split("\n")[0]
        if isinstance(error, ValidationError):
            why = error.errors()[0]
            first = ": ".join((".".join(map(str, why["loc"])), why["msg"])).lstrip(": ")
        raise UserError(
            f"{path}: not a readable result ({first}); if it was one, delete it and run again."
        ) from error


def read_arrays(path: Path) -> Arrays:
    """Read the per-example arrays of the result at `path`.

    Raises:
        UserError: there are none, or they cannot be read.
    """
    beside = path.with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            arrays = dict(stored)
        # A damaged table of contents may name fewer than there are.
        if missing := _NAMES - arrays.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        _require_shapes(arrays)
        return arrays
    except _UNREADABLE as error:
        raise UserError(f"{beside}: not readable ({error}); delete it and run again.") from error


def _require_shapes(arrays: Arrays) -> None:
    """Raise ValueError unless the arrays hold numbers for the same examples."""
    n = arrays["gold"].size
    predicted, layers = arrays["predicted"], arrays["layers"]
    found = {name: arrays[name].shape for name in ("gold", "sentence", "punctuation")}
    wanted = (*layers.shape, *predicted.shape[1:2], n, *predicted.shape[3:])
    if set(found.values()) != {(n,)} or predicted.ndim != 3 + ("sets" in arrays):
        raise ValueError(f"its arrays do not belong together: {found}")
    if predicted.shape != wanted or not predicted.size:
        raise ValueError(f"its predictions have the shape {predicted.shape}, not {wanted}")
    if any(arrays[name].dtype.kind not in "biuf" for name in (*found, "predicted", "layers")):
        raise ValueError("its arrays do not hold numbers")


def read_results(folder: Path) -> list[Result]:
    """All results below `folder`, in the order of their paths; see `find_results`."""
    return list(find_results(folder).values())


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths, in order.

    Published results are found only if `folder` is their folder or one in it. A result that cannot
    be read is named in a message and left out, so that the others can be used. Those of another
    schema are counted in one message for each folder.
    """
    results = {}
    others: Counter[tuple[Path, object]] = Counter()
    with infrequent_garbage_collection():
        for path in sorted(folder.rglob("*-*-????????.json")):
            if is_published(path.relative_to(folder)):
                continue
            try:
                results[path] = read_result(path)
            except SchemaError as error:
                others[path.parent, error.version] += 1
            except UserError as error:
                progress.say(f"left out {error}")
    for (where, version), n in others.items():
        progress.say(
            f"left out {counted(n, 'result')} of schema {version} in {where}; this version reads "
            f"schema {SCHEMA_VERSION}: run the same command again to compute them anew"
        )
    return results


def is_published(path: Path) -> bool:
    """Whether a result's file lies in a folder of published results."""
    # The folders of its model and corpus may have any name.
    return PUBLISHED in path.parts[:-3]


def or_published(*folders: Path) -> str:
    """What an error adds if there are no results: the folder of published ones, if there is one."""
    there = [path for folder in folders if (path := folder / PUBLISHED).is_dir()]
    return f", or name {there[0]}" if there else ""
