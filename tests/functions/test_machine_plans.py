"""What a model costs and how it errs is known before a row is read, and what is drawn is what was promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import FitFailed, InvalidParameter
from tacit.exact.rounding import precision
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
    training,
)
from tacit.functions.models.solvers import Loss
from tacit.guarantees import GaussianDP
from tacit.noise.source import SeededSource

BALL = LinearFeatures(features=2, domain=PublicBall(radius=1.0))


def plan(**changes: object) -> KernelModelPlan:
    given = {"loss": Logistic(), "features": BALL, "size": 100, "penalty": 0.01, "epsilon": 1, "delta": 1e-5}
    return KernelModelPlan.for_target(**(given | changes))  # type: ignore[arg-type]


def test_the_noise_is_what_the_exact_curve_asks_for() -> None:
    one = plan()
    assert one.bound.delta(1.0) <= 1e-5
    assert GaussianDP(mu=one.bound.mu * 1.001).delta(1.0) > 1e-5
    assert float(one.noise_std) == pytest.approx(one.l2_sensitivity / one.mu)
    assert float(one.noise_std) >= 1 / (0.01 * 100) / one.mu
    assert one.event.mu == pytest.approx(one.mu)  # type: ignore[attr-defined]


def test_released_weights_have_the_stated_noise() -> None:
    """No row counts, so that the true weights are 0: what comes out is the noise. Error rate below 1e-9."""
    one = plan(features=LinearFeatures(features=4000, domain=PublicBall(radius=1.0)))
    none = np.full((100, 4000), np.nan)
    drawn = one.release(none, [np.ones(100)], source=SeededSource(seed=5)).weights[0] / float(one.noise_std)
    assert abs(drawn.mean()) < 6.5 / math.sqrt(4000)
    assert abs((drawn**2).mean() - 1) < 6.5 * math.sqrt(2 / 4000)


def test_noise_is_fresh_for_every_release_and_a_function_answers_alike_twice() -> None:
    X, y = np.zeros((100, 2)), np.ones(100)
    first, second = plan().release(X, [y]), plan().release(X, [y])
    assert first.publishable
    assert not np.array_equal(first.weights, second.weights)
    points = np.array([[0.1, 0.2], [5.0, 5.0]])
    assert np.array_equal(first(points), first(points))
    assert first([[3.0, 4.0]]) == pytest.approx(first([[0.6, 0.8]]), rel=1e-12)


def test_price_and_noise_follow_the_tolerance_and_not_what_was_reached() -> None:
    loose, tight = plan(tolerance=1e-2), plan()
    assert loose.l2_sensitivity == pytest.approx(1.0 + 2 * math.sqrt(1e-2 / 0.01))
    X, y = np.zeros((100, 2)), np.ones(100)
    # Rows at the centre ask for nothing: the solver is exact at once, and the noise is as large as ever.
    assert loose.release(X, [y]).noise_std == float(loose.noise_std)
    assert float(loose.noise_std) > 2.9 * float(tight.noise_std)


@pytest.mark.parametrize("problem", [None, ValueError("a person's value"), np.linalg.LinAlgError("odd")])
def test_a_missed_tolerance_is_one_sentence(
    problem: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: object, **kwargs: object) -> None:
        if problem is not None:
            raise problem

    monkeypatch.setattr(training, "solve", failing)
    with pytest.raises(FitFailed) as caught:
        plan().release(np.zeros((100, 2)), [np.ones(100)])
    assert str(caught.value).startswith(
        "the model could not be trained to its tolerance; nothing was released"
    )
    assert "person" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), EpsilonInsensitive(), Huber()], ids=lambda x: x.name)
def test_no_row_decides_about_failure_where_the_declared_size_is_too_small(loss: Loss) -> None:
    """One row after the other joins a table that was declared to have one: all of them are trained."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 1))
    target = np.where(rows[:, 0] > 0, 1.0, -1.0) if loss.name in ("hinge", "logistic") else 0.7 * rows[:, 0]
    features = LinearFeatures(features=1, domain=PublicBox(low=-1, high=1), intercept=0.5)
    for penalty in (1e-2, 1e-6):
        one = KernelModelPlan(loss=loss, features=features, penalty=penalty, size=1, mu=1.0)
        for count in (*range(1, 130, 3), 2000):
            (weights,) = one.train(rows[:count], [target[:count]])
            assert np.isfinite(weights).all()


