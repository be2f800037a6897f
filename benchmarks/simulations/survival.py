"""Survival curves: coverage of pointwise and simultaneous intervals, and the noise beside the sampling error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from simulate import Floats, Found, Line, noise

from tacit.statistics.life_tables import LifeTable, compared

Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
LUNG, COLON = 36.0, 108.0
"""Months that are followed."""


def lung(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Months to death and to the end of observation, shaped like R's `lung`."""
    return 13.5 * rng.weibull(1.32, n), rng.uniform(6, 60, n)


def colon(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """The same like `colon`, where about half are cured."""
    return np.where(rng.random(n) < 0.48, 1e9, 26 * rng.weibull(1.3, n)), rng.uniform(60, 110, n)


def lung_curve(t: Floats) -> Floats:
    """The population's survival."""
    return np.asarray(np.exp(-((t / 13.5) ** 1.32)))


def colon_curve(t: Floats) -> Floats:
    """The population's survival."""
    return np.asarray(0.48 + 0.52 * np.exp(-((t / 26) ** 1.3)))


def table(
    rng: np.random.Generator, time: Floats, end: Floats, span: float, bins: int, epsilon: float | None
) -> LifeTable:
    """The life table of one group, with the noise of a release at this epsilon; exact without one."""
    edges = np.linspace(0, span, bins + 1)
    seen, died = np.minimum(time, end), time <= end
    events = np.histogram(seen[died & (seen < span)], edges)[0].astype(np.float64)
    censored = np.histogram(seen[~died & (seen < span)], edges)[0].astype(np.float64)
    beyond, variance = float((seen >= span).sum()), 0.0
    if epsilon is not None:
        q = math.exp(-epsilon)
        variance = 2 * q / (1 - q) ** 2
        events, censored = (x + noise(rng, 1 / epsilon, bins) for x in (events, censored))
        beyond += float(noise(rng, 1 / epsilon, 1)[0])
    return LifeTable(
        events=events[None], censored=censored, beyond=beyond, edges=edges, noise_variance=variance,
        within=lambda count, level: 0.0,
    )  # fmt: skip


def curve_line(
    name: str, draw: Draw, curve: Callable[[Floats], Floats], span: float, n: int, bins: int, epsilon: float,
    *, share: float | None = None,
) -> list[Line]:  # fmt: skip
    """Pointwise coverage of what is published, simultaneous coverage, and the noise at a third of the range."""

    def run(rng: np.random.Generator, runs: int, *, together: bool) -> Found:
        truth = curve(np.linspace(0, span, bins + 1)[1:])
        at = bins // 3 - 1
        covered, own, sampled = [], [], []
        for _ in range(runs):
            time, end = draw(rng, n)
            noisy, exact = (table(rng, time, end, span, bins, e) for e in (epsilon, None))
            value, low, high = noisy.survival(0.95)[1 if together else 0]
            there = np.isfinite(value)
            inside = ((low <= truth) & (truth <= high))[there]
            covered.append(float(inside.all()) if together else float(inside.mean()) if inside.size else 1.0)
            if there[at] and not together:
                plain = math.exp(-exact._losses(at + 1)[0][-1])
                own.append(math.exp(-noisy._losses(at + 1)[0][-1]) - plain)
                sampled.append(plain - truth[at])
        # The ratio in ten blocks of runs, so that it has a standard error.
        blocks = [] if together else zip(np.array_split(own, 10), np.array_split(sampled, 10), strict=True)
        more = {} if together else {"noise": np.array([np.std(a) / np.std(b) for a, b in blocks])}
        return Found(covered=np.array(covered), more=more)

    words = f"survival, {name}, n = {n}, {bins} bins, epsilon = {epsilon:g}"
    most = {} if share is None else {"noise": share}
    return [
        Line(name=words, run=lambda r, k: run(r, k, together=False), cover=0.94, at_most=most),
        Line(name=f"{words}, all at once", run=lambda r, k: run(r, k, together=True), cover=0.93),
    ]


def log_rank(n: int, bins: int, epsilon: float, ratio: float) -> Line:
    """The log-rank test keeps its level; the hazard ratio is covered."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        covered = []
        for _ in range(runs):
            groups = [14 * h ** (-1 / 1.3) * rng.weibull(1.3, n) for h in (ratio, 1.0)]
            made = [table(rng, t, rng.uniform(6, 60, n), LUNG, bins, epsilon) for t in groups]
            told = compared(made[0], made[1], 0.95)
            _, low, high = told["log-rank z"] if ratio == 1 else told["hazard ratio"]
            if math.isfinite(low):
                covered.append(float(low <= (0.0 if ratio == 1 else ratio) <= high))
        return Found(covered=np.array(covered))

    what = "log-rank test" if ratio == 1 else f"hazard ratio {ratio:g}"
    return Line(name=f"{what}, two groups of {n}, {bins} bins, epsilon = {epsilon:g}", run=run, cover=0.94)


LINES = [
    *curve_line("lung", lung, lung_curve, LUNG, 228, 36, 1.0, share=0.85),
    *curve_line("lung", lung, lung_curve, LUNG, 228, 12, 1.0),
    *curve_line("lung", lung, lung_curve, LUNG, 228, 12, 0.5),
    *curve_line("colon", colon, colon_curve, COLON, 929, 36, 1.0, share=0.36),
    *curve_line("colon", colon, colon_curve, COLON, 929, 36, 0.5),
    log_rank(114, 36, 1.0, 1.0),
    log_rank(460, 12, 0.5, 1.0),
    log_rank(460, 12, 1.0, 1.5),
]
