r"""Tables as LaTeX, typeset by `booktabs`: `\usepackage{booktabs}`."""

from __future__ import annotations

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
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex(table: Table) -> str:
    """A floating table with its title and notes as the caption."""
    table = table.filled
    columns = "l" * table.left + "r" * (len(table.heads) - table.left)
    body = [" & ".join(map(_cell, row.cells)) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(_escaped(head.replace("\n", ", ")) for head in table.heads) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{' '.join(map(_escaped, (table.title + '.', *table.notes)))}}}",
            r"\end{table}",
            "",
        ]
    )


def _cell(cell: Cell) -> str:
    text = _escaped(cell_text(cell))
    return rf"\textbf{{{text}}}" if cell.best else text


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)
