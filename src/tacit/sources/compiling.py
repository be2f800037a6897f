"""Declared columns, filters, axes and aggregates as expressions of the engine (Ibis).

No value raises an error here: a failed cast gives null, and the declared policy handles nulls.
Ibis is imported inside functions, since that takes about a second.
"""

from __future__ import annotations

import datetime
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tacit.errors import BadData, UnknownColumn, WrongType
from tacit.sources import axes as agg
from tacit.sources.axes import Axis, Bins, Cut, Listed, Magnitudes
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Measured, Number
from tacit.sources.deriving import (
    LONGEST_TEXT,
    Binary,
    Call,
    Negative,
    Node,
    Reference,
    Test,
    longest,
    type_in,
)
from tacit.sources.deriving import DerivedConstant as CompilingConstant
from tacit.sources.engines import Engine, engine_of
from tacit.sources.expressions import And, Compare, Constant, Expression, IsIn, IsMissing, IsTrue, Not, Or
from tacit.sources.schema import Schema, check_names

YES = ("1", "t", "true", "y", "yes", "1.0")
NO = ("0", "f", "false", "n", "no", "0.0")
SMALL = 1 << 31
HUGE = 1 << 62
"""Above every bound that can be declared."""


def _stored_as(column: Column, dtype: Any) -> bool:
    """Can a column of this engine type hold the declared values?"""
    numeric = dtype.is_numeric() and not dtype.is_boolean()
    if isinstance(column, Flag):
        return bool(dtype.is_boolean() or numeric or dtype.is_string())
    if isinstance(column, Date):
        return bool(dtype.is_date() or dtype.is_timestamp() or dtype.is_string())
    if isinstance(column, Category):
        return bool(dtype.is_string() or numeric)
    return bool(numeric or dtype.is_string())


def check_types(table: Any, schema: Schema) -> None:
    """Every declared column is stored in a type for its values. Looks at types only, never at values."""
    for name in schema.stored:
        column, dtype = schema[name], table[name].type()
        if not (_stored_as(column, dtype) or dtype.is_null()):
            raise WrongType(
                column=name, found=f"stored as {dtype}", wanted=column.kind,
                hint="declare the column as what it is, or convert it in the table",
            )  # fmt: skip


def in_steps(engine: Engine, column: Measured, x: Any) -> Any:
    """A clean value in steps of its column's grid, an integer; null where missing."""
    if isinstance(column, Flag):
        return x.cast("int32")
    if isinstance(column, Date):
        return engine.days(x)
    small = max(abs(column.lowest), abs(column.highest)) < SMALL
    if x.type().is_integer():
        return x.cast("int32") if small else x
    # A power of two: the product is exact, and monotone rounding keeps it between the rounded bounds.
    scaled = x * float(1 / column.spacing) if column.spacing != 1 else x
    return engine.nearest(scaled, "int32" if small else "int64")


