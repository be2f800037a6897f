"""What an account promises is never below what the definition of the event reaches, for every event and relation.

The laws of two neighbours are built here from what each event says was run: noise on a number that moves by its
sensitivity, scores that move, answers of one person, a sample with and without them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from scipy.special import ive

from support import independent as second
from tacit.accounting import account
from tacit.accounting import events as e
from tacit.errors import NoLaw
from tacit.guarantees import Neighbours

Law = Sequence[float]
Pairs = list[tuple[Law, Law]]
AT = (0.0, 0.1, 0.4, 0.9, 1.6)


def on_integers(weight: object, move: int, reach: int) -> tuple[list[float], list[float]]:
    span = range(-reach, reach + move + 1)
    p, q = ([weight(x) for x in span], [weight(x - move) for x in span])  # type: ignore[operator]
    total = math.fsum(weight(x) for x in range(-3 * reach, 3 * reach + 1))  # type: ignore[operator]
    return [x / total for x in p], [x / total for x in q]


def cut(density: object, breaks: Sequence[float]) -> list[float]:
    """Masses of a density that is constant between the breaks."""
    return [density((a + b) / 2) * (b - a) for a, b in itertools.pairwise(breaks)]  # type: ignore[operator]


def laplace(epsilon: float) -> tuple[list[float], list[float]]:
    """Laplace noise in cells of its quantiles: merging outputs only hides, so what is reached is a lower bound."""
    edges = [-40 / epsilon + k / 200 for k in range(int(80 / epsilon * 200))]

    def below(x: float, centre: float) -> float:
        t = epsilon * (x - centre)
        return math.exp(t) / 2 if t < 0 else 1 - math.exp(-t) / 2

    return tuple([below(b, c) - below(a, c) for a, b in itertools.pairwise(edges)] for c in (0.0, 1.0))  # type: ignore[return-value]


def gaussian(mu: float) -> tuple[list[float], list[float]]:
    edges = [-12 + k / 100 for k in range(2500)]
    return tuple(
        [
            0.5 * (math.erf((b - c) / math.sqrt(2)) - math.erf((a - c) / math.sqrt(2)))
            for a, b in itertools.pairwise(edges)
        ]
        for c in (0.0, mu)
    )  # type: ignore[return-value]


def staircase(epsilon: float, gamma: float) -> tuple[list[float], list[float]]:
    height = -math.expm1(-epsilon) / (2 * (gamma + math.exp(-epsilon) * (1 - gamma)))

    def density(x: float) -> float:
        k, rest = divmod(abs(x), 1.0)
        return height * math.exp(-epsilon * (k + (rest >= gamma)))

    steps = {s * (k + g) + move for k in range(60) for g in (0, gamma) for s in (1, -1) for move in (0, 1)}
    breaks = sorted(steps)
    return cut(density, breaks), cut(lambda x: density(x - 1), breaks)


def exponential(epsilon: float) -> Pairs:
    """Three candidates; the scores of some subsets move up by 1 and of others down."""
    pairs = []
    for moves in itertools.product((-1, 0, 1), repeat=3):
        before = [1 / 3] * 3
        weights = [math.exp(epsilon * m / 2) for m in moves]
        pairs.append((before, [w / sum(weights) for w in weights]))
    return pairs


def permute_and_flip(epsilon: float) -> Pairs:
    """Two candidates: the better one, or first the worse one by its coin. Scores d and 0, then d - 2 and 0."""

    def law(gap: float) -> list[float]:
        worse = math.exp(-epsilon * abs(gap) / 2) / 2
        return [1 - worse, worse] if gap >= 0 else [worse, 1 - worse]

    return [(law(d), law(d - 2)) for d in (0.0, 0.5, 1.0, 2.0, 3.0)]


def answers(epsilon: float, k: int) -> tuple[list[float], list[float]]:
    odds = [math.exp(epsilon), *[1.0] * (k - 1)]
    total = sum(odds)
    return [x / total for x in odds], [x / total for x in [odds[1], odds[0], *odds[2:]]]


def sets(epsilon: float, k: int, d: int) -> tuple[list[float], list[float]]:
    """d of k categories, a set with the truth in it e^epsilon times as likely as one without: truths 0 and 1."""
    each = list(itertools.combinations(range(k), d))
    laws = [[math.exp(epsilon) if x in s else 1.0 for s in each] for x in (0, 1)]
    return [w / sum(laws[0]) for w in laws[0]], [w / sum(laws[1]) for w in laws[1]]


TABLE = ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))
EVENTS: list[tuple[e.SimpleEvent, Pairs]] = [
    (e.LaplaceEvent(epsilon=1.0), [laplace(1.0)]),
    (e.GaussianEvent(noise_multiplier=2.0), [gaussian(0.5)]),
    (e.DiscreteLaplaceEvent(epsilon=1.0), [on_integers(lambda x: math.exp(-abs(x)), 1, 60)]),
    (
        e.DiscreteLaplaceEvent(epsilon=1.0, sensitivity=5),
        [on_integers(lambda x: math.exp(-abs(x) / 5), 5, 300)],
    ),
    (e.DiscreteGaussianEvent(noise_multiplier=1.0), [on_integers(lambda x: math.exp(-(x**2) / 2), 1, 30)]),
    (
        e.DiscreteGaussianEvent(noise_multiplier=0.5, sensitivity=3),
        [on_integers(lambda x: math.exp(-(x**2) / 4.5), 3, 40)],
    ),
    (
        e.SkellamEvent(noise_variance=2.0, sensitivity=2),
        [on_integers(lambda x: float(ive(abs(x), 2.0)), 2, 60)],
    ),
    (e.StaircaseEvent(epsilon=1.0, gamma=0.3), [staircase(1.0, 0.3)]),
    (e.ExponentialEvent(epsilon=1.0), exponential(1.0)),
    (e.PermuteAndFlipEvent(epsilon=1.0), permute_and_flip(1.0)),
    (e.RandomizedResponseEvent(epsilon=1.0), [answers(1.0, 2)]),
    (e.RandomizedResponseEvent(epsilon=1.0, categories=5), [answers(1.0, 5)]),
    (e.BalancedResponseEvent(epsilon=1.0, outcomes=20, supporting=8, shared=2), [sets(1.0, 5, 2)]),
    (e.PureEvent(epsilon=1.0), [second.randomized_response(1.0), laplace(1.0), *exponential(1.0)]),
    (e.ApproximateEvent(epsilon=1.0, delta=0.01), [second.worst_approximate(1.0, 0.01)]),
    (e.ConcentratedEvent(rho=0.125), [gaussian(0.5)]),
    (e.TabulatedEvent(p=TABLE[0], q=TABLE[1]), [TABLE]),
]
IDS = [f"{event.kind}-{index}" for index, (event, _) in enumerate(EVENTS)]


def reached(pairs: Pairs, epsilon: float) -> float:
    return max(second.both(p, q, epsilon) for p, q in pairs)


def holds(event: e.Event | Sequence[e.Event], pairs: Pairs, relation: Neighbours) -> None:
    """The promise at every epsilon, and at the delta that is reached there, is not below the definition."""
    for epsilon in AT:
        true = reached(pairs, epsilon)
        assert account(event, epsilon=epsilon, neighbours=relation).delta.high >= true * (1 - 1e-9) - 1e-12
    for delta in (1e-6, 0.01):
        promised = account(event, delta=delta, neighbours=relation).epsilon.high
        if math.isfinite(promised):
            assert reached(pairs, promised) <= delta * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("event", "pairs"), EVENTS, ids=IDS)
def test_an_account_is_not_below_its_event(event: e.SimpleEvent, pairs: Pairs, relation: Neighbours) -> None:
    holds(event, pairs, relation)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("event", "pairs"), EVENTS, ids=IDS)
def test_samples(event: e.SimpleEvent, pairs: Pairs, rate: float) -> None:
    """Poisson: the person is in the sample with this probability, or is not there at all. Without replacement: the
    sample holds the person or, otherwise, somebody else, here one whose data look like the first or the second."""

    def mixed(one: Law, other: Law) -> list[float]:
        return [rate * a + (1 - rate) * b for a, b in zip(one, other, strict=True)]

    removed = [(mixed(p, q), q) for p, q in [*pairs, *((q, p) for p, q in pairs)]]
    try:
        holds(e.PoissonSampledEvent(event=event, sampling_rate=rate), removed, Neighbours.ADD_OR_REMOVE)
    except NoLaw:
        assert event.kind == "concentrated"
    replaced = [(mixed(p, other), mixed(q, other)) for p, q in pairs for other in (p, q)]
    holds(e.SampledWithoutReplacementEvent(event=event, sampling_rate=rate), replaced, Neighbours.REPLACE_ONE)


SMALL = [
    k for k, (event, _) in enumerate(EVENTS) if event.kind in ("permute_and_flip", "tabulated", "approximate")
]


@pytest.mark.parametrize("relation", list(Neighbours))
def test_together(relation: Neighbours) -> None:
    """Two events: not below the product of their laws, not above the sum of their prices, not below either alone."""
    for i, j in itertools.combinations_with_replacement(SMALL, 2):
        (one, first), (other, last) = EVENTS[i], EVENTS[j]
        plan = [one, other]
        holds(plan, [second.product(a, b) for a in first for b in last], relation)
        both = account(plan, delta=0.02, neighbours=relation)
        parts = [account(x, delta=0.01, neighbours=relation).epsilon for x in plan]
        assert both.epsilon.high <= sum(part.high for part in parts) + 1e-3
        alone = [account(x, delta=0.02, neighbours=relation).epsilon for x in plan]
        assert both.epsilon.high >= max(part.low for part in alone) * (1 - 1e-12)
        twice = account(
            e.RepeatedEvent(event=e.ComposedEvent(events=tuple(plan)), times=2),
            delta=0.02,
            neighbours=relation,
        )
        assert twice.epsilon.high >= both.epsilon.low


@pytest.mark.parametrize("relation", list(Neighbours))
def test_to_know_more_costs_no_more(relation: Neighbours) -> None:
    """An event that says what was run is priced at most as the bound that it has."""
    for event, _ in EVENTS:
        epsilon = event.pure()
        for delta in (0.0, 1e-6, 0.01):
            own = account(event, delta=delta, neighbours=relation).epsilon.high
            if epsilon is not None:
                plain = account(e.PureEvent(epsilon=epsilon), delta=delta, neighbours=relation).epsilon.high
                assert own <= plain * (1 + 1e-12)
