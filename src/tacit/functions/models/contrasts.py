"""Contrasts of bins, the features of an additive model for each column, and their shares of a row's length.

A row of an additive model takes one bin of each column. The bound on a row's length determines the noise. So
the length is divided among contrasts whose effect can exceed the noise: slow waves over a number's bins, and
all contrasts of a category's values. All numbers follow from public ones: bins, noise, ridge, a guess of the
number of rows.

    a contrast has the expected effect theta^2 (a variance), and with the squared length s^2 an error of
    noise^2 / (s^2 N^2) + D/N, N = rows * bend, D the dispersion. Water-filling: s^2 = max(0, c - noise^2 /
    (N^2 theta^2)), sum s^2 = 1; its ridge is (noise^2 / N + D s^2) / theta^2, the one that has the least
    expected error.

Privacy does not depend on these guesses. It rests on two numbers alone: the length of a row, at most 1, and the least
ridge.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up
from tacit.functions.models.columns import LONGEST, CategoryColumn, Column, DeclaredColumns, PairColumn
from tacit.functions.models.objective import BinnedDesign

SMOOTH = 140.0
"""The default weight of squared differences of neighbouring bins in the expected shape."""
SMOOTHEST = 1e9
ROUGH = 0.2
"""The share of a number's expected variance that is equal in all its contrasts: steps and spikes."""
STEEP = 30.0
"""Next to a bound, the waves that are short there are about a tenth as long as at the other bound."""
WARPS = (0.5, 0.25, 0.25)
"""The share of a number's expected variance in waves of even length, and in waves that are short next to a bound."""
RARE = 0.05
"""The expected share of rows with a missing or undeclared value."""
SIGNAL = {"logistic": 0.3}
OTHER_SIGNAL = 0.02
"""The expected variance of what is learned, of log odds or of targets scaled to [-1, 1]: this times the root of the
number of columns, and as much from each."""
BEND = {"logistic": 0.2}
"""The expected second derivative of the loss at a row; 1 for others."""
DISPERSION = {"logistic": 1.0}
OTHER_DISPERSION = 0.1
"""The expected square of the loss's slope at a row, over its second derivative."""
FAINT = 1e-3
"""Contrasts with less than this part of the largest squared length are left out."""


def wave_contrasts(bins: int, smooth: float) -> tuple[Floats, Floats]:
    """Cosines over the bins of a number, and their expected variances, which add up to 1.

    The waves are equally long everywhere, or short next to the lower or the upper bound, where many numbers
    have most of their rows; declared bounds do not say at which end.
    """
    smooth = min(smooth, SMOOTHEST)
    k, at = np.arange(1.0, bins), (np.arange(bins) + 0.5) / bins
    low, high = np.log1p(STEEP * at) / math.log1p(STEEP), 1 - np.log1p(STEEP * (1 - at)) / math.log1p(STEEP)
    waves = [math.sqrt(2) * np.cos(math.pi * np.outer(u, k)) for u in (at, low, high)]
    expected = 1 / (1 + smooth * (2 - 2 * np.cos(math.pi * k / bins)))
    if bins > 1:
        expected = (1 - ROUGH) * expected / expected.sum() + ROUGH / len(k)
    return np.hstack(waves), np.concatenate([expected * share for share in WARPS])


def value_contrasts(values: int) -> tuple[Floats, Floats]:
    """Each value of a category beside those before it (Helmert), with mean square 1; all are expected alike."""
    table = np.zeros((values, values - 1))
    for k in range(1, values):
        table[:k, k - 1], table[k, k - 1] = 1.0, -k
        table[:, k - 1] *= math.sqrt(values / (k * (k + 1)))
    return table, np.full(values - 1, 1 / max(values - 1, 1))


