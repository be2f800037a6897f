"""Our own house for audits: every kind of statistic that a plan can ask, for each unit and relation, as plans."""

from __future__ import annotations

from typing import Any

import tacit
from tacit import statistics as st
from tacit.curator.functions import (
    additive_model,
    decision_tree,
    linear_regression,
    logistic_regression,
    regression_by_test,
)
from tacit.curator.planning import Plan, make_plan
from tacit.curator.request import query
from tacit.errors import TacitError
from tacit.guarantees import Unit, group_of, people, rows
from tacit.sources import category, date, flag, integer, number
from tacit.sources.schema import Schema

SCHEMA = Schema(
    {
        "ward": category(["a", "b", "c"]),
        "age": integer(0, 9),
        "far": integer(-(2**51), 2**51),
        "pay": number(0, 8, spacing=0.25),
        "sick": flag(),
        "day": date("2020-01-01", "2020-01-10"),
        "town": category(),
        "filled": integer(-4, 3, missing=1),
    }
)
UNITS: dict[str, Unit] = {
    "rows added": rows(),
    "rows replaced": rows(neighbours="replace-one"),
    "people added": people("id", at_most=3),
    "people replaced": people("id", at_most=2, neighbours="replace-one"),
    "people in one group": people("id", at_most=3, groups=1),
    "two rows": group_of(rows(), size=2),
}
STATISTICS: tuple[Any, ...] = (
    st.count(), st.count(by="ward"), st.count(by=["ward", "age"], where="sick"), st.count(of="people"),
    st.count(by="ward", of="people"), st.sum("age"), st.sum("far", by="ward"), st.sum("filled"),
    st.mean("pay", by="ward"), st.mean("day"), st.mean("far"), st.variance("age"),
    st.standard_deviation("pay", by="ward"), st.ratio("pay", "age"), st.proportion("sick"),
    st.quantiles("pay", resolution=32), st.median("age", where="ward = 'a'"), st.histogram("pay", 4, by="ward"),
    st.ranges("pay", 4), st.contingency(["ward", "sick"]), st.margins(["ward", "age", "sick"], order=2),
    st.hierarchy(["ward", "sick"]), st.clamping_bounds("far"), st.table(["ward", "sick"]),
    st.survival("age", "sick", 3), st.regression("pay", on=["age"]), st.inequality("pay", bins=4),
    st.rate("sick", "pay", per=1000), st.sum("age", survey_weight="pay"), st.mean("age", survey_weight="pay"),
    st.post_stratified("pay", standard={"ward": {"a": 50, "b": 60, "c": 70}}, largest_weight=20),
    st.calibrated("pay", population=100, totals={"sick": 40}),
    st.count(by="town"), st.mean("pay", by="town"), st.variance("sick", by="town"),
    st.sparse_histogram(["ward", "age"]), st.sparse_histogram(["ward", "age"], where="sick"),
    tacit.density(["pay"], size=10, points=3), decision_tree(["age", "sick"], "ward", size=100, depth=1),
    regression_by_test(["age"], "pay", size=1000, spread=0.3),
    st.regression_moments(["age"], "pay"), st.count(survey_weight="pay"), st.proportion("sick", survey_weight="pay"),
    st.ratio("far", "age", survey_weight="pay"), linear_regression(["age"], "pay"),
    st.geography(["ward"], [["a"], ["b"], ["c"]]),
    logistic_regression(["age"], "sick"), additive_model(["age"], "sick", bins=4),
)  # fmt: skip
PRICES: tuple[dict[str, float], ...] = ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6})
BUDGET = tacit.Approximate(epsilon=1000.0, delta=0.9)


def house_plan(unit: Unit, *, statistics: tuple[Any, ...] = STATISTICS) -> Plan:
    """One plan with every statistic that this unit allows, each at the first price that pays for it."""
    asked = []
    for statistic in statistics:
        for price in PRICES:
            one = query(statistic, **price)
            try:
                make_plan([one], schema=SCHEMA, unit=unit, budget=BUDGET)
            except TacitError:
                continue
            asked.append(one)
            break
    return make_plan(asked, schema=SCHEMA, unit=unit, budget=BUDGET)
