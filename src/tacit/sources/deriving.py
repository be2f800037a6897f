"""Derived columns: a small closed language, its types, and what engines make of it."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from tacit.errors import BadExpression, InvalidParameter, UnknownColumn
from tacit.exact.data_classes import dataclass
from tacit.sources.columns import Category, Column, Date, Flag

# The closed language of derived columns: what may be computed from the declared columns of one row.
#
#     weight * income / 100
#     status = 2 and age >= 18
#     case(age < 18, 'child', age < 65, 'adult', 'old')
#     bin(income, 20000, 50000)
#     lower(left(trim(town), 3))
#     year(visit) - 1900
#
# Grammar (keywords and functions in any case, columns with odd names in `backticks`):
#
#     or      = and {"or" and}
#     and     = not {"and" not}
#     not     = "not" not | test
#     test    = sum [("=" "==" "!=" "<>" "<" "<=" ">" ">=") sum | ["not"] "in" "(" constants ")"
#               | ["not"] "between" sum "and" sum | "is" ["not"] "missing"]
#     sum     = product {("+" | "-") product}
#     product = factor {("*" | "/") factor}
#     factor  = "-" factor | atom
#     atom    = number | 'text' | "true" | "false" | column | function "(" or {"," or} ")" | "(" or ")"
#
# Every part has one of four types: number, text, flag, day; what does not fit is an error before anything is read. A
# column is its declared value: clamped, and replaced where missing, as the schema says. What is computed of a row
# depends on that row alone, and is a value or missing, never an error:
#
# - Arithmetic is that of doubles (IEEE 754, rounded to nearest). What comes of a missing value is missing. So is a
#   division by zero, a root of a negative number, and every result that is no finite number.
# - Logic has three values, as in filters. `case` takes the first value whose test is true.
# - Text is compared and cut by characters (code points); lower and upper change A to Z alone. A text that replace or
#   concat would make longer than 10,000 characters is missing.
#
# There is no logarithm, no exponential and no rounding to digits: engines give different last digits of these.

Type = Literal["number", "text", "flag", "day"]
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing", "between", "true", "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The signature of a function: types of its arguments, of optional further ones, and of the result."""

    takes: tuple[str, ...]
    more: tuple[str, ...] = ()
    gives: str
    least: int = 0
    """The smallest number of arguments, if more may follow."""
    constants: tuple[int, ...] = ()
    """The arguments that must be constants; -1 means all except the first."""


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
class DerivedConstant(Node):
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
    """inner in (values), or a test for a missing inner if there are no values."""

    __test__ = False
    rank: ClassVar[int] = 3

    inner: Node
    values: tuple[DerivedConstant, ...] = ()

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
    """The text of a part, in brackets if its operator binds less tightly."""
    return str(node) if node.rank >= rank else f"({node})"


# From the text of a derived column to its tree: a small recursive-descent parser; see `language` for the grammar.

