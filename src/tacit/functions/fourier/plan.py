"""The plan of a Fourier series density: the least noisy mechanism for its sums, and its cost."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, upper
from tacit.functions.densities.noises import FourierSeriesNoise
from tacit.functions.densities.released import ReleasedDensity
from tacit.functions.density_families import OUTSIDE, as_rows, cells_of
from tacit.functions.fourier.family import FourierKDE
from tacit.guarantees import Bound, Neighbours, Pure
from tacit.mechanisms.base import L1, epsilon_parameter
from tacit.mechanisms.bodies import HullGauge
from tacit.mechanisms.fourier import FourierNoise, fourier_noise, fourier_spacing
from tacit.mechanisms.gaussian import delta_parameter
from tacit.mechanisms.knorm import KNormDifference
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.strategies import sum_of_epsilons
from tacit.noise import CaratheodoryBody
from tacit.noise.source import Source

MECHANISMS = ("best", "caratheodory", "gamma", "laplace", "gaussian")
BLOCK = 1 << 22
CHECKED_POINTS = {1: 129, 2: 17, 3: 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierPlan:
    """A `FourierKDE` of `size` rows with noise on the sums of its cosines and sines; no row has been read.

    Guarantee: Pure(epsilon) for the whole curve; with a delta, "best" may also take Gaussian noise, whose exact curve
    meets (epsilon, delta). `mechanism="best"` takes the least expected integral of the squared noise, and
    `choice.reason` says why. Exactly: sums are integers on a grid, and the noise is drawn exactly.
    Assumptions: `size` is public: the number of rows under replace-one neighbours, any public number near it under
    add-or-remove. A unit has at most `rows` rows. Rows outside of the box are moved to its edge or count as absent.
    Theorems `caratheodory-noise`, `fourier-sensitivity`, `fourier-series-density`, `density-lattice`.
    Source: Hall 2012, chapter 4 (whose mechanism is not private as printed).
    """

    family: FourierKDE
    size: int
    epsilon: Exact
    delta: Exact | None = None
    mechanism: str = "best"
    rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    outside: str = "edge"
    choice: FourierNoise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.family, FourierKDE):
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__, must="be a FourierKDE",
                hint="other families of densities have DensityPlan",
            )  # fmt: skip
        for name, known in (("mechanism", MECHANISMS), ("outside", OUTSIDE)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InvalidParameter(parameter=name, value=given, must=f"be one of {', '.join(known)}")
        set_fields(self, size=whole("size", self.size, least=1), rows=whole("rows", self.rows, least=1))
        set_fields(self, neighbours=Neighbours.parse(self.neighbours))
        epsilon_parameter(self.epsilon)
        set_fields(self, epsilon=self.epsilon)
        if self.delta is not None:
            delta_parameter(self.delta)
            set_fields(self, delta=self.delta)
        object.__setattr__(
            self,
            "choice",
            fourier_noise(
                frequencies=self.family.order,
                epsilon=self.epsilon,
                delta=self.delta,
                replace=self.neighbours is Neighbours.REPLACE_ONE,
                dimension=self.family.dimension,
                records=self.rows,
                weights=self.family.energy_weights(),
                only=None if self.mechanism == "best" else self.mechanism,
            ),
        )

    @property
    def noise(self) -> FourierSeriesNoise:
        """The noise's distribution, for bands."""
        return FourierSeriesNoise(
            mechanism=self.choice.name,
            noise_scale=_scale_of(self.choice),
            order=self.family.order,
            dimension=self.family.dimension,
        )

    @property
    def bound(self) -> Bound:
        """What the release may reveal."""
        return self.choice.mechanism.bound

    @property
    def event(self) -> Event:
        """The event of the release, for the accountants and the ledger."""
        return self.choice.mechanism.event

    # --- what it costs, before any row is read ------------------------------------------------------------
    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at points of the box."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise, which in one dimension is the same everywhere."""
        return float(self.noise_std_at(self._some_points()).max())

    def expected_noise_error(self) -> float:
        """E of the integral of the squared noise over the box: noise_std^2 times its volume in one dimension."""
        return float((self.noise_std_at(self._some_points()) ** 2).mean()) * self.family.volume

    def expected_error(self, confidence: Exact = 0.95) -> float:
        """The bound on the noise at any one point (Chebyshev if it is not normal)."""
        level = float(exact_parameter("confidence", confidence))
        factor = self.noise.quantile(level)
        return self.noise_std * (factor if factor is not None else 1 / math.sqrt(1 - level))

    def _some_points(self) -> Floats:
        box, count = self.family.box, CHECKED_POINTS[self.family.dimension]
        inner = (np.arange(count) + 0.5) / count
        axes = [low + side * inner for low, side in zip(box.lows, box.sides, strict=True)]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    # --- the release --------------------------------------------------------------------------------------
    def release(self, rows: Any, *, source: Source | None = None) -> ReleasedDensity:
        """Reads the rows once, adds the noise, and keeps no other trace of them."""
        table = as_rows(rows, self.family.dimension)
        if self.neighbours is Neighbours.REPLACE_ONE and self.rows == 1 and table.shape[0] != self.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.size}, as planned",
                hint="under replace-one neighbours the number of rows is public; declare add-or-remove otherwise",
            )  # fmt: skip
        where, counts = cells_of(table, self.family.box, self.family.cells, self.outside)
        return self.release_cells(where, counts, source=source)

    def release_cells(
        self, cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], *, source: Source | None = None
    ) -> ReleasedDensity:
        """The same from the number of rows in each cell of the family's lattice, as counted by an engine."""
        step = self.choice.spacing
        noisy = self.choice.mechanism.release(grid_sums(self.family, cells, counts, step), source=source)
        first = np.empty(1, dtype=object)
        first[0] = int(self.size / step)
        return ReleasedDensity(
            family=self.family,
            values=np.concatenate([first, np.asarray(noisy.values).astype(object)]),
            spacing=step,
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
            "coefficients": self.family.coefficients - 1,
            "size": self.size,
            "rows": self.rows,
            "neighbours": self.neighbours.value,
            "outside": self.outside,
            "mechanism": self.choice.name,
            "reason": self.choice.reason,
            "noise_std": self.noise_std,
            "noise": self.choice.mechanism.noise_distribution,
        }

    words = formerly("words")


