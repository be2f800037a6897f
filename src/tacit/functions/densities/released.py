"""A released density: noisy coefficients of a public family. It carries no row, and anybody may evaluate it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import flag, integer_array, members, non_negative, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.boxes import Box, as_points
from tacit.functions.densities.noises import CoefficientNoise, noise_from_record, public_normals
from tacit.functions.density_families import OUTSIDE, DensityFamily
from tacit.guarantees import Bound, Guarantee, Neighbours
from tacit.guarantees import rows as unit_of_rows
from tacit.guarantees.guarantee import from_record as guarantee_from_record
from tacit.guarantees.guarantee import to_record as guarantee_to_record
from tacit.mechanisms.base import confidence_level
from tacit.noise import grid_spacing
from tacit.noise.source import Source, default_source

# Bands about a released curve: for the noise, for the sample, or for both; everything from what is public.
#
# The noise's distribution is public, so its band is a computation: normal quantiles at one point, simulation for all
# points at once. How much the curve would change with another sample is estimated from the released curve alone,
# which is post-processing; no band says how far smoothing has moved the curve from the density that the rows come
# from. Theorem `density-bands`.

COVERS = {
    "noise": "the same curve without noise",
    "sampling": "the curve's mean over samples of this size, had there been no noise; from the released curve",
    "both": "the curve's mean over samples of this size; from the released curve and the noise's distribution",
}
CERTAINTY = 0.999
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """low <= . <= high with the stated confidence, at each point or at all of them at once.

    `factor` is the width in standard deviations. With `draws` simulated curves it is an order statistic that is
    at least the true quantile with probability `certainty`; draws = 0 means that it is exact.
    """

    points: Floats
    center: Floats
    low: Floats
    high: Floats
    std: Floats
    factor: float
    confidence: float
    simultaneous: bool
    covers: str
    draws: int
    certainty: float

    def summary(self) -> str:
        """The claim of the band, in a sentence."""
        where = "all points at once" if self.simultaneous else "each point by itself"
        return f"{100 * self.confidence:g}% band for {COVERS[self.covers]}; {where}"

    words = formerly("words", "summary")


def order_statistic(draws: int, confidence: float, certainty: float = CERTAINTY) -> int:
    """The least k with Pr[k-th smallest of the draws >= their quantile] >= certainty: a binomial tail."""
    from scipy.special import bdtr

    k = np.arange(1, draws + 1)
    # The k-th smallest is below the quantile only if at least k draws are: Pr[Bin(draws, confidence) >= k].
    sure = bdtr(k - 1, draws, confidence) >= certainty
    if not bool(sure.any()):
        raise InvalidParameter(
            parameter="draws", value=draws, must="be enough for this confidence",
            hint=f"about {int(10 / (1 - confidence))} or more",
        )  # fmt: skip
    return int(k[sure][0])


def sampling_root(released: ReleasedDensity, points: Floats, cells: int) -> Floats:
    """R (points, cells) with R R' = covariance of the curve over samples, taking the released curve for the truth.

    The curve is a mean of bumps B(x, row): its covariance is (E B B' - E B E B') / size.
    """
    family = released.family
    grid = released.on_grid(cells)
    axes = np.meshgrid(*[grid.middles(k) for k in range(grid.domain.dimension)], indexing="ij")
    middles = np.stack([a.ravel() for a in axes], axis=1)
    weight = grid.probabilities.ravel()
    used = weight > 0
    bumps = family.synthesis(points) @ family.features_at(middles[used]).T
    p = weight[used]
    centred = bumps - (bumps @ p)[:, None]
    return np.asarray(centred * np.sqrt(p / released.size)[None, :])


def band_of(
    released: ReleasedDensity,
    points: npt.ArrayLike,
    *,
    confidence: float,
    simultaneous: bool,
    covers: str,
    draws: int,
    seed: int,
    cells: int,
) -> Band:
    """The band; see `ReleasedDensity.band`."""
    level, draws = float(confidence_level(confidence)), whole("draws", draws)
    together = flag("simultaneous", simultaneous)
    if not isinstance(covers, str) or covers not in COVERS:
        raise InvalidParameter(parameter="covers", value=covers, must=f"be one of {', '.join(COVERS)}")
    at = released.family.box.inside(points)
    center = released(at)
    rows = released.family.synthesis(at) / released.size
    variance, factor_of_sample = np.zeros(at.shape[0]), np.zeros((at.shape[0], 0))
    if covers != "sampling":
        variance = variance + (rows**2) @ released.noise.stds(rows.shape[1]) ** 2
    if covers != "noise":
        factor_of_sample = sampling_root(released, at, cells)
        variance = variance + (factor_of_sample**2).sum(axis=1)
    std = np.sqrt(variance)
    exact = released.noise.quantile(level) if covers != "sampling" else _normal_quantile(level)
    used = 0
    if not together and exact is not None:
        factor = exact
    else:
        largest = _simulated(released, rows, factor_of_sample, std, covers, draws, seed, together)
        rank = order_statistic(draws, level)
        factor = float(np.sort(largest, axis=0)[rank - 1].max())
        used = draws
    return Band(
        points=at, center=center, low=center - factor * std, high=center + factor * std, std=std, factor=factor,
        confidence=level, simultaneous=together, covers=covers, draws=used, certainty=CERTAINTY if used else 1.0,
    )  # fmt: skip


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _simulated(
    released: ReleasedDensity,
    rows: Floats,
    sample: Floats,
    std: Floats,
    covers: str,
    draws: int,
    seed: int,
    together: bool,
) -> Floats:
    """|simulated error| / std: its largest over the points for each draw, or all of it."""
    m = rows.shape[1]
    scale = np.where(std > 0, std, 1.0)
    step = max(1, BLOCK // max(m, sample.shape[1], rows.shape[0], 1))
    parts = []
    for number, start in enumerate(range(0, draws, step)):
        count = min(step, draws - start)
        error = np.zeros((count, rows.shape[0]))
        if covers != "sampling":
            error += released.noise.draws(count, m, (seed << 20) + 4 * number) @ rows.T
        if covers != "noise":
            error += public_normals((count, sample.shape[1]), (seed << 20) + 4 * number + 2) @ sample.T
        size = np.abs(error) / scale
        parts.append(size.max(axis=1) if together else size)
    return np.concatenate(parts)


# A density on the cells of a grid: non-negative, with integral one; its distribution function, quantiles, samples.

MOST_SAMPLES = 10**7


def nearest_probabilities(values: npt.ArrayLike) -> Floats:
    """The nearest vector of probabilities in Euclidean distance: max(v - t, 0) with the t that makes the sum one.

    The values are sorted; t follows from the largest k of them that stay above it. Theorem `density-projection`.
    """
    v = np.asarray(values, dtype=np.float64).ravel()
    if v.size == 0 or not bool(np.isfinite(v).all()):
        raise InvalidParameter(parameter="values", value="an array", must="hold finite numbers")
    # The answer does not change when all values move together; near the largest one no digits are lost.
    v = v - v.max()
    ordered = np.sort(v)[::-1]
    shift = (np.cumsum(ordered) - 1) / np.arange(1, v.size + 1)
    kept = int(np.flatnonzero(ordered > shift)[-1])
    found = np.maximum(v - shift[kept], 0.0)
    return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GriddedDensity:
    """Probabilities of equal cells of a box; the density is constant within each. All of it is post-processing."""

    domain: Box
    probabilities: Floats

    def __post_init__(self) -> None:
        array = np.ascontiguousarray(self.probabilities, dtype=np.float64)
        if array.ndim != self.domain.dimension or array.size == 0:
            raise InvalidParameter(
                parameter="probabilities",
                value=f"{array.ndim} dimensions",
                must=f"have {self.domain.dimension}",
            )
        if not bool((array >= 0).all()) or abs(float(array.sum()) - 1) > 1e-9:
            raise InvalidParameter(
                parameter="probabilities", value="an array", must="be at least 0 and sum to one"
            )
        array.setflags(write=False)
        object.__setattr__(self, "probabilities", array)

    @classmethod
    def nearest(cls, domain: Box, values: npt.ArrayLike) -> GriddedDensity:
        """The nearest density to any values in the cells: non-negative, with integral one."""
        array = np.asarray(values, dtype=np.float64)
        cell = float(np.prod(domain.sides)) / array.size
        return cls(domain=domain, probabilities=nearest_probabilities(array * cell).reshape(array.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return self.probabilities.shape

    @property
    def cell_volume(self) -> float:
        """The volume of one cell."""
        return float(np.prod(self.domain.sides)) / self.probabilities.size

    @property
    def values(self) -> Floats:
        """The density in each cell."""
        return self.probabilities / self.cell_volume

    def edges(self, axis: int = 0) -> Floats:
        """The edges of the cells along a coordinate."""
        return np.linspace(self.domain.lows[axis], self.domain.highs[axis], self.shape[axis] + 1)

    def middles(self, axis: int = 0) -> Floats:
        """The middles of the cells along a coordinate."""
        edges = self.edges(axis)
        return np.asarray((edges[1:] + edges[:-1]) / 2)

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The density at points of the box."""
        at = self.domain.inside(points)
        place = (at - np.array(self.domain.lows)) / self.domain.sides * np.array(self.shape)
        cell = np.minimum(place.astype(int), np.array(self.shape) - 1)
        return np.asarray(self.values[tuple(cell.T)])

    def cdf(self, points: npt.ArrayLike) -> Floats:
        """Pr[X_1 <= x_1, ..., X_d <= x_d]; points outside the box get the value at its nearest point."""
        at = as_points(points, self.domain.dimension)
        below = self.probabilities
        for axis in range(below.ndim):
            below = np.concatenate(
                [np.zeros_like(below.take([0], axis=axis)), np.cumsum(below, axis=axis)], axis=axis
            )
        share = np.clip((at - np.array(self.domain.lows)) / self.domain.sides, 0.0, 1.0) * np.array(
            self.shape
        )
        left = np.minimum(share.astype(int), np.array(self.shape) - 1)
        part = share - left
        total = np.zeros(at.shape[0])
        # The distribution function is linear in each coordinate within a cell.
        for corner in np.ndindex(*(2,) * below.ndim):
            step = np.array(corner)
            total += np.prod(np.where(step == 1, part, 1 - part), axis=1) * below[tuple((left + step).T)]
        return np.asarray(np.clip(total, 0.0, 1.0))

    def quantile(self, probabilities: npt.ArrayLike) -> Floats:
        """The least x with cdf(x) >= p; in one dimension."""
        self._one()
        p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        if not bool(((p >= 0) & (p <= 1)).all()):
            raise InvalidParameter(parameter="probabilities", value="an array", must="lie in [0, 1]")
        total = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        total /= total[-1]
        cell = np.clip(np.searchsorted(total, p, side="left") - 1, 0, self.shape[0] - 1)
        height = np.maximum(total[cell + 1] - total[cell], 1e-300)
        share = np.clip((p - total[cell]) / height, 0.0, 1.0)
        edges = self.edges()
        return np.asarray(edges[cell] + share * (edges[cell + 1] - edges[cell]))

    def mean(self) -> Floats:
        """The mean of each coordinate."""
        d = self.domain.dimension
        return np.array([float(self.marginal([k]).probabilities @ self.middles(k)) for k in range(d)])

    def marginal(self, axes: Any) -> GriddedDensity:
        """The density of some of the coordinates."""
        wanted = [whole("axes", a, least=0) for a in members("axes", axes)]
        d = self.domain.dimension
        if not wanted or len(set(wanted)) != len(wanted) or max(wanted) >= d:
            raise InvalidParameter(
                parameter="axes", value=axes, must=f"be different numbers from 0 to {d - 1}"
            )
        rest = tuple(k for k in range(d) if k not in wanted)
        kept = [k for k in range(d) if k in wanted]
        table = self.probabilities.sum(axis=rest).transpose([kept.index(k) for k in wanted])
        low, high = [self.domain.lows[k] for k in wanted], [self.domain.highs[k] for k in wanted]
        return GriddedDensity(domain=Box(low=low, high=high), probabilities=table / table.sum())

    def sample(self, count: int, *, source: Source | None = None) -> Floats:
        """Made-up rows from the density, an array (count, d): post-processing, in any number."""
        count = whole("count", count, least=0)
        if count > MOST_SAMPLES:
            raise InvalidParameter(parameter="count", value=count, must=f"be at most {MOST_SAMPLES}")
        source = source if source is not None else default_source()
        d = self.domain.dimension
        words = source.words(count * (d + 1)).reshape(d + 1, count) >> np.uint64(11)
        u = (words.astype(np.float64) + 0.5) * 2.0**-53
        total = np.cumsum(self.probabilities.ravel())
        cell = np.minimum(np.searchsorted(total / total[-1], u[0], side="left"), total.size - 1)
        place = np.stack(np.unravel_index(cell, self.shape), axis=1) + u[1:].T
        low, high = np.array(self.domain.lows), np.array(self.domain.highs)
        return np.asarray(np.clip(low + place / np.array(self.shape) * self.domain.sides, low, high))

    def _one(self) -> None:
        if self.domain.dimension != 1:
            raise InvalidParameter(
                parameter="dimension", value=self.domain.dimension, must="be 1 for quantiles",
                hint="take marginal([k]) first",
            )  # fmt: skip


