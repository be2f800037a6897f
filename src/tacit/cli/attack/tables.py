"""Files that an outsider holds, read into columns: CSV or Parquet; one clear error for anything else."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

from tacit.errors import BadData, InvalidParameter, UnknownColumn

__all__ = ["names", "numbers", "read_columns"]


def read_columns(path: Path) -> dict[str, Any]:
    """Columns by name; cells of a CSV file are text, an empty one is missing."""
    if not path.is_file():
        raise BadData(source=str(path), problem="is not a file")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            csv.field_size_limit(sys.maxsize)
            lines = csv.reader(file, strict=True)
            header = next(lines, None)
            if not header or not any(header):
                raise BadData(source=str(path), problem="has no header")
            if len(set(header)) < len(header):
                raise BadData(source=str(path), problem="names a column twice")
            columns: list[list[str | None]] = [[] for _ in header]
            for line in lines:
                if not line:
                    continue
                if len(line) != len(header):
                    raise BadData(
                        source=str(path),
                        problem=f"has another number of cells than its header on line {lines.line_num}",
                    )
                for column, cell in zip(columns, line, strict=True):
                    column.append(cell or None)
    except UnicodeDecodeError:
        raise BadData(source=str(path), problem="is not text in UTF-8") from None
    except csv.Error:
        raise BadData(source=str(path), problem="cannot be read as CSV") from None
    except OSError as problem:
        raise BadData(source=str(path), problem=(problem.strerror or "cannot be read").lower()) from None
    return dict(zip(header, columns, strict=True))


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError):
        raise BadData(source=str(path), problem="cannot be read as Parquet") from None
    if len(set(table.column_names)) < table.num_columns:
        raise BadData(source=str(path), problem="names a column twice")
    return {name: table[name] for name in table.column_names}


def names(option: str, text: str) -> list[str]:
    """Column names from one option, separated by commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidParameter(parameter=option, value=text, must="name columns, separated by commas")
    return found


def numbers(path: Path, columns: dict[str, Any], name: str) -> list[float]:
    """One column as numbers."""
    if name not in columns:
        raise UnknownColumn(column=name, known=columns, where=str(path))
    column = columns[name]
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column
    try:
        return [float(cell) for cell in cells]
    except (TypeError, ValueError):
        raise BadData(
            source=str(path), problem=f"has cells in column {name!r} that are not numbers"
        ) from None
