"""How far one row moves a model: neighbours from the definition, never further than stated, and how near one gets."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.functions.models import (
    EpsilonInsensitive,
    FourierFeatures,
    Hinge,
    Huber,
    KernelModelPlan,
    LinearFeatures,
    Logistic,
    PublicBall,
    PublicBox,
    model_sensitivity,
    solver_distance,
)
from tacit.functions.models.solvers import FitProblem, Loss, SmoothLoss, gap_of_hinges, gap_of_smooth
from tacit.noise.source import SeededSource

LOSSES = [Hinge(), Logistic(), EpsilonInsensitive(tube=0.1), Huber(threshold=0.3)]
MAPS = [
    LinearFeatures(features=2, domain=PublicBall(radius=2.0), intercept=0.5),
    FourierFeatures(features=2, domain=PublicBox(low=-2, high=2), gamma=1.0, pairs=6),
]


def quiet(loss: Loss, features: object, penalty: float, size: int) -> KernelModelPlan:
    """A plan with almost no noise: what it releases is what it trained."""
    return KernelModelPlan(loss=loss, features=features, penalty=penalty, size=size, mu=1e9)  # type: ignore[arg-type]


def released(plan: KernelModelPlan, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return plan.release(X, [y], source=SeededSource(seed=0)).weights[0]


@pytest.mark.parametrize("features", MAPS, ids=["linear", "fourier"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_no_replaced_row_moves_the_weights_further_than_stated(loss: Loss, features: object) -> None:
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(40):
        n = int(rng.integers(1, 12))
        penalty = float(10 ** rng.uniform(-3, 0.5))
        X, y = rng.normal(size=(n, 2)) * 2, rng.choice([-1.0, 1.0], size=n)
        other, label = X.copy(), y.copy()
        place = rng.integers(n)
        other[place], label[place] = rng.normal(size=2) * 10 ** rng.uniform(-2, 9), -y[place]
        plan = quiet(loss, features, penalty, n)
        # Hall 2012, 3.3.3: M sqrt(sup K) / (lambda n), from the definitions and not from the plan.
        stated = loss.lipschitz * math.sqrt(1.25 if features is MAPS[0] else 1.0) / (penalty * n)
        assert stated <= plan.l2_sensitivity <= 1.02 * stated + 1e-6 * math.sqrt(1 / penalty)
        ratios.append(
            np.linalg.norm(released(plan, X, y) - released(plan, other, label)) / plan.l2_sensitivity
        )
    assert max(ratios) <= 1 + 1e-6
    assert max(ratios) > 0.3


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(), Huber(threshold=0.05)], ids=lambda x: x.name)
def test_the_stated_distance_is_reached(loss: Loss) -> None:
    """All rows alike and far from their targets: turning one label moves the model by M radius / (penalty size)."""
    features = LinearFeatures(features=1, domain=PublicBall(radius=1.0))
    plan = quiet(loss, features, 3.0, 10)
    X, y = np.ones((10, 1)), np.resize([1.0, -1.0], 10)
    other = y.copy()
    other[0] = -1.0
    moved = np.abs(released(plan, X, y) - released(plan, X, other)).max()
    exact = loss.lipschitz / 30
    assert moved == pytest.approx(exact, rel=1e-3)
    assert 0.98 * plan.l2_sensitivity <= moved <= 1.001 * plan.l2_sensitivity


def test_an_absent_row_is_a_neighbour_too() -> None:
    """A row with a missing value, or a label that nobody declared, counts for nothing: within the same distance."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(8, 2)), rng.choice([-1.0, 1.0], size=8)
    for loss in LOSSES:
        plan = quiet(loss, MAPS[0], 0.05, 8)
        whole = released(plan, X, y)
        for place in range(8):
            gone = X.copy()
            gone[place, 0] = np.nan
            unlabelled = y.copy()
            unlabelled[place] = np.nan
            first, second = released(plan, gone, y), released(plan, X, unlabelled)
            assert np.linalg.norm(first - second) < 2e-2 * plan.l2_sensitivity
            assert np.linalg.norm(first - whole) <= (0.5 + 0.02) * plan.l2_sensitivity


