"""Made-up tables: they fit their declarations, repeat by seed, and behave as real ones do."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidInput, UnknownName
from tacit.sources.schema import Schema, category, date, flag, integer, number
from tacit.sources.synthetic import survey, survey_schema, twin, write_survey, write_table

SCHEMA = Schema(
    {
        "age": number(0, 120),
        "rooms": integer(1, 20, missing=1),
        "region": category(["north", "south", "west"]),
        "grade": category([1, 2, 3]),
        "diagnosis": category(),
        "insured": flag(),
        "seen": date("2020-01-01", "2021-12-31", outside="missing"),
        "raw": number(),
        "visits": integer(),
    }
)


# --- the survey -----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def made() -> Any:
    return survey(people=20_000)


def test_its_size_speed_and_file(tmp_path: Path) -> None:
    import pyarrow.parquet as warm  # the library's own import is not ours to count

    assert warm is not None
    best = 99.0
    for _ in range(3):
        start = time.process_time()
        rows = write_survey(tmp_path / "survey.parquet")
        best = min(best, time.process_time() - start)
    held = pyarrow.parquet.read_table(tmp_path / "survey.parquet")
    assert held.num_rows == rows > 500_000
    assert pc.count_distinct(held["person_id"]).as_py() == 200_000
    assert best < 3, f"{best:.1f} s of work"


def test_the_same_seed_gives_the_same_survey() -> None:
    assert survey(people=500).equals(survey(people=500))
    assert not survey(people=500).equals(survey(people=500, seed=1))


def test_every_column_fits_its_declaration(made: Any) -> None:
    schema = survey_schema()
    assert made.column_names == ["person_id", *schema]
    assert set(pc.unique(made["region"]).to_pylist()) == set(schema["region"].values)  # type: ignore[attr-defined]
    assert 12 <= len(schema["region"].values) <= 16  # type: ignore[attr-defined]
    for name in ("age", "nights"):
        column = schema.measured(name)
        assert column.lowest <= pc.min(made[name]).as_py() <= pc.max(made[name]).as_py() <= column.highest
    assert pc.min(made["visited"]).as_py() >= datetime.date(2021, 1, 1)
    assert pc.max(made["visited"]).as_py() <= datetime.date(2023, 12, 31)
    # A few incomes and costs lie beyond the declared bounds, as they do: at most one in two hundred.
    for name in ("income", "cost"):
        beyond = pc.mean(pc.greater(made[name], schema[name].high)).as_py()  # type: ignore[attr-defined]
        assert beyond < 0.005
    assert 0.04 < made["income"].null_count / made.num_rows < 0.08


def test_what_belongs_to_a_person_is_the_same_on_all_of_their_rows(made: Any) -> None:
    for name in ("region", "sex", "insured", "income"):
        column = pc.cast(made[name], pa.string())
        pairs = pa.table({"who": made["person_id"], "what": column}).group_by(["who", "what"]).aggregate([])
        assert pairs.num_rows == 20_000, name


def test_it_is_correlated_as_real_ones_are(made: Any) -> None:
    age = made["age"].to_numpy()
    income = made["income"].to_numpy(zero_copy_only=False)
    region = np.array(made["region"].to_pylist())
    sex = np.array(made["sex"].to_pylist())
    code = np.array(made["diagnosis"].to_pylist())
    month = pc.month(made["visited"]).to_numpy()
    working = (age >= 30) & (age < 60) & ~np.isnan(income)
    assert np.median(income[working & (sex == "female")]) < 0.93 * np.median(
        income[working & (sex == "male")]
    )
    assert np.median(income[working & (region == "Kingsbridge")]) > 1.3 * np.median(
        income[working & (region == "Dunmere")]
    )
    assert np.nanmedian(income[(age >= 45) & (age < 55)]) > 1.3 * np.nanmedian(income[(age >= 70)])
    winter = np.isin(month, (12, 1, 2))
    assert winter[code == "J11"].mean() > 0.36 > winter.mean()
    assert age[code == "S72"].mean() > age[code == "L20"].mean() + 30
    assert (sex[code == "O80"] == "female").mean() > 0.99
    counts = np.unique(code, return_counts=True)[1]
    assert len(counts) >= 38
    assert counts.max() > 100 * counts.min()
    visits = np.unique(made["person_id"].to_numpy(), return_counts=True)[1]
    assert 2.5 < visits.mean() < 4.5
    assert visits.max() > 15
    nights = made["nights"].to_numpy()
    assert np.corrcoef(age, nights)[0, 1] > 0.1


@pytest.mark.parametrize("people", [0, -1, 2.5, True, 10**9])
def test_a_survey_of_nobody_is_refused(people: Any) -> None:
    with pytest.raises(InvalidInput):
        survey(people=people)


# --- the twin -------------------------------------------------------------------------------------------
def test_a_twin_has_the_columns_and_only_what_was_declared_without_strays() -> None:
    table = twin(SCHEMA, rows=4000, seed=3, missing_share=0, outside_share=0)
    assert table.column_names == list(SCHEMA)
    assert table.num_rows == 4000
    for name in table.column_names:
        assert table[name].null_count == 0
    age = table["age"].to_numpy()
    assert 0 <= age.min() < 20
    assert 90 < age.max() <= 120
    steps = age / float(SCHEMA.measured("age").spacing)
    assert np.array_equal(steps, np.round(steps)), "values lie on the declared grid"
    assert set(table["rooms"].to_pylist()) == set(range(1, 21))
    assert set(table["region"].to_pylist()) == {"north", "south", "west"}
    assert set(table["grade"].to_pylist()) == {1, 2, 3}
    assert 100 < len(set(table["diagnosis"].to_pylist())) <= 200
    assert set(table["insured"].to_pylist()) == {True, False}
    assert min(table["seen"].to_pylist()) >= datetime.date(2020, 1, 1)
    assert max(table["seen"].to_pylist()) <= datetime.date(2021, 12, 31)


def test_policies_are_rehearsed_too() -> None:
    table = twin(SCHEMA, rows=20_000, missing_share=0.1, outside_share=0.05)
    for name in table.column_names:
        assert 0.09 < table[name].null_count / 20_000 < 0.11
    assert "undeclared" in table["region"].to_pylist()
    assert 4 in table["grade"].to_pylist()
    age = table["age"].drop_null().to_numpy()
    assert 0.03 < np.mean((age < 0) | (age > 120)) < 0.07
    days = table["seen"].drop_null().to_pylist()
    assert any(d > datetime.date(2021, 12, 31) for d in days)


def test_rows_belong_to_people_and_some_have_many() -> None:
    table = twin(SCHEMA, rows=5000, people=1000, person_column="who")
    counts = np.unique(table["who"].to_numpy(), return_counts=True)[1]
    assert len(counts) == 1000
    assert counts.min() == 1
    assert counts.max() > 12
    one = twin(SCHEMA, rows=7, people=7)
    assert sorted(one["person_id"].to_pylist()) == list(range(1, 8))


def test_the_same_seed_gives_the_same_twin() -> None:
    assert twin(SCHEMA, rows=100, people=9, seed=5).equals(twin(SCHEMA, rows=100, people=9, seed=5))
    assert not twin(SCHEMA, rows=100, seed=5).equals(twin(SCHEMA, rows=100, seed=6))


@pytest.mark.parametrize("name", ["twin.parquet", "twin.csv"])
def test_a_plan_can_be_rehearsed_on_a_twin(name: str, tmp_path: Path) -> None:
    """Every column is counted, by its own keys, as the schema's policies say."""
    from tacit.guarantees import people
    from tacit.sources import Aggregation, bins, open_table, run
    from tacit.sources.axes import CountRows, axes_of

    made = twin(SCHEMA, rows=300, people=100)
    write_table(made, tmp_path / name)
    by = [("region",), ("grade",), ("rooms",), ("insured",), (bins("age", 4),), (bins("seen", 5),)]
    requests = [Aggregation(axes=axes_of(b, SCHEMA), aggregates=(CountRows(),)) for b in by]
    with open_table(tmp_path / name, schema=SCHEMA, unit=people("person_id", at_most=300)) as table:
        counted = [int(np.sum(c.values[CountRows()])) for c in run(table, requests, key=b"k" * 32)]
    stray = made["region"].null_count + pc.sum(pc.equal(made["region"], "undeclared")).as_py()
    assert counted[0] == 300 - stray
    assert counted[2] == 300, "missing rooms count as 1"
    assert counted[3] == 300 - made["insured"].null_count
    assert counted[4] == 300 - made["age"].null_count, "ages outside are clamped"
    outside = sum(
        not datetime.date(2020, 1, 1) <= d <= datetime.date(2021, 12, 31)
        for d in made["seen"].drop_null().to_pylist()
    )
    assert counted[5] == 300 - made["seen"].null_count - outside


