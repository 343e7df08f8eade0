"""Lines of a TOML file, which `tomllib` tells of syntax errors alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.files import read_text

Place = tuple[str | int, ...]
"""Keys and, in arrays, indices that lead to a value: ``("runs", 0, "tasks")``."""


class TomlFile:
    """A TOML file and where its values stand.

    Attributes:
        values: its content.

    Raises:
        UserError: it cannot be read, or is not TOML.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = [f"{line}\n" for line in read_text(path).split("\n")]
        try:
            self.values: dict[str, Any] = tomllib.loads("".join(self._lines))
        except tomllib.TOMLDecodeError as error:
            what, _, where = str(error).partition(" (at ")
            line = re.match(r"line (\d+)", where)
            at = f", line {line[1]}" if line else ", at its end"
            raise UserError(f"{path}{at}: not TOML ({what}); correct it.") from error

    def error(self, place: Place, why: str) -> UserError:
        """An error that names file and line of a value, or of what is nearest above it."""
        return UserError(f"{self._path}, line {self.line(place)}: {why}")

    def line(self, place: Place) -> int:
        """The line, from 1, of a value, or of the nearest of the places above it.

        A statement is whatever makes the text before its end TOML that the text before its
        beginning is not; of an array over several lines, that of a text in it is found by the text.
        """
        found: dict[Place, tuple[int, int]] = {}
        begin = 0
        for end in range(1, len(self._lines) + 1):
            try:
                parsed = tomllib.loads("".join(self._lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            for each, _ in _values(parsed):
                found.setdefault(each, (begin, end))
            begin = end
        while place and place not in found:
            place = place[:-1]
        begin, end = found.get(place, (0, 1))
        value = dict(_values(self.values)).get(place)
        for number in range(begin, end):
            if f'"{value}"' in self._lines[number] or f"'{value}'" in self._lines[number]:
                return number + 1
        return begin + 1


def _values(parsed: object, above: Place = ()) -> Iterator[tuple[Place, object]]:
    """All values, also those in others, each with its place."""
    yield above, parsed
    items: Iterator[tuple[str | int, object]] = iter(())
    if isinstance(parsed, dict):
        items = iter(parsed.items())
    elif isinstance(parsed, list):
        items = iter(enumerate(parsed))
    for key, value in items:
        yield from _values(value, (*above, key))
