"""Files for other programs: an Excel workbook, SDMX-CSV, and CSVW metadata, made from releases and public words only.

    from tacit.report.exports import write_workbook

    write_workbook("stays.xlsx", releases, words=PublicWords(title="Hospital stays"))

Everything is post-processing of the release; the same releases and words give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.curator import Release
from tacit.curator.request import file_stem
from tacit.curator.text import PublicWords, exports_of
from tacit.curator.verifying import WORKBOOK
from tacit.report.exports.tables import csvw_text, sdmx_text
from tacit.report.exports.workbook import ready, workbook

__all__ = ["WORKBOOK", "csvw_text", "export_files", "ready", "sdmx_text", "workbook", "write_workbook"]


def export_files(
    releases: Sequence[Release], *, words: PublicWords | None = None, exports: Sequence[str] = ()
) -> dict[str, bytes]:
    """The files by their names, to be written beside values and certificates: CSVW metadata always, the others on
    request.
    """
    words = words or PublicWords()
    found: dict[str, bytes] = {}
    for one in releases:
        stem = file_stem(one.name)
        found[f"values/{stem}.csv-metadata.json"] = csvw_text(one, words).encode()
        if "sdmx" in exports:
            found[f"sdmx/{stem}.csv"] = sdmx_text(one, words).encode()
    if "xlsx" in exports_of(exports):
        found[WORKBOOK] = workbook(releases, words)
    return found


def write_workbook(
    path: str | Path, releases: Sequence[Release], *, words: PublicWords | None = None
) -> Path:
    """An Excel workbook for publication: a cover sheet, then a sheet a release."""
    place = Path(path)
    place.write_bytes(workbook(releases, words or PublicWords()))
    return place
