"""An Excel workbook for publication: a cover sheet with its description, then a sheet a release.

Numbers are numbers, days are days. Every text goes through `tacit.curator.cells.safe_text` and is stored as text: no
cell is a formula, in Excel or in a file saved from it. Without the extra `formats` there is no openpyxl, and it is
refused before anything is charged.
"""

from __future__ import annotations

import datetime
import io
import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tacit.curator import Release
from tacit.curator.cells import GOOD, WORDS, safe_text
from tacit.curator.request import file_stem
from tacit.curator.text import OfficeRules, PublicWords, figures, priced
from tacit.curator.verifying import MOST_ROWS
from tacit.errors import InvalidParameter
from tacit.report.building import about_you, printed
from tacit.report.exports.tables import COVER, FORM, numbered_sheets, sheets

LONGEST = 32_767
"""Letters of a cell."""
LOOKED = 1000
"""Rows of a release by which its digits are chosen."""
ENDS = ("value", "low", "high")


def ready() -> None:
    """Refuse where no workbook can be written; before anything is charged."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise InvalidParameter(
            parameter="exports",
            value="xlsx",
            must="be written with openpyxl",
            hint="pip install 'tacit[formats]'",
        ) from None


def workbook(releases: Sequence[Release], words: PublicWords, *, form: int = FORM) -> bytes:
    """The workbook as bytes, which depend only on the releases and words. Form 1 is that of the first version."""
    ready()
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    made = datetime.datetime.fromisoformat(releases[0].statement["made"]).replace(tzinfo=None, microsecond=0)
    book.properties.creator = safe_text(words.publisher or "tacit")
    book.properties.title = safe_text(words.headline or "Released statistics")
    book.properties.created = made
    named = sheets if form >= FORM else numbered_sheets
    names = named([r.name for r in releases])
    _fill(book.create_sheet(COVER), _cover(releases, words, names), widths=(34, 110), wrap=True)
    for one, name in zip(releases, names, strict=True):
        held = one.columns
        heads = [words.column(n) if n not in ENDS else n for n in held]
        labelled = [c if n in ENDS else words.labelled(n, _plain(c)) for n, c in held.items()]
        quality = one.quality
        if words.rules != OfficeRules() and not one.dated:
            ends = [np.ravel(getattr(one.estimate, n)) for n in ENDS]
            told = printed(one, ends, words.rules)
            shown_ends = dict(zip(ENDS, (told.value, told.low, told.high), strict=True))
            labelled = [
                _whole(shown_ends[n], one) if n in ENDS else c for n, c in zip(held, labelled, strict=True)
            ]
            labels = {f.id: f.label for f in (*told.rule.flags, *told.more)}
            quality = [labels.get(f, WORDS[GOOD]) for f in told.flags]
        rows = zip(*map(_plain, labelled), quality, strict=True)
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        shown = _format(one)
        formats = [shown if n in ENDS else None for n in held]
        widths = (24,) * (len(heads) + 1)
        _fill(sheet, _upto([*heads, "quality"], rows), widths=widths, head=True, formats=formats)
    out = io.BytesIO()
    book.save(out)
    return _settled(out.getvalue(), made)


def _format(release: Release) -> str | None:
    """How Excel shows the values: with the digits of the page. The cells hold all of them."""
    held = [_plain(release.columns[n])[:LOOKED] for n in ENDS]
    known = [row for row in zip(*held, strict=True) if all(_number(v) for v in row)]
    if not known:
        return None
    after = max(len(figures(*row).value.partition(".")[2]) for row in known)
    return "#,##0" + (f".{'0' * after}" if after else "")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _cover(
    releases: Sequence[Release], words: PublicWords, names: Sequence[str]
) -> Iterable[tuple[Any, ...]]:
    first = releases[0].statement
    yield (words.headline or "Released statistics",)
    for one in releases:
        for said in one.corrections:
            yield "DO NOT USE", f"{words.release(one.name)}: {said}"
    for what, told in (("Publisher", words.publisher), ("Period", words.period), ("Contact", words.contact)):
        if told:
            yield what, told
    yield "Made on", str(first["made"])[:10]
    yield "What this says about you", " ".join(about_you(releases[-1].standing[0]))
    if not first["publishable"]:
        yield "NOT FOR PUBLICATION", "The noise came from a seeded source, for a test."
    for seen in dict.fromkeys(d for r in releases for d in r.data.get("seen", ())):
        yield "Known to the ledger", seen
    for given in dict.fromkeys(r.statement["condition"] for r in releases):
        yield "It holds", given
    yield "Protected", first["unit"]
    uncovered = "; ".join(
        dict.fromkeys(t for r in releases for t in r.statement["intervals"]["do_not_cover"])
    )
    levels = " or ".join(dict.fromkeys(f"{float(r.planned.ask.confidence):.4g}" for r in releases))
    yield (
        "Intervals",
        f"low and high are the ends of an interval for the noise, with probability {levels}; they do not cover "
        f"{uncovered}.",
    )
    ruled = (printed(r, [np.ravel(getattr(r.estimate, n)) for n in ENDS], words.rules).rule for r in releases)
    for rule in dict.fromkeys(rule.sentence for rule in ruled):
        yield "Quality", f"{rule}."
    for sentence in words.rules.sentences:
        yield "Printed", sentence
    yield "Plan", first["plan"]["digest"]
    for one, name in zip(releases, names, strict=True):
        cells = len(one.estimate.value.ravel())
        cut = "" if cells <= MOST_ROWS else f" The sheet has the first {MOST_ROWS:,} of {cells:,} cells."
        told = f"{words.release(one.name)}. Price: {priced(one.guarantee)}."
        yield f"Sheet {name}", f"{told} Certificate: certificates/{file_stem(one.name)}.json.{cut}"


def _upto(heads: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    yield tuple(heads)
    for _, row in zip(range(MOST_ROWS), rows, strict=False):
        yield row


def _fill(
    sheet: Any,
    rows: Iterable[tuple[Any, ...]],
    *,
    widths: Sequence[int],
    head: bool = False,
    wrap: bool = False,
    formats: Sequence[str | None] = (),
) -> None:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    for k, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(k)].width = width
    bold, large, wrapped = (
        Font(bold=True),
        Font(bold=True, size=16),
        Alignment(wrap_text=True, vertical="top"),
    )
    for number, row in enumerate(rows):
        cells = []
        for k, value in enumerate(row):
            shown = _cell(value)
            cell = WriteOnlyCell(sheet, value=shown)
            if isinstance(shown, str):
                cell.data_type = "s"
            if head and number == 0:
                cell.font = bold
            elif k < len(formats) and formats[k] is not None and isinstance(shown, int | float):
                cell.number_format = formats[k]
            elif wrap:
                cell.alignment = wrapped
                if k == 0:
                    cell.font = large if number == 0 else bold
            cells.append(cell)
        sheet.append(cells)


def _whole(column: Any, release: Release) -> list[Any]:
    """Numbers in their printed form; counts as whole numbers."""
    whole = release.planned.question.statistic.whole
    return [int(v) if whole and float(v).is_integer() else v for v in np.asarray(column).tolist()]


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _cell(value: Any) -> Any:
    """A number, a day, a flag, or a text that is never a formula; a missing number is an empty cell."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Excel keeps fifteen digits: a longer key is a text, so that it stays itself.
        return value if abs(value) < 10**15 else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("∞" if value > 0 else "−∞")
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) and value.year >= 1900:
        return value
    shown = safe_text(str(value))
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _settled(data: bytes, made: datetime.datetime) -> bytes:
    """The same archive without the clock of anybody who wrote it."""
    stamp = made.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in sorted(source.namelist()):
            body = source.read(name)
            if name == "docProps/core.xml":
                body = re.sub(rb"(<dcterms:modified[^>]*>)[^<]*(<)", rb"\g<1>" + stamp + rb"\g<2>", body)
            entry = zipfile.ZipInfo(name, date_time=max(made.timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, body)
    return out.getvalue()
