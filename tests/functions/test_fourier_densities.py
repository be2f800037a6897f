"""Fourier series densities: the series is the periodic estimate, its bounds hold, and pure noise costs little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from tacit.errors import InvalidParameter
from tacit.functions.boxes import Box
from tacit.functions.densities import ReleasedDensity
from tacit.functions.fourier import (
    FourierKDE,
    FourierPlan,
    fourier_bandwidth,
    fourier_order,
    truncation_bound,
    wrapping_bound,
)
from tacit.functions.fourier.family import periodic_coefficients
from tacit.functions.fourier.plan import grid_sums
from tacit.guarantees import Neighbours
from tacit.mechanisms import KNormDifference
from tacit.noise import SeededSource

UNIT = Box(low=0, high=1)


def gaussian(x: np.ndarray, middle: float, h: float) -> np.ndarray:
    return np.exp(-0.5 * ((x - middle) / h) ** 2) / (math.sqrt(2 * math.pi) * h)


def wrapped(x: np.ndarray, middle: float, h: float) -> np.ndarray:
    """The periodic kernel as a sum over the line: another road than its Fourier series."""
    return sum(gaussian(x + j, middle, h) for j in range(-12, 13))


def plan_for(n: int, margin: float = 0.0625, **more: object) -> FourierPlan:
    h = fourier_bandwidth(size=n)
    family = FourierKDE(
        domain=UNIT, order=fourier_order(bandwidth=h * (1 - 2 * margin)), bandwidth=h, margin=margin
    )
    return FourierPlan(family=family, size=n, epsilon=1, **more)


def without_noise(plan: FourierPlan, rows: np.ndarray) -> np.ndarray:
    """The coefficients that the plan would release without noise, from the rows themselves."""
    u = plan.family.on_circle(0, np.clip(rows, 0, 1))
    angle = 2 * np.pi * np.outer(u, np.arange(1, plan.family.order + 1))
    means = np.stack([np.cos(angle).mean(axis=0), np.sin(angle).mean(axis=0)], axis=1).ravel()
    return np.concatenate([[1.0], means])


@pytest.mark.parametrize("h", [0.02, 0.1, 0.3])
def test_coefficients_of_the_periodic_kernel(h: float) -> None:
    """By quadrature of the kernel itself; the printed exp(-2 j^2 h^2) is refuted."""
    for j in (1, 2, 5):
        found, _ = integrate.quad(
            lambda x, j=j: float(wrapped(np.array([x]), 0.4, h)[0]) * math.cos(2 * math.pi * j * (x - 0.4)),
            0, 1, points=[0.4], limit=400,
        )  # fmt: skip
        assert periodic_coefficients(j, h)[-1] == pytest.approx(found, abs=1e-9)
        assert abs(math.exp(-2 * j * j * h * h) - found) > 1e-3


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_the_curve_is_the_estimate_with_the_periodic_kernel(margin: float) -> None:
    box, h, rows = Box(low=-2, high=3), 0.25, np.array([-1.7, 0.1, 0.2, 2.9])
    family = FourierKDE(domain=box, order=60, bandwidth=h, margin=margin)
    where = (rows + 2) / 5
    cells = np.floor(where * family.cells[0]).astype(np.int64)[:, None]
    counts = np.ones(4, dtype=np.int64)
    sums = grid_sums(family, cells, counts, 2**-40)
    weights = np.concatenate([[4.0], sums.astype(np.float64) * 2.0**-40]) / 4
    x = np.linspace(-2, 3, 57)
    middles = -2 + 5 * (cells[:, 0] + 0.5) / family.cells[0]
    period = 5 / (1 - 2 * margin)
    direct = sum(wrapped(x / period, m / period, h / period) / period for m in middles) / 4
    assert family.synthesis(x[:, None]) @ weights == pytest.approx(direct, abs=1e-9)


def test_two_and_three_dimensions_are_products() -> None:
    for d in (2, 3):
        box = Box(low=(0,) * d, high=(2,) * d)
        family = FourierKDE(domain=box, order=7, bandwidth=0.4, margin=0.1)
        row, at = np.full((1, d), 0.7), np.linspace(0.1, 1.9, 5)
        row[0, 0] = 1.2
        middle = (np.floor(row / 2 * family.cells[0]) + 0.5) / family.cells[0] * 2
        cells = np.floor(row / 2 * family.cells[0]).astype(np.int64)
        sums = grid_sums(family, cells, np.ones(1, dtype=np.int64), 2**-40).astype(float) * 2.0**-40
        x = np.stack([np.roll(at, k) for k in range(d)], axis=1)
        direct = np.ones(5)
        for k in range(d):
            one = 2 * np.pi * np.outer((x[:, k] - middle[0, k]) * 0.4, np.arange(1, 8))
            direct *= 0.4 * (1 + 2 * (np.cos(one) * periodic_coefficients(7, 0.16)).sum(axis=1))
        found = family.synthesis(x) @ np.concatenate([[1.0], sums])
        assert found == pytest.approx(direct, abs=1e-6)


def test_wrapping_bound_holds_and_is_not_idle() -> None:
    x = (np.arange(20_000) + 0.5) / 20_000
    for h, margin in ((0.1, 0.2), (0.1, 0.3), (0.05, 0.1), (0.2, 0.0)):
        claim = wrapping_bound(bandwidth=h, margin=margin)
        worst = max(
            float(((wrapped(x, mu, h) - gaussian(x, mu, h)) ** 2).mean())
            for mu in np.linspace(margin, 1 - margin, 9)
        )
        assert worst <= claim
    # At the edge the other end of the circle gets half a bump, of squared integral 1 / (4 sqrt(pi) h).
    assert wrapping_bound(bandwidth=0.2, margin=0.0) < 30 / (4 * math.sqrt(math.pi) * 0.2)
    assert wrapping_bound(bandwidth=0.01, margin=0.1) < 1e-38


@pytest.mark.parametrize("d", [1, 2, 3])
def test_truncation_bound_holds_and_is_reached_by_one_row(d: int) -> None:
    """One row reaches it but for the tail's geometric bound: sums of squares of the coefficients that are cut."""
    for m, h in ((2, 0.1), (5, 0.05)):
        all_squares = 1 + 2 * float((periodic_coefficients(400, h) ** 2).sum())
        kept = 1 + 2 * float((periodic_coefficients(m, h) ** 2).sum())
        truth = all_squares**d - kept**d
        claim = truncation_bound(order=m, bandwidth=h, dimension=d)
        assert truth <= claim <= 1.35 * truth


