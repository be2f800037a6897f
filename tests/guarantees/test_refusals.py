"""Where there is no theorem the algebra says no: each refusal is reached, and what lies just inside is answered."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import errors
from tacit.exact.checks import how_many, listed, numbers
from tacit.guarantees import (
    Always,
    Approximate,
    Bound,
    BoundedAdversary,
    Concentrated,
    Coupled,
    GaussianDP,
    Guarantee,
    Pointwise,
    Priors,
    Profile,
    Pure,
    RandomData,
    Renyi,
    group_of,
    people,
    rows,
)
from tacit.guarantees.conditions import Condition
from tacit.guarantees.guarantee import from_record, to_record
from tacit.guarantees.laws import conditions as under
from tacit.guarantees.laws import conditions as worlds
from tacit.guarantees.laws.amplify import Sampling, amplify_for
from tacit.guarantees.laws.compose import compose_bounds, parts_touched
from tacit.guarantees.laws.convert import path
from tacit.guarantees.laws.registry import law
from tacit.guarantees.theorems import register
from tacit.guarantees.units import steps

PURE, STATED = Pure(epsilon=1), Approximate(epsilon=1, delta=1e-6)
FAILING = Approximate(epsilon=1, delta=0.6)
SWAP = rows(neighbours="replace-one")
PAIR = Coupled(priv="a row", alt="the others", neighbours="replace-one")
IND: dict[str, Any] = {"assumption": "AES", "advantage": 1e-9, "definition": "ind"}
SIM: dict[str, Any] = {"assumption": "AES", "advantage": 1e-9}
PRIOR = Priors(family="independent rows", unknown_rows=3)


def given(bound: Any = PURE, condition: Any = None, unit: Any = None) -> Guarantee:
    return Guarantee(bound=bound, unit=unit or rows(), condition=condition or Always())


def written(**changed: Any) -> dict[str, Any]:
    return to_record(given()) | changed


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a composition of nothing": (lambda: compose_bounds([]), "empty"),
    "parallel releases of nothing": (lambda: tacit.parallel(), "empty"),
    "disjoint rows of bounds": (
        lambda: tacit.compose(PURE, PURE, assume="disjoint-independent-rows"), "guarantees under Priors",
    ),
    "parallel releases under random data": (
        lambda: tacit.parallel(given(condition=RandomData(gamma=0.1))), "about every data set",
    ),
    "parallel releases of coupled worlds": (lambda: parts_touched(PAIR, fixed=True), "span the parts"),
    "more times than anybody means": (lambda: how_many("times", 10**400), "at most"),
    "an array without members": (lambda: listed("orders", np.array(3.0)), "be a list"),
    "numbers with a mask": (lambda: numbers("epsilon", np.ma.masked_array([1.0], mask=[True])), "without a mask"),
    "lists of several lengths": (lambda: numbers("epsilon", [[1.0], [1.0, 2.0]]), "without a mask"),
    "the divergence of a bound with a delta": (lambda: STATED.renyi(2.0), "epsilon"),
    "losses without end": (lambda: Profile.from_losses([math.inf], [1.0]), "be finite"),
    "losses that no two laws have": (lambda: Profile.from_losses([-1.0], [1.0]), "at most 1"),
    "a bare condition": (lambda: str(Condition()), "bare condition"),
    "a sample under a condition": (
        lambda: given(condition=RandomData(gamma=0.1)).subsampled(rate=0.1, scheme="poisson"), "about every data set",
    ),
    "a sample of a divergence below order 2": (
        lambda: tacit.subsample(Renyi(orders=(1.5,), epsilons=(1.0,)), rate=0.1, scheme="poisson"), "integer orders",
    ),
    "a sample of coupled worlds": (
        lambda: amplify_for(PURE, PAIR, rate=0.1, scheme=Sampling.POISSON), "units that are drawn",
    ),
    "a sample of public size where rows come and go": (
        lambda: amplify_for(PURE, rows(), rate=0.1, scheme=Sampling.WITHOUT_REPLACEMENT), "assumes a public size",
    ),
    "a sample under zero-concentrated privacy": (
        lambda: tacit.subsample(Concentrated(rho=0.1), rate=0.1, scheme="poisson"), "not preserved",
    ),
    "deltas that add up to 1": (lambda: tacit.compose(FAILING, FAILING), "nothing is promised"),
    "a theorem of deltas for curves": (
        lambda: compose_bounds([(GaussianDP(mu=1), 2)], law="optimal"), "about \\(epsilon, delta\\) bounds",
    ),
    "two assumptions about adversaries": (
        lambda: tacit.compose(
            given(condition=BoundedAdversary(**SIM)),
            given(condition=BoundedAdversary(assumption="RSA", advantage=1e-9)),
        ), "no single named assumption",
    ),
    "two definitions of adversaries": (
        lambda: tacit.compose(given(condition=BoundedAdversary(**SIM)), given(condition=BoundedAdversary(**IND))),
        "definitions differ",
    ),
    "adaptive releases under IND": (
        lambda: tacit.compose(given(condition=BoundedAdversary(**IND)), given(condition=BoundedAdversary(**IND))),
        "fixed in advance",
    ),
    "a group with a delta under IND": (
        lambda: under.group_bounded(STATED, BoundedAdversary(**IND), 2), "pure bounds only",
    ),
    "a stand-in with a delta": (lambda: under.sim_to_ind(BoundedAdversary(**SIM), STATED), "needs a pure epsilon"),
    "the same rows as disjoint ones": (
        lambda: under.compose_disjoint([(given(condition=PRIOR), 2)]), "disjoint from themselves",
    ),
    "three releases under priors": (
        lambda: under.compose_coupled([(given(condition=PRIOR), 3)]), "the theorem is about two",
    ),
    "a release outside of priors": (
        lambda: under.compose_coupled([(given(condition=PRIOR), 1), (given(), 1)]), "classes of priors",
    ),
    "two classes of priors": (
        lambda: under.compose_coupled(
            [(given(condition=PRIOR), 1), (given(condition=Priors(family="independent rows", unknown_rows=4)), 1)]
        ), "one class of priors",
    ),
    "deltas of 1 under priors": (
        lambda: under.compose_coupled([(given(bound=FAILING, condition=PRIOR), 2)]), "nothing is promised",
    ),
    "a curve under priors": (
        lambda: under.compose_coupled([(given(bound=GaussianDP(mu=1), condition=PRIOR), 2)]), "epsilon, delta",
    ),
    "a kind without a way": (lambda: path(Renyi, Bound), "says less than the second"),
    "a loss that no probability bounds": (
        lambda: tacit.convert(FAILING, Pointwise, delta=0.1), "no finite loss",
    ),
    "an epsilon that no delta allows": (
        lambda: tacit.convert(FAILING, Approximate, delta=0.1), "no finite epsilon",
    ),
    "orders for what has none": (lambda: tacit.convert(PURE, Pure, delta=0.1), "left out"),
    "a pure epsilon of Gaussian noise": (lambda: tacit.convert(GaussianDP(mu=1), Pure), "no pure epsilon"),
    "posteriors with a delta of 1": (
        lambda: worlds.posterior_coupled(epsilon=1, delta=0.1, family=9), "delta would reach 1",
    ),
    "two values with a delta of 1": (lambda: worlds.pair_of_values(epsilon=1, delta=0.5), "delta would reach 1"),
    "the printed form for a large epsilon": (
        lambda: worlds.posterior_coupled_printed(epsilon=1.2, delta=1e-9), "e\\^epsilon <= 3",
    ),
    "the printed form for a large delta": (
        lambda: worlds.posterior_coupled_printed(epsilon=0.1, delta=0.01), "e\\^epsilon <= 3",
    ),
    "posteriors no wider than outputs": (
        lambda: worlds.posterior_pufferfish(epsilon=1, delta=1e-6, wider=1.0), "must be above",
    ),
    "beliefs half apart": (lambda: worlds.semantic_to_dp(shift=0.5), "more than 1/2 away"),
    "a group whose delta reaches 1": (lambda: tacit.group(FAILING, size=2), "delta reaches 1"),
    "a group of a divergence at low orders": (
        lambda: tacit.group(Renyi(orders=(2.0, 3.5), epsilons=(1.0, 2.0)), size=2), "at least 4",
    ),
    "a law twice": (lambda: law("group-pure", operation="group")(lambda b: b), "registered once"),
    "a theorem twice": (
        lambda: register(id="group-privacy", statement="s", source="s"), "registered once",
    ),
    "a curve as a record": (lambda: to_record(given(bound=Profile.laplace(epsilon=1))), "events that made it"),
    "declarations that are no sentences": (lambda: from_record(written(declared=[3])), "list of sentences"),
    "declarations that are no list": (lambda: from_record(written(declared="x")), "list of sentences"),
    "a bound without a kind": (lambda: from_record(written(bound={"epsilon": 1})), "table with a kind"),
    "a bound of no known kind": (lambda: from_record(written(bound={"kind": "best"})), "bound"),
    "a bound of other fields": (
        lambda: from_record(written(bound={"kind": "pure", "mu": 1})), "have the fields of",
    ),
    "a column of ours": (lambda: people(column="__TACIT_id", at_most=1), "not begin with __tacit"),
    "coupled worlds as rows": (lambda: steps(PAIR, rows()), "do not convert"),
    "added rows from replaced ones": (lambda: steps(SWAP, rows()), "says nothing about adding one"),
    "people from replaced rows": (
        lambda: steps(SWAP, people(column="id", at_most=2, neighbours="replace-one")), "number of rows may change",
    ),
    "people of more rows": (
        lambda: steps(people(column="id", at_most=2), people(column="id", at_most=3)), "with few rows",
    ),
    "people in more groups": (
        lambda: steps(people(column="id", at_most=9, groups=2), people(column="id", at_most=9, groups=3)), "few groups",
    ),
    "people by another column": (
        lambda: steps(people(column="id", at_most=2), people(column="name", at_most=2)), "name",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_what_lies_just_inside_is_answered() -> None:
    assert steps(people(column="id", at_most=3), people(column="id", at_most=2))[0] == 1
    assert steps(rows(), SWAP)[0] == 2
    assert steps(rows(), group_of(people(column="id", at_most=5), size=3))[0] == 15
    assert Profile.from_losses([0.0], [1.0]).delta_at(0.1) == pytest.approx(0, abs=1e-9)
    assert worlds.semantic_to_dp(shift=0.25).epsilon_at(0.0) == pytest.approx(math.log(3))
    assert worlds.posterior_coupled_printed(epsilon=1.0, delta=1e-9).epsilon_at(0.5) <= 3.0
    assert tacit.group(Renyi(orders=(4.0,), epsilons=(1.0,)), size=2).orders == (2.0,)
    assert under.group_bounded(STATED, BoundedAdversary(**SIM), 2)[1].advantage == 1e-9


# --- parts that are not equal --------------------------------------------------------------------------------------


def test_advantages_of_adversaries_add_up_as_often_as_they_occur() -> None:
    small, large = (BoundedAdversary(assumption="AES", advantage=a) for a in (1e-9, 1e-7))
    parts = [(given(condition=small), 3), (given(condition=large), 2), (given(), 5)]
    assert under.compose_bounded(parts, adaptive=True).advantage == pytest.approx(3e-9 + 2e-7)
    fixed = [BoundedAdversary(assumption="AES", advantage=a, definition="ind") for a in (1e-9, 1e-7)]  # type: ignore[arg-type]
    two = [(given(Pure(epsilon=0.5), fixed[0]), 2), (given(Pure(epsilon=2), fixed[1]), 1)]
    # a_1 (1 + e^e_1) + e^(2 e_1) a_2: the later release is seen through the earlier ones' epsilons.
    want = 1e-9 * (1 + math.exp(0.5)) + math.exp(1) * 1e-7
    assert under.compose_bounded(two, adaptive=False).advantage == pytest.approx(want)
    grouped = under.group_bounded(Pure(epsilon=0.5), fixed[1], 3)[1].advantage
    assert grouped == pytest.approx(1e-7 * (1 + math.exp(0.5) + math.exp(1)))
    restated = under.sim_to_ind(large, Pure(epsilon=0.5))
    assert restated.advantage == pytest.approx(1e-7 * (1 + math.exp(0.5)))


def test_two_releases_under_priors_take_the_larger_of_both_deltas() -> None:
    """d_f e^(e_g) + d_g and d_f + d_g e^(e_f): either may be the larger, whichever comes first."""
    first, second = Approximate(epsilon=0.1, delta=1e-3), Approximate(epsilon=2.0, delta=1e-5)
    want = max(1e-3 * math.exp(2) + 1e-5, 1e-3 + 1e-5 * math.exp(0.1))
    for one, other in ((first, second), (second, first)):
        made = under.compose_coupled([(given(one, PRIOR), 1), (given(other, PRIOR), 1)])
        assert made.epsilon_at(0.5) <= 2.1
        assert isinstance(made, Approximate)
        assert (made.epsilon, made.delta) == pytest.approx((2.1, want))
    disjoint = under.compose_disjoint([(given(first, PRIOR), 1), (given(second, PRIOR), 1)])
    assert isinstance(disjoint, Approximate)
    assert (disjoint.epsilon, disjoint.delta) == pytest.approx((2.0, 1e-3))


@pytest.mark.parametrize(
    "unit", [rows(), people(column="id", at_most=6, groups=2), people(column="id", at_most=3)]
)
def test_parallel_parts_are_composed_as_often_as_one_unit_touches_them(unit: Any) -> None:
    bounds = [Pure(epsilon=e) for e in (0.1, 0.5, 0.25)]
    made = tacit.parallel(*(given(b, unit=unit) for b in bounds))
    touched = {0: 1, 6: 2, 3: 3}[getattr(unit, "at_most", 0)]
    assert made.bound.epsilon_at(0.0) == pytest.approx(0.5 * touched)
    swapped = group_of(rows(neighbours="replace-one"), size=2)
    both = tacit.parallel(*(given(b, unit=swapped) for b in bounds), fixed=True)
    assert both.bound.epsilon_at(0.0) == pytest.approx(1.0)


def test_the_worst_of_unlike_bounds_is_above_each() -> None:
    from tacit.guarantees.laws.compose import worst

    curves = [
        Renyi(orders=(2.0, 4.0, 8.0), epsilons=(0.1, 0.9, 3.0)),
        Renyi(orders=(2.0, 3.0, 4.0), epsilons=(0.3, 0.4, 0.5)),
    ]
    found = worst(curves)
    assert isinstance(found, Renyi)
    for order in found.orders:
        assert found.renyi(order) >= max(c.renyi(order) for c in curves) * (1 - 1e-12)
    assert found.renyi(2.0) == pytest.approx(0.3)
    assert found.renyi(4.0) == pytest.approx(0.9)
    points = worst([Approximate(epsilon=1, delta=1e-6), Approximate(epsilon=2, delta=1e-9)])
    assert isinstance(points, Approximate)
    assert (points.epsilon, points.delta) == (2, 1e-6)


def test_a_group_of_a_sample_takes_part_together() -> None:
    """1 - (1 - q)^k for Poisson samples, k q for samples of public size: never q alone."""
    poisson = amplify_for(PURE, group_of(rows(), size=3), rate=0.1, scheme=Sampling.POISSON)[0]
    alone = amplify_for(PURE, rows(), rate=0.1, scheme=Sampling.POISSON)[0]
    share = 1 - 0.9**3
    assert poisson.epsilon_at(0.0) >= math.log1p(share * math.expm1(1)) * (1 - 1e-12)
    assert poisson.epsilon_at(0.0) > alone.epsilon_at(0.0)
    fixed = amplify_for(PURE, group_of(SWAP, size=3), rate=0.1, scheme=Sampling.WITHOUT_REPLACEMENT)[0]
    assert fixed.epsilon_at(0.0) >= math.log1p(0.3 * math.expm1(1)) * (1 - 1e-12)
    assert Fraction(fixed.epsilon_at(0.0)) <= 1
