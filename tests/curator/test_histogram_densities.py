"""Densities at a pure price: counts of cells, kernels at their centres; sensitivity, law, error and choice."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import tacit
from tacit.curator.charging import price
from tacit.curator.choice import _get, _put
from tacit.curator.functions.histogram_fit import (
    HistogramDensityFit,
    aliasing,
    best_shape,
    histogram_fit,
    roughness,
)
from tacit.curator.planning import choose
from tacit.noise import SeededSource

NAMES = ["a", "b", "c"]
REPLACED, ADDED = tacit.rows(neighbours="replace-one"), tacit.rows()


def mixture(rng, n, d):
    """½N(.3, .1²) + ½N(.7, .1²) in each coordinate independently."""
    return np.clip(rng.normal(np.where(rng.random((n, d)) < 0.5, 0.3, 0.7), 0.1), 0, 1)


def true_density(x):
    both = [np.exp(-(((x - m) / 0.1) ** 2) / 2) / (0.1 * np.sqrt(2 * np.pi)) for m in (0.3, 0.7)]
    return np.prod((both[0] + both[1]) / 2, axis=1)


def question_of(d, n, unit=REPLACED, **more):
    schema = tacit.Schema({k: tacit.number(0, 1) for k in NAMES[:d]})
    return tacit.density(NAMES[:d], size=n, **more).on(schema, unit)


class Rows:
    """Training rows in steps, as the source gives them."""

    def __init__(self, values, schema):
        self.rows = {
            k: values[:, j] * schema.measured(k).width for j, k in enumerate(NAMES[: values.shape[1]])
        }


def test_a_row_moves_the_counts_as_claimed():
    rng = np.random.default_rng(1)
    for unit, most in ((ADDED, 1), (REPLACED, 2), (tacit.people("who", at_most=3), 3)):
        question = question_of(2, 500, unit)
        fit = histogram_fit(question, Fraction(1))
        assert fit.l1 == most
        assert fit.mechanism.exact_epsilon <= 1
        assert fit.mechanism.sensitivity.exact == most
    fit = histogram_fit(question_of(2, 500), Fraction(1))
    schema = question_of(2, 500).schema
    x = rng.random((500, 2))
    before = fit.integers(Rows(x, schema))
    assert before.sum() == 500
    assert before.size == np.prod(fit.cells)
    reached = set()
    for place in ([0.0, 0.0], [1.0, 1.0], [0.5, np.nan], [0.31, 0.97]):
        other = x.copy()
        other[0] = place
        reached.add(int(np.abs(before - fit.integers(Rows(other, schema))).sum()))
    assert reached <= {0, 1, 2}
    assert 2 in reached


def test_kernels_have_the_variance_that_is_left():
    """A row anywhere in a cell, by a kernel at the centre: mean and variance of the kernel of bandwidth h."""
    fit = histogram_fit(question_of(1, 10_000, bandwidth=0.05), Fraction(1))
    assert fit.bandwidths == (0.05,)
    (cells,) = fit.cells
    numbers = np.zeros(cells)
    numbers[cells // 2] = 10_000
    grid = np.linspace(-1, 1, 20_001)[:, None]
    x, f = (grid[:, 0] + 1) / 2, fit.values(numbers, grid)[:, 0]
    step = x[1] - x[0]
    centre = (cells // 2 + 0.5) / cells
    assert f.sum() * step == pytest.approx(1, abs=1e-4)
    assert ((x - centre) ** 2 * f).sum() * step + 1 / (12 * cells**2) == pytest.approx(0.05**2, rel=1e-3)


def normal(x, mean, std):
    return np.exp(-(((x - mean) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_curve_is_what_the_certificate_says(d):
    """Anybody can evaluate the noisy counts with what the certificate has, in a few lines."""
    schema = tacit.Schema({k: tacit.number(10 * j, 10 * j + 2 + j) for j, k in enumerate(NAMES[:d])})
    fit = histogram_fit(tacit.density(NAMES[:d], size=900).on(schema, REPLACED), Fraction(1))
    rng = np.random.default_rng(8)
    counts, at = rng.integers(-3, 40, np.prod(fit.cells)), rng.uniform(-1, 1, (30, d))
    told = fit.to_dict()
    low, high, cells = (np.array(told[k], dtype=float) for k in ("low", "high", "cells"))
    width, points = (high - low) / cells, (low + high) / 2 + at * (high - low) / 2
    places = np.stack(np.unravel_index(np.arange(counts.size), told["cells"]), axis=1)
    centres, found = low + (places + 0.5) * width, np.zeros(30)
    for one in told["kernels"]:
        left = np.sqrt(np.array(one["bandwidth"]) ** 2 - width**2 / 12)
        each = normal(points[:, None, :], centres[None, :, :], left).prod(axis=2)
        found += one["weight"] * (each @ counts) / told["size"]
    assert fit.values(counts.astype(float), at)[:, 0] == pytest.approx(found, rel=1e-10)
    assert told["order"] == 4
    assert sum(one["weight"] for one in told["kernels"]) == 1
    # The noise of each count is independent, and the curve linear in them.
    unit = np.array([fit.values(row, at)[:, 0] for row in np.eye(counts.size)])
    noise_std = float(fit.mechanism.distribution.std)
    assert fit.stds(at) == pytest.approx(noise_std * np.sqrt((unit**2).sum(axis=0)), rel=1e-8)


def test_a_declared_bandwidth_keeps_its_meaning():
    for d in (1, 2, 3):
        free = histogram_fit(question_of(d, 5000), Fraction(1))
        told = histogram_fit(question_of(d, 5000, bandwidth=0.06), Fraction(1))
        assert (free.order, told.order) == (4, 2)
        assert ("fourth-order-density" in free.theorems, "fourth-order-density" in told.theorems) == (
            True,
            False,
        )
        assert told.bandwidths == (0.06,) * d
        assert "kernels" not in told.to_dict()
        # The counts and their noise are those of the best kernel of order two.
        variance = float(f"{float(free.mechanism.distribution.std) ** 2:.3g}")
        best = best_shape(5000, d, variance, None)
        assert free.cells == best.cells
        assert free.bandwidths == pytest.approx([1.25 * h for h in best.bandwidths], rel=5e-3)
        assert free.l1 == told.l1 == 2
    assert "order four" in choose(question_of(1, 5000), price(epsilon=1)).reason
    assert "order" not in choose(question_of(1, 5000, bandwidth=0.06), price(epsilon=1)).reason


def test_kernels_of_order_four_have_no_second_moment():
    """With a uniform place in the cell added, the variance of the kernel of order four is 0."""
    fit = histogram_fit(question_of(1, 10_000), Fraction(1))
    (cells,) = fit.cells
    numbers = np.zeros(cells)
    numbers[cells // 2] = 10_000
    grid = np.linspace(-1, 1, 20_001)[:, None]
    x, f = (grid[:, 0] + 1) / 2, fit.values(numbers, grid)[:, 0]
    step, centre = x[1] - x[0], (cells // 2 + 0.5) / cells
    assert f.sum() * step == pytest.approx(1, abs=1e-4)
    assert ((x - centre) ** 2 * f).sum() * step + 1 / (12 * cells**2) == pytest.approx(0, abs=1e-5)
    assert (f**2).sum() * step == pytest.approx(
        roughness(np.array(fit.bandwidths), np.array(fit.cells), 4), rel=1e-4
    )
    wide, many = np.array([0.05, 0.08]), np.array([20, 15])
    at = np.linspace(-1, 1, 801)
    parts = [np.sqrt(k * wide**2 - 1 / (12 * many**2)) for k in (1, 2)]
    kernel = 2 * np.outer(*(normal(at, 0, s) for s in parts[0])) - np.outer(
        *(normal(at, 0, s) for s in parts[1])
    )
    assert (kernel**2).sum() * (at[1] - at[0]) ** 2 == pytest.approx(roughness(wide, many, 4), rel=1e-6)


@pytest.mark.parametrize("order", [2, 4])
def test_the_bias_is_the_stated_integral(order):
    """Expected counts of a normal density, smoothed: squared bias sum_k C(2r, k) (-1)^k / sqrt(4 pi (s^2 + k h^2 / 2)).

    r = 1 or 2 is half of the order: the transform of the kernel is 1 - (1 - e^(-h^2 t^2 / 2))^r.
    """
    spread, h, r = 0.06, 0.05, order // 2
    more = {"bandwidth": h} if order == 2 else {}
    fit = replace(histogram_fit(question_of(1, 10_000, **more), Fraction(1)), bandwidths=(h,), cells=(24,))
    assert fit.order == order
    edges = np.linspace(0, 1, 25)
    counts = 10_000 * np.diff(ndtr((edges - 0.47) / spread))
    grid = np.linspace(-1, 1, 8001)[:, None]
    bias = fit.values(counts, grid)[:, 0] - normal((grid[:, 0] + 1) / 2, 0.47, spread)
    stated = sum(
        math.comb(2 * r, k) * (-1) ** k / math.sqrt(4 * math.pi * (spread**2 + k * h**2 / 2))
        for k in range(2 * r + 1)
    )
    assert (bias**2).mean() == pytest.approx(stated, rel=0.02)


def test_an_earlier_choice_keeps_its_kernels():
    """A stored fit names the kernels by its class: what was stored before is read, written and evaluated as it was."""
    free = histogram_fit(question_of(2, 5000), Fraction(1))
    stored = _put(free, {})
    assert stored["is"] == "FourthOrderDensityFit"
    assert _get(stored, {}) == free
    earlier = {**stored, "is": "HistogramDensityFit"}
    assert set(earlier) == {
        "is", "box", "bandwidths", "cells", "size", "l1", "epsilon", "inputs", "keys",
    }  # fmt: skip
    read = _get(earlier, {})
    assert (read.order, _put(read, {})) == (2, earlier)
    numbers, at = np.arange(np.prod(read.cells), dtype=float), np.array([[0.1, -0.3]])
    centres = [(np.arange(c) + 0.5) / c for c in read.cells]
    left = [math.sqrt(h**2 - 1 / (12 * c**2)) for h, c in zip(read.bandwidths, read.cells, strict=True)]
    one, other = (normal((1 + x) / 2, c, s) for x, c, s in zip(at[0], centres, left, strict=True))
    assert read.values(numbers, at)[0, 0] == pytest.approx(one @ numbers.reshape(read.cells) @ other / 5000)


@pytest.mark.parametrize(
    ("d", "n", "noise", "error", "declared"),
    [(2, 10_000, 0.004, 0.024, True), (2, 10_000, 0.003, 0.015, False), (3, 100_000, 0.034, None, True)],
)
def test_noise_and_error(d, n, noise, error, declared):
    """The integrated squared noise as stated; the whole error of both kernels in two dimensions."""
    more = {"bandwidth": 0.15 * n ** (-1 / (d + 4))} if declared else {}
    question = question_of(d, n, **more)
    fit = histogram_fit(question, Fraction(1))
    assert fit.expected_noise_error() < noise
    rng, source = np.random.default_rng(2), SeededSource(seed=2)
    points = rng.random((4000, d))
    at, off, errors = 2 * points - 1, [], []
    for _ in range(4):
        counts = fit.integers(Rows(mixture(rng, n, d), question.schema))
        plain = fit.values(counts.astype(float), at)[:, 0]
        noisy = fit.values(fit.mechanism.release(counts, source=source).values.astype(float), at)[:, 0]
        off.append(((noisy - plain) ** 2).mean())
        errors.append(((fit.shown(noisy) - true_density(points)) ** 2).mean())
    assert np.mean(off) == pytest.approx(fit.expected_noise_error(), rel=0.2)
    if error is not None:
        # The exact estimate of the declared bandwidth errs by .0168, of which cells may take and noise may add.
        assert np.mean(errors) <= error


def test_the_band_has_its_confidence():
    fit = histogram_fit(question_of(2, 10_000), Fraction(1, 2))
    source, zeros = SeededSource(seed=3), np.zeros(int(np.prod(fit.cells)), dtype=np.int64)
    at = np.array([[0.0, 0.0], [0.013, -0.2], [0.31, 0.4]])
    drawn = np.array(
        [fit.values(fit.mechanism.release(zeros, source=source).values.astype(float), at)[:, 0] for _ in range(3000)]
    )  # fmt: skip
    stds = fit.stds(at)
    assert drawn.std(axis=0) == pytest.approx(stds, rel=0.06)
    inside = (np.abs(drawn) <= fit.spread(0.95) * stds).mean(axis=0)
    assert (np.abs(inside - 0.95) < 0.02).all()
    assert fit.widest >= stds.max() * 0.99


@pytest.mark.parametrize(("d", "n", "epsilon", "more"), [
    (2, 1000, 4, {}), (3, 1000, 1, {}), (2, 10_000, 1, {}), (2, 1000, 4, {"bandwidth": 0.1}),
])  # fmt: skip
def test_the_band_has_its_confidence_at_the_bounds(d, n, epsilon, more):
    """Few cells count next to a bound, so that the noise has a heavier tail there than inside."""
    fit = histogram_fit(question_of(d, n, ADDED, **more), Fraction(epsilon))
    at = np.array([[-1.0] * d, [-1.0] * (d - 1) + [0.0], [0.0] * d])
    numbers = np.eye(int(np.prod(fit.cells)))
    loads = np.array([fit.values(row, at)[:, 0] for row in numbers[: len(numbers) // 2 + fit.cells[-1]]])
    loads = loads[np.abs(loads).max(axis=1) > 1e-4 * np.abs(loads).max()]
    rng, chance = np.random.default_rng(6), 1 - math.exp(-epsilon)
    drawn = rng.geometric(chance, (10_000, len(loads))) - rng.geometric(chance, (10_000, len(loads)))
    noise = np.abs(drawn @ loads)[:, :2] / fit.stds(at)[:2]
    for confidence, least in ((0.95, 0.942), (0.99, 0.986)):
        assert ((noise <= fit.spread(confidence)).mean(axis=0) > least).all()


def test_cells_and_bandwidths_are_chosen():
    fine = best_shape(10_000, 2, 8.0, None)
    loud = best_shape(10_000, 2, 8e4, None)
    assert max(loud.bandwidths) > max(fine.bandwidths)
    assert aliasing(1.5, 1) < 1e-5 < aliasing(2.2, 1)
    assert best_shape(10, 3, 1.0, (1e-6, 1e-6, 1e-6)).cells[0] <= 64


def test_the_plain_question_gets_it():
    for d in (1, 2, 3):
        how = choose(question_of(d, 10_000), price(epsilon=1))
        assert isinstance(how.fit, HistogramDensityFit)
        assert "the price is pure" in how.reason
        assert how.pure() <= 1
        normal = choose(question_of(d, 10_000), price(epsilon=1, delta=1e-6))
        assert not isinstance(normal.fit, HistogramDensityFit)
    series = choose(question_of(2, 10_000, guarantee="pure"), price(epsilon=1))
    assert isinstance(series.fit, HistogramDensityFit)
    assert series.fit.keys
    asked = choose(question_of(2, 10_000, guarantee="pure", order=4), price(epsilon=1))
    assert not isinstance(asked.fit, HistogramDensityFit)
    then = choose(question_of(2, 10_000, guarantee="pure"), price(epsilon=1), earlier=True)
    assert not isinstance(then.fit, HistogramDensityFit)


def test_released_and_replayed():
    rng = np.random.default_rng(5)
    data = pd.DataFrame(mixture(rng, 2000, 2), columns=NAMES[:2])
    schema = {k: tacit.number(0, 1) for k in NAMES[:2]}
    with tacit.Curator(data, protect=ADDED, schema=schema, budget=tacit.Pure(epsilon=10)) as curator:
        for more in ({}, {"guarantee": "pure"}):
            ask = tacit.density(NAMES[:2], size=2000, points=5, **more)
            answer = curator.release(ask, epsilon=2)
            again = curator.release(ask, epsilon=2)
            assert (np.asarray(answer.table["value"]) == np.asarray(again.table["value"])).all()
            high, value = np.asarray(answer.table["high"]), np.asarray(answer.table["value"])
            assert (value <= high).all()
            assert (value >= 0).all()
            with pytest.raises(tacit.errors.InvalidParameter, match="Gaussian noise, or a Fourier series"):
                answer.function.density()


def test_points_in_pieces(monkeypatch):
    fit = histogram_fit(question_of(2, 500), Fraction(1))
    numbers = np.arange(np.prod(fit.cells), dtype=float)
    at = np.random.default_rng(6).uniform(-1, 1, (20, 2))
    whole = fit.values(numbers, at)
    monkeypatch.setattr(importlib.import_module("tacit.curator.functions.histogram_fit"), "PIECE", 7)
    assert fit.values(numbers, at) == pytest.approx(whole)
