"""Each engine suite runs on every engine, and on every way to hand over a table."""

from __future__ import annotations

import pytest

from support.spark import needs_spark, session
from tacit.sources import open_table

FORMS = ["parquet", "csv", "pandas", "polars", "arrow", "ibis"]
SPARK = ["spark frame", "spark parquet"]


@pytest.fixture(params=[*FORMS, *(pytest.param(form, marks=needs_spark) for form in SPARK)])
def opened(request, tmp_path):
    """A function that opens a list of rows as a table, handed over in the form under test."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    def give(rows, types):
        table = pa.Table.from_pylist(rows, schema=pa.schema(types))
        match request.param:
            case "parquet" | "spark parquet":
                pa.parquet.write_table(table, tmp_path / "t.parquet")
                return tmp_path / "t.parquet"
            case "csv":
                pa.csv.write_csv(table, tmp_path / "t.csv")
                return str(tmp_path / "t.csv")
            case "pandas":
                return table.to_pandas()
            case "polars":
                import polars

                return polars.from_arrow(table)
            case "ibis":
                import ibis

                return ibis.duckdb.connect().create_table("t", table)
            case "spark frame":
                from support.spark import frame

                return frame(table)
            case _:
                return table

    def open_rows(rows, types, *, schema, unit):
        if request.param.startswith("spark"):
            session()
        engine = "spark" if request.param == "spark parquet" else None
        return open_table(give(rows, types), schema=schema, unit=unit, engine=engine)

    return open_rows
