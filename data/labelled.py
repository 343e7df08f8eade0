"""The user's own labelled data: JSON Lines, CSV, Parquet, or a dataset on the hub.

A row is a sentence: a column `tokens`, and label columns with one label per token or one for the
sentence. In CSV, where a cell is a single string, tokens and their labels are separated by spaces.
Or a row is a text as it was written, with labels of the whole. Optional columns are `split`,
`document` and, of texts, `id`.

Parquet files and hub datasets are read by `datasets`, which knows the names of classes. JSON and
CSV are read without type inference, which would turn the word "2020-01-01" into a date and merge
the classes "01" and "1".
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes.common.errors import UserError
from probes.common.files import read_text, sha256
from probes.common.hub import snapshot
from probes.common.terminal import progress
from probes.data.chats import chat_as_text, has_further_keys
from probes.data.chunk_schemes import Scheme
from probes.data.label_columns import (
    LabelledRow,
    LabelledRows,
    classes_of_floats,
    document_of,
    infer_column,
    read_rows,
    require_shared_labels,
    words_of,
)
from probes.data.sentence import SPLITS, Corpus
from probes.data.sources import CorpusRequest, Source
from probes.data.splits import (
    UNNAMED,
    canonical_split,
    cut_missing_splits,
    files_by_split,
    require_splits,
)

if TYPE_CHECKING:
    import datasets

ReadTable = tuple[dict[str, list[Any]], list[int]]
"""Columns by name, and the line number of each row (empty if rows are not lines)."""

_CSV_RULES = "2"
"""Version of the reader of CSV; raise it if the same cells would be read differently."""


def find_table(
    name: str,
    paths: list[Path],
    request: CorpusRequest,
    warn: Callable[[str], None] = progress.warn,
) -> Source:
    """The user's files, all of one kind; splits come from file names or a column `split`.

    Args:
        warn: called with remarks on the rows.
    """
    files = files_by_split(name, paths)
    rows, identity = [], {}
    is_csv = paths[0].suffix.lower() == ".csv"
    for split, part in files.items():
        for i, path in enumerate(part):
            if request.field and path.suffix.lower() not in (".json", ".jsonl"):
                raise UserError(f"--field {request.field}: {path} is not JSON; leave the flag out.")
            table, lines = read_table(path, request.field)
            rows += _labelled_rows(table, split, str(path), request, lines, is_csv)
            identity[f"{split} {i}"] = sha256(path)
    if is_csv:
        identity["rules for CSV"] = _CSV_RULES
    labelled = _table_of_rows(rows, is_csv, request)
    return _source(name, identity, labelled, request, warn, files=files)


def find_columns(
    name: str, tables: Mapping[str, Mapping[str, list[Any]]], request: CorpusRequest
) -> Source:
    """Tables in memory.

    Args:
        tables: columns by split; splits of a table under `UNNAMED` come from a column `split`.

    Raises:
        UserError: one has no row, no label column is named, or a column or a split is missing.
    """
    for columns in tables.values():
        if not request.labelled or not any(columns.values()):
            raise UserError(
                f"corpus=…: a table of the columns {', '.join(columns) or 'none'}; give one with "
                "rows, and name its columns: text= and label= for texts, task_from= for tokens."
            )
    column_names = (request.texts or "tokens", *request.labelled)
    tables = {
        split: {
            x: [list(y) if isinstance(y, tuple) and x in column_names else y for y in column]
            for x, column in columns.items()
        }
        for split, columns in tables.items()
    }
    rows = _rows_of_splits(tables, f"the table {name}", request)
    values = [{x: columns.get(x) for x in column_names} for columns in tables.values()]
    content = repr([([row.split for row in rows], [row.document for row in rows], *values)])
    identity = {"table": hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()}
    limits: dict[str, Any] = {"limit": request.limit, "drop_overlap": request.drop_overlap}
    return _source(name, identity, _table_of_rows(rows, False, request), request, **limits)


def find_dataset(name: str, request: CorpusRequest) -> Source:
    """A dataset on the hub, `name` or `name:configuration`; code in it is never run."""
    repository, _, configuration = name.partition(":")
    folder, _ = snapshot(
        repository,
        flag=f"--corpus {repository}",
        kind="dataset",
        revision=None,
        offline=request.offline,
        patterns=None,
        remedy="Give --corpus a file of your own (.jsonl, .csv, .parquet).",
    )
    commit, licence = folder.name, _licence(folder, f"--corpus {name}")
    with _loading(f"--corpus {name}") as cache:
        from datasets import load_dataset_builder

        builder = load_dataset_builder(str(folder), configuration or None, cache_dir=cache)
        _require_inside(builder.config.data_files or {}, folder, f"--corpus {name}")
        builder.download_and_prepare()
        parts = builder.as_dataset(in_memory=True).items()
        rows = _rows_of_splits({str(x): part for x, part in parts}, repository, request)
    labelled = _table_of_rows(rows, False, request)
    return _source(name, {"commit": commit}, labelled, request, version=commit, licence=licence)


def _licence(folder: Path, flag: str) -> str:
    """The licence stated in a dataset's README; empty if none."""
    readme = folder / "README.md"
    if not readme.is_file():
        return ""
    from huggingface_hub import DatasetCard

    try:
        card: dict[str, Any] = vars(DatasetCard(read_text(readme)).data)
    except (ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{flag}: its README cannot be parsed ({reason}). Give a file of your own."
        ) from error
    if "://" in json.dumps(card.get("configs", ""), default=str):
        raise UserError(
            f"{flag}: its data are at another address, which is not followed; download "
            "them and give the file."
        )
    licence = card.get("license") or ""
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)


