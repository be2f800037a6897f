"""Derived columns as expressions of the engine: total on every value, and the same on every engine.

Sums, differences and products of doubles that are no finite numbers stay that way (inf - inf and 0 * inf are NaN), so
that it is enough to look where something else takes them: a division, a function, a comparison, the column itself.
There what is no finite number becomes missing. Constants are written as text, which every engine reads as the nearest
double; a decimal literal would be divided by a power of ten, and rounded twice.

A text that `replace` or `concat` would make longer than LONGEST_TEXT is missing, and is never made: its length is
computed first. Where declarations bound the length already, nothing is looked at.
"""

from __future__ import annotations

import datetime
import string
from typing import Any

from tacit.sources.compiling import Reader
from tacit.sources.deriving.language import Binary, Call, Constant, Negative, Node, Reference, Test
from tacit.sources.deriving.types import LONGEST_TEXT, longest, type_in
from tacit.sources.engines import Engine
from tacit.sources.schema import Measured, Schema

__all__ = ["with_derived"]

LARGEST, SMALLEST = "1.7976931348623157E308", "4.9E-324"
WHOLE = "9007199254740992"


def with_derived(relation: Any, schema: Schema, engine: Engine) -> Any:
    """The table with its derived columns, each made of declared values of its own row."""
    for name, tree in schema.derived.items():
        maker = _Maker(Reader(relation, schema, engine=engine), schema, engine)
        relation = relation.mutate(
            **{name: maker.made(tree, type_in(tree, schema, wanted=_day(schema, name)))}
        )
    return relation


def _day(schema: Schema, name: str) -> str:
    return "day" if schema[name].kind == "a date" else ""


def _double(text: str) -> Any:
    import ibis

    return ibis.literal(text).cast("float64")


