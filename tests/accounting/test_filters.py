"""Filters: never more than the budget, refusals change nothing, and why a composed profile is not one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from tacit.accounting import AdvancedFilter, RenyiFilter, filter_for
from tacit.errors import BudgetExceeded, InvalidParameter

BUDGETS: list[tuple[tacit.guarantees.Bound, tacit.guarantees.Bound]] = [
    (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=0.1)),
    (tacit.Approximate(epsilon=1.0, delta=1e-6), tacit.Approximate(epsilon=0.1, delta=1e-8)),
    (tacit.Approximate(epsilon=1.0, delta=1e-6), tacit.Pure(epsilon=0.1)),
    (tacit.Concentrated(rho=0.5), tacit.Concentrated(rho=0.01)),
    (tacit.Concentrated(rho=0.5), tacit.Gaussian(mu=0.1)),
    (tacit.Concentrated(rho=0.5), tacit.Pure(epsilon=0.1)),
    (tacit.Gaussian(mu=1.0), tacit.Gaussian(mu=0.1)),
    (tacit.Renyi(orders=(8.0,), epsilons=(1.0,)), tacit.Gaussian(mu=0.1)),
]


@pytest.mark.parametrize(("budget", "release"), BUDGETS)
def test_a_filter_admits_up_to_the_budget_and_not_beyond(
    budget: tacit.guarantees.Bound, release: tacit.guarantees.Bound
) -> None:
    chosen = filter_for(budget)
    count = 0
    while chosen.fits(release):
        chosen.admit(release)
        count += 1
        assert count < 10_000
    before = chosen.spent
    with pytest.raises(BudgetExceeded) as refused:
        chosen.admit(release)
    assert refused.value.exit_code == 1
    assert refused.value.left
    assert chosen.spent == before
    unit = tacit.rows()
    assert tacit.Guarantee(bound=before, unit=unit).implies(tacit.Guarantee(bound=budget, unit=unit))
    assert count >= 9


@given(st.lists(st.floats(1e-6, 0.5), max_size=30))
def test_sums_are_exact_and_rounded_against_the_asker(parts: list[float]) -> None:
    chosen = filter_for(tacit.Pure(epsilon=1.0))
    admitted = []
    for epsilon in parts:
        if chosen.fits(tacit.Pure(epsilon=epsilon)):
            chosen.admit(tacit.Pure(epsilon=epsilon))
            admitted.append(epsilon)
    assert math.fsum(admitted) <= 1.0
    if admitted:
        composed = tacit.compose(*[tacit.Pure(epsilon=x) for x in admitted])
        assert chosen.spent == composed


def test_ten_tenths_do_not_fit_into_one() -> None:
    """0.1 is a little more than a tenth."""
    chosen = filter_for(tacit.Pure(epsilon=1.0))
    for _ in range(9):
        chosen.admit(tacit.Pure(epsilon=0.1))
    assert not chosen.fits(tacit.Pure(epsilon=0.1))
    assert chosen.fits(tacit.Pure(epsilon=0.09999999999999995))


def test_advanced_filter() -> None:
    budget = tacit.Approximate(epsilon=1.0, delta=1e-6)
    chosen = AdvancedFilter(budget)
    small = tacit.Approximate(epsilon=0.01, delta=1e-10)
    count = 0
    while chosen.fits(small):
        chosen.admit(small)
        count += 1
    assert count == 458  # Whitehouse et al. with epsilon^2/2 and the printed conversion: 333; basic: 100
    spent = chosen.spent
    assert spent.epsilon <= 1.0
    assert spent.delta <= 1e-6
    with pytest.raises(BudgetExceeded):
        chosen.admit(small)
    for bad in (0.0, -1.0, 1.5):
        with pytest.raises(InvalidParameter):
            AdvancedFilter(budget, share=bad)
    with pytest.raises(InvalidParameter):
        AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=0.0))


def test_advanced_filter_against_an_adversary_who_chooses_as_they_go() -> None:
    """Every policy of three steps over randomised responses, enumerated: the worst stays within the promise."""
    menu = (0.3, 0.9, 1.5)
    budget = tacit.Approximate(epsilon=2.0, delta=0.05)
    rho_limit = tacit.concentrated_budget(epsilon=2.0, delta=0.05).rho

    def worst(loss: float, rho: float, steps: int, at: float) -> float:
        """The largest H over policies, for a path with this loss so far: value = E (1 - e^{at - L})+."""
        best = max(0.0, -math.expm1(at - loss))
        if steps == 0:
            return best
        for epsilon in menu:
            cost = rho + epsilon * math.tanh(epsilon / 2)
            if cost <= rho_limit:
                p = 1 / (1 + math.exp(-epsilon))
                value = p * worst(loss + epsilon, cost, steps - 1, at) + (1 - p) * worst(
                    loss - epsilon, cost, steps - 1, at
                )
                best = max(best, value)
        return best

    assert worst(0.0, 0.0, 5, float(budget.epsilon)) <= 0.05


def test_a_composed_profile_is_not_a_filter() -> None:
    """docs/theory/profile-filter.md: two offers fill the same budget; choosing by the first output breaks it."""
    p, q = second.randomized_response(1.0)
    first, other = second.randomized_response(0.2), None
    gift = p[0] * second.hockey_stick(*first, 0.0)
    offers = [first, second.worst_approximate(0.0, gift)]
    fixed = [second.both(*second.product((p, q), offer), 1.0) for offer in offers]
    assert fixed == pytest.approx([gift, gift])
    adaptive_p = [p[0] * x for x in offers[0][0]] + [p[1] * x for x in offers[1][0]]
    adaptive_q = [q[0] * x for x in offers[0][1]] + [q[1] * x for x in offers[1][1]]
    reached = second.hockey_stick(adaptive_p, adaptive_q, 1.0)
    assert reached == pytest.approx(0.0924591, abs=1e-6)
    assert reached > 1.26 * gift
    assert other is None
    with pytest.raises(InvalidParameter, match="not a valid filter"):
        filter_for(tacit.Profile.laplace(epsilon=1.0))


def test_a_fixed_order() -> None:
    chosen = RenyiFilter(order=16.0, epsilon=2.0)
    chosen.admit(tacit.Gaussian(mu=0.2))
    chosen.admit(tacit.Pure(epsilon=0.2))
    assert chosen.spent.renyi(16.0) == pytest.approx(16 * 0.02 + tacit.Pure(epsilon=0.2).renyi(16.0))
    with pytest.raises(tacit.NoLaw):
        chosen.admit(tacit.Approximate(epsilon=0.1, delta=1e-6))
    with pytest.raises(InvalidParameter):
        filter_for(tacit.Renyi(orders=(2.0, 4.0), epsilons=(1.0, 2.0)))
    with pytest.raises(tacit.NoLaw):
        filter_for(tacit.Pure(epsilon=1)).admit(tacit.Gaussian(mu=0.1))
