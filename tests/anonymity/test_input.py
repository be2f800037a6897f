"""What a user may hand over: nothing to know, everything alike, everything different, nulls, trees with gaps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit import anonymity as anon
from tacit import errors
from tacit.sources.microdata import open_microdata


def small(n: int = 12) -> pa.Table:
    return pa.table({"a": [i % 3 for i in range(n)], "b": ["x"] * n, "s": ["u", "v"] * (n // 2)})


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"quasi": []}, errors.EmptyComposition),
        ({"quasi": ["a", "s"], "sensitive": "s"}, errors.InvalidParameter),
        ({"quasi": ["a", "a"]}, errors.InvalidParameter),
        ({"quasi": ["nope"]}, errors.UnknownColumn),
        ({"quasi": [3]}, errors.InvalidParameter),
        ({"quasi": ["a"], "sensitive": "nope"}, errors.UnknownColumn),
        ({"quasi": ["a"], "k": 0}, errors.InvalidParameter),
        ({"quasi": ["a"], "k": 2.5}, errors.InvalidParameter),
        ({"quasi": ["a"], "sensitive": "s", "distance": "taxi"}, errors.UnknownName),
        ({"quasi": ["a"], "sensitive": "s", "distance": "ordered"}, errors.WrongType),
        ({"quasi": ["a"], "sensitive": "s", "distance": "hierarchical"}, errors.InvalidParameter),
        ({"quasi": ["a"], "sensitive": "s", "order": ["u"]}, errors.InvalidParameter),
        ({"quasi": ["a"], "people": 3}, errors.InvalidParameter),
        ({"quasi": ["a"], "engine": "abacus"}, errors.UnknownName),
    ],
)
def test_what_cannot_be_measured_is_a_typed_error(how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        anon.check_table(small(), **how)


def test_no_rows_and_nested_columns_are_typed_errors() -> None:
    with pytest.raises(errors.BadData, match="no rows"):
        anon.check_table(small().slice(0, 0), quasi=["a"])
    with pytest.raises(errors.WrongType):
        anon.check_table(pa.table({"a": [[1], [2]]}), quasi=["a"])


@pytest.mark.parametrize("nested", [[[1], [2]], [{"x": 1}, {"x": 2}], [[("k", 1)], [("k", 2)]]])
def test_treatments_of_nested_columns_are_typed_errors(nested: list[Any]) -> None:
    kind = pa.map_(pa.string(), pa.int64()) if isinstance(nested[0], list) and nested[0] != [1] else None
    table = pa.table({"a": pa.array(nested, kind), "c": ["u", "v"]})
    with pytest.raises(errors.WrongType, match="plain value"):
        anon.mondrian(table, quasi=["c"], k=2)
    with pytest.raises(errors.WrongType, match="plain value"):
        anon.mondrian(table, quasi=["a"], k=2)
    with pytest.raises(errors.WrongType, match="plain value"):
        anon.treat_table(table, [anon.Swap(columns=("c",), share=0.5)])
    with pytest.raises(errors.WrongType, match="plain value"):
        anon.generalise(table, hierarchies={"c": anon.suppression(["u", "v"])}, k=2)


def test_all_rows_equal() -> None:
    made = pa.table({"a": [1] * 50, "s": ["u"] * 50})
    checked = anon.check_table(made, quasi=["a"], sensitive="s", k=100)
    one = checked.sensitive[0]
    assert (checked.k, checked.classes, checked.prosecutor.at_risk) == (50, 1, 1.0)
    assert (one["distinct l-diversity"], one["t-closeness"], one["basic beta-likeness"]) == (1, 0.0, 0.0)
    assert (one["delta-disclosure"], one["entropy l-diversity"], one.homogeneous) == (0.0, 1.0, 50)


def test_all_rows_distinct_with_many_values() -> None:
    """10^5 different values, in the quasi-identifier and in the sensitive column."""
    n = 100_000
    made = pa.table({"a": np.arange(n), "s": np.arange(n)[::-1]})
    checked = anon.check_table(made, quasi=["a"], sensitive="s", people=10 * n)
    one = checked.sensitive[0]
    assert (checked.k, checked.sample_uniques, one.homogeneous) == (1, n, n)
    # A single row at the end of n ordered values: the mean of |i - 0| over (n - 1) is a half.
    assert one["t-closeness"] == pytest.approx(0.5, abs=1e-9)
    assert one["basic beta-likeness"] == pytest.approx(n - 1)
    assert all(0 < u.population <= u.people for u in checked.uniques)
    with open_microdata(made) as micro:
        assert anon.closeness(anon.Classes(micro, ["a"], "s")) == pytest.approx(1 - 1 / n)


def test_a_missing_value_is_a_value() -> None:
    made = pa.table({"a": [None, None, 1, 1, 1], "s": [None, "u", "u", None, "u"]})
    checked = anon.check_table(made, quasi=["a"], sensitive="s")
    assert checked.sizes == {2: 1, 3: 1}
    assert checked.sensitive[0]["distinct l-diversity"] == 2
    assert checked.sensitive[0]["alpha"] == pytest.approx(2 / 3)
    assert math.isfinite(checked.sensitive[0]["delta-disclosure"])


@pytest.mark.parametrize(
    "groups",
    [
        {},
        {"u": ("x",), "v": ()},
        {"u": ("x", ""), "v": ("x", "y")},
        {"u": ("x", "y"), "v": ("x", "z")},
    ],
)
def test_a_hierarchy_with_gaps_is_refused(groups: dict[str, Any]) -> None:
    with pytest.raises((errors.InvalidParameter, errors.EmptyComposition)):
        anon.Hierarchy.of(groups)


def test_a_value_without_a_place_is_refused_and_not_named() -> None:
    tree = anon.Hierarchy.of({"u": ("all",)})
    with pytest.raises(errors.InvalidParameter, match="1 values of column 's'") as caught:
        anon.check_table(small(), quasi=["a"], sensitive="s", hierarchy=tree)
    assert "'v'" not in str(caught.value)


def test_hierarchies_from_files(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("u;x;*\nv;x;*\nw;y;*\n")
    tree = anon.read_hierarchy(path)
    assert tree.height == 2
    assert tree.at(1) == {"u": "x", "v": "x", "w": "y"}
    path.write_text("u;x;*\nv;x\n")
    with pytest.raises(errors.InvalidParameter, match="without gaps"):
        anon.read_hierarchy(path)
    path.write_text("u;x\nu;y\n")
    with pytest.raises(errors.InvalidParameter, match="once"):
        anon.read_hierarchy(path)
    with pytest.raises(errors.BadData):
        anon.read_hierarchy(tmp_path / "nothing.csv")
    path.write_text(f"u;{'x' * 200_000};*\n")
    with pytest.raises(errors.BadData, match="CSV"):
        anon.read_hierarchy(path)
    path.write_text('u;x;*\n"two\nlines";x;*\n')
    assert anon.read_hierarchy(path).at(1) == {"u": "x", "two\nlines": "x"}


@pytest.mark.parametrize(
    ("values", "widths"),
    [([1.0, math.nan], [5]), (["a"], [5]), ([1], [math.nan]), ([1], [0]), ([1], [math.inf])],
)
def test_intervals_are_of_numbers(values: list[Any], widths: list[float]) -> None:
    with pytest.raises(errors.InvalidParameter):
        anon.intervals(values, widths=widths)


@pytest.mark.parametrize("column", ["void", "far"])
def test_a_column_without_finite_numbers_is_refused(column: str) -> None:
    made = pa.table(
        {"void": pa.array([None] * 8, pa.float64()), "far": [1.0, math.inf] * 4, "y": [1.0, 2.0] * 4}
    )
    for one in (
        anon.Disturb(column=column, share_of_std=0.5),
        anon.ModelDraws(column="y", given=(column,)),
    ):
        with pytest.raises(errors.WrongType, match="finite"):
            anon.treat_table(made, [one])
    ages = anon.intervals(range(30), widths=[5, 10])
    assert ages.at(1)["7"] == "[5, 10)"
    assert ages.at(2)["7"] == "[0, 10)"
    with pytest.raises(errors.InvalidParameter, match="multiple"):
        anon.intervals(range(3), widths=[5, 8])


# --- identifiers ---------------------------------------------------------------------------------------
def test_identifiers_are_found_by_name_type_and_pattern() -> None:
    import datetime

    n = 40
    made = pa.table(
        {
            "LastName": ["a", "b"] * 20, "zip_code": ["1"] * n, "phone number": ["x"] * n,
            "q1": [f"{i:03d}-45-6789" for i in range(n)], "q2": [f"p{i % 3}@example.com" for i in range(n)],
            "q3": ["10.0.0.1"] * n, "q4": ["https://example.com/x"] * n, "q5": [datetime.date(1990, 1, 1)] * n,
            "q6": ["1990-02-03"] * n, "q7": [f"k{i}" for i in range(n)], "age": [91, *[30] * (n - 1)],
            "income": [10.5] * n, "occupation": ["x"] * n, "county": ["x"] * n, "marital": ["x"] * n,
            "q8": ["aa:bb:cc:dd:ee:ff"] * n,
        }
    )  # fmt: skip
    with open_microdata(made) as micro:
        found = {(f.column, f.kind): f for f in anon.find_identifiers(micro)}
    expected = {
        ("LastName", "name"): ("direct:name", "A"), ("zip_code", "address"): ("direct:address", "B"),
        ("phone number", "telephone"): ("direct:telephone", "D"), ("q1", "ssn"): ("direct:ssn", "G"),
        ("q1", "identifier"): ("direct:number", "R"), ("q2", "email"): ("direct:number", "F"),
        ("q3", "IP address"): (None, "O"), ("q4", "web address"): (None, "N"), ("q5", "date"): ("indirect:date", "C"),
        ("q6", "date"): ("indirect:date", "C"), ("q7", "identifier"): ("direct:number", "R"),
        ("age", "date"): (None, "C"), ("income", "income"): ("indirect:income", None),
        ("occupation", "occupation"): ("indirect:occupation", None),
        ("county", "geography"): ("indirect:geography", "B"),
        ("q8", "device"): ("direct:number", "M"),
    }  # fmt: skip
    assert {key: (f.icpsr, f.element) for key, f in found.items()} == expected
    assert len(anon.ELEMENTS) == 18
    assert all(f.describe() for f in found.values())


# --- uniques -------------------------------------------------------------------------------------------
def restaurant(sizes: list[int], theta: float, alpha: float) -> float:
    """ln of the Ewens-Pitman law of a partition, one guest after another (Pitman's Chinese restaurant)."""
    total, guests = 0.0, 0
    for tables, size in enumerate(sizes):
        for place in range(size):
            if guests:
                weight = theta + tables * alpha if place == 0 else place - alpha
                total += math.log(weight / (theta + guests))
            guests += 1
    return total


def test_the_partition_law_and_its_maximum() -> None:
    from tacit.anonymity.identifiers import log_likelihood

    table = {1: 7, 2: 4, 3: 2, 9: 1}
    sizes = [s for s, n in table.items() for _ in range(n)]
    base = log_likelihood(table, 3.0, 0.2) - restaurant(sizes, 3.0, 0.2)
    for theta, alpha in ((0.5, 0.6), (10.0, 0.0), (2.0, 0.9)):
        assert log_likelihood(table, theta, alpha) - restaurant(sizes, theta, alpha) == pytest.approx(base)
    fitted = anon.population_uniques(table, people=1000).parameters
    best = restaurant(sizes, fitted["theta"], fitted["alpha"])
    for a in np.linspace(0.01, 0.99, 25):
        for t in np.geomspace(0.01, 1e4, 40):
            assert restaurant(sizes, float(t), float(a)) <= best + 1e-6


def test_expected_uniques_of_a_population() -> None:
    """By enumeration: the chance that the last guest sits alone, times the number of guests, by exchangeability."""
    from tacit.anonymity.identifiers import _expected

    theta, alpha, people = 2.5, 0.3, 6

    def walk(sizes: tuple[int, ...], probability: float) -> float:
        guests = sum(sizes)
        if guests == people:
            return probability * sizes.count(1)
        weights = [s - alpha for s in sizes]
        total = sum(
            walk((*sizes[:i], sizes[i] + 1, *sizes[i + 1 :]), probability * w / (theta + guests))
            for i, w in enumerate(weights)
        )
        return total + walk((*sizes, 1), probability * (theta + len(sizes) * alpha) / (theta + guests))

    assert _expected(theta, alpha, people) == pytest.approx(walk((1,), 1.0))


def test_zayatz_is_bayes_rule() -> None:
    from math import comb

    table, people = {1: 5, 2: 3, 4: 1}, 40
    rows = 15
    once = {s: s * comb(people - s, rows - 1) / comb(people, rows) for s in table}
    chance = table[1] * once[1] / sum(n * once[s] for s, n in table.items())
    found = anon.population_uniques(table, people=people, estimator="zayatz")
    assert found.right == pytest.approx(chance)
    assert found.population == pytest.approx(table[1] * chance * people / rows)
    assert anon.population_uniques(table, people=rows).population == 5


# --- what is passed over would seem less exposed ---------------------------------------------------------
def test_a_name_that_the_table_never_had_is_refused_by_treatments() -> None:
    made, done = small(), [anon.Remove(columns=("b",))]
    with pytest.raises(errors.UnknownColumn):
        anon.treat_table(made, done, quasi=["a", "age"])
    with pytest.raises(errors.UnknownColumn):
        anon.treat_table(made, done, quasi=["a"], sensitive="illness")
    left = anon.treat_table(made, done, quasi=["a", "b"], sensitive="s").checked
    assert left is not None
    assert left.quasi == ("a",)


@pytest.mark.parametrize("at", [math.nan, math.inf, "60", None])
def test_a_limit_is_a_number(at: Any) -> None:
    for kind in (anon.TopCode, anon.BottomCode):
        with pytest.raises(errors.InvalidParameter):
            kind(column="a", at=at)


def k_map(here: pa.Array, there: pa.Array) -> int:
    with open_microdata(pa.table({"a": here})) as one, open_microdata(pa.table({"a": there})) as other:
        return anon.k_map(anon.Classes(one, ["a"]), anon.Classes(other, ["a"]))


def test_values_of_a_population_are_not_rounded_into_one() -> None:
    import datetime

    day, noon = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)
    assert k_map(pa.array([2], pa.int8()), pa.array([1.6, 2.0])) == 1
    assert k_map(pa.array([2], pa.int8()), pa.array([2, 2, 300])) == 2
    assert k_map(pa.array([1.5], pa.float32()), pa.array([1.5, 1.5, 1.25])) == 2
    assert k_map(pa.array([2**53 + 1]), pa.array([2**53, 2**53 + 1], pa.uint64())) == 1
    assert k_map(pa.array([None, "x"]), pa.array([None, None, "x", "x", "x"])) == 2
    for here, there in (([2], [1.6, 2.0]), ([day], [noon]), ([True], [1, 5])):
        with pytest.raises(errors.WrongType):
            k_map(pa.array(here), pa.array(there))