def _require_inside(files: Mapping[Any, Any], folder: Path, flag: str) -> None:
    """Refuse a dataset that refers to files outside its own folder in the hub cache."""
    repository = folder.resolve().parent.parent
    for path in (Path(str(file)) for part in files.values() for file in part):
        if not path.resolve().is_relative_to(repository):
            raise UserError(
                f"{flag}: refers to the file {path} outside the dataset, which is not read."
            )


def _source(
    name: str,
    identity: Mapping[str, str],
    table: LabelledRows,
    request: CorpusRequest,
    warn: Callable[[str], None] = progress.warn,
    **fields: Any,
) -> Source:
    """The rows as a corpus; `fields` are further ones of `Source`."""
    # Rare ways of reading are noted only where they occur, so that other digests stay.
    documents = {row.document for row in table.rows}
    # pandas writes 1.0 for the group 1 where groups of other rows of a file are missing.
    if floats := {x for x in documents if re.fullmatch(r"-?\d+\.0", x) and x[:-2] in documents}:
        names = {x: x[:-2] if x in floats else x for x in documents}
        table = replace(table, rows=[replace(x, document=names[x.document]) for x in table.rows])
        identity = {**identity, "equal documents": "one"}
    splits = {row.split for row in table.rows}
    split_by = request.split_by
    if splits == {UNNAMED} and split_by is None:
        # No file or row names a split, so it is safe to cut the three splits.
        has_groups = request.group or all(row.document for row in table.rows)
        split_by = "document" if has_groups else "sentence"
    require_splits(splits, split_by, f"--corpus {name}")
    # A corpus of negatives has no labels, and a rule of ours for what has no splits.
    if request.split_by and request.labelled and splits >= set(SPLITS):
        warn(f"--split-by {request.split_by}: has no effect, since --corpus {name} has all splits")
    # The same files may be read in other ways.
    settings = {
        flag: getattr(request, flag)
        for flag in ("text", "messages", "special_tokens", "group", "field")
    }
    identity = {**identity, **{f"--{flag}": value for flag, value in settings.items() if value}}
    for column in request.labelled:
        if classes := classes_of_floats(table, column):
            table, identity[f"whole floats of {column}"] = classes, "classes"
            warn(
                f"--corpus {name}: labels of {column} are whole floats and some are missing, as "
                "pandas writes classes: classification; for amounts, leave out rows without a label"
            )
    chats = [row.words[0] for row in table.rows] if request.messages else []
    if any(map(has_further_keys, chats)):
        identity["chats"] = hashlib.sha256("".join(chats).encode()).hexdigest()
    columns = {column: infer_column(table, column, warn) for column in request.labelled}
    for column, label_column in columns.items():
        if label_column.stripped:
            identity[f"labels of {column}"] = "without spaces at their edges"
        if label_column.scheme == Scheme("IOB"):
            identity[f"tags of {column}"] = str(label_column.scheme)
    return Source(
        name,
        **{"version": "", "licence": "", "files": {}, **fields},
        identity=identity,
        read=partial(_read_labelled, table=table),
        layers=frozenset(column.layer for column in columns.values()),
        from_user=True,
        columns=columns,
        group=request.group,
        split_by=None if splits >= set(SPLITS) else split_by,
    )


def _table_of_rows(
    rows: list[LabelledRow], space_separated: bool, request: CorpusRequest
) -> LabelledRows:
    chat = bool(request.messages)
    return LabelledRows(rows, space_separated, request.texts, chat, request.special_tokens)


def _read_labelled(source: Source, table: LabelledRows) -> Corpus:
    parts, notes = read_rows(table, source.columns)
    if not source.columns:
        all_rows = [sentence for part in parts.values() for sentence in part]
        return source.corpus({"train": all_rows, "dev": (), "test": ()}, notes)
    flag = f"--corpus {source.name}"
    splits, cut = cut_missing_splits(parts, source.split_by or "sentence", flag, source.group)
    if table.text:
        require_shared_labels(splits, source.columns.values(), flag)
        train_documents = {text.document for text in splits["train"]} - {""}
        for split in ("dev", "test"):
            if shared := sum(text.document in train_documents for text in splits[split]):
                cut[f"{split} texts of a group that also occurs in train"] = shared
    return source.corpus(splits, {**notes, **cut})


