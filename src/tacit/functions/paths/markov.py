"""Paths of exponential and Matern kernels on a line: a new point needs only its two neighbours.

With time t = sqrt(2 smoothness) x / length the process and its first order - 1 derivatives form a stationary Markov
process with the transition A(t) = e^-t sum_k (tN)^k / k!, N = F + I nilpotent, F the companion matrix of (s + 1)^order,
stationary covariance P and Q(t) = P - A(t) P A(t)'. Between neighbours at distances a and b the state is normal with

    gain M = Q(a) A(b)' (A(b) Q(a) A(b)' + Q(b))^-1,  mean A(a) l + M (r - A(b) A(a) l),  covariance Q(a) - M A(b) Q(a).

The recursion uses ball arithmetic: each computed state is an interval that contains the exact state for the
drawn normals. The noise is G alone, independent of f_D. Theorem `gaussian-process-markov`.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import flint
import numpy as np

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.rounding import Ball, ball, precision
from tacit.functions.kernels import ExponentialKernel, Kernel, MaternKernel
from tacit.functions.means import Mean
from tacit.noise.reals import BLOCK_BITS, Normals
from tacit.noise.source import Source

# Standard normal numbers whose bits are kept: an exact real each, of which more bits can be drawn at any time.

MORE_WORDS = 3


class KeptNormal:
    """sign, block and the first `bits` bits of the place in the block; the later bits are uniform."""

    __slots__ = ("bits", "block", "sign", "value")

    def __init__(self, sign: int, block: int, value: int, bits: int) -> None:
        self.sign, self.block, self.value, self.bits = sign, block, value, bits

    def ball(self) -> Ball:
        """The interval that contains the number."""
        middle = flint.arb(((self.block << self.bits) | self.value) * 2 + 1) * flint.arb(2) ** (
            -self.bits - 1 - BLOCK_BITS
        )
        size = flint.arb(middle, flint.arb(2) ** (-self.bits - 1 - BLOCK_BITS))
        return -size if self.sign else size

    def extend(self, source: Source) -> None:
        """Draw one more word of it."""
        self.value = (self.value << 64) | int(source.words(1)[0])
        self.bits += 64

    def packed(self) -> list[int | str]:
        """The contents of a record, as plain JSON values."""
        return [self.sign, self.block, self.bits, f"{self.value:x}"]

    @classmethod
    def from_packed(cls, record: Sequence[int | str]) -> KeptNormal:
        """The number of a record."""
        sign, block, bits, value = record
        return cls(int(sign), int(block), int(str(value), 16), int(bits))


def balls_of(normals: Sequence[KeptNormal]) -> list[Ball]:
    """The intervals of many normals at the working precision; normals of one length share their constants."""
    units: dict[int, tuple[Ball, Ball]] = {}
    out = []
    for n in normals:
        if n.bits not in units:
            units[n.bits] = (
                flint.arb(2) ** (-n.bits - 1 - BLOCK_BITS),
                -(flint.arb(2) ** (-n.bits - 1 - BLOCK_BITS)),
            )
        radius, minus = units[n.bits]
        size = ((n.block << n.bits) | n.value) * 2 + 1
        out.append(flint.arb((minus if n.sign else radius) * size, radius))
    return out


def draw_normals(count: int, source: Source, *, words: int = MORE_WORDS) -> list[KeptNormal]:
    """Independent standard normals, each drawn to at least 64 bits and `words` further words of 64 bits."""
    drawn = Normals.draw((count,), source)
    extra = source.words(count * words).reshape(count, words)
    out = []
    place, block, sign = drawn.place.tolist(), drawn.block.tolist(), drawn.sign.tolist()
    for i, low in enumerate(np.ascontiguousarray(extra)):
        value, bits = drawn.more.get(i, (place[i], 64))
        value = (value << (64 * words)) | int.from_bytes(low.tobytes(), "little")
        out.append(KeptNormal(sign[i], block[i], value, bits + 64 * words))
    return out


State: TypeAlias = tuple[Ball, ...]
Table: TypeAlias = list[list[Ball]]

KEPT_BITS = {1: 256, 2: 768, 3: 1024}
"""Bits of a kept state after the point. Order 1 takes weighted means only, which lose no bits."""
WHOLE_BYTES = 8
RADIUS = struct.Struct("<Ii")
LEAST_RADIUS = 2.0**-96
"""The required accuracy of a state. A grid needs far less."""


def markov_order(kernel: Kernel) -> int:
    """The number of entries of a state, or 0 if the kernel's path is no Markov process."""
    if kernel.dimension != 1:
        return 0
    if isinstance(kernel, ExponentialKernel):
        return 1
    return kernel.order if isinstance(kernel, MaternKernel) else 0


