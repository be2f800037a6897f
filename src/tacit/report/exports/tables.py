"""SDMX-CSV 2.0 with names beside codes: a row an observation, its keys as dimensions, the interval as attributes.

A code is a function of its key alone, so that a series keeps its code when others change.
`_T` is the total (a table without that column), `_U` a missing key. TIME_PERIOD is the period
of the plan's [report] if SDMX knows that form (2024, 2024-Q1, 2024-03, 2024-03-31, 2024-W05).
Each row of a withdrawn or replaced release has a COMMENT_OBS, and no other row has one. The code list of
OBS_STATUS has no code for that, so such a row gets the code for low reliability and never that of a normal
value.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from tacit.curator import Release
from tacit.curator.cells import ABSENT, ALL, CARE, GOOD, NOISY, UNJUDGED, WORDS, rule_of, safe_text
from tacit.curator.certificate import json_text
from tacit.curator.release import MEASURED
from tacit.curator.request import file_stem
from tacit.curator.text import PublicWords
from tacit.errors import InvalidParameter

# Codes of keys, ids of columns and names of sheets: each a function of its own text and of nothing else.
#
# A series that is loaded by its code must find the same key in the next version, whatever other keys that version
# has, and in whatever order. So nothing is numbered. With t the exact text of a key:
#
#     plain    t is made of letters, digits, - and single blanks or _ between them, begins with a letter or digit, has
#     at
#              most 60 characters and does not look like the other form: its code is t with `__` for each blank
#     other    the letters and digits of t with _ between them, then `_x` and 16 hexadecimal digits of the SHA-256 of t
#
# Two plain texts have two codes: a run of one _ is a _, a run of two is a blank. No plain code looks like the other
# form (`_x` and 16 digits at the end), and two other codes are equal only if the digits are: that is refused, and the
# chance for n keys is about n^2 / 2^65. Ids of columns and dataflows are the codes of lower-case texts in upper case;
# a text with a capital in it, and one that is reserved, is of the other form.
#
# Form 1, which is kept to check what it wrote, numbered the codes that fell together in the order of one release's
# keys.

FORM = 2
"""How exports are written now."""
LONGEST, KEPT = 60, 40
LONGEST_SHEET = 31
COVER = "About"
_PLAIN = re.compile(r"-?[0-9]+|[A-Za-z0-9][A-Za-z0-9-]*(?:[ _][A-Za-z0-9-]+)*")
_OTHER = re.compile(r".*_x[0-9a-f]{16}", re.IGNORECASE | re.DOTALL)
_SHEET = re.compile(r".* [0-9a-f]{8}", re.DOTALL)
_ODD = re.compile(r"[\[\]:*?/\\]")


def key_text(key: Any) -> str:
    """A key as exact text."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def digits_of(text: str, count: int) -> str:
    """This many hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:count]


def code_of(text: str) -> str:
    """The code of a key that is not missing."""
    if len(text) <= LONGEST and _PLAIN.fullmatch(text) and not _OTHER.fullmatch(text):
        return text.replace(" ", "__")
    slug = "_".join(re.findall(r"[A-Za-z0-9]+", text))[:KEPT]
    return f"{slug}_x{digits_of(text, 16)}"


def id_of(text: str, taken: Sequence[str] = ()) -> str:
    """The id of a column or a dataflow."""
    code = code_of(text).upper()
    if text == text.lower() and not _OTHER.fullmatch(code) and code not in taken:
        return code
    slug = "_".join(re.findall(r"[A-Za-z0-9]+", text))[:KEPT]
    return f"{slug}_x{digits_of(text, 16)}".upper()


def codes(keys: Sequence[Any], *, total: Any = None) -> dict[Any, str]:
    """The code of each key: `_U` for a missing one, `_T` for the total."""
    special = {None: "_U", **({} if total is None else {total: "_T"})}
    return _each(keys, lambda key: special[key] if key in special else code_of(key_text(key)))


def ids(names: Sequence[str], *, taken: Sequence[str]) -> list[str]:
    """The ids of columns."""
    return list(_each(names, lambda name: id_of(name, taken)).values())


def sheet_name(name: str) -> str:
    """A name that Excel takes: at most 31 letters, none of []:*?/\\."""
    base = _ODD.sub("-", safe_text(name)).strip("' ")
    reserved = base.casefold() in (COVER.casefold(), "history")
    if base == name and len(base) <= LONGEST_SHEET and not reserved and not _SHEET.fullmatch(base):
        return base
    return f"{base[: LONGEST_SHEET - 9].rstrip()} {digits_of(name, 8)}".strip()


def sheets(names: Sequence[str]) -> list[str]:
    """The names of all sheets; Excel ignores the case of letters."""
    if len(set(names)) < len(names):
        raise InvalidParameter(
            parameter="releases", value=len(names), must="have different names in one workbook",
            hint="give each release a name of its own: tacit.query(..., name='...')",
        )  # fmt: skip
    return list(_each(names, sheet_name, alike=str.casefold).values())


def _each(
    keys: Sequence[Any], name: Callable[[Any], str], *, alike: Callable[[str], str] = str
) -> dict[Any, str]:
    """A name for each key; refuses two equal ones."""
    found = {key: name(key) for key in keys}
    if len({alike(code) for code in found.values()}) < len(found):
        raise InvalidParameter(
            parameter="exports", value="two keys, columns or releases", must="have different codes",
            hint="their digests fall together; release without this export, which is free",
        )  # fmt: skip
    return found


# --- form 1 -----------------------------------------------------------------------------------------------
def numbered(
    keys: Sequence[Any], *, upper: bool = False, total: Any = None, taken: Sequence[str] = ()
) -> list[str]:
    """Codes of form 1: equal codes got a number, in the order of the keys."""
    found: list[str] = []
    used = set(taken)
    for key in keys:
        base = "_U" if key is None else "_T" if total is not None and key == total else _first(key)
        base = base.upper() if upper else base
        code, number = base, 2
        while code in used:
            code, number = f"{base}_{number}", number + 1
        used.add(code)
        found.append(code)
    return found


def _first(key: Any) -> str:
    code = re.sub(r"[^A-Za-z0-9_-]+", "_", safe_text(key_text(key)))
    plain = re.fullmatch(r"-?\d+", code) is not None
    return code if plain or re.match(r"[A-Za-z0-9_]", code) else f"_{code.lstrip('-')}"


def numbered_sheets(names: Sequence[str]) -> list[str]:
    """Names of sheets of form 1: equal names got a number, in the order of the releases."""
    used, found = {COVER.casefold(), "history"}, []
    for name in names:
        base = _ODD.sub("-", safe_text(name)).strip("' ") or "release"
        shown, number = base[:31].rstrip("' "), 2
        while shown.casefold() in used:
            tail = f" {number}"
            shown, number = base[: 31 - len(tail)].rstrip("' ") + tail, number + 1
        used.add(shown.casefold())
        found.append(shown)
    return found


# CSVW metadata (W3C, Metadata Vocabulary for Tabular Data, 2015): what the columns of a CSV file are.
#
# It stands beside each file of values as `NAME.csv-metadata.json`, where a reader of CSVW looks for it.

NUMBERS = ("value", "low", "high")
# No number, and no end of an interval: CSVW has no word for what Python writes.
NULLS = ["", "nan", "inf", "-inf"]


def csvw_text(release: Release, words: PublicWords) -> str:
    """The metadata of one file of values, as JSON."""
    level = float(release.planned.ask.confidence)
    told = {
        "value": "the released value, with noise",
        "low": f"lower end of the interval ({level:.4g}) for the noise",
        "high": f"upper end of the interval ({level:.4g}) for the noise",
    }
    held = release.file_columns
    columns = []
    if release.measured is not None:
        told[MEASURED] = (
            "the noisy measurement before areas were made to agree; whole numbers, which may be negative"
        )
    for name, column in held.items():
        one: dict[str, Any] = {
            "name": _name(name),
            "titles": _titles(name, words),
            "datatype": _datatype(column),
        }
        if name in told:
            one |= {"dc:description": told[name], "null": NULLS}
        columns.append(one)
    columns.append(
        {
            "name": "quality", "titles": ["quality"], "dc:description": f"{rule_of(release).sentence}.",
            "datatype": {"base": "string", "format": "|".join(rule_of(release).vocabulary)},
        }
    )  # fmt: skip
    stem = file_stem(release.name)
    content: dict[str, Any] = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": quote(f"{stem}.csv"),
        "dc:title": words.release(release.name),
        "dc:source": f"certificates/{stem}.json",
        "dc:modified": {"@value": str(release.statement["made"])[:10], "@type": "xsd:date"},
    }
    if release.corrections:
        content["dc:description"] = release.correction
    if words.publisher:
        content["dc:publisher"] = {"schema:name": words.publisher}
    if words.period:
        content["dc:temporal"] = words.period
    if words.contact:
        content["dcat:contactPoint"] = {"schema:name": words.contact}
    keys = [c["name"] for c in columns[: len(release.columns) - len(NUMBERS)]]
    content["dialect"] = {"header": True, "delimiter": ",", "encoding": "utf-8", "lineTerminators": ["\n"]}
    content["tableSchema"] = {"columns": columns, **({"primaryKey": keys} if keys else {})}
    return json_text(content) + "\n"


def _name(column: str) -> str:
    """A name that CSVW accepts: a character that no address may hold is spelled by its bytes, and no name begins with
    a line.
    """
    name = quote(column, safe="")
    name = re.sub(r"[~.-]", lambda odd: f"%{ord(odd[0]):02X}", name)
    return f"%5F{name[1:]}" if name.startswith("_") else name


def _titles(column: str, words: PublicWords) -> list[str]:
    """The heading of the file, then the label."""
    return list(dict.fromkeys([safe_text(column), words.column(column)]))


def _datatype(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return "integer" if np.issubdtype(column.dtype, np.integer) else "double"
    kinds = {type(v.item() if isinstance(v, np.generic) else v) for v in column} - {type(None)}
    if kinds == {bool}:
        return {"base": "boolean", "format": "True|False"}
    if kinds == {int}:
        return "integer"
    if kinds and kinds <= {int, float}:
        return "double"
    if kinds and all(issubclass(k, datetime.datetime) for k in kinds):
        return "string"
    return "date" if kinds and all(issubclass(k, datetime.date) for k in kinds) else "string"


AGENCY = "TACIT"
# Of the code list CL_OBS_STATUS: normal, low reliability, missing.
STATUS = {WORDS[GOOD]: "A", WORDS[CARE]: "U", WORDS[NOISY]: "U", WORDS[ABSENT]: "O", WORDS[UNJUDGED]: "A"}
GONE = {"A": "U"}
PERIOD = re.compile(
    r"\d{4}(-(A1|S[12]|T[123]|Q[1-4]|M?(0[1-9]|1[0-2])|W\d\d|(0[1-9]|1[0-2])-([0-2]\d|3[01])))?"
)
TAKEN = (
    "STRUCTURE", "STRUCTURE_ID", "ACTION", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "CONF_LOW", "CONF_HIGH",
    "CONF_LEVEL", "QUALITY", "COMMENT_OBS",
)  # fmt: skip


def sdmx_text(release: Release, words: PublicWords, *, form: int = FORM) -> str:
    """One release as SDMX-CSV; empty if it has no number, or an interval without an end.

    Form 1 is that of the first version, for comparing.
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
    """The heading of a column of names, which never equals that of a column of codes or of numbers."""
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
