"""Values of declared types as flat arrays, in a file of Arrow.

Type hints say how a value is stored, so a new field of a dataclass needs no code here:

- ``str``: each text once, and for each value the number of its text;
- ``int``, ``float``, ``bool``: an array;
- ``tuple[X, ...]``: lengths, and a column of all X, one tuple after the other;
- ``tuple[X, Y]``: a column of X and one of Y;
- ``Mapping[str, X]``: each mapping once: its length, a column of all keys and one of all X;
- ``X | Y``: for each value which of both it is, a column of X and one of Y;
- a dataclass: a column for each field.

Values come back with equal types and an equal `repr`. So one of another type than declared, such as
a list for a tuple or a number of numpy, is refused.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import accumulate, chain, count, pairwise, repeat
from operator import attrgetter, itemgetter
from pathlib import Path
from sys import intern
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from probes.common.files import published
from probes.data.sentence import FrozenDict

Arrays = dict[str, NDArray[Any]]
"""Arrays by name, such as ``.splits.entries[].words[]``."""

_DIGITS = 64
"""Length of a SHA-256 in hexadecimal."""


class OtherTypeError(TypeError):
    """A value is of another type than declared, or a number has more than 64 bits."""


class _Column(Protocol):
    """Stores values of one type in arrays, whose names begin with that of the column."""

    def put(self, values: Sequence[Any], name: str, arrays: Arrays) -> None:
        """Store values."""

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        """The values that were stored."""


def _require_types(types: Iterable[type], values: Iterable[Any]) -> None:
    if others := set(map(type, values)).difference(types):
        raise OtherTypeError(f"{others.pop().__name__} where another type is declared")


def _narrow(numbers: Iterable[int]) -> NDArray[Any]:
    """Integers in the narrowest type."""
    try:
        wide = np.fromiter(numbers, np.int64)
    except OverflowError as error:
        raise OtherTypeError(str(error)) from error
    for dtype in (np.int8, np.int16, np.int32):
        narrow = wide.astype(dtype)
        if np.array_equal(narrow, wide):
            return narrow
    return wide


def _slices(joined: Any, lengths: NDArray[Any]) -> list[Any]:
    """The successive parts of a text or a tuple that have these lengths."""
    return [joined[a:b] for a, b in pairwise(accumulate(lengths.tolist(), initial=0))]


@dataclass(frozen=True)
class _Numbers:
    kind: type[int | float | bool]

    def put(self, values: Sequence[Any], name: str, arrays: Arrays) -> None:
        _require_types([self.kind], values)
        arrays[name] = np.array(values, float) if self.kind is float else _narrow(values)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        return list(arrays[name].astype(self.kind).tolist())


@dataclass(frozen=True)
class _Texts:
    def put(self, values: Sequence[str], name: str, arrays: Arrays) -> None:
        _require_types([str], values)
        numbers = dict(zip(dict.fromkeys(values), count(), strict=False))
        arrays[name] = _narrow(map(numbers.__getitem__, values))
        arrays[f"{name}.lengths"] = _narrow(map(len, numbers))
        # JSON may have half of a surrogate pair, which is not valid in UTF-8.
        arrays[f"{name}.utf8"] = np.frombuffer(
            "".join(numbers).encode("utf-8", "surrogatepass"), np.uint8
        )

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        joined = arrays[f"{name}.utf8"].tobytes().decode("utf-8", "surrogatepass")
        texts = _slices(joined, arrays[f"{name}.lengths"])
        if len(texts) < len(arrays[name]):  # words and tags, which readers intern
            texts = list(map(intern, texts))
        return list(map(texts.__getitem__, arrays[name].tolist()))


@dataclass(frozen=True)
class _Tuples:
    """Tuples of any length."""

    entries: _Column

    def put(self, values: Sequence[tuple[Any, ...]], name: str, arrays: Arrays) -> None:
        _require_types([tuple], values)
        arrays[f"{name}.lengths"] = _narrow(map(len, values))
        self.entries.put(list(chain.from_iterable(values)), f"{name}[]", arrays)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        return _slices(tuple(self.entries.get(f"{name}[]", arrays)), arrays[f"{name}.lengths"])


@dataclass(frozen=True)
class _FixedTuples:
    """Tuples of one length, with a column for each position."""

    parts: tuple[_Column, ...]

    def put(self, values: Sequence[tuple[Any, ...]], name: str, arrays: Arrays) -> None:
        _require_types([tuple], values)
        if set(map(len, values)) - {len(self.parts)}:
            raise OtherTypeError(f"a tuple without {len(self.parts)} entries")
        for i, column in enumerate(self.parts):
            column.put(list(map(itemgetter(i), values)), f"{name}.{i}", arrays)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        columns = (column.get(f"{name}.{i}", arrays) for i, column in enumerate(self.parts))
        return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class _Mappings:
    """Mappings; one that many words share stays one object, another that is equal does not."""

    keys: _Column
    entries: _Column

    def put(self, values: Sequence[Mapping[str, Any]], name: str, arrays: Arrays) -> None:
        _require_types([dict, FrozenDict], values)
        ids = list(map(id, values))
        objects = dict(zip(ids, values, strict=True))
        numbers = dict(zip(objects, count(), strict=False))
        arrays[name] = _narrow(map(numbers.__getitem__, ids))
        arrays[f"{name}.frozen"] = _narrow(type(x) is FrozenDict for x in objects.values())
        arrays[f"{name}.lengths"] = _narrow(map(len, objects.values()))
        self.keys.put(list(chain.from_iterable(objects.values())), f"{name}.keys", arrays)
        entries = list(chain.from_iterable(x.values() for x in objects.values()))
        self.entries.put(entries, f"{name}.entries", arrays)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        lengths = arrays[f"{name}.lengths"]
        keys = _slices(self.keys.get(f"{name}.keys", arrays), lengths)
        entries = _slices(self.entries.get(f"{name}.entries", arrays), lengths)
        kinds = ((dict, FrozenDict)[i] for i in arrays[f"{name}.frozen"].tolist())
        objects = [x(zip(y, z, strict=True)) for x, y, z in zip(kinds, keys, entries, strict=True)]
        return list(map(objects.__getitem__, arrays[name].tolist()))


@dataclass(frozen=True)
class _Unions:
    """Values of several types, with a column for each but None."""

    columns: Mapping[type, _Column | None]

    def put(self, values: Sequence[Any], name: str, arrays: Arrays) -> None:
        _require_types(self.columns, values)
        numbers = dict(zip(self.columns, count(), strict=False))
        arrays[name] = _narrow(map(numbers.__getitem__, map(type, values)))
        for kind, column in self.columns.items():
            if column:
                own = [value for value in values if type(value) is kind]
                column.put(own, f"{name}.{kind.__name__}", arrays)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        by_kind = [
            iter(column.get(f"{name}.{kind.__name__}", arrays)) if column else repeat(None)
            for kind, column in self.columns.items()
        ]
        return [next(by_kind[i]) for i in arrays[name].tolist()]


@dataclass(frozen=True)
class _Objects:
    """Objects of a dataclass, with a column for each field: of one value if all have the same."""

    kind: type
    columns: Mapping[str, _Column]

    def put(self, values: Sequence[Any], name: str, arrays: Arrays) -> None:
        _require_types([self.kind], values)
        arrays[f"{name}.n"] = _narrow([len(values)])
        for field, column in self.columns.items():
            entries = list(map(attrgetter(field), values))
            if all(entry is entries[0] for entry in entries):
                entries = entries[:1]
            column.put(entries, f"{name}.{field}", arrays)

    def get(self, name: str, arrays: Arrays) -> list[Any]:
        # `__init__` takes twice as long, and has seen these values before.
        objects: list[Any] = list(
            map(object.__new__, repeat(self.kind, int(arrays[f"{name}.n"][0])))
        )
        for field, column in self.columns.items():
            entries = column.get(f"{name}.{field}", arrays)
            of_all = repeat(entries[0]) if len(entries) == 1 else entries
            deque(map(object.__setattr__, objects, repeat(field), of_all), maxlen=0)
        return objects


@cache
def _column_of(hint: Any) -> _Column:
    """The column of values that a type hint describes."""
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return _Objects(hint, {x.name: _column_of(hints[x.name]) for x in fields(hint)})
    if hint is str or origin is Literal:
        return _Texts()
    if hint in (int, float, bool):
        return _Numbers(hint)
    if origin is tuple and ... in parts:
        return _Tuples(_column_of(parts[0]))
    if origin is tuple:
        return _FixedTuples(tuple(map(_column_of, parts)))
    if origin is Mapping:
        return _Mappings(*map(_column_of, parts))
    if origin in (Union, UnionType):
        kinds = {str if get_origin(x) is Literal else get_origin(x) or x: x for x in parts}
        return _Unions({k: None if k is NoneType else _column_of(x) for k, x in kinds.items()})
    raise TypeError(f"no column for {hint}")


def write_columns(path: Path, hint: Any, value: Any, about: Mapping[str, str]) -> None:
    """Write a value to a file, whole or not at all: a table of one row, and its SHA-256 at the end.

    Args:
        hint: type of the value.
        about: metadata of the table.

    Raises:
        OtherTypeError: a part of the value is of another type than its hint.
        DiskError: the file cannot be written.
    """
    arrays: Arrays = {}
    _column_of(hint).put([value], "", arrays)
    table = pa.table(list(map(_as_cell, arrays.values())), list(arrays), metadata=dict(about))
    with published(path) as temporary, temporary.open("w+b") as file:
        with ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.write(digest.encode())


def _as_cell(array: NDArray[Any]) -> pa.LargeListArray:
    """An array as the only cell of a column; `pa.array` would import pandas."""
    values = pa.Array.from_buffers(
        pa.from_numpy_dtype(array.dtype), len(array), [None, pa.py_buffer(array)]
    )
    offsets = pa.py_buffer(np.array([0, len(array)]))
    kind = pa.large_list(values.type)
    return pa.LargeListArray.from_buffers(kind, 1, [None, offsets], children=[values])


def read_columns(path: Path, hint: Any, about: Mapping[str, str]) -> Any:
    """The value in a file of `write_columns`.

    Raises:
        ValueError: the content has another checksum, or other metadata than `about`.
        OSError: the file cannot be read.
    """
    table = _read_table(path)
    if _metadata(table) != about:
        raise ValueError("it was written for other files or by another version")
    cells = zip(table.column_names, table.columns, strict=True)
    # `to_numpy` would import pandas.
    arrays = {x: np.from_dlpack(column.chunk(0).values) for x, column in cells}
    (value,) = _column_of(hint).get("", arrays)
    return value


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata in a file of `write_columns`.

    Raises:
        ValueError: the content has another checksum.
        OSError: the file cannot be read.
    """
    return _metadata(_read_table(path))


def _metadata(table: pa.Table) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}


def _read_table(path: Path) -> pa.Table:
    """The table in a file. (It is not mapped: a file that others truncate would kill the run.)"""
    content = memoryview(path.read_bytes())
    table_bytes, digest = content[:-_DIGITS], content[-_DIGITS:]
    if hashlib.sha256(table_bytes).hexdigest().encode() != digest:
        raise ValueError("its checksum is wrong")
    table = ipc.open_file(pa.py_buffer(table_bytes)).read_all()
    table.validate()
    return table
