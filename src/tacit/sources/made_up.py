"""The mark of a table that describes nobody. Programs that make up a table write it, and readers find it in
metadata alone.

A twin is known by a column of its own (`tacit.sources.made_up`). The survey of the demo, released like any
table, has its mark in the metadata of the Arrow schema, and so in the footer of its Parquet file. Anybody who
wants to can forge either. They keep people from showing the truth of a real table by mistake.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import BadData
from tacit.sources.error_boundary import metadata

if TYPE_CHECKING:
    import pyarrow

# How a twin is known: by a column that `tacit twin` writes into the file, under a name that no real column may have.
#
# A column survives renaming, copying, and being rewritten by another program as another kind of file. Only names are
# looked at, in a footer or a first line; no row is read.

MARK = "__tacit_twin"
PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
LONGEST_LINE = 1 << 20
MARKS = ",;\t|"
WIDE = (b"\xff\xfe", b"\xfe\xff")


def marked(table: pyarrow.Table) -> pyarrow.Table:
    """The table with the twins' column, added if it is missing."""
    import pyarrow

    if MARK in table.column_names:
        return table
    return table.append_column(MARK, pyarrow.array([True]).take(pyarrow.array([0] * table.num_rows)))


def is_twin(data: Any) -> bool:
    """Were these rows made up by `tacit twin`? A file that cannot be looked at is no twin. Opening it will say why."""
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


KEY, WORDS = b"tacit", b"made up: describes nobody"


def marked_file(table: pyarrow.Table) -> pyarrow.Table:
    """The same table with the mark."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: WORDS})


def bears_the_mark(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Is the mark in these metadata, of an Arrow schema or of a Parquet footer?"""
    return metadata is not None and metadata.get(KEY) == WORDS


def is_made_up(data: Any) -> bool:
    """Whether it is a twin, or has the mark itself or in each Parquet file at this path. No row is read.

    Whether the data are made up, in their present state.
    The read may have seen other rows; `Facts.made_up` describes those.
    """
    import pyarrow
    import pyarrow.parquet

    if hasattr(type(data), "private"):
        return all(map(is_made_up, data.private))
    if is_twin(data):
        return True
    try:
        if isinstance(data, str | os.PathLike):
            # Of several files all must bear it: one that does makes nobody else up.
            return all(map(_marked_file, getattr(data, "paths", (os.fspath(data),))))
        return isinstance(data, pyarrow.Table) and bears_the_mark(data.schema.metadata)
    except (OSError, ValueError, TypeError, pyarrow.ArrowException):
        return False


def _marked_file(place: str) -> bool:
    state = Path(place).stat()
    stamp = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev)
    return _bears_the_mark(Path(place), stamp)


@lru_cache(maxsize=256)
def _bears_the_mark(path: Path, stamp: tuple[int, ...]) -> bool:
    """Looked up once for each state of the file."""
    import pyarrow.parquet

    return bears_the_mark(pyarrow.parquet.read_metadata(path).metadata)
