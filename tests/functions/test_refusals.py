"""Bounds that a sensitivity rests on: what would break one is refused, and the input that does is here."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from tacit import errors
from tacit.functions import Box, GaussianProcessRelease
from tacit.functions.bases import FourierBasis
from tacit.functions.boxes import MOST_DIMENSIONS
from tacit.functions.densities import (
    DensityChoice,
    DensityPlan,
    GaussianKDE,
    GriddedDensity,
    SobolevKDE,
    expected_errors,
)
from tacit.functions.densities.noises import FourierSeriesNoise, noise_from_record
from tacit.functions.densities.plan import normal_reference
from tacit.functions.densities.table import family_from_record
from tacit.functions.fourier.plan import fourier_order, truncation_bound, wrapping_bound
from tacit.functions.kernels import (
    ExponentialKernel,
    GaussianKernel,
    PeriodicKernel,
    PolynomialKernel,
    TensorProductKernel,
)
from tacit.functions.kernels.base import nystrom
from tacit.functions.means import KernelCombination
from tacit.functions.models import (
    FourierFeatures,
    Hinge,
    KernelModelPlan,
    LinearFeatures,
    PenaltyChoice,
    PrivateKernelRegressor,
    PublicBall,
)
from tacit.functions.models.training import ReleasedModel
from tacit.functions.paths import online as records
from tacit.functions.paths.grids import RegularGrid, rounded
from tacit.guarantees import GaussianDP

UNIT = Box.unit()
KERNEL = GaussianKernel(bandwidth=0.3, dimension=1)
EVEN = GriddedDensity(domain=UNIT, probabilities=np.full(4, 0.25))
TRAINED = ReleasedModel(
    features=LinearFeatures(features=2, domain=PublicBall(radius=1.0)), weights=np.ones((1, 2)), noise_std=1.0,
    bound=GaussianDP(mu=1.0), loss="hinge", penalty=0.1, publishable=False,
)  # fmt: skip


def model(**more: Any) -> KernelModelPlan:
    features = LinearFeatures(features=2, domain=PublicBall(radius=1.0))
    given = {"epsilon": 1, "delta": 1e-5, "loss": Hinge(), "features": features, "size": 20, "penalty": 0.1}
    return KernelModelPlan.for_target(**(given | more))


def combination(coefficients: Any, absolute_sum: Any) -> KernelCombination:
    points = np.linspace(0, 1, 3)[:, None]
    return KernelCombination(
        kernel=KERNEL, points=points, coefficients=coefficients, absolute_sum=absolute_sum
    )


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "coefficients above their bound": (lambda: combination([1.0, -1.0, 1.0], 2), "sum of the coefficients' sizes"),
    "too few coefficients": (lambda: combination([1.0, 1.0], 9), "one finite number for each point"),
    "a coefficient without end": (lambda: combination([1.0, np.inf, 1.0], 9), "one finite number for each point"),
    "a choice of penalties where rows come and go": (
        lambda: PenaltyChoice(plan=model(neighbours="add-or-remove"), candidates=[1.0], epsilon=1),
        "one row replaced",
    ),
    "a choice of penalties for several rows": (
        lambda: PenaltyChoice(plan=model(rows=2), candidates=[1.0], epsilon=1), "one row replaced",
    ),
    "a choice of penalties without a plan": (
        lambda: PenaltyChoice(plan=3, candidates=[1.0], epsilon=1), "KernelModelPlan",  # type: ignore[arg-type]
    ),
    "a choice of families without a plan": (
        lambda: DensityChoice(plan=3, candidates=[], epsilon=1), "DensityPlan",  # type: ignore[arg-type]
    ),
    "ends of other lengths": (lambda: Box(low=(0, 0), high=(1,)), "as low"),
    "a length far from the bandwidth": (
        lambda: SobolevKDE(domain=UNIT, bandwidth=0.1, length=100.0), "1/64 and 64 bandwidths",
    ),
    "a record that is no noise": (lambda: noise_from_record(3), "a table with a kind"),  # type: ignore[arg-type]
    "probabilities of another dimension": (
        lambda: GriddedDensity(domain=UNIT, probabilities=np.full((2, 2), 0.25)), "have 1",
    ),
    "more cells than are held": (
        lambda: DensityPlan(family=GaussianKDE(domain=Box.unit(2), bandwidth=0.2), size=5, mu=1.0)
        .release(np.full((5, 2), 0.5))
        .on_grid(1 << 12),
        "at most 2",
    ),
    "orders of another dimension": (lambda: FourierBasis(domain=UNIT, order=(1, 2)), "be one, or 1"),
    "an order that is too high": (lambda: FourierBasis(domain=UNIT, order=1 << 20), "be at most"),
    "margins of no coordinate": (lambda: EVEN.marginal([]), "different numbers from 0 to 0"),
    "margins of a coordinate twice": (lambda: EVEN.marginal([0, 0]), "different numbers from 0 to 0"),
    "margins of another coordinate": (lambda: EVEN.marginal([1]), "different numbers from 0 to 0"),
    "more made-up rows than are made": (lambda: EVEN.sample(10**7 + 1), "at most 10000000"),
    "probabilities that do not add up": (
        lambda: GriddedDensity(domain=UNIT, probabilities=np.array([0.5, 0.6])), "sum to one",
    ),
    "probabilities below 0": (
        lambda: GriddedDensity(domain=UNIT, probabilities=np.array([1.5, -0.5])), "sum to one",
    ),
    "a level above 1": (lambda: EVEN.quantile([1.1]), r"\[0, 1\]"),
    "a bandwidth that needs too many coefficients": (
        lambda: GaussianKDE(domain=Box.unit(3), bandwidth=0.008).coefficients, "coefficients",
    ),
    "noise of no known law": (
        lambda: FourierSeriesNoise(mechanism="cauchy", noise_scale=1.0, order=1), "caratheodory",
    ),
    "a reference on another box": (
        lambda: expected_errors(
            DensityPlan(family=GaussianKDE(domain=UNIT, bandwidth=0.2), size=5, mu=1.0), normal_reference(Box.unit(2))
        ), "domain of the plan's family",
    ),
    "a path at too many points": (
        lambda: SobolevKDE(domain=UNIT, bandwidth=0.1, points=(1 << 15) + 1), "be at most 32768",
    ),
    "a family that is no table": (lambda: family_from_record(3), "a table with a name"),
    "a family without a name": (lambda: family_from_record({"low": [0]}), "a table with a name"),
    "a bandwidth above the circle": (lambda: fourier_order(bandwidth=5), "between 2"),
    "a bandwidth below all": (lambda: fourier_order(bandwidth=2.0**-21), "between 2"),
    "a tail and a size": (lambda: fourier_order(bandwidth=0.1, tail=0.1, size=9), "without a size"),
    "a rim of half the box": (lambda: wrapping_bound(bandwidth=0.1, margin=0.5), "below 1/2"),
    "a rim below 0": (lambda: wrapping_bound(bandwidth=0.1, margin=-0.1), "below 1/2"),
    "an order that is not summed": (lambda: truncation_bound(order=(1 << 17) + 1, bandwidth=0.1), "at most 2"),
    "dimensions that are not summed": (
        lambda: truncation_bound(order=1, bandwidth=0.1, dimension=65), "at most 64",
    ),
    "more eigenvalues than nodes": (
        lambda: nystrom(GaussianKernel(bandwidth=0.3, dimension=3), Box.unit(3), 100_000), "in dimension 3",
    ),
    "a length below all": (lambda: GaussianKernel(bandwidth=2.0**-201, dimension=1), "between 2"),
    "a length above all": (lambda: GaussianKernel(bandwidth=2.0**201, dimension=1), "between 2"),
    "a product of too many coordinates": (
        lambda: TensorProductKernel(kernels=[GaussianKernel(bandwidth=0.3, dimension=MOST_DIMENSIONS), KERNEL]),
        "coordinates",
    ),
    "the norm of a function of two numbers": (
        lambda: ExponentialKernel(length=1.0, dimension=2).sobolev_squared_norm(np.sin, np.cos, UNIT), "be 1",
    ),
    "a period's length that floats lose": (lambda: PeriodicKernel(length=2.0**21, period=1.0), "between 2"),
    "a polynomial on no box": (lambda: PolynomialKernel(degree=2, box=3), "be a Box"),  # type: ignore[arg-type]
    "a polynomial far from 0": (
        lambda: PolynomialKernel(degree=2, box=Box(low=(0,), high=(1025,))), "within 1024",
    ),
    "more waves than are held": (
        lambda: FourierFeatures(features=1, domain=PublicBall(radius=1.0), gamma=1.0, pairs=(1 << 16) + 1), "at most",
    ),
    "points of another dimension": (lambda: TRAINED([[1.0, 2.0, 3.0]]), "2 columns"),
    "a point without end": (lambda: TRAINED([[1.0, np.inf]]), "be finite"),
    "rows of another dimension": (lambda: model().train(np.zeros((3, 3)), [np.ones(3)]), "2 columns"),
    "targets of another number": (lambda: model().train(np.zeros((3, 2)), [np.ones(3)] * 2), "1 targets"),
    "a path of no kernel": (
        lambda: GaussianProcessRelease(kernel=3, rkhs_sensitivity=1, noise_std=1, domain=UNIT), "be a kernel",  # type: ignore[arg-type]
    ),
    "a path on another box": (
        lambda: GaussianProcessRelease(kernel=KERNEL, rkhs_sensitivity=1, noise_std=1, domain=Box.unit(2)),
        "Box of dimension 1",
    ),
    "a mean that cannot be kept": (lambda: records.to_bytes(3), "to be kept"),  # type: ignore[arg-type]
    "a kept mean of another kind": (lambda: records.mean_from({"mean": "spline"}, {}), "to be kept"),
    "a grid finer than floats": (
        lambda: RegularGrid.of(Box(low=(2.0**40,), high=(2.0**40 + 2.0**-12,)), (1 << 12,)), "neighbouring floats",
    ),
    "targets that are bounded by one number": (lambda: bounded((1.0,)), "two finite numbers"),
    "targets that are bounded the wrong way": (lambda: bounded((1.0, 0.0)), "two finite numbers"),
    "targets without a bound": (lambda: bounded((0.0, np.inf)), "two finite numbers"),
    "an open rounding": (lambda: rounded(flint.arb("0.5 +/- 0.1"), Fraction(1)), "still open"),
}  # fmt: skip


def bounded(bounds: Any) -> Any:
    made = PrivateKernelRegressor(
        epsilon=1.0, delta=1e-5, domain=PublicBall(radius=1.0), target_bounds=bounds
    )
    return made.fit(np.zeros((30, 2)), np.zeros(30))


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = BAD[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_what_is_right_is_not_refused() -> None:
    assert combination([1.0, -1.0, 1.0], 3).norm_bound(KERNEL) == pytest.approx(3, rel=1e-9)
    assert PenaltyChoice(plan=model(), candidates=[1.0], epsilon=1).tested == 4
    assert SobolevKDE(domain=UNIT, bandwidth=0.1, length=0.2).dimension == 1