def test_hard_corners_are_trained_where_the_declared_size_is_too_small() -> None:
    """Rows on the straight parts of a loss, and hardly any penalty: Newton's first steps are far too long."""
    rng = np.random.default_rng(1)
    box = PublicBox(low=-1, high=1)
    same = np.tile(rng.uniform(-1, 1, (1, 2)), (252, 1))
    linear = LinearFeatures(features=2, domain=box, intercept=10.0)
    KernelModelPlan(loss=Huber(), features=linear, penalty=2e-8, size=1, mu=1.0).train(same, [np.ones(252)])
    waves = FourierFeatures(features=2, domain=box, intercept=10.0, gamma=3.0, pairs=20)
    hard = KernelModelPlan(loss=Huber(threshold=1e-4), features=waves, penalty=2.4e-7, size=1, mu=1.0)
    for count in (149, 400):
        hard.train(rng.uniform(-1, 1, (count, 2)), [rng.uniform(-1, 1, count)])


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=lambda x: x.name)
def test_a_tolerance_that_floats_cannot_reach_is_refused_before_rows_are_read(loss: Loss) -> None:
    """Below the public floor one row would decide whether training fails; at the floor it is reached."""
    rng = np.random.default_rng(0)
    least = plan(loss=loss).tolerance
    assert least is not None
    assert least >= plan(loss=loss).least_tolerance
    for tolerance in (1e-300, 1e-30, least * 0.999):
        with pytest.raises(InvalidParameter, match="tolerance"):
            plan(loss=loss, tolerance=tolerance)
    # Many more rows than were declared: floats lose in proportion, and at their floor training would fail.
    for count in (1, 100, 30_000):
        rows, targets = rng.uniform(-0.6, 0.6, size=(count, 2)), [rng.choice([-1.0, 1.0], count)]
        plan(loss=loss, tolerance=least).train(rows, targets)


@pytest.mark.parametrize(
    "loss", [Hinge(), Logistic(), EpsilonInsensitive(), Huber(threshold=0.3)], ids=lambda x: x.name
)
def test_noise_costs_no_more_than_expected(loss: Loss) -> None:
    """E loss(t + g) - loss(t), by Gauss-Hermite quadrature on many t and both targets; hinges reach the bound."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    weights = weights / weights.sum()
    for std in (0.01, 0.3, 3.0):
        costs = []
        for target in (-1.0, 1.0):
            t = np.linspace(-4, 4, 321)
            there = np.array([loss.values(t + std * z, np.full(t.shape, target)) for z in nodes])
            costs.append((weights @ there - loss.values(t, np.full(t.shape, target))).max())
        assert max(costs) <= loss.excess(std) * (1 + 0.02)
        if std == 0.3 and loss.name == "hinge":
            assert max(costs) > 0.9 * loss.excess(std)


def test_expected_excess_is_stated_before_and_holds_after() -> None:
    """The mean rise of the loss over many releases stays below what the plan said."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(300, 2)), rng.choice([-1.0, 1.0], size=300)
    for loss in (Hinge(), Logistic()):
        one = plan(loss=loss, size=300, penalty=0.02)
        source = SeededSource(seed=1)
        true = one.train(X, [y])[0]
        phi = one.features.of(X)
        rises = [
            (
                loss.values(phi @ one.release(X, [y], source=source).weights[0], y)
                - loss.values(phi @ true, y)
            ).mean()
            for _ in range(30)
        ]
        # Below the bound but for luck of less than 1e-9; and not far below, so that the bound says something.
        stated, luck = one.expected_excess_error(), 6.5 * np.std(rises) / math.sqrt(30)
        assert 0.3 * stated - luck <= np.mean(rises) <= stated + luck


