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

Logic has three values. A test of a missing value is unknown, and "not unknown" is unknown. "a and b" is false
if one of them is false, else unknown if one is unknown. "a or b" is true if one is true, else unknown if one is
unknown. A row stays only if the whole condition is true. "is missing" is never unknown. Filters test the
declared value: clamped, and replaced if missing, as the schema says. The test of a row looks at that row alone.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from tacit.errors import BadExpression, InvalidParameter, UnknownName, WrongType
from tacit.exact.data_classes import dataclass
from tacit.sources.columns import Category, Column, Date, Flag, Number
from tacit.sources.schema import Schema

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
        """Checks that every column is declared and compared with a value of its kind."""

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
        if self.operator not in FLIPPED:
            # The text of a tree is its name: nothing may stand there that reads as another tree.
            raise UnknownName(what="comparison", name=str(self.operator), known=FLIPPED)
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
class JoinedConditions(Expression):
    """Parts between occurrences of one word."""

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
class And(JoinedConditions):
    """All of the parts."""

    rank: ClassVar[int] = 1
    word: ClassVar[str] = "and"


@dataclass(frozen=True, slots=True, kw_only=True)
class Or(JoinedConditions):
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
        good = isinstance(value, int | float) and not isinstance(value, bool)
        good = good and not (isinstance(value, float) and not math.isfinite(value))
        wanted = "a number"
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
    if isinstance(node, JoinedConditions):
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


# From the text of a filter to its tree: a small recursive-descent parser; see `expressions` for the grammar.

LONGEST = 20_000
DEEPEST = 60
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def parse(text: str | Expression) -> Expression:
    """The tree of a filter; returns a parsed expression unchanged."""
    if isinstance(text, Expression):
        return text
    if not isinstance(text, str):
        raise InvalidParameter(parameter="where", value=text, must="be text", hint='for example "age >= 18"')
    if len(text) > LONGEST:
        raise BadExpression(text=text, position=LONGEST, problem=f"it is longer than {LONGEST:,} characters")
    if "\0" in text:
        raise BadExpression(text=text, position=text.index("\0"), problem="it holds a null character")
    return _Parser(text).whole()


TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_0-9.]))
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*(?:\.\w+)*)
      | (?P<sign><=|>=|==|!=|<>|=|<|>|\(|\)|,)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        found = TOKEN.match(text, position)
        if found is None:
            raise BadExpression(
                text=text, position=position, problem=f"{text[position]!r} is not part of the language",
                hint="a filter compares columns with numbers or 'words', joined by and, or, not",
            )  # fmt: skip
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), position)
        position = found.end()
    yield _Token("end", "", len(text))


class _Parser:
    """Recursive descent, with a limit on depth so that no text can exhaust the stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def fail(self, wanted: str, token: _Token | None = None) -> BadExpression:
        token = token or self.next
        found = f"found {token.text!r}" if token.text else "the text ends"
        return BadExpression(text=self.text, position=token.position, problem=f"{wanted}, {found}")

    def expect(self, sign: str) -> None:
        if self.next.kind != "sign" or self.next.text != sign:
            raise self.fail(f"{sign!r} is needed")
        self.at += 1

    def whole(self) -> Expression:
        tree = self.either()
        if self.next.kind != "end":
            raise self.fail("'and', 'or' or the end is needed")
        return tree

    def either(self) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"brackets and nots nest at most {DEEPEST} deep")
        parts = [self.both()]
        while self.next.is_word("or"):
            self.at += 1
            parts.append(self.both())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Or(parts=_flat(parts, Or))

    def both(self) -> Expression:
        parts = [self.negation()]
        while self.next.is_word("and"):
            self.at += 1
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(parts=_flat(parts, And))

    def negation(self) -> Expression:
        if self.next.is_word("not"):
            self.at += 1
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.fail(f"brackets and nots nest at most {DEEPEST} deep")
            inner = self.negation()
            self.depth -= 1
            return Not(inner=inner)
        if self.next.kind == "sign" and self.next.text == "(":
            self.at += 1
            inner = self.either()
            self.expect(")")
            return inner
        return self.test()

    def test(self) -> Expression:
        token = self.next
        if token.is_word("true", "false"):
            after = self.tokens[self.at + 1]
            if not (after.kind == "sign" and after.text in OPERATORS):
                self.at += 1
                return Constant(value=token.text.lower() == "true")
        if token.kind in ("number", "text") or token.is_word("true", "false"):
            value = self.constant()
            operator = self.operator()
            return Compare(column=self.column(), operator=FLIPPED[operator], value=value)
        column = self.column()
        if self.next.is_word("is"):
            self.at += 1
            negated = self.taken("not")
            if not self.taken("missing"):
                raise self.fail("'missing' is needed after 'is'")
            return _maybe_not(IsMissing(column=column), negated)
        negated = self.taken("not")
        if self.taken("in"):
            return _maybe_not(IsIn(column=column, values=self.list()), negated)
        if self.taken("between"):
            low = self.constant()
            if not self.taken("and"):
                raise self.fail("'and' is needed between the two ends")
            ends = (low, self.constant())
            both = (
                Compare(column=column, operator=">=", value=ends[0]),
                Compare(column=column, operator="<=", value=ends[1]),
            )
            return _maybe_not(And(parts=both), negated)
        if negated:
            raise self.fail("'in' or 'between' is needed after 'not'")
        if self.next.kind == "sign" and self.next.text in OPERATORS:
            operator = self.operator()
            if self.next.kind in ("word", "quoted") and not self.next.is_word("true", "false"):
                raise self.fail("a constant is needed (put words in quotes; columns are not compared)")
            return Compare(column=column, operator=operator, value=self.constant())
        return IsTrue(column=column)

    def taken(self, word: str) -> bool:
        if self.next.is_word(word):
            self.at += 1
            return True
        return False

    def list(self) -> tuple[Value, ...]:
        self.expect("(")
        values = [self.constant()]
        while self.next.kind == "sign" and self.next.text == ",":
            self.at += 1
            values.append(self.constant())
        self.expect(")")
        return tuple(values)

    def operator(self) -> str:
        if self.next.kind != "sign" or self.next.text not in OPERATORS:
            raise self.fail("a comparison is needed")
        return OPERATORS[self.take().text]

    def column(self) -> str:
        token = self.next
        if token.kind == "quoted":
            self.at += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind == "word" and token.text.lower() not in KEYWORDS:
            self.at += 1
            return token.text
        raise self.fail("a column is needed")

    def constant(self) -> Value:
        token = self.next
        if token.is_word("true", "false"):
            self.at += 1
            return token.text.lower() == "true"
        if token.kind == "text":
            self.at += 1
            mark = token.text[0]
            return token.text[1:-1].replace(mark * 2, mark)
        if token.kind == "number":
            self.at += 1
            if re.fullmatch(r"[+-]?\d{1,300}", token.text):
                return int(token.text)
            number = float(token.text)
            if number in (float("inf"), float("-inf")):
                raise self.fail("the number is too large", token)
            return number
        raise self.fail("a number, a word in quotes, true or false is needed")


OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _maybe_not(node: Expression, negated: bool) -> Expression:
    return Not(inner=node) if negated else node


def _flat(parts: list[Expression], kind: type[JoinedConditions]) -> tuple[Expression, ...]:
    """Nested ands are one and, so that a tree has one text."""
    out: list[Any] = []
    for part in parts:
        out.extend(part.parts if isinstance(part, kind) else (part,))
    return tuple(out)
