"""One step beside every limit that a sensitivity, an exact sum or a refusal rests on."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import os
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from support.bounded import kept_rows
from tacit import errors
from tacit.guarantees import people, rows
from tacit.sources import Schema, axes, bins, category, date, flag, integer, number, open_table, query
from tacit.sources import deriving as derived_types
from tacit.sources import tables as digests
from tacit.sources.axes import (
    CountPeople,
    CountRows,
    Cut,
    Listed,
    Magnitudes,
    OpenAxis,
    Squares,
    Steps,
    axis_of,
    cell_count,
    is_wide,
)
from tacit.sources.expressions import parse
from tacit.sources.facts import Facts
from tacit.sources.query import Aggregation, run
from tacit.sources.schema import derived
from tacit.sources.synthetic.twin import twin
from tacit.sources.tables import check_key

KEY = b"an ordinary secret of the tests."


def counts(data: Any, schema: dict[str, Any], by: Any, unit: Any = None, **more: Any) -> list[int]:
    """The exact counts of a grouped count."""
    unit = unit or rows()
    with open_table(data, schema=schema, unit=unit, **more) as table:
        found = ask.read(table, [ask.count(by=by).on(table.schema, unit)], key=KEY)
    return np.ravel(found[0]["count"]).tolist()


# Axes


def test_a_cut_has_one_bin_at_least_and_one_a_value_at_most() -> None:
    values = integer(0, 9)
    for good in (1, 10):
        assert Cut(column="x", values=values, count=good).size == good
    for bad in (0, 11):
        with pytest.raises(errors.InvalidParameter, match="between 1 and 10"):
            Cut(column="x", values=values, count=bad)


def test_a_cut_stays_within_exact_doubles() -> None:
    """levels * count < 2^52: 2^40 levels take 2^11 bins, and not 2^12; all single values are no product."""
    wide = integer(0, (1 << 40) - 1)
    assert Cut(column="x", values=wide, count=1 << 11).size == 1 << 11
    with pytest.raises(errors.InvalidParameter, match="fewer on a grid"):
        Cut(column="x", values=wide, count=1 << 12)
    assert Cut(column="x", values=wide, count=1 << 40).size == 1 << 40


@pytest.mark.parametrize(("levels", "count"), [(10, 3), (7, 4), (10, 4), (9, 3)])
def test_first_steps_are_where_the_engine_puts_the_rows(levels: int, count: int) -> None:
    """Every value lies in the bin whose label holds it: floor(offset * count / levels)."""
    values, low = list(range(-3, levels - 3)), -3
    found = counts(pa.table({"x": values}), {"x": integer(low, low + levels - 1)}, bins("x", count))
    axis = axis_of(bins("x", count), Schema({"x": integer(low, low + levels - 1)}))
    assert found == [sum(a <= v <= b for v in values) for a, b in axis.labels]
    assert sum(found) == levels
    steps = list(axis.first_steps())  # type: ignore[attr-defined]
    assert found == [b - a for a, b in itertools.pairwise(steps)]


@pytest.mark.parametrize(("edges", "expected"), [
    ([0, 0.5, 1], [2, 3]), ([0, 0.5, 0.9], [2, 2]), ([0.25, 0.75], [3]), ([0.1, 0.6], [2]),
])  # fmt: skip
def test_the_last_edge_belongs_to_the_last_bin_if_it_lies_on_the_grid(
    edges: list[float], expected: list[int]
) -> None:
    data = pa.table({"x": [0.0, 0.25, 0.5, 0.75, 1.0]})
    assert counts(data, {"x": number(0, 1, spacing=0.25)}, bins("x", edges)) == expected


def test_edges_increase_by_a_step() -> None:
    schema = Schema({"x": number(0, 1, spacing=0.25)})
    axis_of(bins("x", [0.1, 0.3]), schema)
    with pytest.raises(errors.InvalidParameter, match="a step of the grid"):
        axis_of(bins("x", [0.1, 0.2]), schema)  # both are first reached at 0.25


def test_which_axes_give_every_row_a_key() -> None:
    """What is public about the number of rows rests on this."""
    for may, column in ((True, integer(0, 3)), (False, integer(0, 3, missing=0))):
        schema = Schema({"x": column})
        assert axis_of(bins("x", 2), schema).always is not may
        assert axis_of(bins("x", [0, 2, 3]), schema).always is not may
        assert axis_of("x", schema).always is not may
    assert axis_of("c", Schema({"c": category(["a"], missing="a")})).always
    assert not axis_of("c", Schema({"c": category(["a"])})).always
    assert not axis_of("c", Schema({"c": category()})).always
    assert not Magnitudes(column="x").always


def test_cells_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = [axis_of("a", Schema({"a": integer(0, 2)})), axis_of("b", Schema({"b": integer(0, 3)}))]
    monkeypatch.setattr("tacit.sources.axes.MAX_CELLS", 12)
    assert cell_count(axes) == 12
    monkeypatch.setattr("tacit.sources.axes.MAX_CELLS", 11)
    with pytest.raises(errors.TooManyCells):
        cell_count(axes)
    assert cell_count([*axes, OpenAxis(column="c")]) is None


def test_magnitudes_have_two_sides_and_a_middle() -> None:
    axis = Magnitudes(column="x", lowest_power=-1, highest_power=2)
    assert axis.size == len(axis.labels) == 7
    data = pa.table({"x": [-3.0, -1.0, -0.5, -0.1, 0.0, 0.4, 0.5, 1.0, 1.9, 2.0, 3.9, 100.0]})
    with open_table(data, schema={"x": number()}, unit=rows()) as table:
        (found,) = run(table, [Aggregation(axes=(axis,), aggregates=(CountRows(),))])
    assert found.values[CountRows()].tolist() == [1, 1, 1, 3, 1, 2, 3]


# Widths of integers


def test_integers_are_wide_from_the_bit_on_at_which_2_to_the_40_rows_overflow() -> None:
    """40 bits of rows and 62 bits of sum: a width of 22 bits is narrow, one of 23 wide; squares from 12 bits on."""
    schema = Schema({"a": integer(0, (1 << 22) - 1), "b": integer(0, 1 << 22), "c": integer(0, (1 << 11) - 1),
                     "d": integer(0, 1 << 11)})  # fmt: skip
    assert not is_wide(Steps(column="a"), schema)
    assert is_wide(Steps(column="b"), schema)
    assert not is_wide(Squares(column="c"), schema)
    assert is_wide(Squares(column="d"), schema)
    assert not is_wide(CountRows(), schema)


def test_sums_of_wide_columns_are_exact() -> None:
    top = (1 << 51) + 1
    for low, high in (
        (0, top),
        (-top, 0),
        (-top, top),
        (-(1 << 31), (1 << 31) - 1),
        (-5, (1 << 31) - 7),
        (0, 50_000),
    ):
        data = pa.table({"x": pa.array([low, high, high, low + 1], type=pa.int64())})
        with open_table(data, schema={"x": integer(low, high)}, unit=rows()) as table:
            wide = high - low
            # Squares are asked for below 2^31 steps.
            asked = (Steps(column="x"), *((Squares(column="x"),) if wide < 1 << 31 else ()))
            (found,) = run(table, [Aggregation(aggregates=asked)])
        assert int(found.values[asked[0]]) == 2 * wide + 1
        assert all(int(found.values[a]) == 2 * wide**2 + 1 for a in asked[1:])


@pytest.mark.parametrize(
    "stored", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float64()]
)
def test_values_far_outside_are_clamped_in_every_type(stored: pa.DataType) -> None:
    """Bounds of more than 32 bits on one side only, on either."""
    values = pa.array([0, 1, 100], type=stored)
    for low, high in ((-(1 << 40), 50), (0, 1 << 40), (0, 50)):
        with open_table(pa.table({"x": values}), schema={"x": integer(low, high)}, unit=rows()) as table:
            (found,) = run(table, [Aggregation(aggregates=(Steps(column="x"),))])
        assert int(found.values[Steps(column="x")]) == sum(min(v, high) - low for v in (0, 1, 100))


def test_keys_above_all_integers_with_a_sign_are_no_keys() -> None:
    data = pa.table({"c": pa.array([1, (1 << 64) - 1, 1 << 63, 2], type=pa.uint64())})
    assert counts(data, {"c": category([1, 2])}, "c") == [1, 1]


@pytest.mark.parametrize(
    "column", [number(0, 1, spacing=0.25, outside="missing"), number(0, 1, spacing=0.25)]
)
def test_ends_are_inside_and_nan_is_nowhere(column: Any) -> None:
    values = [0.0, 1.0, -0.5, 1.5, float("nan"), None]
    outside = 0 if column.outside == "missing" else 2
    with open_table(pa.table({"x": values}), schema={"x": column}, unit=rows()) as table:
        asked = (CountRows(present=("x",)), Steps(column="x"))
        (found,) = run(table, [Aggregation(aggregates=asked)])
    assert int(found.values[asked[0]]) == 2 + outside
    assert int(found.values[asked[1]]) == 4 + (4 if outside else 0)


def test_a_row_counts_where_all_columns_and_the_filter_say_so() -> None:
    data = pa.table({"x": [1, None, 1, 1], "y": [1, 1, None, 1], "z": [1, 1, 1, 0]})
    schema = Schema({n: integer(0, 1) for n in "xyz"})
    with open_table(data, schema=schema, unit=rows()) as table:
        asked = tuple(
            CountRows(present=p, where=w)
            for p in ((), ("x",), ("y",), ("x", "y"), ("y", "x"))
            for w in (None, parse("z = 1"))
        )
        (found,) = run(table, [Aggregation(aggregates=asked)])
    assert [int(found.values[a]) for a in asked] == [4, 3, 3, 2, 3, 2, 2, 1, 2, 1]


def test_declarations_are_exact_on_both_sides() -> None:
    top = (1 << 52) - 1
    for low, high in ((-top, 0), (0, top)):
        integer(low, high)
        number(low, high, spacing=1)
    for low, high in ((-top - 1, 0), (0, top + 1)):
        with pytest.raises(errors.InvalidParameter):
            integer(low, high)
        with pytest.raises(errors.InvalidParameter):
            number(low, high, spacing=1)
    with pytest.raises(errors.InvalidParameter, match="finer than high - low"):
        number(0, 0.25, spacing=1)
    for make in (
        lambda v: integer(0, 9, missing=v), lambda v: number(0, 9, missing=v),
        lambda v: date("2020-01-01", "2020-01-10", missing=datetime.date(2020, 1, 1) + datetime.timedelta(days=v)),
    ):  # fmt: skip
        make(0), make(9)
        for bad in (-1, 10):
            with pytest.raises(errors.InvalidParameter, match="between low and high"):
                make(bad)


# Groups and people


SIX = pa.table({"id": ["p"] * 6, "g": list("abcdxx"), "h": list("ababab"), "x": [1, 2, 3, 4, 5, 5]})
WITH = {"g": category(list("abcd")), "h": category(list("ab")), "x": integer(0, 9)}


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_of_each_person_exactly_so_many_groups_are_kept(groups: int, portable: bool) -> None:
    """Also one group fewer than rows; rows without a key are no group of theirs."""
    for data, at_most in ((SIX, 6), (SIX.slice(0, 4), 4)):
        unit = people("id", at_most=at_most, groups=groups)
        with open_table(data, schema=WITH, unit=unit, portable=portable) as table:
            found = Counter(r["g"] for r in kept_rows(table, KEY, ("g",)))
        assert sum(found.values()) == groups
        assert set(found) <= set("abcd")


@pytest.mark.parametrize("portable", [False, True])
def test_groups_are_chosen_for_the_axes_that_are_asked_for(portable: bool) -> None:
    """One table answers by g and by h, with one key and another: rows kept for one are not taken for the other."""
    unit = people("id", at_most=6, groups=1)

    def alone(by: tuple[str, ...], key: bytes) -> Any:
        with open_table(SIX, schema=WITH, unit=unit, portable=portable) as fresh:
            return sorted(map(str, kept_rows(fresh, key, by)))

    asked = [(("g",), KEY), (("h",), KEY), (("g",), KEY[::-1])]
    with open_table(SIX, schema=WITH, unit=unit, portable=portable) as table:
        together = [sorted(map(str, kept_rows(table, key, by))) for by, key in asked]
    assert together == [alone(by, key) for by, key in asked]


@pytest.mark.parametrize("portable", [False, True])
def test_which_rows_are_kept_depends_on_the_key_and_on_values_that_differ_little(portable: bool) -> None:
    """A person of twenty rows, one kept: four keys do not all keep the same one, whichever column tells them apart."""
    columns = {
        "number": ([i / 20 for i in range(20)], number(0, 1)),
        "far": ([float(2**70 + i * 2**67) for i in range(20)], number()),
        "word": ([f"w{i}" for i in range(20)], category()),
        "gap": ([None if i % 2 else i for i in range(20)], integer(0, 20)),
    }
    unit = people("id", at_most=1)
    for values, column in columns.values():
        data = pa.table({"id": ["p"] * 20, "v": values})
        with open_table(data, schema={"v": column}, unit=unit, portable=portable) as table:
            seen = {str(kept_rows(table, bytes([i]) * 32)) for i in range(4)}
        assert len(seen) > 1


def test_people_and_unknown_keys_are_limited_over_all_axes() -> None:
    """A person is counted once in each of min(m, g) cells only if the limit holds over all axes of the request."""
    a, b, open_ = Listed(column="a", values=("x",)), Listed(column="b", values=("x",)), OpenAxis(column="c")
    some = {"axes": (a, b), "groups": (a,)}
    assert Aggregation(aggregates=(CountRows(),), **some).limited == (a,)
    assert Aggregation(aggregates=(CountPeople(),), **some).limited == (a, b)
    assert Aggregation(axes=(a, b), aggregates=(CountRows(),), sparse=True).limited == (a, b)
    assert Aggregation(aggregates=(CountPeople(),), sparse=True, **some).limited == (a, b)
    # Ranges of quantiles: their sensitivity is that of all rows of a person, and no occupied cell is published.
    assert Aggregation(aggregates=(CountRows(),), sparse=True, **some).limited == (a,)
    assert Aggregation(axes=(a, open_), aggregates=(CountRows(),), groups=(a,)).limited == (a, open_)
    assert Aggregation(axes=(a, b), aggregates=(CountRows(),)).limited == (a, b)


def test_a_count_of_people_needs_people() -> None:
    with (
        open_table(SIX, schema=WITH, unit=rows()) as table,
        pytest.raises(errors.UnitMismatch, match="people"),
    ):
        run(table, [Aggregation(aggregates=(CountPeople(),))])


def test_questions_with_other_groups_or_cells_are_not_read_together() -> None:
    """Sums by g and by h keep other rows of a person; tables of all and of occupied cells have other keys."""
    unit = people("id", at_most=6, groups=1)
    asked = [
        ask.sum("x", by="g"),
        ask.sum("x", by="h"),
        ask.sum("x"),
        ask.count(by="g"),
        ask.sparse_histogram(["g"]),
    ]
    with open_table(SIX, schema=WITH, unit=unit) as table:
        questions = [s.on(table.schema, unit) for s in asked]
        together = ask.read(table, questions, key=KEY)
        alone = [ask.read(table, [q], key=KEY)[0] for q in questions]
    for one, other in zip(together, alone, strict=True):
        assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in other.items()}
    assert int(together[0]["sum"].sum()) != int(together[1]["sum"].sum())


def test_more_questions_than_compiled_queries_are_kept_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "PREPARED", 2)
    with open_table(SIX, schema=WITH, unit=rows()) as table:
        asked = [ask.count(by=by).on(table.schema, rows()) for by in ("g", "h", "x", ["g", "h"], "g", "h")]
        found = [ask.read(table, [q], key=KEY)[0]["count"].tolist() for q in asked]
        assert len(table.prepared) <= 2
    assert found[0] == found[4] == [1, 1, 1, 1]
    assert found[1] == found[5] == [3, 3]


# Occupied cells


@pytest.mark.parametrize("bits", [3, 6, 62])
@pytest.mark.parametrize("branches", [2, 128])
def test_occupied_cells_are_the_same_however_their_keys_are_computed(
    bits: int, branches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limbs of few bits, lists that are too long for a CASE; rows that lack a key in any column are in no cell."""
    monkeypatch.setattr(axes, "LIMB_BITS", bits)
    monkeypatch.setattr(axes, "MOST_BRANCHES", branches)
    data = pa.table({
        "g": ["a", "b", "c", "z", "c", "a", "a"], "h": ["x", "y", "x", "x", "z", "x", "x"],
        "n": [-3, 4, 0, 1, 1, -3, None],
    })  # fmt: skip
    schema = {"g": category(list("abc")), "h": category(list("xy")), "n": integer(-3, 4)}
    unit = rows()
    with open_table(data, schema=schema, unit=unit) as table:
        question = ask.sparse_histogram(["g", "h", "n"]).on(table.schema, unit)
        cells = run(table, question.requests, key=KEY)
        keys, values = question.occupied(cells)
        labels = question.labels(keys)
    found = {(labels["g"][i], labels["h"][i], labels["n"][i]): int(values[i]) for i in range(len(values))}
    assert found == {("a", "x", -3): 2, ("b", "y", 4): 1, ("c", "x", 0): 1}


