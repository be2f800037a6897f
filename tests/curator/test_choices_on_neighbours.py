"""Suggested plans, clamping bounds and bandwidths on neighbours: nothing but the noise may depend on a row.

Neighbours are built from the definition: one row, or all rows of one person, added, taken away or exchanged. What is
compared is what an onlooker sees beside the noise (text, charge, event, choice, certificate, shape), and what the
noise is for: how far the true numbers move, against the scale of the noise that was charged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import tacit
from tacit.curator.planning import make_plan
from tacit.sources import open_table
from tacit.statistics import read_cells

KEY = b"k" * 32
ODD = [
    0.0, -0.0, 1.0, 2.0**59, 2.0**60, 2.0**61, 2.0**-20, 2.0**-21, -(2.0**-20), 1e308, -1e308, 5e-324, math.inf,
    -math.inf, math.nan, None, 0.9999999999999999, 1.0000000000000002, -3.0,
]  # fmt: skip
BASE = [*(float(v) for v in (1, 2, 3, 700, -5, 0)), 0.25]


def rows_of(values: list[Any], people: list[str]) -> Any:
    return pa.table({"x": pa.array(values, pa.float64()), "p": pa.array(people, pa.string())})


UNITS: dict[str, tacit.Unit] = {
    "rows added": tacit.rows(),
    "rows exchanged": tacit.rows(neighbours="replace-one"),
    "people added": tacit.people("p", at_most=2),
    "people exchanged": tacit.people("p", at_most=2, neighbours="replace-one"),
}


def neighbours(unit: str) -> Iterator[tuple[Any, Any]]:
    """Pairs of tables, by the definition of the relation; a person may have more rows than are used."""
    many = 3 if unit.startswith("people") else 1
    others = [str(i) for i in range(len(BASE))]
    without = rows_of(BASE, others)
    for odd in ODD:
        own = [odd] + [ODD[(ODD.index(odd) + k) % len(ODD)] for k in range(1, many)]
        with_own = rows_of([*BASE, *own], [*others, *["me"] * many])
        if unit.endswith("added"):
            yield without, with_own
            yield rows_of(own, ["me"] * many), without.slice(0, 0)
        else:
            yield rows_of([*BASE, *own[::-1]], [*others, *["me"] * many]), with_own
            yield rows_of([*BASE, *[1e-3] * many], [*others, *["me"] * many]), with_own


def true_counts(table: Any, unit: tacit.Unit, question: Any) -> list[int]:
    with open_table(table, schema=question.schema, unit=unit) as held:
        (cells,) = read_cells(held, [question], key=KEY)
        return [int(v) for v in question.statistic.integers(question, cells)["count"].ravel()]


@pytest.mark.parametrize("unit", UNITS)
def test_clamping_bounds_have_noise_for_what_a_unit_moves(unit: str) -> None:
    schema = tacit.Schema({"x": tacit.number(), **({"p": tacit.category()} if "people" in unit else {})})
    statistic = tacit.clamping_bounds("x")
    question = statistic.on(schema, UNITS[unit])
    farthest = max(
        sum(abs(a - b) for a, b in zip(*(true_counts(t, UNITS[unit], question) for t in pair), strict=True))
        for pair in neighbours(unit)
    )
    plan = make_plan(
        [tacit.query(statistic, epsilon=Fraction(1, 2))], schema=schema, unit=UNITS[unit],
        budget=tacit.Pure(epsilon=4.0),
    )  # fmt: skip
    (only,) = plan.releases[0].assignment.noise
    # At scale b the likelihoods of two tables differ by at most exp(distance / b).
    assert farthest * only.mechanism.distribution.rate <= Fraction(1, 2)
    # And some neighbours use all of it, so that the pairs above are not all near.
    assert farthest == question.sensitivity.l1
    assert plan.charged.bound == tacit.Pure(epsilon=0.5)


def seen(table: Any, unit: tacit.Unit, asked: Any, place: Path, **price: Any) -> dict[str, Any]:
    """All that is written down of a release but its numbers, its time and its place in the ledger."""
    schema = {"x": tacit.number(0, 8), "free": tacit.number()}
    table = table.append_column("free", table.column("x"))
    with tacit.Curator(table, protect=unit, schema=schema, budget=tacit.Approximate(epsilon=50.0, delta=1e-3),
                       ledger=place) as held:  # fmt: skip
        plan = held.preview(asked, **price)
        found = held.release(asked, **price)
        (charge,) = held.ledger.charges()
        certificate = json.loads(json.dumps(found.certificate, default=str))
        spent, left = held.spent, held.remaining
    for name in ("time", "values", "ledger", "digest", "noisy", "made"):
        certificate.pop(name, None)
    if "function" in certificate:
        # The released numbers of a function are its values: noise and all.
        certificate["function"]["numbers"] = len(certificate["function"]["numbers"])
    return {
        "digest": plan.digest, "charge": charge.guarantee, "exact": dict(charge.exact), "event": charge.event,
        "choice": charge.choice, "spent": spent, "left": left,
        "shape": (found.table.columns.tolist(), [str(t) for t in found.table.dtypes], len(found.table)),
        "says": {n: v for n, v in certificate.items() if n not in ("data", "plan", "versions")},
    }  # fmt: skip


ASKED: dict[str, Any] = {
    "clamping bounds": lambda: (tacit.clamping_bounds("free"), {"epsilon": 1}),
    "bandwidth by itself": lambda: (tacit.density(["x"], size=8), {"epsilon": 1, "delta": 1e-6}),
    "bandwidth of a pure density": lambda: (tacit.density(["x"], size=8, guarantee="pure"), {"epsilon": 1}),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("unit", ["rows added", "rows exchanged"])
def test_charges_and_choices_do_not_depend_on_a_row(asked: str, unit: str, tmp_path: Path) -> None:
    statistic, price = ASKED[asked]()
    pairs = [p for i, p in enumerate(neighbours(unit)) if i % 7 == 0]
    found = [
        seen(table, UNITS[unit], statistic, tmp_path / f"{i}-{j}.ledger", **price)
        for i, pair in enumerate(pairs)
        for j, table in enumerate(pair)
    ]
    for one in found[1:]:
        assert one == found[0]


# --- suggested plans --------------------------------------------------------------------------------------------
LINES = ["id,age,town,seen", "1,30,Aachen,2020-01-01", "2,41,Bonn,2020-02-01"]
ODD_LINES = [
    "3,2000000000000000000000,Köln,0001-01-01", '4,"1,2","a\nb",', "5;6;7;8", "", ",,,", '9,"open,', "1,30,Aachen,2020",
    "true,false,true,false", "id,age,town,seen", "\ufeff1,2,3,4", "=cmd|' /C calc'!A0,1,2,3", "1.5,1e400,NaN,nan",
    "x" * 70_000,
    "1,30,\x00,2020", "1\t2\t3\t4", "1,2,3,4,5,6,7,8",
]  # fmt: skip


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_suggested_plan_does_not_depend_on_a_row_of_a_text(tmp_path: Path, at: int) -> None:
    place = tmp_path / "survey.csv"

    def told(lines: list[str], encoding: str = "utf-8") -> tuple[str, Any, Any]:
        place.write_bytes(("\n".join(lines) + "\n").encode(encoding))
        made = tacit.suggest(place, person="id", at_most=2, schema={"age": tacit.integer(0, 99)}, epsilon=1)
        return made.text, made.columns, made.unanswered

    first = told(LINES)
    assert told(LINES[:1]) == first
    for odd in ODD_LINES:
        assert told([*LINES[:at], odd, *LINES[at:]]) == first, odd
    assert told([*LINES, "3,30,K\u00f6ln,2020-01-01"], "latin-1") == first


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_suggested_plan_does_not_depend_on_a_row_of_a_typed_file(tmp_path: Path, odd: Any) -> None:
    def told(values: list[Any]) -> tuple[str, Any]:
        people = [str(i) for i in range(len(values))]
        pa.parquet.write_table(rows_of(values, people), tmp_path / "survey.parquet")
        made = tacit.suggest(tmp_path / "survey.parquet", person="p", at_most=2, epsilon=1)
        return made.text, made.columns

    assert told(BASE) == told([*BASE, odd]) == told([odd]) == told([])
