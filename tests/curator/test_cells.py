"""The cells of a release as columns: keys keep their place whatever the custodian calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.noise.source import SeededSource
from tacit.report.building import report_of

WORDS = ["value", "low", "high", "quality", "level", "share", "bound", "all"]


@pytest.mark.parametrize("name", WORDS)
def test_a_column_of_any_name_keeps_its_keys(name: str) -> None:
    """`value` is a common name of a column, and the name of what is released."""
    schema = {name: tacit.category(["a", "b"]), "x": tacit.integer(0, 9), "y": tacit.category(["u", "v"])}
    table = pa.table({name: ["a", "b", "a"], "x": [1, 2, 3], "y": ["u", "v", "v"]})
    asks: list[Any] = [
        tacit.count(by=name), tacit.mean("x", by=name), tacit.quantiles("x", by=name), tacit.margins([name, "y"]),
        tacit.hierarchy([name, "y"]),
    ]  # fmt: skip
    curator = tacit.Curator(table, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=100.0))
    with curator:
        plan = curator.preview(asks, epsilon=50.0)
        releases = curator.release(plan)
        for release in releases:
            columns = release.columns
            assert len({len(c) for c in columns.values()}) == 1
            assert [n for n in columns if n in ("value", "low", "high")] == ["value", "low", "high"]
            keys = [n for n, c in columns.items() if set(c) in ({"a", "b"}, {"a", "b", "all"})]
            assert len(keys) == 1, release.name
            assert name in keys[0]
            assert release.to_csv().splitlines()[0].count(",") == len(columns)
            assert release.to_arrow().num_columns == len(columns) + 1
            assert str(release)
        assert report_of(plan, releases, budget=curator.budget, title="t")


def test_what_is_kept_of_neighbours_has_one_type() -> None:
    """Sums on both sides of 2^62, one row apart: what is kept with a release, and in the ledger, is of one type."""
    top, seen = 2**52 - 1, []
    asks = [tacit.sum("x"), tacit.mean("x"), tacit.sum("x", by="a"), tacit.ratio("x", "y")]
    for rows in (1023, 1024, 1025, 1026):
        table = pa.table({"x": pa.array([top] * rows, pa.int64()), "y": [1] * rows, "a": ["u"] * rows})
        curator = tacit.Curator(
            table,
            protect=tacit.rows(),
            schema={"x": tacit.integer(0, top), "y": tacit.integer(0, 9), "a": tacit.category(["u", "v"])},
            budget=tacit.Pure(epsilon=10.0**6),
            source=SeededSource(seed=1),
        )
        with curator:
            answers = curator.release(asks, epsilon=10.0**6)
        seen.append([(n, np.asarray(v).dtype.str) for a in answers for n, v in a.noisy.parts.items()])
    assert 1024 * top < 2**62 < 1025 * top
    assert seen[1:] == seen[:-1]
