"""Bounded noise against its definition: delta by enumeration of outputs, optimality by linear programming, draws, and
the composition of its event (theorem truncated-discrete-laplace)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.accounting import account
from tacit.accounting import events as ev
from tacit.audit import opinion_on_certificate
from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, TruncatedDiscreteLaplace
from tacit.mechanisms.bounded import BoundedLaplace
from tacit.noise import SeededSource
from tacit.pld.pairs.laplace import TruncatedLaplacePair

TABLE = {(2, 6): 7, (2, 9): 11, (1, 6): 14, (1, 9): 20, (0.5, 6): 25, (0.5, 9): 39, (0.2, 6): 58, (0.2, 9): 93,
         (0.1, 6): 109, (0.1, 9): 178}  # fmt: skip


def law(rate: float, largest: int, places: int) -> np.ndarray:
    """Masses at -places..places, from the definition."""
    k = np.abs(np.arange(-places, places + 1))
    weights = np.where(k <= largest, np.exp(-rate * k), 0.0)
    return weights / weights.sum()


def curve(rate: float, largest: int, move: tuple[int, ...], epsilon: float) -> float:
    """sup_S P(S) - e^epsilon Q(S), every output of every coordinate."""
    places = largest + max(map(abs, move))
    p = q = np.ones(1)
    for step in move:
        own = law(rate, largest, places)
        p, q = np.multiply.outer(p, own), np.multiply.outer(q, np.roll(own, step))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("epsilon", "digits"), TABLE)
def test_the_smallest_support(epsilon: float, digits: int) -> None:
    made = TruncatedDiscreteLaplace.for_target(epsilon=epsilon, delta=10.0**-digits)
    assert made.largest_noise == TABLE[epsilon, digits]
    less = TruncatedDiscreteLaplace(epsilon=epsilon, largest_noise=made.largest_noise - 1)
    assert made.bound.delta <= 10.0**-digits < less.bound.delta


@pytest.mark.claim("TruncatedDiscreteLaplace")
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("steps", "largest"), [(1, 1), (1, 6), (2, 2), (2, 9), (5, 8), (5, 30)])
def test_the_delta_is_the_sum_over_outputs(epsilon: float, steps: int, largest: int) -> None:
    """At its epsilon the claim is reached; smaller moves have less, and so at every other epsilon."""
    made = TruncatedDiscreteLaplace(epsilon=epsilon, largest_noise=largest, sensitivity=L1(steps))
    assert float(made.bound.epsilon) == epsilon
    # A little above, where no rounding of ratios that are e^epsilon counts.
    true = curve(epsilon / steps, largest, (steps,), epsilon * (1 + 1e-12))
    assert made.bound.delta == pytest.approx(true, rel=1e-11, abs=0)
    pair = TruncatedLaplacePair(epsilon=epsilon, largest_noise=largest, sensitivity=steps)
    for at in (-2.0, -0.3, 0.0, 0.04, 0.3, 0.9, 2.5, 4.0):
        exact = curve(epsilon / steps, largest, (steps,), at)
        found = pair.hockey_stick(at)
        assert found.low * (1 - 1e-11) - 1e-15 <= exact <= found.high * (1 + 1e-11) + 1e-15
        low, high = pair.hockey_stick_grid(np.array([at]))
        assert low[0] <= exact * (1 + 1e-11) + 1e-15
        assert exact <= high[0] * (1 + 1e-11) + 1e-15
        for smaller in range(1, steps):
            assert curve(epsilon / steps, largest, (smaller,), at) <= exact * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("rate", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("largest", [3, 5])
def test_a_move_over_several_cells_is_no_worse(rate: float, largest: int) -> None:
    for total in (2, 3):
        for move in itertools.product(range(-total, total + 1), repeat=2):
            if sum(map(abs, move)) == total:
                for at in (-0.5, 0.0, 0.2, rate, 2 * rate, total * rate):
                    whole = curve(rate, largest, (total,), at)
                    assert curve(rate, largest, move, at) <= whole * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize(("cells", "steps"), [(2, 1), (3, 1), (2, 2)])
def test_several_moved_cells(cells: int, steps: int) -> None:
    made = TruncatedDiscreteLaplace(epsilon=0.75, largest_noise=4, sensitivity=L1(steps), moved_cells=cells)
    true = curve(0.75 / cells / steps, 4, (steps,) * cells, 0.75 * (1 + 1e-12))
    assert made.bound.delta == pytest.approx(true, rel=1e-9, abs=0)
    assert float(made.bound.epsilon) == pytest.approx(0.75, rel=1e-15)
    for at in (0.0, 0.1, 0.4, 0.6):
        encloses(made.event, 0.75 / cells / steps, 4, (steps,) * cells, at)


def encloses(event: ev.Event, rate: float, largest: int, move: tuple[int, ...], at: float) -> None:
    """The account's two ends at an epsilon are on the two sides of the sum over all outputs."""
    true, found = curve(rate, largest, move, at), account(event, epsilon=at).delta
    assert found.low * (1 - 1e-9) <= true <= found.high * (1 + 1e-9)
    assert found.high <= true * (1 + 1e-3)


