"""Every assignment's noise is that of the question's own sensitivity, for every unit, at every kind of price.

What a mechanism claims is about the sensitivity that it was given. Here it is compared with that of the question.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import tacit.statistics as ask
from tacit import errors
from tacit.curator.assignments import assign, groups_of, mu_squared_within, pure_within
from tacit.curator.charging import Price, decimal
from tacit.curator.planning import choose, divided
from tacit.curator.selected import _candidates, assign_keys, assign_ranks, assign_sparse
from tacit.guarantees import Neighbours, gaussian_budget, group_of, people, rows
from tacit.mechanisms import Laplace, RoundedGaussian
from tacit.sources import Schema, category, flag, integer, number

SCHEMA = Schema(
    {
        "state": category(["a", "b", "c"]),
        "full": category(["a", "b"], missing="a"),
        "open": category(),
        "age": integer(0, 99),
        "whole": integer(0, 99, missing=0),
        "cost": number(-1, 3, spacing=0.25),
        "sick": flag(),
    }
)
ADDED, REPLACED = rows(), rows(neighbours="replace-one")
MANY = people("who", at_most=3, groups=2)
MANY_REPLACED = people("who", at_most=3, groups=2, neighbours="replace-one")
UNITS = {
    "a row": ADDED, "a row replaced": REPLACED, "a person": MANY, "a person replaced": MANY_REPLACED,
    "two rows": group_of(ADDED, size=2), "two people replaced": group_of(MANY_REPLACED, size=2),
}  # fmt: skip
ASKED: dict[str, Callable[[], Any]] = {
    "count": ask.count, "count by state": lambda: ask.count(by="state"), "sum": lambda: ask.sum("cost"),
    "mean": lambda: ask.mean("age", by="state"), "share": lambda: ask.proportion("sick"),
    "variance": lambda: ask.variance("age"), "ratio": lambda: ask.ratio("cost", "age"),
    "margins": lambda: ask.margins(["state", "age"]), "moments": lambda: ask.regression_moments(["age"], "cost"),
    "ranges": lambda: ask.ranges("age", 4),
}  # fmt: skip
PRICES = {
    "epsilon": Price(epsilon=Fraction(1, 2)),
    "epsilon and delta": Price(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6)),
    "rho": Price(rho=Fraction(1, 50)),
    "mu": Price(mu=Fraction(1, 5)),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ASKED)
def test_independent_noise_is_for_the_move_of_the_question(name: str, unit: str) -> None:
    """The vectors hold every part that moves. Each has noise for its own move, and together they keep the price."""
    question = ASKED[name]().on(SCHEMA, UNITS[unit])
    moving = {p.name for p in question.parts if not question.sensitivities[p.name].none and not p.exact}
    groups = groups_of(question)
    assert {n for g in groups for n in g[0]} == moving
    assert sum(len(g[0]) for g in groups) == len(moving)
    for price in PRICES.values():
        made = assign(question, price)
        assert made.noised == moving
        for applied, (parts, l1, l2_squared) in zip(made.noise, groups, strict=True):
            own = question.sensitivity if len(parts) > 1 else question.sensitivities[parts[0]]
            joint = len(groups) == 1
            assert l1 >= (question.sensitivity.l1 if joint else own.l1)
            assert l2_squared >= (question.sensitivity.l2_squared if joint else own.l2_squared)
            mechanism: Any = applied.mechanism
            if isinstance(mechanism, Laplace):
                assert mechanism.sensitivity.steps(Fraction(1)) == l1
            else:
                assert isinstance(mechanism, RoundedGaussian)
                assert mechanism.sensitivity.squared_steps(Fraction(1)) == l2_squared
        assert not moving or keeps(made, price)


def keeps(made: Any, price: Price) -> bool:
    """The mechanisms' own claims, added up, are within the price, and hardly below it."""
    if price.kind in ("pure", "approximate") and made.pure() is not None:
        return bool(made.pure() == price.epsilon)
    if price.kind == "concentrated":
        return bool(price.rho * Fraction(9, 10) < made.concentrated() <= price.rho)
    limit = price.mu**2 if price.mu else Fraction(gaussian_budget(epsilon=0.5, delta=1e-6).mu) ** 2
    return bool(limit * Fraction(99, 100) < made.mu_squared() <= limit)


