"""Files: the meaning of a path, and the options beside it.

A path is the name of one file, whatever characters it has. Everything beyond a single name is requested explicitly:

    tacit.files(["visits-2023.csv", "visits-2024.csv"])
    tacit.files("visits/*.parquet", pattern=True)
    tacit.files("visits/state=*/*.parquet", pattern=True, partitions=["state"])
    tacit.files("enquete.csv", separator=";", decimal=",", encoding="latin-1", dates="day-first", missing=["NA"])
    tacit.files("letters.csv", multiline=True)
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tacit.errors import BadData, InvalidParameter, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.sources.facts import FileState, states_of

# What may be said of a file beside its name: how its text is written, which sheet or view is meant.
#
# Every word has a closed list of values, and each kind of file takes some of the words:
#
#     separator   text files; found from the header where it is not said
#     decimal     "." or ","
#     encoding    text and statistics files; of encodings in which one bad byte cannot swallow a separator
#     dates       "year-first" (always read), "day-first" or "month-first"
#     missing     words that stand for no value, such as "NA"
#     multiline   text files: line breaks inside quotes
#     sheet       the sheet of a workbook
#     view        the table or view of a database
#     partitions  Parquet: columns in the names of folders

ENDINGS: dict[str, tuple[str, ...]] = {
    "Parquet": (".parquet", ".pq", ".parq"),
    "text": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "Stata": (".dta",),
    "SPSS": (".sav", ".zsav"),
    "SAS": (".sas7bdat", ".xpt"),
    "Excel": (".xlsx", ".xlsm"),
    "DuckDB": (".duckdb", ".ddb"),
    "SQLite": (".sqlite", ".sqlite3", ".db"),
}
TAKES: dict[str, tuple[str, ...]] = {
    "Parquet": ("partitions",),
    "text": ("separator", "decimal", "encoding", "dates", "missing", "multiline"),
    "Stata": ("encoding",),
    "SPSS": ("encoding",),
    "SAS": ("encoding",),
    "Excel": ("sheet", "decimal", "dates", "missing"),
    "DuckDB": ("view",),
    "SQLite": ("view", "decimal", "dates", "missing"),
}
SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}
"""Separators by their character, each with the word for it in plans and certificates."""
DECIMALS = (".", ",")
DATES = ("year-first", "day-first", "month-first")
ENCODINGS = {
    "utf-8": "utf-8", "utf8": "utf-8", "utf-8-sig": "utf-8", "ascii": "utf-8",
    "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1", "iso-8859-15": "iso-8859-15",
    "iso-8859-2": "iso-8859-2", "cp1250": "cp1250", "windows-1250": "cp1250", "cp1251": "cp1251",
    "windows-1251": "cp1251", "cp1252": "cp1252", "windows-1252": "cp1252", "cp437": "cp437", "cp850": "cp850",
    "mac-roman": "mac-roman", "macroman": "mac-roman",
    "utf-16": "utf-16", "utf16": "utf-16", "utf-16-le": "utf-16-le", "utf-16-be": "utf-16-be",
}  # fmt: skip
"""Other names of an encoding, and the one that is written down. Where characters have several bytes that contain
separators (Shift-JIS, GBK), one bad byte would change the record: such encodings are not read."""


def kind_of(path: str) -> str:
    """The kind of a file by its name; None for an unknown ending."""
    lower = path.lower()
    return next((kind for kind, endings in ENDINGS.items() if lower.endswith(endings)), "")


def separator_of(value: object) -> str | None:
    """The separator: a character, or the word tab."""
    if value is None:
        return None
    found = {**{mark: mark for mark in SEPARATORS}, "tab": "\t", "\\t": "\t"}.get(str(value))
    if not isinstance(value, str) or found is None:
        raise UnknownName(what="separator", name=str(value), known=tuple(SEPARATORS.values()))
    return found


def encoding_of(value: object) -> str | None:
    """The encoding by the name that is written down."""
    if value is None:
        return None
    if not isinstance(value, str) or value.lower().replace("_", "-") not in ENCODINGS:
        raise UnknownName(what="encoding", name=str(value), known=tuple(ENCODINGS))
    return ENCODINGS[value.lower().replace("_", "-")]


def missing_of(value: Sequence[str]) -> tuple[str, ...]:
    """Words for a missing value, each once, without surrounding white space."""
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise InvalidParameter(
            parameter="missing", value=value, must="be a list of words", hint='missing = ["NA"]'
        )
    return tuple(dict.fromkeys(v.strip(" \t\r\n\v\f") for v in value))


PARQUET, TEXT = ENDINGS["Parquet"], ENDINGS["text"]
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
KNOWN = "name it by what it is, and all of them alike: " + ", ".join(
    ending for endings in ENDINGS.values() for ending in endings
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """One file, or several that are one table."""

    path: str
    more: tuple[str, ...] = ()
    pattern: bool = False
    partitions: tuple[str, ...] = ()
    multiline: bool = False
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    dates: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    view: str | None = None

    def __post_init__(self) -> None:
        for name in ("pattern", "multiline"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must="be true or false, which it is by default"
                )
        for name, made in (
            ("separator", separator_of(self.separator)),
            ("encoding", encoding_of(self.encoding)),
            ("missing", missing_of(self.missing)),
        ):
            object.__setattr__(self, name, made)
        for name, known in (("decimal", DECIMALS), ("dates", DATES)):
            if getattr(self, name) not in (None, *known):
                raise UnknownName(what=name, name=str(getattr(self, name)), known=known)
        for name in ("sheet", "view"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidParameter(parameter=name, value=value, must="be a name")
        if self.more and self.pattern:
            raise InvalidParameter(
                parameter="pattern", value=True, must="be left out where files are listed",
                hint="a list contains names; a pattern is one path",
            )  # fmt: skip
        self._fit()
        if self.decimal == "," and self.separator == ",":
            raise InvalidParameter(
                parameter="decimal", value=",", must="differ from the separator", hint='separator = ";"'
            )

    def _fit(self) -> None:
        """Each kind of file takes words of its own."""
        takes = TAKES.get(self.kind)
        for word in dict.fromkeys(w for kind in TAKES.values() for w in kind):
            if takes is not None and getattr(self, word) and word not in takes:
                fit = " and ".join(kind for kind, known in TAKES.items() if word in known)
                raise InvalidParameter(
                    parameter=word, value=getattr(self, word),
                    must=f"be left out for {self.kind} files", hint=f"it is about {fit} files",
                )  # fmt: skip

    def __fspath__(self) -> str:
        return self.path

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were named, or the pattern."""
        return (self.path, *self.more)

    @property
    def kind(self) -> str:
        """The kind of a file by its name."""
        return kind_of(self.path)

    @property
    def is_parquet(self) -> bool:
        """Are these Parquet files, by their name?"""
        return self.kind == "Parquet"

    def to_dict(self) -> dict[str, Any]:
        """The options beside the path, as plain values, for plans and certificates; empty for a plain path."""
        found: dict[str, Any] = {
            "partitions": list(self.partitions), "multiline": self.multiline,
            "separator": SEPARATORS.get(self.separator or "", ""), "decimal": self.decimal,
            "encoding": self.encoding, "dates": self.dates, "missing": list(self.missing),
            "sheet": self.sheet, "view": self.view,
        }  # fmt: skip
        return {word: value for word, value in found.items() if value}

    describe = formerly("describe", method=True)

    def states(self) -> tuple[FileState, ...]:
        """The present states of the files: all matches of a pattern, each readable and listed once."""
        names: Iterable[str] = sorted(glob.glob(self.path)) if self.pattern else self.paths
        paths = [Path(p) for p in names] or [Path(self.path)]
        if not all(kind_of(str(p)) == self.kind for p in paths) or not self.kind:
            if missing := [p for p in paths if not p.is_file()]:
                raise BadData(source=str(missing[0]), problem="is not there", hint=self._hint())
            raise BadData(source=self.path, problem="has no known ending", hint=KNOWN)
        return states_of(paths, source=self.path, hint=self._hint())

    def _hint(self) -> str:
        hint = "give the path of a file that is there"
        if not self.pattern and any(map(glob.has_magic, self.paths)):
            hint += "; a pattern is asked for by name: tacit.files(path, pattern=True)"
        return hint

    def found(self) -> tuple[Path, ...]:
        """The paths of the files."""
        return tuple(state.path for state in self.states())

    def values(self, path: Path) -> dict[str, str | None]:
        """The values of the asked columns in the names of a file's folders."""
        said = dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)
        missing = [name for name in self.partitions if name not in said]
        if missing:
            raise BadData(
                source=self.path, problem=f"has no folder called {missing[0]}=... above each of its files",
                hint="name as partitions only folders that occur in all paths",
            )  # fmt: skip
        plain = {name: unquote(said[name]) for name in self.partitions}
        return {name: None if value == NO_VALUE else value for name, value in plain.items()}


