"""Each engine suite runs on every way to hand over a table."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["parquet", "csv", "pandas", "polars", "arrow", "ibis"])
def handed_over(request, tmp_path):
    """A function that hands a list of rows over, as the form under test."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    def give(rows, types):
        table = pa.Table.from_pylist(rows, schema=pa.schema(types))
        match request.param:
            case "parquet":
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
            case _:
                return table

    return give
