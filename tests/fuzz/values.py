"""Cells of every stored type: plain ones, and odd ones that a single row may bring along.

A cell is kept as what is stored: an integer for whole numbers, days and times, bytes for text, None for null. The
odd ones carry a word that says what is odd about them, so that a finding can be described.
"""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Cell = Any
Odd = tuple[str, Cell]

DAY = 18_262  # 2020-01-01
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
INTEGERS = {f"{s}int{b}": (b, s == "") for b in (8, 16, 32, 64) for s in ("", "u")}
FLOATS = ("float32", "float64", "float16")
DECIMALS = {"decimal(10,2)": pa.decimal128(10, 2), "decimal(38,0)": pa.decimal128(38, 0)}
TEXTS = ("string", "large_string", "dictionary")
STAMPS = {f"timestamp[{u}{z}]": (u, zone) for u in PER_DAY for z, zone in (("", None), (",tz", "UTC"))}
STAMPS |= {"timestamp[us,far]": ("us", "Asia/Kathmandu")}
DAYS = ("date32", "date64", *STAMPS)
NESTED = {
    "list": pa.list_(pa.int64()),
    "struct": pa.struct([("x", pa.int64())]),
    "time": pa.time64("us"),
    "duration": pa.duration("us"),
    "binary": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class Thing:
    """A Python object in a pandas column of objects."""

    what: Any

    def __repr__(self) -> str:
        return f"Thing({type(self.what).__name__})"


def arrow_type(stored: str) -> pa.DataType:
    """The Arrow type with this name."""
    if stored in STAMPS:
        unit, zone = STAMPS[stored]
        return pa.timestamp(unit, tz=zone)
    if stored in DECIMALS:
        return DECIMALS[stored]
    if stored in NESTED:
        return NESTED[stored]
    if stored == "dictionary":
        return pa.dictionary(pa.int32(), pa.string())
    return {"float16": pa.float16(), "null": pa.null(), "bool": pa.bool_()}.get(stored) or getattr(
        pa, stored
    )()


def array(stored: str, cells: list[Cell]) -> pa.Array:
    """Cells as an Arrow column, bytes that are no text included."""
    kind = arrow_type(stored)
    if stored in STAMPS or stored in ("date64", "time", "duration"):
        return pa.array(cells, pa.int64()).view(kind)
    if stored == "date32":
        return pa.array(cells, pa.int32()).view(kind)
    if stored in ("string", "large_string"):
        wide = pa.large_binary() if stored == "large_string" else pa.binary()
        return pa.array(cells, wide).view(kind)
    if stored == "dictionary":
        words = list(dict.fromkeys(c for c in cells if c is not None))
        index = pa.array([None if c is None else words.index(c) for c in cells], pa.int32())
        return pa.DictionaryArray.from_arrays(index, pa.array(words, pa.binary()).view(pa.string()))
    if stored == "float16":
        with np.errstate(over="ignore"):
            return pa.array([None if c is None else np.float16(c) for c in cells], kind)
    if stored == "null":
        return pa.nulls(len(cells))
    return pa.array(cells, kind)


# --- plain cells ---------------------------------------------------------------------------------------------
def plain(rng: random.Random, label: str, stored: str, words: tuple[Any, ...]) -> Cell:
    """An ordinary cell of a column with this declaration (`label`) in this stored type."""
    if stored == "null" or rng.random() < 0.03:
        return None
    small = rng.randrange(10)
    if stored in NESTED:
        return {"list": [small], "struct": {"x": small}, "binary": b"%d" % small}.get(stored, small)
    if label == "date":
        return days(stored, DAY + small) if stored not in TEXTS else b"2020-01-%02d" % (small + 1)
    if label in ("words", "ints", "open", "id"):
        value = rng.choice(words)
        if stored in TEXTS:
            return value if isinstance(value, bytes) else str(value).encode()
        if isinstance(value, bytes):
            value = int(value) if value.isdigit() else words.index(value)
        return number(stored, value)
    if label == "flag":
        return (
            rng.choice([b"yes", b"no", b"1", b"0"]) if stored in TEXTS else number(stored, rng.randrange(2))
        )
    if stored in TEXTS:
        return rng.choice([b"%d" % small, b"%d.5" % small, b" %d" % small])
    if label in ("number", "free") and stored in FLOATS:
        return small + rng.choice([0.0, 0.25, 0.5])
    return number(stored, small)


def number(stored: str, value: int) -> Cell:
    """A small whole number as a cell."""
    if stored == "bool":
        return bool(value)
    if stored in FLOATS:
        return float(value)
    if stored in DECIMALS:
        return Decimal(value)
    return days(stored, DAY + value) if stored in DAYS else value


def days(stored: str, day: int) -> int:
    """A day as a cell of a type of days or times."""
    if stored in STAMPS:
        return day * PER_DAY[STAMPS[stored][0]] + (day % 3) * 3600
    return day * PER_DAY["ms"] if stored == "date64" else day


# --- odd cells -----------------------------------------------------------------------------------------------
LOOKALIKES = (
    "1e1_0", "1_000", "1e400", "-0", "NaN", "nan", "inf", "-Infinity", "0x10", "1d", "1,5", "+7", "٣", "1e-400",
    "9" * 400, "9223372036854775808", "2020-01-01x", "2021-01-01+10", "2020-02-30", "0001-01-01 (BC)", "2020",
    "2020/01/02", "294247-01-10", "infinity", "5 \u00a0", "5\u00a0", "TRUE", "t ", "yes\x00",
)  # fmt: skip
MARKS = (
    "\u202eabc",
    "\u200b",
    "\x1b[31m",
    "a\x00b",
    "\x07",
    "=1+1",
    "@x",
    "A\u0308",
    "\ufeff",
    "a\tb",
    'a"b',
)


def odd(rng: random.Random, label: str, stored: str, words: tuple[Any, ...]) -> Odd:
    """A cell that only a strange row has."""
    if stored == "null":
        return "null", None
    if rng.random() < 0.06:
        return "null", None
    if stored in INTEGERS:
        bits, signed = INTEGERS[stored]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        far = [("far integer", v) for v in (low, high, (1 << bits - 4) + 1, high - 1, low + 1)]
        return rng.choice(far)
    if stored in FLOATS:
        strange = [
            math.nan,
            math.inf,
            -math.inf,
            -0.0,
            1e308,
            -1e308,
            5e-324,
            0.5,
            2.0**53 + 2,
            2.0**62,
            1e19,
        ]
        return "odd float", rng.choice(strange)
    if stored in DECIMALS:
        kind = DECIMALS[stored]
        digits = kind.precision - kind.scale
        most = Decimal("9" * digits)
        return "far decimal", rng.choice([most, most.copy_negate(), Decimal("1" + "0" * (digits - 1))])
    if stored in DAYS:
        return _odd_day(rng, stored)
    if stored in TEXTS or stored == "binary":
        return _odd_text(rng, words)
    if stored in NESTED:
        return {
            "list": ("odd list", [None, 1 << 62]),
            "struct": ("odd struct", {"x": 1 << 62}),
            "time": ("odd time", rng.choice([0, 86_399_999_999])),
            "duration": ("odd duration", 1 << 62),
        }[stored]
    return "odd flag", rng.random() < 0.5


def _odd_day(rng: random.Random, stored: str) -> Odd:
    if stored == "date32":
        return "far day", rng.choice([(1 << 31) - 1, -(1 << 31), 2_932_897, -719_163, (1 << 31) - 2])
    far = [1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63), -(1 << 63) + 1, (1 << 61) + 1]
    return "far time" if stored in STAMPS else "far day", rng.choice(far)