def test_limbs_hold_less_than_2_to_the_62_keys() -> None:
    """Two columns of 2^31 values fill 62 bits, and stand apart; their cells are those of the rows."""
    top = (1 << 31) - 1
    schema = {"a": integer(0, top), "b": integer(0, top), "c": integer(5, 9)}
    data = pa.table({"a": [top, top, 0], "b": [top, top, 1], "c": [9, 9, 5]})
    with open_table(data, schema=schema, unit=rows()) as table:
        for columns in (["a", "b"], ["a", "b", "c"]):
            question = ask.sparse_histogram(columns).on(table.schema, rows())
            keys, values = question.occupied(run(table, question.requests, key=KEY))
            labels = question.labels(keys)
            found = {tuple(int(labels[c][i]) for c in columns): int(v) for i, v in enumerate(values)}
            assert found == {(top, top, 9)[: len(columns)]: 2, (0, 1, 5)[: len(columns)]: 1}


def test_labels_of_a_wide_axis_begin_at_its_lowest_value(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = axis_of("n", Schema({"n": integer(-3, 4)}))
    plain = axes.labels_at(axis, np.array([0, 7])).tolist()
    monkeypatch.setattr(axes, "TABLED", 4)
    assert axes.labels_at(axis, np.array([0, 7])).tolist() == plain == [-3, 4]


# Facts, digests, keys


@pytest.mark.parametrize("field", ["protected", "counted", "made_up", "single"])
def test_a_charge_on_one_state_admits_no_other_people_or_promises(field: str) -> None:
    facts = Facts(state=(1,), protected=(Path("/a"),), counted=True, made_up=False, single=("towns",))
    other = {"protected": (Path("/b"),), "counted": False, "made_up": True, "single": ()}
    assert facts.admits(dataclasses.replace(facts, state=(2,)))
    assert not facts.admits(dataclasses.replace(facts, **{field: other[field]}))


def test_the_digest_of_a_large_file_looks_at_each_of_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WHOLE", 1 << 10), ("EDGE", 1 << 8), ("BLOCK", 1 << 4), ("BLOCKS", 8)):
        monkeypatch.setattr(digests, name, value)
    path, size = tmp_path / "big", 4096

    def digest(content: bytes, declared: str = "", key: bytes = KEY) -> str:
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
        return digests.of_files([path], key, declared)

    plain = bytes(size)
    stride = (size - 512) // 8
    seen = [0, 255, *(256 + i * stride for i in range(8)), size - 256, size - 1]
    found = {digest(plain)}
    for place in seen:
        found.add(digest(plain[:place] + b"\1" + plain[place + 1 :]))
    found |= {digest(plain + b"\0"), digest(plain, "other"), digest(plain, key=KEY[::-1])}
    assert len(found) == 1 + len(seen) + 3


def test_a_digest_has_a_purpose_and_a_secret() -> None:
    states = {digests.keyed(key, purpose).hexdigest() for key in (KEY, KEY[::-1]) for purpose in ("a", "b")}
    assert len(states) == 4
    assert len(set(digests.hash_words(KEY, "a", 3) + digests.hash_words(KEY[::-1], "a", 3))) == 6


def test_keys_have_16_bytes() -> None:
    check_key(bytes(16))
    for bad in (bytes(15), "x" * 16, bytearray(16)):
        with pytest.raises(errors.InvalidParameter, match="at least 16"):
            check_key(bad)  # type: ignore[arg-type]


def test_a_person_is_a_column_of_the_table() -> None:
    schema = Schema({"x": integer(0, 9), "who": derived("x + 1", integer(0, 10))})
    with pytest.raises(errors.InvalidParameter, match="not a derived one"):
        open_table(pa.table({"x": [1]}), schema=schema, unit=people("who", at_most=1))


# Expressions


def nested(depth: int) -> str:
    return "abs(" * depth + "x" + ")" * depth


DEEP = {"x": integer(0, 9), "z": derived("abs(abs(abs(y)))", number(0, 9))}
REFUSED: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "brackets": (
        lambda: parse("(" * 59 + "x = 1" + ")" * 59), lambda: parse("(" * 61 + "x = 1" + ")" * 61), "nest at most 60",
    ),
    "nots": (lambda: parse("not " * 58 + "x = 1"), lambda: parse("not " * 61 + "x = 1"), "nest at most 60"),
    "length": (lambda: parse("x = 1".ljust(20_000)), lambda: parse("x = 1".ljust(20_001)), "longer than 20,000"),
    "functions": (
        lambda: Schema({"x": integer(0, 9), "y": derived(nested(6), number(0, 9))}),
        lambda: Schema({"x": integer(0, 9), "y": derived(nested(7), number(0, 9))}), "at most 6 deep",
    ),
    "functions over derived columns": (
        lambda: Schema(DEEP | {"y": derived(nested(3), number(0, 9))}),
        lambda: Schema(DEEP | {"y": derived(nested(4), number(0, 9))}),
        "at most 6 deep",
    ),
    "rows of a twin": (
        lambda: twin({"x": flag()}, rows=1), lambda: twin({"x": flag()}, rows=100_000_001), "100",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_limit_admits_what_it_says_and_refuses_more(name: str) -> None:
    good, bad, word = REFUSED[name]
    good()
    with pytest.raises(errors.TacitError, match=word):
        bad()


def test_texts_that_would_be_longer_than_the_limit_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert derived_types.LONGEST_TEXT == 10_000
    long = ["a" * 5_000, "a" * 5_001]
    schema = {"w": category(), "twice": derived("concat(w, w)", category(["a" * 10_000, "a" * 10_002]))}
    assert counts(pa.table({"w": long}), schema, "twice") == [1, 0]


def test_a_number_has_a_million_steps_unless_said() -> None:
    assert number(0, 1).spacing == Fraction(1, 1 << 20)
    assert number(0, 3).width >= 1 << 20
