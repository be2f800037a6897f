"""What to expect of a density before any row is read: smoothing, sampling and noise, for a public reference density.

A reference density is a guess that everybody may know, such as a normal one that fills the box; the numbers steer
choices and are never a promise. With them a bandwidth follows from the number of rows alone, and the rivals can be
compared: a kernel, a Fourier series, and the histogram.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, whole
from tacit.functions.bases.families import DensityFamily, as_box
from tacit.functions.bases.fourier import FourierBasis
from tacit.functions.bases.histogram import HistogramBasis
from tacit.functions.boxes import Box
from tacit.functions.densities.gridded import GriddedDensity
from tacit.functions.densities.kde import GaussianKDE
from tacit.functions.densities.plan import DensityPlan
from tacit.functions.machines.domains import PublicBox

__all__ = [
    "DensityComparison",
    "ExpectedErrors",
    "compare_densities",
    "expansion_errors",
    "expected_errors",
    "normal_reference",
    "public_bandwidth",
]

CELLS = {1: 256, 2: 256, 3: 128}
SPREAD = 1 / 6
NEAR = 1.1
"""A simpler method suffices where its expected error is at most this many times the best one's."""


def public_bandwidth(
    *, size: int, domain: Box | PublicBox, mu: float | None = None, spread: float = SPREAD
) -> tuple[float, ...]:
    """The bandwidth, one a coordinate, with the least expected squared error for a normal reference density.

    `spread` is the reference's standard deviation as a share of each side. From public numbers alone; with `mu` the
    noise of the release counts too, which asks for a wider one. Without noise it is the normal-reference rule.
    """
    domain = as_box(domain)
    n, d = whole("size", size), domain.dimension
    share = positive("spread", spread)
    noise = 0.0 if mu is None else 2 / (n * positive("mu", mu)) ** 2

    def error(power: float) -> float:
        """Of the exact mean integrated squared error in units of the reference's std, on the whole space."""
        h2 = math.exp(2 * power)
        smooth: float = (1 - 1 / n) * (1 + h2) ** (-d / 2) + 1 - 2 * (1 + h2 / 2) ** (-d / 2)
        # The box has volume spread^-d in these units, and the noise height^2 at every point.
        curve = (4 * math.pi) ** (-d / 2) * (smooth + math.exp(-d * power) / n)
        return float(curve + noise * (2 * math.pi * h2) ** -d * share**-d)

    low, high = math.log(2.0**-10), math.log(4.0)
    grid = np.linspace(low, high, 400)
    best = int(np.argmin([error(float(g)) for g in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 399)])
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if error(left) < error(right) else (left, high)
    factor = math.exp((low + high) / 2)
    limits = [(float(side) / 4096, 4 * float(side)) for side in domain.sides]
    found = [share * float(side) * factor for side in domain.sides]
    return tuple(float(f"{min(max(h, a), b):.3g}") for h, (a, b) in zip(found, limits, strict=True))


