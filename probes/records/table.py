"""Small tables of text, for the terminal, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "→": r"$\to$",
    "−": r"$-$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        left: how many columns, from the first on, hold words and not numbers.
        notes: what stands below it.
        faint: numbers of rows that are beside the point.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    notes: tuple[str, ...] = ()
    faint: frozenset[int] = frozenset()

    def terminal(self) -> Table:
        """As rich prints it."""
        table = Table(
            title=Text(self.title, style="bold"),
            title_justify="left",
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
        )
        for i, head in enumerate(self.heads):
            if i < self.left:
                table.add_column(Text(head), overflow="fold")
            else:
                table.add_column(Text(head), justify="right")
        for i, row in enumerate(self.rows):
            table.add_row(*map(Text, row), style="dim" if i in self.faint else "")
        return table

    def markdown(self) -> str:
        """As a GitHub table."""
        marks = ["---" if i < self.left else "---:" for i in range(len(self.heads))]
        lines = [f"### {escaped(self.title)}", "", _line(map(escaped, self.heads))]
        lines += [_line(marks), *(_line(map(escaped, row)) for row in self.rows), ""]
        return "\n".join(lines + [f"{escaped(note)}\n" for note in self.notes])

    def latex(self) -> str:
        r"""As `booktabs` typesets it: `\usepackage{booktabs}`."""
        columns = "l" * self.left + "r" * (len(self.heads) - self.left)
        body = [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                " & ".join(map(_latex, self.heads)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                rf"\caption{{{' '.join(map(_latex, (self.title + '.', *self.notes)))}}}",
                r"\end{table}",
                "",
            ]
        )


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", text)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
