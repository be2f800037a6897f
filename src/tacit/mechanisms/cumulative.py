"""Cumulative counts over ordered public bins: noisy ranks, from which all quantiles are read at one price."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import add_exact, check_fields, flag, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, exact_value, up, upper
from tacit.guarantees import GaussianDP, Pure
from tacit.mechanisms.base import (
    L2,
    Mechanism,
    confidence_level,
    epsilon_parameter,
    epsilon_value,
    float_noise_std,
    shown,
)
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.laplace import GRID_STEPS, chernoff, squared_weights, sum_quantiles
from tacit.noise import DiscreteLaplace, GaussianVector
from tacit.noise.source import Source, default_source

__all__ = ["Cumulated", "Cumulative", "CumulativeGaussian", "CumulativeTree"]

MOST_BINS = 1 << 16
MOST_BRANCHES = 64
MOST_LEVELS = 17
SMALL = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cumulated:
    """Noisy numbers of rows in the first t bins, t = 0..K, along the last axis; `below[..., 0]` is 0.

    They are not made monotone, so that the distribution of each entry is the mechanism's (`half_widths`).
    """

    below: Floats
    mechanism: Cumulative
    publishable: bool
    numerical_delta: float = 0.0

    @property
    def total(self) -> Floats:
        """The (noisy, or public) number of rows of each cell."""
        return np.asarray(self.below[..., -1])


class Cumulative(Mechanism):
    """The common base of both forms: histograms of rows over K ordered bins in, noisy ranks out."""

    __slots__ = ()

    bins: int
    total_is_public: bool

    @abstractmethod
    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> Cumulated:
        """Noisy cumulative counts of histograms of shape (..., K), one for each cell."""

    @abstractmethod
    def half_widths(
        self, tail: float, *, share: Fraction | None = None, near: Floats | None = None
    ) -> Floats:
        """c(t), t = 0..K, with Pr[error of F(t) - share N >= c(t)] <= tail; the error has a symmetric distribution.

        Without a share, of F(t) alone. With `near` (K + 1 numbers), entries where |near| is beyond every c(t) may be
        given as that larger number: they decide the same.
        """

    @abstractmethod
    def noise_stds(self, *, share: Fraction | None = None) -> Floats:
        """The standard deviation of the error of F(t) - share N, t = 0..K."""

    def middling_std(self, share: Fraction) -> float:
        """The median over the bins of the standard deviation of F(t) - share N."""
        return float(np.median(self.noise_stds(share=share)[1:]))

    def error_quantile(self, confidence: Exact = 0.95) -> Floats:
        """The bound on the error of each cumulative count F(1), ..., F(K), with this probability."""
        level = confidence_level(confidence)
        return self.half_widths(float((1 - level) / 2))[1:]

    def expected_std(self) -> float:
        """The root of the mean over all bins of the squared standard deviation of F(t) - N / 2."""
        return float(np.sqrt((self.noise_stds(share=Fraction(1, 2))[1:] ** 2).mean()))

    def _histogram(self, counts: npt.ArrayLike) -> AnyArray:
        array = integer_array(counts, name="counts")
        if array.ndim == 0 or array.shape[-1] != self.bins:
            raise InvalidParameter(
                parameter="counts", value=f"shape {array.shape}", must=f"end in the {self.bins} bins",
                hint="one histogram a cell, the bins along the last axis",
            )  # fmt: skip
        return array


def checked_bins(value: object) -> int:
    """A number of bins from 1 to 65536."""
    bins = whole("bins", value, least=1)
    refuse_if(bins > MOST_BINS, "bins", bins, f"be at most {MOST_BINS}", "finer bins than that buy nothing")
    return bins


@lru_cache(maxsize=256)
def best_widths(bins: int, public: bool) -> tuple[int, ...]:
    """Widths b^(h-1), ..., b, 1 with the least mean variance of F(t) - N/2, levels h and branching b free.

    One level costs a noise scale of h, so the variance is proportional to h^2 (top + (h - 1) b / 4): a walk from the
    nearest node border of each level uses b/4 nodes on average, the top level a quarter of its nodes (a sixth where
    the total is public).
    """
    best, cost = (1,), bins / (6 if public else 4)
    for b in range(2, MOST_BRANCHES + 1):
        step = b / 4 if b % 2 == 0 else (b * b - 1) / (4 * b)
        for h in range(2, MOST_LEVELS):
            if b ** (h - 1) >= bins:
                break
            top = -(-bins // b ** (h - 1))
            found = h * h * (top / (6 if public else 4) + (h - 1) * step)
            if found < cost:
                best, cost = tuple(b ** (h - 1 - i) for i in range(h)), found
    return best


@lru_cache(maxsize=64)
def _borders(bins: int, widths: tuple[int, ...], places: range) -> npt.NDArray[np.int64]:
    """For each level and each t of `places`, the border (in bins) that the walk to t reaches there."""
    t = np.arange(places.start, places.stop, places.step)
    top = -(-bins // widths[0]) * widths[0]
    rows = [np.minimum((t + w // 2) // w * w, top) for w in widths]
    borders = np.array(rows)
    # At t = K the whole: all nodes of the top level, since the bins beyond K are empty.
    borders[:, t == bins] = top
    return borders


@lru_cache(maxsize=64)
def _walks(
    bins: int, widths: tuple[int, ...], places: range
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """(top nodes, lower nodes) used by F(t) for some t, and the number of top nodes."""
    borders = _borders(bins, widths, places)
    lower = np.zeros(len(places), dtype=np.int64)
    for i in range(1, len(widths)):
        lower += np.abs(borders[i] - borders[i - 1]) // widths[i]
    return borders[0] // widths[0], lower, -(-bins // widths[0])


def _sums(bins: int, widths: tuple[int, ...], public: bool, share: Fraction | None, places: range) -> Floats:
    """The weights of F(t) - share N; a public total is subtracted by regression, theta = n1 / nodes."""
    top, lower, count = _walks(bins, widths, places)
    theta = top / count if public else np.full(len(top), float(share or 0))
    return np.stack([theta, top, count - top, lower], axis=1).astype(np.float64)


class _Table:
    """Quantiles of the sums that a tree can form, each computed when it is first asked for."""

    __slots__ = ("_found", "_place", "_rows", "tail", "widest")

    def __init__(self, sums: Floats, tail: float) -> None:
        # The whole numbers of a row name it: one number is sorted faster than four.
        named = sums[:, 1] * (1.0 + sums[:, 3].max()) + sums[:, 3]
        _, first, place = np.unique(named, return_index=True, return_inverse=True)
        self._rows, self._place = sums[first], place.reshape(-1)
        self._found = np.full(len(self._rows), np.nan)
        self.tail = tail
        self.widest = float(chernoff(self._rows, tail).max())

    def read(self, wanted: npt.NDArray[np.bool_]) -> Floats:
        """In units of the noise scale; unwanted entries may be anything."""
        need = np.unique(self._place[wanted])
        need = need[np.isnan(self._found[need])]
        if need.size:
            self._found[need] = sum_quantiles(self._rows[need], self.tail)
        return np.asarray(self._found[self._place])


@lru_cache(maxsize=256)
def _table(bins: int, widths: tuple[int, ...], public: bool, share: Fraction | None, tail: float) -> _Table:
    # A public total makes the distribution the same for all shares.
    return _Table(_sums(bins, widths, public, None if public else share, range(bins + 1)), tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeTree(Cumulative):
    """Discrete Laplace noise on the counts of a tree of bins; F(t) is a walk of whole nodes from border to border.

    Guarantee: Pure(epsilon): a row lies in one node of each level, so the nodes of h levels move by h * l1 in L1.
    Assumptions: counts of rows over public bins, which one unit moves by at most l1 in L1 over all cells together.
    `total_is_public` is for a number of rows (in every cell) that no unit can move: then it is used as it is.
    The error of F(t) - q N is a sum of independent Laplace variables with weights 1 - q, -q and 1, and its quantiles
    are those of that distribution, not a union bound. Branching and levels are the best for the mean variance
    (K = 4096:
    three levels of 16; standard deviation 15 l1 / epsilon at the median, 45 l1 / epsilon without a tree).
    Theorem `cumulative-tree`. Source: Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013.
    """

    bins: int
    l1: Exact
    epsilon: Exact
    total_is_public: bool = False

    def __post_init__(self) -> None:
        set_fields(self, bins=checked_bins(self.bins))
        set_fields(self, total_is_public=flag("total_is_public", self.total_is_public))
        check_fields(self, l1=exact_value, epsilon=epsilon_value)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, bins: int, l1: Exact, total_is_public: bool = False
    ) -> CumulativeTree:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, bins=bins, l1=l1, total_is_public=total_is_public)

    @property
    def widths(self) -> tuple[int, ...]:
        """Bins in a node, level by level; the last level is the histogram itself."""
        return best_widths(self.bins, self.total_is_public)

    @property
    def noise_scale(self) -> Fraction:
        """levels * l1 / epsilon, for each node, in rows."""
        return len(self.widths) * exact_parameter("l1", self.l1) / epsilon_parameter(self.epsilon)

    @property
    def spacing(self) -> Fraction:
        """The grid of the noise: at least 2^14 steps a noise scale, so that its distribution is as good as
        continuous.
        """
        bits, scale = 0, self.noise_scale
        while scale * (1 << bits) < GRID_STEPS:
            bits += 1
        return Fraction(1, 1 << bits)

    @property
    def distribution(self) -> DiscreteLaplace:
        """The distribution of one node's noise, in grid steps."""
        return DiscreteLaplace(noise_scale=self.noise_scale / self.spacing)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("cumulative-tree",)

    @property
    def exact_epsilon(self) -> Fraction:
        return epsilon_parameter(self.epsilon)

    @property
    def event(self) -> Event:
        """Pure epsilon: a unit moves many nodes a little, and its curve lies below that."""
        return events.PureEvent(epsilon=float(self.bound.epsilon))

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "discrete Laplace on a tree of counts",
            "noise_scale": shown(self.noise_scale),
            "widths": list(self.widths),
            "spacing": shown(self.spacing),
            "exact": True,
        }

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> Cumulated:
        source = source if source is not None else default_source()
        array, law, factor = self._histogram(counts), self.distribution, int(1 / self.spacing)
        cells, k = array.shape[:-1], self.bins
        largest = max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0
        if (largest * factor + 64 * law.noise_scale) * 2 * k >= SMALL:
            array = array.astype(object)
        total = array.sum(axis=-1)
        borders, widths = _borders(k, self.widths, range(k + 1)), self.widths
        below: Any = 0
        padding = -(-k // widths[0]) * widths[0] - k
        padded = np.concatenate([array, np.zeros((*cells, padding), dtype=array.dtype)], axis=-1) * factor
        for i, width in enumerate(widths):
            nodes = padded.reshape(*cells, padded.shape[-1] // width, width).sum(axis=-1)
            noisy = nodes + law.sample(size=nodes.shape, source=source)
            ranks = np.concatenate([np.zeros((*cells, 1), noisy.dtype), np.cumsum(noisy, axis=-1)], axis=-1)
            below = below + ranks[..., borders[i] // width]
            if i:
                below = below - ranks[..., borders[i - 1] // width]
        read = np.asarray(below).astype(np.float64) / factor
        if self.total_is_public:
            top, _, count = _walks(k, widths, range(k + 1))
            read = read - top / count * (read[..., -1] - np.asarray(total).astype(np.float64))[..., None]
        return Cumulated(below=read, mechanism=self, publishable=source.publishable)

    def _sums(self, share: Fraction | None, places: range | None = None) -> Floats:
        chosen = range(self.bins + 1) if places is None else places
        return _sums(self.bins, self.widths, self.total_is_public, share, chosen)

    def half_widths(
        self, tail: float, *, share: Fraction | None = None, near: Floats | None = None
    ) -> Floats:
        table = _table(self.bins, self.widths, self.total_is_public, share, tail)
        scale = up(self.noise_scale)
        wanted = np.ones(self.bins + 1, dtype=np.bool_) if near is None else near <= table.widest * scale
        return np.asarray(np.where(wanted, table.read(wanted), table.widest) * scale)

    def middling_half_widths(self, tail: float, shares: Sequence[Fraction]) -> Floats:
        """For each share, the one of `half_widths` at the t with the median error."""
        rows = []
        for share in shares:
            sums = self._sums(share)
            order = np.argsort(np.sqrt(2 * squared_weights(sums)) * float(self.noise_scale))
            rows.append(sums[order[len(sums) // 2]])
        return np.asarray(sum_quantiles(np.array(rows), tail) * up(self.noise_scale))

    def noise_stds(self, *, share: Fraction | None = None) -> Floats:
        return np.asarray(np.sqrt(2 * squared_weights(self._sums(share))) * float(self.noise_scale))

    def middling_std(self, share: Fraction) -> float:
        """The median over all bins, or every 17th of many: borders repeat with powers of the branching."""
        some = self._sums(share, range(1, self.bins + 1, 17 if self.bins > 1 << 12 else 1))
        return float(np.median(np.sqrt(2 * squared_weights(some))) * float(self.noise_scale))


def cumulative(
    *,
    bins: int,
    l1: Exact,
    l2_squared: Exact,
    epsilon: Exact | None = None,
    delta: Exact | None = None,
    rho: Exact | None = None,
    total_is_public: bool = False,
) -> CumulativeTree | CumulativeGaussian:
    """The better of the two forms for this price: Laplace noise on a tree, or correlated Gaussian noise.

    epsilon alone: the tree. rho: the Gaussian form. epsilon and delta: the one with the smaller expected_std.
    """
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InvalidParameter(
                parameter="rho", value=rho, must="stand alone", hint="or epsilon with delta"
            )
        return CumulativeGaussian.for_rho(
            bins=bins, l2_squared=l2_squared, rho=rho, total_is_public=total_is_public
        )
    if epsilon is None:
        raise InvalidParameter(parameter="epsilon", value=None, must="be given, or rho", hint="the price")
    tree = CumulativeTree(bins=bins, l1=l1, epsilon=epsilon, total_is_public=total_is_public)
    if delta is None:
        return tree
    normal = CumulativeGaussian.for_target(
        bins=bins, l2_squared=l2_squared, epsilon=epsilon, delta=delta, total_is_public=total_is_public
    )
    return tree if tree.expected_std() < normal.expected_std() else normal


# Cumulative counts with correlated Gaussian noise: the square root of the summation matrix.

LEAST_BITS = 12
MOST_BITS = 40
NOISE_BITS = 16
# A hair more noise, so that what is rounded up on the way to a bound stays within the target.
SPARE = 1 + Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """Integer coefficients R of the strategy, the float series B with B R = 1/(1 - x), and their sums."""

    coefficients: npt.NDArray[np.int64]
    square: int
    inverse: Floats
    residual: float
    norms: Floats
    cross: Floats
    lengths: Floats


def _series_inverse(series: Floats) -> Floats:
    """1 / series by Newton's iteration, to its length."""
    out, n = np.array([1 / series[0]]), 1
    while n < len(series):
        n = min(2 * n, len(series))
        size = 4 * n
        f = np.fft.rfft(out, size)
        out = np.fft.irfft(f * (2 - np.fft.rfft(series[:n], size) * f), size)[:n]
    return out


@lru_cache(maxsize=16)
def _strategy(bins: int, bits: int) -> _Strategy:
    """R_k = round(2^bits C(2k, k) / 4^k): the power series (1 - x)^(-1/2), whose square sums up."""
    ratios = np.concatenate([[1.0], 1 - 0.5 / np.arange(1, bins)]) if bins > 1 else np.ones(1)
    coefficients = np.rint(np.cumprod(ratios) * (1 << bits)).astype(np.int64)
    exact = coefficients.astype(np.float64)
    inverse = np.cumsum(_series_inverse(exact))
    size = 1 << (2 * bins - 1).bit_length()
    back = np.fft.irfft(np.fft.rfft(inverse, size) * np.fft.rfft(exact, size), size)[:bins]
    # What float arithmetic leaves of B R - 1/(1 - x); a histogram of n rows is off by at most n times that.
    residual = float(np.abs(back - 1).max()) + 1e-12
    cross = np.fft.irfft(np.fft.rfft(inverse, size) * np.conj(np.fft.rfft(inverse, size)), size)[:bins]
    return _Strategy(
        coefficients=coefficients,
        square=sum(int(c) ** 2 for c in coefficients),
        inverse=inverse,
        residual=residual,
        norms=np.concatenate([[0.0], np.cumsum(inverse**2)]),
        cross=np.concatenate([[0.0], _aligned(inverse, cross)]),
        lengths=np.concatenate([[0.0], np.cumsum(np.abs(inverse))]),
    )  # fmt: skip


def _aligned(inverse: Floats, cross: Floats) -> Floats:
    """<B_t, B_K> for t = 1..K: the noise that t and K share, lag K - t."""
    return cross[::-1].copy() if len(inverse) > 1 else inverse**2


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeGaussian(Cumulative):
    """y = R h + N(0, noise_std^2) rounded, then F = B y: R the square root of the summation matrix, in integers.

    Guarantee: GaussianDP(mu = |R| sqrt(l2_squared) / noise_std), |R| its longest column, exactly: R has no negative
    entry, so a move p - q has |R(p - q)|^2 <= |Rp|^2 + |Rq|^2 <= |R|^2 (|p|_1^2 + |q|_1^2) <= |R|^2 l2_squared.
    Assumptions: counts of rows over public bins, and l2_squared bounds |p|_1^2 + |q|_1^2 for the rows p that come
    and q that go (m^2 for a unit of m rows, 2 m^2 if it is replaced). F is post-processing of y.
    The standard deviation grows like ln(K) / pi: 3.7 at K = 4096 and mu = 1, where a tree has 6.
    Theorem `cumulative-gaussian`. Source: Fichtenberger, Henzinger, Upadhyay 2023.
    """

    bins: int
    l2_squared: Exact
    noise_std: float
    bits: int
    total_is_public: bool = False

    def __post_init__(self) -> None:
        set_fields(self, bins=checked_bins(self.bins))
        set_fields(self, total_is_public=flag("total_is_public", self.total_is_public))
        check_fields(self, l2_squared=exact_value)
        set_fields(self, noise_std=float_noise_std(self.noise_std))
        set_fields(self, bits=whole("bits", self.bits, least=LEAST_BITS))
        refuse_if(self.bits > MOST_BITS, "bits", self.bits, f"be at most {MOST_BITS}")

    @classmethod
    def for_rho(
        cls, *, bins: int, l2_squared: Exact, rho: Exact, total_is_public: bool = False
    ) -> CumulativeGaussian:
        """The least noise with this rho = mu^2 / 2."""
        target, move = epsilon_parameter(rho, "rho"), exact_parameter("l2_squared", l2_squared)
        bits = _bits(target, move)
        square = _strategy(checked_bins(bins), bits).square * move / (2 * target) * SPARE
        noise_std = upper(lambda: ball(square).sqrt())
        return cls(
            bins=bins, l2_squared=l2_squared, noise_std=noise_std, bits=bits, total_is_public=total_is_public
        )

    @classmethod
    def for_target(
        cls, *, bins: int, l2_squared: Exact, epsilon: Exact, delta: Exact, total_is_public: bool = False
    ) -> CumulativeGaussian:
        """The least noise (to one part in 10^5) whose curve has delta(epsilon) <= delta; certified."""
        move = exact_parameter("l2_squared", l2_squared)
        unit = RoundedGaussian.for_target(epsilon=epsilon, delta=delta, sensitivity=L2(1), dimension=1)
        mu = Fraction(unit.bound.mu)
        bits = _bits(mu**2 / 2, move)
        square = _strategy(checked_bins(bins), bits).square * move / mu**2 * SPARE
        noise_std = upper(lambda: ball(square).sqrt())
        return cls(
            bins=bins, l2_squared=l2_squared, noise_std=noise_std, bits=bits, total_is_public=total_is_public
        )

    @property
    def _inner(self) -> RoundedGaussian:
        """The same noise on one number with the same sensitivity, bound and event."""
        square = _strategy(self.bins, self.bits).square * exact_parameter("l2_squared", self.l2_squared)
        return RoundedGaussian(sensitivity=L2.root(square), noise_std=self.noise_std, dimension=1)

    @property
    def bound(self) -> GaussianDP:
        return self._inner.bound

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("cumulative-gaussian", "rounded-gaussian")

    @property
    def exact_rho(self) -> Fraction:
        return Fraction(self.bound.mu) ** 2 / 2

    @property
    def event(self) -> Event:
        """Gaussian noise of this mu."""
        return self._inner.event

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded, under the square root of the summation matrix",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "coefficient_bits": self.bits,
            "spacing": "1",
            "exact": True,
        }

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> Cumulated:
        source = source if source is not None else default_source()
        array, plan = self._histogram(counts), _strategy(self.bins, self.bits)
        law = GaussianVector(coordinates=1, noise_std=self.noise_std)
        noise = law.sample(spacing=1, size=max(array.size, 1), source=source).values
        noise = noise.reshape(-1)[: array.size].reshape(array.shape)
        # The integers y are the release; all that follows is made of them (and of a public total).
        y = add_exact(_product(plan, array, self.bins, self.bits), noise).astype(np.float64)
        size = 1 << (2 * self.bins - 1).bit_length()
        flat = np.fft.irfft(np.fft.rfft(y, size, axis=-1) * np.fft.rfft(plan.inverse, size), size, axis=-1)
        below = np.concatenate([np.zeros((*array.shape[:-1], 1)), flat[..., : self.bins]], axis=-1)
        if self.total_is_public:
            total = array.astype(np.float64).sum(axis=-1)
            below = below - self._theta(None) * (below[..., -1] - total)[..., None]
        return Cumulated(below=below, mechanism=self, publishable=source.publishable)

    def _theta(self, share: Fraction | None) -> Floats:
        plan = _strategy(self.bins, self.bits)
        if self.total_is_public:
            return np.asarray(plan.cross / plan.norms[-1])
        return np.full(self.bins + 1, float(share or 0))

    def _weights(self, share: Fraction | None) -> tuple[Floats, Floats]:
        """For w = B_t - theta B_K: |w| in L2, and a bound of |w| in L1."""
        plan, theta = _strategy(self.bins, self.bits), self._theta(share)
        square = plan.norms - 2 * theta * plan.cross + theta**2 * plan.norms[-1]
        slack = 1e-13 * plan.norms[-1]
        return np.sqrt(np.maximum(square, 0) + slack), plan.lengths + theta * plan.lengths[-1]

    def half_widths(
        self, tail: float, *, share: Fraction | None = None, near: Floats | None = None
    ) -> Floats:
        """The normal quantile of |w| noise_std, and half a step of rounding in every coordinate."""
        euclid, absolute = self._weights(share)
        out = -NormalDist().inv_cdf(tail) * (1 + 1e-12) * float(self.noise_std) * euclid + absolute / 2
        out[0] = 0.0
        return np.asarray(out)

    @property
    def residual(self) -> float:
        """The error of float arithmetic, per row: F is off by at most this times the number of rows."""
        return _strategy(self.bins, self.bits).residual

    def noise_stds(self, *, share: Fraction | None = None) -> Floats:
        out = self._weights(share)[0] * float(self.noise_std)
        out[0] = 0.0
        return np.asarray(out)


def _bits(rho: Fraction, move: Fraction) -> int:
    """The bits of a coefficient that give the noise at least 2^16 steps. Then rounding does not matter."""
    return max(LEAST_BITS, NOISE_BITS + math.ceil(math.log2(max(float(2 * rho / move), 1e-30)) / 2))


def _product(plan: _Strategy, array: AnyArray, bins: int, bits: int) -> AnyArray:
    """R h, exactly: by Fourier transforms of digits so small that float errors stay below a quarter.

    A transform of size 2^m is off by less than 6 m u in the Euclidean norm, u = 2^-53, so three of them leave every
    entry of the product within 20 m u |R| |h|, which is 1/8 or less for digits below `limit`.
    Source: Higham 2002, section 24.1.
    """
    transforms = 20 * (2 * bins - 1).bit_length()
    limit = 2.0**53 / (8 * transforms * math.sqrt(plan.square) * math.sqrt(bins))
    digits = max(1, math.floor(math.log2(limit)))
    if array.size and array.dtype != object and int(array.min()) >= 0 and int(array.max()) < 1 << digits:
        return _convolved(plan, array.astype(np.float64), bins).astype(np.int64)
    sign, rest = np.where(array < 0, -1, 1).astype(object), np.abs(array.astype(object))
    out, shift = np.zeros(array.shape, dtype=object), 0
    positive, negative = rest * (sign > 0), rest * (sign < 0)
    while np.any(positive != 0) or np.any(negative != 0):
        for part, factor in ((positive, 1), (negative, -1)):
            digit = (part % (1 << digits)).astype(np.float64)
            out = out + _convolved(plan, digit, bins).astype(np.int64).astype(object) * (factor << shift)
        positive, negative, shift = positive >> digits, negative >> digits, shift + digits
    return out


def _convolved(plan: _Strategy, values: Floats, bins: int) -> Floats:
    size = 1 << (2 * bins - 1).bit_length()
    spectrum = np.fft.rfft(values, size, axis=-1) * np.fft.rfft(plan.coefficients.astype(np.float64), size)
    return np.asarray(np.rint(np.fft.irfft(spectrum, size, axis=-1)[..., :bins]))
