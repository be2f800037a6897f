"""What may be said of a file beside its name: how its text is written, which sheet or view is meant.

Every word has a closed list of values, and each kind of file takes some of the words:

    separator   text files; found from the header where it is not said
    decimal     "." or ","
    encoding    text and statistics files; of encodings in which one bad byte cannot swallow a separator
    dates       "year-first" (always read), "day-first" or "month-first"
    missing     words that stand for no value, such as "NA"
    multiline   text files: line breaks inside quotes
    sheet       the sheet of a workbook
    view        the table or view of a database
    partitions  Parquet: columns in the names of folders
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import InvalidParameter, UnknownName

__all__ = [
    "DATES",
    "DECIMALS",
    "ENCODINGS",
    "ENDINGS",
    "SEPARATORS",
    "TAKES",
    "encoding_of",
    "kind_of",
    "missing_of",
    "separator_of",
]

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
"""By the character; the word beside it is how plans and certificates write it."""
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
    """What kind of file this is, by its name; nothing where the ending is not known."""
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
    """Words that stand for no value, each once, without white space around them."""
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise InvalidParameter(
            parameter="missing", value=value, must="be a list of words", hint='missing = ["NA"]'
        )
    return tuple(dict.fromkeys(v.strip(" \t\r\n\v\f") for v in value))
