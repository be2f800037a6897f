"""Measures computed in the engine agree with their definitions, row by row in Python, and with published values."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import anonymous as plain
from support.shared import shared
from support.spark import needs_spark, session
from tacit import anonymity as anon
from tacit.sources.microdata import open_microdata

QUASI = ("age", "town")
TREE = {
    "flu": ("lungs", "body"),
    "cold": ("lungs", "body"),
    "ulcer": ("belly", "body"),
    "fever": ("other", "body"),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.sampled_from([20, 30, None]),
            "town": st.sampled_from(["a", "b", None, ""]),
            "illness": st.sampled_from(["flu", "cold", "ulcer", "fever"]),
            "score": st.sampled_from([1.5, 2.0, 7.0, 8.0, None]),
        }
    ),
    min_size=1,
    max_size=25,
)
TYPES = pa.schema(
    [("age", pa.int64()), ("town", pa.string()), ("illness", pa.string()), ("score", pa.float64())]
)


def table(rows: list[plain.Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TYPES)


def compare(rows: list[plain.Row], micro: Any) -> None:
    """Every measure of two sensitive columns against its definition."""
    for column in ("illness", "score"):
        classes = anon.Classes(micro, QUASI, column)
        everything = plain.per_class(rows, QUASI, column)
        assert anon.k_anonymity(classes) == plain.k_of(rows, QUASI)
        assert anon.alpha(classes) == pytest.approx(
            float(max(max(p.values()) for p in everything)), rel=1e-12
        )
        assert anon.diversity(classes) == min(len(p) for p in everything)
        assert anon.entropy_diversity(classes) == pytest.approx(
            plain.entropy_l(rows, QUASI, column), rel=1e-12
        )
        compare_recursive(rows, classes, column)
        compare_likeness(rows, classes, column)
    compare_closeness(rows, micro)


def compare_recursive(rows: list[plain.Row], classes: Any, column: str) -> None:
    for c in (Fraction(1, 2), Fraction(3)):
        l = anon.recursive_diversity(classes, c=float(c))  # noqa: E741
        assert l == 0 or plain.is_recursive(rows, QUASI, column, c, l)
        assert not plain.is_recursive(rows, QUASI, column, c, l + 1)
    worst = anon.recursive_c(classes, l=2)
    assert math.isinf(worst) == any(len(p) < 2 for p in plain.per_class(rows, QUASI, column))
    if math.isfinite(worst):
        assert plain.is_recursive(rows, QUASI, column, Fraction(worst) * Fraction(1001, 1000), 2)
        assert not plain.is_recursive(rows, QUASI, column, Fraction(worst) * Fraction(999, 1000), 2)


def compare_likeness(rows: list[plain.Row], classes: Any, column: str) -> None:
    found = plain.gains(rows, QUASI, column)
    gain = max((p - q) / q for p, q in found)
    assert anon.basic_likeness(classes) == pytest.approx(float(gain), rel=1e-12, abs=1e-12)
    capped = all((p - q) / q <= -math.log(q) for p, q in found if p > q)
    assert math.isinf(anon.enhanced_likeness(classes)) == (not capped)
    assert math.isinf(anon.disclosure(classes)) == any(p == 0 for p, _ in found)
    present = max(abs(math.log(p / q)) for p, q in found if p)
    assert anon.disclosure(classes, absent=False) == pytest.approx(present, rel=1e-12, abs=1e-12)


def compare_closeness(rows: list[plain.Row], micro: Any) -> None:
    """The three distances against the transport problem."""
    classes = anon.Classes(micro, QUASI, "illness")
    order = ["ulcer", "flu", "fever", "cold"]
    there = [v for v in order if any(r["illness"] == v for r in rows)]

    def height(a: str, b: str) -> float:
        return 0.0 if a == b else 1 / 2 if TREE[a][0] == TREE[b][0] else 1.0

    def steps(a: str, b: str) -> float:
        return abs(there.index(a) - there.index(b)) / max(len(there) - 1, 1)

    for how, ground in (
        ({}, lambda a, b: float(a != b)),
        ({"distance": "hierarchical", "hierarchy": anon.Hierarchy.of(TREE)}, height),
        ({"distance": "ordered", "order": order}, steps),
    ):
        expected = plain.closeness_of(rows, QUASI, "illness", ground)
        assert anon.closeness(classes, **how) == pytest.approx(expected, abs=1e-9)  # type: ignore[arg-type]
    expected = plain.closeness_of(rows, QUASI, "score", plain.ordered_distance(rows, "score"))
    classes = anon.Classes(micro, QUASI, "score")
    assert anon.closeness(classes, distance="ordered") == pytest.approx(expected, abs=1e-9)


@given(rows=ROWS)
@settings(max_examples=6)
def test_measures_are_their_definitions(rows: list[plain.Row]) -> None:
    with open_microdata(table(rows)) as micro:
        compare(rows, micro)


def fixed_rows(n: int = 60) -> list[plain.Row]:
    return [
        {
            "age": [20, 30, None][i % 3], "town": ["a", "b"][i // 3 % 2],
            "illness": ["flu", "cold", "ulcer", "fever"][i * i % 7 % 4], "score": [1.5, 2.0, None, 8.0][i * 3 % 5 % 4],
        }
        for i in range(n)
    ]  # fmt: skip


@given(rows=ROWS)
@settings(max_examples=15, deadline=None)
def test_plain_statements_and_ibis_agree_with_the_definitions(rows: list[plain.Row]) -> None:
    """DuckDB is asked k, l and t in its own SQL: the columns may have the names that stand in it."""
    names = {"age": "q1", "town": 'n"', "illness": "s", "score": "rows"}
    renamed = table(rows).rename_columns([names[c] for c in table(rows).column_names])
    quasi = [names[c] for c in QUASI]
    with open_microdata(renamed) as micro:
        stated, asked = (anon.Classes(micro, quasi, "s") for _ in range(2))
        vars(asked)["cells_name"] = None  # as on an engine that does not take the statements
        found = [(c.least, anon.closeness(c)) for c in (stated, asked)]
    t = plain.closeness_of(rows, QUASI, "illness", lambda a, b: float(a != b))
    assert stated.cells_name is not None
    for least, distance in found:
        many = min(len(p) for p in plain.per_class(rows, QUASI, "illness"))
        assert least == {"size": plain.k_of(rows, QUASI), "rows": len(rows), "values": many}
        assert distance == pytest.approx(t, abs=1e-12)


@needs_spark
@pytest.mark.slow
def test_measures_are_their_definitions_on_spark() -> None:
    session()
    rows = fixed_rows()
    with open_microdata(table(rows), engine="spark") as micro:
        assert micro.engine == "pyspark"
        classes = anon.Classes(micro, QUASI, "score")
        assert anon.k_anonymity(classes) == plain.k_of(rows, QUASI)
        expected = plain.closeness_of(rows, QUASI, "score", plain.ordered_distance(rows, "score"))
        assert anon.closeness(classes, distance="ordered") == pytest.approx(expected, abs=1e-9)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == pytest.approx(other, rel=1e-12) if isinstance(one, float) else one == other)


@needs_spark
@pytest.mark.slow
def test_every_number_of_a_check_is_the_same_on_spark() -> None:
    """Missing whole numbers too: they must meet in the population, which is handed from one table to the other."""
    session()
    everybody, tree = table(fixed_rows(90)), anon.Hierarchy.of(TREE)
    ways: tuple[dict[str, Any], ...] = (
        {"sensitive": ["illness", "score"], "population": everybody, "people": 500},
        {"sensitive": "illness", "hierarchy": tree},
    )
    for how in ways:
        found = [
            anon.check_table(table(fixed_rows(40)), quasi=QUASI, engine=engine, **how).to_dict()
            for engine in ("duckdb", "spark")
        ]
        assert same(*({k: v for k, v in one.items() if k != "source"} for one in found))
    with pytest.raises(tacit.errors.InvalidParameter, match="contain every row"):
        anon.check_table(table(fixed_rows(40)), quasi=QUASI, population=table(fixed_rows(3)), engine="spark")


# --- populations ---------------------------------------------------------------------------------------
def test_measures_against_a_population() -> None:
    everybody = fixed_rows(90)
    rows = everybody[:40]
    here, there = plain.classes_of(rows, QUASI), plain.classes_of(everybody, QUASI)
    checked = anon.check_table(table(rows), quasi=QUASI, population=table(everybody), k=13)
    named = {p.name: p.value for p in checked.properties}
    sizes = {key: len(there[key]) for key in here}
    assert named["k-map"] == min(sizes.values())
    inside = [len(here.get(key, [])) / len(group) for key, group in there.items()]
    assert named["delta-presence"] == pytest.approx((min(inside), max(inside)))
    assert checked.journalist is not None
    assert checked.journalist.highest == pytest.approx(1 / min(sizes.values()))
    links = sum(len(group) / sizes[key] for key, group in here.items()) / len(rows)
    assert checked.journalist.average == pytest.approx(links)
    small = sum(len(group) for key, group in here.items() if sizes[key] < 13) / len(rows)
    assert checked.journalist.at_risk == pytest.approx(small)
    assert checked.prosecutor.average == pytest.approx(len(here) / len(rows))
    assert checked.prosecutor.highest == pytest.approx(1 / plain.k_of(rows, QUASI))


def test_a_population_that_lacks_a_row_is_refused() -> None:
    with pytest.raises(tacit.errors.InvalidParameter, match="contain every row"):
        anon.check_table(table(fixed_rows(40)), quasi=QUASI, population=table(fixed_rows(20)))


# --- published values ----------------------------------------------------------------------------------
def test_published_values_of_students() -> None:
    """IFCA pycanon, StudentsMath_Score_k5.csv."""
    path: Path = shared("data/anonymity/students/StudentsMath_Score_k5.csv")
    quasi = ["Teacher", "Gender", "Ethnic", "Freeredu", "wesson"]
    checked = anon.check_table(path, quasi=quasi, sensitive="Score")
    score = checked.sensitive[0]
    assert (checked.k, score["distinct l-diversity"], math.floor(score["entropy l-diversity"])) == (5, 4, 3)
    assert score["t-closeness"] == pytest.approx(0.31023287057769827, rel=2e-15)
    assert score["basic beta-likeness"] == pytest.approx(29.8, rel=1e-15)
    assert score["delta-disclosure, present values"] == pytest.approx(3.4275146899795286, rel=1e-15)
    assert math.isinf(score["delta-disclosure"])


def test_the_lectures_two_hospitals() -> None:
    """Lecture 2, figure 2.1: 4-anonymous, and everybody in their thirties has cancer."""
    ages = ["<30"] * 4 + [">40"] * 4 + ["3*"] * 4
    codes = ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4
    ill = ["AIDS", "Heart", "Viral", "Viral", "Cancer", "Heart", "Viral", "Viral", *["Cancer"] * 4]
    made = pa.table({"age": ages, "zip": codes, "condition": ill})
    checked = anon.check_table(made, quasi=["age", "zip"], sensitive="condition")
    assert checked.k == 4
    assert checked.sensitive[0]["distinct l-diversity"] == 1
    assert checked.sensitive[0].homogeneous == 4
    assert any("single value of condition" in p for p in checked.problems)


# --- no guarantee --------------------------------------------------------------------------------------
def test_properties_do_not_compose() -> None:
    checked = anon.check_table(table(fixed_rows()), quasi=QUASI, sensitive="illness")
    one = checked.properties[0]
    with pytest.raises(tacit.NoLaw, match="Alice"):
        one.compose(one)
    with pytest.raises(tacit.NoLaw, match="no guarantee"):
        tacit.compose(tacit.Pure(epsilon=1), one)  # type: ignore[call-overload]
    with pytest.raises(tacit.NoLaw):
        tacit.repeat(one, 2)  # type: ignore[call-overload]
    assert not isinstance(one, tacit.Guarantee)
