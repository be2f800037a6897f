"""Objective perturbation with pure epsilon: theorem objective-pure, against densities from the definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tacit
from support.perturbed import huber, largest_losses, log_cosh, log_density
from tacit.accounting.events import PureEvent
from tacit.audit import opinion_on_certificate
from tacit.errors import InvalidParameter, NotCertified
from tacit.functions.models.objective import DenseDesign, PerturbedObjective
from tacit.functions.models.solvers import Logistic
from tacit.mechanisms import PureObjectivePerturbation
from tacit.mechanisms.pure_objective import row_epsilon
from tacit.noise.source import SeededSource

ONE = ((1.0, 0.0), 1)
SHARED = [
    [],
    [((1.0, 0.0), 30)],
    [((-1.0, 0.0), 30)],
    [((1.0, 0.0), 10), ((-1.0, 0.0), 12)],
    [((0.3, 0.0), 200)],
]


def claimed(rate: float, curvature: float, rows: int = 1, loss: str = "logistic") -> float:
    return rows * float(row_epsilon(Fraction(rate), Fraction(curvature), loss))


@pytest.mark.parametrize("rate", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("share", [0.3, 1.0, 4.0, 30.0])
def test_no_row_is_seen_better_than_claimed(rate: float, share: float) -> None:
    """Added, removed, replaced and several rows; curvature below, at and above the rate."""
    curvature, worst = rate * share, 0.0
    limit = claimed(rate, curvature)
    for shared in SHARED:
        cases = [([*shared, ((own, 0.0), 1)], shared, 1) for own in (1.0, 0.4)]
        cases += [([*shared, ONE], [*shared, ((z, 0.0), 1)], 2) for z in (-1.0, -0.3)]
        cases += [([*shared, ((1.0, 0.0), 3)], shared, 3), ([*shared, ONE, ((-1.0, 0.0), 2)], shared, 3)]
        for one, other, rows in cases:
            found = largest_losses(one, other, ridge=1 / curvature, scale=1 / rate)
            assert found[2] == pytest.approx(1, abs=1e-3)
            assert max(found[:2]) <= rows * limit * (1 + 1e-9)
            worst = max(worst, max(found[:2]) / (rows * limit))
    # Where the determinant is free some table comes within a few hundredths.
    assert worst > (0.96 if share <= 1 else 0.5)


def test_the_determinant_is_free_up_to_the_rate_and_not_beyond() -> None:
    rate = 0.5
    assert claimed(rate, rate) == rate
    assert rate < claimed(rate, rate * 1.1) < rate * 1.1
    best = max(max(largest_losses([ONE, *s], s, ridge=1 / 8, scale=1 / rate)[:2]) for s in SHARED)
    assert 1.4 * rate < best <= claimed(rate, 8.0)
    # The same number by a fine grid of slopes.
    p = np.linspace(0, 1, 200_001)
    assert claimed(rate, 8.0) == pytest.approx(float((p * rate + np.log1p(8 * p * (1 - p))).max()), abs=1e-9)


def test_a_replaced_row_needs_twice_the_rate() -> None:
    """Rows that nearly oppose each other, both of them wrong at w, among many that turn b their way."""
    rate, angle = 0.5, 0.2
    one, other = ((math.cos(angle), math.sin(angle), 0.0), 1), ((-math.cos(angle), math.sin(angle), 0.0), 1)
    shared = [((-1.0, 0.0, 0.0), 4000)]
    axes = np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-80, 0, 81), indexing="ij")
    points = np.stack(axes, axis=-1).reshape(-1, 2)
    p, q = (log_density([*shared, r], 2.0, 1 / rate, points) for r in (one, other))
    worst = float(np.abs(p - q).max())
    assert claimed(rate, 0.5) == rate
    assert 1.9 * rate < worst <= 2 * rate


@pytest.mark.parametrize("curvature", [0.2, 3.0])
def test_slopes_of_any_sign(curvature: float) -> None:
    rate, worst = 0.6, 0.0
    for shared in ([], [((1.0, 0.0), 10)], [((1.0, 0.5), 40)]):
        for own in ((1.0, 1.0), (1.0, -1.0), (0.5, 1.0), (1.0, 4.0)):
            added = largest_losses(
                [*shared, (own, 1)], shared, ridge=1 / curvature, scale=1 / rate, loss=huber
            )
            swapped = largest_losses(
                [*shared, (own, 1)], [*shared, ((-1.0, 1.0), 1)], ridge=1 / curvature, scale=1 / rate, loss=huber,
            )  # fmt: skip
            assert added[2] == pytest.approx(1, abs=1e-2)
            assert max(added[:2]) <= claimed(rate, curvature, loss="bounded") * (1 + 1e-9)
            assert max(swapped[:2]) <= claimed(rate, curvature, rows=2, loss="bounded") * (1 + 1e-9)
            worst = max(worst, *added[:2])
    assert worst > 0.9 * claimed(rate, curvature, loss="bounded")
    assert worst > rate * 1.1


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 2.0, 10.0])
def test_log_cosh_losses(share: float) -> None:
    """The determinant is free up to half of the rate, and not beyond."""
    rate, worst = 0.6, 0.0
    curvature = rate * share
    limit = claimed(rate, curvature, loss="log-cosh")
    assert (limit == rate) is (share <= 0.5)
    p = np.linspace(0, 1, 200_001)
    assert limit == pytest.approx(float((p * rate + np.log1p(curvature * (1 - p * p))).max()), abs=1e-9)
    for shared in ([], [((1.0, 0.0), 10)], [((1.0, 0.5), 40)], [((1.0, 3.0), 5), ((1.0, -3.0), 6)]):
        for own in ((1.0, 1.0), (1.0, -1.0), (0.5, 1.0), (1.0, 4.0), (1.0, 0.0)):
            for other, rows in ((shared, 1), ([*shared, ((-1.0, 1.0), 1)], 2)):
                found = largest_losses(
                    [*shared, (own, 1)], other, ridge=1 / curvature, scale=1 / rate, loss=log_cosh
                )
                assert found[2] == pytest.approx(1, abs=1e-2)
                assert max(found[:2]) <= rows * limit * (1 + 1e-9)
                worst = max(worst, max(found[:2]) if rows == 1 else 0)
    assert worst > 0.9 * limit


def test_in_the_plane() -> None:
    rate = 0.8
    for curvature in (0.4, 0.8, 6.0):
        for shared in ([], [((0.6, 0.8, 0.0), 20)], [((0.0, 1.0, 0.0), 9), ((-0.6, 0.8, 0.0), 9)]):
            for own in ((1.0, 0.0, 0.0), (0.6, -0.8, 0.0)):
                one = [*shared, (own, 1)]
                added = largest_losses(one, shared, ridge=1 / curvature, scale=1 / rate, dimension=2)
                assert added[2] == pytest.approx(1, abs=2e-2)
                assert max(added[:2]) <= claimed(rate, curvature) * (1 + 1e-9)
                swapped = largest_losses(
                    one, [*shared, ((-0.8, 0.6, 0.0), 1)], ridge=1 / curvature, scale=1 / rate, dimension=2
                )
                assert max(swapped[:2]) <= claimed(rate, curvature, rows=2) * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["logistic", "bounded", "log-cosh"])
@pytest.mark.parametrize(("rows", "heads", "ridge"), [(1, 1, None), (3, 1, None), (2, 4, None), (1, 1, 0.9)])
def test_the_price_is_that_of_both_noises(loss: str, rows: int, heads: int, ridge: float | None) -> None:
    found = PureObjectivePerturbation.for_target(
        epsilon=1, dimension=7, gradient=1.0, second=1.0, rows=rows, loss=loss, heads=heads, ridge=ridge
    )
    total = found.objective_epsilon + found.output.exact_epsilon
    assert 0.999 < heads * total <= 1
    assert heads * found.exact_epsilon <= 1
    assert found.bound.epsilon * heads <= 1 + 1e-12
    assert all(isinstance(e, PureEvent) for e in found.events)
    assert found.objective_epsilon == rows * row_epsilon(
        Fraction(1) / Fraction(found.noise_scale), Fraction(found.curvature), loss
    )


@pytest.mark.parametrize("loss", ["logistic", "bounded", "log-cosh"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e3])
def test_extreme_prices_are_kept(loss: str, epsilon: float) -> None:
    found = PureObjectivePerturbation.for_target(
        epsilon=epsilon, dimension=2, gradient=1.0, second=1.0, loss=loss
    )
    assert 0.99 * epsilon < found.exact_epsilon <= Fraction(epsilon)


def test_a_second_opinion_adds_both_parts() -> None:
    found = PureObjectivePerturbation.for_target(epsilon=1, dimension=3, gradient=1.0, second=1.0)
    claim = found.certificate_for(tacit.rows(neighbours="add-or-remove"))
    assert opinion_on_certificate(claim).confirmed
    for part, name in zip(found.events, ("objective", "cover"), strict=True):
        less = {**claim, "guarantee": tacit.Guarantee(
            bound=tacit.Pure(epsilon=found.bound.epsilon - part.epsilon / 2),
            unit=tacit.rows(neighbours="add-or-remove"),
        ).to_dict()}  # fmt: skip
        assert not opinion_on_certificate(less).confirmed, name


@pytest.mark.claim("PureObjectivePerturbation")
def test_what_is_drawn_has_the_integrated_law() -> None:
    mechanism = PureObjectivePerturbation(
        dimension=1,
        gradient=1.0,
        second=1.0,
        noise_scale=2.0,
        ridge=1.5,
        output_epsilon=0.01,
        tolerance=2.0**-20,
    )
    table = np.array([[1.0], [-0.5], [0.25]])

    def minimise(term: np.ndarray, spacing: float) -> tuple[np.ndarray, float]:
        own = PerturbedObjective(
            loss=Logistic(),
            design=DenseDesign(table=table, radius=1.0),
            target=np.ones(3),
            ridge=1.5,
            term=term,
        )
        return own.minimise(tolerance=mechanism.tolerance, spacing=spacing)

    drawn = np.array(
        [mechanism.release(minimise, source=SeededSource(seed=i)).to_floats()[0] for i in range(800)]
    )
    grid = np.linspace(-60, 60, 400_001)
    rows = [((float(x), 0.0), 1) for x in table[:, 0]]
    law = np.cumsum(np.exp(log_density(rows, 1.5, 2.0, grid[:, None]))) * (grid[1] - grid[0])
    assert law[-1] == pytest.approx(1, abs=1e-4)
    places = np.interp(np.sort(drawn), grid, law)
    assert np.abs(places - (np.arange(800) + 0.5) / 800).max() < 1.7 / math.sqrt(800)


def test_the_cover_is_sized_by_both_neighbours() -> None:
    mechanism = PureObjectivePerturbation(**PureObjectivePerturbation.example)
    half = mechanism.term_spacing / 2 * 2  # the root of 2 is at most 2
    reach = 2 * (Fraction(mechanism.tolerance) + half) / Fraction(mechanism.ridge)
    assert mechanism.reach == reach
    scale = Fraction(mechanism.output.noise_scale)
    assert reach / scale <= Fraction(mechanism.output_epsilon) < reach / scale * (1 + Fraction(1, 10**9))
    # A coordinate of the term has the variance noise_scale^2 (dimension + 1).
    assert mechanism.term_std == pytest.approx(float(mechanism.term.law.stds.max()))


def test_refusals() -> None:
    asked = dict(PureObjectivePerturbation.target_example)
    # ln(1 + curvature/4) alone costs more than there is.
    with pytest.raises(NotCertified):
        PureObjectivePerturbation.for_target(**{**asked, "ridge": 0.1})
    with pytest.raises(NotCertified):
        PureObjectivePerturbation.for_target(**{**asked, "ridge": 1.4, "loss": "bounded"})
    with pytest.raises(InvalidParameter, match="heads"):
        PureObjectivePerturbation.for_target(**{**asked, "heads": 5000})
    with pytest.raises(InvalidParameter, match="loss"):
        PureObjectivePerturbation.for_target(**{**asked, "loss": "hinge"})
    with pytest.raises(InvalidParameter, match="tolerance"):
        PureObjectivePerturbation.for_target(**{**asked, "tolerance": 1e-15})