class Reader:
    """Reads declared columns of one engine table."""

    def __init__(
        self,
        table: Any,
        schema: Schema,
        *,
        person: str | None = None,
        engine: Engine | None = None,
        coded: frozenset[str] = frozenset(),
    ) -> None:
        self.table = table
        self.schema = schema
        self.person = person
        self.engine = engine or engine_of(table)
        if engine is None:
            self.engine.prepare(table)
        self.coded = coded
        """Categories that the table holds as places in their list, clean already."""

    def stored(self, name: str) -> Any:
        """The column in the engine type of its declaration; null for unreadable values."""
        column, x = self.schema[name], self.table[name]
        dtype = x.type()
        if dtype.is_null():
            target = "string" if isinstance(column, Category) else "float64"
            x = x.cast(target)
            dtype = x.type()
        if isinstance(column, Category):
            if column.of_words:
                if dtype.is_string():
                    return self.engine.without_point(x) if column.of_digits else x
                # A double that is a whole number is its key; another one has none.
                return (x if dtype.is_integer() else self._whole(x)).cast("string")
            return self._whole(x)
        if isinstance(column, Flag):
            return self._flag(x)
        if isinstance(column, Date):
            if dtype.is_date():
                return x
            return self.engine.day(x) if dtype.is_string() else self.engine.day_of(x)
        if isinstance(column, Integer) and dtype.is_integer():
            return self._short(column, x) if dtype.nbytes <= 4 else self._signed(x)
        return self.engine.real(x) if dtype.is_string() else self.engine.double(x)

    def _short(self, column: Integer, x: Any) -> Any:
        """A stored signed integer of up to 32 bits keeps its type if its bounds fit, which halves the work."""
        small = column.bounded and max(abs(column.lowest), abs(column.highest)) < SMALL
        if not small or x.type().is_uint32():
            return self._signed(x)
        return x if x.type().is_int32() else x.cast("int32")

    def _signed(self, x: Any) -> Any:
        """A signed integer of 64 bits; a larger number stays above every bound."""
        import ibis

        if x.type().is_uint64():
            return ibis.ifelse(x > HUGE, HUGE, x).cast("int64")
        return x if x.type().is_int64() else x.cast("int64")

    def _whole(self, x: Any) -> Any:
        """A signed whole number of 64 bits; null for other values."""
        dtype = x.type()
        if dtype.is_uint64():
            return x.try_cast("int64")
        if dtype.is_integer():
            return self._signed(x)
        return self.engine.whole(x) if dtype.is_string() else self.engine.rounded_whole(self.engine.double(x))

    def _flag(self, x: Any) -> Any:
        import ibis

        if x.type().is_boolean():
            return x
        if x.type().is_decimal():
            x = self.engine.double(x)
        if x.type().is_string():
            x = self.engine.trimmed(x).lower()
            return ibis.cases((x.isin(YES), True), (x.isin(NO), False), else_=ibis.null("boolean"))
        return ibis.cases((x == 1, True), (x == 0, False), else_=ibis.null("boolean"))

    def clean(self, name: str) -> Any:
        """The declared value before rounding: clamped, or missing and replaced if declared."""
        import ibis

        if name in self.coded:
            return self.table[name]
        column, x = self.schema[name], self.stored(name)
        if isinstance(column, Category):
            if column.values is not None:
                x = ibis.ifelse(x.isin(column.values), x, ibis.null(x.type()))
            return x if column.missing is None else x.fill_null(column.missing)
        if isinstance(column, Measured) and not isinstance(column, Flag):
            x = self._clamped(column, x)
        missing = getattr(column, "missing", None)
        if missing is None:
            return x
        return x.fill_null(float(missing) if isinstance(column, Number) else missing)

    def _clamped(self, column: Measured, x: Any) -> Any:
        import ibis

        floating, nothing = x.type().is_floating(), ibis.null(x.type())
        # Engines order NaN above all numbers, or nowhere: it is taken out before any comparison.
        no_number = [(x.isnan(), nothing)] if floating else []
        if not column.bounded:
            return ibis.cases(*no_number, else_=x) if floating else x
        low, high = column.low, column.high  # type: ignore[attr-defined]
        if floating:
            low, high = float(low), float(high)
        elif isinstance(column, Date):
            low, high = ibis.literal(low), ibis.literal(high)
        else:
            low, high = ibis.literal(low, type=x.type()), ibis.literal(high, type=x.type())
        if column.outside == "clamp":
            return ibis.cases(*no_number, (x > high, high), (x < low, low), else_=x)
        return ibis.cases(*no_number, ((x >= low) & (x <= high), x), else_=nothing)

    def steps(self, name: str) -> Any:
        """The declared value in steps of its grid, an integer; null where missing."""
        return in_steps(self.engine, self.schema.measured(name), self.clean(name))

    def offset(self, name: str, *, wide: bool = False) -> Any:
        """value - lowest in steps: an integer from 0 to width, in 32 bits where they suffice."""
        column = self.schema.measured(name)
        steps = self.steps(name)
        if column.lowest == 0 and not wide:
            return steps
        # Ibis and the engine infer different widths for differences; this cast fixes it beforehand.
        wide = wide or max(abs(column.lowest), abs(column.highest), column.width) >= SMALL
        return steps.cast("int64" if wide else "int32") - column.lowest

    def _offset_on(self, axis: Cut) -> Any:
        """The same for the grid of an axis, which may be finer than the column's."""
        if axis.values == self.schema.measured(axis.column):
            return self.offset(axis.column)
        steps = in_steps(self.engine, axis.values, self.clean(axis.column))
        return steps.cast("int64") - axis.values.lowest

    def key(self, axis: Axis, *, declared: bool = True) -> Any:
        """The row's key: an index from 0, or a category's own value; null for a row without a key.

        declared=False leaves categories outside the list as they are, for the reader of the cells to drop.
        """
        import ibis

        if isinstance(axis, Cut):
            offset = self._offset_on(axis)
            if axis.count == axis.levels:
                return offset
            return (offset.cast("float64") * float(axis.count) / float(axis.levels)).floor().cast("int64")
        if isinstance(axis, Bins):
            steps = self.steps(axis.column).cast("int64")
            branches = [(steps >= edge, k) for k, edge in reversed(list(enumerate(axis.steps[:-1])))]
            return ibis.cases(
                (steps >= axis.steps[-1], ibis.null("int64")), *branches, else_=ibis.null("int64")
            )
        if isinstance(axis, Magnitudes):
            return self._magnitude(axis)
        column = self.schema[axis.column]
        if (
            isinstance(axis, Listed)
            and column.may_be_missing
            and not declared
            and axis.column not in self.coded
        ):
            return self.stored(axis.column)
        return self.clean(axis.column)

    def _magnitude(self, axis: Magnitudes) -> Any:
        import ibis

        x = self.clean(axis.column).cast("float64")
        ceiling = 2.0 ** (axis.highest_power - 1)
        size = x.abs()
        power = ibis.cases(
            (size >= ceiling, ceiling), else_=ibis.greatest(size, 2.0 ** (axis.lowest_power - 1))
        )
        # Next to a power of two a logarithm may be rounded across it; the power itself is exact.
        log = power.log2().round().cast("int64")
        log = ibis.cases((power < ibis.literal(2.0) ** log.cast("float64"), log - 1), else_=log)
        k = (log - (axis.lowest_power - 1)).clip(0, axis.half)
        return axis.half + ibis.cases((x < 0, -k), (x >= 0, k), else_=ibis.null("int64"))

    def test(self, node: Expression) -> Any:
        """A filter as a boolean of the engine, with its three-valued logic."""
        import ibis

        if isinstance(node, Constant):
            return ibis.literal(node.value)
        if isinstance(node, IsTrue):
            return self.clean(node.column)
        if isinstance(node, IsMissing):
            return self.clean(node.column).isnull()
        if isinstance(node, Not):
            return ~self.test(node.inner)
        if isinstance(node, And | Or):
            out = self.test(node.parts[0])
            for part in node.parts[1:]:
                out = (out & self.test(part)) if isinstance(node, And) else (out | self.test(part))
            return out
        if isinstance(node, IsIn):
            x = self.clean(node.column)
            return x.isin([self._constant(node.column, v) for v in node.values])
        assert isinstance(node, Compare)
        x, value = self.clean(node.column), self._constant(node.column, node.value)
        match node.operator:
            case "=":
                return x == value
            case "!=":
                return x != value
            case "<":
                return x < value
            case "<=":
                return x <= value
            case ">":
                return x > value
            case _:
                return x >= value

    def _constant(self, name: str, value: Any) -> Any:
        import ibis

        column = self.schema[name]
        if name in self.coded and isinstance(column, Category) and column.values is not None:
            return list(column.values).index(value)
        if isinstance(column, Date):
            return ibis.literal(datetime.date.fromisoformat(value))
        if isinstance(column, Number) or (isinstance(value, int) and abs(value) >= 1 << 62):
            return float(value)
        return value

    def mask(self, aggregate: agg.Aggregate, *, skip: str | None = None) -> Any:
        """The rows that an aggregate reads; None for all of them."""
        tests = [] if aggregate.where is None else [self.test(aggregate.where)]
        for name in aggregate.present:
            if name != skip and self.schema[name].may_be_missing:
                tests.append(self.clean(name).notnull())
        out = None
        for test in tests:
            out = test if out is None else out & test
        return out

    def aggregate(self, aggregate: agg.Aggregate) -> Any:
        """One integer for each cell."""
        if isinstance(aggregate, agg.CountRows):
            present = [n for n in aggregate.present if self.schema[n].may_be_missing]
            if (
                aggregate.where is None
                and len(present) == 1
                and isinstance(self.schema[present[0]], Measured)
            ):
                # The same expression as in the column's sum, which the engine then computes once.
                return self.offset(present[0]).count()
            return self.table.count(where=self.mask(aggregate))
        if isinstance(aggregate, agg.CountPeople):
            assert self.person is not None
            return self.table[self.person].nunique(where=self.mask(aggregate))
        if isinstance(aggregate, agg.Products):
            return self._products(aggregate)
        if isinstance(aggregate, agg.CountAbove):
            return self._above(aggregate)
        assert isinstance(aggregate, agg.Steps | agg.Squares)
        square = isinstance(aggregate, agg.Squares)
        x = self.offset(aggregate.column, wide=square)
        x = x * x if square else x
        width = self.schema.measured(aggregate.column).width
        bits = (width**2 if square else width).bit_length()
        return self.engine.total(x, where=self.mask(aggregate, skip=aggregate.column), bits=bits)

    def _above(self, aggregate: agg.CountAbove) -> Any:
        """NaN is no value, wherever an engine orders it."""
        import ibis

        column, x = self.schema.measured(aggregate.column), self.stored(aggregate.column)
        high = column.high  # type: ignore[attr-defined]
        above = x > (float(high) if x.type().is_floating() else ibis.literal(high, type=x.type()))
        if x.type().is_floating():
            above = above & ~x.isnan()
        mask = self.mask(aggregate)
        return self.table.count(where=above if mask is None else above & mask)

    def _products(self, aggregate: agg.Products) -> Any:
        """Products of levels below 2^62, in 64 bits."""
        assert aggregate.bits < 63, "levels are chosen so that a product fits"
        if not aggregate.factors:
            return self.table.count(where=self.mask(aggregate))
        levels = [self._level(f) for f in aggregate.factors for _ in range(f.power)]
        product = levels[0]
        for level in levels[1:]:
            product = product * level
        return self.engine.total(product, where=self.mask(aggregate), bits=aggregate.bits)

    def _level(self, factor: agg.Factor) -> Any:
        """The level of a value, from 0 to `levels`."""
        top = factor.top(self.schema)
        column = factor.column
        steps = self.steps(column).cast("int64") if factor.from_zero else self.offset(column, wide=True)
        if factor.levels == top:
            return steps
        # Steps are below 2^52 and levels are a power of two: one division is rounded, alike in every engine.
        return (steps.cast("float64") * float(factor.levels) / float(top) + 0.5).floor().cast("int64")


