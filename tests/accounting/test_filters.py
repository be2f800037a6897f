"""Filters: never more than the budget, refusals change nothing, and why a composed profile is not one."""

from __future__ import annotations

import copy
import math
import pickle
import re
import sys
import threading
import time
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from tacit.accounting import AdvancedFilter, Filter, PureFilter, RenyiFilter, filter_for
from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.guarantees.running_sum import Amounts

BUDGETS: list[tuple[tacit.guarantees.Bound, tacit.guarantees.Bound]] = [
    (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=0.1)),
    (tacit.Approximate(epsilon=1.0, delta=1e-6), tacit.Approximate(epsilon=0.1, delta=1e-8)),
    (tacit.Approximate(epsilon=1.0, delta=1e-6), tacit.Pure(epsilon=0.1)),
    (tacit.Concentrated(rho=0.5), tacit.Concentrated(rho=0.01)),
    (tacit.Concentrated(rho=0.5), tacit.GaussianDP(mu=0.1)),
    (tacit.Concentrated(rho=0.5), tacit.Pure(epsilon=0.1)),
    (tacit.GaussianDP(mu=1.0), tacit.GaussianDP(mu=0.1)),
    (tacit.Renyi(orders=(8.0,), epsilons=(1.0,)), tacit.GaussianDP(mu=0.1)),
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


def test_advanced_filter_shares_its_delta() -> None:
    """What pays for the losses is not there for the releases' own deltas: both shares together are the budget."""
    for share in (0.25, 0.5, 0.9):
        chosen = AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=0.0625), share=share)
        release = tacit.Approximate(epsilon=0.0, delta=1 / 1024)
        granted = Fraction(0)
        while chosen.fits(release):
            chosen.admit(release)
            granted += Fraction(1, 1024)
        assert Fraction(1, 16) * Fraction(1 - share) - Fraction(1, 1024) < granted
        assert granted <= Fraction(1, 16) * (1 - Fraction(share))
        assert chosen.spent.delta <= 0.0625


def test_advanced_filter_against_an_adversary_who_chooses_as_they_go() -> None:
    """Every policy that the filter admits, enumerated from the definition: the worst stays within the promise.

    A release is the worst (epsilon, delta) pair: with probability delta the data are given away, else the loss is
    epsilon or -epsilon. The adversary sees the loss so far and picks the next one, or stops; what they reach is
    E (1 - e^(at - L))+, and only what `admit` lets through may be picked.
    """
    menu = [tacit.Approximate(epsilon=e, delta=d) for e, d in ((0.125, 0.0), (0.25, 0.0), (0.0, 0.05))]
    budget = tacit.Approximate(epsilon=0.5, delta=0.2)
    reached: dict[tuple[int, ...], list[bool]] = {}

    def open_to(spent: tuple[int, ...]) -> list[bool]:
        """Which of the menu a filter with this history admits; the order of a history does not matter to sums."""
        if spent not in reached:
            answers = []
            for one in menu:
                chosen = AdvancedFilter(budget)
                for other, times in zip(menu, spent, strict=True):
                    for _ in range(times):
                        chosen.admit(other)
                try:
                    chosen.admit(one)
                    answers.append(True)
                except BudgetExceeded:
                    answers.append(False)
            reached[spent] = answers
        return reached[spent]

    @cache
    def worst(loss: float, spent: tuple[int, ...], steps: int) -> float:
        best = max(0.0, -math.expm1(float(budget.epsilon) - loss))
        if steps == 0:
            return best
        for index, allowed in enumerate(open_to(spent)):
            if allowed:
                after = (*spent[:index], spent[index] + 1, *spent[index + 1 :])
                epsilon, delta = float(menu[index].epsilon), float(menu[index].delta)
                p = 1 / (1 + math.exp(-epsilon))
                stays = p * worst(loss + epsilon, after, steps - 1) + (1 - p) * worst(
                    loss - epsilon, after, steps - 1
                )
                best = max(best, delta + (1 - delta) * stays)
        return best

    value = worst(0.0, (0, 0, 0), 14)
    assert value <= 0.2
    assert value > 0.0976  # two releases that give the data away, 1 - 0.95^2, and then some
    assert any(all(spent[k] for k in (0, 2)) for spent in reached)  # mixtures were tried


