"""Theorems against their definitions, by enumeration of small mechanisms; each test names its theorem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

import tacit
from support import independent as second
from tacit.guarantees.conditions import Indistinguishability
from tacit.mechanisms import Laplace, PermuteAndFlip, RangeTree, Score, Selection
from tacit.mechanisms.base import L1
from tacit.mechanisms.ranges import RangeAnswers
from tacit.mechanisms.tables import CellSums
from tacit.noise import SeededSource
from tacit.risk import decompose

AT = (0.0, 0.2, 0.5, 1.0, 2.0)
Pair = tuple[Sequence[float], Sequence[float]]


def random_pair(draw: np.random.Generator, size: int) -> Pair:
    p, q = (draw.dirichlet(np.full(size, 0.7)) for _ in range(2))
    return p.tolist(), q.tolist()


@pytest.mark.parametrize(("first", "last"), [((0.5, 0.1), (0.3, 0.05)), ((1.0, 0.0), (0.2, 0.2))])
def test_epsilons_and_deltas_add_also_adaptively(
    first: tuple[float, float], last: tuple[float, float]
) -> None:
    """Theorem `compose-approximate-basic`: the second mechanism may differ for each output of the first."""
    (e1, d1), (e2, d2) = first, last
    p, q = second.worst_approximate(e1, d1)
    one, other = second.worst_approximate(e2, d2), (second.randomized_response(e2))
    for chosen in itertools.product((one, other, one[::-1]), repeat=len(p)):
        after = [
            (a * x, b * y)
            for a, b, (u, v) in zip(p, q, chosen, strict=True)
            for x, y in zip(u, v, strict=True)
        ]
        both = ([a for a, _ in after], [b for _, b in after])
        stated = tacit.compose(
            tacit.Approximate(epsilon=e1, delta=d1), tacit.Approximate(epsilon=e2, delta=d2)
        )
        assert (stated.epsilon, stated.delta) == pytest.approx((e1 + e2, d1 + d2))
        assert second.both(*both, float(stated.epsilon)) <= float(stated.delta) + 1e-12


def test_squares_of_mu_add() -> None:
    """Theorem `compose-gdp`: two normal noises in cells, all pairs of cells, against the curve of the root."""
    edges = np.linspace(-9, 11, 401)

    def cells(mu: float) -> Pair:
        low = [np.array([math.erf((x - m) / math.sqrt(2)) for x in edges]) for m in (0.0, mu)]
        return (np.diff(low[1]) / 2).tolist(), (np.diff(low[0]) / 2).tolist()

    p, q = second.product(cells(0.6), cells(0.8))
    stated = tacit.compose(tacit.GaussianDP(mu=0.6), tacit.GaussianDP(mu=0.8))
    for epsilon in AT:
        reached = second.hockey_stick(p, q, epsilon)
        assert reached <= stated.delta_at(epsilon) + 1e-9
        assert reached == pytest.approx(stated.delta_at(epsilon), rel=0.01)
    assert stated.mu == pytest.approx(1.0)


def exceeds(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    """Pr_P[P > e^epsilon Q]."""
    return math.fsum(a for a, b in zip(p, q, strict=True) if a > math.exp(epsilon) * b * (1 + 1e-12))


def test_pointwise_losses_compose() -> None:
    """Theorem `compose-pointwise`: who keeps within both losses keeps within their sum."""
    draw = np.random.default_rng(5)
    for _ in range(200):
        pairs = [random_pair(draw, 4) for _ in range(2)]
        levels = draw.uniform(0.0, 1.5, 2)
        tails = [exceeds(*pair, float(e)) for pair, e in zip(pairs, levels, strict=True)]
        if max(tails) >= 1:
            continue
        stated = tacit.compose(
            *(
                tacit.guarantees.Pointwise(epsilon=float(e), delta=t)
                for e, t in zip(levels, tails, strict=True)
            )
        )
        assert exceeds(*second.product(*pairs), float(stated.epsilon)) <= float(stated.delta) + 1e-12
        assert float(stated.delta) == pytest.approx(1 - (1 - tails[0]) * (1 - tails[1]))


def bounded(epsilon: float, advantage: float, kind: str) -> tacit.Guarantee:
    condition = tacit.guarantees.BoundedAdversary(
        assumption="A", advantage=advantage, definition=Indistinguishability(kind)
    )
    return tacit.Guarantee(bound=tacit.Pure(epsilon=epsilon), unit=tacit.rows(), condition=condition)


@pytest.mark.parametrize("advantages", [(0.05, 0.1), (0.2, 0.01)])
def test_advantages_of_bounded_adversaries_add_up(advantages: tuple[float, float]) -> None:
    """Theorem `compose-bounded-adversary`, where the adversaries are all sets of outputs: IND is then (epsilon, a)."""
    a1, a2 = advantages
    for e1, e2 in ((0.4, 0.4), (0.4, 1.0)):
        both = tacit.compose(bounded(e1, a1, "ind"), bounded(e2, a2, "ind"), adaptive=False)
        pair = second.product(second.worst_approximate(e1, a1), second.worst_approximate(e2, a2))
        assert isinstance(both.condition, tacit.guarantees.BoundedAdversary)
        assert both.bound.epsilon(0.0) == pytest.approx(e1 + e2)
        assert second.both(*pair, e1 + e2) <= both.condition.advantage + 1e-12
    # SIM: laws within a of private ones; products of them are within the sum.
    p, q = second.randomized_response(0.5)
    near = [[p[0] + a, p[1] - a] for a in advantages]
    joint = [x * y for x in near[0] for y in near[1]]
    ideal = [x * y for x in p for y in p]
    apart = 0.5 * math.fsum(abs(x - y) for x, y in zip(joint, ideal, strict=True))
    whole = tacit.compose(bounded(0.5, a1, "sim"), bounded(0.5, a2, "sim")).condition
    assert isinstance(whole, tacit.guarantees.BoundedAdversary)
    assert apart <= whole.advantage + 1e-12
    assert q[0] < p[0]


def chain(epsilon: float, delta: float, size: int) -> list[list[float]]:
    """Laws of `size` + 1 data sets, each (epsilon, delta) from the next in the worst way: P falls as fast as it may."""
    laws = [[1.0, 0.0]]
    for _ in range(size):
        top = max(0.0, math.exp(-epsilon) * (laws[-1][0] - delta))
        laws.append([top, 1 - top])
    return laws


@pytest.mark.parametrize(("epsilon", "advantage", "size"), [(0.3, 0.02, 2), (0.5, 0.05, 3), (0.1, 0.1, 4)])
def test_groups_of_bounded_adversaries(epsilon: float, advantage: float, size: int) -> None:
    """Theorem `group-bounded-adversary`: a chain of neighbours reaches what is stated, where nothing is cut at 0."""
    grown = bounded(epsilon, advantage, "ind").group(size)
    laws = chain(epsilon, advantage, size)
    reached = second.hockey_stick(laws[0], laws[-1], epsilon * size)
    assert isinstance(grown.condition, tacit.guarantees.BoundedAdversary)
    assert reached <= grown.condition.advantage + 1e-12
    assert reached == pytest.approx(grown.condition.advantage, rel=1e-9)
    assert (
        bounded(epsilon, advantage, "sim").group(size).condition
        == bounded(epsilon, advantage, "sim").condition
    )


def test_what_holds_always_holds_under_conditions() -> None:
    """Theorems `always-implies-random-data` and `always-implies-bounded-adversary`: of private laws no pair
    of neighbours fails, hence none that is drawn; and no set of outputs tells more, hence none that is computed."""
    laws = {x: second.randomized_response(0.7)[x] for x in (0, 1)}
    weights = {0: 0.9, 1: 0.1}
    failing = sum(
        weights[x] * weights[y]
        for x, y in itertools.product(laws, repeat=2)
        if second.both(laws[x], laws[y], 0.7) > 1e-12
    )
    assert failing == 0
    always = tacit.Guarantee(bound=tacit.Pure(epsilon=0.7), unit=tacit.rows())
    drawn = tacit.Guarantee(
        bound=tacit.Pure(epsilon=0.7), unit=tacit.rows(), condition=tacit.guarantees.RandomData(gamma=0.0)
    )
    assert always.implies(drawn).chain == ("always-implies-random-data",)
    for sets in ([0], [1], [0, 1]):
        gain = sum(laws[0][s] for s in sets) - math.exp(0.7) * sum(laws[1][s] for s in sets)
        assert gain <= 1e-12
    assert always.implies(bounded(0.7, 0.0, "ind"))
    assert not drawn.implies(always)


def test_densities_are_compared_point_by_point() -> None:
    """Theorem `density-form`: all sets are within e^epsilon if and only if all points are."""
    draw = np.random.default_rng(11)
    for _ in range(300):
        p, q = random_pair(draw, 5)
        points = max(math.log(a / b) for a, b in zip(p, q, strict=True))
        sets = max(
            math.log(sum(p[i] for i in s) / sum(q[i] for i in s))
            for k in range(1, 6)
            for s in itertools.combinations(range(5), k)
        )
        assert sets == pytest.approx(points)


def test_divergences_between_orders_lie_below_chords() -> None:
    """Theorem `renyi-interpolation`: of random tables, what is stated between two orders is not below the truth."""
    draw = np.random.default_rng(2)
    for _ in range(100):
        p, q = random_pair(draw, 3)
        low, high = 2.0, float(draw.uniform(2.5, 20))
        known = tacit.Renyi(orders=(low, high), epsilons=(second.renyi(p, q, low), second.renyi(p, q, high)))
        for order in (1.3, low, (low + high) / 2, 0.9 * high + 0.1 * low, high):
            assert second.renyi(p, q, order) <= known.renyi(order) * (1 + 1e-9) + 1e-12


def test_the_divergence_of_a_rho() -> None:
    """Theorem `zcdp-to-renyi`: Gaussian noise of mu has rho = mu^2/2, and reaches order times rho at every order."""
    for mu, order in itertools.product((0.3, 1.0), (1.5, 2.0, 8.0)):
        x = np.linspace(-12 / 1, 12 + order * mu, 200_001)
        logs = order * (-((x - mu) ** 2) / 2) + (order - 1) * x**2 / 2
        integral = float(np.trapezoid(np.exp(logs), x)) / math.sqrt(2 * math.pi)
        stated = tacit.convert(tacit.Concentrated(rho=mu**2 / 2), tacit.Renyi, orders=(order,)).renyi(order)
        assert stated == pytest.approx(math.log(integral) / (order - 1), rel=1e-6)


def test_noise_from_a_stream_is_as_far_off_as_the_stream() -> None:
    """Theorem `cipher-noise` for a small stream: whatever is computed from its words, no output is told better from
    the ideal one than the words are from uniform ones: the ideal mechanism is a stand-in for both neighbours."""
    words, keys = 16, 11
    stream = np.bincount([(7 * k * k + 3 * k + 5) % words for k in range(keys)], minlength=words) / keys
    advantage = 0.5 * np.abs(stream - 1 / words).sum()
    noise = np.array([bin(w).count("1") for w in range(words)])
    for data in (0, 1):
        real, ideal = (
            np.bincount(data + noise, weights=law, minlength=6) for law in (stream, np.full(words, 1 / words))
        )
        assert 0.5 * np.abs(real - ideal).sum() <= advantage + 1e-12
    assert tacit.noise.CryptographicSource().publishable  # type: ignore[attr-defined]


def test_who_is_in_a_crowd_can_be_exchanged() -> None:
    """Theorem `crowd-blending-histogram`, over all tables of up to five rows in three cells."""
    k = 3

    def published(rows: Sequence[int]) -> tuple[int, ...]:
        counts = [rows.count(c) for c in range(3)]
        return tuple(c if c >= k else 0 for c in counts)

    tables = [rows for n in range(1, 6) for rows in itertools.product(range(3), repeat=n)]
    for rows in tables:
        for i, cell in enumerate(rows):
            alike = [
                j for j, other in enumerate(rows) if other == cell
            ]  # exchanging equal rows changes no table
            without = published(rows[:i] + rows[i + 1 :])
            assert len(alike) >= k or published(rows) == without


def test_errors_against_the_population() -> None:
    """Theorem `risk-decomposition`: the error of a noisy sample mean, over all samples and all noise, exactly."""
    population, n = (0.0, 0.0, 1.0), 2
    noise = {-0.5: 0.25, 0.0: 0.5, 0.5: 0.25}
    truth = sum(population) / 3
    privacy = sum(w * abs(z) for z, w in noise.items())
    means = [sum(s) / n for s in itertools.product(population, repeat=n)]
    sampling = sum(abs(m - truth) for m in means) / len(means)
    whole = sum(w * abs(m + z - truth) for m in means for z, w in noise.items()) / len(means)
    assert whole <= decompose(privacy=privacy, sampling=sampling).total + 1e-12
    assert whole > max(privacy, sampling)


# --- mechanisms that hand their noise on -------------------------------------------------------------------
def test_levels_of_a_range_tree_move_as_their_noise_says() -> None:
    """RangeTree: one row more moves one node a level by 1; the epsilons of the levels add up to the bound."""
    tree = RangeTree.plan(cells=8, epsilon=1, branching=2)
    counts = np.array([3, 0, 4, 1, 1, 5, 9, 2])
    cost = 0.0
    for level, mechanism in enumerate(tree.mechanisms):
        assert isinstance(mechanism, Laplace)
        width = 8 >> level
        for cell in range(8):
            more = counts.copy()
            more[cell] += 1
            sums = [c.reshape(-1, width).sum(axis=1) for c in (more, counts)]
            assert np.abs(sums[0] - sums[1]).sum() == 1
        cost += 1 / float(mechanism.noise_scale)
    stated = RangeAnswers(noise=tree, ranges=np.array([[0, 3], [2, 6]]), cells=8).bound
    assert cost == pytest.approx(1, rel=1e-9)
    assert stated.epsilon(0.0) >= cost * (1 - 1e-12)


def test_sums_of_noisy_cells_are_sums_of_what_was_noised() -> None:
    """CellSums and RangeAnswers: with the same noise, answers differ exactly as the cells do; nothing else is added, so
    that the cells' noise, of which one row moves one cell by 1, is all that must be private."""
    noise = Laplace.for_target(epsilon=1, sensitivity=L1(1))
    counts, more = np.array([3, 0, 4, 1]), np.array([3, 0, 5, 1])
    cells = CellSums(noise=noise, sums=(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    ranges = RangeAnswers(noise=noise, ranges=np.array([[0, 1], [1, 3], [2, 2]]), cells=4)
    for mechanism, moved in ((cells, [[0, 1], [1, 0]]), (ranges, [[0, 1, 1]])):
        one, other = (mechanism.release(c, source=SeededSource(seed=3)).values for c in (more, counts))
        assert [np.subtract(a, b).tolist() for a, b in zip(one, other, strict=True)] == moved
        assert mechanism.bound.epsilon(0.0) >= 1 / float(noise.noise_scale)


def test_a_selection_is_the_choice_of_its_method() -> None:
    """Selection: the names of what permute-and-flip chooses with the same noise; its claim is that of the method."""
    scores = {"a": 3, "b": 1, "c": 4}
    named = Selection(epsilon=1, sensitivity=Score(1), candidates=list(scores))
    plain = PermuteAndFlip(epsilon=1, sensitivity=Score(1))
    for seed in range(40):
        index = plain.choose(list(scores.values()), source=SeededSource(seed=seed)).index
        assert named.choose(scores, source=SeededSource(seed=seed)).name == list(scores)[index]
    assert named.bound == plain.bound
