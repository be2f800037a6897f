"""The closed language of derived columns: what may be computed from the declared columns of one row.

    weight * income / 100
    status = 2 and age >= 18
    case(age < 18, 'child', age < 65, 'adult', 'old')
    bin(income, 20000, 50000)
    lower(left(trim(town), 3))
    year(visit) - 1900

Grammar (keywords and functions in any case, columns with odd names in `backticks`):

    or      = and {"or" and}
    and     = not {"and" not}
    not     = "not" not | test
    test    = sum [("=" "==" "!=" "<>" "<" "<=" ">" ">=") sum | ["not"] "in" "(" constants ")"
              | ["not"] "between" sum "and" sum | "is" ["not"] "missing"]
    sum     = product {("+" | "-") product}
    product = factor {("*" | "/") factor}
    factor  = "-" factor | atom
    atom    = number | 'text' | "true" | "false" | column | function "(" or {"," or} ")" | "(" or ")"

Every part has one of four types: number, text, flag, day; what does not fit is an error before anything is read. A
column is its declared value: clamped, and replaced where missing, as the schema says. What is computed of a row depends
on that row alone, and is a value or missing, never an error:

- Arithmetic is that of doubles (IEEE 754, rounded to nearest). What comes of a missing value is missing. So is a
  division by zero, a root of a negative number, and every result that is no finite number.
- Logic has three values, as in filters. `case` takes the first value whose test is true.
- Text is compared and cut by characters (code points); lower and upper change A to Z alone. A text that replace or
  concat would make longer than 10,000 characters is missing.

There is no logarithm, no exponential and no rounding to digits: engines give different last digits of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

__all__ = [
    "FUNCTIONS",
    "KEYWORDS",
    "Binary",
    "Call",
    "Constant",
    "Function",
    "Negative",
    "Node",
    "Reference",
    "Test",
    "Type",
]

Type = Literal["number", "text", "flag", "day"]
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing", "between", "true", "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What a function takes and gives: types of its arguments, of those that may follow, and of the result."""

    takes: tuple[str, ...]
    more: tuple[str, ...] = ()
    gives: str
    least: int = 0
    """How many arguments there must be at least, where more may follow."""
    constants: tuple[int, ...] = ()
    """Which arguments must be written as constants; -1 for all but the first."""


FUNCTIONS: dict[str, Function] = {
    "abs": Function(takes=("number",), gives="number"),
    "begins": Function(takes=("text", "text"), gives="flag", constants=(1,)),
    "bin": Function(takes=("number", "number"), more=("number",), gives="number", constants=(-1,)),
    "case": Function(takes=(), gives="any"),
    "ceil": Function(takes=("number",), gives="number"),
    "coalesce": Function(takes=("any", "any"), more=("any",), gives="any"),
    "concat": Function(takes=("text", "text"), more=("text",), gives="text"),
    "contains": Function(takes=("text", "text"), gives="flag", constants=(1,)),
    "day": Function(takes=("day",), gives="number"),
    "days_between": Function(takes=("day", "day"), gives="number"),
    "ends": Function(takes=("text", "text"), gives="flag", constants=(1,)),
    "floor": Function(takes=("number",), gives="number"),
    "left": Function(takes=("text", "number"), gives="text", constants=(1,)),
    "length": Function(takes=("text",), gives="number"),
    "lower": Function(takes=("text",), gives="text"),
    "max": Function(takes=("number", "number"), more=("number",), gives="number"),
    "min": Function(takes=("number", "number"), more=("number",), gives="number"),
    "month": Function(takes=("day",), gives="number"),
    "number": Function(takes=("text",), gives="number"),
    "part": Function(takes=("text", "number", "number"), gives="text", constants=(1, 2)),
    "replace": Function(takes=("text", "text", "text"), gives="text", constants=(1, 2)),
    "sqrt": Function(takes=("number",), gives="number"),
    "text": Function(takes=("number",), gives="text"),
    "trim": Function(takes=("text",), gives="text"),
    "upper": Function(takes=("text",), gives="text"),
    "year": Function(takes=("day",), gives="number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression. `str(node)` is its text in a canonical form, which parses to an equal tree."""

    rank: ClassVar[int] = 6

    def parts(self) -> tuple[Node, ...]:
        """The parts below."""
        return ()

    def walk(self) -> Iterator[Node]:
        """This part and all below."""
        yield self
        for part in self.parts():
            yield from part.walk()

    def columns(self) -> frozenset[str]:
        """The columns that are looked at."""
        return frozenset(n.name for n in self.walk() if isinstance(n, Reference))


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Node):
    """A number, a text, true or false."""

    value: float | str | bool

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        plain = self.value.is_integer() and abs(self.value) < 1 << 53
        return str(int(self.value)) if plain else repr(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Node):
    """A declared column."""

    name: str

    def __str__(self) -> str:
        word = self.name.isidentifier() and self.name.isascii()
        plain = word and self.name.lower() not in KEYWORDS
        return self.name if plain else f"`{self.name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative(Node):
    """-inner or not inner."""

    sign: str
    inner: Node

    @property
    def rank(self) -> int:  # type: ignore[override]
        """How tightly it binds."""
        return 5 if self.sign == "-" else 2

    def parts(self) -> tuple[Node, ...]:
        return (self.inner,)

    def __str__(self) -> str:
        return ("-" if self.sign == "-" else "not ") + wrapped(self.inner, self.rank)


RANKS = {"or": 0, "and": 1, "+": 3.5, "-": 3.5, "*": 4, "/": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Node):
    """left sign right: arithmetic, a comparison, and, or. Of equal signs the left ones come first."""

    sign: str
    left: Node
    right: Node

    @property
    def rank(self) -> float:  # type: ignore[override]
        """How tightly it binds."""
        return RANKS.get(self.sign, 3)

    def parts(self) -> tuple[Node, ...]:
        return self.left, self.right

    def __str__(self) -> str:
        # Comparisons do not follow each other, and what stands on the right of a sign binds tighter than it.
        left = self.rank + (0.25 if self.rank == 3 else 0)
        return f"{wrapped(self.left, left)} {self.sign} {wrapped(self.right, self.rank + 0.25)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Test(Node):
    """inner in (values), or inner is missing where there are none."""

    __test__ = False
    rank: ClassVar[int] = 3

    inner: Node
    values: tuple[Constant, ...] = ()

    def parts(self) -> tuple[Node, ...]:
        return self.inner, *self.values

    def __str__(self) -> str:
        told = f"in ({', '.join(map(str, self.values))})" if self.values else "is missing"
        return f"{wrapped(self.inner, 3.25)} {told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """A function of some parts."""

    name: str
    arguments: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


def wrapped(node: Node, rank: Any) -> str:
    """The text of a part, in brackets where it binds less tightly."""
    return str(node) if node.rank >= rank else f"({node})"