VERSION = 1
CELLS = {1: 512, 2: 64, 3: 24}
FEW_CELLS = 8
READ_BLOCK = 1 << 22
FIELDS = (
    "version", "kind", "family", "values", "spacing", "size", "noise", "bound", "neighbours", "rows", "outside",
    "numerical_delta", "publishable",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedDensity:
    """x -> s(x) . values * spacing / size: one sample path, the same value whenever it is asked.

    Every use of it is post-processing, and only bands need the noise's distribution. `values`
    are integers on a grid. `publishable` is False if the noise came from a seeded source.
    """

    family: DensityFamily
    values: AnyArray
    spacing: Fraction
    size: int
    noise: CoefficientNoise
    bound: Bound
    neighbours: Neighbours
    rows: int
    outside: str
    numerical_delta: float
    publishable: bool

    def __post_init__(self) -> None:
        values = integer_array(self.values)
        if values.shape != (self.family.coefficients,):
            raise InvalidParameter(
                parameter="values", value=f"{values.shape}", must=f"be {self.family.coefficients} integers"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "size", whole("size", self.size))
        if self.outside not in OUTSIDE:
            raise InvalidParameter(
                parameter="outside", value=self.outside, must=f"be one of {', '.join(OUTSIDE)}"
            )

    @property
    def dimension(self) -> int:
        """d."""
        return self.family.dimension

    @property
    def coefficients(self) -> Floats:
        """The noisy mean of each coefficient."""
        return np.asarray(self.values).astype(np.float64) * (float(self.spacing) / self.size)

    # --- the curve ------------------------------------------------------------------------------------
    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The released curve at points of the box; noise may make it negative."""
        at = self.family.box.inside(points)
        weights = self.coefficients
        step = max(1, READ_BLOCK // max(1, weights.size))
        # Summed row by row: a point has the same value whichever others are asked beside it.
        parts = [
            (self.family.synthesis(at[s : s + step]) * weights).sum(axis=1)
            for s in range(0, at.shape[0], step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    evaluate = __call__

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at each point; public."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    def band(
        self,
        points: npt.ArrayLike,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        covers: str = "noise",
        draws: int = 4000,
        seed: int = 0,
        cells: int | None = None,
    ) -> Band:
        """A band at the points, for the error by the noise ("noise"), the sample ("sampling"), or "both".

        "sampling" and "both" take the released curve, made a density on `cells` cells a side, for the truth.
        Bands do not cover smoothing: they are about the curve's own mean, not about the density of the
        population.
        """
        return band_of(
            self,
            points,
            confidence=confidence,
            simultaneous=simultaneous,
            covers=covers,
            draws=draws,
            seed=whole("seed", seed, least=0),
            cells=self._cells(cells, {1: 256, 2: 32, 3: 12}),
        )

    # --- a density ------------------------------------------------------------------------------------
    def _cells(self, count: int | None, usual: dict[int, int] = CELLS) -> int:
        return usual.get(self.dimension, FEW_CELLS) if count is None else whole("cells", count)

    def on_grid(self, cells: int | None = None) -> GriddedDensity:
        """The nearest density that is non-negative with integral one, on `cells` equal cells along each side."""
        count = self._cells(cells)
        if count**self.dimension > 1 << 22:
            raise InvalidParameter(parameter="cells", value=count, must="make at most 2^22 cells in all")
        box = self.family.box
        axes = [
            low + side * (np.arange(count) + 0.5) / count
            for low, side in zip(box.lows, box.sides, strict=True)
        ]
        return GriddedDensity.nearest(box, self.family.on_axes(axes, self.coefficients))

    def cdf(self, points: npt.ArrayLike) -> Floats:
        """The distribution function of the nearest density, on the usual grid."""
        return self.on_grid().cdf(points)

    def quantile(self, probabilities: npt.ArrayLike) -> Floats:
        """Quantiles of the nearest density, on the usual grid; in one dimension."""
        return self.on_grid().quantile(probabilities)

    def sample(self, count: int, *, source: Source | None = None) -> Floats:
        """Made-up rows from the nearest density, on the usual grid."""
        return self.on_grid().sample(count, source=source)

    # --- records --------------------------------------------------------------------------------------
    def to_record(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        unit = unit_of_rows(neighbours=self.neighbours)
        return {
            "version": VERSION,
            "kind": "density",
            "family": self.family.to_dict(),
            "values": [int(v) for v in self.values],
            "spacing": str(self.spacing),
            "size": self.size,
            "noise": self.noise.to_record(),
            "bound": guarantee_to_record(Guarantee(bound=self.bound, unit=unit))["bound"],
            "neighbours": self.neighbours.value,
            "rows": self.rows,
            "outside": self.outside,
            "numerical_delta": self.numerical_delta,
            "publishable": self.publishable,
        }

    @classmethod
    def from_record(cls, record: Any) -> ReleasedDensity:
        """The density that a record describes, through closed tables; unknown kinds and versions are refused."""
        from tacit.functions.densities.table import family_from_record

        if not isinstance(record, dict) or set(record) != set(FIELDS):
            raise InvalidParameter(
                parameter="record",
                value=sorted(record) if isinstance(record, dict) else type(record).__name__,
                must="have exactly " + ", ".join(FIELDS),
            )
        if record["version"] != VERSION or record["kind"] != "density":
            raise InvalidParameter(
                parameter="version", value=record["version"], must=f"be {VERSION}, of kind density",
                hint="this record was written by another version of tacit",
            )  # fmt: skip
        neighbours = Neighbours.parse(record["neighbours"])
        unit = unit_of_rows(neighbours=neighbours)
        whole_record = {**guarantee_to_record(Guarantee(bound=_ANY, unit=unit)), "bound": record["bound"]}
        try:
            spacing = Fraction(record["spacing"])
        except (TypeError, ValueError, ZeroDivisionError):
            raise InvalidParameter(parameter="spacing", value="text", must="be a fraction") from None
        return cls(
            family=family_from_record(record["family"]),
            values=integer_array(record["values"]),
            spacing=spacing,
            size=record["size"],
            noise=noise_from_record(record["noise"]),
            bound=guarantee_from_record(whole_record).bound,
            neighbours=neighbours,
            rows=whole("rows", record["rows"]),
            outside=record["outside"],
            numerical_delta=non_negative("numerical_delta", record["numerical_delta"]),
            publishable=flag("publishable", record["publishable"]),
        )


def _any_bound() -> Bound:
    from tacit.guarantees import Pure

    return Pure(epsilon=1.0)


_ANY = _any_bound()