def test_a_composed_profile_is_not_a_filter() -> None:
    """docs/theory/profile-filter.md, through the library: a rule that admits while the composed curve fits the
    budget admits both offers after the same first release, and a policy that chooses between them exceeds it."""
    first = tacit.Profile.from_pair(*second.randomized_response(1.0))
    small = second.randomized_response(0.2)
    gift = second.randomized_response(1.0)[0][0] * second.hockey_stick(*small, 0.0)
    offers = [small, second.worst_approximate(0.0, gift)]
    # What the rule would compare with the budget, from the library's own composition of curves.
    composed = [tacit.compose(first, tacit.Profile.from_pair(*offer)).delta(1.0) for offer in offers]
    budget = 1.001 * gift
    assert all(delta <= budget for delta in composed)
    # The policy takes the first offer where the first output was the likely one, and the second elsewhere.
    p, q = second.randomized_response(1.0)
    adaptive_p = [p[0] * x for x in offers[0][0]] + [p[1] * x for x in offers[1][0]]
    adaptive_q = [q[0] * x for x in offers[0][1]] + [q[1] * x for x in offers[1][1]]
    reached = second.hockey_stick(adaptive_p, adaptive_q, 1.0)
    assert reached > 1.25 * budget
    assert reached == pytest.approx(0.0924591, abs=1e-6)
    # So no filter takes a curve for a budget, whatever made it, and none charges a curve by its composition.
    for curve in (first, tacit.Profile.laplace(epsilon=1.0), tacit.Profile.of(tacit.Pure(epsilon=1.0))):
        with pytest.raises(InvalidParameter, match="not a valid filter"):
            filter_for(curve)


