"""What may stand behind each word of a plan file, as one table; anything else is one sentence that names the word."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from tacit.errors import InvalidParameter, UnknownName
from tacit.sources.axes import bins

__all__ = ["WORDS", "known", "typed"]

Reader = Callable[[str, Any], Any]
MOST_TEXT = 10_000
SMALLEST, LARGEST = 1e-100, 1e100


def _refuse(where: str, value: object, must: str, hint: str = "") -> NoReturn:
    raise InvalidParameter(parameter=where, value=value, must=must, hint=hint)


def text(where: str, value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value or len(value) > MOST_TEXT or "\0" in value:
        _refuse(where, value, "be a text")
    return value


def flag(where: str, value: Any) -> bool:
    """true or false, and nothing that is taken for one of them."""
    if not isinstance(value, bool):
        _refuse(where, value, "be true or false", "without quotes")
    return value


def whole(where: str, value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(where, value, "be a whole number")
    return value


def amount(where: str, value: Any) -> int | float:
    """A finite number of a size that a calculation can go on with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        _refuse(where, value, "be a finite number")
    if value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        _refuse(where, value, f"be of a size between {SMALLEST:g} and {LARGEST:g}")
    return value


def shares(where: str, value: Any) -> list[int | float]:
    """A list of numbers."""
    if not isinstance(value, list):
        _refuse(where, value, "be a list of numbers", "at = [0.25, 0.5, 0.75]")
    return [amount(where, v) for v in value]


def widths(where: str, value: Any) -> Any:
    """A number, or a list of them."""
    return shares(where, value) if isinstance(value, list) else amount(where, value)


def edges(where: str, value: Any) -> Any:
    """A number of bins, or their edges: numbers, or days."""
    if isinstance(value, list):
        return [_scalar(where, v) for v in value]
    return whole(where, value)


def names(where: str, value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list):
        _refuse(where, value, "be a list of columns", 'partitions = ["state"]')
    return [text(where, v) for v in value]


def paths(where: str, value: Any) -> str | list[str]:
    """A name, or a list of them: files, or columns of a join."""
    return [text(where, v) for v in value] if isinstance(value, list) else text(where, value)


def words(where: str, value: Any) -> list[str]:
    """A list of texts, which may be empty."""
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        _refuse(where, value, "be a list of words", 'missing = ["NA"]')
    return value


def columns(where: str, value: Any) -> list[Any]:
    """Names of columns, or tables { column = "age", bins = [0, 18, 65] }; one, or a list of them."""
    out: list[Any] = []
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping):
            known(f"word of a column in {where}", entry, ("bins", "column"))
            name = text(f"{where}: column", entry.get("column"))
            out.append(bins(name, edges(f"{where}: bins", entry.get("bins", 10))))
        else:
            out.append(text(where, entry))
    return out


def parents(where: str, value: Any) -> dict[str, str | None]:
    """A table from each key to what contains it; the top is contained in "" (TOML has no word for nothing)."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", 'parents = { north = "nation", nation = "" }')
    return {child: None if parent == "" else text(where, parent) for child, parent in value.items()}


def patterns(where: str, value: Any) -> list[dict[str, Any]]:
    """A list of tables from columns to a value or a list of values."""
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        _refuse(where, value, "be a list of tables", 'impossible = [{ sex = "male", pregnant = true }]')
    return [
        {
            k: [_scalar(where, i) for i in v] if isinstance(v, list) else _scalar(where, v)
            for k, v in one.items()
        }
        for one in value
    ]


def _scalar(where: str, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(where, value, "be finite")
    if not isinstance(value, str | int | float | datetime.date):
        _refuse(where, value, "be a text, a number or a day")
    return value


def assumed(where: str, value: Any) -> Any:
    """A table of what is given, or "always"."""
    if not isinstance(value, Mapping) and (not isinstance(value, str) or value != "always"):
        _refuse(where, value, 'be a table, or "always"', "given = { random_data = 0.05, rows = 8000 }")
    return value


WORDS: dict[str, Reader] = {
    "analyst": text,
    "another": flag,
    "at": shares,
    "at_most": whole,
    "bandwidth": widths,
    "bins": edges,
    "by": columns,
    "column": text,
    "columns": columns,
    "confidence": amount,
    "consistent": flag,
    "dates": text,
    "decimal": text,
    "delta": amount,
    "denominator": text,
    "encoding": text,
    "engine": text,
    "epsilon": amount,
    "gamma": amount,
    "given": assumed,
    "groups": whole,
    "guarantee": text,
    "impossible": patterns,
    "intercept": amount,
    "interval": amount,
    "kernel": text,
    "kind": text,
    "label": text,
    "loss": text,
    "memory": text,
    "missing": words,
    "mu": amount,
    "multiline": flag,
    "name": text,
    "neighbours": text,
    "numerator": text,
    "of": text,
    "on": paths,
    "order": whole,
    "outcome": text,
    "pairs": whole,
    "parents": parents,
    "partitions": names,
    "path": paths,
    "pattern": flag,
    "penalty": amount,
    "points": whole,
    "public": flag,
    "resolution": whole,
    "rho": amount,
    "rows": whole,
    "sampling": flag,
    "separator": text,
    "sheet": text,
    "simultaneous": flag,
    "size": whole,
    "table": text,
    "target": amount,
    "unit": text,
    "version": text,
    "view": text,
    "weight": amount,
    "where": text,
    "within": amount,
}
"""Every word of every table but the schema's, which has a reader of its own. One word means one thing."""

_HERE: dict[tuple[str, str], Reader] = {("quantile", "at"): amount}
"""Where a word means something else: one share, where other kinds take a list."""


def known(what: str, given: Any, words: tuple[str, ...], *, own: Iterable[str] = ()) -> None:
    """Refuse what is no table, and a word that is not in the closed list, with the nearest one that is.

    `own` are the words that belong to this table alone, which are listed: the nearest may be another's.
    """
    if not isinstance(given, Mapping):
        _refuse(what, type(given).__name__, "be a table")
    for word in given:
        if word not in words:
            found = UnknownName(what=what, name=str(word), known=words)
            if not own:
                raise found
            near = f"did you mean {found.nearest!r}? " if found.nearest else ""
            raise UnknownName(
                what=what,
                name=str(word),
                known=words,
                hint=f"{near}it takes {', '.join(own)}, and words of every release",
            )


def typed(where: str, given: Mapping[str, Any], *, kind: str = "") -> dict[str, Any]:
    """The table with every value read as what its word stands for."""
    return {
        word: _HERE.get((kind, word), WORDS[word])(f"{where} {word}", value) for word, value in given.items()
    }
