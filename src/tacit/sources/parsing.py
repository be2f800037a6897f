"""From the text of a filter to its tree: a small recursive-descent parser; see `expressions` for the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tacit.errors import BadExpression, InvalidParameter
from tacit.sources.expressions import (
    KEYWORDS,
    And,
    Compare,
    Constant,
    Expression,
    IsIn,
    IsMissing,
    IsTrue,
    Joined,
    Not,
    Or,
    Value,
)

__all__ = ["parse"]

LONGEST = 20_000
DEEPEST = 60
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def parse(text: str | Expression) -> Expression:
    """The tree of a filter; an expression that is one already is returned as it is."""
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
                raise self.fail("a constant is needed (words stand in quotes; columns are not compared)")
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


def _flat(parts: list[Expression], kind: type[Joined]) -> tuple[Expression, ...]:
    """Nested ands are one and, so that a tree has one text."""
    out: list[Any] = []
    for part in parts:
        out.extend(part.parts if isinstance(part, kind) else (part,))
    return tuple(out)
