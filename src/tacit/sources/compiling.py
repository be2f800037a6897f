"""Declared columns, filters, axes and aggregates as expressions of the engine (Ibis).

Nothing here raises for a value: casts give null where they fail, and nulls follow the declared policy.
Ibis is imported inside functions, since that takes about a second.
"""

from __future__ import annotations

import datetime
from typing import Any

from tacit.errors import WrongType
from tacit.sources import aggregates as agg
from tacit.sources.axes import Axis, Bins, Cut, Listed, Magnitudes
from tacit.sources.engines import Engine, engine_of
from tacit.sources.expressions import And, Compare, Constant, Expression, IsIn, IsMissing, IsTrue, Not, Or
from tacit.sources.schema import Category, Column, Date, Flag, Integer, Measured, Number, Schema

__all__ = ["Reader", "check_types", "in_steps"]

YES = ("1", "t", "true", "y", "yes", "1.0")
NO = ("0", "f", "false", "n", "no", "0.0")
SMALL = 1 << 31
HUGE = 1 << 62
"""Above every bound that can be declared."""


def _stored_as(column: Column, dtype: Any) -> bool:
    """Can a column of this engine type hold what was declared?"""
    numeric = dtype.is_numeric() and not dtype.is_boolean()
    if isinstance(column, Flag):
        return bool(dtype.is_boolean() or numeric or dtype.is_string())
    if isinstance(column, Date):
        return bool(dtype.is_date() or dtype.is_timestamp() or dtype.is_string())
    if isinstance(column, Category):
        return bool(dtype.is_string() or numeric)
    return bool(numeric or dtype.is_string())


def check_types(table: Any, schema: Schema) -> None:
    """Every declared column is stored in a type that can hold it. Looks at types only, never at values."""
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
        """The column in the engine type that its declaration wants; null where it cannot be read as such."""
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
        return self._real(x)

    def _short(self, column: Integer, x: Any) -> Any:
        """A stored integer of up to 32 bits with a sign stays that where its bounds do, too: half the work."""
        small = column.bounded and max(abs(column.lowest), abs(column.highest)) < SMALL
        if not small or x.type().is_uint32():
            return self._signed(x)
        return x if x.type().is_int32() else x.cast("int32")

    def _signed(self, x: Any) -> Any:
        """An integer of 64 bits with a sign; what is too large for it stays above every bound."""
        import ibis

        if x.type().is_uint64():
            return ibis.ifelse(x > HUGE, HUGE, x).cast("int64")
        return x if x.type().is_int64() else x.cast("int64")

    def _whole(self, x: Any) -> Any:
        """A whole number of 64 bits with a sign; null where there is none."""
        dtype = x.type()
        if dtype.is_uint64():
            return x.try_cast("int64")
        if dtype.is_integer():
            return self._signed(x)
        return self.engine.whole(x) if dtype.is_string() else self.engine.rounded_whole(self.engine.double(x))

    def _real(self, x: Any) -> Any:
        return self.engine.real(x) if x.type().is_string() else self.engine.double(x)

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
        """The declared value before rounding: clamped or missing, replaced where that was declared."""
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

    def key(self, axis: Axis, *, declared: bool = True) -> Any:
        """The row's key: an index from 0, or a category's own value; null where the row has none.

        declared=False leaves categories outside the list as they are, for the reader of the cells to drop.
        """
        import ibis

        if isinstance(axis, Cut):
            offset = self.offset(axis.column)
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
        """The rows that an aggregate looks at; None for all of them."""
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
        assert isinstance(aggregate, agg.Steps | agg.Squares)
        square = isinstance(aggregate, agg.Squares)
        x = self.offset(aggregate.column, wide=square)
        x = x * x if square else x
        width = self.schema.measured(aggregate.column).width
        bits = (width**2 if square else width).bit_length()
        return self.engine.total(x, where=self.mask(aggregate, skip=aggregate.column), bits=bits)
