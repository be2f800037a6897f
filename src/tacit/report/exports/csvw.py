"""CSVW metadata (W3C, Metadata Vocabulary for Tabular Data, 2015): what the columns of a CSV file are.

It stands beside each file of values as `NAME.csv-metadata.json`, where a reader of CSVW looks for it.
"""

from __future__ import annotations

import datetime
import re
from typing import Any
from urllib.parse import quote

import numpy as np

from tacit.curator import Release
from tacit.curator.certificate import json_text
from tacit.curator.names import file_stem
from tacit.curator.public_words import PublicWords
from tacit.curator.quality import WORDS, rule_of
from tacit.curator.spreadsheet import safe_text

__all__ = ["csvw_text"]

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
    held = release.columns
    columns = []
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
            "datatype": {"base": "string", "format": "|".join(WORDS.values())},
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
    keys = [c["name"] for c in columns[: len(held) - len(NUMBERS)]]
    content["dialect"] = {"header": True, "delimiter": ",", "encoding": "utf-8", "lineTerminators": ["\n"]}
    content["tableSchema"] = {"columns": columns, **({"primaryKey": keys} if keys else {})}
    return json_text(content) + "\n"


def _name(column: str) -> str:
    """A name that CSVW takes: what is no letter of an address is spelled by its bytes, and none begins with a line."""
    name = quote(column, safe="")
    name = re.sub(r"[~.-]", lambda odd: f"%{ord(odd[0]):02X}", name)
    return f"%5F{name[1:]}" if name.startswith("_") else name


def _titles(column: str, words: PublicWords) -> list[str]:
    """The heading as it stands in the file, then the label."""
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