def test_prices_are_kept_by_every_way_to_pay_them() -> None:
    for price in (PRICES["rho"], Price(rho=Fraction(3))):
        epsilon = pure_within(price)
        assert epsilon is not None
        cost = Laplace.for_target(epsilon=epsilon, sensitivity=_l1(1)).exact_rho
        assert cost is not None
        assert cost <= price.rho < cost * Fraction(1001, 1000)
    for share in (Fraction(1), Fraction(1, 3)):
        assert pure_within(PRICES["epsilon"], share) == share / 2
    assert mu_squared_within(PRICES["rho"]) == Fraction(1, 25)
    assert mu_squared_within(PRICES["mu"]) == Fraction(1, 25)
    assert mu_squared_within(PRICES["epsilon"]) is None


def _l1(steps: int) -> Any:
    from tacit.mechanisms import L1

    return L1(steps)


def test_the_number_of_rows_under_quantiles_is_public_only_if_nobody_can_move_it() -> None:
    """Rows are replaced, all of them count, each has a value, and there are no groups. One step aside it has noise."""

    def public(unit: Any, column: str = "whole", **more: Any) -> bool:
        question = ask.median(column, **more).on(SCHEMA, unit)
        return bool(assign_ranks(question, PRICES["epsilon"]).mechanism.total_is_public)

    assert public(REPLACED)
    assert public(group_of(REPLACED, size=2))
    assert not public(ADDED)
    assert not public(REPLACED, "age")
    assert not public(REPLACED, by="full")
    assert not public(REPLACED, where="sick")
    assert not public(people("who", at_most=1, neighbours="replace-one"))
    assert not public(MANY)


@pytest.mark.parametrize("unit", UNITS)
def test_ranks_are_for_the_move_of_the_question(unit: str) -> None:
    question = ask.median("age", by="state").on(SCHEMA, UNITS[unit])
    tree: Any = assign_ranks(question, PRICES["epsilon"]).mechanism
    assert tree.l1 == question.sensitivity.l1
    assert tree.exact_epsilon == Fraction(1, 2)
    normal: Any = assign_ranks(question, Price(rho=Fraction(1, 1000))).mechanism
    assert normal.exact_rho <= Fraction(1, 1000)
    assert getattr(normal, "l2_squared", question.sensitivity.l2_squared) == question.sensitivity.l2_squared


@pytest.mark.parametrize(("unit", "keys", "replaced", "group"), [
    ("a row", 1, False, 1), ("a row replaced", 1, True, 1), ("a person", 2, False, 1),
    ("a person replaced", 2, True, 1), ("two rows", 1, False, 2), ("two people replaced", 2, True, 2),
])  # fmt: skip
def test_unknown_keys_are_selected_for_what_a_unit_brings(
    unit: str, keys: int, replaced: bool, group: int
) -> None:
    price = Price(epsilon=Fraction(1), delta=Fraction(1, 10**5))
    for asked in (ask.count(by="open"), ask.sum("cost", by="open")):
        made = assign_keys(asked.on(SCHEMA, UNITS[unit]), price)
        chosen = made.selection
        assert (chosen.keys, chosen.replaced, chosen.group) == (keys, replaced, group)
        assert made.delta == price.delta
        if made.noise:
            assert chosen.bound.epsilon <= 0.5 * (1 + 1e-9)
            assert made.noise[0].mechanism.bound.epsilon_at(1e-6) <= 0.5 + 1e-9
    with pytest.raises(errors.InvalidParameter, match="keys are not known"):
        assign_keys(ask.count(by="open").on(SCHEMA, UNITS[unit]), Price(epsilon=Fraction(1)))


def test_an_epsilon_above_256_selects_no_keys() -> None:
    question = ask.count(by="open").on(SCHEMA, ADDED)
    sparse = ask.sparse_histogram(["age"]).on(SCHEMA, ADDED)
    for epsilon, refused in ((256, False), (257, True)):
        price = Price(epsilon=Fraction(epsilon), delta=Fraction(1, 10**5))
        for call in (lambda p=price: assign_keys(question, p), lambda p=price: assign_sparse(sparse, p)):
            if refused:
                with pytest.raises(errors.InvalidParameter, match="at most 256"):
                    call()
            else:
                call()


