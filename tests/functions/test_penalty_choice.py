"""The private choice of a penalty: how far one row moves a risk, which method errs less, and two prices that add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.functions.models import (
    FourierFeatures,
    Hinge,
    KernelModelPlan,
    LinearFeatures,
    Logistic,
    PenaltyChoice,
    PrivateLogisticRegression,
    PublicBall,
    PublicBox,
)
from tacit.functions.models.training import SPACING
from tacit.guarantees import Pure
from tacit.noise.source import SeededSource

FEATURES = LinearFeatures(features=2, domain=PublicBall(radius=1.0))


def choice(size: int = 20, **changes: object) -> PenaltyChoice:
    plan = KernelModelPlan.for_target(
        epsilon=1, delta=1e-5, loss=changes.pop("loss", Logistic()), features=FEATURES, size=size, penalty=0.1
    )  # type: ignore[arg-type]
    given = {"plan": plan, "candidates": [0.02, 0.2, 2.0], "epsilon": 1.0}
    return PenaltyChoice(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=lambda x: x.name)
def test_no_row_moves_a_risk_further_than_stated(loss: object) -> None:
    """Neighbours in every place, held out or not; and for large penalties the stated move is nearly reached."""
    rng = np.random.default_rng(1)
    asked = choice(loss=loss, candidates=[0.3, 5.0])
    ratios = []
    for _ in range(25):
        X, y = rng.normal(size=(20, 2)), rng.choice([-1.0, 1.0], size=20)
        place = int(rng.integers(20))
        other, label = X.copy(), y.copy()
        other[place], label[place] = rng.normal(size=2) * 9, -y[place]
        if rng.random() < 0.3:
            other[place, 0] = np.nan
        pairs = zip(asked.risks(X, [y]), asked.risks(other, [label]), strict=True)
        ratios.append(max(abs(float(a - b)) for a, b in pairs) / asked.risk_sensitivity)
    assert 0.05 < max(ratios) <= 1


def test_a_held_out_row_moves_the_risk_by_its_clipped_loss() -> None:
    """Four rows are held out of twenty; one of them, far on the wrong side, is cut to the clip."""
    asked = choice(candidates=[1000.0], clip=0.5)
    X, y = np.full((20, 2), 0.5), np.ones(20)
    right, wrong = X.copy(), X.copy()
    right[4], wrong[4] = np.nan, [1e6, 1e6]
    moved = float(asked.risks(wrong, [y])[0] - asked.risks(right, [y])[0])
    assert moved == pytest.approx(0.5 / 4, rel=1e-3)
    assert asked.risk_sensitivity >= 0.5 / 4
    assert asked.risk_sensitivity == pytest.approx(0.5 / 4, rel=1e-3)


def test_floats_far_from_the_exact_map_are_counted() -> None:
    """A box of 10^9: sines of such phases are known to 10^-7, and both risks of a comparison may be off by that."""
    features = FourierFeatures(features=1, domain=PublicBox(low=-1e9, high=1e9), gamma=1.0, pairs=4)
    plan = KernelModelPlan.for_target(
        epsilon=1, delta=1e-5, loss=Hinge(), features=features, size=10**9, penalty=0.5
    )
    asked = PenaltyChoice(plan=plan, candidates=[0.5], epsilon=1.0, held_out=2)
    # A row moves the risk by 4e-9 at most; the model is as long as sqrt(1 / penalty) at most.
    assert features.rounding > 1e-7
    trained = replace(plan, size=plan.size // 2, tolerance=None)
    assert trained.tolerance is not None
    exact = 1 / (0.5 * trained.size) + 2 * np.sqrt(trained.tolerance / 0.5)
    assert asked.risk_sensitivity >= exact + 2 * features.rounding * np.sqrt(1 / 0.5)


def test_the_method_that_errs_less_is_taken() -> None:
    errors = choice().expected_errors()
    assert choice().method == min(errors, key=lambda name: errors[name])
    assert errors["permute-and-flip"] < errors["risks"]
    # One candidate leaves nothing to err about.
    assert set(choice(candidates=[0.1]).expected_errors().values()) == {0.0}


def test_the_better_penalty_is_found_where_there_is_enough_data() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    asked = choice(size=4000, candidates=[0.02, 50.0], epsilon=3.0)
    source = SeededSource(seed=3)
    found = [asked.choose(X, [y], source=source).penalty for _ in range(20)]
    assert found.count(0.02) >= 18
    assert not asked.choose(X, [y], source=source).publishable


def test_two_prices_add() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, size=200)
    model = PrivateLogisticRegression(
        1, 1e-5, domain=PublicBall(radius=2), classes=[0, 1], penalty=[0.05, 0.5], choice_epsilon=0.5
    ).fit(X, y)
    assert len(model.events_) == 2
    assert model.plan_.penalty in (0.05, 0.5)
    alone = PrivateLogisticRegression(1, 1e-5, domain=PublicBall(radius=2), classes=[0, 1], penalty=0.05)
    assert model.guarantee_.epsilon(1e-5) > alone.fit(X, y).guarantee_.epsilon(1e-5)
    assert choice().bound == Pure(epsilon=1.0)
    with pytest.raises(InvalidParameter, match="choice_epsilon"):
        PrivateLogisticRegression(1, 1e-5, domain=PublicBall(radius=2), classes=[0, 1], penalty=[1, 2]).fit(
            X, y
        )


def test_strange_choices_are_refused() -> None:
    for bad in (
        {"candidates": [0.1, 0.1]},
        {"candidates": [0.0]},
        {"epsilon": 0},
        {"held_out": 1},
        {"clip": 0},
    ):
        with pytest.raises(InvalidParameter):
            choice(**bad)  # type: ignore[arg-type]
    with pytest.raises(EmptyComposition):
        choice(candidates=[])
    with pytest.raises(InvalidParameter):
        choice(size=4)
    with pytest.raises(InvalidParameter):
        choice().choose(np.zeros((19, 2)), [np.ones(19)])
    assert SPACING < 1e-9
