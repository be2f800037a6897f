"""The plan of a density: public numbers, the noise that they need, and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import members, positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, down, exact_parameter, up
from tacit.functions.bases import FourierBasis, HistogramBasis, SeriesBasis
from tacit.functions.boxes import Box
from tacit.functions.densities.kde import GaussianKDE
from tacit.functions.densities.noises import (
    CoefficientNoise,
    EuclideanLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
)
from tacit.functions.densities.released import GriddedDensity, ReleasedDensity
from tacit.functions.density_families import BITS, BLOCK, OUTSIDE, DensityFamily, as_box, as_rows, cells_of
from tacit.functions.density_families import SPACING as PLAN_SPACING
from tacit.functions.models.features import PublicBox
from tacit.guarantees import Bound, Neighbours, gaussian_budget
from tacit.mechanisms import L1, L2, Gamma, Laplace, PermuteAndFlip, RoundedGaussian, Score
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source

MECHANISMS = ("gaussian", "laplace", "gamma")
CHECKED_POINTS = {1: 65, 2: 9, 3: 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityPlan:
    """A density of a public family from `size` rows, with noise on its coefficients; no row has been read.

    Guarantee: with `mechanism="gaussian"`, GaussianDP(mu) for the whole curve, however often and wherever it is read;
    with "laplace" or "gamma", Pure(epsilon). Exactly: sums are integers on a grid, and the noise is drawn exactly.
    Assumptions: `size` is public: the number of rows under replace-one neighbours, any public number near it under
    add-or-remove (a released count). A unit has at most `rows` rows. A row outside of the box is moved to its
    edge, or counts as absent, as `outside` says; a row with a value that is no number likewise. Theorems
    `density-lattice`, `density-kde`, `density-sobolev`, `rounded-gaussian`, `laplace`, `gamma-mechanism`.
    Source: Hall 2012, 3.1.1 and 3.3.
    """

    family: DensityFamily
    size: int
    mu: float | None = None
    epsilon: Exact | None = None
    mechanism: str = "gaussian"
    rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    outside: str = "edge"

    def __post_init__(self) -> None:
        if not isinstance(self.family, DensityFamily):
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__, must="be a family of densities"
            )
        for name, known in (("mechanism", MECHANISMS), ("outside", OUTSIDE)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InvalidParameter(parameter=name, value=given, must=f"be one of {', '.join(known)}")
        wanted, other = ("mu", "epsilon") if self.mechanism == "gaussian" else ("epsilon", "mu")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise InvalidParameter(
                parameter=wanted, value=getattr(self, wanted), must=f"be given, and {other} not",
                hint="Gaussian noise is sized by mu (or by for_target), Laplace and Gamma noise by epsilon",
            )  # fmt: skip
        set_fields(self, size=whole("size", self.size), rows=whole("rows", self.rows))
        set_fields(self, neighbours=Neighbours.parse(self.neighbours))
        if self.mu is not None:
            set_fields(self, mu=positive("mu", self.mu))
        else:
            epsilon_parameter(self.epsilon)
            set_fields(self, epsilon=self.epsilon)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        family: DensityFamily,
        size: int,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        outside: str = "edge",
    ) -> DensityPlan:
        """The plan with the least Gaussian noise whose exact curve has delta(epsilon) <= delta."""
        least = {
            "epsilon": down(exact_parameter("epsilon", epsilon)),
            "delta": down(exact_parameter("delta", delta)),
        }
        mu = gaussian_budget(**least).mu
        return cls(family=family, size=size, mu=mu, rows=rows, neighbours=neighbours, outside=outside)

    @property
    def sensitivity(self) -> L1 | L2:
        """The sensitivity of the sums of coefficients, in the norm that sizes this noise."""
        if self.mechanism == "laplace":
            return L1(Fraction(self.family.l1_sensitivity(self.neighbours)) * self.rows)
        return L2(Fraction(self.family.l2_sensitivity(self.neighbours)) * self.rows)

    @property
    def density_sensitivity(self) -> float:
        """The sensitivity of the curve in the norm of its noise's process: for a kernel, the RKHS norm.

        sqrt(2) / (size (2 pi)^(d/2) h^d) for a Gaussian kernel and a replaced row.
        """
        return float(self.sensitivity.value) * self.family.height / self.size

    @property
    def noise_mechanism(self) -> RoundedGaussian | Laplace | Gamma:
        """The noise on the sums of coefficients."""
        sensitivity = self.sensitivity
        if self.mechanism == "laplace":
            assert isinstance(sensitivity, L1)
            assert self.epsilon is not None
            return Laplace.for_target(epsilon=self.epsilon, sensitivity=sensitivity, spacing=PLAN_SPACING)
        assert isinstance(sensitivity, L2)
        m = self.family.coefficients
        if self.mechanism == "gamma":
            assert self.epsilon is not None
            return Gamma.for_target(
                epsilon=self.epsilon, sensitivity=sensitivity, dimension=m, spacing=PLAN_SPACING
            )
        assert self.mu is not None
        std = sensitivity.exact / Fraction(self.mu)
        return RoundedGaussian(
            sensitivity=sensitivity,
            noise_std=std,  # type: ignore[arg-type]
            dimension=m,
            spacing=PLAN_SPACING,
        )

    @property
    def noise(self) -> CoefficientNoise:
        """The noise's distribution, for bands."""
        mechanism = self.noise_mechanism
        if isinstance(mechanism, RoundedGaussian):
            return GaussianNoise(noise_std=float(mechanism.noise_std))
        if isinstance(mechanism, Laplace):
            return LaplaceNoise(noise_scale=float(mechanism.noise_scale))
        return EuclideanLaplaceNoise(noise_scale=float(mechanism.noise_scale))

    @property
    def bound(self) -> Bound:
        """What the release may reveal."""
        return self.noise_mechanism.bound

    @property
    def event(self) -> Event:
        """The event of the release, for the accountants and the ledger."""
        return self.noise_mechanism.event

    # --- what it costs, before any row is read ------------------------------------------------------------
    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at points of the box."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    @property
    def noise_std(self) -> float:
        """The largest noise std on a grid of points: for kernels and histograms it is the same everywhere."""
        return float(self.noise_std_at(self._some_points()).max())

    def expected_noise_error(self) -> float:
        """E of the integral of the squared noise over the box: the second part of Hall's (3.1)."""
        variance = self.noise_std_at(self._some_points()) ** 2
        return float(variance.mean()) * self.family.volume

    def expected_error(self, confidence: Exact = 0.95) -> float:
        """The bound on the noise at any one point, with this probability (Chebyshev if not normal)."""
        level = float(exact_parameter("confidence", confidence))
        factor = self.noise.quantile(level)
        return self.noise_std * (factor if factor is not None else 1 / math.sqrt(1 - level))

    def _some_points(self) -> Floats:
        box, count = self.family.box, CHECKED_POINTS.get(self.family.dimension, 3)
        # Middles of cells: families that are constant on cells are met once in each.
        inner = (np.arange(count) + 0.5) / count
        axes = [low + side * inner for low, side in zip(box.lows, box.sides, strict=True)]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    def release(self, rows: Any, *, source: Source | None = None) -> ReleasedDensity:
        """Reads the rows once, adds the noise, and keeps no other trace of them."""
        table = as_rows(rows, self.family.dimension)
        if self.neighbours is Neighbours.REPLACE_ONE and self.rows == 1 and table.shape[0] != self.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.size}, as planned",
                hint="under replace-one neighbours the number of rows is public; declare add-or-remove otherwise",
            )  # fmt: skip
        noisy = self.noise_mechanism.release(self.family.sums(table, outside=self.outside), source=source)
        return ReleasedDensity(
            family=self.family,
            values=noisy.values,
            spacing=noisy.spacing,
            size=self.size,
            noise=self.noise,
            bound=self.bound,
            neighbours=self.neighbours,
            rows=self.rows,
            outside=self.outside,
            numerical_delta=noisy.numerical_delta,
            publishable=noisy.publishable,
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan in plain values, for a certificate."""
        return {
            "family": self.family.to_dict(),
            "coefficients": self.family.coefficients,
            "size": self.size,
            "rows": self.rows,
            "neighbours": self.neighbours.value,
            "outside": self.outside,
            "sensitivity": float(self.sensitivity.value),
            "noise_std": self.noise_std,
            "noise": self.noise_mechanism.noise_distribution,
        }

    words = formerly("words")


# Private choice of a bandwidth or an order among candidates, by least-squares cross-validation.
#
# A candidate's score is minus an estimate of its integrated squared error: cross-validation on all pairs of rows,
# plus what the noise of the release to come costs, which is public. The choice is one event and the release another:
# their prices add.

SPACING = Fraction(1, 1 << 40)
Candidate = GaussianKDE | SeriesBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDensity:
    """The plan with the chosen family; `publishable` is False for a seeded source."""

    plan: DensityPlan
    index: int
    publishable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityChoice:
    """Chooses one family of a public list by noisy cross-validation; its fields give size and noise of the later
    release.

    Guarantee: Pure(epsilon). The score is a mean of q(x_i, x_j) over all pairs, so that one replaced row moves it by at
    most 2 (sup q - inf q) / size and a little more; permute-and-flip sized by the largest such move of the candidates.
    Assumption: one row replaced, of `size` >= 2 rows. Theorem `density-choice`. Source: Hall 2012, 1.2.3, for the
    choice; Rudemo 1982, Bowman 1984 for the score.
    """

    plan: DensityPlan
    candidates: Sequence[Candidate]
    epsilon: Exact

    def __post_init__(self) -> None:
        if not isinstance(self.plan, DensityPlan):
            raise InvalidParameter(parameter="plan", value=type(self.plan).__name__, must="be a DensityPlan")
        if self.plan.neighbours is not Neighbours.REPLACE_ONE:
            raise NoLaw(
                operation="a private choice of a bandwidth under add-or-remove neighbours",
                reason="the score is a mean over pairs of rows, and how many rows there are is not public then",
                hint="choose under replace-one neighbours, or take public_bandwidth(...)",
            )
        if self.plan.rows != 1:
            raise NoLaw(
                operation="a private choice of a bandwidth for units of several rows",
                reason="the score is a mean over pairs of rows, and how many rows there are is not public then",
                hint="take public_bandwidth(...)",
            )
        if self.plan.size < 2:
            raise InvalidParameter(
                parameter="plan", value=f"{self.plan.size} row", must="have two rows or more"
            )
        given = members("candidates", self.candidates)
        if not given:
            raise EmptyComposition(what="the list of candidates", hint="name at least one family")
        for one in given:
            if not isinstance(one, GaussianKDE | SeriesBasis):
                raise InvalidParameter(
                    parameter="candidates",
                    value=type(one).__name__,
                    must="hold GaussianKDE or orthonormal bases",
                )
            if one.box != self.plan.family.box:
                raise InvalidParameter(
                    parameter="candidates", value=one.box, must="have the domain of the plan's family"
                )
        epsilon_parameter(self.epsilon)
        set_fields(self, candidates=given, epsilon=self.epsilon)

    def _plans(self) -> list[DensityPlan]:
        return [replace(self.plan, family=one) for one in self.candidates]

    @property
    def score_sensitivity(self) -> float:
        """The sensitivity of any candidate's score to one replaced row: theorem `density-choice`."""
        moves = [_move(one, self.plan.size) for one in self.candidates]
        return up(Fraction(max(moves)) * Fraction(1 + 2**20, 2**20) + 4 * SPACING)

    @property
    def mechanism(self) -> PermuteAndFlip:
        """The noisy choice."""
        return PermuteAndFlip(epsilon=self.epsilon, sensitivity=Score(Fraction(self.score_sensitivity)))

    @property
    def bound(self) -> Bound:
        """Pure epsilon, for the choice alone."""
        return self.mechanism.bound

    @property
    def event(self) -> Event:
        """The choice alone; the release is a second event."""
        return self.mechanism.event

    def expected_error(self) -> float:
        """A bound on how much larger the chosen candidate's score error is than the best one's, on average."""
        return self.mechanism.expected_error(candidates=len(self.candidates))

    def scores(self, rows: Any) -> list[Fraction]:
        """The true scores, on the grid: never to be shown."""
        table = as_rows(rows, self.plan.family.dimension)
        if table.shape[0] != self.plan.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.plan.size}, as planned"
            )
        found = []
        for one, plan in zip(self.candidates, self._plans(), strict=True):
            score = _cross_validation(one, table, plan.size, plan.outside)
            cost = plan.expected_noise_error()
            found.append(-round(Fraction(score + cost) / SPACING) * SPACING)
        return found

    def choose(self, rows: Any, *, source: Source | None = None) -> ChosenDensity:
        """The chosen family's plan; run its release next."""
        chosen = self.mechanism.choose(self.scores(rows), source=source)
        return ChosenDensity(
            plan=self._plans()[chosen.index], index=chosen.index, publishable=chosen.publishable
        )

    def to_dict(self) -> dict[str, Any]:
        """The choice in plain values, for a certificate."""
        return {
            "candidates": [one.to_dict() for one in self.candidates],
            "score": "least-squares cross-validation, plus the cost of the noise",
            "score_sensitivity": self.score_sensitivity,
            **self.mechanism.noise_distribution,
        }

    words = formerly("words")


