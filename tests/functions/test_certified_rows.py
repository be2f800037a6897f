"""Up to a public number of rows, floats certify every minimiser: whether training fails is no matter of one row."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.functions.models import solvers, training
from tacit.functions.models.features import FourierFeatures, LinearFeatures, PublicBox
from tacit.functions.models.solvers import EpsilonInsensitive, Hinge, Huber, Logistic
from tacit.functions.models.training import KernelModelPlan
from tacit.guarantees import Neighbours

LINE = LinearFeatures(features=1, domain=PublicBox(low=-1.0, high=1.0))
BOX = LinearFeatures(features=3, domain=PublicBox(low=-1.0, high=1.0))
WAVES = FourierFeatures(features=2, domain=PublicBox(low=-1.0, high=1.0), gamma=4.0, pairs=32)
LOSSES = [Hinge(), EpsilonInsensitive(tube=0.1), Logistic(), Huber(threshold=0.1)]


def plan(loss, features=LINE, size=1000, epsilon=1.0, **more):
    return KernelModelPlan.for_target(
        epsilon=epsilon, delta=1e-6, loss=loss, features=features, size=size, neighbours=Neighbours.ADD_OR_REMOVE,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("features", [LINE, BOX, WAVES], ids=["line", "box", "waves"])
def test_the_declared_size_is_always_certified(loss, features):
    for size in (1, 100, 10**4, 10**6, 10**8):
        for epsilon in (0.01, 1.0, 20.0):
            made = plan(loss, features, size, epsilon)
            assert made.certified_rows >= size
            # The floor is no tolerance of somebody else's making: it is certified for the declared size, too.
            floor = plan(loss, features, size, epsilon, tolerance=max(made.least_tolerance, made.tolerance))
            assert floor.certified_rows >= size


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_larger_tolerance_certifies_more_rows(loss):
    made = plan(loss)
    assert plan(loss, tolerance=16 * made.tolerance).certified_rows > made.certified_rows


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["spread", "one point", "torn", "outside"])
def test_with_coarse_floats_so_many_rows_are_certified_and_far_more_are_not(loss, kind, monkeypatch):
    """Floats that are said to be much coarser than they are: all errors are counted so, and the answers are right."""
    for room in (solvers, training):
        monkeypatch.setattr(room, "UNIT", 2.0**-26)
    monkeypatch.setattr(solvers, "BLOCK", 16)
    monkeypatch.setattr(solvers, "NEWTON_STEPS", 40)
    monkeypatch.setattr(solvers, "INTERIOR_STEPS", 60)
    made = plan(loss, size=20)
    most = made.certified_rows
    assert 20 <= most < 1000
    for rows in (most // 2, most, 40 * most):
        draw = np.random.default_rng(3)
        x = draw.uniform(-1, 1, (rows, 1)) if kind in ("spread", "outside") else np.ones((rows, 1))
        y = np.where(np.arange(rows) % 3 == 0, -1.0, 1.0) if kind in ("torn", "outside") else np.sign(x[:, 0])
        phi = made.features.of(x)
        problem = solvers.FitProblem(
            loss=loss, phi=phi, target=y, penalty=made.penalty, size=made.size, radius=made.features.radius,
            rounding=made.features.rounding,
        )  # fmt: skip
        found = solvers.solve(problem, tolerance=made.tolerance, spacing=float(made.spacing))
        if rows <= most:
            assert found is not None
        elif kind == "torn":
            assert found is None
