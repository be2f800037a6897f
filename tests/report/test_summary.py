"""What a reader meets first: a summary, medians as bars, colours that the noise allows, marked edges, rows left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.text import PublicWords
from tacit.noise.source import SeededSource
from tacit.report.building import left_out, report_of, view_of
from tacit.report.drawing import heat_span, histogram
from tacit.report.releases import finding
from tacit.report.view import CellView, key_words
from tacit.sources.schema import Schema

SCHEMA: dict[str, Any] = {
    "x": tacit.number(0, 100), "y": tacit.number(0, 100, missing=0), "g": tacit.category(["a", "b"]),
    "h": tacit.category(["c", "d"], missing="c"), "town": tacit.category(), "id": tacit.category(),
}  # fmt: skip
WORDS = PublicWords()


@pytest.fixture(scope="module")
def made() -> Any:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.uniform(0, 100, 4000), "g": rng.choice(["a", "b"], 4000)})
    schema = {name: SCHEMA[name] for name in ("x", "g")}
    source, budget = SeededSource(seed=1), tacit.Pure(epsilon=100.0)
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=budget, source=source) as held:
        asks = [
            tacit.query(tacit.median("x", "g"), name="median"), tacit.query(tacit.median("x"), name="one"),
            tacit.query(tacit.quantiles("x"), name="quartiles"),
            tacit.query(tacit.density("x", size=4000), name="curve"),
        ]  # fmt: skip
        plan = held.preview(asks, epsilon=8)
        return plan, held.release(plan), held.budget


def test_findings_come_first_and_spent_and_left_once(made: Any) -> None:
    plan, releases, budget = made
    page = report_of(plan, releases, budget=budget)
    summary = page[page.index('id="summary"') : page.index('id="releases"')]
    assert summary.count("<li") == 4
    assert "left: epsilon = 92" in summary
    one = report_of(plan, releases[:1], budget=budget)
    assert 'id="summary"' not in one, "one release is its own summary"


def test_a_median_is_no_share(made: Any) -> None:
    plan, releases, budget = made
    grouped, one, quartiles, curve = view_of(plan, releases, budget=budget).releases
    assert (grouped.columns, one.columns, quartiles.columns) == (("g",), (), ("share",))
    assert grouped.question == "The median of x, for each g."
    assert "below" not in finding(grouped)
    assert finding(grouped).startswith("Largest: ")
    assert "50% are below" in finding(quartiles)
    most = max(curve.cells, key=lambda c: c.value or 0.0)
    said = finding(curve)
    assert f"largest at {most.keys[0]:g}: {most.figures.value} ({most.figures.interval})" in said
    # The same as a percentage of the rows in a box of round sides.
    side = float(said[said.index("for each ", said.index("rows")) :].split()[2].replace(",", ""))
    share = float(said[said.index("about ") + 6 : said.index("%")])
    assert share == pytest.approx(100 * side * most.value, rel=0.02)
    assert "of x. The certificate" in said


def test_the_top_of_a_density_of_two_columns_is_named() -> None:
    data = pd.DataFrame({"a": np.linspace(0, 40, 500), "b": np.linspace(0, 3, 500)})
    schema = {"a": tacit.number(0, 40), "b": tacit.number(0, 3)}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        plan = held.preview(tacit.density(["a", "b"], size=500, points=6), epsilon=9)
        released = held.release(plan)
        (view,) = view_of(plan, released, budget=held.budget).releases
    most = max(view.cells, key=lambda c: c.value or 0.0)
    said = finding(view)
    assert (
        f"largest at a {key_words(most.keys[0])}, b {key_words(most.keys[1])}: {most.figures.value}" in said
    )
    assert "of the rows for each 1 of a by 0.1 of b." in said


def cell(value: float, half: float, *keys: Any) -> CellView:
    return CellView(keys=keys, value=value, low=value - half, high=value + half)


def test_values_that_the_noise_does_not_tell_apart_have_neighbouring_colours() -> None:
    near = [cell(100, 50, "a", "x"), cell(110, 60, "b", "x")]
    low, high = heat_span(near)
    assert (low, high) == (105 - 120, 105 + 120)
    # Of seven colours both lie in the middle three.
    assert all(2 / 7 < (v - low) / (high - low) < 5 / 7 for v in (100, 110))
    apart = [cell(100, 4, "a", "x"), cell(110, 4, "b", "x")]
    assert heat_span(apart) == (100, 110)


def test_every_edge_of_a_bin_is_marked() -> None:
    few = [cell(5, 1, (float(e), float(e + 10))) for e in range(0, 60, 10)]
    page = str(histogram("h", "t", "d", few, "age"))
    assert all(f">{e}</text>" in page for e in range(0, 70, 10))
    many = [cell(5, 1, (float(e), float(e + 1))) for e in range(40)]
    page = str(histogram("h", "t", "d", many, "age"))
    assert page.count('class="axis"') >= 41


def test_rows_that_are_not_counted_are_named_by_the_declarations() -> None:
    schema = Schema(SCHEMA)

    def told(statistic: Any, unit: Any = None) -> tuple[str, ...]:
        return left_out(statistic.on(schema, unit or tacit.rows()), WORDS)

    assert told(tacit.count()) == ()
    assert told(tacit.count("h")) == ()
    assert told(tacit.count("g", where="y > 3")) == (
        "rows that do not satisfy y > 3", "rows without one of the declared keys of g"
    )  # fmt: skip
    assert told(tacit.mean("x", "h")) == ("rows without a value of x",)
    assert told(tacit.mean("y")) == ()
    assert told(tacit.median("x", "g")) == (
        "rows without one of the declared keys of g", "rows without a value of x"
    )  # fmt: skip
    assert told(tacit.median("y")) == ()
    for more in ({}, {"guarantee": "pure"}):
        assert told(tacit.density("x", size=100, **more)) == ("rows without a value of x",)
    assert told(tacit.histogram("x", [20, 30])) == ("rows without a value of x inside the bins",)
    assert told(tacit.count("town")) == ("rows without a key of town, and keys with too few rows",)
    people = told(tacit.count(), tacit.people("id", at_most=4))
    assert people == ("rows of a person beyond 4",)
