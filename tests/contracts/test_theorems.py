"""Every theorem that can stand in a certificate, a price or a law is registered, and so has its page.

Two ways to find them: what the source can say, read without running it, and what the curator does say when every
kind of statistic is asked at every kind of price, for every kind of unit and budget. The second is within the first.
(That each registered theorem has a page with all its parts is for test_docs.)
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tacit
import tacit.risk
from support.code import ROOMS, SRC, named
from support.parameter_examples import MECHANISMS
from support.theorems import named_in
from tacit.curator.assignments import Assignment
from tacit.curator.charging import Price, charge
from tacit.curator.functions import decision_tree, regression_by_test
from tacit.curator.planning import Plan, choose, make_plan
from tacit.errors import InvalidInput, Refused
from tacit.guarantees import THEOREMS, Renyi
from tacit.mechanisms import Mechanism
from tacit.risk.minimax import PROBLEMS, lower_bounds
from tacit.sources import Schema, category, flag, integer, number

ROOT = Path(__file__).parents[2]
CURATOR = sorted(
    [
        *(SRC / "curator").rglob("*.py"),
        *(p for p in (SRC / "mechanisms").glob("*.py") if "def theorems(" in p.read_text()),
        SRC / "guarantees" / "running_sum.py",
    ]
)
"""What the curator says, and what its mechanisms and sums say for it."""

WIDE = [f"answer {i}" for i in range(40)]
SCHEMA = Schema(
    {
        **dict.fromkeys(WIDE, flag()),
        "state": category(["a", "b"]),
        "age": integer(0, 9),
        "long": integer(0, 639),
        "cost": number(0, 1),
        "sick": flag(),
        "town": category(),
        "free": number(),
    }
)
STATISTICS = {
    "count": tacit.count(by="state"),
    "histogram": tacit.histogram("age", 3),
    "margins": tacit.margins(["state", "sick"]),
    "eight margins": tacit.margins(WIDE[:8]),
    "hierarchy": tacit.hierarchy(["state", "age"]),
    "ranges": tacit.ranges(
        "long", 640, at=[(a, b) for a in range(0, 640, 80) for b in range(a + 79, 640, 80)]
    ),
    "sum": tacit.sum("cost"),
    "geography": tacit.statistics.geography(["state"], {"state": ["a", "b"]}, by="sick"),
    "table": tacit.statistics.table("state", "sick", importance={"cells": 2, "total": 1}),
    "survival": tacit.statistics.survival("cost", "sick", 3),
    "regression": tacit.statistics.regression("cost", on=["age", "state"]),
    "mean": tacit.mean("cost", by="state"),
    "variance": tacit.variance("age"),
    "deviation": tacit.standard_deviation("age"),
    "proportion": tacit.proportion("sick"),
    "ratio": tacit.ratio("cost", "age"),
    "quantiles": tacit.quantiles("age", at=[0.5]),
    "fine quantiles": tacit.quantiles("cost", at=[0.5]),
    "clamping_bounds": tacit.clamping_bounds("free"),
    "sparse": tacit.sparse_histogram(["state", "age", "sick"]),
    "very sparse": tacit.sparse_histogram(WIDE),
    "unknown keys": tacit.count(by="town"),
    "mean of unknown keys": tacit.mean("cost", by="town"),
    "density": tacit.density("cost", size=100),
    "pure density": tacit.density("cost", size=100, guarantee="pure", order=3),
    "pure density, one frequency": tacit.density("cost", size=100, guarantee="pure", order=1),
    "pure density, two frequencies": tacit.density("cost", size=100, guarantee="pure", order=2),
    "classifier": tacit.classifier("cost", "state", size=100, pairs=4),
    "synthetic_table": tacit.synthesis.synthetic_table(["state", "sick"], rounds=3),
    "tree": decision_tree(["cost", "age"], "state", size=10**6, depth=2),
    "test": regression_by_test(["age"], "cost", size=10**6, spread=0.2),
}
UNITS = [
    tacit.rows(),
    tacit.rows(neighbours="replace-one"),
    tacit.people("id", at_most=40),
    tacit.people("id", at_most=4, groups=1, neighbours="replace-one"),
]
PRICES = [
    Price(epsilon=Fraction(1)),
    Price(epsilon=Fraction(3)),
    Price(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
    Price(epsilon=Fraction(1, 100), delta=Fraction(1, 1000)),
    Price(rho=Fraction(1, 10)),
    Price(mu=Fraction(1, 2)),
    Price(within=Fraction(100)),
    Price(within=Fraction(100), delta=Fraction(1, 10**6)),
]
BUDGETS = [
    tacit.Pure(epsilon=9.0),
    tacit.Approximate(epsilon=9.0, delta=1e-3),
    tacit.Concentrated(rho=9.0),
    tacit.GaussianDP(mu=9.0),
    Renyi(orders=(2.0, 8.0), epsilons=(9.0, 9.0)),
]


def assignments() -> list[tuple[tacit.Unit, Assignment]]:
    """Every assignment there is: statistics, units and prices, where they go together."""
    found = []
    for statistic, unit in itertools.product(STATISTICS.values(), UNITS):
        with suppress(InvalidInput, Refused):
            question = statistic.on(SCHEMA, unit)
            for price in PRICES:
                with suppress(InvalidInput, Refused):
                    found.append((unit, choose(question, price)))
    plans = [*on_random_data(), *exactly()]
    return found + [(p.unit, r.assignment) for p in plans for r in p.releases]


def exactly() -> list[Plan]:
    """Plans with one exact answer: by a known law, by a rectangle, a count, and truncated histograms."""
    law = {"unknown_rows": 500, "rows": "uniform(0, 100)"}
    whole = Schema({
        "age": tacit.integer(0, 100, missing=0), "sick": tacit.flag(missing=False),
        "region": tacit.category(["n", "s"]),
    })  # fmt: skip
    wanted = [
        (tacit.sum("age"), law, UNITS[1]),
        (tacit.mean("age"), {**law, "assume": "rectangle"}, UNITS[1]),
        (tacit.count(where="sick"), {"unknown_rows": 500, "probability": [0.2, 0.8]}, UNITS[1]),
        (tacit.count(by="region"), {"sampling": "binomial", "rate": 0.1}, UNITS[0]),
        (tacit.count(by="region"), {"sampling": "fixed", "n": 100_000}, UNITS[1]),
    ]
    return [
        make_plan(
            [tacit.query(asked)], schema=whole, unit=unit, budget=BUDGETS[1], given=given,
            total=Price(epsilon=Fraction(1), delta=Fraction(1, 10**4)),
        )
        for asked, given, unit in wanted
    ]  # fmt: skip


def on_random_data() -> list[Plan]:
    """Plans given random data: a table, and a count of one cell."""
    asks = [tacit.query(STATISTICS["histogram"]), tacit.query(tacit.count(where="sick"))]
    given = {"random_data": Fraction(1, 10), "rows": 1000}
    return [
        make_plan(asks, schema=SCHEMA, unit=unit, budget=BUDGETS[0], total=PRICES[0], given=given)
        for unit in UNITS[:2]
    ]


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What certificates can rest on, as assignments and charges say it, and who says it."""
    out: dict[str, str] = {}
    every = assignments()
    for _, one in every:
        out |= dict.fromkeys(one.theorems, type(one).__name__)
    for plan in on_random_data():
        out |= dict.fromkeys(plan.theorems, "a plan")
    # What a charge rests on depends on the assignment's kind alone.
    kinds = {(u.neighbours, type(t), t.theorems, t.price.kind): (u, t) for u, t in every}
    for unit, one in kinds.values():
        for budget, times in itertools.product(BUDGETS, (1, 3)):
            try:
                paid = charge([one] * times, budget, neighbours=unit.neighbours)
            except Refused:
                continue
            out[paid.theorem] = "charge"
    assert {type(one).__name__ for _, one in every} == names_below(Assignment), (
        "an assignment no question gets"
    )
    return out