class MarkovNoise:
    """G at all points of earlier queries, in their order on the line."""

    def __init__(self, kernel: Kernel) -> None:
        self.order = markov_order(kernel)
        self.bits = KEPT_BITS[self.order]
        self.work = self.bits + 64 if self.order == 1 else 2 * self.bits
        self._kernel = kernel
        self._at: list[float] = []
        self._states: list[State] = []
        with precision(self.work):
            self._unit = self._scale()

    def _scale(self) -> Ball:
        kernel = self._kernel
        if isinstance(kernel, MaternKernel):
            return ball(2 * self.order - 1).sqrt() / ball(kernel.length)
        assert isinstance(kernel, ExponentialKernel)
        return 1 / ball(kernel.length)

    def draw(self, points: Sequence[float], source: Source) -> list[State]:
        """States at distinct new points in ascending order, given all known ones; changes nothing."""
        normals = draw_normals(len(points) * self.order, source, words=self.bits // 64 - 1)
        out: list[State] = []
        step = self._single if self.order == 1 else self._several
        before: tuple[Ball, State] | None = None
        with precision(self.work):
            unit, z = self._unit, balls_of(normals)
            for i, x in enumerate(points):
                at = ball(x)
                place = bisect_left(self._at, x)
                left = before
                if place and (i == 0 or self._at[place - 1] > points[i - 1]):
                    left = (ball(self._at[place - 1]), self._states[place - 1])
                right = self._states[place] if place < len(self._at) else None
                gap = (at - left[0]) * unit if left else None
                ahead = (ball(self._at[place]) - at) * unit if right is not None else None
                state = step(
                    left[1] if left else None, gap, right, ahead, z[i * self.order : (i + 1) * self.order]
                )
                self._check(state)
                out.append(state)
                before = (at, state)
        return out

    def join(self, points: Sequence[float], states: Sequence[State]) -> None:
        """Make drawn states part of the path."""
        if len(points) == 1:
            place = bisect_left(self._at, points[0])
            self._at.insert(place, points[0])
            self._states.insert(place, states[0])
            return
        both = sorted(
            zip([*self._at, *points], [*self._states, *states], strict=True), key=lambda one: one[0]
        )
        self._at = [x for x, _ in both]
        self._states = [s for _, s in both]

    def _check(self, state: State) -> None:
        for value in state:
            if not value.is_finite() or not float(value.rad()) < LEAST_RADIUS:
                raise NotCertified(
                    what="a path", reason=f"{self.bits} bits do not determine it at these points",
                    hint="ask fewer points that lie close together",
                )  # fmt: skip

    # --- one number: exponential -------------------------------------------------------------------
    def _single(
        self, left: State | None, gap: Ball | None, right: State | None, ahead: Ball | None, z: list[Ball]
    ) -> State:
        """With A = 1 - e^-2a, B = 1 - e^-2b and C = A + B - AB: (e^-a B l + e^-b A r) / C + sqrt(AB / C) z."""
        if left is None and right is None:
            return (z[0],)
        if left is None or right is None:
            known, distance = (right, ahead) if left is None else (left, gap)
            assert known is not None
            assert distance is not None
            lost = (-distance).expm1()
            return (known[0] * (1 + lost) + (-lost * (2 + lost)).sqrt() * z[0],)
        assert gap is not None
        assert ahead is not None
        p, q = (-gap).expm1(), (-ahead).expm1()
        a, b = -p * (2 + p), -q * (2 + q)
        c = a + b - a * b
        mean = ((1 + p) * b * left[0] + (1 + q) * a * right[0]) / c
        return (mean + (a * b / c).sqrt() * z[0],)

    # --- several numbers: Matern -------------------------------------------------------------------
    def _several(
        self, left: State | None, gap: Ball | None, right: State | None, ahead: Ball | None, z: list[Ball]
    ) -> State:
        stationary = _stationary(self.order)
        mean = [ball(0)] * self.order
        covariance = stationary
        if left is not None and gap is not None:
            move = _transition(self.order, gap)
            mean, covariance = _apply(move, left), _lost(stationary, move)
        elif right is not None and ahead is not None:
            # Backwards in time the odd derivatives change their signs.
            move = [
                [v * (-1) ** (i + j) for j, v in enumerate(row)]
                for i, row in enumerate(_transition(self.order, ahead))
            ]
            mean, covariance = _apply(move, right), _lost(stationary, move)
        if left is not None and right is not None and ahead is not None:
            on = _transition(self.order, ahead)
            carried = _times(on, covariance)
            total = _plus(_times(carried, _turned(on)), _lost(stationary, on))
            expected = _apply(on, mean)
            root = self._root(total)
            # M = carried' total^-1 by two triangular solutions for each column.
            columns = [_backward(root, _forward(root, column)) for column in _turned(carried)]
            mean = [
                m + sum((g * (r - e) for g, r, e in zip(row, right, expected, strict=True)), ball(0))
                for m, row in zip(mean, columns, strict=True)
            ]
            covariance = _minus(covariance, _times(columns, carried))
        root = self._root(covariance)
        return tuple(
            m + sum((row[k] * z[k] for k in range(i + 1)), ball(0))
            for i, (m, row) in enumerate(zip(mean, root, strict=True))
        )

    def _root(self, matrix: Table) -> Table:
        """Cholesky's factor, in balls."""
        n = len(matrix)
        out = [[ball(0)] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                left = matrix[i][j] - sum((out[i][k] * out[j][k] for k in range(j)), ball(0))
                if i == j and not left > 0:
                    raise NotCertified(
                        what="a path", reason="the points lie closer together than its bits can tell",
                        hint="ask points that are further apart",
                    )  # fmt: skip
                out[i][j] = left.sqrt() if i == j else left / out[j][j]
        return out

    # --- keeping -----------------------------------------------------------------------------------
    @property
    def _width(self) -> int:
        return self.bits // 8 + WHOLE_BYTES

    def pack(self, states: Sequence[State]) -> bytes:
        """Each number as a signed integer of 2^-bits, and a radius as a mantissa and an exponent."""
        out, width, bits = [], self._width, self.bits
        least = math.ldexp(2.0, -min(bits, 900))
        for state in states:
            for value in state:
                mantissa, exponent = value.mid().man_exp()
                shift = int(exponent) + bits
                middle = int(mantissa) << shift if shift >= 0 else int(mantissa) >> -shift
                part, power = math.frexp(float(value.rad().upper()) + least)
                out.append(middle.to_bytes(width, "little", signed=True))
                out.append(RADIUS.pack(math.ceil(part * 2.0**31) + 1, power - 31))
        return b"".join(out)

    def unpack(self, data: bytes) -> list[State]:
        """The states of `pack`."""
        width = self._width
        numbers = []
        with precision(self.work):
            unit = flint.arb(2) ** -self.bits
            for at in range(0, len(data), width + RADIUS.size):
                middle = int.from_bytes(data[at : at + width], "little", signed=True)
                part, power = RADIUS.unpack_from(data, at + width)
                numbers.append(flint.arb(middle * unit, flint.arb(math.ldexp(part, power))))
        return [tuple(numbers[i : i + self.order]) for i in range(0, len(numbers), self.order)]


def _nilpotent(order: int) -> list[list[int]]:
    """F + I for the companion matrix F of (s + 1)^order."""
    return [[1, 1], [-1, -1]] if order == 2 else [[1, 1, 0], [0, 1, 1], [-1, -3, -2]]


def _stationary(order: int) -> Table:
    """The covariance of the process with its derivatives: (-1)^j k^(i + j)(0)."""
    third = ball(1) / 3
    if order == 2:
        return [[ball(1), ball(0)], [ball(0), ball(1)]]
    return [[ball(1), ball(0), -third], [ball(0), third, ball(0)], [-third, ball(0), ball(1)]]


def _transition(order: int, t: Ball) -> Table:
    n = _nilpotent(order)
    decay = (-t).exp()
    out: Table = [[decay * ((i == j) + t * n[i][j]) for j in range(order)] for i in range(order)]
    if order == 3:
        square = [[sum(n[i][k] * n[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        out = [[out[i][j] + decay * t * t * square[i][j] / 2 for j in range(3)] for i in range(3)]
    return out


def _apply(matrix: Table, vector: Sequence[Ball]) -> list[Ball]:
    return [sum((a * v for a, v in zip(row, vector, strict=True)), ball(0)) for row in matrix]


def _times(left: Table, right: Table) -> Table:
    return [
        [
            sum((a * b for a, b in zip(row, column, strict=True)), ball(0))
            for column in zip(*right, strict=True)
        ]
        for row in left
    ]


def _turned(matrix: Table) -> Table:
    return [list(row) for row in zip(*matrix, strict=True)]


def _plus(left: Table, right: Table) -> Table:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


def _minus(left: Table, right: Table) -> Table:
    return [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


def _lost(stationary: Table, move: Table) -> Table:
    """Q = P - A P A'."""
    return _minus(stationary, _times(_times(move, stationary), _turned(move)))


def _forward(root: Table, vector: Sequence[Ball]) -> list[Ball]:
    out: list[Ball] = []
    for i, value in enumerate(vector):
        out.append((value - sum((root[i][k] * out[k] for k in range(i)), ball(0))) / root[i][i])
    return out


def _backward(root: Table, vector: Sequence[Ball]) -> list[Ball]:
    n = len(vector)
    out = [ball(0)] * n
    for i in reversed(range(n)):
        out[i] = (vector[i] - sum((root[k][i] * out[k] for k in range(i + 1, n)), ball(0))) / root[i][i]
    return out


# A path of any kernel, extended point by point by conditioning on all the points before.
#
# Cholesky in the order of the questions, in ball arithmetic: Y_i = sum_{j <= i} L_ij W_j with the white coordinates
# W_j = (L^-1 f_D)_j + noise_std z_j. Where the conditional variance of a new point is below 2^-64 sup K(x, x), the
# Gram matrix is singular for all purposes: the point gets no noise of its own, and its answer is the interpolation
# sum_j l_j W_j of the noisy values that were there before. That is post-processing, so privacy is untouched; it is
# off the ideal path by at most 2^-32 sqrt(sup K) times (|f_D| + a normal number's size times noise_std). Where balls
# grow too wide, all is computed again with twice the bits. Theorem `gaussian-process-online`.

BITS = 320
SINGULAR = 2.0**-64
MOST_BITS = 1 << 15
MOST_BASIS = 600


class _Wide(Exception):
    """The balls are too wide to decide."""


class ConditionedPath:
    """Noisy values at points, one query after the other. A repeated point gets the same value again."""

    def __init__(self, *, kernel: Kernel, mean: Mean, noise_std: Fraction) -> None:
        self.kernel, self.mean, self.noise_std = kernel, mean, noise_std
        self._points: list[Floats] = []
        self._rows: list[list[Ball]] = []
        self._normals: list[KeptNormal] = []
        self._mean: list[Ball] = []
        self._white: list[Ball] = []
        self.dropped_std, self.bits = 0.0, BITS

    @property
    def rank(self) -> int:
        """The number of points with noise of their own."""
        return len(self._rows)

    def value(self, point: Floats, source: Source) -> Ball:
        """f_D + noise at a point that was not asked before."""
        while True:
            try:
                with precision(self.bits):
                    return self._extended(point, source)
            except _Wide:
                self._deepen()

    def normals(self, start: int) -> list[KeptNormal]:
        """The normals of the points with noise of their own, from the `start`-th on."""
        return self._normals[start:]

    def forget(self, rank: int) -> None:
        """Keeps only the first `rank` points with noise of their own, because later ones were never released."""
        for column in (self._points, self._rows, self._normals, self._mean, self._white):
            del column[rank:]

    def restore(self, points: Floats, normals: Sequence[KeptNormal]) -> None:
        """Adds points with noise of their own, and keeps their normals."""
        for x, normal in zip(points, normals, strict=True):
            while True:
                try:
                    with precision(self.bits):
                        row, pivot = self._row([ball(float(v)) for v in x])
                        self._join(x, row, pivot, normal)
                    break
                except _Wide:
                    self._deepen()
            self._normals.append(normal)

    def _deepen(self) -> None:
        """Computes everything again with twice the bits; the points and their normal numbers stay."""
        self.bits *= 2
        if self.bits > MOST_BITS:
            raise NotCertified(
                what="a path's conditional variance", reason=f"{MOST_BITS} bits do not determine it",
                hint="ask fewer points that lie close together",
            )  # fmt: skip
        points, self._points = self._points, []
        self._rows, self._mean, self._white = [], [], []
        try:
            with precision(self.bits):
                for x, normal in zip(points, self._normals, strict=True):
                    row, pivot = self._row([ball(float(v)) for v in x])
                    self._join(x, row, pivot, normal)
        except _Wide:
            self._points = points
            self._deepen()

    def _row(self, x: list[Ball]) -> tuple[list[Ball], Ball]:
        """L^-1 k(x), and the remainder of K(x, x)."""
        row: list[Ball] = []
        for known, before in zip(self._points, self._rows, strict=True):
            total = self.kernel.ball(x, [ball(float(v)) for v in known])
            for a, b in zip(before, row, strict=False):
                total -= a * b
            row.append(total / before[-1])
        pivot = self.kernel.ball(x, x) - sum((a * a for a in row), ball(0))
        if not pivot.is_finite() or float(pivot.rad()) > SINGULAR * self.kernel.sup_diagonal / 1024:
            raise _Wide
        return row, pivot

    def _extended(self, point: Floats, source: Source) -> Ball:
        row, pivot = self._row([ball(float(v)) for v in point])
        middle, limit = float(pivot.mid()), SINGULAR * self.kernel.sup_diagonal
        if middle < -limit:
            raise InvalidParameter(
                parameter="kernel", value=type(self.kernel).__name__, must="be positive definite",
                hint="the Gram matrix of the points asked has a negative eigenvalue",
            )  # fmt: skip
        if middle <= limit:
            # The weights are fixed public numbers, whatever their error: this is post-processing.
            self.dropped_std = max(self.dropped_std, float(np.sqrt(max(middle, 0.0))))
            return sum((a.mid() * w for a, w in zip(row, self._white, strict=True)), ball(0))
        if len(self._rows) >= MOST_BASIS:
            raise NotCertified(
                what="a path", reason=f"its kernel needs more than {MOST_BASIS} independent points",
                hint="ask at fewer points, or release the expansion",
            )  # fmt: skip
        normal = draw_normals(1, source)[0]
        value = self._join(point, row, pivot, normal)
        self._normals.append(normal)
        return value

    def _join(self, point: Floats, row: list[Ball], pivot: Ball, normal: KeptNormal) -> Ball:
        """Gives the point noise of its own; returns the noisy value there."""
        own = pivot.sqrt()
        white = self.mean.ball(point) - sum((a * m for a, m in zip(row, self._mean, strict=True)), ball(0))
        white /= own
        self._points.append(point)
        self._rows.append([*row, own])
        self._mean.append(white)
        self._white.append(white + ball(self.noise_std) * normal.ball())
        return sum((a * w for a, w in zip(self._rows[-1], self._white, strict=True)), ball(0))
