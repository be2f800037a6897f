"""Means, proportions, quantiles and weighted estimates for a population: sampling and noise in one interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from simulate import Floats, Found, Line, noise

from tacit.guarantees import rows
from tacit.mechanisms.cumulative import cumulative
from tacit.mechanisms.quantiles import quantiles
from tacit.noise import SeededSource
from tacit.sources import Schema, flag, integer, number
from tacit.statistics import rate
from tacit.statistics.clipping import OUTSIDE, VALUES, UnclippedMean
from tacit.statistics.population import (
    Clusters,
    RatioOfSums,
    Variable,
    coefficients,
    laplace_moments,
    part_integers,
    part_names,
    powers,
    simplex_total,
    typical_parts,
)

EPSILON = 1.0
Z = 1.959963984540054
LEVELS = 1 << 15


def released(
    rng: np.random.Generator,
    variables: Sequence[Variable],
    values: Sequence[Floats],
    epsilon: float = EPSILON,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Noisy parts of one table, and the law of their noise: what a release at this epsilon has (rows added)."""
    levels = [np.rint(np.clip(x, 0, 1) * v.levels) for v, x in zip(variables, values, strict=True)]
    sums = {}
    for exponents in powers(variables):
        product = np.ones(levels[0].shape)
        for x, power in zip(levels, exponents, strict=True):
            product = product * x**power
        sums[exponents] = np.array(int(product.sum()), dtype=object)
    scale = simplex_total(variables) / epsilon
    noisy = {
        name: np.array([float(part)]) + noise(rng, scale, 1)
        for name, part in part_integers(variables, sums).items()
    }
    return noisy, {name: laplace_moments(2 * scale**2) for name in part_names(variables)}


def mean_form(block: str = "square", levels: int = LEVELS) -> tuple[list[Variable], RatioOfSums]:
    """The mean of a value of [0, 1], rows without weights."""
    variables = [Variable(block=block, levels=levels if block == "square" else 1)]
    made = RatioOfSums(
        names=part_names(variables), typical=typical_parts(variables),
        of=coefficients(variables, {(1,): 1.0}, {(0,): 1.0}), score=block == "line",
    )  # fmt: skip
    return variables, made


def weighted_form(block: str = "square", largest: float = 4.0) -> tuple[list[Variable], RatioOfSums]:
    """The same with survey weights."""
    variables = [
        Variable(block="weight", levels=LEVELS),
        Variable(block=block, levels=LEVELS if block == "square" else 1),
    ]
    made = RatioOfSums(
        names=part_names(variables), typical=typical_parts(variables),
        of=coefficients(variables, {(1,): 1.0}, {(0,): 1.0}, weight=largest),
    )  # fmt: skip
    return variables, made


Draw = Callable[[np.random.Generator, int], Floats]


def uniform(rng: np.random.Generator, n: int) -> Floats:
    return rng.random(n)