def test_orders_and_bandwidths() -> None:
    assert fourier_bandwidth(size=10**5) == pytest.approx(0.015)
    assert fourier_order(bandwidth=0.015) == math.ceil(1.2 / (math.pi * 0.015))
    for tail in (0.5, 1e-3, 1e-9):
        m = fourier_order(bandwidth=0.03, tail=tail)
        coefficients = periodic_coefficients(m + 1, 0.03)
        assert coefficients[m] <= tail * (1 + 1e-9) and (m == 1 or coefficients[m - 1] > tail * (1 - 1e-9))  # noqa: PT018
    assert fourier_order(bandwidth=0.03, size=10**6) == fourier_order(bandwidth=0.03, tail=1e-3)
    assert fourier_order(bandwidth=2.0) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "ratio", "error"), [(10**3, 1.2, 1.35e-2), (10**4, 1.06, 2.0e-3), (10**5, 1.015, 3.7e-4)]
)
def test_pure_noise_costs_little(n: int, ratio: float, error: float) -> None:
    """Integrated squared error to a mixture of two normals, epsilon = 1, 200 runs, one public rule for bandwidths."""
    plan = plan_for(n)
    assert isinstance(plan.choice.mechanism, KNormDifference)
    x = (np.arange(600) + 0.5) / 600
    truth = 0.5 * gaussian(x, 0.3, 0.1) + 0.5 * gaussian(x, 0.7, 0.1)
    synthesis, source = plan.family.synthesis(x[:, None]), SeededSource(seed=n)
    rng = np.random.default_rng(n)
    private, plain, noise = [], [], []
    for _ in range(200):
        rows = np.where(rng.random(n) < 0.5, 0.3, 0.7) + 0.1 * rng.normal(size=n)
        released = plan.release(rows, source=source)
        assert not released.publishable
        private.append(((synthesis @ released.coefficients - truth) ** 2).mean())
        exact = _exact(plan, rows)
        plain.append(((synthesis @ exact - truth) ** 2).mean())
        noise.append(((synthesis @ (released.coefficients - exact)) ** 2).mean())
    assert np.mean(private) <= error
    assert np.mean(private) / np.mean(plain) <= ratio
    assert np.mean(noise) == pytest.approx(plan.expected_noise_error(), rel=0.3)


