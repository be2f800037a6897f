"""What somebody typed comes back in one short sentence, however long or odd it was."""

from __future__ import annotations

import pytest

import tacit
from tacit.errors import InvalidParameter, UnknownName

VALUES = {
    "digits": 10**5000, "more digits": -(10**400), "text": "x" * 100_000,
    "list": ["y"] * 10_000, "table": {"a": "z" * 9999},
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_an_error_is_short_whatever_was_typed(kind: str) -> None:
    """Beyond 4,300 digits Python itself refuses to print a number; that must not become the error."""
    problem = InvalidParameter(parameter="p", value=VALUES[kind], must="be short")
    assert len(str(problem)) < 400
    assert problem.value is VALUES[kind]


def test_a_long_word_is_looked_up_at_once() -> None:
    problem = UnknownName(what="word", name="n" * 50_000, known=["word"] * 3)
    assert len(str(problem)) < 400
    assert problem.nearest is None


def test_a_deep_value_is_told_without_recursion() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "too long to print" in str(InvalidParameter(parameter="p", value=deep, must="be flat"))


def test_an_error_is_one_line() -> None:
    with pytest.raises(tacit.TacitError) as caught:
        raise InvalidParameter(parameter="p", value="x", must="be\nplain\x1b[31m", hint="\u202ehint")
    assert str(caught.value).isprintable()
