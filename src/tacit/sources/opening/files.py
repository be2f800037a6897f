"""Files: which ones are meant, and what may be said about them beside their path.

A path is the name of one file, whatever characters it has. A pattern of several, columns that stand in the names of
folders, and line breaks inside quotes are asked for by name:

    tacit.files("visits/*.parquet", pattern=True)
    tacit.files("visits/state=*/*.parquet", pattern=True, partitions=["state"])
    tacit.files("letters.csv", multiline=True)
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tacit.errors import BadData, InvalidParameter

__all__ = ["PARQUET", "TEXT", "Files", "files"]

PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """One file, or several that are one table."""

    path: str
    pattern: bool = False
    partitions: tuple[str, ...] = ()
    multiline: bool = False

    def __post_init__(self) -> None:
        for name in ("pattern", "multiline"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must="be true or false, which it is by default"
                )
        if self.partitions and not self.is_parquet:
            raise InvalidParameter(
                parameter="partitions", value=list(self.partitions), must="be left out for text files"
            )
        if self.multiline and self.is_parquet:
            raise InvalidParameter(parameter="multiline", value=True, must="be left out for Parquet files")

    def __fspath__(self) -> str:
        return self.path

    @property
    def is_parquet(self) -> bool:
        """Are these Parquet files, by their name?"""
        return self.path.lower().endswith(PARQUET)

    def found(self) -> tuple[Path, ...]:
        """The files, each of them there and readable."""
        paths = [Path(p) for p in (sorted(glob.glob(self.path)) if self.pattern else [self.path])]
        if not paths or not all(p.is_file() for p in paths):
            hint = "give the path of a Parquet or CSV file"
            if not self.pattern and glob.has_magic(self.path):
                hint += "; a pattern is asked for by name: tacit.files(path, pattern=True)"
            raise BadData(source=self.path, problem="is not there", hint=hint)
        if not all(str(p).lower().endswith(PARQUET if self.is_parquet else TEXT) for p in paths):
            raise BadData(
                source=self.path,
                problem="has no known ending",
                hint="name it .parquet or .csv, and all of them alike",
            )
        if not all(os.access(p, os.R_OK) for p in paths):
            raise BadData(source=self.path, problem="cannot be opened", hint="check its permissions")
        return tuple(paths)

    def values(self, path: Path) -> dict[str, str | None]:
        """What the names of a file's folders say about the columns that were asked for."""
        said = dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)
        missing = [name for name in self.partitions if name not in said]
        if missing:
            raise BadData(
                source=self.path, problem=f"has no folder called {missing[0]}=... above each of its files",
                hint="name as partitions only what stands in all paths",
            )  # fmt: skip
        plain = {name: unquote(said[name]) for name in self.partitions}
        return {name: None if value == NO_VALUE else value for name, value in plain.items()}


def files(
    path: str | os.PathLike[str],
    *,
    pattern: bool = False,
    partitions: Sequence[str] = (),
    multiline: bool = False,
) -> Files:
    """A file or files as a table, with what is not assumed of a plain path.

    pattern: *, ? and [...] in the path stand for other characters, and all files that match are one table; their
    columns must have the same types. partitions: columns whose values stand in the names of folders, as in
    `state=CA/part.parquet`. multiline: line breaks may stand inside the quotes of a CSV. A quote that is never closed
    then hides the records behind it, other people's too: that there is none is believed, and said in certificates.
    """
    if isinstance(partitions, str) or not all(isinstance(p, str) and p for p in partitions):
        raise InvalidParameter(parameter="partitions", value=partitions, must="be a list of columns")
    return Files(path=os.fspath(path), pattern=pattern, partitions=tuple(partitions), multiline=multiline)