def _scale_of(choice: FourierNoise) -> float:
    mechanism = choice.mechanism
    given = mechanism.noise_std if choice.name == "gaussian" else getattr(mechanism, "noise_scale")  # noqa: B009
    return float(given)


def grid_sums(
    family: FourierKDE,
    cells: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    spacing: Fraction,
    values: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[Any]:
    """sum_i phi(x_i) in grid steps, without the constant: each row's features are rounded separately.

    Exact integers, never to be shown without noise. `values` are whole numbers that stand before each cell's features
    in place of its count.
    """
    total = np.zeros(family.coefficients - 1, dtype=object)
    weights = counts if values is None else values
    step = max(1, BLOCK // family.coefficients)
    inverse = float(1 / spacing)
    for start in range(0, cells.shape[0], step):
        block = np.rint(family.features(cells[start : start + step])[:, 1:] * inverse).astype(np.int64)
        many = weights[start : start + step]
        if float(np.abs(many).sum(dtype=np.float64)) * float(np.abs(block).max(initial=0)) < 2.0**61:
            total = total + (many @ block).astype(object)
        else:
            total = total + many.astype(object) @ block.astype(object)
    return total


# Bandwidth and order from public numbers, and what the circle and the cut cost at most: Hall 2012, 4.3.


def fourier_bandwidth(*, size: int, dimension: int = 1, factor: float = 0.15) -> float:
    """h = factor size^(-1/(4 + d)), in sides of the box: Hall (4.3). 0.15 suits two humps that fill the box."""
    n, d = whole("size", size, least=1), whole("dimension", dimension, least=1)
    return float(float(exact_parameter("factor", factor)) * float(n) ** (-1 / (4 + d)))


def fourier_order(*, bandwidth: float, tail: float | None = None, size: int | None = None) -> int:
    """The least order m whose cut is small, for a bandwidth on the circle of length one.

    By default m = ceil(1.2 / (pi h)): lambda_m = e^(-2.88), 0.056; the cut-off part is below the sampling error.
    With a `tail`, the least m with lambda_{m+1} <= tail; with a `size`, tail = size^(-1/2): this is m of order
    sqrt(log n) / h, within Hall's (4.12), which asks for (log n) / h.
    """
    h = exact_parameter("bandwidth", bandwidth)
    if h > 4 or h < 2.0**-20:
        raise InvalidParameter(parameter="bandwidth", value=bandwidth, must="lie between 2^-20 and 4")
    if tail is not None and size is not None:
        raise InvalidParameter(parameter="tail", value=tail, must="be given without a size")
    if size is not None:
        tail = whole("size", size, least=1) ** -0.5
    if tail is None:
        return max(1, math.ceil(1.2 / (math.pi * float(h)) - 1e-9))
    level = exact_parameter("tail", tail)
    if level >= 1:
        return 1
    return max(1, math.ceil(math.sqrt(-math.log(float(level)) / 2) / (math.pi * float(h)) - 1 - 1e-9))


def wrapping_bound(*, bandwidth: float, margin: float) -> float:
    """At least the integral over [0, 1] of (Gaussian kernel - periodic kernel)^2, for a row in [margin, 1 - margin].

    (2 phi_h(margin) / (1 - e^(-(1 + 2 margin) / (2 h^2))))^2, phi_h(x) = e^(-x^2/(2h^2)) / (sqrt(2 pi) h).
    The form of Hall's Prop. 4.3.2 with its constants; it falls faster than any power of h where margin^2 >= h.
    Theorem `fourier-series-density`.
    """
    h, at = exact_parameter("bandwidth", bandwidth), exact_parameter("margin", margin, positive=False)
    if not 0 <= at < 0.5:
        raise InvalidParameter(parameter="margin", value=margin, must="be at least 0 and below 1/2")

    def formula() -> Ball:
        width, rim = ball(h), ball(at)
        top = (-(rim**2) / (2 * width**2)).exp() / ((2 * ball(1).pi()).sqrt() * width)
        ratio = (-(1 + 2 * rim) / (2 * width**2)).exp()
        return (2 * top / (1 - ratio)) ** 2

    return upper(formula)


def truncation_bound(*, order: int, bandwidth: float, dimension: int = 1) -> float:
    """At least the integral of (periodic estimate - its cut at `order`)^2, for any rows: Hall's Prop. 4.3.3.

    (L + T)^d - L^d with L = 1 + 2 sum_{j <= m} lambda_j^2 and T = 2 lambda_{m+1}^2 / (1 - e^(-4 pi^2 h^2 (2m + 3))).
    Theorem `fourier-series-density`.
    """
    m, d = whole("order", order, least=1), whole("dimension", dimension, least=1)
    h = exact_parameter("bandwidth", bandwidth)
    if m > 1 << 17 or d > 64:
        raise InvalidParameter(parameter="order", value=m, must="be at most 2^17, in at most 64 dimensions")

    def formula() -> Ball:
        rate = -4 * (ball(1).pi() * ball(h)) ** 2
        kept = 1 + 2 * sum(((rate * j * j).exp() for j in range(1, m + 1)), ball(0))
        tail = 2 * (rate * (m + 1) ** 2).exp() / (1 - (rate * (2 * m + 3)).exp())
        return (kept + tail) ** d - kept**d

    return upper(formula)


# Other pointwise means by the same route: a distribution function, and a regression function.

LEVELS = 1 << 10
SHARES = (Fraction(9, 20), Fraction(9, 20), Fraction(1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeCurve:
    """x -> the integral of a released `FourierKDE` curve from the box's low end to x, term by term; d = 1.

    Post-processing. It is linear in the noise, so that its standard deviation is public and its bands come from the
    same simulation; unlike `released.cdf` its values need not rise.
    """

    released: ReleasedDensity

    def __post_init__(self) -> None:
        if not isinstance(self.released.family, FourierKDE) or self.released.dimension != 1:
            raise InvalidParameter(
                parameter="released", value="a density", must="be a FourierKDE in one dimension"
            )

    def _rows(self, points: npt.ArrayLike) -> Floats:
        family = self.released.family
        assert isinstance(family, FourierKDE)
        x = family.box.inside(points)[:, 0]
        u, low = family.on_circle(0, x), family.margin
        k = 2 * math.pi * np.arange(1, family.order + 1)
        weights = 2 * family.axis_weights(0)[1::2] / k
        out = np.empty((x.size, family.coefficients))
        out[:, 0] = u - low
        out[:, 1::2] = weights * (np.sin(np.outer(u, k)) - np.sin(low * k))
        out[:, 2::2] = weights * (np.cos(low * k) - np.cos(np.outer(u, k)))
        return out

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The integral up to each point."""
        return np.asarray(self._rows(points) @ self.released.coefficients)

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise at each point; public."""
        rows = self._rows(points) / self.released.size
        return np.asarray(np.sqrt(rows**2 @ self.released.noise.stds(rows.shape[1]) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedRegression:
    """x -> the noisy mean of the response near x: a quotient of two released curves, kept within the declared range."""

    density: ReleasedDensity
    weighted: Floats
    low: float
    high: float
    bound: Pure
    publishable: bool

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The regression function; a released density below a tenth of uniform is replaced by that tenth."""
        family = self.density.family
        at = family.box.inside(points)
        below = np.maximum(self.density(at), 0.1 / family.volume)
        share = (family.synthesis(at) @ self.weighted) / below
        half = (self.high - self.low) / 2
        return np.asarray(self.low + half * (1 + np.clip(share, -1.0, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierRegression:
    """The mean of a response in [low, high] given one column: sum y_i K(x_i, .) over sum K(x_i, .), both by series.

    A record's terms y Psi(x), |y| <= 1, lie in the hull of the Caratheodory body and its mirror image, so that the
    difference form of its noise is private for them too: HullGauge 2 under replace-one, 1 under add-or-remove.
    Guarantee: Pure(epsilon), of which the weighted sums and the density take 9/20 each and the total a tenth.
    Responses are put on 2049 levels of their range. Theorem `caratheodory-noise`. Compare Hall 2012, chapter 6.
    """

    family: FourierKDE
    size: int
    epsilon: Exact
    low: float
    high: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE

    def __post_init__(self) -> None:
        if not isinstance(self.family, FourierKDE) or self.family.dimension != 1 or self.family.order < 2:
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__,
                must="be a FourierKDE in one dimension, of order 2 at least",
            )  # fmt: skip
        low, high = (
            exact_parameter(n, v, positive=False) for n, v in (("low", self.low), ("high", self.high))
        )
        if low >= high:
            raise InvalidParameter(parameter="high", value=self.high, must="be above low")
        set_fields(self, size=whole("size", self.size, least=1), low=float(low), high=float(high))
        set_fields(self, neighbours=Neighbours.parse(self.neighbours), epsilon=self.epsilon)
        epsilon_parameter(self.epsilon)

    def _share(self, part: int) -> Fraction:
        return epsilon_parameter(self.epsilon) * SHARES[part]

    @property
    def density_plan(self) -> FourierPlan:
        """The plan of the denominator."""
        return FourierPlan(
            family=self.family, size=self.size, epsilon=self._share(0), neighbours=self.neighbours
        )

    @property
    def weighted_noise(self) -> KNormDifference:
        """The noise of sum y_i Psi(x_i)."""
        spacing = fourier_spacing(self.family.order)
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        one = HullGauge(moved, CaratheodoryBody(frequencies=self.family.order))
        return KNormDifference.for_target(
            epsilon=self._share(1),
            sensitivity=one.rounded(spacing=spacing, records=2),
            spacing=spacing / LEVELS,
        )

    @property
    def total_noise(self) -> Laplace:
        """The noise of sum y_i."""
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        return Laplace.for_target(epsilon=self._share(2), sensitivity=L1(moved), spacing=Fraction(1, LEVELS))

    @property
    def bound(self) -> Pure:
        """The three losses add."""
        density = self.density_plan.bound
        assert isinstance(density, Pure)
        parts = (density, self.weighted_noise.bound, self.total_noise.bound)
        return Pure(epsilon=sum_of_epsilons(*(float(p.epsilon) for p in parts)))

    def release(self, rows: Any, responses: Any, *, source: Source | None = None) -> ReleasedRegression:
        """Reads rows and responses once. A row without a number in either is moved to the low ends."""
        x, y = as_rows(rows, 1), as_rows(responses, 1)
        n = x.shape[0]
        if y.shape[0] != n:
            raise InvalidParameter(parameter="responses", value="another number", must="be one for each row")
        if self.neighbours is Neighbours.REPLACE_ONE and n != self.size:
            raise InvalidParameter(parameter="rows", value=f"{n} rows", must=f"have {self.size}, as planned")
        x = np.where(np.isnan(x), self.family.box.lows[0], x)
        y = np.where(np.isnan(y), self.low, np.clip(y, self.low, self.high))
        share = 2 * (y[:, 0] / 2 - self.low / 2) / (self.high / 2 - self.low / 2) - 1
        level = np.clip(np.rint(share * LEVELS), -LEVELS, LEVELS).astype(np.int64)
        where, counts = cells_of(x, self.family.box, self.family.cells, "edge")
        density = self.density_plan.release_cells(where, counts, source=source)
        place = _cell_numbers(x, self.family)
        sums = np.bincount(place, weights=level, minlength=self.family.cells[0]).astype(np.int64)
        used = np.flatnonzero(sums)
        noise, total = self.weighted_noise, self.total_noise
        spacing = noise.step * LEVELS
        weighted = noise.release(grid_sums(self.family, used[:, None], sums[used], spacing), source=source)
        whole_sum = total.release([int(level.sum())], source=source)
        values = np.concatenate([whole_sum.to_floats(), weighted.to_floats()]) / self.size
        return ReleasedRegression(
            density=density,
            weighted=values,
            low=self.low,
            high=self.high,
            bound=self.bound,
            publishable=density.publishable and weighted.publishable and whole_sum.publishable,
        )


def _cell_numbers(x: Floats, family: FourierKDE) -> npt.NDArray[np.int64]:
    """The lattice cell of each row, as `cells_of` counts them."""
    low, high, count = family.box.lows[0], family.box.highs[0], family.cells[0]
    inside = np.clip(x[:, 0], low, high)
    share = (inside / 2 - low / 2) / (high / 2 - low / 2)
    return np.minimum((share * count).astype(np.int64), count - 1)