LONGEST, DEEPEST = 5_000, 40
HINT = (
    "a derived column is made of columns, numbers, 'words', + - * /, comparisons, and, or, not and functions"
)
TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_0-9.]))
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|==|!=|<>|[=<>(),+*/-])""",
    re.VERBOSE,
)
SAME = {"==": "=", "<>": "!="}
COMPARE = ("=", "!=", "<", "<=", ">", ">=")


def parse(text: Any) -> Node:
    """The tree of an expression; `str` of it is its canonical text."""
    if not isinstance(text, str):
        raise InvalidParameter(
            parameter="from", value=text, must="be text", hint='for example "weight * income"'
        )
    if len(text) > LONGEST:
        raise BadExpression(text=text, position=LONGEST, problem=f"it is longer than {LONGEST:,} characters")
    if "\0" in text:
        raise BadExpression(text=text, position=text.index("\0"), problem="it holds a null character")
    return _ExpressionParser(text).whole()


class _ExpressionParser:
    """Recursive descent, with a limit on depth so that no text can exhaust the stack."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text):
            found = TOKEN.match(text, position)
            if found is None:
                problem = f"{text[position]!r} is not part of the language"
                raise BadExpression(text=text, position=position, problem=problem, hint=HINT)
            if found.lastgroup != "space":
                self.tokens.append((str(found.lastgroup), found.group(), position))
            position = found.end()
        self.tokens.append(("end", "", len(text)))

    def fail(self, wanted: str) -> BadExpression:
        _, found, position = self.tokens[self.at]
        told = f"found {found!r}" if found else "the text ends"
        return BadExpression(text=self.text, position=position, problem=f"{wanted}, {told}", hint=HINT)

    def sign(self, *signs: str) -> str:
        """The next token, if it is one of these signs."""
        kind, found, _ = self.tokens[self.at]
        if kind == "sign" and found in signs:
            self.at += 1
            return SAME.get(found, found)
        return ""

    def word(self, *words: str) -> bool:
        kind, found, _ = self.tokens[self.at]
        if kind == "word" and found.lower() in words:
            self.at += 1
            return True
        return False

    def need(self, sign: str) -> None:
        if not self.sign(sign):
            raise self.fail(f"{sign!r} is needed")

    def whole(self) -> Node:
        tree = self.either()
        if self.tokens[self.at][0] != "end":
            raise self.fail("an operator or the end is needed")
        return tree

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"parts nest at most {DEEPEST} deep")

    def either(self) -> Node:
        self.deeper()
        out = self.both()
        while self.word("or"):
            out = Binary(sign="or", left=out, right=self.both())
        self.depth -= 1
        return out

    def both(self) -> Node:
        out = self.negation()
        while self.word("and"):
            out = Binary(sign="and", left=out, right=self.negation())
        return out

    def negation(self) -> Node:
        if not self.word("not"):
            return self.test()
        self.deeper()
        inner = self.negation()
        self.depth -= 1
        return Negative(sign="not", inner=inner)

    def test(self) -> Node:
        left = self.sum()
        if found := self.sign(*COMPARE, *SAME):
            return Binary(sign=found, left=left, right=self.sum())
        if self.word("is"):
            no = self.word("not")
            if not self.word("missing"):
                raise self.fail("'missing' is needed after 'is'")
            return _maybe_not(Test(inner=left), no)
        before, no = self.at, self.word("not")
        if self.word("in"):
            return _maybe_not(Test(inner=left, values=self.constants()), no)
        if self.word("between"):
            low = self.sum()
            if not self.word("and"):
                raise self.fail("'and' is needed between the two ends")
            ends = (Binary(sign=">=", left=left, right=low), Binary(sign="<=", left=left, right=self.sum()))
            return _maybe_not(Binary(sign="and", left=ends[0], right=ends[1]), no)
        self.at = before
        return left

    def constants(self) -> tuple[DerivedConstant, ...]:
        self.need("(")
        found = [self.constant()]
        while self.sign(","):
            found.append(self.constant())
        self.need(")")
        return tuple(found)

    def constant(self) -> DerivedConstant:
        made = self.factor()
        if not isinstance(made, DerivedConstant):
            raise self.fail("a constant is needed before this")
        return made

    def sum(self) -> Node:
        out = self.product()
        while found := self.sign("+", "-"):
            out = Binary(sign=found, left=out, right=self.product())
        return out

    def product(self) -> Node:
        out = self.factor()
        while found := self.sign("*", "/"):
            out = Binary(sign=found, left=out, right=self.factor())
        return out

    def factor(self) -> Node:
        if not self.sign("-"):
            return self.atom()
        self.deeper()
        inner = self.factor()
        self.depth -= 1
        if isinstance(inner, DerivedConstant) and isinstance(inner.value, float):
            return DerivedConstant(value=0.0 - inner.value)
        return Negative(sign="-", inner=inner)

    def atom(self) -> Node:
        kind, found, _ = self.tokens[self.at]
        if self.sign("("):
            inner = self.either()
            self.need(")")
            return inner
        if kind == "number":
            value = float(found)
            if not math.isfinite(value):
                raise self.fail("a finite number is needed")
            self.at += 1
            return DerivedConstant(value=value)
        if kind == "text":
            self.at += 1
            return DerivedConstant(value=found[1:-1].replace("''", "'"))
        if kind == "quoted":
            self.at += 1
            return Reference(name=found[1:-1].replace("``", "`"))
        if kind == "word" and found.lower() in ("true", "false"):
            self.at += 1
            return DerivedConstant(value=found.lower() == "true")
        if kind != "word" or found.lower() in KEYWORDS:
            raise self.fail("a column, a constant or a function is needed")
        self.at += 1
        if self.sign("("):
            return self.call(found.lower())
        return Reference(name=found)

    def call(self, name: str) -> Node:
        if name not in FUNCTIONS:
            self.at -= 2
            raise self.fail(f"a function is needed ({', '.join(FUNCTIONS)})")
        arguments = [self.either()]
        while self.sign(","):
            arguments.append(self.either())
        self.need(")")
        return Call(name=name, arguments=tuple(arguments))


