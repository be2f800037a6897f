"""On real tables the engine agrees with pandas, row-level and after bounding."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import tacit.statistics as ask
from support.bounded import kept_rows
from support.shared import shared
from support.spark import needs_spark, ordinary
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, flag, integer, number, open_table
from tacit.sources.columns import Integer, Number

ENGINES = ["duckdb", pytest.param("spark", marks=needs_spark)]
KEY = b"an ordinary secret of the tests."


@pytest.fixture(autouse=True)
def _as_users_have_it(request):
    """Long tables are worth compiling for."""
    if request.node.callspec.params.get("engine") == "spark":
        ordinary()


def adult():
    path = shared("data/adult/adult_raw.csv")
    frame = pd.read_csv(path)
    schema = Schema(
        {
            "age": integer(18, 80),
            "education": category(sorted(frame["education"].unique())),
            "sex": category(["Female", "Male"]),
            "hours-per-week": number(0, 80),
            "workclass": category(["Private", "State-gov"]),
            "capital-gain": number(0, 20_000, spacing=1),
        }
    )
    return path, frame, schema


@pytest.mark.parametrize("engine", ENGINES)
def test_adult_by_rows(engine):
    path, frame, schema = adult()
    questions = [
        s.on(schema, rows())
        for s in (
            ask.count(by=["education", "sex"]),
            ask.count(where="workclass = 'Private' and age >= 40"),
            ask.sum("capital-gain", by="sex"),
            ask.mean("hours-per-week", by="education"),
            ask.variance("age", by="sex"),
            ask.standard_deviation("hours-per-week"),
            ask.proportion("`hours-per-week` > 40", by="sex"),
            ask.ratio("capital-gain", "hours-per-week", by="sex"),
            ask.quantiles("age", at=[0.1, 0.5, 0.9], by="sex"),
            ask.count(where="workclass is missing"),
        )
    ]
    with open_table(path, schema=schema, unit=rows(), engine=engine) as table:
        read = ask.read(table, questions)
    counts, private, gain, hours, spread, deviation, long, per_hour, ages, other = (
        q.assemble(p) for q, p in zip(questions, read, strict=True)
    )
    cross = pd.crosstab(frame["education"], frame["sex"])
    assert (counts == cross.to_numpy()).all()
    assert private == ((frame["workclass"] == "Private") & (frame["age"] >= 40)).sum()
    assert other == (~frame["workclass"].isin(["Private", "State-gov"])).sum()
    clamped = frame.assign(
        gain=frame["capital-gain"].clip(0, 20_000),
        hours=frame["hours-per-week"].clip(0, 80),
        years=frame["age"].clip(18, 80),
    )
    by_sex = clamped.groupby("sex")
    assert (gain == by_sex["gain"].sum().to_numpy()).all()
    assert np.allclose(hours, clamped.groupby("education")["hours"].mean(), rtol=0, atol=1e-4)
    assert np.allclose(spread, by_sex["years"].var(ddof=0), rtol=1e-12)
    assert np.isclose(deviation, clamped["hours"].std(ddof=0), atol=1e-4)
    assert np.allclose(long, clamped.assign(l=clamped["hours"] > 40).groupby("sex")["l"].mean())
    assert np.allclose(per_hour, by_sex["gain"].sum() / by_sex["hours"].sum(), rtol=1e-9)
    exact = by_sex["years"].quantile([0.1, 0.5, 0.9]).unstack().to_numpy()
    assert (np.abs(ages - exact) <= 1.0).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("file", "person", "columns", "at_most"),
    [
        (
            "randhie_panel",
            "zper",
            {"mdvis": integer(0, 50), "income": number(0, 30_000), "female": flag()},
            3,
        ),
        ("nlswork", "idcode", {"ln_wage": number(0, 4), "hours": number(0, 80), "union": flag()}, 5),
        ("rwm5yr", "id", {"docvis": integer(0, 60), "hhninc": number(0, 20), "female": flag()}, 2),
        (
            "nycflights13_flights",
            "tailnum",
            {"dep_delay": number(-30, 240), "origin": category(["EWR", "JFK", "LGA"])},
            40,
        ),
    ],
)
def test_people_keep_at_most_m_rows_of_their_own(engine, file, person, columns, at_most):
    path = shared(f"data/userlevel/{file}.parquet")
    frame = pd.read_parquet(path)
    schema, unit = Schema(columns), people(person, at_most=at_most)
    first = next(iter(columns))
    statistics = [ask.count(), ask.count(of="people"), ask.sum(first), ask.mean(first)]
    with open_table(path, schema=schema, unit=unit, engine=engine) as table:
        questions = [s.on(schema, unit) for s in statistics]
        read = ask.read(table, questions, key=KEY)
        kept = pd.DataFrame(kept_rows(table, KEY))
    sizes = frame[person].value_counts()
    assert read[0]["count"] == sizes.clip(upper=at_most).sum() == len(kept)
    assert read[1]["count"] == len(sizes)
    assert (kept[person].value_counts().sort_index() == sizes.clip(upper=at_most).sort_index()).all()
    names = [person, *columns]
    declared = frame[names].copy()
    for name, column in columns.items():
        if isinstance(column, Number | Integer):
            declared[name] = declared[name].astype("float64").clip(column.low, column.high)
    given = Counter(map(tuple, declared.astype(object).where(declared.notna(), None).to_numpy()))
    held = Counter(map(tuple, kept[names].astype(object).where(kept[names].notna(), None).to_numpy()))
    assert held <= given, "every kept row is a row of the table, as declared"
    column = schema.measured(first)
    clamped = kept[first].dropna().clip(float(column.low), float(column.high))
    steps = np.rint(clamped / float(column.spacing)).astype("int64")
    assert read[2]["sum"] == steps.sum()
    assert np.isclose(questions[3].assemble(read[3]), steps.mean() * float(column.spacing), rtol=1e-12)
