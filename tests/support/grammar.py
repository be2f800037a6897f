"""What a text stands for, in plain Python, written from the words of docs: the reference for both engines."""

from __future__ import annotations

import datetime
import re

SPACE = " \t\n\v\f\r"
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.ASCII | re.IGNORECASE)
DAY = re.compile(r"([0-9]{4})([-/])([0-9]{1,2})([-/])([0-9]{1,2})(.*)", re.ASCII | re.DOTALL)
ZONE = r"(?: ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?))?"
CLOCK = re.compile(
    r"[ T](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:\.[0-9]{1,9})?)?" + ZONE, re.ASCII
)
EPOCH = datetime.date(1970, 1, 1)
YES, NO = {"1", "t", "true", "y", "yes", "1.0"}, {"0", "f", "false", "n", "no", "0.0"}


def number(text: str) -> float | None:
    text = text.strip(SPACE)
    if INFINITE.fullmatch(text) and text.isascii():
        return float("-inf") if text[0] == "-" else float("inf")
    return float(text) if NUMBER.fullmatch(text) else None


def days(text: str) -> int | None:
    found = DAY.fullmatch(text.strip(SPACE))
    if found is None or found[2] != found[4] or (found[6] and not CLOCK.fullmatch(found[6])):
        return None
    year = int(found[1])
    try:
        # Python has no year 0; the calendar has, and it is a leap year like the year 2000.
        day = datetime.date(year or 2000, int(found[3]), int(found[5]))
    except ValueError:
        return None
    return (day - EPOCH).days - (0 if year else 5 * 146097)


def flag(text: str) -> bool | None:
    text = text.strip(SPACE).lower()
    return True if text in YES else False if text in NO else None


def whole(text: str) -> int | None:
    trimmed = text.strip(SPACE)
    if re.fullmatch(r"[+-]?[0-9]{1,18}", trimmed, re.ASCII):
        return int(trimmed)
    value = number(text)
    if value is None or not abs(value) < 2**53 or value != int(value):
        return None
    return int(value)


CORES = [
    "",
    "0",
    "1",
    "-0",
    "+1",
    "12",
    "007",
    "1.5",
    "1.",
    ".5",
    ".",
    "-.5",
    "1e1",
    "1E1",
    "1e+1",
    "1e-1",
    "1e",
    "e1",
    "1e1_0",
    "1_0",
    "1__0",
    "1,0",
    "1 0",
    "0x10",
    "0b1",
    "1d",
    "1f",
    "1L",
    "0x1p3",
    "nan",
    "NaN",
    "-nan",
    "inf",
    "Inf",
    "INFINITY",
    "-inf",
    "+inf",
    "infinit",
    "infinity!",
    "1e999",
    "-1e999",
    "1e9999",
    "1e99999",
    "1e-9999",
    "9" * 30,
    "9" * 400,
    "-" + "9" * 400,
    "0." + "0" * 400 + "1",
    "9007199254740993",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "999999999999999999",
    "1e15",
    "1e18",
    "3.0",
    "3.00",
    "0.1",
    "4.35",
    "2.675",
    "1e23",
    "5e-324",
    "2.2250738585072011e-308",
    "1/2",
    "١٢",
    "１２",
    "²",
    "½",
    "--1",
    "+-1",
    "1+1",
    "(1)",
    "$1",
    "1%",
    "'1",
    "1'",
    "true",
    "TRUE",
    "True",
    "t",
    "T",
    "yes",
    "YES",
    "y",
    "on",
    "no",
    "N",
    "false",
    "F",
    "f",
    "off",
    "1.0",
    "0.0",
    "01",
    "TRUE ",
    "truee",
    "yeſ",
    "ｙｅｓ",
    "ＴＲＵＥ",
    "2020-01-01",
    "2020-1-1",
    "2020/01/01",
    "2020/1/1",
    "2020-01/01",
    "2020.01.01",
    "20200101",
    "2020-01",
    "2020",
    "2020-01-01x",
    "2021-01-01+10",
    "2021-01-01 (BC)",
    "2021-01-01 BC",
    "0044-03-15 (BC)",
    "2020-02-29",
    "2021-02-29",
    "2020-02-30",
    "2020-13-01",
    "2020-00-10",
    "2020-10-00",
    "0000-01-01",
    "0000-02-29",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "-2020-01-01",
    "+2020-01-01",
    "2020-01-01T10:00:00",
    "2020-01-01 10:00",
    "2020-01-01 1:00",
    "2020-01-01 24:00",
    "2020-01-01 23:59:60",
    "2020-01-01T10:00:00Z",
    "2020-01-01T10:00:00+02:00",
    "2020-01-01 10:00:00 +02",
    "2020-01-01T10:00:00.123456789",
    "2020-01-01T10:00:00.1234567890",
    "2020-01-01T10:00:00+10:0",
    "2020-01-01T",
    "2020-01-01 ",
    "2020-01-01 x",
    "2020-01-01 10",
    "2020-01-01Z",
    "2020-01-01T10:00 UTC",
    "2020-01-01T10:00:00 Europe/Paris",
    "epoch",
    "today",
    "now",
    "infinity",
    "-infinity",
    "1582-10-10",
    "1900-02-29",
    "1970-01-01",
    "1969-12-31",
    "２０２０-01-01",
    "2020-01-01T99:00",
    "2020-01-01\u2028",
    "1\u2028",
    "1\u0085",
    "1\n",
    "1\r\n",
    "1\x00",
    "\x001",
    "1\x1f",
]
AROUND = [
    "{}",
    " {}",
    "{} ",
    "\t{}\n",
    "\v{}\f",
    "\u00a0{}",
    "{}\u00a0",
    "{}\u2003",
    "\ufeff{}",
    "{}\u200b",
    "{}\x1c",
]
TEXTS = [*CORES, *(a.format(c) for a in AROUND[1:] for c in ("1", "-2.5", "2020-01-05", "yes", "inf", "7e0"))]
