"""Regression by propose-test-release through a plan: the test, the noise, the unit, and an answer that is none."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import tacit
from support.forged import false, forge
from tacit.cli import main
from tacit.curator.functions import regression_by_test
from tacit.curator.functions.by_test import SPACING, ByTestAssignment
from tacit.errors import InvalidParameter, TacitError, WrongType
from tacit.guarantees import Neighbours
from tacit.mechanisms.own_statistics import LeastSquares
from tacit.noise import DiscreteLaplace, SeededSource
from tacit.statistics.base import Question

SIZE = 6000
SCHEMA = {"age": tacit.integer(20, 80), "hours": tacit.number(0, 60), "pay": tacit.number(0, 100)}
UNITS = {
    "rows": tacit.rows(), "replaced": tacit.rows(neighbours="replace-one"), "people": tacit.people("id", at_most=3),
    "people replaced": tacit.people("id", at_most=2, neighbours="replace-one"),
}  # fmt: skip
PRICE: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6}
ASK = regression_by_test(["age", "hours"], "pay", size=SIZE, spread=0.1)


def table(*, flat: bool = False, rows: int = SIZE) -> pa.Table:
    """pay = 10 + age / 2 + hours / 4, with some noise and gaps; or everybody at one place."""
    draw = np.random.default_rng(3)
    age, hours = draw.integers(20, 81, rows), draw.uniform(0, 60, rows)
    if flat:
        age, hours = np.full(rows, 50), np.full(rows, 30.0)
    pay = np.clip(10 + age / 2 + hours / 4 + draw.normal(0, 3, rows), 0, 100)
    gaps = [None if i % 50 == 0 else float(v) for i, v in enumerate(hours)]
    return pa.table({"id": np.arange(rows) // 2, "age": age, "hours": gaps, "pay": pay})


def released(data: pa.Table, unit: tacit.Unit, seed: int = 1) -> Any:
    with tacit.Curator(
        data, protect=unit, schema=SCHEMA, budget=tacit.Approximate(**PRICE), source=SeededSource(seed=seed)
    ) as held:
        return held.release(ASK, **PRICE)


@pytest.mark.parametrize("name", UNITS)
def test_the_line_is_found_and_a_flat_table_gets_none(name: str) -> None:
    found = released(table(), UNITS[name])
    value, half = np.ravel(found.estimate.value), np.ravel(found.estimate.high - found.estimate.value)
    truth = np.array([0.5, 0.25, 10 + 25 + 7.5])
    assert (np.abs(value - truth) < half + 0.05).all()
    assert half[2] < 20
    assert found.guarantee.bound.kind == "approximate"
    said = found.guarantee.bound
    assert (float(said.epsilon), float(said.delta)) == (4.0, pytest.approx(1e-6, rel=1e-12, abs=0))
    none = released(table(flat=True), UNITS[name])
    assert np.isnan(none.estimate.value).all()
    assert list(none.columns) == list(found.columns)
    assert set(none.quality) == {"no value"}


def question(unit: tacit.Unit) -> Question:
    return ASK.on(tacit.Schema(SCHEMA), unit)


def assigned(unit: tacit.Unit) -> ByTestAssignment:
    from tacit.curator.charging import price
    from tacit.curator.planning import choose

    made = choose(question(unit), price(**PRICE))
    assert isinstance(made, ByTestAssignment)
    return made


def test_test_and_noise_are_those_of_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is shown if distance + noise of 1/epsilon_1 is above the threshold; its noise is of D/epsilon_2."""
    made = assigned(tacit.rows())
    assert made.test_epsilon + made.release_epsilon == 4
    scales, script = [], []

    def scripted(law: DiscreteLaplace, size: Any = None, source: Any = None) -> Any:
        scales.append(Fraction(law.noise_scale))
        return np.asarray(script.pop(0))

    monkeypatch.setattr(DiscreteLaplace, "sample", scripted)
    distance, threshold = 40, made.mechanism.threshold
    monkeypatch.setattr(ByTestAssignment, "_found", lambda *_: ([7, 8, 9], distance))

    def told(test: int) -> list[int]:
        from tacit.sources.query import RowsWanted, TrainingRows

        script[:] = [test, 1, 2, 3]
        rows = TrainingRows(request=RowsWanted(columns=("age",)), rows={"age": np.zeros(1)})
        noisy = made.run(question(tacit.rows()), [rows], source=SeededSource(seed=1))
        assert not rows.rows
        return [int(noisy.parts["passed"][0]), *noisy.parts["coefficients"]]

    assert told(threshold - distance) == [0, 0, 0, 0]
    assert told(threshold - distance + 1) == [1, 8, 10, 12]
    steps = made.least.move(SPACING) / SPACING
    assert set(scales) == {1 / made.test_epsilon, steps / made.release_epsilon}
    # Pr[noise > threshold] <= delta, and not for the next smaller one.
    q = math.exp(-float(made.test_epsilon))
    assert q ** (threshold + 1) / (1 + q) <= 1e-6 < q**threshold / (1 + q)


