"""Tables of noisy counts that are made to agree: least squares over the common structure of the tables.

Levels of a hierarchy add up, margins agree on their common columns, and a public number of rows is known.
Independent noise on every count is fitted to that (constrained inference), which is post-processing: no count costs
more, and each errs less. See docs/theory/fitted-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import check_fields, flag
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact
from tacit.mechanisms.base import L1, L2, confidence_level
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.laplace import Laplace, Weighted, mean_sizes, read_quantiles, weighted_quantiles
from tacit.mechanisms.polytope import Point, PolytopeNorm
from tacit.mechanisms.spreads import normal_factor
from tacit.mechanisms.tables import ReleasedTables, WholeTables, declared_tables
from tacit.noise.source import Source, default_source

MOST_FITTED = 640
FINE = 64
"""Steps of the noise's grid in one count: fitted counts are not whole anyway, and on a fine grid the distributions of
weighted sums are nearly the continuous ones.
"""
MOST_STEPS = 1 << 16
TINY = 1e-9
CLASSES = 256
OFF_GRID = 1.6
MISSED = math.exp(-6 * OFF_GRID**2)
"""Pr[a sum of uniform variables on the last digits is below -1.6 of their weights' norm]: e^(-6 h^2)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """The common structure of tables of these counts: they are sums of the same cells.

    `places` says for each table where each of some cells is counted (-1: nowhere), cells whose counts span all that
    the tables can be. `fixed` says that their sum is known. The nearest tables that agree are y - (I - P)(y - base),
    P a projection; errors are P times the noise.
    """

    places: tuple[npt.NDArray[np.int64], ...]
    sizes: tuple[int, ...]
    fixed: bool = False
    projection: Floats = field(init=False, repr=False)
    first: npt.NDArray[np.int64] = field(init=False, repr=False)
    _rows: Weighted = field(init=False, repr=False)
    _row: npt.NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, fixed=flag)
        if not self.places or len(self.places) != len(self.sizes) or not 1 <= sum(self.sizes) <= MOST_FITTED:
            raise InvalidParameter(
                parameter="sizes", value=sum(self.sizes), must=f"be 1 to {MOST_FITTED} counts in all, with places"
            )  # fmt: skip
        blocks = []
        for to, size in zip(self.places, self.sizes, strict=True):
            block = np.zeros((size, to.size))
            block[to[to >= 0], np.flatnonzero(to >= 0)] = 1
            blocks.append(block)
        counted = np.concatenate(blocks)
        object.__setattr__(self, "first", counted[:, 0].astype(np.int64))
        spanning = counted[:, 1:] - counted[:, :1] if self.fixed else counted
        object.__setattr__(self, "projection", _projection(spanning))
        rows, row = _classes(self.projection)
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_row", row)

    @property
    def counts(self) -> int:
        """How many counts there are."""
        return sum(self.sizes)

    @property
    def tells(self) -> bool:
        """Whether the tables constrain each other."""
        return bool(np.trace(self.projection) < self.counts - 0.5)

    @property
    def shares(self) -> Floats:
        """The variance of each fitted count, as a share of that of the noise."""
        return np.asarray(np.maximum(self.projection.diagonal(), 0.0))

    def fitted(self, noisy: Floats, total: float) -> Floats:
        """The nearest tables that agree."""
        base = self.first * total if self.fixed else np.zeros(self.counts)
        return np.asarray(base + self.projection @ (noisy - base))

    def mean_sizes(self, *, gaussian: bool) -> Floats:
        """E |error| of each fitted count, for noise of standard deviation 1 or Laplace noise of scale 1."""
        return _unit_sizes(self, gaussian)

    def laplace_quantiles(self, miss: float) -> Floats:
        """The bound on each fitted count except with this probability, for Laplace noise of scale 1."""
        return weighted_quantiles(self._rows, miss / 2)[self._row]

    def split(self, each: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Numbers of all counts, table by table."""
        return list(np.split(each, np.cumsum(self.sizes)[:-1]))


def agreement_of(
    places: tuple[npt.NDArray[np.int64], ...], sizes: tuple[int, ...], fixed: bool
) -> Agreement | None:
    """The common part of tables, made once for all callers; None if the tables are unrelated."""
    return _agreement(tuple(p.astype(np.int64).tobytes() for p in places), sizes, fixed)


@lru_cache(maxsize=16)
def _agreement(places: tuple[bytes, ...], sizes: tuple[int, ...], fixed: bool) -> Agreement | None:
    arrays = tuple(np.frombuffer(p, dtype=np.int64) for p in places)
    found = Agreement(places=arrays, sizes=sizes, fixed=fixed)
    return found if found.tells else None


@lru_cache(maxsize=64)
def _unit_sizes(agreement: Agreement, gaussian: bool) -> Floats:
    """They depend on no price, so a query at another price reuses them."""
    if gaussian:
        return np.sqrt(2 / math.pi * agreement.shares)
    return mean_sizes(agreement._rows)[agreement._row]


def _projection(spanning: Floats) -> Floats:
    """Onto the span of the columns, which are of whole numbers: from the eigenvectors of their products."""
    values, vectors = np.linalg.eigh(spanning @ spanning.T)
    kept = vectors[:, values > TINY * max(float(values[-1]), 1.0)]
    return np.asarray(kept @ kept.T)


def _classes(projection: Floats) -> tuple[Weighted, npt.NDArray[np.int64]]:
    """The different rows as weights with their multiplicities, and the class of each row.

    Weights are rounded up to a part of the largest of their row, which can only make its distribution wider.
    """
    size = np.abs(projection)
    largest = np.maximum(size.max(axis=1, keepdims=True), 1e-300)
    for parts in (1 << 12, 1 << 10, CLASSES):
        units = np.sort(np.ceil(size / largest * parts - TINY * parts).astype(np.int64), axis=1)
        units[largest[:, 0] < TINY] = 0
        keyed = np.concatenate([units, np.rint(largest / TINY).astype(np.int64)], axis=1)
        _, first, row = np.unique(keyed, axis=0, return_index=True, return_inverse=True)
        tallies = [np.unique(u[u > 0], return_counts=True) for u in units[first]]
        width = max(max((t[0].size for t in tallies), default=1), 1)
        if width <= CLASSES // 2 or parts == CLASSES:
            break
    weights, counts = np.zeros((len(first), width)), np.zeros((len(first), width))
    for i, (values, times) in enumerate(tallies):
        weights[i, : values.size] = (values / parts + TINY) * float(largest[first[i], 0])
        counts[i, : values.size] = times
    return Weighted(weights=weights, counts=counts), row.reshape(-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedTables(WholeTables):
    """Independent noise on every count of every table, fitted by least squares to the tables' common structure.

    Guarantee: that of the noise, which is sized for all tables at once; the fit is post-processing. Each fitted count
    is the best linear unbiased estimate. Its error is a weighted sum of the noise; half-widths come from the
    distribution of
    that sum, rounded up (theorem `fitted-tables`).
    """

    noise: Laplace | RoundedGaussian
    agreement: Agreement

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | RoundedGaussian):
            raise InvalidParameter(
                parameter="noise", value=type(self.noise).__name__, must="be Laplace or RoundedGaussian"
            )
        if not isinstance(self.agreement, Agreement):
            raise InvalidParameter(
                parameter="agreement", value=type(self.agreement).__name__, must="be an Agreement"
            )

    @classmethod
    def for_target(cls, *, epsilon: Exact, l1: int, agreement: Agreement) -> FittedTables:
        """The smallest Laplace noise with this epsilon, on a fine grid."""
        noise = Laplace.for_target(epsilon=epsilon, sensitivity=L1(l1), spacing=Fraction(1, _fine(l1)))
        return cls(noise=noise, agreement=agreement)

    @classmethod
    def for_mu_squared(cls, *, mu_squared: Exact, l2_squared: int, agreement: Agreement) -> FittedTables:
        """The smallest Gaussian noise with this mu^2, on a fine grid."""
        std = RoundedGaussian.for_mu_squared(mu_squared=mu_squared, squared_steps=l2_squared).noise_std
        noise = RoundedGaussian(
            sensitivity=L2.root(l2_squared), noise_std=std, dimension=agreement.counts, spacing=Fraction(1, FINE)
        )  # fmt: skip
        return cls(noise=noise, agreement=agreement)

    @property
    def theorems(self) -> tuple[str, ...]:
        """Those of the noise, and that of the fit."""
        return (*self.noise.theorems, "fitted-tables")

    @property
    def gaussian(self) -> bool:
        """Is the noise Gaussian?"""
        return isinstance(self.noise, RoundedGaussian)

    @property
    def _unit(self) -> float:
        """The noise's size, in counts: its standard deviation, or its Laplace scale."""
        return float(
            self.noise.noise_std if isinstance(self.noise, RoundedGaussian) else self.noise.noise_scale
        )

    @property
    def noise_distribution(self) -> dict[str, Any]:
        said = {**self.noise.noise_distribution, "on": f"{self.agreement.counts} counts, then least squares"}
        return {**said, "tables": list(self.agreement.sizes), "known_total": self.agreement.fixed}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        tables = declared_tables(counts, self.agreement.sizes)
        flat = np.concatenate([t.astype(object) for t in tables])
        steps = int(1 / self.noise.step)
        noisy = np.asarray(self.noise.release_cells(flat * steps, source=source)).astype(np.float64) / steps
        total = float(tables[0].astype(object).sum()) if self.agreement.fixed else 0.0
        values = self.agreement.split(self.agreement.fitted(noisy, total))
        return ReleasedTables(values=tuple(values), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def mean_sizes(self) -> list[float]:
        each = self.agreement.mean_sizes(gaussian=self.gaussian) * self._unit
        return [float(t.mean()) for t in self.agreement.split(each)]

    def variances(self) -> list[float]:
        each = self.agreement.shares * (self.noise.variance * float(self.noise.step) ** 2)
        return [float(t.mean()) for t in self.agreement.split(each)]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """Gaussian: the normal distribution, and the rounding of every draw. Laplace: by theorem `fitted-tables`."""
        miss, step = float(1 - confidence_level(confidence)), float(self.noise.step)
        if self.gaussian:
            rounded = np.abs(self.agreement.projection).sum(axis=1) * step / 2
            half = normal_factor(miss) * self._unit * np.sqrt(self.agreement.shares) + rounded
        else:
            wider = step / (2 * math.tanh(step / (2 * self._unit)))
            half = wider * self.agreement.laplace_quantiles(miss * (1 - MISSED))
            half = half + OFF_GRID * step * np.sqrt(self.agreement.shares)
        return self.agreement.split(half * (1 + TINY))


def _fine(l1: int) -> int:
    """Steps of the grid in one count: at most 64, and so few that a move is no more than some ten thousand steps."""
    return max(1, min(FINE, 1 << max(0, (MOST_STEPS // l1).bit_length() - 1)))


# K-norm noise for a few counts that overlap: shaped by the hull of what one row can really do to them.
#
# A row is in some of the counts and not in others, and not every pattern of zeros and ones can occur: ranges nest,
# levels add up, one cell of each table has it. Where the patterns span few dimensions, noise of exactly their shape
# is drawn (`PolytopeNorm`), on as many counts as there are dimensions; the others follow. See docs/theory/polytope-
# noise.md.

HULL_FINE = 64
MOST_COUNTS = 64
MOST_MOVES = {1: 100, 2: 60, 3: 30, 4: 16}
"""The largest number of distinct moves, by dimension, for an immediate hull (some hundredths of a second)."""
POINTS = 1 << 13
SLACK = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Image:
    """The effects of one row on counts: the patterns of zeros and ones that a row can add, or exchange for another
    pattern.

    `replaced` says that a row takes another's place (with `absent`, also an empty place). Moves span d dimensions;
    `base` are d counts that determine the rest, and a move of all counts is `lift` times the move of those.
    """

    patterns: tuple[Point, ...]
    sizes: tuple[int, ...]
    replaced: bool = False
    absent: bool = True
    base: tuple[int, ...] = field(init=False)
    lift: Integers = field(init=False, repr=False)
    points: tuple[Point, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, replaced=flag, absent=flag)
        moves = moves_of(np.array(self.patterns, dtype=np.int64), self.replaced, self.absent)
        if moves.shape[1] != sum(self.sizes):
            raise InvalidParameter(
                parameter="patterns", value=moves.shape[1], must="have an entry for every count"
            )
        base: list[int] = []
        for column in range(moves.shape[1]):
            if np.linalg.matrix_rank(moves[:, [*base, column]]) > len(base):
                base.append(column)
        if not base:
            raise NotCertified(what="the hull of moves", reason="no row moves any count")
        found = np.linalg.lstsq(moves[:, base].astype(np.float64), moves.astype(np.float64), rcond=None)[0]
        lift = np.rint(found.T).astype(np.int64)
        if not np.array_equal(moves[:, base] @ lift.T, moves):
            raise NotCertified(
                what="the hull of moves", reason="some counts are no whole combinations of the others"
            )
        object.__setattr__(self, "base", tuple(base))
        object.__setattr__(self, "lift", lift)
        object.__setattr__(self, "points", tuple(sorted({tuple(map(int, m)) for m in moves[:, base]})))

    def split(self, each: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Numbers of all counts, table by table."""
        return list(np.split(each, np.cumsum(self.sizes)[:-1]))

    def holds(self, moves: Integers) -> bool:
        """Whether this image consists of these moves, up to their sign."""
        own = moves_of(np.array(self.patterns, dtype=np.int64), self.replaced, self.absent)
        known = {tuple(m) for m in np.vstack([own, -own]).tolist()}
        return all(tuple(m) in known for m in moves.tolist())


def moves_of(patterns: Integers, replaced: bool, absent: bool) -> Integers:
    """By the moves of one unit, each once, and up to its sign if rows are added."""
    if replaced:
        rows = np.vstack([patterns, np.zeros((1, patterns.shape[1]), np.int64)]) if absent else patterns
        patterns = (rows[:, None, :] - rows[None, :, :]).reshape(-1, patterns.shape[1])
    found = np.unique(patterns, axis=0)
    return np.asarray(found[found.any(axis=1)])


def small_image(patterns: Integers, sizes: Sequence[int], *, replaced: bool, absent: bool) -> Image | None:
    """The image, if it is small enough for an immediate hull; else None. Made once."""
    different = np.unique(np.asarray(patterns, dtype=np.int64), axis=0)
    if different.shape[1] > MOST_COUNTS or len(different) > max(MOST_MOVES.values()):
        return None
    return _found(tuple(tuple(map(int, p)) for p in different), tuple(sizes), replaced, absent)


@lru_cache(maxsize=64)
def _found(patterns: tuple[Point, ...], sizes: tuple[int, ...], replaced: bool, absent: bool) -> Image | None:
    moves = moves_of(np.array(patterns, dtype=np.int64), replaced, absent)
    limit = MOST_MOVES.get(int(np.linalg.matrix_rank(moves)) if len(moves) else 0, 0)
    if len(moves) > (2 * limit if replaced else limit):
        return None
    try:
        made = Image(patterns=patterns, sizes=sizes, replaced=replaced, absent=absent)
        _noise(made, Fraction(1), 1)
    except NotCertified:
        return None
    return made


@lru_cache(maxsize=256)
def _noise(image: Image, noise_scale: Fraction, times: int) -> PolytopeNorm:
    """The mechanism that draws, made once."""
    return PolytopeNorm(
        points=image.points, noise_scale=noise_scale, times=times, spacing=Fraction(1, HULL_FINE)
    )


@lru_cache(maxsize=64)
def _hull_unit_sizes(image: Image) -> Floats:
    """E |error| of every count for a noise scale of 1."""
    return _noise(image, Fraction(1), 1).mean_sizes(image.lift.astype(np.float64))


@lru_cache(maxsize=64)
def _unit_quantiles(image: Image, miss: float) -> Floats:
    """The bound on every count except with this probability, for a noise scale of 1, before rounding.

    In the cone of a facet the error is sum a_k E_k, a_k what its k-th corner is worth to the count, so that its
    characteristic function is the mean over the cones of prod 1 / (1 - i a_k s). It is symmetric and log-concave (the
    marginal of a log-concave density), so that its tail is convex and is read as in `weighted_quantiles`. The
    part that wraps around is at most Pr[largest |a| Gamma(d) > P/2]. A bound on the cut-off part follows from
    |1 - i a s| >= |a| s.
    """
    from scipy.special import gammaincc, gammaincinv

    noise = _noise(image, Fraction(1), 1)
    corners = np.array(noise.cones, dtype=np.float64)
    volumes = np.array(noise.volumes, dtype=np.float64)
    d, out, known = corners.shape[2], np.zeros(len(image.lift)), dict[bytes, float]()
    far = float(gammaincinv(d, 1 - 1e-9))
    for i, combination in enumerate(image.lift.astype(np.float64)):
        # Cones that are alike to this count are one; counts to which all cones are alike, up to the sign, have
        # one distribution.
        loads, place = np.unique(np.sort(corners @ combination, axis=1), axis=0, return_inverse=True)
        share = np.bincount(place.reshape(-1), weights=volumes) / volumes.sum()
        key = np.concatenate([loads, share[:, None]], axis=1).tobytes()
        if key not in known:
            known[key] = _quantile(loads, share, far, float(gammaincc(d, far)), miss)
        out[i] = known[key]
    return out


def _quantile(loads: Floats, share: Floats, far: float, wrapped: float, miss: float) -> float:
    """The quantile of one count, in which each cone has these loads; 0 if nothing moves it."""
    from scipy.special import gammaincinv

    size = np.abs(loads)
    largest = float(size.max())
    if largest == 0:
        return 0.0
    period = 2 * largest * far
    waves = (np.arange(POINTS) + 0.5) * (2 * math.pi / period)
    phi = np.zeros(POINTS)
    for weight, load in zip(share, loads, strict=True):
        phi += weight * np.real(1 / np.prod(1 - 1j * load[:, None] * waves[None, :], axis=0))
    top = size.max(axis=1)
    others = np.sqrt(np.prod(1 + (size * waves[-1]) ** 2, axis=1) / (1 + (top * waves[-1]) ** 2))
    cut = float((share / (others * top)).sum()) * period / (2 * math.pi**2 * POINTS)
    spare = np.array([wrapped + cut + SLACK])
    found, sure = read_quantiles(phi[None, :], np.array([period]), spare, miss / 2)
    return float(found[0]) if sure[0] else largest * float(gammaincinv(loads.shape[1], 1 - miss))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HullTables(WholeTables):
    """Noise of density e^(-gauge / noise_scale) on the counts that span a small image, the gauge that of its hull.

    Guarantee: Pure(times / noise_scale), if one unit brings or replaces `times` rows. The rest of the other
    counts, beyond their combination of these, is the same for all neighbours and is added unchanged. Theorem
    `polytope-noise`.
    """

    image: Image
    noise_scale: Fraction
    times: int = 1

    @classmethod
    def for_target(cls, *, epsilon: Fraction, image: Image, times: int = 1) -> HullTables:
        """The smallest noise with this epsilon."""
        return cls(image=image, noise_scale=times / Fraction(epsilon), times=times)

    def __post_init__(self) -> None:
        if not isinstance(self.image, Image):
            raise InvalidParameter(parameter="image", value=type(self.image).__name__, must="be an Image")
        _noise(self.image, self.noise_scale, self.times)

    @property
    def noise(self) -> PolytopeNorm:
        """The mechanism that draws."""
        return _noise(self.image, self.noise_scale, self.times)

    @property
    def exact_epsilon(self) -> Fraction:
        return self.times / self.noise_scale

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polytope-noise", "k-norm")

    @property
    def noise_distribution(self) -> dict[str, Any]:
        on = f"{len(self.image.base)} of {sum(self.image.sizes)} counts, of which the others are combinations"
        return {**self.noise.noise_distribution, "on": on, "tables": list(self.image.sizes)}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        tables = declared_tables(counts, self.image.sizes)
        flat = np.concatenate([t.astype(object) for t in tables])
        base, lift = flat[list(self.image.base)], self.image.lift.astype(object)
        noisy = np.asarray(self.noise.release(base * HULL_FINE, source=source).values).astype(object)
        still = flat - lift @ base
        values = (still * HULL_FINE + lift @ noisy).astype(np.float64) / HULL_FINE
        return ReleasedTables(values=tuple(self.image.split(values)), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def mean_sizes(self) -> list[float]:
        each = _hull_unit_sizes(self.image) * float(self.noise_scale)
        return [float(t.mean()) for t in self.image.split(each)]

    def variances(self) -> list[float]:
        lift = self.image.lift.astype(np.float64)
        drawn = self.noise.covariance + np.eye(len(self.image.base)) / (12 * HULL_FINE**2)
        each = np.einsum("ij,jk,ik->i", lift, drawn, lift)
        return [float(t.mean()) for t in self.image.split(each)]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """The half-widths of the continuous distribution, and half a step of the fine grid for each rounding."""
        miss = float(1 - confidence_level(confidence))
        rounded = np.abs(self.image.lift).sum(axis=1) / (2 * HULL_FINE)
        return self.image.split(_unit_quantiles(self.image, miss) * float(self.noise_scale) + rounded)
