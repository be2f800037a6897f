"""Calibrated means (GREG) from noisy moments: coverage, and width beside the weighted mean and GREG without noise."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from simulate import Floats, Found, Line, noise

from tacit.guarantees import rows
from tacit.mechanisms import L2, Laplace, RoundedGaussian
from tacit.mechanisms.base import L1
from tacit.sources import Schema, number
from tacit.statistics import calibrated

Z = 1.959963984540054


def drawn(rng: np.random.Generator, n: int, columns: int, weighted: bool) -> tuple[Floats, Floats, Floats]:
    """Columns of standard deviation about 0.35, an outcome of which they explain two thirds, informative weights."""
    x = 2 * rng.beta(1.5, 1.5, (n, columns)) - 1
    slopes = 0.45 * (-0.7) ** np.arange(columns)
    y = np.clip(0.1 + x @ slopes + rng.normal(0.0, 0.2, n), -1, 1)
    w = np.clip(np.exp(rng.normal(0.0, math.sqrt(0.5), n) + 0.3 * y), 0.25, 4.0) if weighted else np.ones(n)
    return w, x, y


def ordinary(w: Floats, x: Floats, y: Floats, public: Floats) -> tuple[float, float]:
    """Standard errors of the weighted mean, and of its GREG."""
    z = np.column_stack([np.ones(y.size), x])
    b = np.linalg.solve((z * w[:, None]).T @ z, (z * w[:, None]).T @ y)
    mean = float(w @ y) / w.sum()
    plain, own = y - mean, y - z @ b
    return tuple(math.sqrt(float((w**2) @ e**2)) / w.sum() for e in (plain, own))  # type: ignore[return-value]


def line(
    columns: int,
    n: int,
    *,
    weighted: bool,
    delta: float | None,
    width: float,
    gain: float,
    runs: int | None = None,
) -> Line:
    """`width` is beside GREG without noise; `gain` beside the weighted mean without noise."""
    names = [f"x{k}" for k in range(columns)]
    schema = Schema({**{c: number(-1, 1) for c in (*names, "y")}, "w": number(0, 4)})

    def run(rng: np.random.Generator, count: int) -> Found:
        w, x, y = drawn(np.random.default_rng(4242), 4_000_000, columns, weighted)
        truth, public = float(w @ y) / w.sum(), (w @ x) / w.sum()
        members = 1000.0
        asked: Any = calibrated(
            "y", population=members, totals=dict(zip(names, members * public, strict=True)),
            survey_weight="w" if weighted else None,
        )  # fmt: skip
        question = asked.on(schema, rows())
        moved = question.sensitivity
        law: Any
        if delta is None:
            law = Laplace.for_target(epsilon=1, sensitivity=L1(moved.l1))
        else:
            law = RoundedGaussian.for_target(
                epsilon=1, delta=delta, sensitivity=L2.root(moved.l2_squared), dimension=100
            )
        levels = np.array([v.levels for v in question.details["variables"]], dtype=np.float64)
        covered, widths, gains = np.zeros(count), np.zeros(count), np.zeros(count)
        for k in range(count):
            w, x, y = drawn(rng, n, columns, weighted)
            places = [*([w / 4] if weighted else []), *((x.T + 1) / 2), (y + 1) / 2]
            u = np.rint(np.array(places) * levels[:, None])
            sums = {
                asked._sum(question.details, powers): np.array(
                    np.prod(u ** np.array(powers, dtype=np.float64)[:, None], axis=0).sum()
                )
                for powers in question.details["sums"]
            }
            exact = asked.integers(question, [SimpleNamespace(values=sums)])
            noisy = {}
            for name, values in exact.items():
                own = (
                    noise(rng, float(law.noise_scale), values.shape)
                    if delta is None
                    else np.rint(rng.normal(0.0, float(law.noise_std), values.shape))
                )
                noisy[name] = values.astype(np.float64) + own
            held = {part.name: law for part in question.parts}
            _, low, high, reach = asked.answers(question, held, noisy, 0.95)
            covered[k] = low[0] <= truth <= high[0]
            plain, greg = ordinary(w, x, y, public)
            widths[k], gains[k] = reach[0] / (Z * greg), reach[0] / (Z * plain)
        return Found(covered=covered, width=widths, more={"beside the mean": gains})

    words = f"calibrated mean, {columns} columns, n = {n:,}{'' if weighted else ', no weights'}"
    price = "epsilon = 1" if delta is None else f"(1, {delta:g})"
    return Line(
        name=f"{words}, {price}",
        run=run,
        cover=0.94,
        width=width,
        runs=runs,
        at_most={"beside the mean": gain},
    )


LINES = [
    line(1, 2000, weighted=True, delta=None, width=1.75, gain=1.2),
    line(1, 20_000, weighted=True, delta=None, width=1.1, gain=0.75),
    line(1, 2000, weighted=False, delta=None, width=1.15, gain=0.75),
    line(3, 2000, weighted=True, delta=1e-6, width=5.6, gain=3.1),
    line(3, 20_000, weighted=True, delta=1e-6, width=1.9, gain=1.1),
    line(8, 20_000, weighted=True, delta=1e-6, width=2.75, gain=1.5, runs=500),
    line(3, 20_000, weighted=False, delta=1e-6, width=1.2, gain=0.7),
    line(1, 500, weighted=False, delta=None, width=1.45, gain=1.0),
]