def names_below(kind: type) -> set[str]:
    """A class and all that inherit from it, by name: a class with slots is listed twice.

    Assignments of several holders are not of this walk: tests/parties asks for each of them. Nor are those that tests
    define for themselves.
    """
    ours = [one for one in kind.__subclasses__() if one.__module__.startswith("tacit.")]
    below = [one for one in ours if not one.__module__.startswith("tacit.parties")]
    return {kind.__name__}.union(*map(names_below, below))


@pytest.mark.parametrize("room", ROOMS)
def test_every_theorem_that_the_source_names_is_registered(room: str) -> None:
    found = {named(path): set(named_in(path)) - set(THEOREMS) for path in ROOMS[room]}
    assert not {file: unknown for file, unknown in found.items() if unknown}


def test_every_theorem_that_a_certificate_can_rest_on_is_registered_and_has_its_page(
    said: dict[str, str],
) -> None:
    for name, who in said.items():
        assert name in THEOREMS, f"{who} rests on {name}, which is not registered"
        assert (ROOT / "docs" / "theory" / f"{name}.md").exists(), f"{who} rests on {name}, which has no page"


def test_what_is_said_was_found_in_the_source(said: dict[str, str]) -> None:
    """Else the reading of the source has a hole."""
    found = {name for path in CURATOR for name in named_in(path)}
    assert set(said) <= found, set(said) - found