def test_the_penalty_is_balanced_from_public_numbers() -> None:
    """The least of penalty norm^2 + excess on a fine grid, from the formulas."""
    one = plan(penalty=None, loss=Hinge(), size=5000)
    grid = np.geomspace(1e-5, 1, 4001)
    cost = grid * 16 + 1 / (grid * 5000 * one.mu * math.sqrt(2 * math.pi))
    assert one.penalty == pytest.approx(grid[cost.argmin()], rel=0.02)
    assert one.penalty == pytest.approx(0.0043, rel=0.02)


def test_feature_maps_are_as_long_as_they_say_and_no_longer() -> None:
    rng = np.random.default_rng(6)
    for domain in (
        PublicBall(radius=0.5, center=[3.0, -2.0, 1e3]),
        PublicBox(low=[-1, 0, 5], high=[1, 9, 1e5]),
    ):
        rows = rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-3, 300, size=(500, 1))
        for one in (
            LinearFeatures(features=3, domain=domain, intercept=0.7),
            FourierFeatures(features=3, domain=domain, gamma=2.0, pairs=9, intercept=0.7),
        ):
            lengths = np.linalg.norm(one.of(rows), axis=1)
            assert lengths.max() <= one.radius + one.rounding
            assert lengths.max() >= 0.99 * one.radius
            assert one.dimension == one.of(rows).shape[1]


def test_waves_stand_for_the_gaussian_kernel() -> None:
    rng = np.random.default_rng(7)
    points = rng.uniform(-1, 1, size=(40, 2))
    kernel = np.exp(-1.5 * ((points[:, None] - points[None]) ** 2).sum(axis=2))
    errors = []
    for pairs in (50, 2000):
        one = FourierFeatures(features=2, domain=PublicBox(low=-1, high=1), gamma=1.5, pairs=pairs)
        phi = one.of(points)
        errors.append(np.abs(phi @ phi.T - kernel).max())
    assert errors[1] < 0.01 < errors[0] < 0.3
    many = FourierFeatures(features=9, domain=PublicBox(low=-1, high=1), gamma=0.1, pairs=4000)
    phi = many.of(rng.uniform(-1, 1, size=(20, 9)))
    assert np.diag(phi @ phi.T) == pytest.approx(np.ones(20))


def test_rounding_of_the_map_is_counted() -> None:
    """Against sines and cosines in ball arithmetic, of the same frequencies and rows."""
    import flint

    one = FourierFeatures(features=2, domain=PublicBox(low=-50, high=50), gamma=3.0, pairs=5)
    rng = np.random.default_rng(8)
    rows = rng.uniform(-50, 50, size=(20, 2))
    floats, frequencies = one.of(rows), one.frequencies
    with precision(200):
        scale = 1 / flint.arb(5).sqrt()
        for row, got in zip(rows, floats, strict=True):
            total = flint.arb(0)
            for j in range(5):
                terms = [flint.arb(float(row[i])) * flint.arb(float(frequencies[i, j])) for i in range(2)]
                phase = terms[0] + terms[1]
                for place, exact in ((j, phase.cos()), (5 + j, phase.sin())):
                    total += (exact * scale - flint.arb(float(got[place]))) ** 2
            assert float(total.sqrt().upper()) <= one.rounding < 1e-11


def test_undeclared_and_strange_domains_are_refused() -> None:
    for bad in (
        lambda: PublicBox(low=1, high=1),
        lambda: PublicBox(low=[0, 0], high=[1]),
        lambda: PublicBox(low=0, high=math.inf),
        lambda: PublicBall(radius=0),
        lambda: PublicBall(radius=1, center=[math.nan]),
        lambda: LinearFeatures(features=0, domain=PublicBall(radius=1)),
        lambda: LinearFeatures(features=3, domain=PublicBall(radius=1, center=[0, 0])),
        lambda: LinearFeatures(features=1, domain="a box"),  # type: ignore[arg-type]
        lambda: FourierFeatures(features=1, domain=PublicBall(radius=1), gamma=0.0),
        lambda: plan(loss="hinge"),
        lambda: plan(epsilon=0),
        lambda: plan(delta=0),
        lambda: plan(size=0),
        lambda: plan(penalty=-1.0),
    ):
        with pytest.raises(InvalidParameter):
            bad()