def test_a_replaced_row_moves_two_cells() -> None:
    made = TruncatedDiscreteLaplace.for_target(epsilon=1, delta=1e-6, moved_cells=2)
    assert made.largest_noise == 27
    assert made.bound.delta == pytest.approx(6.7155e-7, rel=1e-5)
    whole = TruncatedDiscreteLaplace.for_target(epsilon=1, delta=1e-6, sensitivity=L1(2))
    assert whole.largest_noise >= 27


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("largest", [1, 2, 4])
def test_no_distribution_on_the_support_is_better(epsilon: float, largest: int) -> None:
    """The smallest delta over all distributions on -A..A, by linear programming over masses and slacks."""
    from scipy.optimize import linprog

    n = 2 * largest + 1
    rows, right = [], []
    for sign in (1, -1):
        for k in range(n):
            row = np.zeros(3 * n + 1)  # p_k - e^epsilon p_(k -+ 1) <= slack
            row[k] = 1.0
            if 0 <= k - sign < n:
                row[k - sign] = -math.exp(epsilon)
            row[n + (0 if sign == 1 else n) + k] = -1.0
            rows.append(row)
            right.append(0.0)
        row = np.zeros(3 * n + 1)  # the slacks of a direction add up to at most delta
        row[n + (0 if sign == 1 else n) : n + (n if sign == 1 else 2 * n)] = 1.0
        row[-1] = -1.0
        rows.append(row)
        right.append(0.0)
    goal = np.zeros(3 * n + 1)
    goal[-1] = 1.0
    whole = np.concatenate([np.ones(n), np.zeros(2 * n + 1)])[None, :]
    best = linprog(goal, A_ub=np.array(rows), b_ub=right, A_eq=whole, b_eq=[1.0], bounds=(0, None))
    made = TruncatedDiscreteLaplace(epsilon=epsilon, largest_noise=largest)
    assert best.fun == pytest.approx(made.bound.delta, rel=1e-7)
    q = math.exp(-epsilon)
    assert made.bound.delta < q**largest / (1 + q)  # clamped noise


def test_what_is_released_has_the_law_and_never_exceeds_it() -> None:
    made = TruncatedDiscreteLaplace(epsilon=0.8, largest_noise=3)
    drawn = made.release(np.full(60_000, 40), source=SeededSource(seed=3)).values - 40
    assert np.abs(drawn).max() == 3
    counts, p = Counter(drawn.tolist()), law(0.8, 3, 3)
    for k in range(-3, 4):
        expected = 60_000 * p[k + 3]
        assert abs(counts[k] - expected) < 7 * math.sqrt(expected)
        low, high = made.distribution.probability(k)
        assert low <= p[k + 3] * (1 + 1e-12)
        assert p[k + 3] * (1 - 1e-12) <= high
    assert made.distribution.probability(4) == (0.0, 0.0)
    assert made.distribution.survival(4) == (0.0, 0.0)
    assert made.distribution.survival(-3) == (1.0, 1.0)
    assert made.error_quantile(0.999999) == made.max_error(confidence=0.999999, dimension=1000) == 3