@pytest.mark.parametrize("of", ["rows", "people"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_sparse_histogram_has_noise_for_what_a_unit_moves(unit: str, of: Any) -> None:
    if of == "people" and "row" in unit:
        pytest.skip("rows are no people")
    question = ask.sparse_histogram(["state", "age"], of=of).on(SCHEMA, UNITS[unit])
    price = Price(epsilon=Fraction(1), delta=Fraction(1, 10**5))
    for name, mechanism in _candidates(question, price, Fraction(1)).items():
        noise: Any = mechanism.noise
        if isinstance(noise, Laplace):
            assert noise.sensitivity.steps(Fraction(1)) == question.sensitivity.l1, name
        else:
            assert noise.sensitivity.squared_steps(Fraction(1)) == question.sensitivity.l2_squared, name
        if name == "noise on occupied cells alone":
            assert mechanism.unit == question.contribution  # type: ignore[union-attr]


def test_staircase_noise_is_for_one_number_of_many_steps() -> None:
    """A sum of 16 steps at epsilon 5: whatever is chosen, its sensitivity is that of the sum."""
    for unit, steps in ((ADDED, 12), (REPLACED, 16), (MANY, 36)):
        question = ask.sum("cost").on(SCHEMA, unit)
        made = choose(question, Price(epsilon=Fraction(5)))
        mechanism: Any = made.noise[0].mechanism
        assert mechanism.sensitivity.steps(Fraction(1)) == steps == question.sensitivity.l1
        assert made.pure() == 5


def test_parts_of_a_price_are_no_more_than_the_whole() -> None:
    shares = [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]
    for price in (*PRICES.values(), Price(mu=Fraction(1, 3))):
        parts = [price.part(s) for s in shares]
        for name in ("epsilon", "delta", "rho"):
            whole = getattr(price, name)
            if whole is not None:
                assert sum(getattr(p, name) for p in parts) == whole
        if price.mu is not None:
            total = sum(p.mu**2 for p in parts)  # type: ignore[operator]
            assert price.mu**2 * Fraction(999_999, 10**6) < total <= price.mu**2


def test_releases_divide_an_epsilon_and_a_delta_without_loss_or_gain() -> None:
    """Counts, quantiles and unknown keys with unequal weights: their parts add up to the whole by the theorems."""
    from tacit.curator.request import Query

    asked = [
        ask.count(by="state"),
        ask.median("age"),
        ask.count(by="open"),
        ask.sum("cost", by="open"),
        ask.mean("age"),
    ]
    weights = [Fraction(1), Fraction(2), Fraction(3), Fraction(1), Fraction(5)]
    asks = [
        Query(name=str(i), statistic=s, weight=w) for i, (s, w) in enumerate(zip(asked, weights, strict=True))
    ]
    questions = [s.on(SCHEMA, MANY) for s in asked]
    for total in (Price(epsilon=Fraction(1), delta=Fraction(1, 10**6)), PRICES["epsilon"]):
        some = [0, 1, 4] if total.delta is None else range(5)
        parts = divided([asks[i] for i in some], [questions[i] for i in some], total)
        pure = [p for p in parts if p.epsilon is not None]
        normal = [p for p in parts if p.mu is not None]
        epsilon = sum((p.epsilon for p in pure), Fraction(0))  # type: ignore[misc]
        delta = sum((p.delta or Fraction(0) for p in parts), Fraction(0))
        if not normal:
            assert epsilon == total.epsilon
            assert delta == (total.delta or 0)
            continue
        left = (total.epsilon or 0) - epsilon, (total.delta or 0) - delta
        squares = sum(p.mu**2 for p in normal)  # type: ignore[operator]
        most = Fraction(gaussian_budget(epsilon=float(left[0]), delta=float(left[1])).mu) ** 2
        assert most * Fraction(99, 100) < squares <= most * (1 + Fraction(1, 10**9))


BAD_NUMBERS: list[tuple[str, Any, Any]] = [
    ("epsilon", Fraction(1, 10**12), Fraction(1, 10**12) / 2), ("epsilon", 10**9, 10**9 + 1),
    ("delta", Decimal("1e-100"), Decimal("9e-101")), ("delta", 0.999, 1), ("confidence", 0.001, 0.0009),
    ("confidence", 0.999, 1), ("random_data", 1e-12, 9e-13), ("mu", 1, 0), ("rho", 1, -1), ("epsilon", 1, True),
    ("epsilon", 1, float("nan")), ("epsilon", 1, float("inf")), ("epsilon", 1, "1"),
    ("epsilon", Fraction(1, 10**3), Fraction(10**120, 10**120 + 1)), ("epsilon", 1, Decimal("1e-200")),
]  # fmt: skip


@pytest.mark.parametrize(("parameter", "good", "bad"), BAD_NUMBERS)
def test_a_typed_number_is_between_its_limits(parameter: str, good: Any, bad: Any) -> None:
    assert decimal(parameter, good) == Fraction(str(good)) if not isinstance(good, Fraction) else good
    with pytest.raises(errors.InvalidParameter):
        decimal(parameter, bad)


def test_neighbours_are_those_of_the_unit() -> None:
    assert REPLACED.neighbours is Neighbours.REPLACE_ONE
    assert ADDED.neighbours is Neighbours.ADD_OR_REMOVE