class _Maker:
    def __init__(self, reader: Reader, schema: Schema, engine: Engine) -> None:
        self.reader, self.schema, self.engine = reader, schema, engine

    def made(self, node: Node, kind: str) -> Any:
        """A part as what it is: a finite double, a text, a truth value, a day; or missing."""
        if kind == "number":
            return self.number(node)
        if isinstance(node, Reference):
            x = self.reader.clean(node.name)
            return self.engine.sound(x) if kind == "text" else x
        return getattr(self, kind)(node)

    def _kind(self, *nodes: Node) -> str:
        """The one type of these parts; a text that is a day is one beside a day."""
        kinds: set[str] = {type_in(node, self.schema) for node in nodes}
        return "day" if "day" in kinds else kinds.pop()

    # --- numbers --------------------------------------------------------------------------------------------
    def number(self, node: Node) -> Any:
        """A finite double."""
        import ibis

        x = self.loose(node)
        if isinstance(node, Constant) or (isinstance(node, Reference) and self._finite(node.name)):
            return x
        return ibis.cases((x.abs() <= _double(LARGEST), x), else_=ibis.null("float64"))

    def _finite(self, name: str) -> bool:
        column = self.schema[name]
        return not isinstance(column, Measured) or column.bounded

    def loose(self, node: Node) -> Any:
        """A double that need not be finite."""
        import ibis

        match node:
            case Constant(value=value):
                return _double(repr(value))
            case Reference(name=name):
                return self.reader.clean(name).cast("float64")
            case Negative(inner=inner):
                return -self.loose(inner)
            case Binary(sign="+"):
                return self.loose(node.left) + self.loose(node.right)
            case Binary(sign="-"):
                return self.loose(node.left) - self.loose(node.right)
            case Binary(sign="*"):
                return self.loose(node.left) * self.loose(node.right)
            case Binary(sign="/"):
                below = self.loose(node.right)
                fits = below.abs().between(_double(SMALLEST), _double(LARGEST))
                return self.loose(node.left) / ibis.cases((fits, below), else_=ibis.null("float64"))
            case Call(name=name, arguments=arguments):
                return self._number_of(name, arguments)
        raise AssertionError(node)

    def _number_of(self, name: str, given: tuple[Node, ...]) -> Any:
        import ibis

        nothing = ibis.null("float64")
        match name:
            case "case" | "coalesce":
                return self._chosen(name, given, "number")
            case "number":
                return self.engine.real(self.made(given[0], "text"))
            case "length":
                return self.made(given[0], "text").length().cast("float64")
            case "year" | "month" | "day":
                return getattr(self.made(given[0], "day"), name)().cast("float64")
            case "days_between":
                first, last = (self.engine.days(self.made(g, "day")).cast("float64") for g in given)
                return last - first
        values = [self.number(g) for g in given]
        x = values[0]
        match name:
            case "abs":
                return x.abs()
            case "sqrt":
                return ibis.cases((x >= _double("0"), x), else_=nothing).sqrt()
            case "floor" | "ceil":
                # Doubles of this size have no fraction, and some engines' whole numbers do not hold them.
                inside = x.abs() < _double(WHOLE)
                small = ibis.cases((inside, x), else_=nothing)
                whole = (small.floor() if name == "floor" else small.ceil()).cast("float64")
                return ibis.cases((inside, whole), else_=x)
            case "min" | "max":
                some = values[0].isnull()
                for value in values[1:]:
                    some = some | value.isnull()
                best = ibis.least(*values) if name == "min" else ibis.greatest(*values)
                return ibis.cases((some, nothing), else_=best)
        assert name == "bin"
        steps = [(x >= edge, _double(str(k + 1))) for k, edge in reversed(list(enumerate(values[1:])))]
        return ibis.cases(*steps, (x < values[1], _double("0")), else_=nothing)

    def _chosen(self, name: str, given: tuple[Node, ...], kind: str) -> Any:
        import ibis

        if name == "coalesce":
            return ibis.coalesce(*(self.made(g, kind) for g in given))
        pairs = [
            (self.made(test, "flag"), self.made(value, kind))
            for test, value in zip(given[0:-1:2], given[1:-1:2], strict=True)
        ]
        return ibis.cases(*pairs, else_=self.made(given[-1], kind))

    # --- text -----------------------------------------------------------------------------------------------
    def text(self, node: Node) -> Any:
        """A text."""
        import ibis

        if isinstance(node, Constant):
            return ibis.literal(str(node.value))
        assert isinstance(node, Call)
        if node.name in ("case", "coalesce"):
            return self._chosen(node.name, node.arguments, "text")
        if node.name == "text":
            return self.engine.rounded_whole(self.number(node.arguments[0])).cast("string")
        parts: list[Any] = [
            self.made(g, "text") if not isinstance(g, Constant) or isinstance(g.value, str) else g.value
            for g in node.arguments
        ]
        x, rest = parts[0], parts[1:]
        match node.name:
            case "lower":
                return x.translate(string.ascii_uppercase, string.ascii_lowercase)
            case "upper":
                return x.translate(string.ascii_lowercase, string.ascii_uppercase)
            case "trim":
                return self.engine.trimmed(x)
            case "left":
                return x.substr(0, int(rest[0]))
            case "part":
                return x.substr(int(rest[0]) - 1, int(rest[1]))
            case "replace":
                return self._replaced(node, x, *rest)
        assert node.name == "concat"
        return self._joined(node, parts)

    def _replaced(self, node: Call, x: Any, old: Any, new: Any) -> Any:
        """Every `old` in a text as `new`; missing where that would be too long, which is known before it is made."""
        before, after = (len(str(g.value)) for g in node.arguments[1:] if isinstance(g, Constant))
        if after <= before or longest(node.arguments[0], self.schema) * after <= LONGEST_TEXT * before:
            return x.replace(old, new)
        # The text without its old parts is no longer than it was, and tells how many of them there are.
        size, left = (text.length().cast("int64") for text in (x, x.replace(old, "")))
        fits = size * before + (size - left) * (after - before) <= LONGEST_TEXT * before
        return _where(fits, x).replace(old, new)

    def _joined(self, node: Call, texts: list[Any]) -> Any:
        """Texts one after the other; missing where they are too long together."""
        x, rest = texts[0], texts[1:]
        if sum(longest(part, self.schema) for part in node.arguments) > LONGEST_TEXT:
            size = x.length().cast("int64")
            for more in rest:
                size = size + more.length().cast("int64")
            x = _where(size <= LONGEST_TEXT, x)
        for more in rest:
            x = x + more
        return x

    # --- days -----------------------------------------------------------------------------------------------
    def day(self, node: Node) -> Any:
        """A day."""
        import ibis

        if isinstance(node, Constant):
            return ibis.literal(datetime.date.fromisoformat(str(node.value)))
        assert isinstance(node, Call)
        return self._chosen(node.name, node.arguments, "day")

    # --- truth ----------------------------------------------------------------------------------------------
    def flag(self, node: Node) -> Any:
        """True, false or unknown."""
        import ibis

        match node:
            case Constant(value=value):
                return ibis.literal(bool(value))
            case Negative(inner=inner):
                return ~self.made(inner, "flag")
            case Binary(sign="and"):
                return self.made(node.left, "flag") & self.made(node.right, "flag")
            case Binary(sign="or"):
                return self.made(node.left, "flag") | self.made(node.right, "flag")
            case Binary():
                kind = self._kind(node.left, node.right)
                return _compared(node.sign, self.made(node.left, kind), self.made(node.right, kind))
            case Test(inner=inner, values=()):
                return self.made(inner, self._kind(inner)).isnull()
            case Test(inner=inner, values=values):
                kind = self._kind(inner, *values)
                x, found = self.made(inner, kind), None
                for one in values:
                    same = x == self.made(one, kind)
                    found = same if found is None else found | same
                return found
        assert isinstance(node, Call)
        if node.name in ("case", "coalesce"):
            return self._chosen(node.name, node.arguments, "flag")
        x, sought = (self.made(g, "text") for g in node.arguments)
        return {"begins": x.startswith, "ends": x.endswith, "contains": x.contains}[node.name](sought)


def _where(fits: Any, text: Any) -> Any:
    """The text where it fits, else nothing: what is made of it afterwards never sees one that does not."""
    import ibis

    return ibis.cases((fits, text), else_=ibis.null("string"))


def _compared(sign: str, left: Any, right: Any) -> Any:
    match sign:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right
