"""What is unknown about a person, a value that is missing, and a class exactly at the limit."""

from __future__ import annotations

import pytest

from tacit.attacks import homogeneity, intersection, skewness


def test_a_person_of_whom_a_column_is_unknown_may_be_anybody_there() -> None:
    """Both releases have two towns; of Ann only the age is known: flu is all that is left of her by the second."""
    first = {"age": [30, 30, 40], "town": ["a", "b", "a"], "s": ["flu", "cold", "ulcer"]}
    second = {"age": [30, 30, 50], "town": ["a", "b", "b"], "s": ["flu", "flu", "fever"]}
    ann = {"age": [30], "town": [None]}
    found = intersection([first, second], ann, quasi=["age", "town"], sensitive="s")
    assert found.exposed == [0]
    assert found.learned == ["flu"]
    assert found.details["by_one_release"] == [0, 1]
    assert found.details["not_in_all"] == 0
    nobody = intersection([first], {"age": [99], "town": [None]}, quasi=["age", "town"], sensitive="s")
    assert nobody.details["not_in_all"] == 1


def test_a_missing_value_is_a_value_of_its_own() -> None:
    """flu and a missing value in one class are two values; two missing ones are one."""
    table = {"q": ["x", "x", "y", "y", "z", "z"], "s": ["flu", None, "flu", "flu", None, None]}
    found = homogeneity(table, quasi=["q"], sensitive="s")
    assert found.exposed == [2, 3, 4, 5]
    assert found.learned == ["flu", "flu", None, None]
    assert found.guessing == pytest.approx(3 / 6)


@pytest.mark.parametrize(("factor", "rows"), [(1.99, 4), (2.0, 4), (2.01, 0)])
def test_a_class_exactly_at_the_factor_is_exposed(factor: float, rows: int) -> None:
    """1 of 4 in the table, 2 of 4 in the class: exactly twice as often."""
    table = {"q": ["x"] * 4 + ["y"] * 4, "s": ["u", "u", "v", "v", "v", "v", "v", "v"]}
    found = skewness(table, quasi=["q"], sensitive="s", value="u", factor=factor)
    assert len(found.exposed) == rows
