r"""Tables as LaTeX, typeset by `booktabs`: `\usepackage{booktabs}`.

Half intervals are subscripts and marks superscripts, so that digits align, and five tasks fit one
column of `article` with two. The name of a group of rows has a line to itself. The text is ASCII,
which every engine and encoding reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from textwrap import wrap

from probes.tables.table import BARS, Cell, Table, cell_text

_MATH = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega varsigma Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega "
    # An asterisk for ☆ would be read as "significant".
    "pm cdot to leftarrow times leq geq neq approx surd infty star circ dagger bigtriangledown"
)
_OF_MATH = "αβγδεζηθικλμνξπρστυφχψωςΓΔΘΛΞΠΣΥΦΨΩ±·→←×≤≥≠≈√∞★☆†▽"
_TEXT = (
    "textbackslash textasciitilde textasciicircum textless textgreater textbar "
    "ss ae oe o l i AE OE O L dots S"
)
_OF_TEXT = "\\~^<>|ßæœøłıÆŒØŁ…§"
_SIGNS = {
    **{sign: rf"$\{name}$" for sign, name in zip(_OF_MATH, _MATH.split(), strict=True)},
    **{sign: rf"\{name}{{}}" for sign, name in zip(_OF_TEXT, _TEXT.split(), strict=True)},
    **dict(zip("\n–—‘’“”−", (" ", "--", "---", "`", "'", "``", "''", "$-$"), strict=True)),
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[*"},  # A line break would read them as its option.
}

_OF_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327"
_ACCENTS = dict(zip(_OF_ACCENTS, "`'^~=u.\"rHvdc", strict=True))
_WITH_ACCENTS = re.compile(f".[{_OF_ACCENTS}]*", re.DOTALL)

_OTHER = r"\probesletter"
_OTHER_DEFINED = (
    rf"\providecommand{{{_OTHER}}}[1]"
    r'{\ifdefined\Uchar\Uchar"#1 \else{\scriptsize U+#1}\,\fi}'
)
"""A letter without a command: itself in XeLaTeX and LuaLaTeX, in pdfLaTeX its code."""

_LETTERS = 9
"""Heads and notes in a table with intervals have lines of about this length.

Names of rows do if five tasks stand next to them; with fewer tasks there is room for longer lines.
"""

_SENTENCE = 40
_PARAGRAPH = r"p{.45\linewidth}"
"""Columns of longer texts are paragraphs of this width."""


def latex(table: Table, *, wide: bool = False) -> str:
    """A floating table with its title and notes as the caption, and a label made of the title.

    Args:
        wide: over both columns of a page.
    """
    table = _without_curves(table.filled)
    # A row whose first cell is empty belongs to the last group that was named.
    groups = [row.cells[0] for row in table.rows]
    if grouped := table.left > 1 and not all(cell.text for cell in groups):
        table = replace(table.with_columns(range(1, len(table.heads))), left=table.left - 1)
    parts = (f"{table.title}.", *table.notes, *(f"{line}." for line in table.legend))
    caption = " ".join(map(_escaped, parts))
    if any(cell.best for row in table.rows for cell in row.cells):
        caption = caption.replace(_SIGNS["★"], r"\textbf{bold}")
    title = table.title.replace("·", " ").lower().encode("ascii", "backslashreplace").decode()
    label = re.sub(r"\W+", "-", title).strip("-")
    split = [
        i >= table.left and any(row.cells[i].half or row.cells[i].marks for row in table.rows)
        for i in range(len(table.heads))
    ]
    columns = ["r@{}l" if two else "r" for two in split]
    small_names = table.left == 1 and any(split)
    for i in range(table.left):
        in_line = [row for row in table.rows if not (row.faint and small_names)]
        longest = max((len(row.cells[i].text) for row in in_line), default=0)
        columns[i] = _PARAGRAPH if longest > _SENTENCE else "l"
    n_letters = max(_LETTERS, 5 * _LETTERS // max(1, len(split) - table.left))
    heads = [_small(head, two=two) for head, two in zip(table.heads, split, strict=True)]
    # Without intervals there is room for whole heads of names.
    if not any(split):
        heads[: table.left] = [[*map(_escaped, x.split("\n"))] for x in table.heads[: table.left]]
    body: list[str] = []
    across = rf"\multicolumn{{{len(split) + sum(split)}}}{{@{{}}l@{{}}}}"
    for row, group in zip(table.rows, groups, strict=True):
        if grouped and group.text:
            body += [r"\addlinespace"] * bool(body) + [rf"{across}{{{_latex_words(group)}}} \\"]
        cells = [
            [_latex_words(cell)] if i < table.left else _number_lines(cell, two=two)
            for i, (cell, two) in enumerate(zip(row.cells, split, strict=True))
        ]
        if row.faint and small_names:
            cells[0] = _small(row.cells[0].text, two=False, n_letters=n_letters)
        body += _lines(cells, split)
        body += [r"\midrule"] * (row.ends_section and row is not table.rows[-1])
    environment = "table" + "*" * wide
    lines = "\n".join(
        [
            rf"\begin{{{environment}}}",
            r"\centering\small",
            rf"\setlength{{\tabcolsep}}{{{3 if wide else 1.5}pt}}",
            rf"\begin{{tabular}}{{@{{}}{''.join(columns)}@{{}}}}",
            r"\toprule",
            *_lines(heads, split),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            rf"\end{{{environment}}}",
            "",
        ]
    )
    return f"{_OTHER_DEFINED}\n{lines}" if _OTHER in lines else lines


def _without_curves(table: Table) -> Table:
    """The table without the columns whose bars LaTeX's fonts lack."""
    # The first column has names, and tokens may begin with a bar.
    signs = [{*"".join(row.cells[i].text for row in table.rows)} for i in range(len(table.heads))]
    columns = [i for i, of in enumerate(signs) if not (i and of & {*BARS} and of <= {*BARS, " "})]
    return replace(table.with_columns(columns), left=sum(i < table.left for i in columns))