@pytest.mark.parametrize("name", UNITS)
def test_the_test_is_made_for_the_rows_of_a_unit(name: str) -> None:
    made, unit = assigned(UNITS[name]), UNITS[name]
    most = getattr(unit, "at_most", 1)
    assert (made.least.unit_rows, made.least.neighbours, made.least.counted) == (most, unit.neighbours, False)
    for other in UNITS.values():
        if (getattr(other, "at_most", 1), other.neighbours) != (most, unit.neighbours):
            with pytest.raises(ValueError, match="another question"):
                made.sensitivity_record(question(other))


def test_the_share_of_the_test_is_the_best_of_those_tried() -> None:
    made = assigned(tacit.rows())
    for share in (Fraction(1, 16), Fraction(1, 2), Fraction(15, 16)):
        least = LeastSquares.for_spread(
            columns=2, rows=SIZE, least_eigenvalue=0.1, test_epsilon=4 * share, delta=Fraction(1, 10**6),
            neighbours=Neighbours.ADD_OR_REMOVE, counted=False,
        )  # fmt: skip
        error = float(least.move(SPACING)) / float(4 * (1 - share))
        assert made.mechanism.expected_error() <= 1.01 * error


@pytest.mark.parametrize(
    ("change", "price", "error", "words"),
    [
        ({}, {"epsilon": 1.0}, InvalidParameter, "epsilon with a delta"),
        ({}, {"rho": 1.0}, InvalidParameter, "epsilon with a delta"),
        ({"size": 50}, PRICE, InvalidParameter, "could not be passed"),
        ({"spread": 1.5}, PRICE, InvalidParameter, "at most 1"),
        ({"spread": 0.0}, PRICE, InvalidParameter, "spread"),
        ({"outcome": "age"}, PRICE, InvalidParameter, "different columns"),
        ({"outcome": "id"}, PRICE, TacitError, "id"),
        ({"outcome": "day"}, PRICE, WrongType, "number"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_a_charge(
    change: dict[str, Any], price: dict[str, Any], error: type[Exception], words: str
) -> None:
    given = {"columns": ["age", "hours"], "outcome": "pay", "size": SIZE, "spread": 0.1} | change
    schema = {**SCHEMA, "day": tacit.date("2020-01-01", "2020-12-31")}
    budget = tacit.Concentrated(rho=2.0) if "rho" in price else tacit.Approximate(epsilon=5.0, delta=1e-5)
    with tacit.Curator(table(rows=20), protect=tacit.rows(), schema=schema, budget=budget) as held:
        with pytest.raises(error, match=words):
            held.release(regression_by_test(**given), **price)
        assert not any(v for v in held.spent.parameters.values())


PLAN = """
[data]
path = "t.csv"
[protect]
unit = "rows"
[schema]
age = {{ kind = "integer", low = 20, high = 80 }}
hours = {{ kind = "number", low = 0, high = 60 }}
pay = {{ kind = "number", low = 0, high = 100 }}
[budget]
epsilon = 4.0
delta = 1e-5
[ledger]
path = "t.ledger"
[[release]]
name = "line"
kind = "regression_by_test"
columns = ["age", "hours"]
outcome = "pay"
size = {size}
spread = 0.1
epsilon = 4.0
delta = 1e-6
"""


@pytest.mark.parametrize("flat", [False, True])
def test_a_plan_releases_it_and_verify_holds(
    tmp_path: Path, flat: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(table(flat=flat), tmp_path / "t.csv")
    (tmp_path / "plan.toml").write_text(PLAN.format(size=SIZE))
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0
    assert main(["verify", str(tmp_path / "out"), "--ledger", str(tmp_path / "t.ledger")]) == 0
    rows = (tmp_path / "out/values/line.csv").read_text().splitlines()
    assert [r.split(",")[0] for r in rows] == ["term", "age", "hours", "pay at the middle"]
    assert all(r.endswith("no value") for r in rows[1:]) == flat
    said = json.loads((tmp_path / "out/certificates/line.json").read_text())
    assert said["theorems"][:2] == ["propose-test-release", "least-squares-distance"]
    capsys.readouterr()
    if not flat:
        forge(tmp_path / "out", "line", _fewer_rows)
        assert false(tmp_path / "out")


def _fewer_rows(said: dict[str, Any]) -> None:
    said["choice"]["assignment"]["least"]["unit_rows"] = 2
