"""Other spellings of a text file that is almost empty under the declared words. PRIVATE.

A release never guesses settings. The custodian, who has seen the data by then, reads the proposals here and may write
them into the plan. Each proposal names the words of `[data]` and the share of texts that they would read.
"""

from __future__ import annotations

import codecs
import gzip
import heapq
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from tacit.exact.data_classes import dataclass
from tacit.guarantees import People
from tacit.sources import error_boundary
from tacit.sources.axes import Axis, Listed, OpenAxis
from tacit.sources.columns import Category, Column, Date, Flag, Measured
from tacit.sources.compiling import Reader
from tacit.sources.opening.files import SEPARATORS, TEXT, Files
from tacit.sources.opening.textfiles import names_in
from tacit.sources.query import Aggregation
from tacit.sources.schema import category
from tacit.sources.tables import Table, open_table, people_of

# What the custodian sees of their own rows, against what was declared. PRIVATE: exact numbers, for nobody else.
#
# Nothing on the road of a release calls this. The mark that somebody looked is written before (`tacit.ledger.looks`);
# what is found here goes to the caller and nowhere else. Each column is one pass of the engine.

MOST_OUT_OF_DOMAIN = 8
LARGEST = 1e300
MANY = 2_000
"""Longer lists of keys are not written into a query."""
EXACTLY = 2_000_000
"""Up to this many rows people are counted exactly in all cells."""
ORDINARY = 5
"""The number of the smallest cells that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSeen:
    """One declared column: the numbers of rows that are missing, outside, or out of reach of the declaration.

    `missing` are rows without a readable value. `out_of_domain` are the commonest values
    outside of the declared keys.
    """

    name: str
    rows: int
    missing: int = 0
    below: int = 0
    above: int = 0
    outside: int = 0
    mean: float | None = None
    clamped_mean: float | None = None
    unused: int = 0
    out_of_domain: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSeen:
    """The number of rows of each person, compared with the declared limit."""

    rows: int
    people: int
    nobody: int
    most: int
    beyond: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsSeen:
    """The cells of one question: the number of occupied cells, and the smallest of them, by rows and by people.

    `sizes` are the sizes of all occupied cells, in the unit's own terms, rising.
    """

    occupied: int
    sizes: tuple[int, ...]
    smallest: tuple[tuple[str, int], ...]
    of: str


def column_seen(table: Table, name: str) -> ColumnSeen:
    """One column compared with its declaration."""
    column = table.schema[name]
    return _keys(table, name, column) if isinstance(column, Category) else _numbers(table, name, column)


def _numbers(table: Table, name: str, column: Column) -> ColumnSeen:
    import ibis

    relation, reader = _read(table)
    x = reader.stored(name)
    if x.type().is_floating():
        x = ibis.ifelse(x.isnan(), ibis.null(x.type()), x)
    wanted: dict[str, Any] = {"rows": relation.count(), "read": x.count()}
    if isinstance(column, Measured) and column.bounded and not isinstance(column, Flag):
        low, high = column.low, column.high  # type: ignore[attr-defined]
        ends = (ibis.literal(low), ibis.literal(high)) if isinstance(column, Date) else (low, high)
        wanted |= {"below": (x < ends[0]).sum(), "above": (x > ends[1]).sum()}
        y = reader.clean(name)
        if isinstance(column, Date):
            x, y = table.dialect.days(x), table.dialect.days(y)
        x, y = x.cast("float64"), y.cast("float64")
        wanted |= {"mean": x.mean(where=x.abs() < LARGEST), "clamped": y.mean()}
    found = _one(table, relation.aggregate(**wanted))
    return ColumnSeen(
        name=name,
        rows=found["rows"],
        missing=found["rows"] - found["read"],
        below=found.get("below") or 0,
        above=found.get("above") or 0,
        mean=found.get("mean"),
        clamped_mean=found.get("clamped"),
    )


def _keys(table: Table, name: str, column: Category) -> ColumnSeen:
    import ibis

    relation, reader = _read(table)
    x = reader.stored(name)
    if column.values is None:
        found = _one(table, relation.aggregate(rows=relation.count(), read=x.count()))
        return ColumnSeen(name=name, rows=found["rows"], missing=found["rows"] - found["read"])
    # Values are counted first and compared with the list afterwards: each once, and not in every row.
    counts = relation.group_by(k=x).aggregate(n=relation.count())
    if len(column.values) > MANY:
        return _many_keys(table, name, column.values, counts)
    listed = counts.k.isin(column.values)
    wanted = {
        "rows": counts.n.sum(),
        "missing": counts.n.sum(where=counts.k.isnull()),
        "inside": counts.n.sum(where=listed),
        "used": counts.count(where=listed),
    }
    found = {key: int(value or 0) for key, value in _one(table, counts.aggregate(**wanted)).items()}
    outside = found["rows"] - found["missing"] - found["inside"]
    out_of_domain: tuple[tuple[str, int], ...] = ()
    if outside:
        top = (
            counts.filter(counts.k.notnull() & ~listed)
            .order_by(ibis.desc("n"), "k")
            .limit(MOST_OUT_OF_DOMAIN)
        )
        out_of_domain = tuple((str(c["k"]), c["n"]) for c in _all(table, top))
    return ColumnSeen(
        name=name, rows=found["rows"], missing=found["missing"], outside=outside,
        unused=len(column.values) - found["used"], out_of_domain=out_of_domain,
    )  # fmt: skip


def _many_keys(table: Table, name: str, values: Sequence[Any], counts: Any) -> ColumnSeen:
    """The same for a list that is too long for a query: values are compared on arrival."""
    known, used, inside, missing, rows = set(values), 0, 0, 0, 0
    others: list[tuple[int, str]] = []
    for cell in _all(table, counts):
        n, key = int(cell["n"]), cell["k"]
        rows += n
        if key is None:
            missing += n
        elif key in known:
            used, inside = used + 1, inside + n
        else:
            others.append((-n, str(key)))
    out_of_domain = tuple((word, -n) for n, word in heapq.nsmallest(MOST_OUT_OF_DOMAIN, others))
    return ColumnSeen(
        name=name, rows=rows, missing=missing, outside=rows - missing - inside, unused=len(known) - used,
        out_of_domain=out_of_domain,
    )  # fmt: skip


def people_seen(table: Table) -> PeopleSeen | None:
    """Rows a person; None if rows are protected."""
    unit = people_of(table.unit)
    if unit is None:
        return None
    import ibis

    relation = table.relation
    person = relation[unit.column]
    each = relation.group_by(person=person).aggregate(n=relation.count())
    known = each.person.notnull()
    found = _one(
        table,
        each.aggregate(
            rows=each.n.sum(),
            people=each.count(where=known),
            nobody=each.n.sum(where=~known),
            most=each.n.max(where=known),
            beyond=each.count(where=known & (each.n > unit.at_most)),
            dropped=ibis.greatest(each.n - unit.at_most, 0).sum(where=known),
        ),
    )
    return PeopleSeen(**{name: int(value or 0) for name, value in found.items()})


def cells_seen(
    table: Table, request: Aggregation, *, rows: int, shown: Sequence[Axis] | None = None
) -> CellsSeen | None:
    """The number of cells with rows or people of a question; None if it has no cells.
    `rows` is the number of rows of the table.

    `shown` are the axes of the answer, if the request has further ones: the ranges behind a quantile are not
    part of the answer. A row is in a cell if any aggregate counts it; for a proportion, whether or not it
    passes the test.
    """
    axes = request.axes
    if shown is not None and tuple(shown) == axes[: len(shown)]:
        axes = tuple(shown)
    if not axes or (request.sparse and axes == request.axes):
        return None
    relation, reader = _read(table)
    masks = [reader.mask(one) for one in request.aggregates]
    behind = [reader.key(axis, declared=False).notnull() for axis in request.axes[len(axes) :]]
    counted = [] if any(m is None for m in masks) else [reduce(or_, masks)]
    if counted or behind:
        relation = relation.filter([*counted, *behind])
        reader = Reader(relation, table.schema, person=table.person, engine=table.dialect)
    keys = _keys_of(reader, axes)
    sizes = _sizes(table, relation, keys, axes, exactly=rows <= EXACTLY)
    if rows > EXACTLY and table.person is not None and sizes:
        # Of a long table people are counted approximately, and those of the smallest cells once more.
        few = sizes[:ORDINARY]
        kept = relation.filter(_any_of(keys, [key for _, key in few]))
        again = Reader(kept, table.schema, person=table.person, engine=table.dialect)
        counted = _sizes(table, kept, _keys_of(again, axes), axes, exactly=True)
        sizes = sorted([*counted, *sizes[ORDINARY:]], key=_rising)
    words = tuple((_label(axes, key), n) for n, key in sizes[:ORDINARY])
    of = "people" if isinstance(people_of(table.unit), People) else "rows"
    return CellsSeen(occupied=len(sizes), sizes=tuple(n for n, _ in sizes), smallest=words, of=of)


Sizes = list[tuple[int, tuple[Any, ...]]]


def _keys_of(reader: Reader, axes: Sequence[Axis]) -> dict[str, Any]:
    """The keys of a row; those outside of lists are left out of the groups, and not of every row."""
    return {f"k{i}": reader.key(axis, declared=False) for i, axis in enumerate(axes)}


def _sizes(
    table: Table, relation: Any, keys: Mapping[str, Any], axes: Sequence[Axis], *, exactly: bool
) -> Sizes:
    size = relation.count()
    if table.person is not None:
        who = relation[table.person]
        size = who.nunique() if exactly else who.approx_nunique()
    grouped = relation.group_by(**keys).aggregate(n=size)
    for name, axis in zip(keys, axes, strict=True):
        key = grouped[name]
        short = isinstance(axis, Listed) and len(axis.values) <= MANY
        grouped = grouped.filter(key.isin(axis.values) if short else key.notnull())  # type: ignore[attr-defined]
    found = [(int(cell["n"]), tuple(cell[name] for name in keys)) for cell in _all(table, grouped)]
    for at, axis in enumerate(axes):
        if isinstance(axis, Listed) and len(axis.values) > MANY:
            known = set(axis.values)
            found = [cell for cell in found if cell[1][at] in known]
    return sorted(found, key=_rising)


def _rising(cell: tuple[int, tuple[Any, ...]]) -> tuple[int, str]:
    return cell[0], str(cell[1])


def _any_of(keys: Mapping[str, Any], wanted: Sequence[tuple[Any, ...]]) -> Any:
    """Is a row's key one of these?"""
    out = None
    for key in wanted:
        same = None
        for expression, value in zip(keys.values(), key, strict=True):
            same = expression == value if same is None else same & (expression == value)
        out = same if out is None else out | same
    return out


