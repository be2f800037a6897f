"""Cells of a CSV file: texts that a spreadsheet takes for texts, and that can be turned back into what they were.

A key that was not known in advance is somebody's text. One that begins with =, +, - or @ is a formula to a
spreadsheet; one with an escape sequence steers a terminal. So, in texts only (numbers stay numbers):

1. control characters, line breaks and marks of direction are spelled out as `\\u{hex}` (see `tacit.errors.visible`);
2. a text that begins like a formula, or with an apostrophe, gets one apostrophe in front.

Undone in the other order: take one apostrophe off the front if there is one, then read `\\u{hex}` as its character.
Parquet files hold the texts as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.errors import visible

__all__ = ["csv_text", "original", "safe_text"]

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20'"
_SPELLED = re.compile(r"\\u\{([0-9a-f]+)\}")


def safe_text(text: str) -> str:
    """A text as it stands in a CSV file."""
    shown = visible(text)
    return f"'{shown}" if shown.lstrip()[:1] and shown.lstrip()[0] in FORMULA else shown


def original(cell: str) -> str:
    """The text that `safe_text` was given."""
    bare = cell[1:] if cell.startswith("'") else cell
    return _SPELLED.sub(lambda match: chr(int(match[1], 16)), bare)


def csv_text(columns: Mapping[str, Any]) -> str:
    """Columns as CSV: floats by their shortest text, lines that end in a line feed; the same cells, the same bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_text(name) for name in columns])
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    return out.getvalue()


def _cells(column: Any) -> list[Any]:
    """A column's cells, each as `_cell` has it; columns of one type at once, and each text once."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    kinds = set(map(type, values))
    if kinds <= {float}:
        return list(map(repr, values))
    if kinds <= {int, bool, type(None)}:
        return values
    if kinds <= {str}:
        safe = {text: safe_text(text) for text in set(values)}
        return [safe[text] for text in values]
    return [_cell(value) for value in values]


def _cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return repr(value)
    return safe_text(value) if isinstance(value, str) else value