# Derived columns as expressions of the engine: total on every value, and the same on every engine.
#
# Sums, differences and products of doubles that are no finite numbers stay that way (inf - inf and 0 * inf are NaN),
# so that it is enough to look where something else takes them: a division, a function, a comparison, the column
# itself. There what is no finite number becomes missing. Constants are written as text, which every engine reads as
# the nearest double; a decimal literal would be divided by a power of ten, and rounded twice.
#
# A text that `replace` or `concat` would make longer than LONGEST_TEXT is missing, and is never made: its length is
# computed first. Where declarations bound the length already, nothing is looked at.

LARGEST, SMALLEST = "1.7976931348623157E308", "4.9E-324"
WHOLE = "9007199254740992"


def with_derived(relation: Any, schema: Schema, engine: Engine) -> Any:
    """The table with its derived columns, each computed from declared values of its own row."""
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
        """A part with its own type: a finite double, a text, a truth value, a day; or missing."""
        if kind == "number":
            return self.number(node)
        if isinstance(node, Reference):
            x = self.reader.clean(node.name)
            return self.engine.sound(x) if kind == "text" else x
        return getattr(self, kind)(node)

    def _kind(self, *nodes: Node) -> str:
        """The one type of these parts. A text that is a day counts as a day beside a day."""
        kinds: set[str] = {type_in(node, self.schema) for node in nodes}
        return "day" if "day" in kinds else kinds.pop()

    # --- numbers --------------------------------------------------------------------------------------------
    def number(self, node: Node) -> Any:
        """A finite double."""
        import ibis

        x = self.loose(node)
        if isinstance(node, CompilingConstant) or (isinstance(node, Reference) and self._finite(node.name)):
            return x
        return ibis.cases((x.abs() <= _double(LARGEST), x), else_=ibis.null("float64"))

    def _finite(self, name: str) -> bool:
        column = self.schema[name]
        return not isinstance(column, Measured) or column.bounded

    def loose(self, node: Node) -> Any:
        """A double that need not be finite."""
        import ibis

        match node:
            case CompilingConstant(value=value):
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

        if isinstance(node, CompilingConstant):
            return ibis.literal(str(node.value))
        assert isinstance(node, Call)
        if node.name in ("case", "coalesce"):
            return self._chosen(node.name, node.arguments, "text")
        if node.name == "text":
            return self.engine.rounded_whole(self.number(node.arguments[0])).cast("string")
        parts: list[Any] = [
            self.made(g, "text")
            if not isinstance(g, CompilingConstant) or isinstance(g.value, str)
            else g.value
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
        """Every `old` in a text becomes `new`; missing if the result would be too long, which is decided beforehand."""
        before, after = (len(str(g.value)) for g in node.arguments[1:] if isinstance(g, CompilingConstant))
        if after <= before or longest(node.arguments[0], self.schema) * after <= LONGEST_TEXT * before:
            return x.replace(old, new)
        # The text without its old parts is no longer than it was, and tells how many of them there are.
        size, left = (text.length().cast("int64") for text in (x, x.replace(old, "")))
        fits = size * before + (size - left) * (after - before) <= LONGEST_TEXT * before
        return _where(fits, x).replace(old, new)

    def _joined(self, node: Call, texts: list[Any]) -> Any:
        """Texts one after the other; missing if they are too long together."""
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

        if isinstance(node, CompilingConstant):
            return ibis.literal(datetime.date.fromisoformat(str(node.value)))
        assert isinstance(node, Call)
        return self._chosen(node.name, node.arguments, "day")

    # --- truth ----------------------------------------------------------------------------------------------
    def flag(self, node: Node) -> Any:
        """True, false or unknown."""
        import ibis

        match node:
            case CompilingConstant(value=value):
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
    """The text if it fits, else nothing, so that later functions never see a longer one."""
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


# The columns that are read: their names are nobody else's, their types hold what was declared, text is bytes.
#
# Everything here looks at names and types, never at a row. Names that differ only in case are one name to some
# engines, and names that begin with `__tacit` are our own: both are refused, so that no column can stand in for
# another.


def check_columns(wanted: Sequence[str], found: Iterable[str], *, source: str) -> None:
    """Checks that each wanted column exists exactly once, also if "Age" and "age" are one name to the engine."""
    found = list(map(str, found))
    check_names(wanted)
    twice = {name for name, n in Counter(name.casefold() for name in found).items() if n > 1}
    for name in wanted:
        if name not in found:
            raise UnknownColumn(column=name, known=found, where=source)
        # DuckDB calls the second "age" of a file "age_1", which may be the name of a third column.
        if any(name.casefold() == one or name.casefold().startswith(f"{one}_") for one in twice):
            raise BadData(
                source=source, problem=f"has several columns that are called {name!r}, or differ from it in case only",
                hint="rename them: to some engines these are one name",
            )  # fmt: skip


def selected(
    relation: Any,
    columns: Sequence[str],
    *,
    schema: Schema,
    person: str | None,
    engine: Engine,
    source: str,
) -> Any:
    """The wanted columns of an engine's table, their types checked, their text compared by bytes; and derived ones."""
    check_columns(columns, relation.columns, source=source)
    engine.prepare(relation)
    narrow = bytewise(relation.select(*columns), engine)
    check_types(narrow, schema)
    if person is not None:
        _check_person(person, narrow[person].type())
    return with_derived(narrow, schema, engine) if schema.derived else narrow


def bytewise(relation: Any, engine: Engine) -> Any:
    """The same rows; text columns without the collation of the column or the session."""
    return relation.select(
        **{
            n: engine.bytewise(relation[n]) if relation[n].type().is_string() else relation[n]
            for n in relation.columns
        }
    )


def _check_person(name: str, dtype: Any) -> None:
    plain = (
        dtype.is_string() or dtype.is_numeric() or dtype.is_boolean() or dtype.is_temporal() or dtype.is_uuid()
        or dtype.is_binary() or dtype.is_null()
    )  # fmt: skip
    if not plain:
        raise WrongType(
            column=name, found=f"stored as {dtype}", wanted="something that tells people apart",
            hint="a number or a text: convert it in the table",
        )  # fmt: skip
