"""Coefficients of linear models: a reading of the released weights, and the same function inside the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tacit.functions.models import (
    PrivateKernelRegressor,
    PrivateLogisticRegression,
    PrivateSVC,
    PrivateSVR,
    PublicBall,
    PublicBox,
)
from tacit.noise import SeededSource

RNG = np.random.default_rng(5)
X = RNG.uniform([-1, 10, 0], [3, 20, 0.5], size=(300, 3))
BOX = PublicBox(low=[-1, 10, 0], high=[3, 20, 0.5])
BALL = PublicBall(radius=7, center=[1, 15, 0.25])
HOW: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "kernel": "linear"}


def inside(domain: PublicBox | PublicBall, n: int = 200) -> Any:
    points = RNG.uniform([-1, 10, 0], [3, 20, 0.5], size=(n, 3))
    assert np.allclose(domain.inside(points), points)
    return points


@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("domain", [BOX, BALL])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [PrivateLogisticRegression, PrivateSVC])
def test_classifiers_agree_with_their_coefficients(
    model: Any, classes: int, domain: Any, intercept: float
) -> None:
    y = (X[:, 0] + X[:, 2] > 1.2).astype(int) + (classes == 3) * (X[:, 1] > 16)
    fitted = model(
        **HOW, domain=domain, classes=list(range(classes)), intercept=intercept, source=SeededSource(seed=3)
    ).fit(X, y)
    points = inside(domain)
    heads = 1 if classes == 2 else classes
    assert fitted.coef_.shape == (heads, 3)
    assert fitted.intercept_.shape == (heads,)
    told = points @ fitted.coef_.T + fitted.intercept_
    assert np.allclose(told, fitted.decision_function(points).reshape(-1, heads), rtol=1e-10, atol=1e-12)
    own = told.argmax(axis=1) if heads > 1 else (told[:, 0] > 0).astype(int)
    assert (fitted.classes_[own] == fitted.predict(points)).all()


@pytest.mark.parametrize("model", [PrivateKernelRegressor, PrivateSVR])
def test_regressors_agree_with_their_coefficients_in_the_unit_of_the_target(model: Any) -> None:
    y = 40 + 3 * X[:, 0] + 0.5 * X[:, 1]
    fitted = model(**HOW, domain=BOX, target_bounds=(30, 70), intercept=0.5, source=SeededSource(seed=4)).fit(
        X, y
    )
    points = inside(BOX)
    told = np.clip(points @ fitted.coef_[0] + fitted.intercept_[0], 30, 70)
    assert np.allclose(told, fitted.predict(points), rtol=1e-10)


def test_coefficients_are_a_reading_of_the_released_weights() -> None:
    """Post-processing: of two models with the same public map and the same weights they are the same."""
    y = (X[:, 0] > 1).astype(int)
    fitted = PrivateLogisticRegression(**HOW, domain=BOX, classes=[0, 1], source=SeededSource(seed=6)).fit(
        X, y
    )
    model = fitted.model_
    again = model.features.linear(model.weights)
    assert (fitted.coef_ == again[0]).all()
    assert (fitted.intercept_ == again[1]).all()
    other = PrivateLogisticRegression(**HOW, domain=BOX, classes=[0, 1])
    other.model_ = model
    assert (other.coef_ == fitted.coef_).all(), "nothing else of the fit is looked at"


def test_machines_without_coefficients_say_so() -> None:
    y = (X[:, 0] > 1).astype(int)
    with pytest.raises(NotFittedError):
        PrivateLogisticRegression(**HOW, domain=BOX, classes=[0, 1]).coef_  # noqa: B018
    waves = PrivateSVC(
        epsilon=2.0, delta=1e-5, domain=BOX, classes=[0, 1], pairs=8, source=SeededSource(seed=7)
    ).fit(X, y)
    assert not hasattr(waves, "coef_")
    with pytest.raises(AttributeError, match='kernel="linear"'):
        waves.intercept_  # noqa: B018
