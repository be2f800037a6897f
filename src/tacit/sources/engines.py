"""What engines say differently, in one place: each engine is a class, and nothing else asks for an engine's name.

`Engine` holds the portable forms, for any engine that Ibis speaks to. `DuckDB` and `Spark` replace what the engine
does better by itself, or what Ibis cannot say to it. All of them give the same integers for the same rows.
"""

from __future__ import annotations

import inspect
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["DuckDB", "Engine", "Spark", "engine_of"]

BATCH = 1 << 17
GROUP = "__tacit_group"
LIMB = 27
"""Bits of a part of a sum: 2^36 rows, 70 thousand million, fit in 64 bits."""
DIGITS = "[0-9]+(?:_[0-9]+)*"
NUMBER = (
    f"^[+-]?(?:{DIGITS}[.]?(?:{DIGITS})?|[.]{DIGITS})(?:[eE][+-]?[0-9]+)?$"
    "|^[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?$"
)
DAY = "^[0-9]{4}(?:-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})(?:[ T].*)?$"


class Engine:
    """The portable forms. Casts cut, sums of 64 bits may wrap around, and queries give all rows at once."""

    name = "ibis"
    batchwise = True
    """Do results come in batches, so that keys outside the declared list can be dropped as they come?"""

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        """An integer that depends on a row's values in these columns and on the seed, for digests."""
        import ibis

        text = [table[c].cast("string").fill_null("\x00") for c in columns]
        return ibis.literal("\x1f").join([ibis.literal(str(seed)), *text]).hash()

    def keyed_hash(self, text: Any) -> Any:
        """A hash of a text that begins with a secret; the order of rows and groups in bounding."""
        return text.hash()

    def trimmed(self, text: Any) -> Any:
        """The text without white space around it."""
        return text.strip()

    def real(self, text: Any) -> Any:
        """The number that a text stands for; null where it is none."""
        return text.try_cast("float64")

    def day(self, text: Any) -> Any:
        """The day that a text stands for; null where it is none."""
        return text.try_cast("date")

    def days(self, day: Any) -> Any:
        """Days since 1970-01-01."""
        return day.epoch_days()

    def nearest(self, x: Any, dtype: str) -> Any:
        """The nearest integer of a double that fits the type."""
        return (x + 0.5).floor().cast(dtype)

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        """The exact sum of integers from 0 to below 2^bits."""
        return x.cast("decimal(38, 0)").sum(where=where).cast("decimal(38, 0)")

    def only_listed(
        self,
        relation: Any,
        keys: dict[str, Any],
        measures: dict[str, Any],
        lists: Mapping[str, Sequence[Any]],
    ) -> Any:
        """The grouped query, without groups whose keys are not in the lists."""
        raise NotImplementedError

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        """A call that runs the query and gives its result in Arrow batches."""
        return lambda: iter(query.to_pyarrow_batches())

    def keep(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        """The rows, computed once and held by the engine; and a call that lets them go, where one is needed."""
        return relation.cache(), None


class DuckDB(Engine):
    """In the process. Its casts round to the nearest integer, ties to even, and its sums are 128 bits wide."""

    name = "duckdb"

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        # Ibis writes hash() with a detour through bit strings that costs more than the hash itself.
        return _call("hash", "uint64", _word(seed), *(table[c] for c in columns))

    def keyed_hash(self, text: Any) -> Any:
        return _sha256(text)

    def nearest(self, x: Any, dtype: str) -> Any:
        return x.cast(dtype)

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        return x.sum(where=where).cast("decimal(38, 0)")

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        backend = query.get_backend()
        text = backend.compile(query)

        def start() -> Iterator[Any]:
            # As Ibis does, but through DuckDB's lasting name for it.
            backend._run_pre_execute_hooks(query)
            relation = backend.con.sql(text)
            newer = hasattr(relation, "to_arrow_reader")
            return iter(relation.to_arrow_reader(BATCH) if newer else query.to_pyarrow_batches())

        return start


class Spark(Engine):
    """PySpark. Results come back whole, so that keys outside the declared list are dropped in the engine."""

    name = "pyspark"
    batchwise = False

    def row_hash(self, table: Any, columns: Sequence[str], seed: int) -> Any:
        # xxhash64 passes over nulls, so that it must be told where they are.
        nulls = [table[c].isnull() for c in columns]
        return _call("xxhash64", "int64", _word(seed), *(table[c] for c in columns), *nulls)

    def keyed_hash(self, text: Any) -> Any:
        return _sha256(text)

    def trimmed(self, text: Any) -> Any:
        # A range of characters: Ibis writes two of them as \v and \f, which Spark reads as the letters v and f.
        return text.re_replace("^[ \t-\r]+|[ \t-\r]+$", "")

    def real(self, text: Any) -> Any:
        import ibis

        # Java reads "1d" and "0x1p3" as numbers; DuckDB and people do not.
        text = self.trimmed(text)
        value = _call("replace", "string", text, ibis.literal("_"), ibis.literal("")).try_cast("float64")
        return ibis.ifelse(text.re_search(NUMBER), value, ibis.null("float64"))

    def day(self, text: Any) -> Any:
        import ibis

        # Spark takes "2020" as the first of January, and no slashes.
        text = self.trimmed(text)
        value = _call("replace", "string", text, ibis.literal("/"), ibis.literal("-")).try_cast("date")
        return ibis.ifelse(text.re_search(DAY), value, ibis.null("date"))

    def days(self, day: Any) -> Any:
        return _call("unix_date", "int32", day)

    def nearest(self, x: Any, dtype: str) -> Any:
        # Rounds ties to even, as DuckDB's casts do; round() would not.
        return _call("rint", "float64", x).cast(dtype)

    def total(self, x: Any, *, where: Any, bits: int) -> Any:
        # Sums of decimals leave compiled code; sums of parts of 27 bits stay in it and cannot overflow.
        x, parts = x.cast("int64"), range(0, max(bits, 1), LIMB)
        if len(parts) == 1:
            return x.sum(where=where)
        out = None
        for at in parts:
            last = at == parts[-1]
            part = x >> at if at else x
            part = part if last else part & ((1 << LIMB) - 1)
            # 38 digits hold any sum of 63-bit numbers over 2^63 rows.
            term = part.sum(where=where).cast("decimal(20, 0)").cast("decimal(38, 0)")
            power = 1 << at
            term = term if power == 1 else term * power
            out = term if out is None else out + term
        return out

    def only_listed(
        self,
        relation: Any,
        keys: dict[str, Any],
        measures: dict[str, Any],
        lists: Mapping[str, Sequence[Any]],
    ) -> Any:
        query = relation.group_by(**keys).aggregate(**measures, **{GROUP: relation.count()})
        for name, values in lists.items():
            # Mixed with the size of the group, the test cannot be moved in front of the grouping, to every row.
            query = query.filter(query[name].isin(values).cast("int64") * query[GROUP] > 0)
        return query.drop(GROUP)

    def batches(self, query: Any) -> Callable[[], Iterator[Any]]:
        def start() -> Iterator[Any]:
            backend = query.get_backend()
            backend._run_pre_execute_hooks(query)
            frame = backend.raw_sql(backend.compile(query))
            with warnings.catch_warnings():
                # PySpark leaves the socket of a result to the garbage collector.
                warnings.simplefilter("ignore", ResourceWarning)
                # By way of pandas, as Ibis does it, integers with nulls would become doubles.
                return iter(frame.toArrow().to_batches())

        return start

    def keep(self, relation: Any) -> tuple[Any, Callable[[], None] | None]:
        backend = relation.get_backend()
        backend._run_pre_execute_hooks(relation)
        name = f"__tacit_{secrets.token_hex(8)}"
        frame = backend.raw_sql(backend.compile(relation)).persist()
        frame.createOrReplaceTempView(name)

        def drop() -> None:
            backend._session.catalog.dropTempView(name)
            frame.unpersist()

        return backend.table(name), drop


ENGINES = {e.name: e for e in (DuckDB(), Spark())}


def engine_of(relation: Any) -> Engine:
    """The engine that holds an Ibis table."""
    name: str = relation.get_backend().name
    if name in ENGINES:
        return ENGINES[name]
    other = Engine()
    other.name = name
    return other


def _sha256(text: Any) -> Any:
    """48 bits, as text that sorts the same everywhere."""
    return text.hexdigest("sha256").substr(0, 12)


def _word(value: int) -> Any:
    import ibis

    return ibis.literal(value, type="int64")


def _call(name: str, result: str, *values: Any) -> Any:
    """The engine's own function, by its name."""
    import ibis
    import ibis.expr.datatypes as dt

    def function(*_: Any) -> None: ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"a{i}", kind) for i in range(len(values))]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    signature = (tuple(v.type() for v in values), dt.dtype(result))
    return ibis.udf.scalar.builtin(function, name=name, signature=signature)(*values)
