"""Gini coefficients from geometric bins: coverage of the population's, and the error beside that of the sample."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from simulate import Floats, Found, Line, noise

from tacit.guarantees import rows
from tacit.sources import Schema, number
from tacit.statistics.inequality import PLACES, gini, inequality, interval

TOP = 500_000.0


def drawn(rng: np.random.Generator, n: int) -> Floats:
    """Lognormal(10.4, 0.9), cut at the declared top."""
    return np.minimum(rng.lognormal(10.4, 0.9, n), TOP)


def sample_gini(x: Floats) -> float:
    """From the order statistics."""
    y, n = np.sort(x), x.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ y / (n * y.sum()))


def gini_line(n: int, epsilon: float, bins: int) -> Callable[[np.random.Generator, int], Found]:
    """`sd` is the spread of the released value over that of the sample's own; `binning` the enclosure's width."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        truth = sample_gini(drawn(np.random.default_rng(99), 4_000_000))
        schema = Schema({"x": number(0, TOP, spacing=1)})
        question = inequality("x", bins=bins).on(schema, rows())
        steps = np.array(question.details["steps"], dtype=np.float64)
        low, high = steps[:-1], steps[1:] - 1
        scale = PLACES / epsilon
        covered, width, values, plain, binning = (np.zeros(runs) for _ in range(5))
        for i in range(runs):
            x = np.rint(drawn(rng, n))
            place = np.searchsorted(steps, x, side="right") - 1
            u = (x - low[place]) / np.maximum(high - low, 1)[place]
            table = np.stack([np.bincount(place, 1 - u, low.size), np.bincount(place, u, low.size)])
            noisy = table + noise(rng, scale, table.shape) / PLACES
            values[i], first, last = interval(lambda y: gini(y, low, high), noisy, 2 / epsilon**2, 0.95)
            covered[i], width[i], plain[i] = first <= truth <= last, last - first, sample_gini(x)
            least, most = gini(noisy, low, high)
            binning[i] = most - least
        ratio = values.std() / plain.std()
        spread = np.full(runs, ratio) + ratio * rng.normal(0, 1, runs) / math.sqrt(2)
        return Found(
            covered=covered, width=width, more={"sd": spread - spread.mean() + ratio, "binning": binning}
        )

    return run


LINES = [
    Line(name="Gini, lognormal, n = 2,000", run=gini_line(2000, 1.0, 20), cover=0.94, at_most={"sd": 1.25}),
    Line(
        name="Gini, lognormal, n = 10,000", run=gini_line(10_000, 1.0, 20), cover=0.94, at_most={"sd": 1.25}
    ),
]
