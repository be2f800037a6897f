"""Bytes of a text file as UTF-8, whatever they were written in; a character that is none stays one bad character.

Encodings are of two sorts. Where a character is one byte, each byte is looked up by itself. In UTF-16 a character is
one or two units of 16 bits, and a half of a pair is bad by itself. What has no character becomes bytes that are no
UTF-8, so that the field in which it stands is missing, and no other.
"""

from __future__ import annotations

import gzip
from typing import Any

from tacit.errors import BadData

__all__ = ["UNITS", "opened"]

UNITS = "the file is made of whole units of 16 bits (UTF-16): half of one would shift the records behind it"
CHUNK = 1 << 16
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
UTF8 = b"\xef\xbb\xbf"


def opened(path: str, encoding: str | None = None) -> Any:
    """The file as a stream of UTF-8: `read(size)` and `readline(size)`."""
    encoding = encoding or "utf-8"
    file = gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")  # noqa: SIM115
    try:
        first = file.read(3)
        _check(path, encoding, first)
    except BaseException:
        file.close()
        raise
    if encoding == "utf-8":
        file.seek(0)
        return file
    if encoding == "utf-16":
        return _Stream(file, MARKS[first[:2]], first[2:])
    return _Stream(file, encoding, first)


def _check(path: str, encoding: str, first: bytes) -> None:
    """What the first bytes of a file show: they are its header's, and nobody's."""
    marked = "utf-8" if first == UTF8 else "utf-16" if first[:2] in MARKS else ""
    if marked and not encoding.startswith(marked):
        raise BadData(
            source=path, problem=f"begins with the mark of {marked.upper()}, and was said to be {encoding}",
            hint=f'encoding = "{marked}"',
        )  # fmt: skip
    if encoding == "utf-16" and not marked:
        raise BadData(
            source=path, problem="does not begin with the mark of UTF-16, which tells the order of bytes",
            hint='encoding = "utf-16-le", "utf-16-be", or another one',
        )  # fmt: skip


class _Stream:
    """A file read through its encoding."""

    def __init__(self, file: Any, encoding: str, held: bytes) -> None:
        self._file, self._encoding = file, encoding
        self._raw, self._made, self._ended = held, b"", False
        self._wide = encoding.startswith("utf-16")

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """The next bytes, about so many; none at the end of the file alone."""
        self._more(size)
        made, self._made = self._made, b""
        return made

    def readline(self, size: int) -> bytes:
        """The next bytes up to a line feed, or so many of them."""
        while b"\n" not in self._made and len(self._made) < size and not self._ended:
            held, self._made = self._made, b""
            self._more(CHUNK)
            self._made = held + self._made
        end = min(size, self._made.find(b"\n") + 1 or size)
        line, self._made = self._made[:end], self._made[end:]
        return line

    def _more(self, size: int) -> None:
        while not self._made and not self._ended:
            chunk = self._file.read(size)
            self._ended = not chunk
            self._made = self._decoded(self._raw + chunk)

    def _decoded(self, raw: bytes) -> bytes:
        self._raw = b""
        if not self._wide:
            return raw.decode(self._encoding, "surrogateescape").encode("utf-8", "surrogatepass")
        keep = 0 if self._ended else len(raw) % 2
        if not self._ended and len(raw) - keep >= 2:
            high = raw[len(raw) - keep - (1 if self._encoding == "utf-16-le" else 2)]
            # The first half of a pair waits for the second.
            keep += 2 if 0xD8 <= high <= 0xDB else 0
        whole = len(raw) - keep
        self._raw = raw[whole:]
        odd = whole % 2
        text = raw[: whole - odd].decode(self._encoding, "surrogatepass")
        return text.encode("utf-8", "surrogatepass") + b"\xff" * odd
