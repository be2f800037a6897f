"""The names of all columns of files, from headers, footers and metadata: no row is read."""

from __future__ import annotations

from tacit.sources import door
from tacit.sources.opening import databases, statfiles, workbooks
from tacit.sources.opening.files import Files
from tacit.sources.opening.textfiles import names_in

__all__ = ["names_of"]


def names_of(asked: Files) -> list[str]:
    """The columns that have a name, in the order of the first file; columns in the names of folders are not among them.

    Where the separator of a text file is not said, it is the one that gives the most columns.
    """
    if asked.kind in ("Stata", "SPSS", "SAS"):
        return statfiles.names_of(asked)
    if asked.kind == "Excel":
        return workbooks.names_of(asked)
    if asked.kind in ("DuckDB", "SQLite"):
        return databases.names_of(asked)
    if not asked.is_parquet:
        return [name for name in names_in(asked)[1] if name]
    path = asked.found()[0]

    def found() -> list[str]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return [name for name in file.schema_arrow.names if name]

    return door.metadata(
        found, source=asked.path, problem="is not a readable Parquet file",
        hint="is it another kind of file, or was it cut off?",
    )  # fmt: skip
