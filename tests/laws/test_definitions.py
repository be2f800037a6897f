"""Statements about deltas, adaptive choices, groups, stand-ins and oracles, each from its definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import tacit
from support import independent as second
from tacit.guarantees import BoundedAdversary, Indistinguishability
from tacit.guarantees.laws.conditions import sim_to_ind
from tacit.mechanisms import HadamardResponse, RandomizedResponse, SubsetSelection
from tacit.noise import DiscreteStaircase
from tacit.parties import black_box_delta
from tacit.pld import ShuffledPair

AT = (0.0, 0.1, 0.3, 0.8, 1.5)


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1.0, 0.05)])
def test_samples_of_the_worst_pair_with_a_delta(rate: float, epsilon: float, delta: float) -> None:
    """poisson-approximate, without-replacement-approximate: the sample holds the unit with this chance, or another."""
    p, q = (np.array(x) for x in second.worst_approximate(epsilon, delta))
    bound = tacit.Approximate(epsilon=epsilon, delta=delta)
    for scheme, pairs in (
        ("poisson", [(rate * p + (1 - rate) * q, q)]),
        (
            "without-replacement",
            [(rate * p + (1 - rate) * r, rate * q + (1 - rate) * r) for r in (p, q)],
        ),
    ):
        told = tacit.subsample(bound, rate=rate, scheme=scheme)
        at = math.log1p(rate * math.expm1(epsilon))
        for one, two in pairs:
            for e in (*AT, at):
                assert second.both(one.tolist(), two.tolist(), e) <= told.delta_at(e) + 1e-12
        worst = max(second.both(one.tolist(), two.tolist(), at) for one, two in pairs)
        assert worst >= 0.99 * rate * delta  # reached


@pytest.mark.parametrize("parts", [[(0.5, 0.01)] * 3, [(0.2, 0.0), (0.7, 0.03), (1.0, 1e-3)]])
@pytest.mark.parametrize("slack", [1e-3, 0.05])
def test_advanced_composition_with_deltas(parts: list[tuple[float, float]], slack: float) -> None:
    """compose-approximate-advanced: above the enumerated product of the worst pairs."""
    pair: tuple[list[float], list[float]] = ([1.0], [1.0])
    for epsilon, delta in parts:
        pair = second.product(pair, second.worst_approximate(epsilon, delta))
    bounds = [tacit.Approximate(epsilon=e, delta=d) for e, d in parts]
    told = tacit.compose(*bounds, law="advanced", slack=slack)
    for e in (*AT, float(told.epsilon), 3.0):  # type: ignore[attr-defined]
        assert told.delta_at(e) >= second.both(*pair, e) - 1e-12
    lost = 1 - math.prod(1 - d for _, d in parts)
    assert told.delta >= lost  # type: ignore[attr-defined]


def test_pure_composition_of_choices_made_as_one_goes() -> None:
    """compose-pure: the second mechanism depends on the first answer, and the sum of the epsilons is reached."""
    first, menu = 0.4, (0.3, 0.9)
    laws = [second.randomized_response(e) for e in (first, *menu)]
    joint = [[laws[0][side][a] * laws[1 + a][side][b] for a in (0, 1) for b in (0, 1)] for side in (0, 1)]
    told = tacit.compose(tacit.Pure(epsilon=first), tacit.Pure(epsilon=max(menu)))
    worst = max(second.renyi(joint[0], joint[1], math.inf), second.renyi(joint[1], joint[0], math.inf))
    assert worst == pytest.approx(float(told.epsilon), rel=1e-12)  # type: ignore[attr-defined]
    for e in AT:
        assert second.both(*joint, e) <= told.delta_at(e) + 1e-12


@pytest.mark.parametrize(("epsilon", "delta", "size"), [(0.3, 1e-3, 2), (0.5, 1e-3, 3), (0.1, 1e-4, 5)])
def test_groups_reach_what_is_stated(epsilon: float, delta: float, size: int) -> None:
    """group-privacy: a chain of data sets, each as far from the one before as (epsilon, delta) lets it."""
    chance = 0.0
    for _ in range(size):
        before, chance = chance, math.exp(epsilon) * chance + delta
        here, there = [chance, 1 - chance], [before, 1 - before]
        assert second.both(here, there, epsilon) <= delta + 1e-15
    told = tacit.group(tacit.Approximate(epsilon=epsilon, delta=delta), size=size)
    assert float(told.epsilon) == pytest.approx(size * epsilon)  # type: ignore[attr-defined]
    reached = second.both([chance, 1 - chance], [0.0, 1.0], size * epsilon)
    assert reached == pytest.approx(float(told.delta), rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("epsilon", "d"), [(3.0, 6), (1.0, 4)])
def test_no_private_noise_has_a_smaller_mean_error_than_the_staircase(epsilon: float, d: int) -> None:
    """staircase-mechanism: the linear program over all laws on -60..60 that are epsilon-private under d steps."""
    from scipy.optimize import linprog

    far = 60 if epsilon < 2 else 40
    places = np.arange(-far, far + 1)
    rows = []
    for i, j in itertools.permutations(range(len(places)), 2):
        if abs(i - j) <= d:
            row = np.zeros(len(places))
            row[i], row[j] = 1.0, -math.exp(epsilon)
            rows.append(row)
    best = linprog(
        np.abs(places), A_ub=np.array(rows), b_ub=np.zeros(len(rows)),
        A_eq=np.ones((1, len(places))), b_eq=[1.0], bounds=(0, 1), method="highs",
    )  # fmt: skip
    stairs = DiscreteStaircase(epsilon=epsilon, sensitivity=d).mean_absolute
    # What is cut off at the ends changes the optimum by e^(-epsilon far/d) or so.
    assert stairs <= best.fun * (1 + 1e-3) + 1e-3


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("advantage", [0.0, 0.01, 0.1])
def test_a_stand_in_for_each_pair_gives_ind(epsilon: float, advantage: float) -> None:
    """sim-ind-order: laws within the advantage of a private pair, the test that gains most; the factor is needed."""
    p, q = second.randomized_response(epsilon)
    told = sim_to_ind(
        BoundedAdversary(assumption="none", advantage=advantage), tacit.Pure(epsilon=epsilon)
    ).advantage
    here = [min(1.0, p[0] + advantage), max(0.0, p[1] - advantage)]
    there = [max(0.0, q[0] - advantage), min(1.0, q[1] + advantage)]
    gained = second.hockey_stick(here, there, epsilon)
    assert gained <= told + 1e-12
    if q[0] >= advantage and p[1] >= advantage:
        assert gained == pytest.approx(told, abs=1e-12)


def test_no_laws_near_a_private_pair_gain_more_and_nothing_leads_back() -> None:
    """sim-ind-order: pairs of three outcomes that are (epsilon, delta)-close, each moved by the advantage in every
    direction; the guarantee says so itself, and never that IND is SIM."""
    draw = np.random.default_rng(5)
    tightest = 0.0
    for _ in range(40):
        p, q = draw.dirichlet((1, 1, 1), size=2)
        epsilon, advantage = float(draw.uniform(0.05, 1.5)), float(draw.uniform(0, 0.2))
        delta = second.both(p, q, epsilon)
        told = sim_to_ind(
            BoundedAdversary(assumption="none", advantage=advantage), tacit.Pure(epsilon=epsilon)
        ).advantage
        for i, j in itertools.permutations(range(3), 2):
            here, there = p.copy(), q.copy()
            move, back = min(advantage, here[j]), min(advantage, there[i])
            here[i], here[j] = here[i] + move, here[j] - move
            there[i], there[j] = there[i] - back, there[j] + back
            gained = second.hockey_stick(here, there, epsilon) - delta
            assert gained <= told + 1e-12
            tightest = max(tightest, gained / told)
    assert tightest > 0.5

    def promise(definition: Indistinguishability, advantage: float) -> tacit.Guarantee:
        condition = BoundedAdversary(assumption="none", advantage=advantage, definition=definition)
        return tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows(), condition=condition)

    sim, ind, a = Indistinguishability.SIM, Indistinguishability.IND, 1e-6
    enough = (1 + math.e) * a * (1 + 1e-9)
    assert promise(sim, a).implies(promise(ind, enough))
    assert not promise(sim, a).implies(promise(ind, enough * 0.99))
    assert not promise(ind, 0.0).implies(promise(sim, 0.5))
    assert not promise(ind, a).implies(promise(sim, a))


@pytest.mark.parametrize("inverted", [0.3, 0.55, 0.8])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_a_mechanism_that_breaks_whenever_its_reduction_inverts(asked: int, inverted: float) -> None:
    """black-box-oracle, whole: F tells the data wherever R inverts with more than p, and is private elsewhere, the most
    that the reduction allows. With a random function of two bits drawn inside, it has the stated delta."""
    size, epsilon = 4, 0.7
    p, q = second.randomized_response(epsilon)
    laws = np.zeros((2, 4))
    tables = list(itertools.product(range(size), repeat=size))
    broken = 0
    for table in tables:
        right = 0
        for u in range(size):
            hit = next((v for v in range(asked) if table[v] == table[u]), asked)
            right += table[hit] == table[u]
        told = right / size > inverted
        broken += told
        # outcomes 0, 1: an answer of randomised response; 2, 3: the bit itself
        laws[0] += np.array([0, 0, 1, 0]) if told else np.array([*p, 0, 0])
        laws[1] += np.array([0, 0, 0, 1]) if told else np.array([*q, 0, 0])
    laws /= len(tables)
    stated = black_box_delta(delta=0.0, advantage=0.0, queries=asked, bits=2, inverted=inverted)
    assert second.both(laws[0], laws[1], epsilon) == pytest.approx(broken / len(tables))
    assert broken / len(tables) <= stated
    more = black_box_delta(delta=0.01, advantage=0.02, queries=asked, bits=20, inverted=inverted)
    assert Fraction(more) >= Fraction(0.01) + Fraction(0.02) + Fraction(
        2 * (asked + 1), 2**20 - asked
    ) / Fraction(inverted)
    assert more == pytest.approx(0.03 + 2 * (asked + 1) / ((2**20 - asked) * inverted), rel=1e-12)


@pytest.mark.parametrize("bits", [1, 2])
def test_a_random_function_is_rarely_inverted(bits: int) -> None:
    """black-box-oracle: the step of its proof, by all functions of one or two bits, beside the stated addend."""
    size = 2**bits
    for asked in range(size):
        right, total = Fraction(0), 0
        for table in itertools.product(range(size), repeat=size):
            for u in range(size):
                # It asks `asked` places in turn and answers with a place of the right image, or with the next one.
                hit = next((v for v in range(asked) if table[v] == table[u]), asked)
                right += table[hit] == table[u]
                total += 1
        chance = right / total
        assert chance <= Fraction(2 * (asked + 1), size - asked)
        stated = black_box_delta(delta=0.0, advantage=0.0, queries=asked, bits=bits, inverted=1.0)
        assert chance <= Fraction(stated)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_shuffled_answers_at_small_and_large_epsilons(epsilon: float) -> None:
    """shuffled-responses: one, two and more people, all data of the others, both orders, all three designs."""
    from pld.test_shuffled import parities, response, subsets, worst

    steps = (0.0, 1e-6, epsilon * 0.1, epsilon * 0.5, epsilon * 0.999)
    cases = [(response(epsilon, k), n, {"outcomes": k}) for k, n in ((2, 1), (2, 2), (2, 7), (3, 4), (5, 2))]
    cases += [
        (
            subsets(epsilon, k, d),
            n,
            {"outcomes": k * (k - 1), "supporting": d * (k - 1), "shared": d * (d - 1)},
        )
        for k, d, n in ((3, 2, 4), (4, 3, 3), (5, 2, 2))
    ]
    cases += [
        (parities(epsilon, k), n, {"outcomes": 4, "supporting": 2, "shared": 1}) for k, n in ((2, 4), (5, 2))
    ]
    for rows, people, design in cases:
        true = worst(rows, people, steps)
        for made in (design, {}):
            pair = ShuffledPair(epsilon=epsilon, people=people, **made)
            for e, value in zip(steps, true, strict=True):
                assert pair.hockey_stick(e).high >= value * (1 - 1e-11)


@pytest.mark.parametrize(("epsilon", "k", "n"), [(0.2, 3, 25), (1.0, 2, 40), (1.0, 12, 30), (4.0, 5, 35)])
@pytest.mark.parametrize("kind", [RandomizedResponse, SubsetSelection, HadamardResponse])
def test_intervals_cover_exactly(kind, epsilon: float, k: int, n: int) -> None:
    """local-intervals: the chance that an interval holds the true count, summed over what can be observed."""
    mechanism = kind(epsilon=epsilon, categories=k)
    p, q, _ = mechanism._chances()
    law = mechanism.law(people=n)
    low, high = law.intervals(np.arange(n + 1), 0.05)

    def binomial(m: int, chance: float) -> list[float]:
        return [math.comb(m, i) * chance**i * (1 - chance) ** (m - i) for i in range(m + 1)]

    for count in range(n + 1):
        seen = np.convolve(binomial(count, p), binomial(n - count, q))
        assert seen[(low <= count) & (count <= high)].sum() >= 0.95 - 1e-12
