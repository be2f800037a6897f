"""The closed language of `where=`: comparisons of declared columns with constants, joined by and, or, not.

    age >= 18 and state in ('CA', 'NY') and not flag
    income between 10000 and 50000 or income is missing

Grammar (keywords in any case; a column with an odd name is written in `backticks`):

    or    = and {"or" and}
    and   = not {"and" not}
    not   = "not" not | "(" or ")" | "true" | "false" | test
    test  = flag | column ("=" "==" "!=" "<>" "<" "<=" ">" ">=") constant | constant (the same) column
          | column ["not"] "in" "(" constant {"," constant} ")" | column ["not"] "between" constant "and" constant
          | column "is" ["not"] "missing"

Logic has three values. A test of a missing value is unknown; not unknown is unknown; "a and b" is false if one of
them is false, else unknown if one is unknown; "a or b" is true if one is true, else unknown if one is unknown.
A row is kept only where the whole is true. "is missing" is never unknown. What is tested is the declared value:
clamped, replaced where missing, as the schema says. The test of a row looks at that row alone.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import ClassVar

from tacit.errors import UnknownName, WrongType
from tacit.sources.schema import Category, Column, Date, Flag, Number, Schema

__all__ = [
    "And",
    "Compare",
    "Constant",
    "Expression",
    "IsIn",
    "IsMissing",
    "IsTrue",
    "Joined",
    "Not",
    "Or",
    "Value",
    "normal",
]

KEYWORDS = {"and", "or", "not", "in", "is", "missing", "between", "true", "false"}

Value = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A node of a filter. `str(node)` is its text in a canonical form, which parses to an equal tree."""

    rank: ClassVar[int] = 3

    def columns(self) -> frozenset[str]:
        """The columns that are looked at."""
        return frozenset()

    def check(self, schema: Schema) -> None:
        """Every column is declared and compared with what it can be compared with; otherwise an error."""

    def never_unknown(self, schema: Schema) -> bool:
        """Is the answer true or false in every row?"""
        return all(not schema[c].may_be_missing for c in self.columns())


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Expression):
    """true or false."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsTrue(Expression):
    """A flag, by its name."""

    column: str

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check(self, schema: Schema) -> None:
        if not isinstance(schema[self.column], Flag):
            raise WrongType(
                column=self.column, found=schema[self.column].kind, wanted="a flag",
                hint="compare it with a constant, for example age >= 18",
            )  # fmt: skip

    def __str__(self) -> str:
        return _name(self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsMissing(Expression):
    """Has the row no value in this column?"""

    column: str

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check(self, schema: Schema) -> None:
        schema[self.column]

    def never_unknown(self, schema: Schema) -> bool:
        return True

    def __str__(self) -> str:
        return f"{_name(self.column)} is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(Expression):
    """column operator constant."""

    column: str
    operator: str
    value: Value

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check(self, schema: Schema) -> None:
        column = schema[self.column]
        if self.operator not in ("=", "!=") and isinstance(column, Category | Flag):
            raise WrongType(
                column=self.column,
                found=column.kind,
                wanted="something with an order",
                hint="use =, != or in",
            )
        check_value(self.column, column, self.value)

    def __str__(self) -> str:
        return f"{_name(self.column)} {self.operator} {_constant(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsIn(Expression):
    """column in (constants)."""

    column: str
    values: tuple[Value, ...]

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check(self, schema: Schema) -> None:
        for value in self.values:
            check_value(self.column, schema[self.column], value)

    def __str__(self) -> str:
        return f"{_name(self.column)} in ({', '.join(map(_constant, self.values))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Expression):
    """not inner."""

    inner: Expression

    rank: ClassVar[int] = 2

    def columns(self) -> frozenset[str]:
        return self.inner.columns()

    def check(self, schema: Schema) -> None:
        self.inner.check(schema)

    def never_unknown(self, schema: Schema) -> bool:
        return self.inner.never_unknown(schema)

    def __str__(self) -> str:
        return f"not {_wrapped(self.inner, 2)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Expression):
    """Parts that are joined by one word."""

    parts: tuple[Expression, ...]

    word: ClassVar[str] = ""

    def columns(self) -> frozenset[str]:
        return frozenset().union(*(p.columns() for p in self.parts))

    def check(self, schema: Schema) -> None:
        for part in self.parts:
            part.check(schema)

    def never_unknown(self, schema: Schema) -> bool:
        return all(part.never_unknown(schema) for part in self.parts)

    def __str__(self) -> str:
        return f" {self.word} ".join(_wrapped(p, self.rank + 1) for p in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class And(Joined):
    """All of the parts."""

    rank: ClassVar[int] = 1
    word: ClassVar[str] = "and"


@dataclass(frozen=True, slots=True, kw_only=True)
class Or(Joined):
    """Any of the parts."""

    rank: ClassVar[int] = 0
    word: ClassVar[str] = "or"


def check_value(name: str, column: Column, value: Value) -> None:
    """Can the column be compared with this constant?"""
    if isinstance(column, Flag):
        good, wanted = isinstance(value, bool), "true or false"
    elif isinstance(column, Category):
        good = isinstance(value, str) if column.of_words else type(value) is int
        wanted = "a word in quotes" if column.of_words else "a whole number"
    elif isinstance(column, Date):
        good, wanted = isinstance(value, str) and _is_day(value), "a date such as '2020-01-31'"
    else:
        good, wanted = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    if not good:
        raise WrongType(
            column=name,
            found=column.kind,
            wanted=f"something comparable with {value!r}",
            hint=f"compare it with {wanted}",
        )
    if isinstance(column, Category) and column.values is not None and value not in column.values:
        raise UnknownName(what=f"category of {name}", name=str(value), known=map(str, column.values))


def normal(node: Expression, schema: Schema) -> Expression:
    """The same filter with one spelling of each constant: 5 for 5.0, and '2020-01-31' for '20200131'.

    Nothing else is changed: no part is moved, joined or left out.
    """
    if isinstance(node, Not):
        return replace(node, inner=normal(node.inner, schema))
    if isinstance(node, Joined):
        return replace(node, parts=tuple(normal(p, schema) for p in node.parts))
    if isinstance(node, Compare):
        return replace(node, value=_one_spelling(schema[node.column], node.value))
    if isinstance(node, IsIn):
        return replace(node, values=tuple(_one_spelling(schema[node.column], v) for v in node.values))
    return node


def _one_spelling(column: Column, value: Value) -> Value:
    if isinstance(column, Date):
        return datetime.date.fromisoformat(value).isoformat() if isinstance(value, str) else value
    if isinstance(value, bool | str):
        return value
    # The reader compares numbers as doubles, and whole numbers as they are.
    value = float(value) if isinstance(column, Number) else value
    return int(value) if value == int(value) else value


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _name(column: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z_0-9.]*", column) and column.lower() not in KEYWORDS
    return column if plain else f"`{column.replace('`', '``')}`"


def _constant(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _wrapped(node: Expression, rank: int) -> str:
    return str(node) if node.rank >= rank else f"({node})"
