"""Exact sums of vectors and exact regression: against enumeration, the checker, simulation, and the printed tables."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest

from tacit import coupled
from tacit.coupled.noiseless.prisms import (
    PairLaw,
    Prism,
    pair_epsilon,
    plane_epsilon,
    prism_epsilon,
    prism_losses,
)
from tacit.coupled.noiseless.regression import Design, density, exact_regression, pair_law
from tacit.coupled.noiseless.thesis import irwin_hall_cdf, irwin_hall_pdf, prism_forms
from tacit.errors import InvalidInput, NoLaw
from tacit.reproduce.groce import GROCE_6_3_ROWS as TABLE_6_3
from tacit.reproduce.groce import GROCE_6_4_ROWS as TABLE_6_4
from tacit.reproduce.groce import PRISM

Plane = dict[tuple[int, ...], Fraction]


@pytest.mark.parametrize(("n", "y"), [(25, 6.5), (40, 11.25), (100, 38.25), (100, 10.0)])
def test_the_irwin_hall_law(n: int, y: float) -> None:
    at = Fraction(y)
    terms = [(-1) ** k * comb(n, k) * (at - k) ** (n - 1) for k in range(int(y) + 1)]
    sums = [(-1) ** k * comb(n, k) * (at - k) ** n for k in range(int(y) + 1)]
    assert irwin_hall_pdf(n, y) == pytest.approx(float(sum(terms) / factorial(n - 1)), rel=1e-10)
    assert irwin_hall_cdf(n, y) == pytest.approx(float(sum(sums) / factorial(n)), rel=1e-10)


@pytest.mark.parametrize(
    ("row", "mass", "widths"),
    [(r, 1.0, (1.0, 1.0)) for r in TABLE_6_3] + [(r, 0.192, (1 / 0.64, 2 / 1.2)) for r in TABLE_6_4],
)
def test_printed_tables(
    row: tuple[int, float, float, float, float], mass: float, widths: tuple[float, ...]
) -> None:
    n, a, r, epsilon, delta = row
    form = prism_forms(n=n, mass=mass, widths=widths, a=a, r=r)
    assert form.epsilon == pytest.approx(epsilon, abs=6e-4 if epsilon > 0.1 else 6e-5)
    assert form.printed_delta == pytest.approx(delta, rel=6e-3)
    assert form.delta > form.printed_delta


def test_first_rows_by_the_theorem() -> None:
    first = prism_forms(n=1000, mass=1.0, widths=(1, 1), a=400, r=0.9).delta
    second = prism_forms(n=7500, mass=0.192, widths=(1 / 0.64, 2 / 1.2), a=535, r=0.82).delta
    assert first == pytest.approx(3.46e-8, rel=2e-3)
    assert second == pytest.approx(1.47e-7, rel=3e-3)


def convolved(law: Plane, count: int) -> Plane:
    out: Plane = {(0,) * len(next(iter(law))): Fraction(1)}
    for _ in range(count):
        following: Plane = defaultdict(Fraction)
        for s, p in out.items():
            for x, q in law.items():
                following[tuple(a + b for a, b in zip(s, x, strict=True))] += p * q
        out = dict(following)
    return out


def moved(law: Plane, by: tuple[int, ...]) -> Plane:
    return {tuple(a + b for a, b in zip(s, by, strict=True)): p for s, p in law.items()}


def divergence(p: Plane, q: Plane, factor: float) -> float:
    return math.fsum(max(0.0, float(w) - factor * float(q.get(s, 0))) for s, w in p.items())


def box(points: tuple[int, ...]) -> Plane:
    chance = Fraction(1, math.prod(points))
    return {tuple(int(i) for i in place): chance for place in np.ndindex(*points)}


@pytest.mark.parametrize("mass", [Fraction(1), Fraction(3, 5)])
@pytest.mark.parametrize(("points", "half"), [((5, 4), (2, 3)), ((3, 6), (1, 1))])
def test_losses_bound_the_enumerated_divergence(
    mass: Fraction, points: tuple[int, ...], half: tuple[int, ...]
) -> None:
    """All numbers of undisclosed rows, all places of the row, both directions, outcome by outcome."""
    hidden = 6
    table = prism_losses(Prism(mass=mass, points=points, half_ranges=half), hidden=hidden, delta=1e-3)
    laws = [convolved(box(points), i) for i in range(hidden + 1)]
    for epsilon in (0.5, 1.5, 2.5):
        worst = 0.0
        for x in {(half[0], half[1]), (-half[0], half[1]), (half[0], 0), (1, -1)}:
            for turn in (False, True):
                total = 0.0
                for i, law in enumerate(laws):
                    share = comb(hidden, i) * mass**i * (1 - mass) ** (hidden - i)
                    pair = (moved(law, x), law)
                    total += float(share) * divergence(*(pair[::-1] if turn else pair), math.exp(epsilon))
                worst = max(worst, total)
        assert worst <= table.delta(epsilon)
        if mass == 1:
            assert table.delta(epsilon) <= 1.03 * worst + 1e-6


def test_two_values_are_twice_as_far_apart() -> None:
    prism = Prism(mass=Fraction(1, 2), points=(20, 20), half_ranges=(12, 12))
    one = prism_epsilon(prism, hidden=3000, delta=1e-6)[0]
    two = pair_epsilon(prism, hidden=3000, delta=1e-6)
    assert 1.9 * one < two < 2.2 * one


def test_epsilon_is_enough_and_three_coordinates_add_up() -> None:
    """Against the normal law of the same variances, which the sums are close to."""
    hidden, points = 4000, (21, 21, 21)
    prism = Prism(mass=Fraction(1), points=points, half_ranges=(10, 10, 10))
    found = prism_epsilon(prism, hidden=hidden, delta=1e-6)[0]
    mu = math.sqrt(3 * 100 / (hidden * (21**2 - 1) / 12))

    def normal(e: float) -> float:
        from math import erfc, exp, sqrt

        upper = lambda z: 0.5 * erfc(z / sqrt(2))  # noqa: E731
        return upper(e / mu - mu / 2) - exp(e) * upper(e / mu + mu / 2)

    low, high = 0.0, 5.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if normal(middle) <= 1e-6 else (middle, high)
    assert high < found < 1.02 * high


def test_the_plane_agrees_with_enumeration_and_the_checker() -> None:
    weights = {(0, 0): "1/4", (2, 2): "1/4", (1, 2): "1/8", (2, 0): "1/8", (0, 2): "1/8", (1, 1): "1/8"}
    law = {k: Fraction(v) for k, v in weights.items()}
    pair = PairLaw(weights=law, half_ranges=(1, 1))
    hidden, delta = 7, 0.02
    found, _ = plane_epsilon(pair, hidden=hidden, delta=delta)
    total = convolved(dict(law), hidden)

    def exact(factor: float, sums: Plane) -> float:
        middle = moved(sums, (1, 1))
        return max(
            max(divergence(moved(sums, x), middle, factor), divergence(middle, moved(sums, x), factor))
            for x in law
        )

    assert exact(math.exp(found), total) <= delta * (1 + 1e-9)
    assert exact(math.exp(found - 1e-2), total) > delta
    prior = coupled.iid_rows(weights, rows=3)
    sums = coupled.FiniteMechanism.of(lambda x: (sum(r[0] for r in x), sum(r[1] for r in x)), [prior])
    simulator = coupled.filling_in(sums, (1, 1))
    checked = coupled.Distributional(priors=(prior,)).delta(sums, epsilon="ln 3", simulator=simulator)
    assert checked.interval.high == pytest.approx(exact(3.0, convolved(dict(law), 2)), rel=1e-9)


def test_our_epsilons_beat_the_printed_ones() -> None:
    """n = 7500: .914 printed; about half of it with the same prism, and a sixth with the prior known."""
    uniform = density("uniform(-1, 1)")
    design = Design(regressors=(uniform,), error=uniform, slopes=(0.0,))
    given = design.box(1, PRISM)
    assert given.mass == pytest.approx(0.192, rel=1e-6)
    same = prism_epsilon(design.prism(1, given), hidden=7499, delta=9.30e-8)[0]
    best = prism_epsilon(design.prism(1, design.best_box(1)), hidden=7499, delta=9.30e-8)[0]
    assert best <= same * 1.001
    assert 0.4 < same < 0.5


@pytest.mark.parametrize(
    ("regressors", "error", "slopes", "part"),
    [
        (("normal(0, 1, clamp=(-2.5, 2.5))",), "normal(0, 1, clamp=(-2.5, 2.5))", (0.5,), 1),
        (("laplace(0, 1, clamp=(-3, 3))",), "uniform(-2, 2)", (0.3,), 1),
        (("uniform(-1, 1)", "uniform(-1, 1)"), "normal(0, 1, clamp=(-3, 3))", (0.5, 0.5), 2),
        (("normal(0, 1, clamp=(-2.5, 2.5))",), "normal(0, 1, clamp=(-2.5, 2.5))", (0.5,), 0),
    ],
)
def test_boxes_lie_below_the_law(
    regressors: tuple[str, ...], error: str, slopes: tuple[float, ...], part: int
) -> None:
    """Two million simulated rows with slopes at their bounds: no part of a box is emptier than claimed (6 sigma)."""
    design = Design(
        regressors=tuple(map(density, regressors)), error=density(error), slopes=slopes, level=0.1
    )
    found = design.best_box(part)
    random = np.random.default_rng(11)
    n = 2_000_000

    def drawn(law: str) -> np.ndarray:
        about = density(law)
        if about.kind == "uniform":
            return random.uniform(-about.half, about.half, n)
        raw = random.normal(size=n) if about.kind == "normal" else random.laplace(size=n)
        return np.clip(raw * about.scale, -about.half, about.half)

    g = np.column_stack([drawn(law) for law in regressors])
    for signs in ((1, 1), (-1, 1)):
        h = 0.1 + g @ (np.array(slopes) * np.array(signs[: len(slopes)])) + drawn(error)
        columns = np.column_stack([g, h])
        products = columns if part == 0 else columns * g[:, part - 1 : part]
        inside = np.ones(n, dtype=bool)
        places = np.zeros(n, dtype=np.int64)
        parts = 6 if len(found.intervals) == 2 else 3
        for j, (low, high) in enumerate(found.intervals):
            inside &= (products[:, j] > low) & (products[:, j] < high)
            place = np.clip(((products[:, j] - low) / (high - low) * parts).astype(np.int64), 0, parts - 1)
            places = places * parts + place
        cells = parts ** len(found.intervals)
        counts = np.bincount(places[inside], minlength=cells)
        expected = n * found.mass / cells
        assert counts.min() >= expected - 6 * math.sqrt(expected)


def test_the_fit_is_least_squares_within_its_standard_errors() -> None:
    line = exact_regression(
        ["uniform(0, 2)", "uniform(-1, 1)"],
        "normal(0, 1, clamp=(-4, 4))",
        sizes=(4000, 8000, 8000),
        delta=1e-3,
        slopes=0.5,
        level=0.25,
        points=400,
    )
    random = np.random.default_rng(5)
    scores = []
    for _ in range(40):
        g = np.column_stack([random.uniform(0, 2, 20_000), random.uniform(-1, 1, 20_000)])
        h = 0.2 + 0.3 * (g[:, 0] - 1) - 0.4 * g[:, 1] + random.normal(size=20_000)
        found = line.fit(g, h)
        assert found.intercept is not None
        errors = np.array([found.intercept + 0.1, found.slopes[0] - 0.3, found.slopes[1] + 0.4])
        scores.append(errors / found.standard_errors)
    spread = np.sqrt(np.mean(np.square(scores), axis=0))
    # Forty squares average to 1 within 6 of their standard deviations.
    assert np.all(np.abs(spread**2 - 1) < 6 * math.sqrt(2 / 40))
    whole = np.linalg.lstsq(np.column_stack([np.ones(len(g)), g]), h, rcond=None)[0]
    assert np.all(np.abs(whole - [found.intercept, *found.slopes]) < 8 * np.array(found.standard_errors))


def test_the_printed_formula_is_not_least_squares() -> None:
    """(mean |g|^2)^-1 mean(g h) for g = (1, 0), (0, 1) and h = g.b is b/2."""
    g, b = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.8, -0.2])
    h = g @ b
    printed = np.mean(g * h[:, None], axis=0) / np.mean(np.sum(g**2, axis=1))
    assert np.allclose(printed, b / 2)
    assert np.allclose(np.linalg.lstsq(g, h, rcond=None)[0], b)


def test_published_means_are_sums_on_the_grid_and_odd_values_do_not_show() -> None:
    line = exact_regression("uniform(-1, 1)", "uniform(-1, 1)", sizes=(600, 600), delta=0.05, points=10)
    random = np.random.default_rng(2)
    g, h = random.uniform(-1, 1, 1200), random.uniform(-1, 1, 1200)
    first, second = line.moments(g, h)
    assert first * 600 / 0.2 == pytest.approx(np.rint(first * 600 / 0.2))
    assert second[0] * 600 / 0.1 == pytest.approx(np.rint(second[0] * 600 / 0.1))
    g[3], h[700] = math.nan, math.inf
    assert all(np.all(np.isfinite(m)) for m in line.moments(g, h))


@pytest.mark.parametrize(
    "bad",
    [
        {"regressors": "uniform(1, 1)"},
        {"regressors": "normal(0, 1)"},
        {"regressors": "normal(0, 1, clamp=(-1, 2))"},
        {"error": "normal(0, 0, clamp=(-1, 1))"},
        {"error": "cauchy(0, 1)"},
        {"slopes": 9.0},
        {"slopes": (0.1, 0.2)},
        {"unknown_rows": 5000},
        {"unknown_rows": 3},
        {"delta": 0.0},
        {"points": 7},
        {"assume": "something"},
        {"sizes": (10, 20)},
        {"prisms": (None, [(0.36, 1.2), (-0.6, 0.6)])},
        {"prisms": (None, [(0.0, 1.0), (-0.6, 0.6)])},
    ],
)
def test_bad_input_is_refused(bad: dict[str, object]) -> None:
    asked: dict[str, object] = {
        "regressors": "uniform(-1, 1)",
        "error": "uniform(-1, 1)",
        "n": 1000,
        "delta": 1e-6,
    }
    with pytest.raises(InvalidInput):
        exact_regression(**{**asked, **bad})  # type: ignore[arg-type]


def test_too_few_rows_name_the_smallest_delta() -> None:
    with pytest.raises(NoLaw, match="smallest delta that this bound reaches is 0"):
        exact_regression("uniform(-1, 1)", "uniform(-1, 1)", sizes=(4, 50), delta=1e-8)
    with pytest.raises(NoLaw, match="more than two sums"):
        exact_regression(["uniform(-1, 1)"] * 2, "uniform(-1, 1)", n=1000, delta=1e-6, assume="known")


def test_a_known_law_is_written_in_rationals() -> None:
    uniform = density("uniform(-1, 1)")
    design = Design(regressors=(uniform,), error=uniform, slopes=(0.0,))
    law, rounding = pair_law(design, 1, 0.5, (4, 4))
    assert sum(law.weights.values()) == 1
    assert rounding == 0
    assert not law.degenerate()
    assert PairLaw(weights={(0, 0): Fraction(1, 2), (2, 2): Fraction(1, 2)}, half_ranges=(1, 1)).degenerate()
