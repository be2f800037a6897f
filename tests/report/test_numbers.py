"""Numbers for people: digits, directions of rounding, names of keys."""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.curator.text import figures, three
from tacit.report.view import compact, key_place, key_words, percent, ticks


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"), (16_502, "16,500"), (1234.5, "1,230"), (12.345, "12.3"), (0.012345, "0.0123"), (-5.0, "−5"),
        (999.6, "1,000"), (0.5, "0.5"), (1e-6, "10⁻⁶"), (0.00123, "0.00123"), (1.234e-9, "1.23×10⁻⁹"), (1e15, "10¹⁵"),
        (-2.5e20, "−2.5×10²⁰"), (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "not known"), (100, "100"),
    ],
)  # fmt: skip
def test_three_significant_digits(value: float, words: str) -> None:
    assert three(value) == words


def test_an_interval_is_told_from_its_middle() -> None:
    assert tuple(figures(16_502, 16_477, 16_527)) == ("16,502", "16,477", "16,527")
    assert tuple(figures(16_502.4, 15_000.1, 18_004.9)) == ("16,500", "15,000", "18,100")
    assert tuple(figures(0.1234567, 0.1230, 0.1239)) == ("0.12346", "0.12300", "0.12390")
    assert tuple(figures(3, None, None)) == ("3", "none", "none")
    assert tuple(figures(0, -12, 12)) == ("0", "−12", "12")
    assert tuple(figures(-0.001, -40.0, 40.0)) == ("−0.00100", "−40.00000", "40.00000")


def number(words: str) -> float:
    return float(words.replace(",", "").replace("−", "-").replace("∞", "inf"))


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(0, 1e9))
def test_printed_intervals_contain_the_certified_ones(value: float, down: float, up: float) -> None:
    low, high = value - down, value + up
    told = figures(value, low, high)
    if any("×" in w or w.startswith("10⁻") or "⁻" in w for w in told):
        return
    slack = 1e-8 * max(1.0, abs(low), abs(high))
    assert number(told.low) <= low + slack
    assert number(told.high) >= high - slack
    if value and abs(value) > 1e-6:
        assert abs(number(told.value) - value) <= 0.00501 * abs(value) + slack


@pytest.mark.parametrize(
    ("value", "words"),
    [(950, "950"), (9_500, "9,500"), (12_345, "12.3k"), (1.5e6, "1.5M"), (2e9, "2bn"), (-3e4, "−30k")],
)
def test_short_words(value: float, words: str) -> None:
    assert compact(value) == words


def test_keys() -> None:
    day = datetime.date(2024, 2, 29)
    assert [key_words(k) for k in ("a", 5, True, False, None, day, (0.5, 1.5), 2.0, 25_000.0)] == [
        "a", "5", "yes", "no", "(missing)", "2024-02-29", "0.5 – 1.5", "2", "25,000",
    ]  # fmt: skip
    assert key_place((1, 3)) == 2
    assert key_place(day) == day.toordinal()
    assert [key_place(k) for k in ("a", True, None, ("a", 1))] == [None] * 4
    assert percent(0.95) == "95%"


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(2, 9))
def test_ticks_are_few_round_and_inside(low: float, width: float, most: int) -> None:
    high = low + width
    if not high > low:
        return
    found = ticks(low, high, most)
    slack = 1e-6 * (high - low) + 1e-9 * max(abs(low), abs(high))
    assert len(found) <= most
    assert all(low - slack <= t <= high + slack for t in found)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0, 829, [0, 200, 400, 600, 800]), (0, 394, [0, 100, 200, 300]), (0, 1, [0, 0.5, 1]),
        (12, 19, [12, 14, 16, 18]), (0, 5, [0, 2, 4]), (0, 10, [0, 5, 10]),
    ],
)  # fmt: skip
def test_ticks_are_as_many_as_there_is_room_for(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(found)
