"""Exact answers through the curator: what is published, promised, charged and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.cli import main
from tacit.coupled.noiseless import exact_count, exact_sum
from tacit.errors import InvalidParameter, NoLaw, TacitError
from tacit.guarantees import Always, Approximate, Condition, Guarantee, Priors

UNIT = tacit.rows(neighbours="replace-one")
SCHEMA = {"x": tacit.number(0, 1, spacing=1 / 64, missing=0), "f": tacit.flag(missing=False)}
GIVEN = {"unknown_rows": 1000, "rows": "uniform(0, 1)"}
PRICE: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-5}
ROWS = 1200


def rows() -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table({"x": draw.integers(0, 65, ROWS) / 64, "f": draw.random(ROWS) < 0.3})


def curator(condition: Condition | None = None, **more: Any) -> tacit.Curator:
    budget = Guarantee(bound=Approximate(epsilon=1.0, delta=1e-5), unit=UNIT, condition=condition or Always())
    return tacit.Curator(rows(), protect=UNIT, schema=SCHEMA, budget=budget, **more)


def condition_for(asked: Any, **given: Any) -> Condition:
    with curator() as one:
        return one.preview(asked, **given).charge.condition


@pytest.mark.parametrize("kind", ["sum", "mean", "count"])
def test_the_answer_is_exact_and_keeps_its_condition(kind: str) -> None:
    data = rows()
    asked: Any = {"sum": tacit.sum("x"), "mean": tacit.mean("x"), "count": tacit.count(where="f")}[kind]
    given = GIVEN if kind != "count" else {"unknown_rows": 1000, "probability": [0.1, 0.9]}
    true = {
        "sum": float(np.sum(data["x"])),
        "mean": float(np.mean(data["x"])),
        "count": float(np.sum(data["f"])),
    }[kind]
    answer = (
        exact_count((0.1, 0.9), n=1000, delta=1e-5)
        if kind == "count"
        else exact_sum("uniform(0, 1, grid=1/64)", n=1000, delta=1e-5)
    )
    with curator(condition_for(asked, given=given, **PRICE)) as one:
        made = one.release(asked, given=given, **PRICE)
        spent, left = one.standing
    assert made.value == true
    assert made.interval == (true, true)
    assert isinstance(made.guarantee.condition, Priors)
    assert made.guarantee.condition.unknown_rows == 1000
    assert made.guarantee.bound == Approximate(epsilon=answer.epsilon_pair or 0.0, delta=1e-5)
    # The charge is what was found, not what was offered; after it nothing is left.
    assert spent.bound == made.guarantee.bound
    assert left.bound == Approximate(epsilon=0.0, delta=0.0)
    said = made.certificate
    assert answer.theorem in said["theorems"]
    assert said["mechanism"]["exact"]["sentence"].startswith("This is private provided that ")
    assert "to somebody who knows the distribution" in said["mechanism"]["chosen"]
    assert said["event"][0]["given"]["unknown_rows"] == 1000
    assert "not differential privacy" in said["meaning"]
    # Nothing that was drawn protects anybody: a cipher has no part in it.
    assert said["computational"].startswith("No noise")
    assert "EXACT, and not differential privacy" in str(made)
    assert len(said["guarantee"]["declared"]) == 3


def test_an_exact_answer_promises_its_epsilon_and_delta_only() -> None:
    """It runs no mechanism: a sum over none would be a pure epsilon of 0."""
    asked = tacit.sum("x")
    with curator(condition_for(asked, given=GIVEN, **PRICE)) as one:
        made = one.preview(asked, given=GIVEN, **PRICE).releases[0].assignment
    neighbours = tacit.rows().neighbours
    numbers = (made.pure(), made.concentrated(), made.mu_squared(), made.renyi(2.0, neighbours=neighbours))
    assert numbers == (None,) * 4
    assert made.approximate() is not None
    assert isinstance(made.condition, Priors)


def test_one_exact_answer_a_table_and_nothing_beside_it() -> None:
    with curator(condition_for(tacit.sum("x"), given=GIVEN, **PRICE)) as one:
        first = one.release(tacit.sum("x"), given=GIVEN, **PRICE)
        again = one.release(tacit.sum("x"), given=GIVEN, **PRICE)
        assert again.replayed
        assert again.value == first.value
        for asked, more in (
            (tacit.mean("x"), {"given": GIVEN, **PRICE}),
            (tacit.count(where="f"), {"epsilon": 0.1}),
        ):
            with pytest.raises(NoLaw, match="auxiliary knowledge"):
                one.release(asked, **more)
    # A release with noise comes first: then no exact one follows.
    with curator(condition_for(tacit.sum("x"), given=GIVEN, **PRICE)) as one:
        one.release(tacit.count(where="f"), epsilon=0.1)
        with pytest.raises(NoLaw, match="auxiliary knowledge"):
            one.release(tacit.sum("x"), given=GIVEN, **PRICE)
    with curator() as one, pytest.raises(NoLaw, match="beside something else"):
        one.preview([tacit.query(tacit.sum("x"), given=GIVEN), tacit.count(where="f")], **PRICE)


def test_a_plain_budget_does_not_pay_for_it() -> None:
    with curator() as one:
        with pytest.raises(InvalidParameter, match="under its own condition"):
            one.release(tacit.sum("x"), given=GIVEN, **PRICE)
        assert one.spent.epsilon_at(1e-5) == 0
    other = Priors(family="something else", unknown_rows=1000)
    with curator(other) as one, pytest.raises(InvalidParameter, match="under its own condition"):
        one.release(tacit.sum("x"), given=GIVEN, **PRICE)


@pytest.mark.parametrize(
    ("asked", "given", "price", "words"),
    [
        (tacit.sum("x"), GIVEN, {"epsilon": 0.3, "delta": 1e-5}, "needs epsilon = 0.37"),
        (tacit.sum("x"), GIVEN, {"epsilon": 0.5}, "never private with delta = 0"),
        (tacit.sum("x", by="f"), GIVEN, PRICE, "of this form"),
        (tacit.sum("x", where="f"), GIVEN, PRICE, "of this form"),
        (tacit.mean("x", where="f"), GIVEN, PRICE, "of this form"),
        (tacit.variance("x"), GIVEN, PRICE, "of this form"),
        (tacit.count(), {"unknown_rows": 1000, "probability": 0.5}, PRICE, "of this form"),
        (tacit.count(where="f"), GIVEN, PRICE, "probability must be in given"),
        (tacit.sum("x"), {"unknown_rows": 1000, "probability": 0.5}, PRICE, "name the law of a row"),
        (tacit.sum("x"), {"unknown_rows": 1000, "rows": "uniform(0, 2)"}, PRICE, "range over the column"),
        (
            tacit.sum("x"),
            {"unknown_rows": 1000, "rows": "uniform(0, 1, grid=1/100)"},
            PRICE,
            "every value of",
        ),
        # Values that the column may hold and the law may not: such a row would show through the exact sum.
        (
            tacit.sum("x"),
            {"unknown_rows": 1000, "rows": "uniform(0, 1, grid=1/32)"},
            PRICE,
            "every value of the column",
        ),
        (
            tacit.sum("x"),
            {"unknown_rows": 1000, "rows": "table(0: 1/2, 1: 1/2)"},
            PRICE,
            "every value of the column",
        ),
        (
            tacit.sum("x"),
            {"unknown_rows": 1000, "rows": "table(0: 1/2, 1/64: 1/4, 1: 1/4)"},
            PRICE,
            "every value of the column",
        ),
        (
            tacit.sum("x"),
            {"unknown_rows": 1000, "rows": "uniform(0, 1, grid=1/32)", "assume": "rectangle"},
            PRICE,
            "every value of the column",
        ),
        (tacit.sum("x"), {"unknown_rows": 1000, "rows": "normal(0, 1)"}, PRICE, "shows through every sum"),
        (tacit.sum("x"), {"unknown_rows": 1, "rows": "uniform(0, 1)"}, PRICE, "at least 2"),
        (tacit.sum("x"), {"unknown_rows": 1000, "random_data": 0.1}, PRICE, "word in given"),
        (tacit.sum("x"), {"unknown_rows": 1000, "rows": 1000}, PRICE, "be text"),
    ],
)
def test_what_is_refused_before_anything_is_read(asked: Any, given: Any, price: Any, words: str) -> None:
    with curator() as one, pytest.raises(TacitError, match=words):
        one.preview(asked, given=given, **price)


def test_other_units_have_no_theorem() -> None:
    with (
        tacit.Curator(
            rows(), protect=tacit.rows(), schema=SCHEMA, budget=Approximate(epsilon=1.0, delta=1e-5)
        ) as one,
        pytest.raises(NoLaw, match="public number of independent rows"),
    ):
        one.preview(tacit.sum("x"), given=GIVEN, **PRICE)


def test_a_table_with_fewer_rows_than_are_unknown_publishes_nothing() -> None:
    given = {"unknown_rows": ROWS + 1, "rows": "uniform(0, 1)"}
    with (
        curator(condition_for(tacit.sum("x"), given=given, **PRICE)) as one,
        pytest.raises(InvalidParameter, match="fewer"),
    ):
        one.release(tacit.sum("x"), given=given, **PRICE)


def test_a_plan_file_its_report_and_its_verification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(3)
    values = draw.integers(0, 101, 3000)
    (tmp_path / "ages.csv").write_text("age\n" + "".join(f"{v}\n" for v in values))
    (tmp_path / "plan.toml").write_text(
        """