def files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    pattern: bool = False,
    partitions: Sequence[str] = (),
    multiline: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    dates: str | None = None,
    missing: Sequence[str] = (),
    sheet: str | None = None,
    view: str | None = None,
) -> Files:
    """A file or files as a table, with the options that differ from a plain path.

    path: one file, or a list of files that are one table. pattern: *, ? and [...] in the path stand for other
    characters, and all matching files are one table; their columns must have the same types. partitions:
    columns whose values are in the names of folders, as in `state=CA/part.parquet`. multiline: quotes of a CSV
    may contain line breaks. A quote that is never closed then hides the records after it, including other
    people's. tacit assumes that there is none, and certificates say so.

    Of text files: separator (",", ";", "tab" or "|"; found from the header by default), decimal ("." or ","),
    encoding ("utf-8", "latin-1", "cp1252", "utf-16" and others), dates ("day-first" or "month-first", beside
    2024-01-31, which is always read), missing (words for a missing value, such as "NA"). sheet: of a workbook
    with several. view: the table or view of a database file (DuckDB, SQLite).
    """
    if isinstance(partitions, str) or not all(isinstance(p, str) and p for p in partitions):
        raise InvalidParameter(parameter="partitions", value=partitions, must="be a list of columns")
    listed = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not listed:
        raise InvalidParameter(parameter="path", value=[], must="name a file")
    names = [os.fspath(p) for p in listed]
    return Files(
        path=names[0], more=tuple(names[1:]), pattern=pattern, partitions=tuple(partitions), multiline=multiline,
        separator=separator, decimal=decimal, encoding=encoding, dates=dates, missing=tuple(missing)
        if not isinstance(missing, str) else missing,  # type: ignore[arg-type]
        sheet=sheet, view=view,
    )  # fmt: skip


