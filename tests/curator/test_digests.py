"""What a release declares stands in the plan's digest and in the ledger: two questions never share one record.

The fields are found by introspection: a field that is added without a change of it below is an error here.
"""

from __future__ import annotations

import datetime
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator.charging import Price
from tacit.curator.planning import make_plan
from tacit.curator.request import Query, given_of
from tacit.errors import InvalidParameter
from tacit.guarantees import GroupOf, Neighbours, People, Rows
from tacit.sources.schema import Schema
from tacit.statistics.invariants import PublicTotals

BUDGET = tacit.Approximate(epsilon=9.0, delta=1e-3)
SCHEMA = Schema(
    {
        "a": tacit.category(["x", "y"]),
        "b": tacit.category([1, 2, 3]),
        "f": tacit.flag(),
        "v": tacit.number(0, 100),
        "n": tacit.integer(-5, 9),
        "d": tacit.date("2020-01-01", "2020-12-31"),
    }
)
PEOPLE = tacit.people("id", at_most=4, groups=2)


def digest(*asks: Any, unit: Any = PEOPLE, schema: Schema = SCHEMA, **more: Any) -> str:
    """The digest of a plan; the ways to pay are those of a plan without a price."""
    given = [a if isinstance(a, Query) else tacit.query(a, epsilon=Fraction(1, 2)) for a in asks]
    return make_plan(given, schema=schema, unit=unit, budget=BUDGET, **more).digest


def differ(found: list[str]) -> None:
    assert len(set(found)) == len(found)


CHANGED: dict[str, list[Any]] = {
    "statistic": [tacit.mean("v", by="b"), tacit.mean("v", where="f"), tacit.mean("n"), tacit.count()],
    "name": ["another"],
    "price": [Price(epsilon=Fraction(1, 3)), Price(rho=Fraction(1, 8)), Price(mu=Fraction(1, 2))],
    "weight": [Fraction(2)],
    "confidence": [Fraction(9, 10)],
    "consistent": [True],
    "rows": [100, 101],
    "sampling": [True],
    "public": [tacit.public_totals(total=100), tacit.public_totals(total=5000)],
    "target": [Fraction(3), Fraction(4)],
    "given": [given_of("always")],
}


def test_every_field_of_an_ask_changes_the_digest() -> None:
    # A guess is for previews alone; bounded noise is for counts with a delta; two tables agree, and not one alone.
    assert set(CHANGED) == {f.name for f in fields(Query)} - {"agree", "guess", "noise"}
    unit = tacit.rows()
    tables = [[tacit.query(tacit.count(by=k), name=k, epsilon=0.5, agree=agree) for k in ("a", "b")]
              for agree in (False, True)]  # fmt: skip
    differ([digest(*two, unit=unit) for two in tables])
    words: Any = {"schema": SCHEMA, "unit": unit, "budget": tacit.Approximate(epsilon=1.0, delta=1e-6)}
    counts = [tacit.query(tacit.count(), name="c", epsilon=0.5, delta=1e-6, noise=n) for n in ("", "bounded")]
    differ([make_plan([a], **words).digest for a in counts])
    own = {"price": Price(epsilon=Fraction(1, 2))}
    one = replace(tacit.query(tacit.mean("v"), name="m"), **own)
    # A weight alone divides nothing, and what holds always is no assumption: see below.
    changed = [
        replace(one, **{name: value})
        for name, values in CHANGED.items()
        for value in values
        if name not in ("weight", "given")
    ]
    differ([digest(a, unit=unit) if a.price.kind == "pure" else
            make_plan([a], schema=SCHEMA, unit=unit, budget=tacit.GaussianDP(mu=9.0)).digest
            for a in [one, *changed]])  # fmt: skip


def test_what_says_nothing_is_no_other_question_and_what_says_something_is() -> None:
    unit, total = tacit.rows(), Price(epsilon=Fraction(1, 2))
    one, two = tacit.query(tacit.count(), name="one"), tacit.query(tacit.count(by="a"), name="two")
    heavy, always = replace(one, weight=Fraction(2)), replace(one, given=given_of("always"))
    about: dict[str, Any] = {"schema": SCHEMA, "unit": unit, "budget": BUDGET, "total": total}
    alone = [make_plan([a], **about).digest for a in (one, heavy, always)]
    assert len(set(alone)) == 1
    both = [make_plan([one, two], **about | {"given": given}).digest for given in (None, "always")]
    assert len(set(both)) == 1
    shared = [make_plan([a, two], **about).digest for a in (one, heavy)]
    differ([*alone[:1], *shared])
    random_data = about | {"given": {"random_data": 0.05, "rows": 8000}}
    differ([make_plan([a, two], **random_data).digest for a in (one, always)])


