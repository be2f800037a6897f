"""Noise and claims of released functions where no two numbers are equal: a factor that is left out shows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.functions import Box, GaussianProcessRelease
from tacit.functions import density_families as families
from tacit.functions.bases import FourierBasis, HistogramBasis
from tacit.functions.densities import DensityChoice, DensityPlan, GaussianKDE, SobolevKDE
from tacit.functions.fourier import FourierKDE, FourierPlan, FourierRegression
from tacit.functions.kernels import GaussianKernel
from tacit.functions.models import (
    Hinge,
    Huber,
    KernelModelPlan,
    LinearFeatures,
    PenaltyChoice,
    PublicBall,
    model_sensitivity,
)
from tacit.guarantees import Neighbours
from tacit.mechanisms import L1, L2
from tacit.noise import SeededSource

UNIT = Box.unit()
BALL = LinearFeatures(features=2, domain=PublicBall(radius=1.0))


def model(**more: Any) -> KernelModelPlan:
    given = {"loss": Hinge(), "features": BALL, "penalty": 0.1, "size": 50, "mu": 0.7}
    return KernelModelPlan(**(given | more))


# --- models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("tolerance", [0.0, 0.28])
def test_every_number_of_a_machine_counts(heads: int, rows: int, tolerance: float) -> None:
    """M radius rows / (penalty size), half of it for rows that come or go; the solver's distance twice; sqrt(heads)."""
    given: dict[str, Any] = {
        "lipschitz": 3.0, "radius": 5.0, "penalty": 7.0, "size": 11, "rows": rows, "tolerance": tolerance,
        "heads": heads,
    }  # fmt: skip
    exact, solver = 15 * rows / 77, 2 * math.sqrt(tolerance / 7)
    replaced = model_sensitivity(**given, neighbours=Neighbours.REPLACE_ONE)
    added = model_sensitivity(**given, neighbours=Neighbours.ADD_OR_REMOVE)
    assert replaced == pytest.approx((exact + solver) * math.sqrt(heads), rel=1e-12)
    assert added == pytest.approx((exact / 2 + solver) * math.sqrt(heads), rel=1e-12)
    if tolerance == 0.0 and heads == 1:
        assert Fraction(replaced) >= Fraction(15 * rows, 77)


def test_a_plan_sizes_its_noise_by_all_of_them() -> None:
    base = model()
    assert base.exact_noise_std == Fraction(base.l2_sensitivity) / Fraction(0.7)
    assert base.noise_std == float(base.exact_noise_std)
    assert base.l2_sensitivity == pytest.approx(1 / (0.1 * 50), rel=0.011)
    assert base.l2_sensitivity > 1 / (0.1 * 50)
    for more, factor in (
        ({"heads": 4}, 2.0),
        ({"rows": 3}, 3.0),
        ({"size": 25}, 2.0),
        ({"penalty": 0.05}, 2.0),
        ({"neighbours": Neighbours.ADD_OR_REMOVE}, 0.5),
        ({"loss": Huber(threshold=0.25)}, 0.25),
    ):
        made = model(**more)
        assert made.l2_sensitivity / base.l2_sensitivity == pytest.approx(factor, rel=0.02)
        assert made.bound.mu == pytest.approx(0.7, rel=1e-9)
        assert made.mechanism.coordinates == made.features.dimension * made.heads
    # A coarser solver is paid for: twice the root of the tolerance over the penalty.
    coarse = model(tolerance=0.001)
    assert coarse.l2_sensitivity == pytest.approx(0.2 + 2 * math.sqrt(0.01), rel=1e-9)


def test_a_choice_of_penalties_is_sized_by_the_worst_of_them() -> None:
    """Weak penalties move the model most; strong ones leave the held-out row's own loss, clip / tested."""
    plan = model(size=20)

    def size(*candidates: float, **more: Any) -> float:
        return PenaltyChoice(plan=plan, candidates=candidates, epsilon=1, held_out=3, **more).risk_sensitivity

    made = PenaltyChoice(plan=plan, candidates=[1.0], epsilon=1, held_out=3)
    assert made.tested == 6
    assert made._training(1.0).size == 14
    assert size(100.0) == pytest.approx(2 / 6, rel=1e-6)
    assert size(100.0, clip=1.5) == pytest.approx(1.5 / 6, rel=1e-6)
    assert size(0.1) == pytest.approx(1 / (0.1 * 14), rel=0.011)
    assert size(0.1) > 1 / (0.1 * 14)
    assert size(100.0, 0.1, 50.0) == pytest.approx(size(0.1))
    assert size(0.1, 100.0) == pytest.approx(size(0.1))
    assert size(0.001) == pytest.approx(2, rel=1e-6)
    heads = PenaltyChoice(
        plan=replace(plan, heads=3, tolerance=None), candidates=[100.0], epsilon=1, held_out=3
    )
    assert heads.risk_sensitivity == pytest.approx(3 * 2 / 6, rel=1e-6)