def _rows_of_splits(
    tables: Mapping[str, Mapping[str, list[Any]] | datasets.Dataset],
    table_name: str,
    request: CorpusRequest,
) -> list[LabelledRow]:
    """The rows of train, dev and test, or of all under `UNNAMED`; other splits are skipped."""
    rows: list[LabelledRow] = []
    for split, table in tables.items():
        columns = table if isinstance(table, Mapping) else columns_of(table)
        if split == UNNAMED and len(tables) == 1:
            rows += _labelled_rows(columns, split, table_name, request)
        elif canonical := canonical_split(split):
            rows += _labelled_rows(columns, canonical, f"{table_name} {split}", request)
        else:
            progress.say(f"skipped the split {split!r} of {table_name}: not train, dev or test")
    if not rows:
        raise UserError(f"{table_name}: has no train, dev or test split; rename its splits.")
    return rows


def _labelled_rows(
    table: Mapping[str, list[Any]],
    split: str,
    table_name: str,
    request: CorpusRequest,
    lines: Sequence[int] = (),
    space_separated: bool = False,
) -> list[LabelledRow]:
    """The rows of a table, with the columns that are needed."""
    words = request.texts or "tokens"
    flag = "--text" if request.text else "--messages"
    flags = {words: f"{flag} {words}" if request.texts else "tokens"}
    flags |= {column: f"--task-from {column}" for column in request.task_from}
    flags |= {column: f"--label {column}" for column in request.label}
    # Texts without labels are negatives, which need no groups either.
    if request.group and (request.labelled or request.group in table):
        flags[request.group] = f"--group {request.group}"
    require_columns(table, flags, table_name, space_separated)
    splits = [split] * len(table[words])
    if "split" in table and split == UNNAMED:
        splits = [canonical_split(str(s)) or str(s) for s in table["split"]]
    groups = table.get(request.group or "document", [None] * len(splits))
    # Ids of texts are unique, unless they name the groups that rows share.
    ids = table.get("id", ()) if request.texts and request.group != "id" else ()
    # A column `tools` that a flag names holds no descriptions of tools.
    tools = table.get("tools" if "tools" not in flags else "", [None] * len(splits))
    first_use: dict[str, str] = {}
    rows = []
    for i, cell in enumerate(table[words]):
        where = f"line {lines[i]}" if lines else f"row {i + 1}"
        try:
            if splits[i] not in (*SPLITS, UNNAMED):
                raise ValueError(f"unknown split {splits[i]!r}; use train, dev or test.")
            name = document_of(ids[i]) if ids else ""
            if name and first_use.setdefault(name, where) != where:
                raise ValueError(
                    f"the id {name!r:.60} is already used by {first_use[name]}; remove one, or "
                    "rename the column."
                )
            if request.messages:
                tokens = [chat_as_text(words, cell, tools[i])]
            else:
                tokens = words_of(cell, request.text, space_separated)
        except ValueError as error:
            raise UserError(f"{table_name}, {where}: {error}") from error
        labels = {column: table[column][i] for column in request.labelled}
        rows.append(
            LabelledRow(table_name, where, splits[i], document_of(groups[i]), tokens, labels)
        )
    return rows


def require_columns(
    table: Mapping[str, list[Any]], flags: Mapping[str, str], table_name: str, is_csv: bool
) -> None:
    """Check that a table has the keys of `flags` as columns; messages name them by these flags."""
    for column, flag in flags.items():
        if column not in table:
            names = ", ".join(table)
            if {"annotations", "data"} <= table.keys():
                names += " (as Label Studio writes JSON; export JSON-MIN or CSV instead)"
            elif column == "tokens" and "text" in table:
                names += " (for labels of whole texts, give --text text --label COLUMN)"
            elif len(next(iter(table.values()))) == 1 and not is_csv:
                names += " (if the rows lie below one of these keys, give --field KEY)"
            raise UserError(f"{table_name}: no column for {flag}; the columns are {names}.")


def _table_of_json(path: Path, field: str = "") -> ReadTable:
    """Read one object per line, an array in a .json file, or the array below the key `field`."""
    text = read_text(path)
    lines: list[int] = []
    if field or (path.suffix.lower() == ".json" and text.lstrip().startswith("[")):
        rows = _array_below(path, field, _json_content(str(path), text))
    else:
        all_lines = text.split("\n")
        lines = [n for n, line in enumerate(all_lines, start=1) if line.strip()]
        rows = [_json_content(f"{path}, line {n}", all_lines[n - 1]) for n in lines]
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            where = f"line {lines[i]}" if lines else f"element {i + 1}"
            raise UserError(f"{path}, {where}: not a JSON object; write one for each row.")
    if not any(rows):
        raise UserError(f"{path}: contains no row; is it the right file?")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}, lines