def _move(family: Candidate, size: int) -> float:
    """2 (sup q - inf q) / size + sup B2(x, x) / size^2, what rounding phi to its grid adds to q counted."""
    low, high = family.pair_range(size)
    length = math.sqrt(family._ends()[0])
    off = math.sqrt(family.coefficients) * 2.0 ** (1 - BITS)
    widened = 3 * family.height * (2 * length * off + off * off)
    inexact = 2.0**-40 * (family.square_top() + 4 * family.height * length**2)
    return 2 * (high - low + 2 * widened) / size + (family.square_top() + widened) / size**2 + 2 * inexact


def _cross_validation(family: Candidate, rows: Floats, size: int, outside: str) -> float:
    """The integral of f_D^2 minus twice the mean of f_D at each row, made without that row."""
    sums = family.sums(rows, outside=outside).astype(np.float64) * 2.0**-BITS
    where, counts = cells_of(rows, family.box, family.cells, outside)
    step = max(1, BLOCK // family.coefficients)
    own = math.fsum(
        float((family.features(where[s : s + step]) ** 2).sum(axis=1) @ counts[s : s + step])
        for s in range(0, where.shape[0], step)
    )
    square = math.fsum((family.square_weights() * sums**2).tolist()) / size**2
    pairs = family.height * (math.fsum((sums**2).tolist()) - own)
    return square - 2 * pairs / (size * (size - 1))


# What to expect of a density before any row is read: smoothing, sampling and noise, for a public reference density.
#
# A reference density is a guess that everybody may know, such as a normal one that fills the box; the numbers steer
# choices and are never a promise. With them a bandwidth follows from the number of rows alone, and the rivals can be
# compared: a kernel, a Fourier series, and the histogram.

CELLS = {1: 256, 2: 256, 3: 128}
SPREAD = 1 / 6
NEAR = 1.1
"""A simpler method is enough if its expected error is at most this many times the best one's."""


def public_bandwidth(
    *, size: int, domain: Box | PublicBox, mu: float | None = None, spread: float = SPREAD
) -> tuple[float, ...]:
    """The bandwidth, one a coordinate, with the least expected squared error for a normal reference density.

    `spread` is the reference's standard deviation as a share of each side. From public numbers alone. With `mu`
    the noise of the release counts too, and the bandwidth becomes wider. Without noise it is the
    normal-reference rule.
    """
    domain = as_box(domain)
    n, d = whole("size", size), domain.dimension
    share = positive("spread", spread)
    noise = 0.0 if mu is None else 2 / (n * positive("mu", mu)) ** 2

    def error(power: float) -> float:
        """The exact mean integrated squared error, in units of the reference's std, on the whole space."""
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
    """A normal density in the middle of the box, of standard deviation `spread` times each side, cut at its
    ends.
    """
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

    `smoothing` is the error of the family, `sampling` that of the sample, `noise` that of privacy. The first
    two are the two parts of the approximation in Hall's (3.1). Theorem `density-errors`.
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
    """The same for a reference that is a product, coordinate by coordinate; the sum covers all products of
    functions.
    """
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
        """The candidate with the least total."""
        return min(self.errors, key=lambda e: e.total)

    @property
    def histogram(self) -> ExpectedErrors:
        """The best histogram."""
        return next(e for e in self.errors if isinstance(e.plan.family, HistogramBasis))

    @property
    def histogram_suffices(self) -> bool:
        """Whether the histogram's expected error is within a tenth of the best one's."""
        return self.histogram.total <= NEAR * self.best.total

    def summary(self) -> str:
        """The verdict, in a sentence."""
        times = self.histogram.total / self.best.total
        bins = "x".join(str(b) for b in self.histogram.plan.family.cells)
        if self.histogram_suffices:
            return f"a histogram of {bins} cells suffices: its expected error is {times:.2f} times the least"
        return f"{self.best.plan.family.kind} errs least; a histogram of {bins} cells errs {times:.2f} times as much"

    words = formerly("words", "summary")


def compare_densities(
    *, size: int, mu: float, domain: Box | PublicBox, reference: GriddedDensity | None = None
) -> DensityComparison:
    """Kernel, Fourier series and histogram, each at its best parameter for the reference density, from public
    numbers alone.
    """
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
