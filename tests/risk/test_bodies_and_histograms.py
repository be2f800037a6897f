"""Theorems `risk-bodies` and `histogram-bayes`, by programs that the test writes itself."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.errors import InvalidInput
from tacit.risk import histogram_bayes, risk_body, risk_shadow
from tacit.risk.bodies import RiskBody


def furthest(cost: np.ndarray, edges: list[tuple[int, int]], epsilon: float, delta: float) -> float:
    """min sum cost Q over all (epsilon, delta)-private matrices, from the definition: slacks for every event."""
    states, outputs = cost.shape
    pairs = [*edges, *((b, a) for a, b in edges)]
    size = states * outputs + len(pairs) * outputs
    left: list[np.ndarray] = []
    right: list[float] = []
    for k, (i, j) in enumerate(pairs):
        total = np.zeros(size)
        for r in range(outputs):
            row = np.zeros(size)
            slack = states * outputs + k * outputs + r
            row[i * outputs + r], row[j * outputs + r], row[slack] = 1.0, -math.exp(epsilon), -1.0
            total[slack] = 1.0
            left.append(row)
            right.append(0.0)
        left.append(total)
        right.append(delta)
    whole = np.zeros((states, size))
    for x in range(states):
        whole[x, x * outputs : (x + 1) * outputs] = 1.0
    full = np.concatenate([cost.ravel(), np.zeros(size - cost.size)])
    found = linprog(full, A_ub=np.array(left), b_ub=right, A_eq=whole, b_eq=np.ones(states), method="highs")
    return float(found.fun)


def support(points: np.ndarray, u: tuple[float, float]) -> float:
    return float((points @ np.array(u)).max())


def agrees(body: RiskBody, dice: random.Random) -> None:
    n, (x, y) = body.n, body.counts
    k = np.arange(n + 1)
    table = np.abs(k[:, None] - k[None, :]).astype(float)
    edges = [(i, i + 1) for i in range(n)]
    for _ in range(4):
        angle = dice.uniform(0, 2 * math.pi)
        u = (math.cos(angle), math.sin(angle))
        cost = np.zeros_like(table)
        cost[x], cost[y] = -u[0] * table[x], -u[1] * table[y]
        most = -furthest(cost, edges, body.epsilon, body.delta)
        assert support(body.inner, u) <= most + 1e-7 * n
        assert most <= support(body.outer, u) + 1e-7 * n
        # Every edge was tried: the inner polygon is the body, to the solver's accuracy.
        assert body.settled
        assert support(body.inner, u) >= most - 1e-4 * n


@pytest.mark.parametrize("seed", range(14))
def test_random_bodies_in_random_directions(seed: int) -> None:
    """14 bodies, 4 directions each."""
    dice = random.Random(seed)
    n = dice.randint(1, 5)
    counts = tuple(dice.sample(range(n + 1), 2))
    delta = dice.choice([0.0, 0.0, 0.01, 0.1])
    agrees(
        risk_shadow(n=n, epsilon=dice.choice([0.2, 0.7, 1.5]), delta=delta, counts=(counts[0], counts[1])),
        dice,
    )


def test_the_figure_of_the_thesis_is_the_smallest_case() -> None:
    for epsilon in (0.05, 0.5, 1, 5):
        body, known = risk_shadow(n=1, epsilon=epsilon), risk_body(epsilon=epsilon)
        for u in ((1.0, 0.3), (-1.0, -1.0), (0.2, -1.0), (-0.4, 0.9)):
            assert support(body.inner, u) == pytest.approx(support(known, u), abs=1e-6)
    assert len(risk_shadow(n=2, epsilon=1).inner) == 6
    assert len(risk_shadow(n=2, epsilon=1, delta=0.05).inner) == 10


def test_a_body_is_drawn(tmp_path: Path) -> None:
    from tacit.report.figures import draw_risk_body

    draw_risk_body(risk_shadow(n=2, epsilon=1, delta=0.1), tmp_path / "body.png")
    assert (tmp_path / "body.png").stat().st_size > 5000


def histograms(n: int, cells: int) -> list[tuple[int, ...]]:
    return [h for h in itertools.product(range(n + 1), repeat=cells) if sum(h) == n]


def best_histogram(n: int, chances: list[float], epsilon: float) -> float:
    """The exact Bayes risk: a program over all histograms as states and outputs."""
    states = histograms(n, len(chances))
    outputs = list(itertools.product(range(n + 1), repeat=len(chances)))
    prior = [
        math.factorial(n) * math.prod(p**k / math.factorial(k) for p, k in zip(chances, h, strict=True))
        for h in states
    ]
    cost = np.array(
        [
            [w * sum(abs(a - b) for a, b in zip(h, r, strict=True)) for r in outputs]
            for h, w in zip(states, prior, strict=True)
        ]
    )
    edges = [
        (i, j)
        for i, j in itertools.combinations(range(len(states)), 2)
        if sum(abs(a - b) for a, b in zip(states[i], states[j], strict=True)) == 2
    ]
    return furthest(cost, edges, epsilon, 0.0)


@pytest.mark.parametrize("seed", range(50))
def test_the_exact_bayes_risk_lies_between_the_ends(seed: int) -> None:
    dice = random.Random(seed)
    cells = 2 if seed % 3 else 3
    n = dice.randint(1, 4) if cells == 2 else dice.randint(1, 2)
    parts = [dice.randint(1, 5) for _ in range(cells)]
    chances = [p / sum(parts) for p in parts]
    epsilon = dice.choice([0.1, 0.5, 1.0, 2.0])
    found = histogram_bayes(n=n, epsilon=epsilon, probabilities=chances)
    exact = best_histogram(n, chances, epsilon)
    assert found.lower_bound <= exact + 1e-7
    assert exact <= found.risk + 1e-7
    if cells == 2:
        # One pair is all there is: the lower end is the risk itself.
        assert found.lower_bound == pytest.approx(exact, rel=1e-5)


def test_real_sizes() -> None:
    many = histogram_bayes(n=10_000, cells=50, epsilon=0.1)
    assert many.lower_bound < many.risk < 1.6 * many.lower_bound
    survey = histogram_bayes(n=21_574, cells=1 << 16, epsilon=1)
    assert survey.mechanism == "the same guess whatever the data"
    assert survey.ratio < 2.2
    uneven = histogram_bayes(n=500, epsilon=1, probabilities=[0.5, 0.3, 0.1, 0.06, 0.04])
    assert 0 < uneven.lower_bound < uneven.risk < uneven.constant


@pytest.mark.parametrize(
    "bad",
    [
        lambda: risk_shadow(n=41, epsilon=1),
        lambda: risk_shadow(n=3, epsilon=1, counts=(1, 1)),
        lambda: risk_shadow(n=3, epsilon=1, counts=(0, 4)),
        lambda: risk_shadow(n=3, epsilon=1, delta=1),
        lambda: histogram_bayes(n=10, epsilon=1),
        lambda: histogram_bayes(n=10, epsilon=1, cells=2, probabilities=[0.5, 0.5]),
        lambda: histogram_bayes(n=10, epsilon=1, probabilities=[0.5, 0.4]),
        lambda: histogram_bayes(n=10, epsilon=1, probabilities=[1.0, 0.0]),
        lambda: histogram_bayes(n=10, epsilon=1, cells=1 << 21),
        lambda: histogram_bayes(n=10**7, epsilon=1, cells=10),
    ],
)
def test_what_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput):
        bad()