# A table joined to others: the declaration. See `joining` for how it is opened.


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A table, and another table that adds its columns."""

    table: Any
    other: Any
    on: tuple[str, ...]
    public: bool = False

    def __post_init__(self) -> None:
        good = isinstance(self.on, tuple) and self.on and all(isinstance(n, str) and n for n in self.on)
        if not good or len(set(self.on)) != len(self.on):
            raise InvalidParameter(
                parameter="on", value=self.on, must="name the columns that both tables have", hint='on="town"'
            )
        if not isinstance(self.public, bool):
            raise InvalidParameter(parameter="public", value=self.public, must="be true or false")
        if isinstance(self.other, Joined):
            raise InvalidParameter(
                parameter="other",
                value="a joined table",
                must="be a table by itself",
                hint="join one after the other",
            )

    @property
    def private(self) -> tuple[Any, ...]:
        """The tables in it that describe people, in order."""
        own = self.table.private if isinstance(self.table, Joined) else (self.table,)
        return own if self.public else (*own, self.other)

    @property
    def open_to_all(self) -> tuple[Any, ...]:
        """The tables in it that are declared public."""
        own = self.table.open_to_all if isinstance(self.table, Joined) else ()
        return (*own, self.other) if self.public else own

    def to_dict(self) -> dict[str, Any]:
        """Its declarations, as plain values, for plans and certificates."""
        own, other = (d.to_dict() if isinstance(d, Files | Joined) else {} for d in (self.table, self.other))
        step = {"table": _name(self.other), "on": list(self.on), "public": self.public}
        return {**own, "joins": [*own.get("joins", []), {**step, **({"reading": other} if other else {})}]}

    describe = formerly("describe", method=True)


def join(table: Any, other: Any, *, on: str | Sequence[str], public: bool = False) -> Joined:
    """A table with the columns of another one: `join("visits.csv", "towns.csv", on="town", public=True)`.

    public: the other table describes nobody, and has each key once. Otherwise the keys must contain the column of the
    person who is protected. See `tacit.sources.opening.joining` for why nothing else can be joined.
    """
    return Joined(table=table, other=other, on=(on,) if isinstance(on, str) else tuple(on), public=public)


def reading_of(data: Any) -> dict[str, Any]:
    """The declared reading options: part of a plan's digest and of its certificates."""
    return data.to_dict() if isinstance(data, Files | Joined) else {}


def _name(data: Any) -> str:
    """The file's name without its folder, or the kind of table."""
    if isinstance(data, str | os.PathLike):
        return ", ".join(Path(p).name for p in getattr(data, "paths", (os.fspath(data),)))
    return f"the {type(data).__module__.partition('.')[0]} table"