def _exact(plan: FourierPlan, rows: np.ndarray) -> np.ndarray:
    where = np.bincount(np.minimum((np.clip(rows, 0, 1) * 4096).astype(int), 4095), minlength=4096)
    used = np.flatnonzero(where)
    u = plan.family.on_circle(0, (used + 0.5) / 4096)
    angle = 2 * np.pi * np.outer(u, np.arange(1, plan.family.order + 1))
    share = where[used] / rows.size
    return np.concatenate([[1.0], np.stack([share @ np.cos(angle), share @ np.sin(angle)], axis=1).ravel()])


@pytest.mark.parametrize("name", ["caratheodory", "gamma", "laplace", "gaussian"])
def test_released_noise_has_the_stated_distribution(name: str) -> None:
    """Released minus exact, over 300 releases: the standard deviations that bands rest on."""
    plan = plan_for(400, mechanism=name, delta=1e-6 if name == "gaussian" else None)
    rows = np.random.default_rng(1).uniform(size=400)
    source = SeededSource(seed=3)
    exact = _exact(plan, rows)
    errors = np.array([plan.release(rows, source=source).coefficients - exact for _ in range(300)])
    assert np.abs(errors[:, 0]).max() == 0.0
    stds = plan.noise.stds(exact.size) / 400
    # A sample of 300 has its standard deviation within 35%, seven sigmas of a heavy tail.
    assert np.abs(errors[:, 1:].std(axis=0) / stds[1:] - 1).max() < 0.35
    simulated = plan.noise.draws(4000, exact.size, 5)[:, 1:] / 400
    assert np.abs(simulated.std(axis=0) / stds[1:] - 1).max() < 0.2
    x = np.linspace(0.05, 0.95, 7)[:, None]
    assert plan.noise_std_at(x) == pytest.approx(
        np.sqrt((plan.family.synthesis(x) ** 2) @ stds**2), rel=1e-12
    )


@pytest.mark.parametrize("simultaneous", [False, True])
def test_bands_cover_what_they_say(simultaneous: bool) -> None:
    """90% bands for the curve without noise, 250 releases: at least 80% (four standard errors below)."""
    plan = plan_for(300)
    rows = np.random.default_rng(2).beta(2, 3, size=300)
    x = np.linspace(0.1, 0.9, 9)
    truth = plan.family.synthesis(x[:, None]) @ _exact(plan, rows)
    source, hits = SeededSource(seed=8), []
    band = None
    for _ in range(250):
        released = plan.release(rows, source=source)
        if band is None:
            band = released.band(x, confidence=0.9, simultaneous=simultaneous, draws=3000)
        inside = np.abs(released(x) - truth) <= band.high - band.center
        hits.append(inside.all() if simultaneous else inside.mean())
    assert 0.82 < np.mean(hits) < 0.97