def _broken(text: str, n_letters: int) -> list[str]:
    """The lines of a text, broken at spaces."""
    lines = (
        wrap(x, n_letters, break_long_words=False, break_on_hyphens=False) for x in text.split("\n")
    )
    return [_escaped(line) for wrapped in lines for line in wrapped]


def _lines(columns: Sequence[Sequence[str]], split: Sequence[bool]) -> Iterator[str]:
    """The lines of one row, of which each column has several."""
    for texts in zip_longest(*columns):
        filled = (text or "&" * two for text, two in zip(texts, split, strict=True))
        yield " & ".join(filled) + r" \\"


def _small(text: str, *, two: bool, n_letters: int = _LETTERS) -> list[str]:
    """Lines in a smaller size, across the two columns of a number with its interval."""
    lines = [rf"\scriptsize {line}" for line in _broken(text, n_letters)]
    return [rf"\multicolumn{{2}}{{c}}{{{line}}}" for line in lines] if two else lines


def _latex_words(cell: Cell) -> str:
    text = _escaped(cell_text(cell) + cell.marks)
    return f"{text} ({_escaped(cell.note)})" if cell.note else text


def _number_lines(cell: Cell, *, two: bool) -> list[str]:
    """The lines of a number: with what is beside it in a second column, then its note."""
    text = _escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else text
    # A count may be long.
    if two and cell.text.replace(",", "").isdecimal() and not (cell.half or cell.marks):
        text = rf"\multicolumn{{2}}{{c}}{{{text}}}"
    elif two:
        marks = "".join(_SIGNS[sign].strip("$") for sign in cell.marks if sign != "★")
        scripts = rf"^{{{marks}}}" if marks else ""
        spread = _escaped(cell.spread.replace("±0.", "±.")).replace("$", "").replace(" ", r"\,")
        scripts += f"_{{{spread}}}" if spread else ""
        text += f" & ${scripts}$" if scripts else " &"
    return [text, *_small(cell.note, two=two)]


def _escaped(text: str) -> str:
    """A text in ASCII."""
    parts = unicodedata.normalize("NFC", text).split("--")  # which would become a dash
    return "-{}-".join("".join(map(_escaped_sign, _WITH_ACCENTS.findall(part))) for part in parts)


def _escaped_sign(sign: str) -> str:
    """A sign, which accents may follow."""
    if sign in _SIGNS or (sign.isascii() and sign.isprintable()):
        return _SIGNS.get(sign, sign)
    letter, *accents = list(unicodedata.normalize("NFD", sign))
    if not (letter.isascii() and letter.isalpha() and _ACCENTS.keys() >= {*accents}):
        if len(sign) == 1:
            return rf"{_OTHER}{{{ord(sign):04X}}}"
        letter, *accents = _escaped_sign(sign[0]), *sign[1:]
    # Those below come last: TeX puts nothing above a letter that has one.
    for accent in sorted(accents, key=unicodedata.combining, reverse=True):
        letter = rf"\{_ACCENTS[accent]}{{{letter}}}"
    return letter
