"""Bounds that a sensitivity rests on: what would break one is refused, and the input that does is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.functions import Box
from tacit.functions.densities import DensityChoice, DensityPlan, GaussianKDE, GriddedDensity, SobolevKDE
from tacit.functions.densities.noises import noise_from_record
from tacit.functions.kernels import GaussianKernel
from tacit.functions.machines import Hinge, LinearFeatures, MachinePlan, PenaltyChoice, PublicBall
from tacit.functions.means import KernelCombination

UNIT = Box.unit()
KERNEL = GaussianKernel(bandwidth=0.3, dimension=1)


def machine(**more: Any) -> MachinePlan:
    features = LinearFeatures(features=2, domain=PublicBall(radius=1.0))
    given = {"epsilon": 1, "delta": 1e-5, "loss": Hinge(), "features": features, "size": 20, "penalty": 0.1}
    return MachinePlan.for_target(**(given | more))


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
        lambda: PenaltyChoice(plan=machine(neighbours="add-or-remove"), candidates=[1.0], epsilon=1),
        "one row replaced",
    ),
    "a choice of penalties for several rows": (
        lambda: PenaltyChoice(plan=machine(rows=2), candidates=[1.0], epsilon=1), "one row replaced",
    ),
    "a choice of penalties without a plan": (
        lambda: PenaltyChoice(plan=3, candidates=[1.0], epsilon=1), "MachinePlan",  # type: ignore[arg-type]
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
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = BAD[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_what_is_right_is_not_refused() -> None:
    assert combination([1.0, -1.0, 1.0], 3).norm_bound(KERNEL) == pytest.approx(3, rel=1e-9)
    assert PenaltyChoice(plan=machine(), candidates=[1.0], epsilon=1).tested == 4
    assert SobolevKDE(domain=UNIT, bandwidth=0.1, length=0.2).dimension == 1
