"""Numbers, days and flags in text: one grammar, the same in DuckDB, in Spark and in plain Python."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from support import grammar
from support.spark import needs_spark
from tacit.guarantees import rows
from tacit.sources import Schema, category, date, flag, number, open_table
from tacit.sources.compiling import Reader

SCHEMA = Schema(
    {
        "real": number(),
        "flag": flag(),
        "day": date("0001-01-01", "9999-12-31", outside="missing"),
        "whole": category([3]),
    }
)


def readings(engine, texts=grammar.TEXTS):
    """What the engine makes of each text, before bounds and lists."""
    columns = {name: pa.array(texts, pa.string()) for name in SCHEMA}
    with open_table(pa.table({**columns}), schema=SCHEMA, unit=rows(), engine=engine) as table:
        reader = Reader(table.relation, SCHEMA, engine=table.dialect)
        said = {n: reader.stored(n) for n in ("real", "flag", "whole")}
        said["day"] = table.dialect.days(reader.stored("day")).cast("int64")
        # Text and answers side by side: engines give rows in any order.
        query = table.relation.select(text=table.relation["real"], **said)
        found = table.read(
            lambda: [row for batch in table.dialect.batches(query)() for row in batch.to_pylist()]
        )
    return {row["text"]: row for row in found}


def same(left, right):
    return left == right or (
        left is not None and right is not None and math.isnan(left) and math.isnan(right)
    )


def compared(engine):
    found = readings(engine)
    assert len(found) == len(set(grammar.TEXTS))
    wrong = []
    for text, row in found.items():
        expected = (grammar.number(text), grammar.flag(text), grammar.whole(text), grammar.days(text))
        seen = (row["real"], row["flag"], row["whole"], row["day"])
        if not all(map(same, expected, seen)):
            wrong.append((text, seen, expected))
    assert not wrong


def test_duckdb_reads_texts_by_the_grammar():
    compared(None)


@pytest.mark.slow
@needs_spark
def test_spark_reads_texts_by_the_grammar():
    compared("spark")


def test_the_list_has_every_kind():
    assert len(set(grammar.TEXTS)) > 200
    for one in (grammar.number, grammar.flag, grammar.whole, grammar.days):
        answers = [one(t) for t in grammar.TEXTS]
        assert any(a is None for a in answers)
        assert sum(a is not None for a in answers) > 10