def test_every_field_of_a_price_changes_the_digest() -> None:
    ways: dict[str, list[Price]] = {
        "epsilon": [Price(epsilon=Fraction(1, 4))],
        "delta": [Price(epsilon=Fraction(1, 4), delta=Fraction(1, 10**d)) for d in (5, 6)],
        "rho": [Price(rho=Fraction(1, n)) for n in (8, 9)],
        "mu": [Price(mu=Fraction(1, n)) for n in (3, 5)],
        "within": [Price(within=Fraction(n)) for n in (50, 60)],
        "confidence": [Price(within=Fraction(50), confidence=Fraction(1, 2))],
        "simultaneous": [Price(within=Fraction(50), simultaneous=True)],
    }
    assert set(ways) == {f.name for f in fields(Price)}
    one = tacit.query(tacit.count(by="a"), name="c")
    budget = {"rho": tacit.Concentrated(rho=9.0), "mu": tacit.GaussianDP(mu=9.0)}
    differ(
        [
            make_plan(
                [replace(one, price=p)], schema=SCHEMA, unit=PEOPLE, budget=budget.get(name, BUDGET)
            ).digest
            for name, prices in ways.items()
            for p in prices
        ]
    )
    # And the delta of the plan itself, at which its curves are read.
    differ(
        [
            make_plan([one, tacit.query(tacit.count())], schema=SCHEMA, unit=PEOPLE, budget=BUDGET,
                      total=Price(epsilon=Fraction(1, 2), delta=Fraction(1, d))).digest
            for d in (10**5, 10**6)
        ]
    )  # fmt: skip


def test_every_field_of_a_unit_changes_the_digest() -> None:
    of = tacit.people("id", at_most=4)
    units = {
        Rows: [tacit.rows(), tacit.rows(neighbours="replace-one")],
        People: [
            of, replace(of, column="other"), replace(of, at_most=5), replace(of, groups=4), replace(of, groups=1),
            replace(of, groups=2), replace(of, neighbours=Neighbours.REPLACE_ONE), replace(of, each=("a", 1)),
            replace(of, each=("a", 2)), replace(of, each=("b", 1)),
        ],
        GroupOf: [
            tacit.group_of(tacit.rows(), size=2), tacit.group_of(of, size=2), tacit.group_of(of, size=3),
            tacit.group_of(replace(of, groups=1), size=2),
        ],
    }  # fmt: skip
    assert {f.name for f in fields(People)} == {"neighbours", "column", "at_most", "groups", "each"}
    assert {f.name for f in fields(GroupOf)} == {"neighbours", "of", "size"}
    differ([digest(tacit.count(by="a"), unit=u) for group in units.values() for u in group])


def test_every_declared_total_changes_the_digest_and_the_words() -> None:
    assert {f.name for f in fields(PublicTotals)} == {"total", "tables", "nodes"}
    given = [
        tacit.public_totals(),
        tacit.public_totals(total=100),
        tacit.public_totals(total=5000),
        tacit.public_totals(tables={"a": [40, 60]}),
        tacit.public_totals(tables={"a": [60, 40]}),
        tacit.public_totals(total=100, tables={"a": [60, 40]}),
        tacit.public_totals(tables={"b": [60, 40, 0]}),
        tacit.public_totals(tables={("a", "b"): [[1, 2, 3], [4, 5, 6]]}),
        tacit.public_totals(tables={("b", "a"): [[1, 2], [3, 4], [5, 6]]}),
        tacit.public_totals(tables={("b", "a"): [[1, 4], [2, 5], [3, 6]]}),
        tacit.public_totals(nodes={("x",): 5}),
        tacit.public_totals(nodes={("x",): 6}),
        tacit.public_totals(nodes={("y",): 5}),
        tacit.public_totals(nodes={1: 5}),
        tacit.public_totals(nodes={"1": 5}),
    ]
    differ([p.digest for p in given])
    differ([repr(p.declared) for p in given])
    asks = [tacit.query(tacit.count(by="a"), public=p, epsilon=0.5) for p in given[:6]]
    differ([digest(tacit.query(tacit.count(by="a"), epsilon=0.5)), *(digest(a) for a in asks)])
    # The order in which numbers are given is no difference.
    one, two = ({"a": [1, 2], "b": [1, 1, 1]}, {"b": [1, 1, 1], "a": [1, 2]})
    assert tacit.public_totals(tables=one).digest == tacit.public_totals(tables=two).digest