def test_lines_that_are_no_records_are_told(tmp_path: Path) -> None:
    path = tmp_path / "letters.csv"
    path.write_text('a,s\n1,u\n1,v\n2,"two\nlines"\n')
    checked = anon.check_table(path, quasi=["a"])
    assert (checked.rows, checked.blank) == (4, 2)
    assert any("Rows without any value: 2" in words for words in checked.problems)
    assert checked.to_dict()["blank_rows"] == 2


def test_intervals_of_large_and_of_decimal_numbers_are_told_apart() -> None:
    """Each value lies in the interval that is named, and different intervals have different names."""
    tree = anon.intervals([1_234_561, 1_234_566, 10**15 + 1, -3], widths=[5, 10])
    assert tree.at(1) == {
        "1234561": "[1234560, 1234565)", "1234566": "[1234565, 1234570)",
        "1000000000000001": "[1000000000000000, 1000000000000005)", "-3": "[-5, 0)",
    }  # fmt: skip
    tenths = anon.intervals([0.3, 0.35, 5.0, 1234567.5], widths=[0.1, 0.3])
    assert (tenths.at(1)["0.3"], tenths.at(1)["0.35"]) == ("[0.3, 0.4)", "[0.3, 0.4)")
    assert tenths.at(2)["0.3"] == "[0.3, 0.6)"
    # A column of fractions has 5.0, one of whole numbers 5: both have a place.
    assert tenths.at(1)["5"] == tenths.at(1)["5.0"] == "[5, 5.1)"
    assert tenths.at(1)["1234567.5"] == "[1234567.5, 1234567.6)"
