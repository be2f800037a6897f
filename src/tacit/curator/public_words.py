"""The words of a report: who publishes what, and what columns and keys are called for people.

    [report]
    title = "Hospital stays"
    publisher = "Office of Statistics"
    period = "2024"
    contact = "desk@example.org"
    exports = ["xlsx"]

    [report.columns]
    region = "Region of residence"

    [report.keys.region]
    N = "North"

    [report.releases]
    "stays by region" = "Stays by region of residence"

They are public words that the custodian writes. No number and no promise depends on them, so they are no part of the
plan's digest: a better label is no new plan, and pays for nothing. What binds them is the manifest, which has the
digest of plan.toml and of every page and file that shows them (docs/decisions/0018-words-of-a-report.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tacit.curator.cells import TAKEN, label
from tacit.errors import InvalidParameter, UnknownName
from tacit.sources.schema import Category, Flag, Schema

__all__ = ["EXPORTS", "PublicWords", "exports_of", "words_in"]

EXPORTS = ("sdmx", "xlsx")
"""What can be written beside values, certificates and page; CSVW metadata always stand beside a CSV file."""
LONGEST = 500
MADE = ("bound", "level", "share")
"""Columns that a release makes: which bound, which level of a hierarchy, which share of the rows."""
_TEXTS = ("title", "publisher", "period", "contact")
_TABLES = ("columns", "releases")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicWords:
    """What a report calls things. Columns, keys and releases without a label keep their own names.

    Keys are spelled as they stand in the files: `true`, `2020`, `N`.
    """

    title: str = ""
    publisher: str = ""
    period: str = ""
    contact: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    releases: Mapping[str, str] = field(default_factory=dict)
    exports: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _TEXTS:
            if (held := getattr(self, name)) != "":
                _label(name, held)
        for name in _TABLES:
            object.__setattr__(self, name, _labels(name, getattr(self, name)))
            if len(set(getattr(self, name).values())) < len(getattr(self, name)):
                _refuse(name, "be labels that differ")
        if not isinstance(self.keys, Mapping):
            _refuse("keys", "be tables of labels, one a column")
        object.__setattr__(
            self, "keys", {str(c): _labels(f"keys.{c}", held) for c, held in self.keys.items()}
        )
        object.__setattr__(self, "exports", exports_of(self.exports))

    def column(self, name: str) -> str:
        """What a column is called; one that was renamed beside `value` keeps its label."""
        base = name.rstrip("_").removesuffix("_key")
        return self.columns.get(name, self.columns.get(base, name) if base in TAKEN else name)

    def key(self, column: str, key: Any) -> Any:
        """What a key is called; the key itself where it has no label."""
        held = self.keys.get(column)
        return key if held is None else held.get(_spelled(label(key)), key)

    def labelled(self, column: str, keys: Sequence[Any]) -> list[Any]:
        """What keys of one column are called: different keys stay different, whatever they are called."""
        if column not in self.keys:
            return list(keys)
        named = {key: self.key(column, key) for key in dict.fromkeys(keys)}
        taken = Counter(map(_spelled, named.values()))
        return [
            named[k] if taken[_spelled(named[k])] == 1 else f"{named[k]} ({_spelled(label(k))})" for k in keys
        ]

    def release(self, name: str) -> str:
        """What a release is called."""
        return self.releases.get(name, name)

    def check(self, schema: Schema, releases: Iterable[str]) -> None:
        """Refuse labels of what is not declared: by the declarations alone, before anything is paid."""
        for column in (*self.columns, *self.keys):
            if column not in schema and column not in MADE:
                raise UnknownName(what="column in [report]", name=column, known=[*schema, *MADE])
        for column, labels in self.keys.items():
            known = _known(schema, column)
            for key in labels:
                if known is not None and key not in known:
                    raise UnknownName(what=f"key of {column} in [report]", name=key, known=known)
        names = list(releases)
        for name in self.releases:
            if name not in names:
                raise UnknownName(what="release in [report]", name=name, known=names)


def _known(schema: Schema, column: str) -> list[str] | None:
    """The declared keys of a column; None where they are not listed."""
    if column in schema:
        declared = schema[column]
        if isinstance(declared, Flag):
            return ["false", "true"]
        if isinstance(declared, Category) and declared.values is not None:
            return [_spelled(v) for v in declared.values]
    return None


def words_in(table: Any) -> PublicWords:
    """The words of a plan's [report]."""
    if not isinstance(table, Mapping):
        _refuse("[report]", "be a table")
    known = [f.name for f in fields(PublicWords)]
    for word in table:
        if word not in known:
            raise UnknownName(what="word in [report]", name=str(word), known=known)
    return PublicWords(**table)


def exports_of(given: Any) -> tuple[str, ...]:
    """The names of exports, each once: a list, or a text with commas between."""
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    if not isinstance(given, list | tuple):
        _refuse("exports", "be a list of names")
    for name in given:
        if name not in EXPORTS:
            raise UnknownName(what="export", name=str(name), known=EXPORTS)
    return tuple(dict.fromkeys(given))


def _spelled(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _labels(name: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        _refuse(name, "be a table of labels")
    return {_spelled(key): _label(f"{name}.{key}", told) for key, told in given.items()}


def _label(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST or not given.isprintable():
        _refuse(name, f"be a text of one line and at most {LONGEST} letters")
    return str(given)


def _refuse(name: str, must: str) -> Any:
    where = name if name.startswith("[") else f"[report] {name}"
    raise InvalidParameter(parameter=where, value=None, must=must)