def normal_reference(
    domain: Box | PublicBox, *, spread: float = SPREAD, cells: int | None = None
) -> GriddedDensity:
    """A normal density in the middle of the box, of standard deviation `spread` times each side, cut at its ends."""
    from scipy.special import ndtr

    domain = as_box(domain)
    count = CELLS.get(domain.dimension, 6) if cells is None else whole("cells", cells)
    edges = (np.linspace(0, 1, count + 1) - 0.5) / positive("spread", spread)
    one = np.diff(ndtr(edges))
    table = one
    for _ in range(domain.dimension - 1):
        table = np.multiply.outer(table, one)
    return GriddedDensity(domain=domain, probabilities=table / table.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedErrors:
    """E of the integral over the box of (released curve - density)^2, in three parts that add up.

    `smoothing` is what the family cannot follow, `sampling` that rows are a sample, `noise` what privacy costs: the
    first two are the approximation of Hall's (3.1) taken apart. Theorem `density-errors`.
    """

    plan: DensityPlan
    smoothing: float
    sampling: float
    noise: float

    @property
    def total(self) -> float:
        """The sum."""
        return self.smoothing + self.sampling + self.noise


def expected_errors(plan: DensityPlan, reference: GriddedDensity | None = None) -> ExpectedErrors:
    """The three parts for a public reference density (a normal one unless given). Reads no row."""
    family = plan.family
    truth = normal_reference(family.box) if reference is None else reference
    if truth.domain != family.box:
        raise InvalidParameter(
            parameter="reference", value=truth.domain, must="have the domain of the plan's family"
        )
    whole_table = truth.probabilities
    margins = [
        whole_table.sum(axis=tuple(j for j in range(truth.domain.dimension) if j != k))
        for k in range(family.dimension)
    ]
    product = margins[0]
    for margin in margins[1:]:
        product = np.multiply.outer(product, margin)
    if family.dimension > 1 and bool(np.allclose(product, whole_table, rtol=1e-9, atol=1e-15)):
        smoothing, spread = _of_product(family, truth, margins)
    else:
        smoothing, spread = _of_any(family, truth)
    return ExpectedErrors(
        plan=plan, smoothing=smoothing, sampling=spread / plan.size, noise=plan.expected_noise_error()
    )


def _of_any(family: DensityFamily, truth: GriddedDensity) -> tuple[float, float]:
    """The integrals of (E f_D - f)^2 and of a bump's variance, on the reference's own cells."""
    axes = [truth.middles(k) for k in range(family.dimension)]
    points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    p = truth.probabilities.ravel()
    # B(x, y): the bump that a row at y makes at x; the curve's mean over samples is B p.
    bumps = family.synthesis(points) @ family.features_at(points).T
    mean = bumps @ p
    smoothing = float(((mean - truth.values.ravel()) ** 2).sum()) * truth.cell_volume
    return smoothing, float(((bumps**2) @ p - mean**2).sum()) * truth.cell_volume


def _of_product(family: DensityFamily, truth: GriddedDensity, margins: list[Floats]) -> tuple[float, float]:
    """The same for a reference that is a product, coordinate by coordinate; all products of functions are counted."""
    parts = np.ones(4)
    per_side = family.height ** (1 / family.dimension)
    for k, p in enumerate(margins):
        x, width = truth.middles(k), float(truth.edges(k)[1] - truth.edges(k)[0])
        bumps = per_side * family._axis_synthesis(k, x) @ family._axis_features(k, x).T
        mean, f = bumps @ p, p / width
        parts *= np.array([(mean**2).sum(), (mean * f).sum(), (f**2).sum(), ((bumps**2) @ p).sum()]) * width
    curve, across, square, bump = parts.tolist()
    return max(curve - 2 * across + square, 0.0), bump - curve


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityComparison:
    """The best plan of each kind for a reference density, by expected squared error."""

    errors: tuple[ExpectedErrors, ...]

    @property
    def best(self) -> ExpectedErrors:
        """The one with the least total."""
        return min(self.errors, key=lambda e: e.total)

    @property
    def histogram(self) -> ExpectedErrors:
        """The best histogram."""
        return next(e for e in self.errors if isinstance(e.plan.family, HistogramBasis))

    @property
    def histogram_suffices(self) -> bool:
        """Whether the histogram's expected error is within a tenth of the best one's."""
        return self.histogram.total <= NEAR * self.best.total

    @property
    def words(self) -> str:
        """The verdict, in a sentence."""
        times = self.histogram.total / self.best.total
        bins = "x".join(str(b) for b in self.histogram.plan.family.cells)
        if self.histogram_suffices:
            return f"a histogram of {bins} cells suffices: its expected error is {times:.2f} times the least"
        return f"{self.best.plan.family.kind} errs least; a histogram of {bins} cells errs {times:.2f} times as much"


def compare_densities(
    *, size: int, mu: float, domain: Box | PublicBox, reference: GriddedDensity | None = None
) -> DensityComparison:
    """Kernel, Fourier series and histogram, each at its best for the reference density: from public numbers alone."""
    domain = as_box(domain)
    n, level = whole("size", size), positive("mu", mu)
    truth = normal_reference(domain) if reference is None else reference
    usual = min(
        h / float(s)
        for h, s in zip(public_bandwidth(size=n, domain=domain, mu=level), domain.sides, strict=True)
    )
    d = domain.dimension
    kernels = [usual * 2 ** (k / 2) for k in range(-2, 4)]
    orders = [j for j in (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32) if (2 * j + 1) ** d <= 4100]
    bins = [b for b in (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128) if b**d <= 4100]
    made: list[tuple[Callable[..., DensityFamily], Iterable[dict[str, object]]]] = [
        (
            GaussianKDE,
            ({"bandwidth": [h * float(s) for s in domain.sides]} for h in kernels if 1 / 2000 < h < 4),
        ),
        (FourierBasis, ({"order": j} for j in orders)),
        (HistogramBasis, ({"bins": b} for b in bins)),
    ]
    found = []
    for family, parameters in made:
        tried = []
        for given in parameters:
            try:
                plan = DensityPlan(family=family(domain=domain, **given), size=n, mu=level)
            except InvalidParameter:  # more coefficients than are allowed: not a candidate
                continue
            tried.append(expected_errors(plan, truth))
        if tried:
            found.append(min(tried, key=lambda e: e.total))
    return DensityComparison(errors=tuple(found))


def expansion_errors(
    families: Iterable[DensityFamily], plan: DensityPlan, reference: GriddedDensity | None = None
) -> tuple[ExpectedErrors, ...]:
    """Truncation against noise, order by order: the parts of (3.1) for each family in the place of the plan's."""
    return tuple(expected_errors(replace(plan, family=f), reference) for f in families)