@pytest.mark.parametrize(
    ("budget", "release", "fitting"),
    [
        (tacit.Concentrated(rho=1.0), tacit.Concentrated(rho=2.0**-9), 512),
        (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=2.0**-9), 512),
        (tacit.Approximate(epsilon=1.0, delta=0.5), tacit.Approximate(epsilon=0.0, delta=2.0**-10), 512),
    ],
)
def test_threads_spend_a_budget_once(
    budget: tacit.guarantees.Bound, release: tacit.guarantees.Bound, fitting: int
) -> None:
    """Eight threads that all try as long as they can: exactly what fits is admitted, each time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            chosen = filter_for(budget)
            together = threading.Barrier(8)
            admitted = [0] * 8

            def spend(which: int, chosen: Filter = chosen, admitted: list[int] = admitted) -> None:
                together.wait()  # noqa: B023 - joined before the next round
                for _ in range(fitting):
                    try:
                        chosen.admit(release)
                    except BudgetExceeded:
                        return
                    admitted[which] += 1

            threads = [threading.Thread(target=spend, args=(k,)) for k in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sum(admitted) == fitting
            assert not chosen.fits(release)
    finally:
        sys.setswitchinterval(before)


def test_comparing_and_adding_are_one_step() -> None:
    """Four threads want the whole budget at the same moment, and comparing takes a while: one gets it."""

    class Slow(PureFilter):
        def _within(self, total: Amounts) -> bool:
            answer = super()._within(total)
            time.sleep(0.02)
            return answer

    chosen = Slow(tacit.Pure(epsilon=1.0))
    together = threading.Barrier(4)
    outcomes: list[bool] = []

    def ask() -> None:
        together.wait()
        try:
            chosen.admit(tacit.Pure(epsilon=1.0))
            outcomes.append(True)
        except BudgetExceeded:
            outcomes.append(False)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, False, False, True]


def test_a_fixed_order() -> None:
    chosen = RenyiFilter(order=16.0, epsilon=2.0)
    chosen.admit(tacit.GaussianDP(mu=0.2))
    chosen.admit(tacit.Pure(epsilon=0.2))
    assert chosen.spent.renyi(16.0) == pytest.approx(16 * 0.02 + tacit.Pure(epsilon=0.2).renyi(16.0))
    with pytest.raises(tacit.NoLaw):
        chosen.admit(tacit.Approximate(epsilon=0.1, delta=1e-6))
    with pytest.raises(InvalidParameter):
        filter_for(tacit.Renyi(orders=(2.0, 4.0), epsilons=(1.0, 2.0)))
    with pytest.raises(tacit.NoLaw):
        filter_for(tacit.Pure(epsilon=1)).admit(tacit.GaussianDP(mu=0.1))


def test_gaussian_releases_fill_a_budget_by_their_squares() -> None:
    chosen = filter_for(tacit.GaussianDP(mu=1.0))
    for _ in range(64):
        chosen.admit(tacit.GaussianDP(mu=0.125))
    assert not chosen.fits(tacit.GaussianDP(mu=0.125))


# --- what newcomers meet -------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [filter_for, AdvancedFilter])
@pytest.mark.parametrize(
    "release", [tacit.events.GaussianEvent(noise_multiplier=40.0), tacit.GaussianDP(mu=1 / 40)]
)
def test_a_refused_gaussian_release_is_sent_to_budgets_that_admit_it(make: Any, release: Any) -> None:
    """Each call in the hint, run as it stands, gives a filter that charges what was refused."""
    with pytest.raises(tacit.NoLaw) as caught:
        make(tacit.Approximate(epsilon=1.0, delta=1e-6)).admit(release)
    named = re.findall(r"filter_for\(tacit\.\w+\(.*?\)\)", caught.value.hint)
    assert [n.split("(")[1] for n in named] == [
        "tacit.gaussian_budget", "tacit.concentrated_budget", "tacit.renyi_budget",
    ]  # fmt: skip
    for call in named:
        chosen = eval(call, {"tacit": tacit, "filter_for": filter_for})
        chosen.admit(release)
        assert chosen.spent.epsilon_at(1e-6) <= 1.0


def test_a_hint_names_no_budget_that_would_refuse_again() -> None:
    for budget in (tacit.Pure(epsilon=1.0), tacit.Concentrated(rho=0.1), tacit.GaussianDP(mu=0.5)):
        with pytest.raises(tacit.NoLaw) as caught:
            filter_for(budget).admit(tacit.events.ApproximateEvent(epsilon=0.1, delta=1e-9))
        assert "_budget" not in caught.value.hint


@pytest.mark.parametrize(
    ("budget", "spent", "text"),
    [
        (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=0.0004), "epsilon = 0.999"),
        (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=0.3), "epsilon = 0.7"),
        (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=1 / 3), "epsilon = 0.666"),
        (tacit.Pure(epsilon=1.0), tacit.Pure(epsilon=1.0), "epsilon = 0"),
        (tacit.Concentrated(rho=1.0), tacit.Concentrated(rho=0.0004), "rho = 0.999"),
        (tacit.GaussianDP(mu=1.0), tacit.GaussianDP(mu=0.01), "mu = 0.999"),
        (
            tacit.Approximate(epsilon=1.0, delta=1e-6),
            tacit.Approximate(epsilon=0.0004, delta=4e-10),
            "epsilon = 0.999 with delta = 9.99e-07",
        ),
        (
            tacit.Renyi(orders=(2.0,), epsilons=(1.0,)),
            tacit.Renyi(orders=(2.0,), epsilons=(0.0004,)),
            "Rényi divergence 0.999 at order 2",
        ),
    ],
)
def test_what_is_left_prints_rounded_down(budget: Any, spent: Any, text: str) -> None:
    chosen = filter_for(budget)
    chosen.admit(spent)
    assert str(chosen.left) == text


def test_what_is_left_is_a_bound_like_any_other() -> None:
    chosen = filter_for(tacit.Pure(epsilon=1.0))
    chosen.admit(tacit.Pure(epsilon=0.25))
    assert chosen.left == tacit.Pure(epsilon=0.75)
    assert hash(chosen.left) == hash(tacit.Pure(epsilon=0.75))
    assert pickle.loads(pickle.dumps(chosen.left)) == chosen.left
    assert str(tacit.Pure(epsilon=0.9996)) == "epsilon = 1", "a bound that is stated prints as before"
    advanced = AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=1e-6))
    assert float(str(advanced.left).split()[2]) <= float(advanced.left.epsilon)


def test_a_filter_is_not_copied() -> None:
    """Two copies would admit the budget twice."""
    for chosen in (filter_for(tacit.Pure(epsilon=1.0)), RenyiFilter(order=2.0, epsilon=1.0)):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(tacit.NoLaw, match="whole budget again") as caught:
                attempt(chosen)
            assert "Ledger" in caught.value.hint


def test_a_forked_process_has_no_second_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork copies all that is in memory: what the copy admits, the first one does not know of."""
    chosen = filter_for(tacit.Pure(epsilon=1.0))
    chosen.admit(tacit.Pure(epsilon=0.25))
    with monkeypatch.context() as forked:
        forked.setattr("tacit.accounting.filters.os.getpid", lambda: -1)
        with pytest.raises(tacit.NoLaw, match="whole budget again"):
            chosen.admit(tacit.Pure(epsilon=0.25))
    chosen.admit(tacit.Pure(epsilon=0.75))
