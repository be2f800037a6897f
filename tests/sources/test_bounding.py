"""What is kept of one person does not depend on anybody else, and is never more than declared."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pyarrow as pa
import pytest

from support.bounded import kept_rows
from tacit.errors import InvalidParameter
from tacit.guarantees import people, rows
from tacit.sources import Schema, bounding, category, integer, open_table
from tacit.sources.bounding import bounded_relation
from tacit.sources.engines import DuckDB

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema({"group": category(["a", "b", "c", "d"]), "x": integer(0, 9)})


def table_of(data):
    return pa.Table.from_pylist(
        data, schema=pa.schema([("id", pa.string()), ("group", pa.string()), ("x", pa.int64())])
    )


def kept(data, unit, *, key=KEY, by=(), portable=False):
    with open_table(table_of(data), schema=SCHEMA, unit=unit, portable=portable) as table:
        found = kept_rows(table, key, by)
    return Counter((r["id"], r["group"], r["x"]) for r in found)


def person(name, n, seed):
    rng = random.Random(f"{name}{seed}")
    return [{"id": name, "group": rng.choice("abcdz"), "x": rng.randrange(4)} for _ in range(n)]


CROWD = [r for i in range(60) for r in person(f"p{i}", i % 9, 1)]


@pytest.mark.parametrize("narrow", [0, 100])
@pytest.mark.parametrize("by", [(), ("group",)])
def test_adding_removing_or_replacing_a_person_changes_nobody_else(by, narrow, monkeypatch):
    monkeypatch.setattr(bounding, "NARROW", narrow)
    unit = people("id", at_most=4, groups=2)
    base = kept(CROWD, unit, by=by)
    rng = random.Random(3)
    for trial in range(6):
        extra = person("new", rng.randrange(1, 12), trial)
        mixed = [*CROWD, *extra]
        rng.shuffle(mixed)
        bigger = kept(mixed, unit, by=by)
        assert Counter({k: n for k, n in bigger.items() if k[0] != "new"}) == base
        alone = kept(extra, unit, by=by)
        assert Counter({k: n for k, n in bigger.items() if k[0] == "new"}) == alone
    smaller = kept([r for r in CROWD if r["id"] != "p8"], unit, by=by)
    assert smaller == Counter({k: n for k, n in base.items() if k[0] != "p8"})


def test_never_more_rows_or_groups_than_declared_and_never_fewer_than_possible():
    found = kept(CROWD, people("id", at_most=3))
    given = Counter(r["id"] for r in CROWD)
    sizes = Counter()
    for (name, _, _), n in found.items():
        sizes[name] += n
    assert sizes == Counter({name: min(3, n) for name, n in given.items()})
    grouped = kept(CROWD, people("id", at_most=5, groups=2), by=("group",))
    for name, entries in itertools.groupby(sorted(grouped), key=lambda k: k[0]):
        groups = {g for _, g, _ in entries}
        assert len(groups) <= 2, name
        assert groups <= set("abcd"), "rows without a group take no place"


def test_equal_rows_are_kept_up_to_the_limit():
    same = [{"id": "p", "group": "a", "x": 1}] * 10
    assert kept(same, people("id", at_most=4)) == Counter({("p", "a", 1): 4})


@pytest.mark.parametrize("narrow", [0, 100])
@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("by", [(), ("group",)])
def test_rows_without_a_person_are_not_used(portable, by, narrow, monkeypatch):
    monkeypatch.setattr(bounding, "NARROW", narrow)
    data = [{"id": None, "group": "a", "x": 1}, {"id": "p", "group": "a", "x": 1}]
    unit = people("id", at_most=4, groups=2)
    assert kept(data, unit, by=by, portable=portable) == Counter({("p", "a", 1): 1})


@pytest.mark.parametrize("portable", [False, True])
def test_equal_hashes_of_groups_let_no_further_group_in(portable, monkeypatch):
    """With a hash that is the same for all groups, the first ones by their keys are kept, and no more than allowed."""
    import ibis

    monkeypatch.setattr(DuckDB, "row_hash", lambda *_: ibis.literal(7))
    monkeypatch.setattr(DuckDB, "keyed_hash", lambda *_: ibis.literal("same"))
    data = [{"id": "p", "group": g, "x": x} for g in "dcba" for x in range(3)]
    found = kept(data, people("id", at_most=12, groups=2), by=("group",), portable=portable)
    assert {g for _, g, _ in found} == {"a", "b"}
    assert sum(found.values()) == 6


def test_another_key_chooses_other_rows():
    unit = people("id", at_most=1)
    first, second = kept(CROWD, unit), kept(CROWD, unit, key=b"another secret of 24 byt")
    assert first != second
    assert first == kept(list(reversed(CROWD)), unit), "the order of rows does not matter"


def test_a_person_needs_a_key_and_rows_do_not():
    with open_table(table_of(CROWD), schema=SCHEMA, unit=people("id", at_most=1)) as table:
        with pytest.raises(InvalidParameter, match="secret"):
            bounded_relation(table)
        with pytest.raises(InvalidParameter, match="16 secret bytes"):
            bounded_relation(table, key=b"short")
    with open_table(table_of(CROWD), schema=SCHEMA, unit=rows()) as table:
        assert bounded_relation(table) is table.relation


def test_bounding_is_done_once():
    with open_table(table_of(CROWD), schema=SCHEMA, unit=people("id", at_most=2)) as table:
        assert bounded_relation(table, key=KEY) is bounded_relation(table, key=KEY)
        assert len(table.bounded) == 1


def test_a_file_that_changes_is_bounded_anew(tmp_path):
    import pyarrow.parquet

    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table_of(CROWD), path)
    with open_table(path, schema=SCHEMA, unit=people("id", at_most=2)) as table:
        before = len(kept_rows(table, KEY))
        pyarrow.parquet.write_table(table_of(CROWD[: len(CROWD) // 2]), path)
        assert len(kept_rows(table, KEY)) < before


@pytest.mark.parametrize("narrow", [0, 100])
def test_different_rows_with_equal_hashes_are_settled_by_value(narrow, monkeypatch):
    """With a hash that is the same for all rows, the lowest rows by value are kept, whatever their order."""
    monkeypatch.setattr(bounding, "NARROW", narrow)
    data = [{"id": "p", "group": g, "x": x} for g in "abc" for x in range(3)]
    with open_table(table_of(data), schema=SCHEMA, unit=people("id", at_most=4)) as table:
        connection = table.relation.get_backend().con
        connection.execute("create macro hash(a, b, c, d, e) as 7")
        first = sorted((r["group"], r["x"]) for r in kept_rows(table, KEY))
    with open_table(table_of(data[::-1]), schema=SCHEMA, unit=people("id", at_most=4)) as table:
        table.relation.get_backend().con.execute("create macro hash(a, b, c, d, e) as 7")
        second = sorted((r["group"], r["x"]) for r in kept_rows(table, KEY))
    assert first == second == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
