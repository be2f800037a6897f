"""What may be typed as a price, and who pays what: exact numbers, typed errors, deltas that add up."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator.charging import Price, decimal, price
from tacit.errors import InvalidParameter, TacitError

SCHEMA = {
    "s": tacit.category(["a", "b"]),
    "t": tacit.category(),
    "x": tacit.number(0, 100),
    "n": tacit.integer(-3, 9),
    "f": tacit.flag(),
    "u": tacit.number(),
}
ASKED = {
    "count": tacit.count(by="s"),
    "keys": tacit.count(by="t", of="people"),
    "sums by keys": tacit.sum("x", by="t"),
    "mean": tacit.mean("x"),
    "variance": tacit.variance("n"),
    "ratio": tacit.ratio("x", "n"),
    "quantiles": tacit.quantiles("x", resolution=64),
    "margins": tacit.margins(["s", "f"]),
    "sparse": tacit.sparse_histogram(["s", "f"]),
    "clamping_bounds": tacit.clamping_bounds("u"),
}
GOOD = [
    (1, 1), (0.1, Fraction(1, 10)), (1e-6, Fraction(1, 10**6)), (Fraction(1, 3), Fraction(1, 3)),
    (Decimal("0.25"), Fraction(1, 4)), (np.float64(0.1), Fraction(1, 10)), (np.float32(0.1), Fraction(1, 10)),
    (np.int8(3), 3), (np.uint64(7), 7), (Fraction(10**60 + 1, 10**60), Fraction(10**60 + 1, 10**60)),
]  # fmt: skip
BAD = [
    0, -1, 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-320, 5e-324, 1e300, 10**400, 10**6000,
    Fraction(1, 10**400), Fraction(10**400 + 1, 10**400), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"),
    Decimal("1e-4000"), Decimal("1e4000"), Decimal("1e-400000000"), Decimal("1e400000000"), "0.5", "", b"1", True,
    False, np.bool_(True), 1j, [1], (0.5,), np.array(1.0), np.array([1.0]), np.float32("nan"), np.longdouble("inf"),
    np.datetime64("2020-01-01"), object(),
]  # fmt: skip


def curator(budget: Any = None, unit: Any = None) -> tacit.Curator:
    return tacit.Curator(
        pa.table({"id": [1], "s": ["a"], "t": ["k"], "x": [1.0], "n": [1], "f": [True], "u": [2.0]}),
        protect=unit or tacit.people("id", at_most=3),
        schema=SCHEMA,
        budget=budget or tacit.Approximate(epsilon=1e6, delta=0.5),
    )


@pytest.mark.parametrize(("typed", "meant"), GOOD, ids=lambda v: repr(v)[:24])
def test_numbers_are_what_was_typed(typed: Any, meant: Any) -> None:
    assert decimal("epsilon", typed) == meant
    assert type(decimal("epsilon", typed)) is Fraction


@pytest.mark.parametrize(
    "word", ["epsilon", "rho", "mu", "within", "delta", "confidence", "weight", "target"]
)
def test_what_is_no_number_or_out_of_reach_is_one_typed_sentence(word: str) -> None:
    for bad in BAD:
        paid = {"delta": {"epsilon": 1}, "confidence": {"within": 50}}.get(word, {}) | {word: bad}
        with pytest.raises(InvalidParameter) as told:
            tacit.query(tacit.count(), **paid)
        assert word in str(told.value), bad
        assert len(str(told.value)) < 400, bad


@pytest.mark.parametrize("word", ["yes", "no", "", 0, 1, 1.0, None, [], [False], np.int64(1), np.array(True)])
def test_flags_are_true_or_false_and_nothing_that_is_taken_for_one(word: Any) -> None:
    for name in ("consistent", "sampling"):
        with pytest.raises(InvalidParameter, match=name):
            tacit.query(tacit.count(), **{name: word})
    with pytest.raises(InvalidParameter, match="simultaneous"):
        price(within=50, simultaneous=word)
    with pytest.raises(InvalidParameter, match="simultaneous"):
        Price(within=Fraction(50), simultaneous=word)
    with pytest.raises(InvalidParameter, match="portable"):
        tacit.Curator(
            pa.table({"a": [1]}),
            protect=tacit.rows(),
            schema=SCHEMA,
            budget=tacit.Pure(epsilon=1),
            portable=word,
        )
    with curator() as held:
        if word is not None:
            with pytest.raises(InvalidParameter, match="consistent"):
                held.release(tacit.count(), epsilon=1, consistent=word)
        assert held.ledger.charges() == ()


def test_numpy_flags_are_flags() -> None:
    assert tacit.query(tacit.count(), consistent=np.True_).consistent is True
    assert price(within=50, simultaneous=np.False_).simultaneous is False


@pytest.mark.parametrize("rows", [0, -1, 1.5, "3", True, np.float64(3), 10**16])
def test_a_guess_at_rows_is_a_whole_number(rows: Any) -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        tacit.query(tacit.count(), rows=rows)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    "budget",
    [
        tacit.Approximate(epsilon=1e9, delta=0.9), tacit.Pure(epsilon=1e9), tacit.Concentrated(rho=1e9),
        tacit.GaussianDP(mu=1e9), tacit.Renyi(orders=(2.0, 8.0), epsilons=(1e9, 1e9)),
    ],
    ids=lambda b: b.kind,
)  # fmt: skip
def test_every_price_within_the_limits_is_answered_or_refused_by_name(name: str, budget: Any) -> None:
    """Extremes of every way to pay, for every statistic and budget: a plan, or an error of ours."""
    ways = [
        {word: value}
        for word in ("epsilon", "rho", "mu", "within")
        for value in (Fraction(1, 10**12), 1e-6, 1000, 10**9)
    ]
    ways += [{"epsilon": e, "delta": d} for e in (1e-3, 1000) for d in (1e-12, 0.9)]
    ways += [{"within": 50, "confidence": c, "simultaneous": True} for c in (0.001, 1 - 1e-12)]
    planned = 0
    with curator(budget) as held:
        for paid in ways:
            try:
                str(held.preview(ASKED[name], rows=100, **paid))
            except TacitError:
                continue
            planned += 1
    assert planned or budget.kind != "approximate"


def test_a_releases_own_delta_is_added_to_the_plans_and_takes_nothing_from_it() -> None:
    """Forty that share (1, 1e-6) beside one that pays (0.5, 1e-6) with all of its delta: (1.5, 2e-6), or better."""
    shared = [tacit.count(by="s", where=f"n > {i % 8}") for i in range(40)]
    own = tacit.query(tacit.count(by="t", of="people"), epsilon=0.5, delta=1e-6)
    with curator() as held:
        together = held.preview([*shared, own], epsilon=1, delta=1e-6)
        without = held.preview(shared, epsilon=1, delta=1e-6)
    for mixed, alone in zip(together.releases, without.releases, strict=False):
        assert mixed.assignment == alone.assignment
    charged = together.charged.exact
    assert charged["delta"] == Fraction(2, 10**6)
    assert without.charged.exact["epsilon"] <= charged["epsilon"] <= Fraction(3, 2)


def test_deltas_of_two_releases_add_up() -> None:
    """Each needs all of its delta to name keys: the charge is the sum, not the larger one."""
    asks = [
        tacit.query(tacit.count(by="t", of="people", where=where), epsilon=0.25, delta=delta)
        for where, delta in ((None, 1e-6), ("f", 3e-6))
    ]
    with curator() as held:
        plan = held.preview(asks)
        assert plan.charged.exact["delta"] == Fraction(4, 10**6)
        assert plan.charge.bound.delta >= 4e-6
        held.release(plan)
        (kept,) = held.ledger.charges()
    assert kept.guarantee.bound.delta >= 4e-6
    assert kept.exact["delta"] == Fraction(4, 10**6)
    assert kept.exact["epsilon"] <= Fraction(1, 2)


def test_a_price_that_nobody_would_pay_is_refused() -> None:
    with curator() as held:
        for asked in ([tacit.query(tacit.count(), epsilon=1)], tacit.query(tacit.count(), epsilon=1)):
            with pytest.raises(InvalidParameter, match="price of its own"):
                held.preview(asked, epsilon=2)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("steps", [1, 64, 128, 256, 8192])
def test_means_of_groups_of_people_have_a_price_under_every_budget(size: int, steps: int) -> None:
    unit = tacit.group_of(tacit.people("id", at_most=2, neighbours="replace-one"), size=size)
    schema = {"x": tacit.number(0, steps, spacing=1), "s": tacit.category(["a", "b"])}
    budgets = [
        tacit.Approximate(epsilon=9.0, delta=1e-3),
        tacit.Pure(epsilon=9.0),
        tacit.Concentrated(rho=9.0),
    ]
    for budget in [*budgets, tacit.GaussianDP(mu=9.0)]:
        held = tacit.Curator(pa.table({"id": [1]}), protect=unit, schema=schema, budget=budget)
        plan = held.preview([tacit.mean("x", by="s"), tacit.mean("x")], epsilon=0.5)
        assert plan.charged.bound is not None
        if isinstance(budget, tacit.Approximate):
            held.preview([tacit.mean("x", by="s"), tacit.mean("x")], epsilon=0.5, delta=1e-6)


def test_names_that_would_be_one_file_are_refused_before_anything_is_spent() -> None:
    with curator() as held:
        for other in ("a-b", "A b", "a b"):
            asks = [tacit.query(tacit.count(), name="a b"), tacit.query(tacit.mean("x"), name=other)]
            with pytest.raises(InvalidParameter, match="name"):
                held.preview(asks, epsilon=1)
        # A name that is made keeps out of the way of one that is given.
        given = tacit.query(tacit.mean("x"), name="COUNT")
        names = [r.name for r in held.preview([tacit.count(), given], epsilon=1).releases]
        assert len({n.casefold() for n in names}) == 2


def test_an_ask_is_valid_from_birth() -> None:
    one = tacit.query(tacit.count())
    for changes in (
        {"price": 1.0}, {"public": 5}, {"weight": 1}, {"weight": Fraction(0)}, {"confidence": 0.95},
        {"target": -1}, {"rows": "many"}, {"name": 5}, {"statistic": "count"},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            replace(one, **changes)


def test_a_plan_comes_with_its_price_and_takes_no_other() -> None:
    import pandas as pd

    with tacit.Curator(
        pd.DataFrame({"state": ["a", "b"]}),
        protect=tacit.rows(),
        schema={"state": tacit.category(["a", "b"])},
        budget=tacit.Approximate(epsilon=1.0, delta=1e-6),
    ) as held:
        plan = held.preview(tacit.count(by="state"), epsilon=0.1)
        assert held.preview(plan) is plan
        for more in ({"epsilon": 0.2}, {"rho": 0.1}, {"rows": 5}):
            with pytest.raises(InvalidParameter, match="be alone"):
                held.preview(plan, **more)
        for more in ({"epsilon": 0.2}, {"consistent": True}):
            with pytest.raises(InvalidParameter, match="be alone"):
                held.release(plan, **more)
        assert float(held.spent.epsilon) == 0


TYPED = (0.3, 0.7, 0.1, 0.01, 1 / 3, 0.9, 2)


@pytest.mark.parametrize("word", ["mu", "rho"])
def test_a_budget_that_is_the_price_is_enough(word: str) -> None:
    """For noise of every kind, in one release and divided among several; and nothing is left over to spend twice.

    A sum of at most 9 at mu = 9/10 has a noise_std of exactly 10: its mu is the price to the last digit.
    """
    kinds = {"mu": tacit.GaussianDP, "rho": tacit.Concentrated}
    asked = [tacit.mean("x"), tacit.sum("n"), tacit.count(by="s"), tacit.margins(["s", "f"])]
    unit = tacit.rows()
    for number in (0.3, 0.9):
        for statistic in asked:
            with curator(kinds[word](**{word: number}), unit) as one:
                one.release(statistic, **{word: number})
    with curator(kinds[word](**{word: 0.3}), unit) as several:
        several.release([tacit.query(s) for s in asked], **{word: 0.3})
        with pytest.raises(tacit.BudgetExceeded):
            several.release(tacit.count(), **{word: 0.0003})


def test_a_charge_in_mu_is_the_noises_own_and_not_below() -> None:
    """mu^2 = steps / noise_std^2 by hand, held against what the ledger adds up."""
    for number in TYPED:
        with curator(tacit.GaussianDP(mu=9), tacit.rows()) as one:
            plan = one.preview(tacit.sum("n"), mu=number)
        (noise,) = plan.releases[0].assignment.mechanisms
        true = Fraction(81) / Fraction(noise.noise_std) ** 2
        kept = plan.charged.exact["mu"] ** 2
        assert true <= kept <= true * (1 + Fraction(1, 10**20))
        assert plan.charged.bound.mu >= plan.charged.exact["mu"]
        assert kept <= decimal("mu", number) ** 2