def test_formulas() -> None:
    given = {"lipschitz": 1.0, "radius": 1.0, "penalty": 0.25, "size": 8}
    assert model_sensitivity(**given) == 0.5  # type: ignore[arg-type]
    assert model_sensitivity(**given, rows=3) == 1.5  # type: ignore[arg-type]
    assert model_sensitivity(**given, neighbours="add-or-remove") == 0.25  # type: ignore[arg-type]
    assert model_sensitivity(**given, heads=4) == 1.0  # type: ignore[arg-type]
    assert model_sensitivity(**given, tolerance=0.01) == pytest.approx(0.5 + 2 * 0.2)  # type: ignore[arg-type]
    assert Fraction(solver_distance(tolerance=0.5, penalty=1.0)) ** 2 >= Fraction(1, 2)


def test_two_vectors_within_the_tolerance_can_be_as_far_apart_as_is_counted() -> None:
    """With no loss at all J(w) = penalty |w|^2: w and -w of length sqrt(gap / penalty) both have this gap."""
    penalty, gap = 0.3, 1e-3
    w = math.sqrt(gap / penalty)
    assert penalty * w**2 == pytest.approx(gap)
    assert 2 * w <= 2 * solver_distance(tolerance=gap, penalty=penalty) <= 2 * w * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_certified_gaps_are_never_below_the_true_ones(loss: Loss) -> None:
    """The true gap by a second solver: scipy's, from the definition of J."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], size=30)
    features, penalty = MAPS[0], 0.02
    phi = features.of(X)
    problem = FitProblem(
        loss=loss, phi=phi, target=y, penalty=penalty, size=30, radius=features.radius, rounding=features.rounding
    )  # fmt: skip

    def by_hand(t: float, target: float) -> float:
        if loss.name == "hinge":
            return max(0.0, 1 - target * t)
        if loss.name == "logistic":
            return math.log1p(math.exp(-target * t))
        r = abs(t - target)
        if loss.name == "epsilon-insensitive":
            return max(0.0, r - 0.1)
        return r**2 / 2 if r <= 0.3 else 0.3 * r - 0.3**2 / 2

    def objective(w: np.ndarray) -> float:
        return sum(by_hand(float(p @ w), t) for p, t in zip(phi, y, strict=True)) / 30 + penalty * float(
            w @ w
        )

    plan = quiet(loss, features, penalty, 30)
    best = plan.train(X, [y])[0]
    found = minimize(objective, best, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13})
    least = min(float(found.fun), objective(best))
    assert objective(best) - least <= 2 * plan.tolerance  # type: ignore[operator]
    for size in (0.0, 1e-4, 1e-2, 1.0):
        w = best + size * rng.normal(size=3)
        if isinstance(loss, SmoothLoss):
            certified = gap_of_smooth(problem, w)
        else:
            b, g = loss.hinges(y)  # type: ignore[attr-defined]
            certified = gap_of_hinges(problem, w, rng.uniform(size=b.shape))
            # The dual that belongs to w: 1 where the hinge is open, 0 where it is closed.
            certified = min(certified, gap_of_hinges(problem, w, (g - b * (phi @ w) > 0).astype(float)))
        # The comparison is in floats, and off by some units.
        assert certified >= objective(w) - least - 1e-14
    assert gap_of_smooth(problem, np.zeros(3)) > 0 if isinstance(loss, SmoothLoss) else True


def test_a_dual_vector_outside_of_its_bounds_certifies_nothing() -> None:
    """Twice the dual would make the lower bound larger than the minimum."""
    features = LinearFeatures(features=1, domain=PublicBall(radius=1.0))
    problem = FitProblem(
        loss=Hinge(), phi=np.ones((4, 1)), target=np.ones(4), penalty=1.0, size=4, radius=1.0,
        rounding=features.rounding,
    )  # fmt: skip
    w = np.array([1.0])
    # min (1 - w)+ + w^2 = 3/4 at w = 1/2; J(1) = 1.
    assert gap_of_hinges(problem, w, np.full((1, 4), 2.0)) >= 0.25
    assert gap_of_hinges(problem, np.array([0.5]), np.ones((1, 4))) == pytest.approx(0, abs=1e-12)


def test_strange_sizes_are_refused() -> None:
    for bad in ({"penalty": 0.0}, {"penalty": math.nan}, {"size": 0}, {"rows": 0}, {"tolerance": -1.0}):
        given = {"lipschitz": 1.0, "radius": 1.0, "penalty": 1.0, "size": 1} | bad
        with pytest.raises(InvalidParameter):
            model_sensitivity(**given)  # type: ignore[arg-type]
