"""Refusals of the noise, each reached by an input of its own; and what rounding a float sampler costs, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from tacit import errors
from tacit.noise import (
    Bernoulli,
    CaratheodoryBody,
    Categorical,
    CertifiedReal,
    ComputableDistribution,
    DiscreteLaplace,
    DiscreteStaircase,
    FiniteDistribution,
    FormulaBody,
    GaussianVector,
    GridVector,
    KNormVector,
    LinfBall,
    Needs,
    Poisson,
    PolyaDifference,
    SampledBody,
    SeededSource,
    caratheodory_gauge,
    grid_spacing,
    rounding_delta,
)
from tacit.noise.distributions.base import WORD_LIMIT, Uniform


def sampled(value: float = 0.5, **more: Any) -> SampledBody:
    given = {
        "coordinates": 2, "sampler": lambda n, s: np.full((n, 2), value), "absolute_error": 1e-9,
        "marginal_density_bound": 1.0, "reach": 1.0,
    }  # fmt: skip
    return SampledBody(**(given | more))


def formula(**more: Any) -> FormulaBody:
    given = {"coordinates": 1, "primitives": Needs(uniforms=1), "sampler": lambda d: d.uniforms(1)}
    return FormulaBody(**(given | more))


def drawn(law: Any, spacing: Any = 1, **more: Any) -> Any:
    return law.sample(spacing=spacing, source=SeededSource(seed=1), **more)


UNKNOWN = CertifiedReal(evaluate=lambda: flint.arb("0.5 +/- 0.25"), name="a wide ball")
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a failure that is no probability": (lambda: sampled(failure_probability=1.5), "between 0 and 1"),
    "a failure below 0": (lambda: sampled(failure_probability=-0.5), "between 0 and 1"),
    "a sampler beyond its reach": (lambda: drawn(sampled(1.5)), "beyond the declared reach"),
    "a sampler of no numbers": (lambda: drawn(sampled(math.nan)), "not finite"),
    "a grid too fine for floats": (lambda: drawn(sampled(), 2.0**-60), "too fine for floats"),
    "an error as large as a cell": (lambda: drawn(sampled(absolute_error=0.25), 0.5), "as large as a grid cell"),
    "a factor of other rows": (
        lambda: GaussianVector(coordinates=2, noise_std=1, factor=[[1, 0]]), "have 2 rows",
    ),
    "the law of a coordinate that never moves": (
        lambda: GaussianVector(coordinates=2, noise_std=1, factor=[[1, 0], [0, 0]]).marginal(1), "always 0",
    ),
    "a covariance that is not symmetric": (
        lambda: formula(coordinates=2, declared_covariance=[[1, 0], [1, 1]]), "symmetric matrix",
    ),
    "a covariance with a diagonal of 0": (lambda: formula(declared_covariance=[[0]]), "diagonal above 0"),
    "a mean of other entries": (lambda: formula(declared_mean=[0, 0]), "have 1 entries"),
    "moments that nobody declared": (lambda: formula().exact_variances, "says nothing of them"),
    "K-norm noise of no body": (lambda: KNormVector(body=3, noise_scale=1), "convex body"),  # type: ignore[arg-type]
    "a later coordinate of the moment body": (
        lambda: CaratheodoryBody(frequencies=2).marginal(2), "only c_1",
    ),
    "more frequencies than are proved": (lambda: CaratheodoryBody(frequencies=513), "at most 512"),
    "moments of an odd number": (lambda: caratheodory_gauge([[1.0, 2.0, 3.0]]), "2m columns"),
    "a cost that is no probability": (
        lambda: GridVector(values=np.zeros(1), spacing=Fraction(1), publishable=False, numerical_delta=1.5),
        "between 0 and 1",
    ),
    "a spacing that is no power of two": (lambda: grid_spacing(Fraction(3, 4)), "power of two"),
    "a spacing whose denominator is none": (lambda: grid_spacing(Fraction(1, 3)), "power of two"),
    "a formula that draws more than it says": (
        lambda: drawn(KNormVector(body=formula(sampler=lambda d: d.uniforms(2)), noise_scale=1)), "declare all",
    ),
    "a formula of other columns": (
        lambda: drawn(
            KNormVector(body=formula(coordinates=2), noise_scale=1)
        ), "2 columns",
    ),
    "a coordinate beyond the last": (lambda: GaussianVector(coordinates=2, noise_std=1).marginal(2), "be below"),
    "an error below 0": (
        lambda: rounding_delta(coordinates=1, spacing=1, absolute_error=-1e-9, marginal_density_bound=1), "at least 0",
    ),
    "a level of 1": (lambda: DiscreteLaplace(noise_scale=1).quantile(1), "strictly between"),
    "a chance above 1": (lambda: Bernoulli(probability_of_one=Fraction(3, 2)), "between 0 and 1"),
    "a chance below 0": (lambda: Bernoulli(probability_of_one=Fraction(-1, 2)), "between 0 and 1"),
    "a chance that grows": (lambda: Bernoulli.exponential(-1), "at least 0"),
    "no weights": (lambda: FiniteDistribution(weights=[]), "empty"),
    "weights of 0": (lambda: FiniteDistribution(weights=[0, 0]), "not all be 0"),
    "a weight below 0": (lambda: FiniteDistribution(weights=[2, -1]), "at least 0"),
    "no log-weights": (lambda: Categorical(log_weights=[]), "empty"),
    "the mean of a law by its sums": (
        lambda: ComputableDistribution(cumulative_ball=lambda k: flint.arb(1), name="x").mean_ball(), "mean",
    ),
    "the variance of a law by its sums": (
        lambda: ComputableDistribution(cumulative_ball=lambda k: flint.arb(1), name="x").variance_ball(), "variance",
    ),
    "a coin that its ball never decides": (
        lambda: Bernoulli(probability_of_one=UNKNOWN).sample(size=(64,), source=SeededSource(seed=1)), "",
    ),
    "more counts than a Poisson law has": (lambda: Poisson(mean_count=(1 << 96) + 1), "at most 2"),
    "a Polya law of too large a scale": (lambda: PolyaDifference(shape=1, noise_scale=(1 << 48) + 1), "2\\^48"),
    "a staircase without a step": (lambda: DiscreteStaircase(epsilon=1, sensitivity=2, gamma=0), "gamma"),
    "a staircase of more than a step": (
        lambda: DiscreteStaircase(epsilon=1, sensitivity=2, gamma=Fraction(3, 2)), "lie in",
    ),
    "a number that is never decided": (
        lambda: Uniform(value=0, bits=64 * (WORD_LIMIT + 1), source=SeededSource(seed=1)).extend(), "do not decide",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match or None):
        act()


@pytest.mark.parametrize("spacing", [1, Fraction(1, 4)])
@pytest.mark.parametrize("failure", [0.0, 1e-3])
def test_what_rounding_a_float_sampler_costs(spacing: Fraction, failure: float) -> None:
    """Per coordinate 2 e (1/(g - 2 e) + 2 b): both numbers must fall into one cell, wherever the grid lies."""
    e, b, g = 0.01, 3.0, float(spacing)
    made = rounding_delta(
        coordinates=5,
        spacing=spacing,
        absolute_error=e,
        marginal_density_bound=b,
        failure_probability=failure,
    )
    want = 5 * 2 * e * (1 / (g - 2 * e) + 2 * b) + failure
    assert made == pytest.approx(min(1.0, want), rel=1e-9)
    assert made >= min(1.0, want)


def test_a_draw_of_a_float_sampler_tells_its_cost() -> None:
    one = drawn(sampled(failure_probability=1e-4), Fraction(1, 4))
    assert 1e-4 < one.numerical_delta < 1.1e-4
    many = drawn(sampled(failure_probability=1e-4), Fraction(1, 4), size=3)
    assert many.numerical_delta >= one.numerical_delta
    assert one.publishable is False
    assert drawn(GaussianVector(coordinates=2, noise_std=1)).numerical_delta == 0
    assert drawn(KNormVector(body=LinfBall(coordinates=2), noise_scale=1)).publishable is False
