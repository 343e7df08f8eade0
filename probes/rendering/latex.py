r"""Tables as LaTeX, typeset by `booktabs`: `\usepackage{booktabs}`."""

from __future__ import annotations

from collections.abc import Iterable

from probes.records.table import Cell, Table, cell_text

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
    "★": r"\textbf{bold}",  # in a legend: the best layer is set in bold instead
    "☆": r"$\ast$",
    "†": r"$\dagger$",
    "▽": r"$\bigtriangledown$",
    "≈": r"$\approx$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex(table: Table) -> str:
    """A floating table with its title and notes as the caption."""
    table = table.filled
    caption = (f"{table.title}.", *table.notes, *(f"{line}." for line in table.legend))
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
            rf"\caption{{{' '.join(map(_escaped, caption))}}}",
            r"\end{table}",
            "",
        ]
    )


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = _escaped(cell_text(cell))
    text = rf"\textbf{{{text}}}" if cell.best else text
    text += _escaped(cell.marks.replace("★", ""))
    return f"{text} ({_escaped(cell.note)})" if cell.note else text


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)
