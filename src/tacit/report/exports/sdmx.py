"""SDMX-CSV 2.0 with names beside codes: a row an observation, its keys as dimensions, the interval as attributes.

A code is a function of its key alone (`codes.py`), so that a series that is loaded by its code stays that of its key.
`_T` is the total (a table that does not tell a column apart), `_U` a key that is missing. TIME_PERIOD is the period of
the plan's [report] where it is one that SDMX knows (2024, 2024-Q1, 2024-03, 2024-03-31, 2024-W05).
COMMENT_OBS stands in each row of a release that was withdrawn or replaced, and only there; the code list of OBS_STATUS
has no word for that, so that such a row has the one for low reliability and never that of a normal value.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.curator import Release
from tacit.curator.cells import ALL
from tacit.curator.names import file_stem
from tacit.curator.public_words import PublicWords
from tacit.curator.quality import ABSENT, CARE, GOOD, NOISY, WORDS
from tacit.curator.spreadsheet import safe_text
from tacit.report.exports.codes import FORM, codes, id_of, ids, key_text, numbered

__all__ = ["sdmx_text"]

AGENCY = "TACIT"
# Of the code list CL_OBS_STATUS: normal, low reliability, missing.
STATUS = {WORDS[GOOD]: "A", WORDS[CARE]: "U", WORDS[NOISY]: "U", WORDS[ABSENT]: "O"}
GONE = {"A": "U"}
PERIOD = re.compile(
    r"\d{4}(-(A1|S[12]|T[123]|Q[1-4]|M?(0[1-9]|1[0-2])|W\d\d|(0[1-9]|1[0-2])-([0-2]\d|3[01])))?"
)
TAKEN = (
    "STRUCTURE", "STRUCTURE_ID", "ACTION", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "CONF_LOW", "CONF_HIGH",
    "CONF_LEVEL", "QUALITY", "COMMENT_OBS",
)  # fmt: skip


def sdmx_text(release: Release, words: PublicWords, *, form: int = FORM) -> str:
    """One release as SDMX-CSV; empty where there is no number or an interval has no end.

    Form 1 is what the first version wrote, for comparing.
    """
    held = release.columns
    keys = [n for n in held if n not in ("value", "low", "high")]
    named = ids(keys, taken=TAKEN) if form >= FORM else numbered(keys, upper=True, taken=TAKEN)
    period = words.period if PERIOD.fullmatch(words.period) else ""
    heads = ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
    for name, id in zip(keys, named, strict=True):
        heads += [id, _head(words.column(name)) if form >= FORM else safe_text(words.column(name))]
    heads += ["TIME_PERIOD"] if period else []
    heads += ["OBS_VALUE", "OBS_STATUS", "CONF_LOW", "CONF_HIGH", "CONF_LEVEL", "QUALITY"]
    comment = [safe_text(release.correction)] if release.corrections else []
    heads += ["COMMENT_OBS"] if comment else []
    columns: list[Sequence[Any]] = []
    totals = release.planned.question.statistic.layout in ("tables", "levels")
    for name in keys:
        shown = {k: words.key(name, k) for k in dict.fromkeys(held[name])}
        total = ALL if totals else None
        if form >= FORM:
            coded = codes(list(shown), total=total)
        else:
            coded = dict(zip(shown, numbered(list(shown), total=total), strict=True))
        columns += [[coded[k] for k in held[name]], [_named(shown[k]) for k in held[name]]]
    quality = release.quality
    columns += [[period] * len(quality)] if period else []
    columns += [
        _numbers(held["value"]),
        [GONE.get(STATUS[q], STATUS[q]) if comment else STATUS[q] for q in quality],
        _numbers(held["low"]),
        _numbers(held["high"]),
    ]
    level = f"{float(release.planned.ask.confidence):.6g}"
    stem = file_stem(release.name)
    flow = id_of(stem) if form >= FORM else numbered([stem], upper=True)[0]
    structure = f"{AGENCY}:{flow}(1.0)"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    for i, row in enumerate(zip(*columns, strict=True)):
        writer.writerow(["dataflow", structure, "I", *row, level, quality[i], *comment])
    return out.getvalue()


def _named(key: Any) -> str:
    if key is None:
        return "missing"
    return safe_text(key_text(key))


def _head(label: str) -> str:
    """The heading of a column of names: never that of a column of codes or of numbers."""
    shown = safe_text(label)
    return f"{shown} (name)" if re.fullmatch(r"[A-Z0-9_-]+", shown) else shown


def _numbers(column: Any) -> list[Any]:
    """Numbers by their shortest text, days as days, and nothing for no number and no end."""
    return [
        ""
        if v is None or (isinstance(v, float) and not np.isfinite(v))
        else repr(v)
        if isinstance(v, float)
        else v
        for v in (column.tolist() if isinstance(column, np.ndarray) else column)
    ]