def test_every_theorem_of_the_assignments_is_reached(said: dict[str, str]) -> None:
    """Else the walk has a hole: whatever an assignment or a charge can say, some question makes it say."""
    can = {name: path.name for path in CURATOR for name, line in named_in(path).items() if line}
    added_by_the_certificate = {
        "agreeing-tables",
        "contribution-polytopes",
        "contribution-bounding",
        "post-processing",
    }
    assert set(can) - added_by_the_certificate - set(said) == set()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_lower_bounds_are_named_by_their_theorems(problem: str) -> None:
    for neighbours in ("replace-one", "add-or-remove"):
        relation = tacit.rows(neighbours=neighbours).neighbours
        for bound in lower_bounds(
            problem, n=60, epsilon=0.5, cells=6, occupied=3, attributes=2, neighbours=relation
        ):
            assert bound.name in THEOREMS


def test_the_reading_of_the_source_notices(tmp_path: Path) -> None:
    text = '''
"""A module (theorems `in-words`, `in-more-words`)."""
from x import law

@law("a-law-of-its-own", operation="o")
@law("another", operation="o", rests_on="rested-on")
def f(): ...

class A:
    theorem: str = "by-default"

    @property
    def theorems(self):
        """Not this: `nor-this`."""
        chosen = "first" if self.kind == "not-compared" else "second"
        return (chosen, "third")

theorems["set"] = None
theorems.append("appended")
made = A(theorem="given" if made else "given-otherwise", other="not-me")
'''
    (tmp_path / "m.py").write_text(text)
    assert set(named_in(tmp_path / "m.py")) == {
        "in-words", "in-more-words", "a-law-of-its-own", "rested-on", "by-default", "first", "second", "third",
        "set", "appended", "given", "given-otherwise",
    }  # fmt: skip


# --- mechanisms ----------------------------------------------------------------------------------------
def concrete_mechanisms() -> list[type[Mechanism]]:
    """Every mechanism of the library that can be made, exported or not."""
    for room in (tacit.mechanisms, tacit.risk):
        for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(found.name)
    seen: dict[str, type[Mechanism]] = {}
    waiting: list[Any] = [Mechanism]
    while waiting:
        waiting += (kinds := waiting.pop().__subclasses__())
        # A data class with slots is made twice: the module has the one that counts.
        seen |= {
            kind.__qualname__: kind
            for kind in kinds
            if kind.__module__.startswith("tacit.")
            and getattr(sys.modules[kind.__module__], kind.__name__) is kind
        }
    return [
        kind
        for name, kind in sorted(seen.items())
        if not inspect.isabstract(kind) and not name.startswith("_")
    ]


def test_every_mechanism_names_the_theorems_of_its_bound() -> None:
    kinds = concrete_mechanisms()
    assert len(kinds) > 30
    own = vars(Mechanism)["theorems"]
    assert [k.__name__ for k in kinds if inspect.getattr_static(k, "theorems") is own] == []
    exported = [k for k in kinds if k.__name__ in tacit.mechanisms.__all__]
    assert len(exported) > 25
    for kind in exported:
        made = kind(**MECHANISMS[kind.__name__])
        assert made.theorems, f"{kind.__name__} names no theorem"
        assert set(made.theorems) <= set(THEOREMS), kind.__name__