def other_case(rng: random.Random, words: tuple[Any, ...]) -> Odd:
    """A word that some engines do not tell from another."""
    return "other case", rng.choice(_texts(words)).swapcase()


def _texts(words: tuple[Any, ...]) -> list[bytes]:
    return [w if isinstance(w, bytes) else str(w).encode() for w in words] or [b"a"]


def _odd_text(rng: random.Random, words: tuple[Any, ...]) -> Odd:
    known = _texts(words)
    way = rng.randrange(12)
    if way < 3:
        return "bad bytes", rng.choice(
            [b"\xff\xfe", b"\xc3(", b"a\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
        )
    if way < 6:
        return other_case(rng, words)
    if way < 7:
        return "other blanks", rng.choice([b" ", b"\t", b""]) + rng.choice(known) + rng.choice([b" ", b"  "])
    if way < 9:
        return "lookalike", rng.choice(LOOKALIKES).encode()
    if way < 11:
        return "marks", rng.choice(MARKS).encode()
    return "long text", b"x" * rng.choice([1_000, 70_000])


def odd_object(rng: random.Random) -> Odd:
    """Something that a column of Python objects may hold."""
    things = [
        1, 1 << 70, 2.5, math.nan, "text", b"\xff", [1], {"x": 1}, Decimal("1.5"), datetime.date(2020, 1, 2),
        datetime.datetime(2020, 1, 2, 3), np.int8(3), np.float32(2), True, object(), (), Ellipsis, complex(1, 2),
        datetime.time(1), np.datetime64("2020-01-01"), "\ud800",
    ]  # fmt: skip
    thing = rng.choice(things)
    return f"object {type(thing).__name__}", Thing(thing)


def natural(stored: str, cell: Cell) -> Any:
    """A cell as Python would hold it."""
    if isinstance(cell, Thing):
        return cell.what
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return cell
    if stored in DAYS and cell is not None:
        day = cell // (
            PER_DAY[STAMPS[stored][0]] if stored in STAMPS else PER_DAY["ms"] if stored == "date64" else 1
        )
        try:
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
        except OverflowError:
            return cell
    return cell


# --- as text -------------------------------------------------------------------------------------------------
def text(stored: str, cell: Cell) -> bytes:
    """A cell as somebody would write it into a CSV file."""
    if cell is None:
        return b""
    if isinstance(cell, bytes):
        return cell
    if stored in DAYS:
        day = cell // PER_DAY[STAMPS[stored][0]] if stored in STAMPS else cell
        day = cell // PER_DAY["ms"] if stored == "date64" else day
        try:
            return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat().encode()
        except OverflowError:
            return b"%d" % day
    return str(cell).encode()
