"""How much room words need, where nothing can measure them."""

from __future__ import annotations

import unicodedata

_NARROW = frozenset("fijlrtI.,:;!'|()[]{}-/\\ \"`")
_BROAD = frozenset("mwMWQ@%—…&")


def text_width(text: str, size: float) -> float:
    """The width of a line of text; rather too much than too little.

    Args:
        size: height of the letters; the width has its unit.
    """
    return size * sum(map(_letter, text))


def _letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.72 if letter.isupper() or not letter.isascii() else 0.58


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of such a width; a word that is longer is broken."""
    lines = [""]
    for word in text.split():
        if lines[-1]:
            if text_width(f"{lines[-1]} {word}", size) <= width:
                lines[-1] += f" {word}"
                continue
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, size) > width:
                lines.append("")
            lines[-1] += letter
    return lines
