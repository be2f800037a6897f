"""How many passes over the rows a set of questions takes, and that short integers are read as long ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, integer, number, open_table, query
from tacit.sources import engines as engines_room
from tacit.statistics.base import Statistic

KEY = b"an ordinary secret of the tests."
SCHEMA = Schema(
    {
        "a": integer(0, 99),
        "b": integer(0, 299),
        "c": category(["x", "y"]),
        "v": number(0, 1),
        "w": number(0, 1),
    }
)
ROWS = pa.table(
    {
        "id": [i % 40 for i in range(200)],
        "a": [i * 7 % 105 for i in range(200)],
        "b": [i * 11 % 310 for i in range(200)],
        "c": ["xyz"[i % 3] for i in range(200)],
        "v": [i / 150 for i in range(200)],
        "w": [i / 170 for i in range(200)],
    }
)


def passes(monkeypatch: Any, unit: Any, *asked: Statistic) -> int:
    """The number of queries with rows behind them; what they give must be what each gives alone."""
    questions = [s.on(SCHEMA, unit) for s in asked]
    with open_table(ROWS, schema=SCHEMA, unit=unit) as table:
        alone = [ask.read(table, [q], key=KEY)[0] for q in questions]
    seen: list[Any] = []
    plain = engines_room.DuckDB.batches

    def counted(self: Any, query: Any) -> Any:
        seen.append(query)
        return plain(self, query)

    with open_table(ROWS, schema=SCHEMA, unit=unit) as table, monkeypatch.context() as patch:
        patch.setattr(engines_room.DuckDB, "batches", counted)
        together = ask.read(table, questions, key=KEY)
    for one, other in zip(alone, together, strict=True):
        assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in other.items()}
    return len(seen)


def test_a_grouping_that_is_asked_for_answers_all_that_it_contains(monkeypatch: Any) -> None:
    """100 x 300 x 2 cells are more than anybody would group by of their own accord; they are asked for here."""
    by: list[Any] = [None, "a", "b", "c", ["a", "b"], ["c", "a"], ["a", "b", "c"]]
    asked = [ask.count(by=b) for b in by] + [ask.sum("v", by=b) for b in by[:5]]
    assert passes(monkeypatch, rows(), *asked) == 1
    assert passes(monkeypatch, rows(), *asked[::-1]) == 1


def test_counts_alone_are_not_grouped_finer_than_anybody_asks(monkeypatch: Any) -> None:
    assert passes(monkeypatch, rows(), ask.margins(["a", "c"])) == 2
    assert passes(monkeypatch, rows(), ask.count(by="a"), ask.count(by="c"), ask.count()) == 2


def test_a_sum_that_two_groupings_share_is_added_up_once(monkeypatch: Any) -> None:
    assert passes(monkeypatch, rows(), ask.sum("v", by="a"), ask.sum("v", by="c")) == 1
    assert passes(monkeypatch, rows(), ask.sum("v", by="a"), ask.sum("w", by="c")) == 2
    assert passes(monkeypatch, rows(), ask.sum("v", by="a"), ask.sum("v", by="b")) == 2, "too fine"


def test_a_shared_sum_brings_counts_along(monkeypatch: Any) -> None:
    """Counts alone would keep the groupings of their keys apart, in whatever order they are asked."""
    counts = [ask.count(by=by) for by in (None, "a", "c")]
    sums = [ask.sum("v", by=by) for by in (None, "a", "c")]
    assert passes(monkeypatch, rows(), *counts, *sums) == 1
    assert passes(monkeypatch, rows(), *sums, *counts) == 1


def test_what_a_grouping_has_anyhow_takes_no_pass_of_its_own(monkeypatch: Any) -> None:
    """Twelve releases of one table, and a hundred with common filters: as many passes as groupings are needed."""
    one = ask.sum("v", by=["a", "c"])
    others = [ask.sum("w", by="a"), ask.count(by="c"), ask.mean("w"), ask.proportion("v > 0.5", by="c")]
    assert passes(monkeypatch, rows(), one, *others) == 1
    many = [
        made(where=f"v > {i / 20}", by=by)
        for i in range(10)
        for made in (ask.count, lambda **more: ask.sum("w", **more))
        for by in (None, "a", "c", ["a", "c"], "b")
    ]
    assert len(many) == 100
    assert passes(monkeypatch, rows(), *many) <= 5


FILTERED = ["v > 0.5", "c = 'x' and v > 0.2", "a < 50 and c = 'x' and w is missing", "not (w > 0.4)"]


@pytest.mark.parametrize("unit", [rows(), people("id", at_most=2), people("id", at_most=3, groups=1)])
@pytest.mark.parametrize("by", [None, "c", ["a", "c"], "open"])
@pytest.mark.parametrize("whole", FILTERED)
def test_a_common_filter_in_front_gives_what_it_gives_in_each_sum(
    monkeypatch: Any, unit: Any, by: Any, whole: str
) -> None:
    """Of a person the same rows count, whatever the filter: it comes after the bounding."""
    schema = Schema({**dict(SCHEMA), "open": category()})
    some = [None if i % 3 == 0 else v for i, v in enumerate(ROWS["w"].to_pylist())]
    held = ROWS.append_column("open", ROWS["c"]).set_column(5, "w", [some])
    asked = [ask.count(by=by, where=f"({whole}) and v < 0.9"), ask.count(by=by, where=whole)]
    if by != "open":
        asked += [ask.sum("w", by=by, where=whole), ask.mean("v", by=by, where=whole)]
    questions = [s.on(schema, unit) for s in asked]
    read: list[Any] = []
    for plain in (False, True):
        with open_table(held, schema=schema, unit=unit) as table, monkeypatch.context() as patch:
            if plain:
                patch.setattr(query, "_behind_filter", lambda _table, relation, wanted: (relation, wanted))
            read.append([one.values for group in ask.read_cells(table, questions, key=KEY) for one in group])
    for one, other in zip(*read, strict=True):
        assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in other.items()}
    assert any(np.any(v != 0) for one in read[0] for v in one.values())


def test_people_are_never_added_up(monkeypatch: Any) -> None:
    unit = people("id", at_most=3)
    asked = [ask.count(by="a", of="people"), ask.count(by=["a", "c"], of="people"), ask.count(by="a")]
    assert passes(monkeypatch, unit, *asked) >= 2


@pytest.mark.parametrize(("low", "high"), [(-3, 5), (-200, 300), (0, 2**31 - 1), (-(2**31), 7), (0, 2**40)])
@pytest.mark.parametrize("outside", ["clamp", "missing"])
@pytest.mark.parametrize("missing", [None, 4])
@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_integers_of_every_width_mean_the_same(
    kind: Any, missing: Any, outside: Any, low: int, high: int
) -> None:
    least = 0 if str(kind).startswith("u") else -(2 ** (kind.bit_width - 1))
    most = 2 ** (kind.bit_width - (least < 0)) - 1
    held = [v for v in (least, -200, -4, -3, -1, 0, 4, 5, 6, 100, 300, 2**31, most) if least <= v <= most]
    schema = Schema({"n": integer(low, high, missing=missing, outside=outside)})
    with open_table(pa.table({"n": pa.array([*held, None], type=kind)}), schema=schema, unit=rows()) as table:
        question = ask.sum("n").on(schema, rows())
        total = float(question.assemble(ask.read(table, [question])[0]))
        few = ask.count(where="n > 3").on(schema, rows())
        above = ask.read(table, [few])[0]
    values = []
    for value in [*held, None]:
        inside = value is not None and low <= value <= high
        clean = (
            value if inside else None if value is None or outside == "missing" else min(max(value, low), high)
        )
        values.append(missing if clean is None else clean)
    counted = [v for v in values if v is not None]
    assert total == sum(counted)
    assert int(above["count"]) == sum(v > 3 for v in counted)