[data]
path = "ages.csv"
[protect]
unit = "rows"
neighbours = "replace-one"
[schema.age]
kind = "integer"
low = 0
high = 100
missing = 0
[budget]
epsilon = 0.5
delta = 1e-6
[[release]]
kind = "mean"
column = "age"
name = "age"
given = { unknown_rows = 2000, rows = "uniform(0, 100)" }
"""
    )
    out = tmp_path / "out"
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(out)]) == 0
    assert "EXACT, and not differential privacy" in capsys.readouterr().out
    assert main(["verify", str(out), "--ledger", str(tmp_path / "ages.ledger")]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", str(tmp_path / "ages.ledger")]) == 0
    shown = capsys.readouterr().out.split("\n")
    assert shown[1].startswith("budget  epsilon = 0.5")
    assert (
        shown[2]
        .strip()
        .startswith("not differential privacy: only against adversaries whose knowledge is of the")
    )
    assert "know nothing of at least 2000 rows" in shown[2]
    said = json.loads((out / "certificates" / "age.json").read_text())
    assert said["guarantee"]["condition"]["kind"] == "priors"
    assert float((out / "values" / "age.csv").read_text().split("\n")[1].split(",")[0]) == values.mean()
    page = (out / "report.html").read_text()
    assert '<p class="condition">This is private provided that the rows are independent draws' in page
    # The largest type of the page: no other rule has a larger size.
    sizes = [float(s.split("rem")[0]) for s in page.split("vw,")[1:]]
    condition = float(page.split(".condition{font-size:clamp(")[1].split("vw,")[1].split("rem")[0])
    assert condition == max(sizes)
