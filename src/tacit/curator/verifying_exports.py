"""Do the files for others have the numbers that the certificates are about? Read again and compared, number by number.

Labels and sentences are words: for them only a signature under the manifest vouches, as for the page.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tacit.curator.names import file_stem

__all__ = ["MOST_ROWS", "WORKBOOK", "export_findings"]

WORKBOOK = "tables.xlsx"
SDMX = ("OBS_VALUE", "CONF_LOW", "CONF_HIGH", "QUALITY")
MOST_ROWS = 1_048_575
"""Rows of a sheet of Excel below its headings."""
LAST = 4
"""Value, low, high and quality are the last columns of a file of values and of a sheet."""


def export_findings(
    place: Path, files: Mapping[str, Any], certificates: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, bool | None, str]]:
    """What was looked at, whether it holds, and why not: for each file that was exported."""
    for name in sorted(files):
        path = PurePosixPath(name)
        if path.parent == PurePosixPath("sdmx") and path.suffix == ".csv":
            what = f"{name} has the numbers of values/{path.name}"
            yield (what, *_held(lambda p=path: _sdmx(place, p.name)))
    if WORKBOOK in files:
        what = f"{WORKBOOK} has the numbers of all files of values"
        names = next((said["plan"].get("releases") for said in certificates.values()), None)
        if not isinstance(names, list):
            yield what, False, "no certificate names the releases"
            return
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            yield what, None, "openpyxl is not here to read it: pip install 'tacit[formats]'"
            return
        yield (what, *_held(lambda: _workbook(place, [file_stem(str(n)) for n in names])))


def _held(look: Any) -> tuple[bool, str]:
    try:
        return bool(look()), ""
    except Exception:  # whatever a damaged file makes a reader raise
        return False, "it cannot be read"


def _values(place: Path, stem: str) -> list[list[Any]]:
    text = (place / "values" / f"{stem}.csv").read_bytes().decode()
    return [[_number(v) for v in row[-LAST:]] for row in list(csv.reader(io.StringIO(text)))[1:]]


def _sdmx(place: Path, name: str) -> bool:
    rows = csv.DictReader(io.StringIO((place / "sdmx" / name).read_bytes().decode()))
    found = [[_number(row[column]) for column in SDMX] for row in rows]
    return found == _values(place, PurePosixPath(name).stem)


def _workbook(place: Path, stems: Sequence[str]) -> bool:
    import openpyxl

    held = io.BytesIO((place / WORKBOOK).read_bytes())
    book = openpyxl.load_workbook(held, read_only=True)
    sheets = book.worksheets[1:]
    if len(sheets) != len(stems):
        return False
    for sheet, stem in zip(sheets, stems, strict=True):
        wanted = _values(place, stem)
        rows = sheet.iter_rows(min_row=2, values_only=True)
        found = [[_number(v) for v in row[-LAST:]] for row in rows]
        # A sheet has an end; the file of values has all.
        if len(found) != min(len(wanted), MOST_ROWS):
            return False
        if not all(
            _alike(a, b)
            for row, own in zip(found, wanted, strict=False)
            for a, b in zip(row, own, strict=True)
        ):
            return False
    return True


def _alike(shown: Any, own: Any) -> bool:
    """The same, to the sixteen digits that a workbook keeps of a number."""
    if isinstance(shown, float) and isinstance(own, float):
        return math.isclose(shown, own, rel_tol=1e-15)
    return bool(shown == own)


def _number(value: Any) -> Any:
    """A number by its value, nothing for none and for no end, and words and days by their text."""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if value in (None, "", "∞", "−∞") else str(value)
    return number if math.isfinite(number) else None
