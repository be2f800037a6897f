"""A path on a regular grid by circulant embedding: a fast Fourier transform, and balls for what it leaves open.

Put the covariance of a stationary kernel on a torus of N = 2^k points, twice as long as the grid: c_j = K at the lag
that is nearest around the torus, with eigenvalues l_k = sum_j c_j cos(2 pi jk / N). For floats s_k = s_{-k} with
N s_k^2 >= l_k, and independent standard normals z_k,

    G_j = sum_k s_k z_k (cos(2 pi jk / N) + sin(2 pi jk / N))

has the covariance sum_k s_k^2 cos(2 pi k (i - j) / N), which is at least c_{i-j}: theorem `gaussian-process-grid`. So
no eigenvalue must be exact, nor non-negative, and G is an exact linear function of the z_k: a transform in floats with
a proved radius settles nearly all roundings, and the rest is summed again in pairs of floats, and at last in balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.enclosures import Enclosure
from tacit.functions.boxes import Box
from tacit.functions.kernels import Kernel
from tacit.functions.means import Mean
from tacit.functions.paths import precise
from tacit.functions.paths.rounding import SharedNormals, float_constant, round_exactly
from tacit.noise.reals import BLOCK_BITS
from tacit.noise.source import Source

__all__ = ["MOST_TORUS", "CirculantEmbedding", "RegularGrid", "grid_values"]

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
    """f_D + noise on the grid, rounded exactly; and the standard deviation of what was added, at any point."""
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
        """One value: from pairs of floats when it is asked first, from balls after that."""
        return self._balls(index) if self._closer.get(index) else self._pairs(index)

    def extend(self, index: int) -> None:
        """Go over to balls, or draw more bits for them."""
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
        cosine, sine = precise.roots_of_unity(*self._turns(index))
        drawn, flat = self.normals.drawn, self.amplitudes.ravel()
        sign = np.where(drawn.sign == 1, -1.0, 1.0) * 2.0**-BLOCK_BITS
        high = (drawn.place >> np.uint64(32)).astype(np.float64) * 2.0**-32
        low = ((drawn.place & np.uint64(0xFFFFFFFF)).astype(np.float64) + 0.5) * 2.0**-64
        z = ((drawn.block.astype(np.float64) + high) * sign, low * sign)
        none = np.zeros_like(flat)
        terms = precise.multiply(precise.multiply((flat, none), z), precise.add(cosine, sine))
        hi, lo = precise.total(terms)
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