@given(
    st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(1, 60), st.floats(0, 0.99), st.floats(0, 0.99)
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_any_declaration_has_a_twin(low: int, width: int, rows: int, absent: float, astray: float) -> None:
    schema = Schema(
        {
            "n": number(low, low + width),
            "i": integer(low, low + width),
            "d": date(datetime.date.min, datetime.date.max),
            "big": integer(-(2**51), 2**51),
            "keys": category([2**62, -(2**62)]),
        }
    )
    table = twin(schema, rows=rows, people=1, missing_share=absent, outside_share=astray)
    assert table.num_rows == rows


@pytest.mark.parametrize(
    "arguments",
    [
        {"rows": 0}, {"rows": -3}, {"rows": 1.5}, {"rows": True}, {"rows": 10**12}, {"rows": 5, "people": 6},
        {"rows": 5, "people": 0}, {"rows": 5, "people": 2, "person_column": "age"},
        {"rows": 5, "people": 2, "person_column": ""}, {"rows": 5, "seed": -1}, {"rows": 5, "seed": "x"},
        {"rows": 5, "missing_share": 1}, {"rows": 5, "outside_share": -0.1}, {"rows": 5, "missing_share": float("nan")},
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        twin(SCHEMA, **arguments)


def test_an_empty_schema_and_an_unknown_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyComposition):
        twin({}, rows=5)
    with pytest.raises(UnknownName):
        write_table(twin(SCHEMA, rows=5), tmp_path / "twin.xlsx")