def _of_column(column: Column, bins: int, smooth: float) -> tuple[Floats, Floats]:
    if isinstance(column, CategoryColumn):
        return value_contrasts(bins)
    # A difference of neighbouring groups stands for differences of the bins in them.
    return wave_contrasts(bins, smooth * (bins / column.bins) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Term:
    """One column or pair: contrasts of declared places, and columns for places with a missing value."""

    table: Floats
    expected: Floats
    rare: Floats
    chances: Floats


def _term(block: Column | PairColumn, smooth: float) -> _Term:
    if not isinstance(block, PairColumn):
        if block.bins == 1:
            # One declared value: all there is to learn is whether a row has it.
            alone = np.array([[1.0], [-1.0]])
            return _Term(table=alone, expected=np.ones(1), rare=np.zeros((2, 0)), chances=np.empty(0))
        found, expected = _of_column(block, block.bins, smooth)
        return _Term(
            table=np.vstack([found, np.zeros((1, found.shape[1]))]), expected=expected,
            rare=np.eye(block.bins + 1)[:, -1:], chances=np.array([RARE]),
        )  # fmt: skip
    sides = [_of_column(c, groups - 1, smooth) for c, groups in zip(block.columns, block.groups, strict=True)]
    full = []
    for found, _ in sides:
        one = np.zeros((found.shape[0] + 1, found.shape[1] + 1))
        one[:-1, :-1], one[-1, -1] = found, 1.0
        full.append(one)
    places = [(a, b) for a, b in product(*(range(f.shape[1]) for f in full))]
    last = tuple(f.shape[1] - 1 for f in full)
    both: Floats = np.asarray(np.kron(full[0], full[1]), dtype=np.float64)
    inside = np.array([a < last[0] and b < last[1] for a, b in places])
    missing = [(a == last[0]) + (b == last[1]) for a, b in places]
    # A row with one missing value meets all contrasts of the other column: together they are no longer than 1.
    ends = [max(math.sqrt(float((found**2).sum(axis=1).max(initial=0.0))), 1.0) for found, _ in sides]
    scale = np.array(
        [1 / ends[1] if a == last[0] and b < last[1] else 1 / ends[0] if b == last[1] and a < last[0] else 1.0
         for a, b in places]
    )  # fmt: skip
    return _Term(
        table=both[:, inside], expected=np.outer(sides[0][1], sides[1][1]).ravel(),
        rare=(both * scale)[:, ~inside], chances=RARE ** np.array([m for m in missing if m], dtype=np.float64),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrasts:
    """The released coordinates of an additive model: a matrix for each column and pair, from them to its places.

    The last matrix has one number, the constant's. `ridges` has one number for each coordinate, none below the ridge of
    the mechanism. For the choice of the noise: the expected second derivative of the loss in each coordinate
    over all rows, the expected square of each coordinate, and the expected excess of one row's loss because of
    omitted contrasts. `kept` is the share of each column's and pair's expected effect that ridges leave;
    contrasts left out keep nothing.
    """

    blocks: tuple[Floats, ...]
    ridges: Floats
    curvatures: Floats
    effects: Floats
    lost: float = 0.0
    kept: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require(
            self.radius <= LONGEST,
            parameter="blocks",
            value=self.radius,
            must="have rows of length 1 at most",
        )

    @classmethod
    def plain(cls, columns: DeclaredColumns) -> Contrasts:
        """Every place by itself, as earlier versions released them: to read their records."""
        sizes, height = (*columns.sizes, 1), columns.height
        none = np.zeros(columns.dimension)
        return cls(
            blocks=tuple(np.eye(n) * height for n in sizes), ridges=none, curvatures=none, effects=none
        )

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return sum(b.shape[1] for b in self.blocks)

    @cached_property
    def radius(self) -> float:
        """No row is longer, rounded up: one place of each block."""
        squares = sum((Fraction(_longest(b)) ** 2 for b in self.blocks), Fraction(0))
        return up(Fraction(math.isqrt(math.ceil(squares * 2**100)) + 1, 2**50))

    @cached_property
    def matrix(self) -> Floats:
        """All of it at once: values of all places, the constant's last, are matrix @ coordinates."""
        out, i, j = np.zeros((sum(b.shape[0] for b in self.blocks), self.dimension)), 0, 0
        for block in self.blocks:
            out[i : i + block.shape[0], j : j + block.shape[1]] = block
            i, j = i + block.shape[0], j + block.shape[1]
        return out

    def penalty(self, ridge: float) -> Floats:
        """The addition to this ridge: a public diagonal matrix without negative entries."""
        return np.asarray(np.diag(np.maximum(self.ridges - ridge, 0.0)))

    def design(self, codes: npt.NDArray[np.int64]) -> BinnedDesign:
        """Rows by their places, for the minimiser."""
        return BinnedDesign(codes=codes, blocks=self.blocks, radius=self.radius)


def _longest(block: Floats) -> float:
    """The largest length of a row of floats, rounded up."""
    if not block.size:
        return 0.0
    length = float(np.sqrt((block**2).sum(axis=1)).max())
    return math.nextafter(length * (1 + (block.shape[1] + 8) * 2.0**-52), math.inf)


def contrasts(
    columns: DeclaredColumns, *, noise_std: float, ridge: float, rows: int, loss: str, smooth: float = SMOOTH
) -> Contrasts:
    """The contrasts that pay at this noise and this guess of the number of rows. No part of it is read from rows."""
    require(noise_std > 0, parameter="noise_std", value=noise_std, must="be positive")
    terms = [_term(b, smooth) for b in (*columns.columns, *columns.pair_columns)]
    steep = max(rows, 1) * BEND.get(loss, 1.0)
    each = SIGNAL.get(loss, OTHER_SIGNAL) / math.sqrt(len(terms))
    expected = np.concatenate([*(each * t.expected for t in terms), [1.0]])
    lengths = _water(noise_std**2 / (steep**2 * expected))
    parts: list[Floats] = []
    effects: list[Floats] = []
    squares: list[Floats] = []
    learned: list[int] = []
    total, at, lost = float(lengths[-1]), 0, 0.0
    for term in terms:
        own = lengths[at : at + len(term.expected)]
        at += len(own)
        used = own > 0
        table = term.table[:, used] * np.sqrt(own[used])
        # A row with a missing value has the length of the longest of the others.
        longest = float((table**2).sum(axis=1).max(initial=0.0))
        total += longest
        effects.append(each * term.expected[used])
        squares.append(own[used])
        learned.append(int(used.sum()))
        lost += each * float(term.expected[~used].sum())
        if longest:
            table = np.hstack([table, term.rare * math.sqrt(longest)])
            effects.append(each * term.chances)
            squares.append(longest * term.chances)
        parts.append(table)
    parts.append(np.array([[math.sqrt(lengths[-1])]]))
    scale = (1 - 2.0**-44) / math.sqrt(total)
    # theta^2 and s^2 are those of a mean over all rows: a value that few rows have counts by its share of them.
    theta, length = np.append(np.concatenate(effects), 1.0), np.append(np.concatenate(squares), lengths[-1])
    length, spread = length * scale**2, DISPERSION.get(loss, OTHER_DISPERSION)
    shares = np.array([float(f"{v:.6g}") for v in (noise_std**2 / steep + spread * length) / theta])
    left = theta * steep * length / (steep * length + np.maximum(shares, ridge)) / each
    starts = [0, *(int(v) for v in np.cumsum([p.shape[1] for p in parts]))]
    return Contrasts(
        blocks=tuple(p * scale for p in parts), ridges=np.maximum(shares, ridge), curvatures=steep * length,
        effects=theta / length, lost=lost * BEND.get(loss, 1.0) / 2,
        kept=tuple(float(f"{left[a : a + n].sum():.3g}") for a, n in zip(starts, learned, strict=False)),
    )  # fmt: skip


def _water(thresholds: Floats) -> Floats:
    """max(0, c - threshold) with the sum 1, rounded to six digits, so that all machines learn the same."""
    given = np.array([float(f"{t:.6g}") for t in thresholds])
    rising = np.sort(given)
    sums = 1 + np.cumsum(rising)
    level = 0.0
    for count in range(len(rising), 0, -1):
        level = float(sums[count - 1]) / count
        if level > rising[count - 1]:
            break
    found = np.array([float(f"{max(level - t, 0.0):.6g}") for t in given])
    found[found < FAINT * found.max()] = 0.0
    return found
