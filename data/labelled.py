"""Labelled data that users bring, through `datasets`: the hub, JSON Lines, CSV, Parquet.

A row is a sentence: `tokens`, and label columns, which hold a label for each token or one for
the sentence. In CSV, where a cell holds one text, tokens and their labels stand with spaces
between them. A column `split` says the split, a column `document` the document.
"""

from __future__ import annotations

import contextlib
import csv
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from common.files import read_text, sha256
from common.hub import snapshot
from data.columns import Rows, read_rows, understand
from data.sentence import SPLITS, Corpus
from data.sources import CorpusRequest, Source
from data.splits import canonical_split, complete, require_splits, split_in_name

if TYPE_CHECKING:
    import datasets

_UNNAMED = "all"
_LOADERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
_HUB_WAYS_OUT = "Give --corpus a file of your own (.jsonl, .csv, .parquet)."


def find_table(name: str, paths: list[Path], request: CorpusRequest) -> Source:
    """The user's files, their splits told by their names or by a column `split`.

    Args:
        name: what tables call them.
        paths: files of one kind.

    Raises:
        UserError: a file is damaged, a column is missing, or a split is.
    """
    files: dict[str, tuple[Path, ...]] = {}
    for path in paths:
        _, split = split_in_name(path.stem) or ("", _UNNAMED)
        files[split] = (*files.get(split, ()), path)
    if _UNNAMED in files and len(files) > 1:
        raise UserError(
            f"--corpus {name}: {files[_UNNAMED][0]} does not say its split, though other files "
            "do; name it like my-train.jsonl."
        )
    rows = [
        row
        for split, part in files.items()
        for path in part
        for row in _read_file(path, split, request)
    ]
    identity = {
        f"{split} {i}": sha256(path) for split, part in files.items() for i, path in enumerate(part)
    }
    return _source(name, "", files, identity, rows, request)


def find_dataset(name: str, request: CorpusRequest) -> Source:
    """A dataset on the hub, `name` or `name:configuration`; its code, if any, is never run.

    Raises:
        UserError: it cannot be had, has several configurations, or lacks a column.
    """
    repository, _, configuration = name.partition(":")
    folder, commit = snapshot(
        repository,
        flag=f"--corpus {repository}",
        kind="dataset",
        revision=None,
        offline=request.offline,
        patterns=None,
        ways_out=_HUB_WAYS_OUT,
    )
    from datasets import DatasetDict

    with _loading(f"--corpus {name}") as load:
        found = load(str(folder), configuration or None)
    assert isinstance(found, DatasetDict)
    rows = []
    for split, part in found.items():
        canonical = canonical_split(str(split))
        if canonical is None:
            raise UserError(
                f"--corpus {name}: its split {str(split)!r} is neither train, dev nor test."
            )
        rows.append(_rows(part, canonical, f"{repository} {split}", request))
    return _source(name, commit, {}, {"commit": commit}, rows, request, licence=_licence(found))


def _licence(found: Mapping[Any, datasets.Dataset]) -> str:
    return next((part.info.license for part in found.values() if part.info.license), "")


def _source(
    name: str,
    version: str,
    files: Mapping[str, tuple[Path, ...]],
    identity: Mapping[str, str],
    rows: list[Rows],
    request: CorpusRequest,
    licence: str = "",
) -> Source:
    splits = {split for part in rows for split in part.splits}
    split_by = request.split_by
    if splits == {_UNNAMED} and split_by is None:
        # Nothing claims to be a split, so nothing is taken from one.
        split_by = "document" if all(part.documents for part in rows) else "sentence"
    require_splits(splits, split_by, f"--corpus {name}")
    columns = {column: understand(rows, column) for column in request.task_from}
    return Source(
        name=name,
        version=version,
        licence=licence,
        files=files,
        identity=identity,
        read=partial(_read, rows=rows),
        layers=frozenset(columns),
        own=True,
        columns=columns,
        split_by=None if splits >= set(SPLITS) else split_by,
    )


def _read(source: Source, rows: list[Rows]) -> Corpus:
    parts, notes = read_rows(rows, source.columns)
    splits, cut = complete(parts, source.split_by or "sentence", f"--corpus {source.name}")
    return Corpus(
        source.name,
        source.version,
        source.licence,
        splits,
        {**notes, **cut},
    )