def _maybe_not(node: Node, negated: bool) -> Node:
    return Negative(sign="not", inner=node) if negated else node


# The type of each part of a derived column, from the schema alone; what does not fit is an error with its reason.

DEEPEST_TYPE = 6
"""How deep functions, divisions and comparisons may nest, derived columns that are used included: in the engine's
language each writes its part down several times."""
LONGEST_TEXT = 10_000
"""The longest text that `concat` and `replace` may make; a longer result is missing. Without a limit one short row
could take all memory: two nested replacements by 2,000 letters each make four million of every letter.
"""
WHOLE_DIGITS = 20


def type_of_column(column: Column) -> Type:
    """The value of a declared column in an expression."""
    if isinstance(column, Category):
        return "text" if column.of_words else "number"
    return "flag" if isinstance(column, Flag) else "day" if isinstance(column, Date) else "number"


def type_in(node: Node, schema: Mapping[str, Column], *, wanted: str = "") -> Type:
    """The type of a part; `wanted` makes a text constant a day if the place needs a day."""
    match node:
        case DerivedConstant(value=bool()):
            return "flag"
        case DerivedConstant(value=str() as text):
            return "day" if wanted == "day" and is_day(text) else "text"
        case DerivedConstant():
            return "number"
        case Reference(name=name):
            if name not in schema:
                raise UnknownColumn(column=name, known=tuple(schema))
            return type_of_column(schema[name])
        case Negative(sign=sign, inner=inner):
            kind: Type = "number" if sign == "-" else "flag"
            _need(inner, kind, schema)
            return kind
        case Binary(sign="and" | "or"):
            for part in node.parts():
                _need(part, "flag", schema)
            return "flag"
        case Binary(sign="+" | "-" | "*" | "/"):
            for part in node.parts():
                _need(part, "number", schema)
            return "number"
        case Binary(sign=sign):
            kind = _one_type(node.parts(), schema)
            if kind in ("text", "flag") and sign not in ("=", "!="):
                raise _wrong(node, f"{kind}s have no order: use = or !=")
            return "flag"
        case Test(values=()):
            type_in(node.parts()[0], schema)
            return "flag"
        case Test():
            _one_type(node.parts(), schema)
            return "flag"
        case Call():
            return _type_of_call(node, schema)
    raise AssertionError(node)


def _type_of_call(node: Call, schema: Mapping[str, Column]) -> Type:
    told, given = FUNCTIONS[node.name], node.arguments
    if node.name == "case":
        if len(given) < 3 or len(given) % 2 == 0:
            raise _wrong(node, "case takes tests with their values, and at the end the value for the rest")
        for test in given[0:-1:2]:
            _need(test, "flag", schema)
        return _one_type((*given[1:-1:2], given[-1]), schema)
    fits = len(given) == len(told.takes) or (bool(told.more) and len(given) > len(told.takes))
    if not fits:
        raise _wrong(node, f"{node.name} takes {len(told.takes)} parts{' or more' if told.more else ''}")
    if node.name == "coalesce":
        return _one_type(given, schema)
    for i, part in enumerate(given):
        _need(part, told.takes[i] if i < len(told.takes) else told.more[0], schema)
        if (i in told.constants or (i and -1 in told.constants)) and not isinstance(part, DerivedConstant):
            raise _wrong(node, f"part {i + 1} of {node.name} is a constant")
    _check_constants(node)
    return told.gives  # type: ignore[return-value]


def _check_constants(node: Call) -> None:
    values: list[Any] = [part.value for part in node.arguments[1:] if isinstance(part, DerivedConstant)]
    if node.name == "bin" and any(a >= b for a, b in itertools.pairwise(values)):
        raise _wrong(node, "the edges of bin increase")
    if node.name in ("left", "part"):
        whole = all(isinstance(v, float) and v.is_integer() and 0 <= v <= LONGEST_TEXT for v in values)
        if not whole or (node.name == "part" and values[0] < 1):
            raise _wrong(node, "places and lengths are whole numbers, and the first character is number 1")
    if node.name in ("begins", "contains", "ends", "replace") and not values[0]:
        raise _wrong(node, "the searched text is not empty")


