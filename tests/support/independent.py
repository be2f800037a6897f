"""Second opinions, written from the definitions: pairs of distributions and their divergences.

Nothing here imports tacit. A pair is two lists of probabilities, or two densities to integrate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy import integrate


def hockey_stick(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    """sup over events of P(S) - e^epsilon Q(S), for tabulated distributions."""
    return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def both(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    """The larger of the two directions."""
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


def renyi(p: Sequence[float], q: Sequence[float], order: float) -> float:
    """D_order(P||Q) of tabulated distributions with full support."""
    if math.isinf(order):
        return max(math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)
    total = math.fsum(b * (a / b) ** order for a, b in zip(p, q, strict=True))
    return math.log(total) / (order - 1)


def randomized_response(epsilon: float) -> tuple[list[float], list[float]]:
    """A bit told truly with odds e^epsilon."""
    top = 1 / (1 + math.exp(-epsilon))
    low = 1 / (1 + math.exp(epsilon))
    return [top, low], [low, top]


def worst_approximate(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Give the data away with probability delta, else randomised response."""
    p, q = randomized_response(epsilon)
    return (
        [delta, 0.0, *((1 - delta) * x for x in p)],
        [0.0, delta, *((1 - delta) * x for x in q)],
    )


def integrated_hockey_stick(
    p: Callable[[float], float], q: Callable[[float], float], epsilon: float, points: Sequence[float]
) -> float:
    """The integral of (p - e^epsilon q)+ by adaptive quadrature, split at the given points."""
    scale = math.exp(epsilon)
    total = 0.0
    for left, right in pairwise(points):
        value, _ = integrate.quad(
            lambda x: max(0.0, p(x) - scale * q(x)), left, right, limit=400, epsabs=1e-14
        )
        total += value
    return total


def gaussian_hockey_stick(mu: float, epsilon: float) -> float:
    """Telling N(mu, 1) from N(0, 1), by integrating the densities."""
    edge = epsilon / mu + mu / 2  # where the likelihood ratio is e^epsilon

    def density(x: float, m: float) -> float:
        return math.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)

    return integrated_hockey_stick(
        lambda x: density(x, mu), lambda x: density(x, 0.0), epsilon, [edge, edge + 3, edge + 9, edge + 40]
    )


def laplace_hockey_stick(epsilon_of_noise: float, epsilon: float) -> float:
    """Telling Laplace noise of scale 1/epsilon_of_noise around 1 from around 0."""
    b = 1 / epsilon_of_noise

    def density(x: float, m: float) -> float:
        return math.exp(-abs(x - m) / b) / (2 * b)

    return integrated_hockey_stick(
        lambda x: density(x, 1.0), lambda x: density(x, 0.0), epsilon, [-60 * b, 0.0, 0.5, 1.0, 1 + 60 * b]
    )


def best_power(p: Sequence[float], q: Sequence[float], size: float) -> float:
    """Neyman-Pearson: the power of the best randomised test of this size of Q against P."""
    order = np.argsort([-(a / b) if b > 0 else -math.inf for a, b in zip(p, q, strict=True)])
    left, total = size, 0.0
    for index in order:
        if q[index] <= left:
            total, left = total + p[index], left - q[index]
        else:
            return total + p[index] * left / q[index]
    return total


def product(
    first: tuple[Sequence[float], Sequence[float]], second: tuple[Sequence[float], Sequence[float]]
) -> tuple[list[float], list[float]]:
    """The pair of product distributions."""
    return (
        [a * b for a in first[0] for b in second[0]],
        [a * b for a in first[1] for b in second[1]],
    )
