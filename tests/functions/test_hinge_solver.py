"""The solver of hinges that looks near the corners: the same minimiser, whatever it is led to by its first steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.functions.models import solvers
from tacit.functions.models.solvers import EpsilonInsensitive, FitProblem, Hinge, Loss, gap_of_hinges, solve

TOLERANCE, SPACING = 1e-11, 2.0**-50


def problem(loss: Loss, rows: int, dimension: int, seed: int, *, noise: float = 0.3) -> FitProblem:
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(rows, dimension))
    phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0)
    score = phi @ rng.normal(size=dimension) + noise * rng.normal(size=rows)
    target = np.sign(score) if isinstance(loss, Hinge) else np.clip(score, -1, 1)
    return FitProblem(loss=loss, phi=phi, target=target, penalty=0.02, size=rows, radius=1.0, rounding=1e-15)


def by_interior(given: FitProblem) -> np.ndarray[Any, Any]:
    found = solvers._interior(given, TOLERANCE, SPACING, np.zeros(given.phi.shape[1]))
    assert found is not None
    return found[0]


def alike(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], given: FitProblem) -> bool:
    """Both within the tolerance: then this near."""
    return float(np.linalg.norm(one - other)) <= 2 * math.sqrt(TOLERANCE / given.penalty)


CASES = {
    "labels": problem(Hinge(), 6000, 12, 1),
    "labels, hard": problem(Hinge(), 3000, 12, 2, noise=5.0),
    "all of one class": FitProblem(
        loss=Hinge(), phi=problem(Hinge(), 2000, 5, 3).phi, target=np.ones(2000), penalty=0.02, size=2000,
        radius=1.0, rounding=1e-15,
    ),
    "the same row": FitProblem(
        loss=Hinge(), phi=np.tile([[0.6, 0.8]], (3000, 1)), target=np.where(np.arange(3000) % 3, 1.0, -1.0),
        penalty=0.02, size=3000, radius=1.0, rounding=1e-15,
    ),
    "no features": FitProblem(
        loss=Hinge(), phi=np.zeros((1000, 3)), target=np.ones(1000), penalty=0.02, size=1000, radius=1.0,
        rounding=1e-15,
    ),
    "targets": problem(EpsilonInsensitive(tube=0.1), 4000, 8, 4),
    "targets, no tube": problem(EpsilonInsensitive(tube=0.0), 4000, 8, 5),
    "few rows": problem(Hinge(), 40, 8, 6),
    "a wrong size": FitProblem(
        loss=Hinge(), phi=problem(Hinge(), 4000, 6, 7).phi, target=problem(Hinge(), 4000, 6, 7).target,
        penalty=0.02, size=400, radius=1.0, rounding=1e-15,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_both_ways_lead_to_one_minimiser(name: str) -> None:
    given = CASES[name]
    found = solve(given, tolerance=TOLERANCE, spacing=SPACING)
    assert found is not None
    assert alike(found, by_interior(given), given)


@pytest.mark.parametrize("name", ["labels", "targets", "targets, no tube"])
def test_few_rows_near_corners_are_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, inner = CASES[name], solvers._interior
    seen: list[int] = []

    def counted(part: FitProblem, *rest: Any) -> Any:
        seen.append(part.phi.shape[0])
        return inner(part, *rest)

    monkeypatch.setattr(solvers, "_interior", counted)
    assert solve(given, tolerance=TOLERANCE, spacing=SPACING) is not None
    assert max(seen) <= given.phi.shape[0] // 2


def test_nothing_that_the_first_steps_say_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they lead to, what is given back is certified over all rows by its own dual vector."""
    given = CASES["labels"]
    truth = by_interior(given)
    rng = np.random.default_rng(8)
    for led in (np.zeros(12), -3 * truth, 1e9 * truth, np.full(12, np.nan), rng.normal(size=12)):
        monkeypatch.setattr(solvers._Smoothed, "narrowed", lambda *_, led=led: led)
        with np.errstate(all="ignore"):
            found = solve(given, tolerance=TOLERANCE, spacing=SPACING)
        assert found is not None
        assert alike(found, truth, given)


def test_the_gap_of_some_rows_with_the_others_held_is_not_the_gap_of_all() -> None:
    """What is held is added to the pull of the rows, and their gap alone may be nothing while that of all is not."""
    given = CASES["labels"]
    truth, dual = solvers._interior(given, TOLERANCE, SPACING, np.zeros(12))  # type: ignore[misc]
    assert gap_of_hinges(given, truth, dual) <= TOLERANCE
    b, _ = given.loss.hinges(given.target)  # type: ignore[attr-defined]
    half = np.arange(given.phi.shape[0]) % 2 == 0
    held = given.pull(np.where(half, 0.0, (dual * b).sum(axis=0)))
    part = FitProblem(
        loss=given.loss, phi=given.phi[half], target=given.target[half], penalty=given.penalty, size=given.size,
        radius=1.0, rounding=1e-15,
    )  # fmt: skip
    assert gap_of_hinges(part, truth, dual[:, half], held) <= TOLERANCE
    assert gap_of_hinges(part, truth, dual[:, half]) > 1e-3
    # The others' slopes held at 1: the rows' own minimiser is another one, which all rows together refuse.
    wrong = given.pull(np.where(half, 0.0, b.sum(axis=0)))
    found = solvers._interior(part, TOLERANCE, SPACING, wrong)
    assert found is not None
    whole = np.ones_like(dual)
    whole[:, half] = found[1]
    assert gap_of_hinges(given, found[0], whole) > 1e-6


def test_a_plan_of_the_curator_keeps_the_solver_of_its_earlier_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its true weights are drawn on again with the same noise: another solver would give other numbers."""
    import tacit
    from tacit.functions.models import training

    seen: list[bool] = []
    whole = training.solve

    def counted(*words: Any, near_corners: bool, **rest: Any) -> Any:
        seen.append(near_corners)
        return whole(*words, near_corners=near_corners, **rest)

    monkeypatch.setattr(training, "solve", counted)
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (400, 2))
    model = tacit.PrivateSVC(
        1, 1e-5, domain=tacit.functions.models.PublicBall(radius=2), classes=[0, 1], kernel="linear"
    )
    model.fit(x, (x[:, 0] > 0).astype(int))
    assert seen == [True]
    declared = {"x": tacit.number(-1, 1), "y": tacit.number(-1, 1), "k": tacit.flag()}
    table = pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "k": x[:, 0] > 0})
    budget = tacit.Approximate(epsilon=10, delta=1e-3)
    protect = tacit.rows(neighbours="replace-one")
    with tacit.Curator(table, protect=protect, schema=declared, budget=budget) as held:
        held.release(tacit.classifier(["x", "y"], "k", size=400, pairs=4), epsilon=1, delta=1e-5)
    assert seen == [True, False]
