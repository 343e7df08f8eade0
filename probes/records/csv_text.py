"""Lines of CSV files, in which no text is a formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from probes.common.errors import printable

ESCAPE = "'"
"""Precedes a text that a spreadsheet would run as a formula, as OWASP advises ("CSV Injection",
owasp.org/www-community/attacks/CSV_Injection). A text that begins with an apostrophe gets another,
so that removing one always restores the text."""

_FORMULA = "=+-@＝＋－＠\t\r\n"


def escaped(text: str) -> str:
    """A text as it is written to the file."""
    return ESCAPE + text if text.startswith((*_FORMULA, ESCAPE)) else text


def unescaped(text: str) -> str:
    """The text that was given to `escaped`."""
    return text.removeprefix(ESCAPE)


def csv_line(values: Iterable[object]) -> str:
    """One line: texts are quoted, numbers are not, a missing value and an empty text are empty.

    A quoted text stays in its cell even in a spreadsheet that separates cells by semicolons.
    """
    return ",".join(map(_cell, values)) + "\n"


@lru_cache(maxsize=1 << 16)
def _quoted(text: str) -> str:
    return '"' + escaped(printable(text)).replace('"', '""') + '"'


def _cell(value: object) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            # As R writes it; pandas and spreadsheets read it as well.
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return "" if math.isnan(value) else f"{value:.6g}"
        case _:
            return _quoted(str(value))
