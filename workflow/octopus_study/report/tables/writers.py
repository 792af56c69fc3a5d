"""One table, two formats: Typst for the paper, Markdown for readers and other authors."""

import re
from itertools import pairwise
from typing import NamedTuple

MISSING = "\u2013"


class Table(NamedTuple):
    """A table as text."""

    caption: str
    header: list[str]
    rows: list[list[str] | str]  # a row of cells; a string is a heading over the rows that follow
    text_columns: tuple[int, ...] = (0,)  # columns that hold text and are aligned left; all others hold numbers
    # of the columns in Typst, such as ``auto`` or ``1fr``; as wide as their content unless given
    widths: tuple[str, ...] = ()


def typst(name: str, table: Table) -> str:
    """Return a Typst figure with a label ``tab-<name>``; where it is placed is up to the paper."""
    columns = len(table.header)
    widths = ", ".join(table.widths or ("auto",) * columns)
    align = ", ".join("left" if index in table.text_columns else "right" for index in range(columns))
    header = ", ".join(f"[*{_typst_text(cell)}*]" for cell in table.header)
    lines = [_typst_row(row, columns, below) for row, below in pairwise([*table.rows, ""])]
    return (
        f"#figure(kind: table, caption: [{_typst_text(table.caption)}],\n"
        f"  table(columns: ({widths},), align: ({align},), stroke: none,\n"
        f"    table.hline(), table.header({header}), table.hline(stroke: 0.5pt),\n"
        + "\n".join(f"    {line}" for line in lines)
        + f"\n    table.hline(),\n  )\n) <tab-{name.replace('_', '-')}>\n"
    )


def markdown(table: Table) -> str:
    """Return a Markdown table with its caption above."""
    rule = " | ".join(":---" if index in table.text_columns else "---:" for index in range(len(table.header)))
    lines = [f"{_markdown_text(table.caption)}", "", _markdown_row(table.header), f"| {rule} |"]
    for row in table.rows:
        cells = [f"**{row}**", *[""] * (len(table.header) - 1)] if isinstance(row, str) else row
        lines.append(_markdown_row(cells))
    return "\n".join(lines) + "\n"


def _typst_row(row: list[str] | str, columns: int, below: list[str] | str) -> str:
    """Return a row; a heading stays with the rows below it, and stands above what a page break leaves of them."""
    if isinstance(row, str):
        cell = f"table.cell(colspan: {columns}, align: left, inset: (top: 6pt))[_{_typst_text(row)}_]"
        return f"{cell}," if isinstance(below, str) else f"table.header(level: 2, {cell}),"
    return " ".join(f"[{_typst_text(cell)}]," for cell in row)


def _typst_text(text: str) -> str:
    return re.sub(r"([\\#*_$@<>`~\[\]])", r"\\\1", text).replace("//", r"/\/")


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(_markdown_text(cell) for cell in cells)} |"


def _markdown_text(text: str) -> str:
    return text.replace("|", r"\|")