def test_every_field_of_a_statistic_changes_the_digest() -> None:
    parents = {"all": None, "x": "all", "y": "all"}
    more = {"all": None, "top": "all", "x": "top", "y": "all"}
    found = [
        tacit.count(), tacit.count(by="a"), tacit.count(by="b"), tacit.count(by=["a", "b"]), tacit.count(of="people"),
        tacit.count(where="f"), tacit.count(where="not f"), tacit.count(where="a == 'x'"), tacit.histogram("a"),
        tacit.histogram("v", 4), tacit.histogram("v", [0, 25, 50, 75, 100]), tacit.histogram("v", [0, 30, 100]),
        tacit.sum("v"), tacit.sum("n"), tacit.mean("v"), tacit.mean("d"), tacit.proportion("f"),
        tacit.proportion("not f"), tacit.variance("v"), tacit.standard_deviation("v"), tacit.ratio("v", "n"),
        tacit.ratio("n", "v"), tacit.median("v"), tacit.quantile("v", 0.25), tacit.quantiles("v", at=[0.25, 0.5]),
        tacit.median("v", resolution=64), tacit.margins(["a", "b"]), tacit.margins(["a", "b"], order=2),
        tacit.margins(["a", tacit.bins("v", 3)]), tacit.margins(["a", tacit.bins("v", 4)]), tacit.hierarchy(["a", "b"]),
        tacit.hierarchy(["b", "a"]), tacit.hierarchy("a", parents=parents), tacit.hierarchy("a", parents=more),
        tacit.sparse_histogram(["a", "b"]), tacit.sparse_histogram(["a", "b"], of="people"),
        tacit.sparse_histogram(["a", "b"], impossible=[{"a": "x", "b": 1}]),
        tacit.sparse_histogram(["a", "b"], impossible=[{"a": "x", "b": 2}]),
    ]  # fmt: skip
    differ([digest(tacit.query(s, name="s", epsilon=0.5)) for s in found])


def test_every_declaration_of_a_column_changes_the_digest() -> None:
    """Also of a column that the statistic does not read: the table is declared as a whole."""
    columns = [
        tacit.number(0, 100), tacit.number(0, 101), tacit.number(-1, 100), tacit.number(0, 100, spacing=1),
        tacit.integer(0, 100), tacit.integer(0, 99), tacit.category(["x", "y"]), tacit.category(["y", "x"]),
        tacit.category(["x", "y", "z"]), tacit.category([1, 2]), tacit.category(["1", "2"]), tacit.category(),
        tacit.flag(), tacit.date("2020-01-01", "2020-12-31"), tacit.date("2020-01-01", "2021-12-31"), tacit.number(),
        tacit.number(0, 100, missing=1), tacit.number(0, 100, missing=2), tacit.number(0, 100, outside="missing"),
    ]  # fmt: skip
    schemas = [Schema({"a": tacit.category(["x", "y"]), "w": c}) for c in columns]
    differ([digest(tacit.count(by="a"), schema=s) for s in schemas])


def test_what_is_declared_reaches_the_ledger_and_the_certificate() -> None:
    """Totals of 100 and of 5,000 are two questions: two charges, each with its own sentence and its own numbers."""
    table = pa.table({"a": ["x"] * 60 + ["y"] * 40})
    schema = {"a": tacit.category(["x", "y"])}
    with tacit.Curator(table, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9.0)) as held:
        found = []
        for total in (100, 5000):
            asked = tacit.query(tacit.count(by="a"), public=tacit.public_totals(total=total))
            answer = held.release(asked, epsilon=1)
            assert not answer.replayed
            assert int(np.sum(answer.estimate.value)) == total
            found.append(answer)
        charges = held.ledger.charges()
    assert len(charges) == 2
    for answer, kept, total in zip(found, charges, (100, 5000), strict=True):
        assert set(answer.guarantee.declared) <= set(kept.guarantee.declared)
        assert any(f"({total:,})" in sentence for sentence in kept.guarantee.declared)
        assert answer.certificate["plan"]["charge"]["declared"] == list(kept.guarantee.declared)
        assert answer.certificate["public_totals"]["total"] == total


def test_a_plan_for_another_schema_or_unit_is_refused() -> None:
    table = pa.table({"a": ["x", "y"], "w": [1, 2], "id": [1, 2]})
    schema, other = (
        {"a": tacit.category(["x", "y"])},
        {"a": tacit.category(["x", "y"]), "w": tacit.integer(0, 5)},
    )
    budget = tacit.Pure(epsilon=9.0)
    made = make_plan(
        [tacit.query(tacit.count(by="a"), epsilon=1)], schema=Schema(schema), unit=tacit.rows(), budget=budget
    )
    for unit, declared in (
        (tacit.rows(), other), (tacit.rows(neighbours="replace-one"), schema),
        (tacit.people("id", at_most=1), schema),
    ):  # fmt: skip
        with tacit.Curator(table, protect=unit, schema=declared, budget=budget) as held:
            with pytest.raises(InvalidParameter, match="schema and unit"):
                held.release(made)
            assert held.ledger.charges() == ()
    with tacit.Curator(table, protect=tacit.rows(), schema=schema, budget=budget) as held:
        assert held.release(made)[0].table.shape == (2, 4)


def test_dates_in_a_statistic_have_one_text() -> None:
    assert datetime.date(2020, 3, 1).isoformat() in repr(
        tacit.histogram("d", [datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)]).to_dict()
    )
