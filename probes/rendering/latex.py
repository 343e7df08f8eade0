r"""Tables as LaTeX, typeset by `booktabs`: `\usepackage{booktabs}`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from probes.records.table import BARS, Cell, Table, cell_text

_SIGNS = {
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
    "★": r"$\star$",
    "☆": r"$\circ$",  # an asterisk would be read as "significant"
    "†": r"$\dagger$",
    "▽": r"$\bigtriangledown$",
    "≈": r"$\approx$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex(table: Table) -> str:
    """A floating table with its title and notes as the caption."""
    table = _without_curves(table.filled)
    parts = (f"{table.title}.", *table.notes, *(f"{line}." for line in table.legend))
    caption = " ".join(map(_escaped, parts))
    if any(cell.best for row in table.rows for cell in row.cells):
        caption = caption.replace(_SIGNS["★"], r"\textbf{bold}")
    columns = "l" * table.left + "r" * (len(table.heads) - table.left)
    names, _, qualified = zip(*(head.partition("\n") for head in table.heads), strict=True)
    body: list[str] = []
    for row in table.rows:
        body.append(_line(map(_cell, row.cells)))
        body += [r"\midrule"] * (row.ends_section and row is not table.rows[-1])
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            *(_line(map(_escaped, heads)) for heads in (names, qualified) if any(heads)),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
            "",
        ]
    )


def _without_curves(table: Table) -> Table:
    """The table without the columns whose bars LaTeX's fonts lack."""
    drawn = {
        i for row in table.rows for i, cell in enumerate(row.cells) if set(BARS) & {*cell.text}
    }
    kept = [i for i in range(len(table.heads)) if i not in drawn]
    return replace(table.with_columns(kept), left=sum(i < table.left for i in kept))


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = _escaped(cell_text(cell))
    text = rf"\textbf{{{text}}}" if cell.best else text
    text += _escaped(cell.marks.replace("★", ""))
    return f"{text} ({_escaped(cell.note)})" if cell.note else text


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)
