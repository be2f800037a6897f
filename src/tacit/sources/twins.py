"""How a twin is known: by a column that `tacit twin` writes into the file, under a name that no real column may have.

A column survives renaming, copying, and being rewritten by another program as another kind of file. Only names are
looked at, in a footer or a first line; no row is read.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import BadData
from tacit.sources.door import metadata

if TYPE_CHECKING:
    import pyarrow

__all__ = ["MARK", "is_twin", "marked"]

MARK = "__tacit_twin"
PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
LONGEST_LINE = 1 << 20
MARKS = ",;\t|"
WIDE = (b"\xff\xfe", b"\xfe\xff")


def marked(table: pyarrow.Table) -> pyarrow.Table:
    """The table with the twins' column, if it has none yet."""
    import pyarrow

    if MARK in table.column_names:
        return table
    return table.append_column(MARK, pyarrow.array([True]).take(pyarrow.array([0] * table.num_rows)))


def is_twin(data: Any) -> bool:
    """Were these rows made up by `tacit twin`? What cannot be looked at is no twin; opening it will say why."""
    if hasattr(type(data), "private"):
        # The type is asked, here as elsewhere: a frame has an attribute for each column, whose values are people's.
        # Of joined tables all that tell of people must be made up.
        return all(map(is_twin, data.private))
    try:
        return metadata(lambda: MARK in _names(data), source="the table", problem="cannot be read")
    except BadData:
        return False


def _names(data: Any) -> set[str]:
    if isinstance(data, str | os.PathLike):
        places = getattr(data, "paths", (os.fspath(data),))
        found = [set(_columns(path)) for place in places for path in _files(place)]
        # Of several files all must be made up: one twin among them makes nobody else up.
        return set.intersection(*found) if found else set()
    if hasattr(type(data), "collect_schema"):
        return set(data.collect_schema().names())
    names: Any = data.column_names if hasattr(type(data), "column_names") else getattr(data, "columns", ())
    return {str(name) for name in names}


def _files(text: str) -> list[Path]:
    place = Path(text)
    if place.is_dir():
        return sorted(p for p in place.rglob("*") if p.is_file())
    if place.exists():
        return [place]
    return [Path(p) for p in sorted(glob.glob(text))]


def _columns(path: Path) -> Iterable[str]:
    found = path.stat()
    return _first_line(
        path, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
    )


@lru_cache(maxsize=256)
def _first_line(path: Path, stamp: tuple[int, ...]) -> Iterable[str]:
    """The names of the columns, looked up once for each state of the file."""
    lower = path.name.lower()
    if lower.endswith(PARQUET):
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_schema(path).names)
    if not lower.endswith(TEXT):
        return ()
    opened: Any = gzip.open if lower.endswith(".gz") else open
    with opened(path, "rb") as file:
        encoding = "utf-16" if file.read(2) in WIDE else "utf-8-sig"
    with opened(path, "rt", encoding=encoding, errors="replace", newline="") as file:
        line = file.readline(LONGEST_LINE)
    return tuple(name for mark in MARKS for name in next(csv.reader([line], delimiter=mark), ()))
