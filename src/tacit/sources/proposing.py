"""How a text file might be written, where it is read as almost nothing under the words that were declared. PRIVATE.

Settings are never guessed for a release: what is found here is shown to the custodian, who has looked by then and may
write it into the plan. Each proposal names the words of `[data]` and the share of texts that they would read.
"""

from __future__ import annotations

import codecs
import gzip
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.sources import door
from tacit.sources.looking import texts_seen
from tacit.sources.opening.files import TEXT, Files
from tacit.sources.opening.textfiles import names_in
from tacit.sources.opening.words import SEPARATORS
from tacit.sources.schema import Column, Date, Flag, Measured, category
from tacit.sources.tables import Table, open_table

__all__ = [
    "Proposal",
    "TextSeen",
    "as_text",
    "encoding_proposed",
    "is_text",
    "proposed",
    "stored_names",
    "texts_of",
]

BLOCK = 8 << 20
LITTLE = 0.5
"""Settings are proposed where less than this share of the texts is read."""
POINT = "[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
COMMA = "[+-]?(?:[0-9]+[,][0-9]*|[0-9]+|[,][0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
CLOCK = "(?:[ T].*)?"
PATTERNS = {
    "point": f"^{POINT}$",
    "comma": f"^{COMMA}$",
    "day-first": f"^(?:0?[1-9]|[12][0-9]|3[01])[./-](?:0?[1-9]|1[0-2])[./-][0-9]{{4}}{CLOCK}$",
    "month-first": f"^(?:0?[1-9]|1[0-2])[./-](?:0?[1-9]|[12][0-9]|3[01])[./-][0-9]{{4}}{CLOCK}$",
    "NA": "^NA$", "N/A": "^N/A$", "NULL": "^(?:NULL|null)$", ".": "^[.]$", "-": "^-$", "nan": "^(?:NaN|nan)$",
}  # fmt: skip
WORDS = ("NA", "N/A", "NULL", ".", "-", "nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Words of `[data]` that would read more, and of how much."""

    words: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSeen:
    """The texts of one column: how many rows have one, and how many look like what."""

    texts: int
    looks: Mapping[str, int]


def is_text(data: Any) -> bool:
    """Is it a text file and nothing else, by its name?"""
    return isinstance(data, str | Path | Files) and os.fspath(data).lower().endswith(TEXT)


def stored_names(data: str | os.PathLike[str]) -> set[str]:
    """The names in the header: a declared column may be made of others."""
    return set(names_in(data if isinstance(data, Files) else Files(path=os.fspath(data)))[1])


def as_text(data: Any, columns: Sequence[str], *, unit: Any, **options: Any) -> Table:
    """The same file with these columns as the bare text that they are."""
    return open_table(data, schema=dict.fromkeys(columns, category()), unit=unit, **options)


def texts_of(table: Table, columns: Sequence[str]) -> dict[str, TextSeen]:
    """What the texts of these columns look like."""
    found = texts_seen(table, columns, PATTERNS)
    return {
        name: TextSeen(texts=counts["texts"], looks={k: counts[k] for k in PATTERNS})
        for name, counts in found.items()
    }


def proposed(column: Column, seen: TextSeen, read: int) -> list[Proposal]:
    """What would read more of a column than its declaration does."""
    out = []
    for word in WORDS:
        if seen.looks[word]:
            reason = f"{word!r} stands in {_share(seen.looks[word], seen.texts)} of its texts"
            out.append(Proposal(words=f'missing = ["{word}"]', reason=reason))
    if not seen.texts or read >= LITTLE * seen.texts or isinstance(column, Flag):
        return out
    ways = ("day-first", "month-first") if isinstance(column, Date) else ("comma", "point")
    words = {
        "day-first": 'dates = "day-first"', "month-first": 'dates = "month-first"', "comma": 'decimal = ","',
        "point": 'decimal = "."',
    }  # fmt: skip
    best = max(ways, key=lambda way: seen.looks[way])
    if isinstance(column, Measured) and seen.looks[best] > read:
        reason = (
            f"it reads {_share(seen.looks[best], seen.texts)} of its texts, now {_share(read, seen.texts)}"
        )
        out.append(Proposal(words=words[best], reason=reason))
    return out


def encoding_proposed(asked: str | os.PathLike[str]) -> list[Proposal]:
    """What the bytes of a text file say against the declared encoding, and the lines against the separator."""
    files = asked if isinstance(asked, Files) else Files(path=os.fspath(asked))
    return door.rows(lambda: _bytes(files), source=files.path)


def _bytes(files: Files) -> list[Proposal]:
    out: list[Proposal] = []
    declared = files.encoding or "utf-8"
    for path in files.found():
        with _opened(path) as file:
            first = file.read(4)
        if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and not declared.startswith("utf-16"):
            out.append(Proposal(words='encoding = "utf-16"', reason="the file begins with its mark"))
            continue
        if declared.startswith("utf-16"):
            continue
        bad, lines = _undecodable(path, declared)
        if bad:
            reason = f"{bad:,} of {lines:,} lines are not {declared}"
            words = 'encoding = "cp1252" or another of one byte a letter'
            out.append(Proposal(words=words, reason=reason))
        out += _separator(path, files)
    return out


def _undecodable(path: Path, encoding: str) -> tuple[int, int]:
    """How many lines are no text in this encoding, and how many there are."""
    bad = lines = 0
    held = b""
    with _opened(path) as file:
        while chunk := file.read(BLOCK):
            held += chunk
            whole, _, held = held.rpartition(b"\n")
            lines += whole.count(b"\n") + bool(whole)
            bad += _bad(whole, encoding)
    return bad + _bad(held, encoding), lines + bool(held)


def _bad(text: bytes, encoding: str) -> int:
    if not text:
        return 0
    try:
        text.decode(encoding)
        return 0
    except UnicodeDecodeError:
        return sum(1 for line in text.split(b"\n") if not _decodes(line, encoding))


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _separator(path: Path, files: Files) -> list[Proposal]:
    """Lines that have another number of some separator than the header has of its own."""
    with _opened(path) as file:
        head = file.readline(1 << 20)
        lines = [line for line in (file.readline(1 << 20) for _ in range(200)) if line.strip()]
    if not lines:
        return []
    own = names_in(files)[0]
    wanted = head.count(own.encode())
    if not wanted or any(line.count(own.encode()) >= wanted for line in lines):
        return []
    for mark, word in SEPARATORS.items():
        counts = Counter(line.count(mark.encode()) for line in lines)
        if mark != own and counts.most_common(1)[0] == (wanted, len(lines)):
            reason = f"the header is separated by {own!r} and no line below it is"
            return [Proposal(words=f'separator = "{word}"', reason=reason)]
    return []


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _share(part: int, of: int) -> str:
    return f"{part / of:.1%}" if of else "none"