def test_a_record_gives_the_same_curve() -> None:
    plan = plan_for(500)
    released = plan.release(np.random.default_rng(4).uniform(size=500), source=SeededSource(seed=1))
    again = ReleasedDensity.from_record(released.to_record())
    x = np.linspace(0, 1, 11)
    assert (again(x) == released(x)).all()
    assert again.noise == released.noise
    assert released.sample(3, source=SeededSource(seed=2)).shape == (3, 1)
    assert float(released.on_grid(100).probabilities.sum()) == pytest.approx(1)
    assert plan.to_dict()["mechanism"] == "caratheodory"


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_neighbours_stay_within_the_claims(neighbours: Neighbours) -> None:
    """Integer sums of data sets that differ in one row, in the norms that the mechanisms were sized by."""
    rng = np.random.default_rng(6)
    for name in ("laplace", "gamma"):
        plan = plan_for(50, mechanism=name, neighbours=neighbours)
        step = plan.choice.spacing
        claim = float(plan.choice.mechanism.sensitivity.value)
        one = np.ones(1, dtype=np.int64)
        for _ in range(200):
            a, b = rng.integers(plan.family.cells[0], size=2)
            move = grid_sums(plan.family, np.array([[a]]), one, step)
            if neighbours is Neighbours.REPLACE_ONE:
                move = move - grid_sums(plan.family, np.array([[b]]), one, step)
            size = move.astype(float) * float(step)
            found = np.abs(size).sum() if name == "laplace" else math.sqrt((size**2).sum())
            assert found <= claim


def test_the_number_of_rows_is_not_released_under_add_or_remove() -> None:
    """The constant is the public size, whatever came."""
    plan = plan_for(100, neighbours=Neighbours.ADD_OR_REMOVE)
    for n in (99, 100, 140):
        released = plan.release(np.linspace(0, 1, n), source=SeededSource(seed=n))
        assert int(released.values[0]) * released.spacing == 100


def test_planes_and_cubes_are_released_with_gamma_noise() -> None:
    rng = np.random.default_rng(7)
    for d, n in ((2, 2000), (3, 500)):
        box = Box(low=(0.0,) * d, high=(1.0,) * d)
        family = FourierKDE(domain=box, order=2, bandwidth=0.2)
        plan = FourierPlan(family=family, size=n, epsilon=5)
        assert plan.choice.name == "gamma"
        curve = plan.release(rng.beta(2, 2, size=(n, d)), source=SeededSource(seed=d))
        assert curve(np.full((1, d), 0.5)).shape == (1,)
        assert abs(float(curve.on_grid(8).probabilities.sum()) - 1) < 1e-9


@pytest.mark.parametrize(
    "bad",
    [
        {"order": 0}, {"order": 10**4}, {"order": 10**6}, {"bandwidth": 0}, {"bandwidth": -1},
        {"bandwidth": float("nan")},
        {"margin": 0.5}, {"margin": -0.1}, {"domain": Box(low=(0,) * 4, high=(1,) * 4)}, {"order": 1.5},
        {"domain": "the unit interval"}, {"bandwidth": [0.1, 0.2]}, {"bandwidth": 1e-9},
    ],
)  # fmt: skip
def test_families_that_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        FourierKDE(**({"domain": UNIT, "order": 5, "bandwidth": 0.1} | bad))


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0}, {"epsilon": -1}, {"size": 0}, {"mechanism": "printed"}, {"rows": 0}, {"outside": "reflect"},
        {"mechanism": "gaussian"}, {"delta": 0}, {"family": None},
    ],
)  # fmt: skip
def test_plans_that_are_refused(bad: dict[str, object]) -> None:
    family = FourierKDE(domain=UNIT, order=5, bandwidth=0.1)
    with pytest.raises(InvalidParameter):
        FourierPlan(**({"family": family, "size": 10, "epsilon": 1} | bad))


def test_odd_rows_are_taken() -> None:
    """One row; rows outside of the box; rows that are no numbers; another number of rows than planned."""
    plan = plan_for(1)
    assert np.isfinite(plan.release([0.3], source=SeededSource(seed=1))([0.2, 0.9])).all()
    far = plan_for(4)
    source = SeededSource(seed=2)
    assert np.isfinite(far.release([-1e300, 5.0, float("nan"), float("inf")], source=source)([0.5])).all()
    absent = plan_for(2, outside="absent", neighbours=Neighbours.ADD_OR_REMOVE)
    assert np.isfinite(absent.release([7.0], source=SeededSource(seed=3))([0.5])).all()
    with pytest.raises(InvalidParameter):
        far.release([0.1, 0.2])