def test_errors_are_sums_over_the_law() -> None:
    for epsilon, largest in ((1.0, 14), (0.1, 5), (3.0, 2)):
        made = TruncatedDiscreteLaplace(epsilon=epsilon, largest_noise=largest)
        p, k = law(epsilon, largest, largest), np.arange(-largest, largest + 1)
        assert made.expected_error() == pytest.approx(float((p * np.abs(k)).sum()), rel=1e-12)
        assert made.noise_std**2 == pytest.approx(float((p * k * k).sum()), rel=1e-12)
        for level in (0.5, 0.9, 0.99):
            inside = [float(p[np.abs(k) <= t].sum()) for t in range(largest + 1)]
            assert made.error_quantile(level) == next(t for t, mass in enumerate(inside) if mass >= level)
    assert TruncatedDiscreteLaplace(epsilon=1, largest_noise=14).noise_std == pytest.approx(1.3569, abs=1e-4)


def test_one_step_is_the_worst_pair_of_its_claim() -> None:
    """Composed with others it costs what (epsilon, delta) costs; a move of more steps costs less than its claim."""
    for steps, equal in ((1, True), (3, False)):
        event = ev.TruncatedDiscreteLaplaceEvent(epsilon=0.5, largest_noise=60, sensitivity=steps)
        claim = ev.ApproximateEvent(**dict(zip(("epsilon", "delta"), event.approximate(), strict=True)))
        others = ev.LaplaceEvent(epsilon=0.3)
        plans = [[ev.RepeatedEvent(event=one, times=4), others] for one in (event, claim)]
        found, stated = (account(plan, delta=1e-3).epsilon for plan in plans)
        if equal:
            assert found.high == pytest.approx(stated.high, rel=1e-6)
        else:
            assert found.high < 0.999 * stated.low


def test_a_composition_is_the_sum_over_outcomes() -> None:
    event = ev.TruncatedDiscreteLaplaceEvent(epsilon=0.6, largest_noise=5, sensitivity=2)
    for at in (0.0, 0.2, 0.5, 0.9):
        encloses(ev.RepeatedEvent(event=event, times=2), 0.3, 5, (2, 2), at)
        encloses(ev.RepeatedEvent(event=event, times=3), 0.3, 5, (2, 2, 2), at)


def test_certificate_and_second_opinion() -> None:
    for made in (
        TruncatedDiscreteLaplace.for_target(epsilon=1, delta=1e-6),
        TruncatedDiscreteLaplace.for_target(epsilon=0.5, delta=1e-9, sensitivity=L1(3)),
        TruncatedDiscreteLaplace.for_target(epsilon=Fraction(1, 3), delta=1e-6, moved_cells=2),
    ):
        certificate = made.certificate_for(tacit.rows(neighbours="replace-one"))
        assert opinion_on_certificate(certificate).confirmed is True
        for name in ("epsilon", "delta"):
            forged = {**certificate["guarantee"], "bound": dict(certificate["guarantee"]["bound"])}
            forged["bound"][name] *= 0.99
            assert opinion_on_certificate({**certificate, "guarantee": forged}).confirmed is not True


def test_words() -> None:
    from tacit.accounting.codec import parse

    line = "truncated_discrete_laplace epsilon=1 largest_noise=14"
    assert parse(line).make(None) == ev.TruncatedDiscreteLaplaceEvent(epsilon=1.0, largest_noise=14)
    with pytest.raises(InvalidParameter, match="cannot search for it"):
        parse("truncated_discrete_laplace largest_noise=14 epsilon=?")


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="at least the sensitivity"):
        TruncatedDiscreteLaplace(epsilon=1, largest_noise=2, sensitivity=L1(3))
    with pytest.raises(InvalidParameter, match="at least the sensitivity"):
        ev.TruncatedDiscreteLaplaceEvent(epsilon=1.0, largest_noise=2, sensitivity=3)
    with pytest.raises(InvalidParameter, match="4096"):
        ev.TruncatedDiscreteLaplaceEvent(epsilon=1.0, largest_noise=5000, sensitivity=5000)
    with pytest.raises(InvalidParameter, match="strictly between"):
        TruncatedDiscreteLaplace.for_target(epsilon=1, delta=1)
    with pytest.raises(InvalidParameter, match="noise scale"):
        BoundedLaplace(noise_scale=1000, largest=1)
    wide = TruncatedDiscreteLaplace.for_target(epsilon=1, delta=1e-6, sensitivity=L1(5000))
    assert wide.event == ev.ApproximateEvent(epsilon=1.0, delta=wide.bound.delta)
