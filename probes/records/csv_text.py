"""Text in CSV files that pandas, R and spreadsheets read as the text that it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache

ESCAPE = "'"
"""Stands before a text that a reader could take for something else.

The apostrophe is what OWASP advises against formulas ("CSV Injection",
owasp.org/www-community/attacks/CSV_Injection). A text that begins with one gets another, so that
taking the first away always gives the text back.
"""

_FORMULA = "=+-@＝＋－＠\t\r\n"

_NUMBER = re.compile(r"\s*(\d[\d,]*\.?\d*|\.\d+|0x[0-9a-f]+)(e[+-]?\d+)?\s*", re.IGNORECASE)

_WORDS = frozenset(
    {"na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none", "nat", "inf", "infinity"}
    | {"true", "false", "t", "f"}
)
"""What pandas or R read as a missing value, a truth value or a number."""


def escaped(text: str) -> str:
    """A text as it stands in the file; the empty one stands for a missing value."""
    ambiguous = (
        text.startswith((*_FORMULA, ESCAPE))
        or _NUMBER.fullmatch(text)
        or text.strip().lower() in _WORDS
    )
    return ESCAPE + text if ambiguous else text


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    return text.removeprefix(ESCAPE)


def csv_line(values: Iterable[object]) -> str:
    """One line: texts quoted, numbers as they are, nothing for what is missing.

    Quoted, a text stays in its cell also where semicolons separate cells.
    """
    return ",".join(map(_cell, values)) + "\n"


@lru_cache(maxsize=1 << 16)
def _quoted(text: str) -> str:
    return '"' + escaped(text).replace('"', '""') + '"'


def _cell(value: object) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            # As R writes it; pandas and spreadsheets read it too.
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return "" if math.isnan(value) else f"{value:.6g}"
        case _:
            return _quoted(str(value))
