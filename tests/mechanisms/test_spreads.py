"""Intervals of sums of noise, against their laws: computed from characteristic functions, or listed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.curator.charging import price
from tacit.curator.planning import choose
from tacit.mechanisms.ranges import _inverse_gram
from tacit.mechanisms.spreads import BoxSum
from tacit.sources import Schema


@pytest.mark.parametrize(
    "widths", [(1.0,) * 24 + (22.0,), (1.0,) * 60, (1.0,) * 200 + (198.0,), (3.0,) * 3 + (1.0,) * 30]
)
def test_many_boxes_of_which_some_are_wide(widths: tuple[float, ...]) -> None:
    """Pr[|W| > x] = 1 - 2/pi int sin(x t) phi(t) / t dt and E |W| = 2/pi int (1 - phi(t)) / t^2 dt."""
    found, t = BoxSum(widths), np.linspace(0, 60, 1_200_001)[1:]
    phi = np.prod([np.sinc(w * t / (2 * np.pi)) ** widths.count(w) for w in set(widths)], axis=0)
    std = np.sqrt(found.variance)
    for x in np.array([0.3, 0.7, 1.0, 1.5, 2.0]) * std:
        true = 1 - 2 / np.pi * np.trapezoid(np.sin(x * t) / t * phi, t) - 2 / np.pi * x * t[0]
        assert abs(float(found.tail(np.asarray(x))) - true) < 0.006
    mean = 2 / np.pi * (np.trapezoid((1 - phi) / t**2, t) + 1 / t[-1] + t[0] * found.variance / 2)
    assert found.mean_size == pytest.approx(mean, rel=0.003)


@pytest.mark.parametrize("epsilon", [1, 3, 5, 8])
@pytest.mark.parametrize("miss", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**9)])
def test_sums_of_coarse_laplace_noise_on_bins(epsilon: int, miss: Fraction) -> None:
    """Discrete Laplace noise of scale 1 / epsilon, added up exactly for 1, 2, 8 and 16 bins."""
    question = tacit.ranges("x", 16).on(Schema({"x": tacit.integer(0, 15)}), tacit.rows())
    made = choose(question, price(epsilon=epsilon)).noise[0].mechanism
    if hasattr(made.noise, "branching"):
        pytest.skip("a tree is better here")
    one = np.exp(-epsilon * np.abs(np.arange(-80, 81.0))) * np.tanh(epsilon / 2)
    law, halves = np.ones(1), made.error_quantiles(1 - miss)[0]
    for bins in range(1, 17):
        law = np.convolve(law, one)
        size = np.abs(np.arange(law.size) - law.size // 2)
        for place, (first, last) in enumerate(made.ranges.tolist()):
            if last - first + 1 == bins:
                assert law[size > halves[place]].sum() <= float(miss) * (1 + 1e-9)


@pytest.mark.parametrize("miss", [Fraction(1, 10), Fraction(1, 20), Fraction(1, 10**6), Fraction(1, 10**9)])
def test_one_wide_level_of_a_tree(miss: Fraction) -> None:
    """The root is far noisier than the rest. Pr[X > h] by inversion along a line through the saddle point."""
    schema = Schema({"x": tacit.integer(0, 63, missing=0)})
    made = (
        choose(tacit.ranges("x", 64).on(schema, tacit.rows()), price(epsilon=Fraction(1, 10)))
        .noise[0]
        .mechanism
    )
    tree, halves = made.noise, made.error_quantiles(1 - miss)[0]
    for first, last in ((24, 63), (0, 62), (5, 40), (7, 7)):
        if [first, last] not in made.ranges.tolist():
            continue
        query = np.zeros(64)
        query[first : last + 1] = 1
        x, scales = _inverse_gram(query, tree._variances, tree.branching), []
        for v in reversed(tree._variances):
            scales += [np.abs(x / v) * np.sqrt(v / 2)] if v > 0 else []
            x = np.add.reduceat(x, np.arange(0, x.size, tree.branching))
        b, many = np.unique(np.round(np.concatenate(scales), 9), return_counts=True)
        b, many = b[b > 0], many[b > 0]
        h = halves[made.ranges.tolist().index([first, last])]
        c = np.linspace(0.001, 0.999, 999) / b.max()
        c = c[(-(np.log1p(-((c[:, None] * b) ** 2)) * many).sum(1) - c * h - np.log(c)).argmin()]
        w = np.linspace(0, 60 / b.max(), 24_001)
        z = c + 1j * w
        logs = -(np.log(1 - (z[:, None] * b) ** 2) * many).sum(1)
        both = 2 * np.trapezoid((np.exp(logs - z * h) / z).real, w) / np.pi
        assert both <= 1.03 * float(miss), (first, last)
