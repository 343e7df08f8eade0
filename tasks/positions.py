"""Positions: where the vector of a text is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from probes.common.registry import nearest

Named = Literal["mean", "max", "first", "last", "user", "assistant", "all"]
"""Positions that need no number and no pattern."""

_AT_COMMAS = re.compile(r'(?:[^,"]|"(?:\\.|[^"\\])*")+')
REMEDY = (
    'give mean, max, first, last, last:N, after:"string", match:"regex", all or all:last:N; for '
    "chats also user, assistant, all:user or all:assistant"
)


@dataclass(frozen=True, slots=True)
class Position:
    """Rule that picks the vector that stands for a text, or a bag of vectors.

    Attributes:
        kind: "mean" and "max" are over all pieces of the text, special tokens left aside; "first"
            is the first token that the model reads, the special one if there is one; "last" is the
            text's last piece, with a number the last but so many; "after" is the piece of the first
            letter after the last occurrence of a string; "match" the piece of the last letter of
            the last match of a regular expression, or of its first group (white space counts only
            where nothing else matched); "user" and "assistant"
            the last piece of the content of the last message of this role. "all" is a bag: every
            piece that "mean" averages, those of the content of that message, or the last so many.
        of: the number, the string or the regular expression; for "all" a role or "last:N"; empty
            for others.
    """

    kind: str
    of: str = ""

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position of a name, whose argument may stand in quotes.

        Raises:
            ValueError: there is no such position.
        """
        kind, _, of = text.strip().partition(":")
        if len(of) > 1 and of[0] == of[-1] == '"':
            of = of[1:-1]
        if kind == "last" and re.fullmatch("[1-9][0-9]{0,5}", of):
            return cls(kind, of if of != "1" else "")
        if kind == "all" and re.fullmatch("user|assistant|last:[1-9][0-9]{0,5}", of):
            return cls(kind, of)
        if kind in ("after", "match") and of.strip():
            if kind == "match":
                try:
                    re.compile(of)
                except re.error as error:
                    raise ValueError(f"{of} is no regular expression ({error})") from error
            return cls(kind, of)
        if kind in get_args(Named) and not of and ":" not in text:
            return cls(kind)
        near = nearest(text.strip(), [*get_args(Named), "all:user", "all:assistant"])
        hint = f" (did you mean {near}?)" if near else ""
        raise ValueError(f"{text}: no such position{hint}; {REMEDY}")

    @property
    def name(self) -> str:
        """The name in tables: ``last:2``, ``after:"Answer:"``."""
        if self.kind in ("after", "match"):
            return f'{self.kind}:"{self.of}"'
        return f"{self.kind}:{self.of}" if self.of else self.kind

    @property
    def is_bag(self) -> bool:
        """Whether all tokens of a stretch are read, however many, and not one vector of it."""
        return self.kind == "all"

    @property
    def is_token_of_text(self) -> bool:
        """Whether one token of the text itself is read, not a special one before it."""
        return self.kind not in ("mean", "max", "first", "all")

    @property
    def role(self) -> str:
        """The role of the message whose content is read; empty for other positions."""
        name = self.name.removeprefix("all:")
        return name if name in ("user", "assistant") else ""

    @property
    def from_end(self) -> int:
        """The number of pieces from the first that is read to the end; 0 for other kinds."""
        match = re.fullmatch("(?:all:)?last(?::([0-9]+))?", self.name)
        return int(match[1] or 1) if match else 0

    def span(self, text: str) -> tuple[int, int] | None:
        """The letters of which "after" reads the first and "match" the last; None for none."""
        if self.kind == "after":
            start = text.rfind(self.of)
            text_after = text[start + len(self.of) :].lstrip()
            return (len(text) - len(text_after), len(text)) if start >= 0 and text_after else None
        spans = [match.span(bool(match.re.groups)) for match in re.finditer(self.of, text)]
        start, end = next((span for span in reversed(spans) if span[0] < span[1]), (0, 0))
        return (start, start + (len(text[start:end].rstrip()) or end - start)) if end else None


def positions_in(text: str) -> tuple[str, ...]:
    """The names in a list with commas; those in quotes divide nothing."""
    return tuple(name for part in _AT_COMMAS.findall(text) if (name := part.strip()))
