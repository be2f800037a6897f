"""Private choice by cross-validation, and what is expected of a density before a row is read."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.functions import Box
from tacit.functions.bases import FourierBasis, HermiteBasis, HistogramBasis, WaveletBasis
from tacit.functions.densities import (
    DensityChoice,
    DensityPlan,
    GaussianKDE,
    GriddedDensity,
    ReflectedKDE,
    SobolevKDE,
    compare_densities,
    expansion_errors,
    expected_errors,
    normal_reference,
    public_bandwidth,
)
from tacit.functions.density_families import cells_of, lattice_points
from tacit.guarantees import Neighbours, Pure
from tacit.noise import SeededSource

UNIT = Box.unit()
CANDIDATES = [
    GaussianKDE(domain=UNIT, bandwidth=0.04),
    GaussianKDE(domain=UNIT, bandwidth=0.2),
    ReflectedKDE(domain=UNIT, bandwidth=0.1),
    FourierBasis(domain=UNIT, order=3),
    HistogramBasis(domain=UNIT, bins=6),
    WaveletBasis(domain=UNIT, levels=3),
]


def choice(size: int, candidates: list = CANDIDATES, **given: object) -> DensityChoice:
    plan = DensityPlan(family=candidates[0], size=size, mu=1.0, **given)  # type: ignore[arg-type]
    return DensityChoice(plan=plan, candidates=candidates, epsilon=1)


def snapped(family: GaussianKDE, rows: np.ndarray) -> np.ndarray:
    """Where the rows lie on the family's lattice, in some order."""
    where, counts = cells_of(rows[:, None], family.domain, family.cells, "edge")
    return np.repeat(lattice_points(family, 0)[where[:, 0]], counts)


def test_scores_of_kernels_by_their_definition() -> None:
    """Double sums over pairs, and the integral of the squared estimate by a formula of its own."""
    draw, n = np.random.default_rng(1), 30
    rows = draw.normal(0.5, 0.1, n)
    chosen = choice(n)
    for family, score, plan in zip(CANDIDATES[:2], chosen.scores(rows), chosen._plans(), strict=False):
        assert isinstance(family, GaussianKDE)
        h, x = family.bandwidths[0], snapped(family, rows)
        apart = x[:, None] - x[None, :]
        square = (np.exp(-(apart**2) / (4 * h * h)) / (2 * h * math.sqrt(math.pi))).sum() / n**2
        pairs = np.exp(-(apart**2) / (2 * h * h)) / (h * math.sqrt(2 * math.pi))
        np.fill_diagonal(pairs, 0)
        wanted = square - 2 * pairs.sum() / (n * (n - 1))
        assert -float(score) == pytest.approx(wanted + plan.expected_noise_error(), abs=1e-5)


def test_scores_of_histograms_by_their_definition() -> None:
    """For counts c of bins of width w: (2/(n - 1) - (n + 1)/(n - 1) sum (c/n)^2)/w, as in textbooks."""
    rows = np.random.default_rng(2).beta(2, 5, 200)
    chosen = choice(200, [HistogramBasis(domain=UNIT, bins=b) for b in (4, 10)])
    for bins, score, plan in zip((4, 10), chosen.scores(rows), chosen._plans(), strict=True):
        shares = np.histogram(rows, bins=bins, range=(0, 1))[0] / 200
        wanted = bins * (2 / 199 - 201 / 199 * (shares**2).sum())
        assert -float(score) == pytest.approx(wanted + plan.expected_noise_error(), abs=1e-8)


@pytest.mark.parametrize("family", CANDIDATES, ids=lambda f: f"{f.kind} {f.coefficients}")
def test_no_neighbour_moves_a_score_further_than_stated(family: GaussianKDE) -> None:
    """Random neighbours and the worst: all rows in one place, one of them taken far away, or absent."""
    draw, n = np.random.default_rng(3), 12
    one = choice(n, [family])
    stated, largest = one.score_sensitivity, 0.0
    samples = [draw.random(n) for _ in range(20)] + [np.full(n, u) for u in np.linspace(0.01, 0.99, 25)]
    for rows in samples:
        start = float(one.scores(rows)[0])
        for new in (*draw.random(3), 0.0, 1.0, np.nan):
            moved = rows.copy()
            moved[4] = new
            largest = max(largest, abs(float(one.scores(moved)[0]) - start))
    assert largest <= stated
    # The range of a reflected kernel's score is bounded part by part.
    assert largest >= (0.35 if family.kind == "reflected kde" else 0.75) * stated


def test_the_choice_has_a_price_of_its_own_and_finds_a_good_bandwidth() -> None:
    draw, n = np.random.default_rng(4), 20_000
    rows = np.where(draw.random(n) < 0.5, draw.normal(0.3, 0.05, n), draw.normal(0.7, 0.05, n))
    widths = [0.003, 0.02, 0.3]
    chosen = choice(n, [GaussianKDE(domain=UNIT, bandwidth=h) for h in widths])
    assert chosen.bound == Pure(epsilon=1.0)
    found = [chosen.choose(rows, source=SeededSource(seed=s)) for s in range(20)]
    # The wide one is worse by more than one: it is taken with probability below e^-30.
    assert {f.index for f in found} <= {0, 1}
    assert found[0].plan.family.to_dict()["bandwidth"][0] in widths
    assert not found[0].publishable
    assert chosen.to_dict()["score_sensitivity"] == chosen.score_sensitivity
    assert chosen.expected_error() > 0


