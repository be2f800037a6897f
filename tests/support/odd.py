"""Columns of every stored type, with the odd values that it can hold: the ends, what overflows, what is no number."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

INF = float("inf")
NAN = float("nan")
WORDS = [
    "",
    " ",
    "1",
    "a",
    "A",
    "é",
    "\x00",
    "yes",
    "-0",
    "9" * 400,
    "1e999",
    "2020-01-05",
    "'; drop",
    '"',
    "\\x41",
    "=1+1",
]


def _integers(bits: int, signed: bool) -> list[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return sorted({v for v in (low, low + 1, -1, 0, 1, 2, 3, 100, high - 1, high) if low <= v <= high})


def _times(unit: str, zone: str | None) -> pa.Array:
    per_day = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}[unit]
    odd = [0, -1, 18_266 * per_day, 18_267 * per_day - 1, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63) + 1]
    if zone is not None and unit != "us":
        # DuckDB's own scan of other zoned units stops at these: that is a matter of opening, not of reading.
        odd = odd[:4]
    return pa.array(odd, pa.int64()).cast(pa.timestamp(unit, tz=zone))


def columns() -> dict[str, pa.Array]:
    """One array for each stored type, of different lengths."""
    out: dict[str, pa.Array] = {}
    for bits in (8, 16, 32, 64):
        out[f"int{bits}"] = pa.array(_integers(bits, True), getattr(pa, f"int{bits}")())
        out[f"uint{bits}"] = pa.array(_integers(bits, False), getattr(pa, f"uint{bits}")())
    out["int64"] = pa.array([*_integers(64, True), 2**60 + 1, 2**53, 2**53 + 1, -(2**53) - 1], pa.int64())
    doubles = [
        NAN,
        INF,
        -INF,
        0.0,
        -0.0,
        1.0,
        1.5,
        2.0,
        3.0,
        -3.5,
        2.0**53,
        -(2.0**53),
        2.0**62,
        2.0**63,
        -(2.0**63),
        1e300,
        -1e300,
        5e-324,
        1e19,
    ]
    out["float64"] = pa.array(doubles, pa.float64())
    out["float32"] = pa.array(
        [d for d in doubles if abs(d) < 1e38 or d in (INF, -INF) or d != d], pa.float32()
    )
    for digits, scale in ((38, 0), (38, 10), (38, 38), (5, 2), (18, 0)):
        top = Decimal((0, (9,) * digits, -scale))
        one = [Decimal(1)] if scale < digits else []
        odd = [top, top.copy_negate(), Decimal(0), Decimal((0, (1,), -scale)), *one]
        out[f"decimal{digits}_{scale}"] = pa.array(odd, pa.decimal128(digits, scale))
    out["string"] = pa.array(WORDS, pa.string())
    out["large_string"] = pa.array(WORDS, pa.large_string())
    out["dictionary"] = pa.array(WORDS[:6], pa.string()).dictionary_encode()
    out["bool"] = pa.array([True, False], pa.bool_())
    ends = [datetime.date.min, datetime.date.max, datetime.date(2020, 1, 5)]
    out["date32"] = pa.concat_arrays(
        [
            pa.array(ends, pa.date32()),
            pa.array([2**31 - 1, -(2**31) + 2, 10**8, -(10**8)], pa.int32()).cast(pa.date32()),
        ]
    )
    for unit in ("s", "ms", "us", "ns"):
        out[f"timestamp_{unit}"] = _times(unit, None)
        out[f"timestamp_{unit}_tz"] = _times(unit, "America/New_York")
    return out


def broken_text() -> pa.Array:
    """Text whose bytes are no UTF-8, as no correct writer makes it."""
    raw = [
        b"a\xff\xfe",
        b"1",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"yes",
        b"\xf5\x80\x80\x80",
        b" \xff ",
        b"2020-01-05",
    ]
    offsets = [0]
    for r in raw:
        offsets.append(offsets[-1] + len(r))
    buffers: list[Any] = [
        None,
        pa.py_buffer(struct.pack(f"<{len(offsets)}i", *offsets)),
        pa.py_buffer(b"".join(raw)),
    ]
    return pa.Array.from_buffers(pa.string(), len(raw), buffers)