def _read_file(path: Path, split: str, request: CorpusRequest) -> Iterator[Rows]:
    kind = _LOADERS[path.suffix.lower()]
    lines: list[int] = []
    options: dict[str, Any] = {}
    if kind == "json":
        lines = _json_lines(path)
    elif kind == "csv":
        lines = _csv_lines(path)
        # A word such as "NA" or "12" is a word.
        options = {"keep_default_na": False, "converters": {"tokens": str}}
    with _loading(str(path)) as load:
        found = load(kind, data_files={"train": [str(path)]}, keep_in_memory=True, **options)
    yield _rows(found["train"], split, str(path), request, lines)


def _rows(
    part: datasets.Dataset,
    split: str,
    place: str,
    request: CorpusRequest,
    lines: list[int] | None = None,
) -> Rows:
    """The columns that are needed, labels by name.

    Raises:
        UserError: one is missing.
    """
    for column in ("tokens", *request.task_from):
        if column not in part.column_names:
            flag = "tokens" if column == "tokens" else f"--task-from {column}"
            raise UserError(
                f"{place}: no column for {flag}; there is: {', '.join(part.column_names)}."
            )
    wanted = {column: _values(part, column) for column in ("tokens", *request.task_from)}
    own = (
        [canonical_split(str(s)) or str(s) for s in part["split"]]
        if ("split" in part.column_names and split == _UNNAMED)
        else [split] * len(part)
    )
    for row, name in enumerate(own):
        if name not in (*SPLITS, _UNNAMED):
            where = f"line {lines[row]}" if lines else f"row {row + 1}"
            raise UserError(f"{place}, {where}: split {name!r}; give train, dev or test.")
    documents = [str(d) for d in part["document"]] if "document" in part.column_names else []
    return Rows(place, own, wanted, documents, lines or [], spaced=place.endswith(".csv"))


def _values(part: datasets.Dataset, column: str) -> list[Any]:
    """A column's values, class numbers as the names that the dataset gives them."""
    from datasets import ClassLabel, List

    feature, values = part.features[column], list(part[column])
    if isinstance(feature, ClassLabel):
        return [_name(feature, value) for value in values]
    if isinstance(feature, List) and isinstance(feature.feature, ClassLabel):
        label = feature.feature
        return [v if v is None else [_name(label, x) for x in v] for v in values]
    return values


def _name(feature: datasets.ClassLabel, value: int | None) -> str | None:
    """The name of a class; None for -1, which stands for a label that is not given away."""
    return None if value is None or value < 0 else str(feature.int2str(value))


@contextlib.contextmanager
def _loading(place: str) -> Iterator[Any]:
    """`datasets.load_dataset` on a cache of its own, its errors in one line."""
    import datasets
    import pyarrow

    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)
    try:
        # The copies that it makes are not wanted: the text is in memory, the file where it was.
        with tempfile.TemporaryDirectory() as cache:
            yield partial(datasets.load_dataset, cache_dir=cache)
    except UserError:
        raise
    except (
        datasets.exceptions.DatasetsError,
        pyarrow.ArrowException,
        ValueError,
        TypeError,
        KeyError,
        StopIteration,
        OSError,
        RuntimeError,
    ) as error:
        cause = error.__cause__ or error
        why = " ".join(f"{type(cause).__name__}: {cause}".split())[:300]
        raise UserError(f"{place}: cannot be read as a table ({why}); mend the file.") from error


def _json_lines(path: Path) -> list[int]:
    """Line number of each row.

    Raises:
        UserError: a line is not a JSON object.
    """
    numbers = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(
                    f"{path}, line {number}: not JSON ({error}); one object a line is expected."
                ) from error
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number}: no JSON object; one a line is expected.")
            numbers.append(number)
    if not numbers:
        raise UserError(f"{path}: holds no row; is it the right file?")
    return numbers


def _csv_lines(path: Path) -> list[int]:
    """Number of the last line of each row.

    Raises:
        UserError: a row has not as many cells as the header.
    """
    numbers = []
    reader = csv.reader(read_text(path).splitlines(keepends=True), strict=True)
    try:
        header = next(reader, [])
        for row in reader:
            if row and len(row) != len(header):
                raise UserError(
                    f"{path}, line {reader.line_num}: {len(row)} cells where the header has "
                    f"{len(header)}; quote cells that hold commas."
                )
            if row:
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not CSV ({error}).") from error
    if not numbers:
        raise UserError(f"{path}: holds no row; is it the right file?")
    if len(set(header)) < len(header):
        raise UserError(f"{path}, line 1: two columns share a name: {', '.join(header)}.")
    return numbers