def beta(rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(2, 5, n)


def skew(rng: np.random.Generator, n: int) -> Floats:
    return np.minimum(rng.lognormal(-4.0, 1.2, n), 1.0)


def flags(share: float) -> Draw:
    return lambda rng, n: (rng.random(n) < share).astype(np.float64)


def mean_line(draw: Draw, n: int, block: str = "square") -> Callable[[np.random.Generator, int], Found]:
    """Means of independent draws; the truth is the mean of the law."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        truth = float(draw(np.random.default_rng(12345), 4_000_000).mean())
        variables, form = mean_form(block)
        ordinary, tables = np.zeros(runs), []
        for i in range(runs):
            x = draw(rng, n)
            ordinary[i] = Z * x.std(ddof=1) / math.sqrt(n)
            tables.append(released(rng, variables, [x]))
        return compared(form, tables, truth, ordinary)

    return run


def compared(form: RatioOfSums, tables: Sequence[Any], truth: float, ordinary: Floats) -> Found:
    """All runs at once: whether each interval holds the truth, and its width beside the ordinary one."""
    noisy = {name: np.concatenate([parts[name] for parts, _ in tables]) for name in form.names}
    got = form.population(noisy, tables[0][1], 0.95)
    covered = ((got.low <= truth) & (truth <= got.high)).astype(np.float64)
    return Found(covered=covered, width=(got.high - got.low) / (2 * ordinary))


def weights(rng: np.random.Generator, x: Floats, informative: bool) -> Floats:
    """Lognormal with mean 0 and variance 1/2 of the logarithm, in [1/4, 4]; informative ones grow with the value."""
    shift = 0.5 * (x - 0.3) if informative else 0.0
    return np.clip(np.exp(rng.normal(0.0, math.sqrt(0.5), x.size) + shift), 0.25, 4.0)


def weighted_line(
    draw: Draw, n: int, block: str = "square", informative: bool = True
) -> Callable[[np.random.Generator, int], Found]:
    """Weighted means, the truth E[w x] / E[w]; the ordinary interval is the linearised one with the same weights."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        big = np.random.default_rng(54321)
        x = draw(big, 4_000_000)
        w = weights(big, x, informative)
        truth = float((w * x).sum() / w.sum())
        variables, form = weighted_form(block)
        ordinary, tables = np.zeros(runs), []
        for i in range(runs):
            x = draw(rng, n)
            w = weights(rng, x, informative)
            r = (w * x).sum() / w.sum()
            ordinary[i] = Z * math.sqrt(float((w**2 * (x - r) ** 2).sum())) / w.sum()
            tables.append(released(rng, variables, [w / 4.0, x]))
        return compared(form, tables, truth, ordinary)

    return run


def ratio_line(n: int, weighted: bool) -> Callable[[np.random.Generator, int], Found]:
    """A ratio of two columns from 9 parts, with weights from 18; the ordinary interval is the linearised one."""

    def drawn(rng: np.random.Generator, size: int) -> tuple[Floats, Floats, Floats]:
        x = 0.2 + 0.6 * rng.beta(2, 2, size)
        y = np.clip(0.6 * x + rng.normal(0.0, 0.1, size), 0.0, 1.0)
        return (weights(rng, y, True) if weighted else np.ones(size)), y, x

    def run(rng: np.random.Generator, runs: int) -> Found:
        w, y, x = drawn(np.random.default_rng(777), 4_000_000)
        truth = float((w * y).sum() / (w * x).sum())
        own = [Variable(block="weight", levels=LEVELS)] if weighted else []
        variables = [*own, *(Variable(block="square", levels=LEVELS) for _ in range(2))]
        of = coefficients(variables, {(1, 0): 1.0}, {(0, 1): 1.0}, **({"weight": 4.0} if weighted else {}))
        form = RatioOfSums(
            names=part_names(variables), typical=typical_parts(variables), of=of, least=-np.inf, most=np.inf
        )
        ordinary, tables = np.zeros(runs), []
        for i in range(runs):
            w, y, x = drawn(rng, n)
            r = (w * y).sum() / (w * x).sum()
            ordinary[i] = Z * math.sqrt(float((w**2 * (y - r * x) ** 2).sum())) / (w * x).sum()
            tables.append(released(rng, variables, [*([w / 4.0] if weighted else []), y, x]))
        return compared(form, tables, truth, ordinary)

    return run


def clipping_line(n: int, share: float) -> Callable[[np.random.Generator, int], Found]:
    """Lognormal(10.4, .9) incomes, clamped at a quantile; the mean before clamping, a Pareto tail of 2 declared."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        from scipy.special import ndtri

        top = math.exp(10.4 + 0.9 * float(ndtri(share)))
        schema = Schema({"x": number(0, LEVELS, spacing=1)})
        question = UnclippedMean(column="x", beyond=("pareto", 2.0)).drawn(schema, rows())
        form: Any = question.form
        inner = question.details["inner"]
        variables = [Variable(block="square", levels=LEVELS)]
        assert simplex_total(variables) == int(inner.sensitivity.l1) == question.details["steps"]
        scale = float(question.sensitivity.l1) / EPSILON
        truth = math.exp(10.4 + 0.405) / top * LEVELS
        held: dict[str, list[float]] = {name: [] for name in form.names}
        for _ in range(runs):
            x = rng.lognormal(10.4, 0.9, n)
            level = np.rint(np.minimum(x / top, 1.0) * LEVELS)
            sums = {(k,): np.array(int((level**k).sum()), dtype=object) for k in range(3)}
            for name, part in part_integers(variables, sums).items():
                held[name].append(float(VALUES * part) + float(noise(rng, scale, 1)[0]))
            above = OUTSIDE * question.details["steps"] * int((x > top).sum())
            held["outside"].append(above + float(noise(rng, scale, 1)[0]))
        noisy = {name: np.array(values) for name, values in held.items()}
        got = form.population(noisy, dict.fromkeys(form.names, laplace_moments(2 * scale**2)), 0.95)
        covered = ((got.low <= truth) & (truth <= got.high)).astype(np.float64)
        return Found(
            covered=covered, more={"half-width, share of the mean": (got.high - got.low) / (2 * truth)}
        )

    return run


def cluster_line(strata: int, psus: int, people: int) -> Callable[[np.random.Generator, int], Found]:
    """Strata x PSUs x people with effects of both, weights in [1/4, 4]; the truth is that of the law of a PSU."""

    def draw(rng: np.random.Generator, clusters: int) -> tuple[Floats, Floats, Floats]:
        place = np.repeat(np.arange(strata), clusters)
        centre = 0.3 + 0.02 * np.linspace(-1, 1, strata)[place] + rng.normal(0, 0.06, place.size)
        x = np.clip(centre[:, None] + rng.normal(0, 0.15, (place.size, people)), 0, 1)
        w = np.clip(np.exp(rng.normal(0, math.sqrt(0.5), x.shape)), 0.25, 4.0)
        return place, x, w

    def run(rng: np.random.Generator, runs: int) -> Found:
        _, x, w = draw(np.random.default_rng(777), 400_000 // people)
        truth = float((w * x).sum() / w.sum())
        scale = LEVELS * LEVELS / EPSILON
        form = Clusters(
            names=("above", "below"), typical=(1.0, 1.0), f=(1.0, 0.0), g=(1.0, 1.0),
            strata=tuple(np.repeat(np.arange(strata), psus).tolist()),
        )  # fmt: skip
        covered, width = np.zeros(runs), np.zeros(runs)
        for i in range(runs):
            _, x, w = draw(rng, psus)
            k, u = np.rint(w / 4.0 * LEVELS), np.rint(x * LEVELS)
            parts = {"above": (k * u).sum(axis=1), "below": (k * (LEVELS - u)).sum(axis=1)}
            plain = form.population(parts, {}, 0.95)
            noisy = {name: p + noise(rng, scale, p.shape) for name, p in parts.items()}
            got = form.population(noisy, {}, 0.95)
            covered[i] = got.low <= truth <= got.high
            width[i] = (got.high - got.low) / (plain.high - plain.low)
        return Found(covered=covered, width=width)

    return run


def quantile_line(draw: Draw, n: int, share: float, bins: int) -> Callable[[np.random.Generator, int], Found]:
    """A quantile by cumulative counts; the ordinary interval has the order statistics at q n +- z sqrt(n q (1 - q))."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        truth = float(np.quantile(draw(np.random.default_rng(4321), 4_000_000), share))
        mechanism = cumulative(bins=bins, l1=1, l2_squared=1, epsilon=EPSILON)
        edges = np.linspace(0.0, 1.0, bins + 1)
        ordinary, counts = np.zeros(runs), np.zeros((runs, bins), dtype=np.int64)
        reach = Z * math.sqrt(n * share * (1 - share))
        for i in range(runs):
            x = np.sort(draw(rng, n))
            counts[i] = np.histogram(x, edges)[0]
            first, last = max(math.floor(n * share - reach), 0), min(math.ceil(n * share + reach), n - 1)
            ordinary[i] = x[last] - x[first]
        held = mechanism.release(counts, source=SeededSource(seed=int(rng.integers(1 << 62))))
        got = quantiles(held, shares=[share], edges=edges, confidence=0.95, drawn=True)
        low, high = got.low[:, 0], got.high[:, 0]
        return Found(
            covered=((low <= truth) & (truth <= high)).astype(np.float64), width=(high - low) / ordinary
        )

    return run


def standard_rates(n: int, epsilon: float, ages: int = 18) -> Callable[[np.random.Generator, int], Found]:
    """Directly standardised rates over 18 ages, follow-up of at most 10 years; ordinary: sum w^2 d / Y^2."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        rates = 0.004 * np.exp(0.12 * np.arange(ages))
        shares = np.linspace(1.4, 0.6, ages)
        shares = shares / shares.sum()
        truth = float((shares * rates).sum())
        schema = Schema({"d": flag(), "y": number(0, 10, spacing=1 / 64), "age": integer(0, ages - 1)})
        weights = {str(a): float(s) for a, s in enumerate(shares)}
        question = rate("d", "y", standard={"age": weights}).drawn(schema, rows())
        scale, levels = float(question.sensitivity.l1) / epsilon, question.details["levels"]
        events, time, ordinary = np.zeros((runs, ages)), np.zeros((runs, ages)), np.zeros(runs)
        for i in range(runs):
            age = rng.integers(0, ages, n)
            death = rng.exponential(1 / rates[age])
            y = np.minimum(death, 10 * rng.random(n))
            d = (death <= y).astype(np.float64)
            count = np.bincount(age, d, ages)
            total = np.bincount(age, np.rint(y * 64), ages)
            events[i], time[i] = 3 * levels[1] * count, 2 * levels[0] * total
            ordinary[i] = Z * math.sqrt(float((shares**2 * count / (total / 64) ** 2).sum()))
        noisy = {
            "events": events + noise(rng, scale, events.shape),
            "time": time + noise(rng, scale, time.shape),
        }
        law = {name: laplace_moments(2 * scale**2) for name in noisy}
        form: Any = question.form
        got = form.population(noisy, law, 0.95)
        covered = ((got.low <= truth) & (truth <= got.high)).astype(np.float64)
        return Found(covered=covered, width=(got.high - got.low) / (2 * ordinary))

    return run


LINES = [
    Line(name="standardised rate, 18 ages, n = 5,000", run=standard_rates(5000, 1.0), cover=0.94, width=1.4),
    Line(name="standardised rate, 18 ages, n = 20,000", run=standard_rates(20_000, 1.0), cover=0.94, width=1.15),
    Line(name="median, beta(2, 5), n = 500", run=quantile_line(beta, 500, 0.5, 256), cover=0.95, width=1.4),
    Line(name="median, uniform, n = 500", run=quantile_line(uniform, 500, 0.5, 256), cover=0.95, width=1.4),
    Line(name="quartile, beta(2, 5), n = 2,000", run=quantile_line(beta, 2000, 0.25, 512), cover=0.95, width=1.4),
    Line(name="median, beta(2, 5), n = 20,000", run=quantile_line(beta, 20_000, 0.5, 2048), cover=0.95, width=1.4),
    Line(name="mean, uniform, n = 500", run=mean_line(uniform, 500), cover=0.94),
    Line(name="mean, uniform, n = 2,500", run=mean_line(uniform, 2500), cover=0.94, width=1.05),
    Line(name="mean, beta(2, 5), n = 2,500", run=mean_line(beta, 2500), cover=0.94, width=1.05),
    Line(name="mean, very skew, n = 2,500", run=mean_line(skew, 2500), cover=0.94),
    Line(name="proportion 12%, n = 100", run=mean_line(flags(0.12), 100, "line"), cover=0.94),
    Line(name="proportion 12%, n = 2,500", run=mean_line(flags(0.12), 2500, "line"), cover=0.94, width=1.05),
    Line(name="proportion 53%, n = 500", run=mean_line(flags(0.53), 500, "line"), cover=0.94, width=1.05),
    Line(name="ratio of two columns, n = 2,000", run=ratio_line(2000, False), cover=0.94, width=1.25),
    Line(name="ratio of two columns, n = 20,000", run=ratio_line(20_000, False), cover=0.94, width=1.05),
    Line(name="weighted ratio of two columns, n = 2,000", run=ratio_line(2000, True), cover=0.94),
    Line(name="weighted ratio of two columns, n = 20,000", run=ratio_line(20_000, True), cover=0.94, width=1.2),
    Line(name="clipped at the 99% point, n = 2,000", run=clipping_line(2000, 0.99), cover=0.95),
    Line(name="clipped at the 99% point, n = 20,000", run=clipping_line(20_000, 0.99), cover=0.95),
    Line(name="clipped at the 99.9% point, n = 20,000", run=clipping_line(20_000, 0.999), cover=0.95),
    Line(name="weighted mean, beta(2, 5), n = 500", run=weighted_line(beta, 500), cover=0.94),
    Line(name="weighted mean, beta(2, 5), n = 2,000", run=weighted_line(beta, 2000), cover=0.94, width=1.15),
    Line(name="weighted mean, beta(2, 5), n = 20,000", run=weighted_line(beta, 20_000), cover=0.94, width=1.03),
    Line(
        name="weighted share 12%, n = 2,000", run=weighted_line(flags(0.12), 2000, "line"), cover=0.94, width=1.15
    ),
    Line(
        name="weighted share 53%, n = 2,000", run=weighted_line(flags(0.53), 2000, "line"), cover=0.94, width=1.15
    ),
    Line(name="weighted mean, very skew, n = 2,000", run=weighted_line(skew, 2000), cover=0.94),
    Line(name="clusters, 10 strata x 4 PSU x 50 people", run=cluster_line(10, 4, 50), cover=0.935),
    Line(name="clusters, 10 strata x 4 PSU x 500 people", run=cluster_line(10, 4, 500), cover=0.935),
    Line(name="clusters, 25 strata x 2 PSU x 80 people", run=cluster_line(25, 2, 80), cover=0.935),
]  # fmt: skip