def _label(axes: Sequence[Axis], key: Sequence[Any]) -> str:
    """A cell's name for people: keys of lists unchanged, others by their label."""
    told = []
    for axis, value in zip(axes, key, strict=True):
        plain = isinstance(axis, Listed | OpenAxis) or axis.size is None
        told.append(str(value if plain else axis.labels[int(value)]))
    return " x ".join(told)


def texts_seen(table: Table, names: Sequence[str], tests: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The number of texts in each column of a table of bare text, and the number that match each pattern."""
    relation, engine = table.relation, table.dialect
    out: dict[str, dict[str, int]] = {}
    for name in names:
        text = engine.trimmed(relation[name])
        there = text.notnull() & (text != "")
        counts = {"rows": relation.count(), "texts": there.sum()}
        counts |= {
            key: (there & (engine.matched(text, pattern) == text)).sum() for key, pattern in tests.items()
        }
        out[name] = {key: int(value or 0) for key, value in _one(table, relation.aggregate(**counts)).items()}
    return out


def _read(table: Table) -> tuple[Any, Reader]:
    return table.relation, Reader(table.relation, table.schema, person=table.person, engine=table.dialect)


def _one(table: Table, query: Any) -> dict[str, Any]:
    return next(_all(table, query))


def _all(table: Table, query: Any) -> Iterator[dict[str, Any]]:
    """The rows of a small result; read inside the error boundary, as all rows are."""
    start: Callable[[], Iterator[Any]] = table.dialect.batches(query)
    for row in table.read(lambda: [r for batch in start() for r in batch.to_pylist()]):
        # DuckDB's sums of integers are 128 bits wide, and Arrow gives them as decimals.
        yield {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()}


BLOCK = 8 << 20
LITTLE = 0.5
"""Other forms of dates or decimals are proposed if the declared ones read less than this share of texts."""
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
    """Words of `[data]` that would read more values, and the number of them."""

    words: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSeen:
    """The texts of one column: the number of rows with a text, and the number that fits each pattern."""

    texts: int
    looks: Mapping[str, int]


def is_text(data: Any) -> bool:
    """Whether it is a text file and nothing else, by its name."""
    return isinstance(data, str | Path | Files) and os.fspath(data).lower().endswith(TEXT)


def stored_names(data: str | os.PathLike[str]) -> set[str]:
    """The names in the header, since a declared column may be computed from others."""
    return set(names_in(data if isinstance(data, Files) else Files(path=os.fspath(data)))[1])


def as_text(data: Any, columns: Sequence[str], *, unit: Any, **options: Any) -> Table:
    """The same file with these columns as plain text."""
    return open_table(data, schema=dict.fromkeys(columns, category()), unit=unit, **options)


def texts_of(table: Table, columns: Sequence[str]) -> dict[str, TextSeen]:
    """The forms of the texts of these columns."""
    found = texts_seen(table, columns, PATTERNS)
    return {
        name: TextSeen(texts=counts["texts"], looks={k: counts[k] for k in PATTERNS})
        for name, counts in found.items()
    }


def proposed(column: Column, seen: TextSeen, read: int) -> list[Proposal]:
    """Changes of a declaration that would read more of its column."""
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
    """Contradictions of the bytes of a text file with the declared encoding, and of its lines with the separator."""
    files = asked if isinstance(asked, Files) else Files(path=os.fspath(asked))
    return error_boundary.rows(lambda: _bytes(files), source=files.path)


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
            words = 'encoding = "cp1252" or another single-byte encoding'
            out.append(Proposal(words=words, reason=reason))
        out += _separator(path, files)
    return out


def _undecodable(path: Path, encoding: str) -> tuple[int, int]:
    """The number of lines that are not valid text in this encoding, and the number of all lines."""
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
    """Lines that contain some separator more or less often than the header contains its own."""
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
