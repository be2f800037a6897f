"""A path on a regular grid by circulant embedding: a fast Fourier transform, and balls for the undecided values.

Put the covariance of a stationary kernel on a torus of N = 2^k points, twice as long as the grid: c_j = K at the lag
that is nearest around the torus, with eigenvalues l_k = sum_j c_j cos(2 pi jk / N). For floats s_k = s_{-k} with
N s_k^2 >= l_k, and independent standard normals z_k,

    G_j = sum_k s_k z_k (cos(2 pi jk / N) + sin(2 pi jk / N))

has the covariance sum_k s_k^2 cos(2 pi k (i - j) / N), which is at least c_{i-j}: theorem
`gaussian-process-grid`. So no eigenvalue must be exact, nor non-negative, and G is an exact linear function of
the z_k. A transform in floats with a proved radius decides nearly all roundings; the others are summed again in
pairs of floats, and at last in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure
from tacit.exact.rounding import Ball, ball, precision
from tacit.exact.threads import one_thread
from tacit.functions.boxes import Box
from tacit.functions.kernels import Kernel
from tacit.functions.means import Mean
from tacit.noise.reals import BLOCK_BITS, LazyReal, Normals
from tacit.noise.source import Source

# From real numbers that are known as floats with radii, or as balls, to the grid: exactly.
#
# Floats settle all but a few; those are computed again in balls, from the same random numbers with more of their
# bits, until nothing is open. So the integers are the roundings of the exact reals, whatever the floats lost.

ROUNDS = 64
FIRST_BITS = 160


def rounded(value: Ball, step: Fraction, bits: int = 512) -> int:
    """floor(value / step + 1/2), and whether the ball determines it."""
    floor = _floor(value, step, bits)
    if floor is None:
        raise NotCertified(what="the rounding of a path", reason=f"it is still open at {bits} bits")
    return floor


def _floor(value: Ball, step: Fraction, bits: int) -> int | None:
    with precision(bits):
        floor = (value / ball(step) + flint.arb("0.5")).floor().unique_fmpz()
    return None if floor is None else int(floor)


def float_constant(value: Fraction) -> Enclosure:
    """An exact number as a float with its radius."""
    middle = float(value)
    return Enclosure(np.asarray(middle), abs(middle) * 2.0**-52 + 1e-300)


class SharedNormals:
    """Standard normals shared by several values: bits drawn for one value remain valid for the others."""

    __slots__ = ("_drawn", "_lazy", "_source", "count")

    def __init__(self, count: int, source: Source) -> None:
        self.count, self._source = count, source
        self._drawn = Normals.draw((count,), source)
        self._lazy: dict[int, LazyReal] = {}

    def enclosure(self) -> Enclosure:
        """Floats with radii."""
        return self._drawn.enclosure()

    @property
    def drawn(self) -> Normals:
        """Signs, blocks and the first 64 bits."""
        return self._drawn

    def _at(self, index: int) -> LazyReal:
        if index not in self._lazy:
            self._lazy[index] = self._drawn.lazy((index,), self._source)
        return self._lazy[index]

    def ball(self, index: int) -> Ball:
        """One of them, to the bits that are drawn."""
        return self._at(index).ball()

    def extend(self, indices: Sequence[int] | range) -> None:
        """Draw more bits of these."""
        for i in indices:
            self._at(i).extend()


def round_exactly(
    reals: Enclosure, step: Fraction, exact: Callable[[int], Ball], extend: Callable[[int], None]
) -> AnyArray:
    """floor(x / step + 1/2) for each real; `exact(i)` gives the i-th at the working precision, `extend(i)` its bits."""
    values, settled = settled_floats(reals, step)
    still = np.flatnonzero(~settled)
    if not still.size:
        return values
    found = [_exactly(int(i), step, exact, extend) for i in still]
    if any(abs(v) >= 1 << 62 for v in found):
        values = values.astype(object)
    values[still] = found
    return values


def _exactly(index: int, step: Fraction, exact: Callable[[int], Ball], extend: Callable[[int], None]) -> int:
    bits = FIRST_BITS
    for _ in range(ROUNDS):
        with precision(bits):
            value = exact(index)
        floor = _floor(value, step, bits + 64)
        if floor is not None:
            return floor
        extend(index)
        bits += 64
    raise NotCertified(what="the rounding of a path", reason=f"it is still open at {bits} bits")


def settled_floats(reals: Enclosure, step: Fraction) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """floor(x / step + 1/2), and whether the radius determines it."""
    inverse = float(1 / step)
    with np.errstate(over="ignore", invalid="ignore"):
        mid, rad = reals.mid * inverse, reals.rad * inverse
        slack = (np.abs(mid) + 1.0) * 2.0**-51
        low, high = np.floor(mid + 0.5 - (rad + slack)), np.floor(mid + 0.5 + (rad + slack))
        settled = (low == high) & (np.abs(low) < 2.0**52)
    return np.where(settled, low, 0.0).astype(np.int64), settled


# Sums of products in pairs of floats: some 100 bits, vectorised, for the few values that floats leave open.
#
# Knuth's sum and Dekker's product are exact: a + b = s + e and a b = p + e. What is kept is hi + lo.

Pair: TypeAlias = tuple[Floats, Floats]
SPLIT = 2.0**27 + 1.0
TABLE_BITS = 11


def _two_sum(a: Floats, b: Floats) -> Pair:
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def _two_product(a: Floats, b: Floats) -> Pair:
    p = a * b
    wide, other = SPLIT * a, SPLIT * b
    a1, b1 = wide - (wide - a), other - (other - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def add(x: Pair, y: Pair) -> Pair:
    """x + y, within 2^-104 (|x| + |y|)."""
    s, e = _two_sum(x[0], y[0])
    return _two_sum(s, e + (x[1] + y[1]))


def multiply(x: Pair, y: Pair) -> Pair:
    """x y, within 2^-100 |x y|."""
    p, e = _two_product(x[0], y[0])
    return _two_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def total(x: Pair) -> tuple[float, float]:
    """The sum of all, by halves: within 2^-100 sum |x| for up to 2^26 terms."""
    hi, lo = x[0].ravel(), x[1].ravel()
    while hi.size > 1:
        if hi.size % 2:
            hi, lo = np.append(hi, 0.0), np.append(lo, 0.0)
        half = hi.size // 2
        hi, lo = add((hi[:half], lo[:half]), (hi[half:], lo[half:]))
    return (float(hi[0]), float(lo[0])) if hi.size else (0.0, 0.0)


def roots_of_unity(numerators: npt.NDArray[np.int64], size: int) -> tuple[Pair, Pair]:
    """cos and sin of 2 pi m / size for a power of two, within 2^-98, from two short tables of exact values."""
    fine = min(size, 1 << TABLE_BITS)
    m = numerators % size
    coarse_cos, coarse_sin = _table(size // fine, size // fine)
    fine_cos, fine_sin = _table(fine, size)
    a, b = m // fine, m % fine
    c1, s1 = (coarse_cos[0][a], coarse_cos[1][a]), (coarse_sin[0][a], coarse_sin[1][a])
    c2, s2 = (fine_cos[0][b], fine_cos[1][b]), (fine_sin[0][b], fine_sin[1][b])
    minus = (-s1[0], -s1[1])
    return add(multiply(c1, c2), multiply(minus, s2)), add(multiply(s1, c2), multiply(c1, s2))


@lru_cache(maxsize=64)
def _table(count: int, size: int) -> tuple[Pair, Pair]:
    """cos and sin of 2 pi m / size for m < count."""
    columns = np.empty((4, count))
    with precision(192):
        for m in range(count):
            sine, cosine = flint.arb.sin_cos_pi_fmpq(flint.fmpq(2 * m, size))
            for at, value in ((0, cosine), (2, sine)):
                hi = float(value.mid())
                columns[at, m], columns[at + 1, m] = hi, float((value - flint.arb(hi)).mid())
    return (columns[0], columns[1]), (columns[2], columns[3])


MOST_TORUS = 1 << 23
MOST_AXES = 3
ENOUGH = 2.0**-22
INDEFINITE = 2.0**-6
TRANSFORM = 16.0
"""A fast transform of length N errs by at most TRANSFORM 2^-53 log2(N) |x| sqrt(N) in the Euclidean norm. A scheme of
Cooley and Tukey with correctly rounded roots needs 7 (Higham 2002, Theorem 24.2); tests compare with balls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularGrid:
    """start + i step in each coordinate, every coordinate an exact float: the differences are exact, too.

    `of` puts `count` points along each side of a box; the last lies at most count 2^-51 of the largest coordinate below
    the upper end, and exactly at it where the side is a round binary number of steps.
    """

    starts: tuple[float, ...]
    steps: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, box: Box, counts: tuple[int, ...]) -> RegularGrid:
        """`counts` points along the sides of the box."""
        starts, steps = [], []
        for low, high, count in zip(box.lows, box.highs, counts, strict=True):
            # Differences of points around 0 are longer than the points, and must be exact as well.
            bits = 53 - int(low < 0 < high)
            unit = Fraction(2) ** (math.frexp(max(abs(low), abs(high)))[1] - bits)
            start = math.ceil(Fraction(low) / unit) * unit
            step = Fraction(high) - start if count == 1 else (Fraction(high) - start) / (count - 1)
            step = math.floor(step / unit) * unit
            if step <= 0:
                raise InvalidParameter(
                    parameter="count", value=count, must="leave room between neighbouring floats"
                )
            starts.append(float(start))
            steps.append(float(step))
        return cls(starts=tuple(starts), steps=tuple(steps), counts=counts)

    @property
    def axes(self) -> list[Floats]:
        """The coordinates along each side."""
        sides = zip(self.starts, self.steps, self.counts, strict=True)
        return [np.asarray(a + np.arange(n) * h, dtype=np.float64) for a, h, n in sides]

    @property
    def size(self) -> int:
        """How many points."""
        return math.prod(self.counts)

    def points(self) -> Floats:
        """All of them, (size, d), the last coordinate fastest."""
        if len(self.counts) == 1:
            return self.axes[0][:, None]
        return np.stack([m.ravel() for m in np.meshgrid(*self.axes, indexing="ij")], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CirculantEmbedding:
    """Amplitudes s_k on a torus, and the variance that they add to the kernel's at each point, at most."""

    amplitudes: Floats
    added_variance: float

    @classmethod
    def of(cls, kernel: Kernel, grid: RegularGrid) -> CirculantEmbedding:
        """The torus of at least twice the grid's length; longer ones are tried where eigenvalues are negative."""
        if not kernel.stationary:
            raise InvalidParameter(
                parameter="kernel", value=kernel.kind, must="be stationary on a grid",
                hint="release the values at given points, or an expansion",
            )  # fmt: skip
        shape = tuple(1 << max(1, 2 * n - 2).bit_length() if n > 1 else 1 for n in grid.counts)
        shape = tuple(
            n // 2 if n // 2 >= 2 * c - 2 and n > 1 else n for n, c in zip(shape, grid.counts, strict=True)
        )
        if math.prod(shape) > MOST_TORUS:
            raise NotCertified(
                what="a path on a grid", reason=f"it has more than {MOST_TORUS // 2 ** len(shape)} points",
                hint="ask a coarser grid, or a part of the box",
            )  # fmt: skip
        best = cls._on(kernel, grid, shape)
        while best.added_variance > ENOUGH * kernel.sup_diagonal:
            shape = tuple(2 * n if n > 1 else 1 for n in shape)
            if math.prod(shape) > MOST_TORUS or math.prod(shape) == 1:
                break
            other = cls._on(kernel, grid, shape)
            best = min(best, other, key=lambda e: e.added_variance)
        if best.added_variance > INDEFINITE * kernel.sup_diagonal:
            raise NotCertified(
                what="a path on a grid",
                reason="the covariance wraps around a torus with eigenvalues far below 0",
                hint="release the values at given points: a kernel this wide has few independent ones",
            )
        return best

    @classmethod
    def _on(cls, kernel: Kernel, grid: RegularGrid, shape: tuple[int, ...]) -> CirculantEmbedding:
        size = math.prod(shape)
        half = RegularGrid(
            starts=(0.0,) * len(shape),
            steps=grid.steps,
            counts=tuple(n // 2 + 1 if n > 1 else 1 for n in shape),
        )
        lags = kernel._gram(np.zeros((1, len(shape))), half.points()).reshape(half.counts)
        for axis, n in enumerate(shape):
            lags = np.take(lags, np.minimum(np.arange(n), n - np.arange(n)), axis=axis)
        values = np.fft.fftn(lags).real
        mirrored = values[np.ix_(*[-np.arange(n) % n for n in shape])]
        norm = math.sqrt(float((lags * lags).sum())) * (1 + 2.0**-30)
        error = TRANSFORM * 2.0**-53 * max(1.0, math.log2(size)) * norm * math.sqrt(size)
        error += size * kernel.gram_error
        least = np.minimum(values, mirrored)
        greatest = np.maximum(np.maximum(values, mirrored) + error, 0.0)
        amplitudes = np.sqrt(greatest / size) * (1 + 2.0**-50)
        added = float((greatest * (1 + 2.0**-48) - least + error).sum()) / size
        return cls(amplitudes=amplitudes, added_variance=added * (1 + 2.0**-30))


def grid_values(
    *, kernel: Kernel, mean: Mean, grid: RegularGrid, noise_std: Fraction, step: Fraction, source: Source
) -> tuple[AnyArray, float]:
    """f_D + noise on the grid, rounded exactly; and the standard deviation of the noise, at any point."""
    embedding = CirculantEmbedding.of(kernel, grid)
    path = _GridPath(embedding.amplitudes, grid.counts, source)
    points, sigma = grid.points(), float_constant(noise_std)
    reals = path.enclosure() * sigma + mean.enclosed(points)
    values = round_exactly(
        reals, step, lambda i: mean.ball(points[i]) + ball(noise_std) * path.ball(i), path.extend
    )
    return values, math.sqrt(embedding.added_variance) * float(noise_std) * (1 + 2.0**-40)


class _GridPath:
    """G on the grid from one set of normals: in floats, in pairs of floats, in balls."""

    def __init__(self, amplitudes: Floats, counts: tuple[int, ...], source: Source) -> None:
        self.amplitudes, self.counts = amplitudes, counts
        self.normals = SharedNormals(amplitudes.size, source)
        self._closer: dict[int, int] = {}

    def enclosure(self) -> Enclosure:
        """All values by one transform.

        With x_k = s_k z_k the error of x enters by |x| sqrt(N) at most (Cauchy, and sum of cas^2 = N), that of the
        transform by sqrt(2) times its Euclidean norm.
        """
        z, size = self.normals.enclosure(), self.amplitudes.size
        flat = self.amplitudes.ravel()
        product = z.mid * flat
        unsure = math.sqrt(float(((z.rad * flat) ** 2).sum()) * (1 + 2.0**-30))
        norm = math.sqrt(float((product * product).sum())) * (1 + 2.0**-30)
        moved = np.fft.rfftn(product.reshape(self.amplitudes.shape))
        kept = moved[tuple(slice(0, n) for n in self.counts)]
        error = math.sqrt(2) * TRANSFORM * 2.0**-53 * max(1.0, math.log2(size)) * norm
        rad = math.sqrt(size) * (error + unsure + 2.0**-52 * norm) * (1 + 2.0**-30) + 1e-290
        values = np.ascontiguousarray(kept.real - kept.imag).ravel()
        return Enclosure(values, rad + np.abs(values) * 2.0**-52)

    def ball(self, index: int) -> Ball:
        """One value: from pairs of floats at the first request, from balls after that."""
        return self._balls(index) if self._closer.get(index) else self._pairs(index)

    def extend(self, index: int) -> None:
        """Switches to balls, or draws more bits for them."""
        tries = self._closer.get(index, 0)
        self._closer[index] = tries + 1
        if tries:
            self.normals.extend(range(self.normals.count))

    def _turns(self, index: int) -> tuple[npt.NDArray[np.int64], int]:
        """The numerators of jk / N over the longest side, for all k."""
        place, shape = np.unravel_index(index, self.counts), self.amplitudes.shape
        longest = max(shape)
        turns = np.zeros(shape, dtype=np.int64)
        for axis, (j, n) in enumerate(zip(place, shape, strict=True)):
            along = (int(j) * np.arange(n, dtype=np.int64) % n) * (longest // n)
            turns += along.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return turns.ravel() % longest, longest

    def _pairs(self, index: int) -> Ball:
        cosine, sine = roots_of_unity(*self._turns(index))
        drawn, flat = self.normals.drawn, self.amplitudes.ravel()
        sign = np.where(drawn.sign == 1, -1.0, 1.0) * 2.0**-BLOCK_BITS
        high = (drawn.place >> np.uint64(32)).astype(np.float64) * 2.0**-32
        low = ((drawn.place & np.uint64(0xFFFFFFFF)).astype(np.float64) + 0.5) * 2.0**-64
        z = ((drawn.block.astype(np.float64) + high) * sign, low * sign)
        none = np.zeros_like(flat)
        terms = multiply(multiply((flat, none), z), add(cosine, sine))
        hi, lo = total(terms)
        rad = float(np.abs(terms[0]).sum()) * 2.0**-90 + float(flat.sum()) * 2.0 ** (-BLOCK_BITS - 64)
        return flint.arb(hi) + flint.arb(flint.arb(lo), flint.arb(rad * (1 + 2.0**-30)))

    def _balls(self, index: int) -> Ball:
        turns, longest = self._turns(index)
        total = ball(0)
        for k, (turn, amplitude) in enumerate(
            zip(turns.tolist(), self.amplitudes.ravel().tolist(), strict=True)
        ):
            sine, cosine = flint.arb.sin_cos_pi_fmpq(flint.fmpq(2 * turn, longest))
            total += ball(amplitude) * self.normals.ball(k) * (sine + cosine)
        return total


# Values at given points: floats factor a covariance that is at least the kernel's, and balls round what they make.
#
# Let M be the Gram matrix and A any matrix of floats. With R = M - AA' and a float b, b^2 >= |R|, the noise A z + b w
# (z, w independent standard normals) has the covariance AA' + b^2 I, and this is M + (b^2 I - R) with the bracket
# positive semidefinite. More noise than M's is at least as private, whatever A is: theorem `gaussian-process-
# dominated`. So A may come from a floating-point Cholesky decomposition of a numerically singular M; b is bounded
# from the residual that floats compute, with their own error added. Nothing is dropped, and what is added is
# reported.

MOST_POINTS = 8192
INDEFINITE_KERNEL = 2.0**-16


@dataclass(frozen=True, slots=True, kw_only=True)
class DominatingFactor:
    """AA' + own^2 I - M is positive semidefinite; A has `rank` columns."""

    factor: Floats
    own: float

    @property
    def rank(self) -> int:
        """The number of normals that all the points share."""
        return int(self.factor.shape[1])


def dominating_factor(kernel: Kernel, points: Floats) -> DominatingFactor:
    """A pivoted Cholesky factor of the Gram matrix of distinct points, and the addition that makes it dominate."""
    from scipy.linalg.lapack import dpstrf

    m = points.shape[0]
    if m > MOST_POINTS:
        raise NotCertified(
            what="a path at given points", reason=f"{m} points are more than {MOST_POINTS}",
            hint="on_grid takes millions of points, and an expansion is a function that is asked anywhere",
        )  # fmt: skip
    gram = kernel._gram(points, points)
    largest = float(gram.diagonal().max(initial=0.0)) + kernel.gram_error
    with one_thread():
        packed, pivots, rank, info = dpstrf(gram, tol=2.0**-50 * largest, lower=1)
        if info < 0:
            raise NotCertified(what="a Gram matrix", reason="its decomposition failed")
        factor = np.zeros((m, rank))
        factor[pivots - 1] = np.tril(packed)[:, :rank]
        gram -= factor @ factor.T
    # Whatever order a product of k terms is added in, it errs by at most k 2^-53 |row||row|, and each row is short.
    rows = float(np.sqrt((factor**2).sum(axis=1).max(initial=0.0))) * (1 + 2.0**-30)
    each = kernel.gram_error + (rank + 4) * 2.0**-53 * (rows * rows + largest)
    size = (float(np.abs(gram).sum(axis=1).max(initial=0.0)) + m * each) * (1 + 2.0**-30)
    if size > INDEFINITE_KERNEL * largest:
        raise InvalidParameter(
            parameter="kernel", value=type(kernel).__name__, must="be positive definite",
            hint="the Gram matrix of the points asked has a negative eigenvalue",
        )  # fmt: skip
    return DominatingFactor(factor=factor, own=float(np.sqrt(size)) * (1 + 2.0**-30))


def batch_values(
    *, kernel: Kernel, mean: Mean, points: Floats, noise_std: Fraction, step: Fraction, source: Source
) -> tuple[AnyArray, float]:
    """f_D + noise at distinct points, rounded exactly; and the standard deviation of the noise, at any point."""
    made = dominating_factor(kernel, points)
    m, rank = made.factor.shape
    normals = SharedNormals(rank + m, source)
    drawn, sigma = normals.enclosure(), float_constant(noise_std)
    path = drawn[:rank].apply(made.factor) if rank else Enclosure(np.zeros(m))
    reals = (path + drawn[rank:] * made.own) * sigma + mean.enclosed(points)

    def exact(i: int) -> Ball:
        row = (ball(float(a)) * normals.ball(j) for j, a in enumerate(made.factor[i]) if a)
        noise = sum(row, ball(made.own) * normals.ball(rank + i))
        return mean.ball(points[i]) + ball(noise_std) * noise

    values = round_exactly(reals, step, exact, lambda i: normals.extend([*range(rank), rank + i]))
    return values, made.own * float(noise_std) * (1 + 2.0**-40)
