"""The result of one fit unit: its schema, its file, and whether it is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from probes.common.collection import seldom_collected
from probes.common.errors import UserError
from probes.common.files import published
from probes.common.terminal import progress
from probes.records.result import SCHEMA_VERSION, Result

PUBLISHED = "published"
"""Folder of the results that ship with the suite, in the one that users write to."""


def write_result(path: Path, result: Result, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a result, and beside it its per-example arrays, each whole or not at all.

    The arrays go first: where the JSON is, they are.
    """
    with published(path.with_suffix(".npz")) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
    with published(path) as temporary:
        temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")


def read_result(path: Path) -> Result:
    """Read a result.

    Raises:
        UserError: it cannot be read, or is of another schema.
    """
    try:
        # Straight from text to records: a third of the time of going through Python's objects.
        content = path.read_bytes()
        try:
            result = Result.model_validate_json(content)
            version = result.schema_version
        except ValidationError:
            version = json.loads(content)["schema_version"]
            if version == SCHEMA_VERSION:
                raise
        if version != SCHEMA_VERSION:
            raise UserError(
                f"{path}: result schema {version}, this version reads {SCHEMA_VERSION}; "
                "use the suite's version that wrote it, or another --output."
            )
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


def read_results(folder: Path) -> list[Result]:
    """All results below `folder`, in the order of their paths; see `find_results`."""
    return list(find_results(folder).values())


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths, in order.

    What is published is found only where `folder` is that folder, or one in it. A result that
    cannot be read is named and left out: it must not take others with it.
    """
    results = {}
    with seldom_collected():
        for path in sorted(folder.rglob("*-*-????????.json")):
            if is_published(path.relative_to(folder)):
                continue
            try:
                results[path] = read_result(path)
            except UserError as error:
                progress.say(f"left out {error}")
    return results


def is_published(path: Path) -> bool:
    """Whether a result's file lies in a folder of published results."""
    # Model and corpus, the folders that it lies in, may be called anything.
    return PUBLISHED in path.parts[:-3]


def or_published(*folders: Path) -> str:
    """What an error adds where there are no results: the folder of published ones, if any."""
    there = [path for folder in folders if (path := folder / PUBLISHED).is_dir()]
    return f", or name {there[0]}" if there else ""