def _one_type(parts: tuple[Node, ...], schema: Mapping[str, Column]) -> Type:
    """The single type of all these parts; a text in the form of a day is a day if another part is one."""
    kinds = [type_in(part, schema) for part in parts]
    if "day" in kinds:
        kinds = [type_in(part, schema, wanted="day") for part in parts]
    if len(set(kinds)) != 1:
        odd, kind = next((p, k) for p, k in zip(parts, kinds, strict=True) if k != kinds[0])
        raise _wrong(odd, f"it is a {kind}, beside a {kinds[0]}")
    return kinds[0]


def _need(part: Node, kind: str, schema: Mapping[str, Column]) -> None:
    found = type_in(part, schema, wanted=kind)
    if found != kind:
        raise _wrong(part, f"a {kind} is needed here, and this is a {found}")


def _wrong(node: Node, problem: str) -> BadExpression:
    return BadExpression(
        text=str(node), position=0, problem=problem, hint="see the page on data for the language"
    )


def is_day(text: str) -> bool:
    """Whether the text is a day in our notation."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def longest(node: Node, schema: Mapping[str, Column]) -> float:
    """The largest length of a text, from declarations alone; infinite if nothing bounds it.

    Only functions that lengthen a text need a limit: the other texts are in memory already.
    """
    match node:
        case DerivedConstant(value=value):
            return len(str(value))
        case Reference(name=name):
            column = schema[name]
            values = column.values if isinstance(column, Category) else None
            return max((len(str(v)) for v in values), default=0) if values is not None else math.inf
    assert isinstance(node, Call)
    given = node.arguments
    if node.name == "case":
        return max(longest(part, schema) for part in (*given[1:-1:2], given[-1]))
    if node.name == "coalesce":
        return max(longest(part, schema) for part in given)
    if node.name == "text":
        return WHOLE_DIGITS
    first = longest(given[0], schema)
    if node.name in ("left", "part"):
        assert isinstance(given[-1], DerivedConstant)
        return min(first, float(given[-1].value))
    if node.name == "concat":
        return min(LONGEST_TEXT, sum(longest(part, schema) for part in given))
    if node.name == "replace":
        before, after = (len(str(part.value)) for part in given[1:] if isinstance(part, DerivedConstant))
        return min(LONGEST_TEXT, first * after / before) if after > before else first
    return first  # lower, upper, trim: as long as it was, or shorter


def depth_of(node: Node, depths: Mapping[str, int]) -> int:
    """The depth of functions, comparisons and divisions, through the used columns."""
    below = max((depth_of(part, depths) for part in node.parts()), default=0)
    if isinstance(node, Reference):
        return depths.get(node.name, 0)
    flat = ("+", "-", "*", "and", "or")
    return below + int(isinstance(node, Call | Test) or (isinstance(node, Binary) and node.sign not in flat))


def check_derived(trees: Mapping[str, Node], schema: Mapping[str, Column]) -> tuple[str, ...]:
    """The derived columns in an order in which each uses only earlier ones; checks that every type fits, and that no
    ring exists.
    """
    order: list[str] = []
    depths: dict[str, int] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            ring = " from ".join([*above[above.index(name) :], name])
            raise BadExpression(
                text=str(trees[name]), position=0, problem=f"columns are derived in a ring: {ring}"
            )
        if name in order:
            return
        for used in sorted(trees[name].columns() & trees.keys()):
            visit(used, (*above, name))
        found, wanted = (
            type_in(trees[name], schema, wanted=type_of_column(schema[name])),
            type_of_column(schema[name]),
        )
        if found != wanted:
            raise _wrong(trees[name], f"it gives a {found}, and {name!r} is declared as {schema[name].kind}")
        depths[name] = depth_of(trees[name], depths)
        if depths[name] > DEEPEST_TYPE:
            raise _wrong(
                trees[name],
                f"functions and divisions nest at most {DEEPEST_TYPE} deep, used columns included",
            )
        order.append(name)

    for name in trees:
        visit(name, ())
    return tuple(order)
