"""A Parquet file in which one row is not text is read in another way: every other row must come out the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz import values
from tacit.guarantees import rows
from tacit.sources import category, date, flag, integer, open_table

STORED = (
    *values.INTEGERS, *values.FLOATS, *values.DECIMALS, *values.TEXTS, *values.DAYS, "bool", "duration", "null"
)  # fmt: skip
NEAR = (-1, -999, -1000, -1001, 1, 999, 1001, -86_400_000_000_001)


def _cells(stored: str) -> tuple[list[Any], Any]:
    """Plain and odd cells of a type, none of them bytes that are no text, and a declaration for them."""
    label, declared = (
        ("date", date("2020-01-01", "2020-01-10")) if stored in values.DAYS
        else ("flag", flag()) if stored == "bool"
        else ("open", category()) if stored in values.TEXTS
        else ("integer", integer(0, 9))
    )  # fmt: skip
    luck = random.Random(stored)
    words = (b"a", b"b")
    odd = [values.odd(luck, label, stored, words) for _ in range(60)]
    cells = [values.plain(luck, label, stored, words) for _ in range(6)]
    cells += [c for what, c in odd if what not in ("bad bytes", "long text")]
    if stored in values.STAMPS:
        cells += NEAR
        # Further away than that, seconds and milliseconds have no microseconds: such a row brings the other way about.
        coarse = values.STAMPS[stored][0] in ("s", "ms")
        cells = [c for c in cells if c is None or not coarse or abs(c) < 1 << 40]
    return cells, declared


@pytest.mark.parametrize("stored", STORED)
def test_one_row_that_is_no_text_changes_no_other(stored: str, tmp_path: Path) -> None:
    cells, declared = _cells(stored)
    found = []
    for name, last in (("whole", b"z"), ("broken", b"\xff")):
        words = pa.array([b"%d" % i for i in range(len(cells))] + [last], pa.binary()).view(pa.string())
        table = pa.table({"x": values.array(stored, [*cells, None]), "word": words})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        schema = {"x": declared, "word": category()}
        with open_table(tmp_path / f"{name}.parquet", schema=schema, unit=rows()) as opened:

            def read(opened: Any = opened) -> dict[str, Any]:
                backend = opened.relation.get_backend()
                # The hash tells all values apart that the engine does, infinite moments too.
                query = f"SELECT word, x IS NULL, hash(x) FROM ({backend.compile(opened.relation)})"
                return {word: rest for word, *rest in backend.con.execute(query).fetchall()}

            found.append(opened.read(read))
            assert opened._rescued == (name == "broken")
    whole, broken = found
    assert {w: whole[w] for w in whole if w != "z"} == {w: broken[w] for w in broken if w is not None}
