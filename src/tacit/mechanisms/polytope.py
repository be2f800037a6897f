"""K-norm noise for the image of the L1 ball: the smallest body that all moves of linear queries lie in.

A unit moves M theta by a column of M (add-or-remove) or by a difference of two (replace-one), and K is the convex
hull of these moves and their mirror images. The noise is exact: a facet's cone is chosen with probability
proportional to a determinant of integers, and in the cone the noise is a sum of its corners with exponential
weights. See docs/theory/polytope-noise.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import check_fields, refuse_if, unmasked, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Matrix, Reals
from tacit.exact.rounding import Exact, bisected, exact_parameter, exact_value, up
from tacit.guarantees import Pure
from tacit.mechanisms.base import ShapedMechanism, confidence_level, epsilon_parameter, shown
from tacit.noise import (
    ContinuousDistribution,
    Draws,
    FiniteDistribution,
    GridVector,
    Marginal,
    Needs,
    RoundedMarginal,
    grid_spacing,
    total,
)
from tacit.noise.grid import coordinate_of
from tacit.noise.marginals import ExponentialSums, RangeNoise
from tacit.noise.source import Source

__all__ = ["PolytopeNorm", "RangeNorm"]

# The boundary of a convex hull of integer points as simplices: found in floats, proved in integers.

Point = tuple[int, ...]
MOST_DIMENSIONS = 6
MOST_FACETS = 5000


def facets(points: Sequence[Point]) -> tuple[tuple[tuple[Point, ...], ...], tuple[int, ...]]:
    """The boundary of the hull of +-points as simplices, with |det| of each: found in floats, proved in integers.

    Proved: every simplex lies in a supporting hyperplane, each of its ridges belongs to exactly one other simplex,
    on the other side, and one ray from 0 meets one simplex only: so that the cones cover space exactly once.
    """
    if not points or not points[0]:
        raise EmptyComposition(what="the list of moves")
    d = len(points[0])
    if d > MOST_DIMENSIONS:
        raise NotCertified(
            what="a hull", reason=f"{d} dimensions are too many for its facets", hint="use Laplace noise"
        )
    both = sorted({p for p in points if any(p)} | {tuple(-x for x in p) for p in points if any(p)})
    if _rank(both) < d:
        raise InvalidParameter(
            parameter="points", value=f"{len(points)} points", must=f"span {d} dimensions",
            hint="leave out queries that the others determine",
        )  # fmt: skip
    if d == 1:
        far = max(both)
        return ((far,), (tuple(-x for x in far),)), (far[0], far[0])
    return _proved(tuple(both))


@lru_cache(maxsize=64)
def _proved(points: tuple[Point, ...]) -> tuple[tuple[tuple[Point, ...], ...], tuple[int, ...]]:
    """Found and proved once: the hull depends on no price, and every price asks for it."""
    cones = _hull(points)
    _prove(cones, points)
    return cones, tuple(abs(_det(c)) for c in cones)


def _hull(points: Sequence[Point]) -> tuple[tuple[Point, ...], ...]:
    """The facets of the hull, each cut into simplices by pulling its corners in one order for all of them."""
    from scipy.spatial import ConvexHull, QhullError

    unknown = NotCertified(what="a hull", reason="its facets were not found", hint="use Laplace noise")
    try:
        simplices = ConvexHull(np.array(points, dtype=np.float64), qhull_options="Qt").simplices
    except QhullError:
        raise unknown from None
    table = np.array(points, dtype=object)
    faces: dict[tuple[int, ...], frozenset[int]] = {}
    for simplex in simplices:
        cone = [points[i] for i in simplex]
        if _det(cone):
            normal, level = _plane(cone)
            on = np.flatnonzero(table @ np.array(normal, dtype=object) == level)
            faces.setdefault((*normal, level), frozenset(int(i) for i in on))
    sets = list(faces.values())
    cones = [tuple(sorted(c)) for face in sets for c in _pulled(face, sets, points)]
    if len(cones) > MOST_FACETS:
        raise NotCertified(what="a hull", reason=f"it has {len(cones)} facets", hint="use Laplace noise")
    return tuple(tuple(points[i] for i in c) for c in cones)


def _pulled(
    face: frozenset[int], facets_: list[frozenset[int]], points: Sequence[Point]
) -> list[frozenset[int]]:
    """The face as simplices: its first corner, joined to its own facets without that corner."""
    rank = _rank([points[i] for i in face])
    if len(face) == rank:
        return [face]
    cuts = {face & other for other in facets_ if other != face}
    sides = [
        c for c in cuts if len(c) >= rank - 1 and c != face and _rank([points[i] for i in c]) == rank - 1
    ]
    apex = min(face)
    return [c | {apex} for side in sides if apex not in side for c in _pulled(side, facets_, points)]


def _prove(cones: Sequence[tuple[Point, ...]], points: Sequence[Point]) -> None:
    wrong = NotCertified(what="a hull", reason="its facets could not be proved", hint="use Laplace noise")
    ridges: dict[tuple[Point, ...], list[Point]] = {}
    table = np.array(points, dtype=object)
    for cone in cones:
        det = _det(cone)
        if det == 0:
            raise wrong
        normal, level = _plane(cone)
        if any(v > level for v in table @ np.array(normal, dtype=object)):
            raise wrong
        for i, corner in enumerate(cone):
            ridges.setdefault(cone[:i] + cone[i + 1 :], []).append(corner)
    for ridge, corners in ridges.items():
        if len(corners) != 2 or _det((*ridge, corners[0])) * _det((*ridge, corners[1])) >= 0:
            raise wrong
    ray = [sum(x) for x in zip(*cones[0], strict=True)]
    if sum(_inside(cone, ray) for cone in cones) != 1:
        raise wrong


def _matrix(cone: Sequence[Point]) -> Any:
    from flint import fmpq_mat

    return fmpq_mat(len(cone), len(cone), list(itertools.chain.from_iterable(cone)))


def _det(cone: Sequence[Point]) -> int:
    return int(_matrix(cone).det().p)


def _plane(cone: Sequence[Point]) -> tuple[list[int], int]:
    """Whole numbers n and a level c > 0, in lowest terms, with n v = c for each corner v."""
    from flint import fmpq_mat

    found = _matrix(cone).solve(fmpq_mat(len(cone), 1, [1] * len(cone)))
    level = math.lcm(*(int(found[i, 0].q) for i in range(len(cone))))
    return [int(found[i, 0].p) * (level // int(found[i, 0].q)) for i in range(len(cone))], level


def _inside(cone: Sequence[Point], ray: Sequence[int]) -> bool:
    from flint import fmpq_mat

    found = _matrix(cone).transpose().solve(fmpq_mat(len(cone), 1, list(ray)))
    return all(found[i, 0] >= 0 for i in range(len(cone)))


def _rank(points: Sequence[Point]) -> int:
    from flint import fmpz_mat

    return int(fmpz_mat(len(points), len(points[0]), list(itertools.chain.from_iterable(points))).rank())


def corner_points(points: object) -> tuple[Point, ...]:
    """Checks for points with whole coordinates of one dimension, because a cut corner would make the noise too
    small for the move.
    """
    try:
        rows = [tuple(p) for p in points]  # type: ignore[attr-defined]
    except TypeError:
        rows = []
    unmasked(points, name="points")
    if not rows or not rows[0] or len({len(p) for p in rows}) != 1:
        raise InvalidParameter(
            parameter="points", value=type(points).__name__, must="be points of one dimension, at least one"
        )
    return tuple(tuple(whole("points", x, least=None) for x in p) for p in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cone(ContinuousDistribution):
    """noise_scale * sum_i E_i v_i: density proportional to e^(-gauge / noise_scale) on one facet's cone."""

    corners: tuple[Point, ...]
    noise_scale: Fraction

    @property
    def dimension(self) -> int:
        return len(self.corners)

    def needs(self) -> Needs:
        return Needs(exponentials=self.dimension)

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        return tuple(sum(x) * self.noise_scale for x in zip(*self.corners, strict=True))

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return tuple(sum(v * v for v in x) * self.noise_scale**2 for x in zip(*self.corners, strict=True))

    @property
    def covariance(self) -> Floats:
        corners = np.array(self.corners, dtype=np.float64)
        return np.asarray(corners.T @ corners * float(self.noise_scale) ** 2)

    def marginal(self, coordinate: int = 0) -> Marginal:
        i = coordinate_of(coordinate, self)
        return ExponentialSums(
            scale=float(self.noise_scale), loads=(tuple(float(p[i]) for p in self.corners),)
        )

    def formula(self, draws: Draws) -> Reals:
        columns = Matrix("corners", [[p[i] for p in self.corners] for i in range(self.dimension)])
        return columns.apply(draws.exponentials(self.dimension)) * draws.real(self.noise_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolytopeNorm(ShapedMechanism):
    """Noise of density e^(-gauge(x) / noise_scale), K the hull of integer points and their mirror images; rounded.

    Guarantee: Pure(epsilon = times / noise_scale), where one unit moves the statistic by at most `times` points' worth
    (a move in times * K). Assumption: the points span the space. Exact: no numerical error.
    Theorem `polytope-noise`. Source: Hardt, Talwar 2010, for the mechanism; the sampler is proved on the page.
    """

    points: tuple[Point, ...]
    noise_scale: Exact
    times: int = 1
    spacing: Exact = 1
    cones: tuple[tuple[Point, ...], ...] = field(init=False, repr=False, compare=False)
    volumes: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, noise_scale=exact_value, times=partial(whole, least=1))
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "points", corner_points(self.points))
        cones, volumes = facets(self.points)
        object.__setattr__(self, "cones", cones)
        object.__setattr__(self, "volumes", volumes)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, points: Sequence[Point], times: int = 1, spacing: Exact = 1
    ) -> PolytopeNorm:
        """The smallest noise with this epsilon."""
        scale = whole("times", times, least=1) / epsilon_parameter(epsilon)
        return cls(points=corner_points(points), noise_scale=scale, times=times, spacing=spacing)

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def coordinates(self) -> int:
        return len(self.points[0])

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.times / self._scale))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polytope-noise",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "K-norm of the hull of moves, rounded",
            "corners": [list(p) for p in sorted({p for cone in self.cones for p in cone})],
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def law(self) -> ContinuousDistribution:
        raise NoLaw(
            operation="one formula for the noise of a polytope",
            reason="it is a mixture: a cone is drawn first",
            hint="`covariance` and `marginal(i)` have its numbers",
        )

    def marginal(self, coordinate: int = 0) -> RoundedMarginal:
        """The distribution of one drawn count, in grid steps: sums of exponentials, mixed over the cones."""
        i = whole("coordinate", coordinate, least=0)
        refuse_if(
            i >= self.coordinates, "coordinate", coordinate, f"be below the dimension {self.coordinates}"
        )
        shares: dict[tuple[float, ...], int] = {}
        for cone, volume in zip(self.cones, self.volumes, strict=True):
            loads = tuple(sorted(float(p[i]) for p in cone if p[i]))
            shares[loads] = shares.get(loads, 0) + volume
        weights = tuple(v / sum(self.volumes) for v in shares.values())
        one = ExponentialSums(scale=float(self._scale), loads=tuple(shares), weights=weights)
        return one.rounded(self.step)

    def _draw(self, source: Source) -> GridVector:
        which = int(FiniteDistribution(weights=self.volumes).sample(size=(1,), source=source)[0])
        return _Cone(corners=self.cones[which], noise_scale=self._scale).sample(
            spacing=self.step, source=source
        )

    @property
    def covariance(self) -> Floats:
        """E X X' of the noise before rounding: sum over cones of volume (sum v v' + (sum v)(sum v)')."""
        corners = np.array(self.cones, dtype=np.float64)
        share = np.array(self.volumes, dtype=np.float64)
        share /= share.sum()
        middle = corners.sum(axis=1)
        out = np.einsum("c,cki,ckj->ij", share, corners, corners)
        return np.asarray((out + np.einsum("c,ci,cj->ij", share, middle, middle)) * float(self._scale) ** 2)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a drawn coordinate, grid included."""
        return self._largest_std()

    def mean_sizes(self, combinations: Floats) -> Floats:
        """E |c X| for each row c, by Fourier inversion in each cone (floats; before rounding)."""
        corners = np.array(self.cones, dtype=np.float64) * float(self._scale)
        share = np.array(self.volumes, dtype=np.float64)
        share /= share.sum()
        loads = np.einsum("mi,cki->mck", combinations, corners)
        return np.asarray((mean_size(loads) * share).sum(axis=1))

    def expected_error(self) -> float:
        """max_i E |X_i|, plus half a grid step at most."""
        return float(self.mean_sizes(np.eye(self.coordinates)).max() + self.step / 2)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on every single coordinate: the quantile of its own symmetric distribution (`marginal`)."""
        upper = (1 + confidence_level(confidence)) / 2
        return max(self.marginal(i).quantile(upper) for i in range(self.coordinates)) * float(self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """The bound on all coordinates at once: the better of two bounds.

        |X_i| <= reach * gauge(X), and gauge(X) is Gamma(d, noise_scale) distributed; or the union of the
        coordinates' tails.
        """
        from scipy.special import gammaincinv

        _same(dimension, self.coordinates)
        reach = max(abs(x) for p in self.points for x in p)
        level = confidence_level(confidence)
        gauge = reach * float(self._scale) * gammaincinv(self.coordinates, float(level)) + self.step / 2
        return min(float(gauge), self.error_quantile(1 - (1 - level) / self.coordinates))


def _same(given: int | None, dimension: int) -> None:
    if given is not None and given != dimension:
        raise InvalidParameter(
            parameter="dimension", value=given, must=f"be {dimension}, the noise's dimension"
        )


def mean_size(loads: Floats) -> Floats:
    """E |sum_k a_k E_k| over the last axis, E_k independent standard exponentials.

    E |X| = (2/pi) int_0^inf (1 - Re phi(t)) / t^2 dt with phi(t) = prod 1 / (1 - i a_k t), t = tan(s) / std.
    """
    nodes, weights = np.polynomial.legendre.leggauss(96)
    s = (nodes + 1) * np.pi / 4
    u = np.tan(s)
    size = np.sqrt((loads**2).sum(axis=-1) + loads.sum(axis=-1) ** 2)
    scaled = np.divide(loads, size[..., None], out=np.zeros_like(loads), where=size[..., None] > 0)
    out = np.zeros(size.shape)
    for value, weight in zip(u, weights, strict=True):
        phi = (1 / (1 - 1j * scaled * value)).prod(axis=-1)
        out += weight * np.pi / 4 * (1 - phi.real) * (1 + 1 / value**2)
    return np.asarray(2 / np.pi * out * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeNorm(ShapedMechanism):
    """Noise of density e^(-g(x) / noise_scale), g(x) = max(0, x_1..x_d) - min(0, x_1..x_d), for one-way margins.

    One row added to a table of d yes-or-no columns moves their d counts by a corner of the cube, all up or all
    down: g is the gauge of exactly that hull. T (U_i - U_0) has this distribution, T ~ Gamma(d + 2,
    noise_scale), U uniform. Guarantee: Pure(times / noise_scale). Variance (d+2)(d+3)/6 noise_scale^2 a count,
    where independent Laplace noise has 2 d^2. Theorem `polytope-noise`. Source: Hardt, Talwar 2010; the
    distribution is derived on the page.
    """

    dimension: int
    noise_scale: Exact
    times: int = 1
    spacing: Exact = 1

    def __post_init__(self) -> None:
        check_fields(
            self, dimension=partial(whole, least=1), times=partial(whole, least=1), noise_scale=exact_value
        )
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    @classmethod
    def for_target(cls, *, epsilon: Exact, dimension: int, times: int = 1, spacing: Exact = 1) -> RangeNorm:
        """The smallest noise with this epsilon."""
        scale = whole("times", times, least=1) / epsilon_parameter(epsilon)
        return cls(dimension=dimension, noise_scale=scale, times=times, spacing=spacing)

    @property
    def coordinates(self) -> int:
        return self.dimension

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.times / self._scale))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polytope-noise",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "range norm, rounded",
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def law(self) -> ContinuousDistribution:
        return _Range(coordinates=self.coordinates, noise_scale=self._scale)

    def _draw(self, source: Source) -> GridVector:
        return self.law.sample(spacing=self.step, source=source)

    @property
    def noise_std(self) -> float:
        """About sqrt((d+2)(d+3)/6) noise_scale: of a drawn coordinate, grid included."""
        return self._largest_std()

    def expected_error(self) -> float:
        """E |X_i| = (d+2)/3 noise_scale, plus half a grid step at most."""
        return float((self.coordinates + 2) / 3 * float(self._scale) + self.step / 2)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on one count: Pr[|X_i| > t] = E (1 - t/T)^2 over T > t, by incomplete gamma functions."""
        from scipy.special import gammaincc, gammaincinv

        d, miss = self.coordinates, 1 - float(confidence_level(confidence))

        def holds(t: float) -> bool:
            tail = gammaincc(d + 2, t) - 2 * t / (d + 1) * gammaincc(d + 1, t)
            tail += t * t / (d * (d + 1)) * gammaincc(d, t)
            return not tail > miss

        _, high = bisected(holds, 0.0, float(gammaincinv(d, 1 - miss)), relative=1e-9)
        return float(high * float(self._scale) + self.step / 2)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """The bound on all counts at once: |X_i| <= g(X), which is Gamma(d, noise_scale) distributed."""
        from scipy.special import gammaincinv

        _same(dimension, self.coordinates)
        level = float(confidence_level(confidence))
        return float(float(self._scale) * gammaincinv(self.coordinates, level) + self.step / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range(ContinuousDistribution):
    coordinates: int
    noise_scale: Fraction

    @property
    def dimension(self) -> int:
        return self.coordinates

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """(d+2)(d+3)/6 noise_scale^2: U_i - U_0 has variance 1/6."""
        d = self.coordinates
        return ((d + 2) * (d + 3) * self.noise_scale**2 / 6,) * d

    @property
    def covariance(self) -> Floats:
        """Half of the variance between two counts, which share U_0."""
        return float(self.exact_variances[0]) / 2 * (np.eye(self.coordinates) + 1)

    def marginal(self, coordinate: int = 0) -> Marginal:
        coordinate_of(coordinate, self)
        return RangeNoise(scale=float(self.noise_scale), dimension=self.coordinates)

    def needs(self) -> Needs:
        return Needs(uniforms=self.coordinates + 1, exponentials=self.coordinates + 2)

    def formula(self, draws: Draws) -> Reals:
        radius = total(draws.exponentials(self.coordinates + 2)) * draws.real(self.noise_scale)
        return (draws.uniforms(self.coordinates) - draws.uniforms(1)) * radius