def test_choices_that_have_no_theorem_are_refused() -> None:
    with pytest.raises(NoLaw):
        choice(100, neighbours=Neighbours.ADD_OR_REMOVE)
    # A unit of two rows may have one: the number of rows is no longer public, and pairs of 2,000 rows would be
    # divided by a declared 10.
    with pytest.raises(NoLaw):
        choice(10, rows=2).scores([0.5] * 2000)
    with pytest.raises(EmptyComposition):
        DensityChoice(plan=choice(9).plan, candidates=[], epsilon=1)
    for bad in (
        lambda: choice(1),
        lambda: choice(9, [SobolevKDE(domain=UNIT, bandwidth=0.1)]),
        lambda: DensityChoice(
            plan=choice(9).plan, candidates=[FourierBasis(domain=Box.unit(2), order=1)], epsilon=1
        ),
        lambda: DensityChoice(plan=choice(9).plan, candidates=CANDIDATES, epsilon=0),
        lambda: choice(9).choose([0.1] * 8),
    ):
        with pytest.raises(InvalidParameter):
            bad()


# --- what to expect ---------------------------------------------------------------------------------------
def test_the_public_bandwidth_is_the_normal_rule() -> None:
    """Without noise, for large n: sd (4/((d + 2) n))^(1/(d + 4)); with noise, wider."""
    for d in (1, 2, 3):
        box, n = Box(low=[0] * d, high=[6] * d), 10**7
        rule = (4 / ((d + 2) * n)) ** (1 / (d + 4))
        assert public_bandwidth(size=n, domain=box)[0] == pytest.approx(rule, rel=0.05)
        assert public_bandwidth(size=1000, domain=box, mu=0.1)[0] > public_bandwidth(size=1000, domain=box)[0]


@pytest.mark.parametrize(
    "family",
    [
        GaussianKDE(domain=UNIT, bandwidth=0.1),
        FourierBasis(domain=UNIT, order=2),
        HermiteBasis(domain=UNIT, order=5),
    ],
    ids=lambda f: f.kind,
)
def test_expected_errors_are_those_of_simulated_releases(family: GaussianKDE) -> None:
    """200 samples from the reference density, released: the mean squared error, in parts, within 15%."""
    n, truth = 300, normal_reference(UNIT)
    plan = DensityPlan(family=family, size=n, mu=0.5)
    stated = expected_errors(plan, truth)
    errors = []
    for seed in range(200):
        rows = truth.sample(n, source=SeededSource(seed=seed))
        curve = plan.release(rows, source=SeededSource(seed=1000 + seed))(truth.middles())
        errors.append(((curve - truth.values) ** 2).mean())
    assert np.mean(errors) == pytest.approx(stated.total, rel=0.15)
    assert stated.total == pytest.approx(stated.smoothing + stated.sampling + stated.noise)


def test_products_are_computed_coordinate_by_coordinate() -> None:
    """The short way for a product reference, beside the long way over all cells of the box."""
    box = Box.unit(2)
    truth = normal_reference(box, cells=16)
    bent = truth.probabilities.copy()
    bent[0, 0] += 1e-7
    near = GriddedDensity(domain=box, probabilities=bent / bent.sum())
    for family in (FourierBasis(domain=box, order=2), HistogramBasis(domain=box, bins=4)):
        plan = DensityPlan(family=family, size=100, mu=1)
        short, long = expected_errors(plan, truth), expected_errors(plan, near)
        assert short.smoothing == pytest.approx(long.smoothing, rel=1e-3, abs=1e-4)
        assert short.sampling == pytest.approx(long.sampling, rel=1e-3)


def test_truncation_falls_and_noise_grows_with_the_order() -> None:
    families = [FourierBasis(domain=UNIT, order=j) for j in (1, 2, 4, 8)]
    found = expansion_errors(families, DensityPlan(family=families[0], size=1000, mu=0.5))
    assert all(a.smoothing > b.smoothing for a, b in pairwise(found))
    assert all(a.noise < b.noise for a, b in pairwise(found))
    # Parseval: what an expansion cannot follow is the rest of the squared coefficients.
    truth = normal_reference(UNIT)
    theta = families[1]._axis_unit(0, truth.middles()).T @ truth.probabilities
    rest = float((truth.values**2).mean() - (theta**2).sum())
    assert found[1].smoothing == pytest.approx(rest, rel=1e-3)


def test_rivals_are_compared_and_the_simple_one_is_named_where_it_suffices() -> None:
    smooth = compare_densities(size=10_000, mu=0.5, domain=UNIT)
    assert [e.plan.family.kind for e in smooth.errors] == ["gaussian kde", "fourier", "histogram"]
    assert not smooth.histogram_suffices
    assert "times as much" in smooth.summary()
    steps = GriddedDensity(domain=UNIT, probabilities=np.repeat([0.4, 0.1, 0.3, 0.2], 64) / 64)
    rough = compare_densities(size=10_000, mu=0.5, domain=UNIT, reference=steps)
    assert rough.histogram_suffices
    assert rough.best.plan.family == HistogramBasis(domain=UNIT, bins=4)
    assert "suffices" in rough.summary()
    assert len(compare_densities(size=1000, mu=0.5, domain=Box.unit(2)).errors) == 3