def _json_content(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{name}: not JSON ({error}); write one object per line, or give --field KEY if the "
            "rows lie below a key."
        ) from error


def _array_below(path: Path, field: str, content: Any) -> list[Any]:
    """The array below the key `field`."""
    for key in field.split(".") if field else ():
        if not isinstance(content, dict) or key not in content:
            keys = ", ".join(map(str, content))[:200] if isinstance(content, dict) else ""
            raise UserError(
                f"--field {field}: {path} has no key {key!r} there; the keys are {keys or 'none'}."
            )
        content = content[key]
    if not isinstance(content, list):
        raise UserError(f"--field {field}: {path} has no rows there; name the key of an array.")
    return content


def _table_of_csv(path: Path) -> ReadTable:
    """Read all cells as strings; the line number of a row is that of its last line."""
    csv.field_size_limit(1 << 30)  # the default is 128 KiB, less than a long text
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, numbers, last = [], [], 0
    # As R's write.csv2 writes; no CSV, so the reader would miss a closing quote.
    quoted = re.match(r'\s*"[^"]*"[;\t|]', text)
    try:
        header = [quoted[0]] if quoted else next((row for row in reader if row), [])
        if len(header) == 1 and (mark := re.search("[;\t|]", header[0])):
            raise UserError(
                f"{path}, line 1: columns are separated by {mark[0]!r}; write commas (in pandas, "
                f"read_csv(FILE, sep={mark[0]!r}, decimal=',').to_csv(NEW, index=False))."
            )
        if len(set(header)) < len(header):
            raise UserError(f"{path}, line 1: two columns have the same name: {', '.join(header)}.")
        last = reader.line_num
        for row in reader:
            last = reader.line_num
            if row and len(row) != len(header):
                raise UserError(
                    f"{path}, line {reader.line_num}: {len(row)} cells, but the header has "
                    f"{len(header)}; quote cells that contain commas."
                )
            if row:
                rows.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise UserError(
            f"{path}, line {last + 1}: the row starting here is not CSV ({error}); look for an "
            "unclosed quote."
        ) from error
    if not rows:
        raise UserError(f"{path}: contains no row; is it the right file?")
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)), numbers


def _table_of_parquet(path: Path) -> ReadTable:
    with _loading(str(path)), path.open("rb") as file:
        from datasets import Dataset
        from pyarrow.parquet import read_table

        return columns_of(Dataset(read_table(file))), []


def read_table(path: Path, field: str = "") -> ReadTable:
    """Read a file; `field` is the key in JSON below which the rows lie."""
    if path.suffix.lower() in (".json", ".jsonl"):
        return _table_of_json(path, field)
    return _table_of_csv(path) if path.suffix.lower() == ".csv" else _table_of_parquet(path)


def columns_of(part: datasets.Dataset) -> dict[str, list[Any]]:
    """The values of every column, with class numbers replaced by class names."""
    from datasets import ClassLabel

    columns, part = {}, part.with_format(None)
    for name, feature in part.features.items():
        inner = getattr(feature, "feature", None)
        media = [x for x in (feature, inner) if hasattr(x, "decode_example")]
        if any(type(x).__name__ != "Json" for x in media):
            continue  # images or sounds, whose libraries may not be installed
        values = list(part[name])
        if isinstance(feature, ClassLabel):
            values = [_class_name(feature, value) for value in values]
        elif isinstance(inner, ClassLabel):
            values = [v if v is None else [_class_name(inner, x) for x in v] for v in values]
        columns[name] = values
    return columns


def _class_name(feature: datasets.ClassLabel, value: int | None) -> str | None:
    """The name of a class; None for -1, the convention for a withheld label."""
    return None if value is None or value < 0 else str(feature.int2str(value))


@contextlib.contextmanager
def _loading(name: str) -> Iterator[str]:
    """A temporary cache for `datasets`, whose errors become UserErrors.

    The copies that it makes are not needed once the rows are in memory.
    """
    import datasets
    import pyarrow

    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as cache:
            yield cache
    except UserError:
        raise
    except (
        datasets.exceptions.DatasetsError,
        pyarrow.ArrowException,
        ValueError,
        TypeError,
        KeyError,
        StopIteration,
        ImportError,
        OSError,
        RuntimeError,
    ) as error:
        cause = error.__cause__ or error
        reason = " ".join(f"{type(cause).__name__}: {cause}".split())[:300]
        raise UserError(f"{name}: cannot be read as a table ({reason}); fix the file.") from error
