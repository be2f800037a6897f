"""From the text of a derived column to its tree: a small recursive-descent parser; see `language` for the grammar."""

from __future__ import annotations

import math
import re
from typing import Any

from tacit.errors import BadExpression, InvalidParameter
from tacit.sources.deriving.language import (
    FUNCTIONS,
    KEYWORDS,
    Binary,
    Call,
    Constant,
    Negative,
    Node,
    Reference,
    Test,
)

__all__ = ["parse"]

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
    return _Parser(text).whole()


class _Parser:
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

    def constants(self) -> tuple[Constant, ...]:
        self.need("(")
        found = [self.constant()]
        while self.sign(","):
            found.append(self.constant())
        self.need(")")
        return tuple(found)

    def constant(self) -> Constant:
        made = self.factor()
        if not isinstance(made, Constant):
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
        if isinstance(inner, Constant) and isinstance(inner.value, float):
            return Constant(value=0.0 - inner.value)
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
            return Constant(value=value)
        if kind == "text":
            self.at += 1
            return Constant(value=found[1:-1].replace("''", "'"))
        if kind == "quoted":
            self.at += 1
            return Reference(name=found[1:-1].replace("``", "`"))
        if kind == "word" and found.lower() in ("true", "false"):
            self.at += 1
            return Constant(value=found.lower() == "true")
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