def test_a_choice_of_penalties_is_paid_once_whichever_way_it_is_made() -> None:
    made = PenaltyChoice(plan=model(size=20), candidates=[0.1, 1.0, 5.0, 9.0], epsilon=Fraction(1, 3))
    flip, noise = made._mechanisms()
    assert flip.sensitivity.exact == Fraction(made.risk_sensitivity)
    assert flip.epsilon == Fraction(1, 3)
    assert noise.exact_epsilon <= Fraction(1, 12)
    assert float(noise.exact_epsilon) == pytest.approx(1 / 12, rel=1e-6)
    assert made.bound.epsilon_at(0.0) == pytest.approx(1 / 3)


# --- densities -------------------------------------------------------------------------------------------------


FAMILIES: dict[str, families.DensityFamily] = {
    "kde": GaussianKDE(domain=UNIT, bandwidth=0.4),
    "kde in two": GaussianKDE(domain=Box(low=(0, -1), high=(2, 1)), bandwidth=(1.0, 0.9)),
    "sobolev": SobolevKDE(domain=UNIT, bandwidth=0.5),
    "sobolev in two": SobolevKDE(domain=Box.unit(2), bandwidth=(0.5, 0.9), points=4),
    "fourier": FourierBasis(domain=UNIT, order=2),
    "fourier in two": FourierBasis(domain=Box.unit(2), order=(1, 2)),
    "histogram": HistogramBasis(domain=UNIT, bins=3),
    "histogram in two": HistogramBasis(domain=Box.unit(2), bins=(2, 3)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_one_row_moves_the_sums_no_further_than_claimed(name: str) -> None:
    """By what is summed: two rows at places of the lattice, each put on the grid, in both norms and relations."""
    family = FAMILIES[name]
    rng = np.random.default_rng(7)
    low, high = np.array(family.box.lows), np.array(family.box.highs)
    corners = np.stack(np.meshgrid(*[[a, (a + b) / 2, b] for a, b in zip(low, high, strict=True)]), axis=-1)
    rows = np.vstack(
        [corners.reshape(-1, family.dimension), low + (high - low) * rng.random((25, family.dimension))]
    )
    sums = (
        np.array([family.sums(r[None, :], outside="edge") for r in rows]).astype(np.float64)
        * 2.0**-families.BITS
    )
    apart = sums[:, None, :] - sums[None, :, :]
    for norm, claimed in ((2, family.l2_sensitivity), (1, family.l1_sensitivity)):
        alone = float(np.linalg.norm(sums, ord=norm, axis=1).max())
        moved = float(np.linalg.norm(apart, ord=norm, axis=2).max())
        assert alone <= claimed(Neighbours.ADD_OR_REMOVE)
        assert max(moved, alone) <= claimed(Neighbours.REPLACE_ONE)
        if norm == 2:
            assert claimed(Neighbours.ADD_OR_REMOVE) <= 1.35 * alone
            assert claimed(Neighbours.REPLACE_ONE) <= 2.05 * claimed(Neighbours.ADD_OR_REMOVE)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_density_is_sized_by_all_rows_of_a_unit(rows: int, neighbours: Neighbours) -> None:
    family = FAMILIES["kde"]
    more: dict[str, Any] = {"family": family, "size": 9, "rows": rows, "neighbours": neighbours}
    normal = DensityPlan(mu=0.7, **more)
    two = Fraction(family.l2_sensitivity(neighbours)) * rows
    assert isinstance(normal.sensitivity, L2)
    assert normal.sensitivity.exact == two
    assert normal.noise_mechanism.noise_std == two / Fraction(0.7)  # type: ignore[union-attr]
    assert normal.bound.mu == pytest.approx(0.7, rel=1e-6)  # type: ignore[attr-defined]
    plain = DensityPlan(epsilon=Fraction(1, 3), mechanism="laplace", **more)
    assert isinstance(plain.sensitivity, L1)
    assert plain.sensitivity.exact == Fraction(family.l1_sensitivity(neighbours)) * rows
    assert float(plain.noise_mechanism.exact_epsilon or 0) == pytest.approx(1 / 3, rel=1e-6)
    assert float(plain.noise_mechanism.noise_scale) == pytest.approx(
        3 * float(plain.sensitivity.exact), rel=1e-6
    )  # type: ignore[union-attr]
    round_ = DensityPlan(epsilon=Fraction(1, 3), mechanism="gamma", **more)
    assert float(round_.noise_mechanism.noise_scale) == pytest.approx(3 * float(two), rel=1e-6)  # type: ignore[union-attr]


def test_sums_of_very_many_rows_do_not_wrap_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^40 rows in one cell: a 64-bit sum of 32-bit parts would wrap, Python's integers do not."""
    family = HistogramBasis(domain=UNIT, bins=3)
    one = family.sums(np.array([[0.1]]), outside="edge")
    where, _ = families.cells_of(np.array([[0.1]]), UNIT, family.cells, "edge")
    for count in (1 << 29, 1 << 40):
        many = np.array([count], dtype=np.int64)
        monkeypatch.setattr(families, "cells_of", lambda *_, many=many: (where, many))
        assert [int(v) for v in family.sums(np.array([[0.1]]), outside="edge")] == [
            int(v) * count for v in one
        ]


def test_a_choice_of_families_is_sized_by_what_a_row_moves() -> None:
    """Every replaced row of a small table moves each score by less than claimed, and some by a tenth of it."""
    rng = np.random.default_rng(3)
    rows = rng.random((4, 1))
    plan = DensityPlan(family=FAMILIES["kde"], size=4, mu=1.0)
    for one in (FAMILIES["kde"], FAMILIES["fourier"], FAMILIES["histogram"]):
        made = DensityChoice(plan=plan, candidates=[one], epsilon=1)  # type: ignore[list-item]
        before = made.scores(rows)[0]
        moves = []
        for place in range(4):
            for value in (0.0, 0.25, 0.5, 0.75, 1.0):
                other = rows.copy()
                other[place] = value
                moves.append(abs(float(made.scores(other)[0] - before)))
        assert 0.1 * made.score_sensitivity <= max(moves) <= made.score_sensitivity


# --- series and paths --------------------------------------------------------------------------------------------


def test_noise_of_a_series_grows_with_the_rows_of_a_unit() -> None:
    family = FourierKDE(domain=UNIT, bandwidth=0.2, order=3)
    for mechanism in ("laplace", "gamma", "caratheodory", "gaussian"):
        more: dict[str, Any] = {
            "family": family,
            "size": 40,
            "epsilon": 1,
            "delta": 1e-6,
            "mechanism": mechanism,
        }
        one, three = (FourierPlan(rows=r, **more).choice.energy for r in (1, 3))
        assert three == pytest.approx(9 * one, rel=0.01)
        added = FourierPlan(neighbours=Neighbours.ADD_OR_REMOVE, **more).choice.energy
        assert one > 1.2 * added


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_regression_pays_its_three_parts(neighbours: Neighbours) -> None:
    """9/20, 9/20 and 1/10 of epsilon; a replaced response moves the total by 2, one that comes or goes by 1."""
    family = FourierKDE(domain=UNIT, bandwidth=0.2, order=3)
    made = FourierRegression(family=family, size=40, epsilon=2, low=-5, high=7, neighbours=neighbours)
    moved = 2 if neighbours is Neighbours.REPLACE_ONE else 1
    parts = (made.density_plan.bound, made.weighted_noise.bound, made.total_noise.bound)
    assert [float(p.epsilon) for p in parts] == pytest.approx([0.9, 0.9, 0.2], rel=1e-9)  # type: ignore[attr-defined]
    assert made.bound.epsilon == pytest.approx(2, rel=1e-9)
    assert Fraction(made.bound.epsilon) >= sum(Fraction(p.epsilon) for p in parts)  # type: ignore[attr-defined]
    assert made.density_plan.neighbours is neighbours
    assert made.total_noise.noise_scale == Fraction(moved * 5)
    # Each of a record's terms is rounded, once where it is and once where it was; levels round the responses.
    assert moved * 1.0001 < float(made.weighted_noise.sensitivity.exact) < moved + 0.02
    assert made.weighted_noise.exact_epsilon == Fraction(9, 10)
    rng = np.random.default_rng(1)
    x, y = rng.random((40, 1)), rng.random((40, 1))
    released = made.release(x, y, source=SeededSource(seed=1))
    assert released.publishable is False
    with pytest.raises(errors.InvalidParameter, match="one for each row"):
        made.release(x, y[:-1], source=SeededSource(seed=1))
    if neighbours is Neighbours.REPLACE_ONE:
        with pytest.raises(errors.InvalidParameter, match="as planned"):
            made.release(x[:-1], y[:-1], source=SeededSource(seed=1))
    else:
        made.release(x[:-1], y[:-1], source=SeededSource(seed=1))


def test_a_path_is_sized_by_its_sensitivity_over_mu() -> None:
    kernel = GaussianKernel(bandwidth=0.3, dimension=1)
    made = GaussianProcessRelease.for_mu(mu=Fraction(1, 4), kernel=kernel, rkhs_sensitivity=3, domain=UNIT)
    assert made.noise_std == 12
    assert made.bound.mu == pytest.approx(0.25)
    assert made.bound.mu >= 0.25
    assert GaussianProcessRelease(
        kernel=kernel, rkhs_sensitivity=3, noise_std=7, domain=UNIT
    ).bound.mu == pytest.approx(3 / 7)
