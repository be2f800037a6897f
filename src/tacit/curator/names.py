"""Names of releases as names of files: on every file system, and each its own, before anything is spent."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from tacit.errors import InvalidParameter

__all__ = ["check_names", "file_stem", "folded"]

RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "clock$", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789\xb9\xb2\xb3"}
)
"""Names of devices on Windows, whatever ending follows."""


def file_stem(name: str) -> str:
    """The release's name as the name of its files, without an ending."""
    return name.replace(" ", "-")


def folded(name: str) -> str:
    """What a file system may take for the same file: letters of any case, composed or not, no dots at the end."""
    return unicodedata.normalize("NFKC", file_stem(name)).casefold().rstrip(". ")


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that is no file's, and two that are one file's."""
    taken: dict[str, str] = {}
    for name in names:
        stem = folded(name)
        if not stem or stem.startswith(".") or any(c in stem for c in '/\\:*?"<>|') or not stem.isprintable():
            raise InvalidParameter(parameter="name", value=name, must="be a name that a file can have")
        if stem.split(".")[0] in RESERVED:
            raise InvalidParameter(
                parameter="name", value=name, must="be a name that a file can have",
                hint="some systems keep it for a device; add a word",
            )  # fmt: skip
        if stem in taken:
            twice = name == taken[stem]
            raise InvalidParameter(
                parameter="name", value=name, must="be given once in a plan",
                hint="" if twice else f"some systems take its file for that of {taken[stem]!r}; add a word",
            )  # fmt: skip
        taken[stem] = name
