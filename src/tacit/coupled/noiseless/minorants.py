"""Assumptions about an unknown distribution of a row: it lies above a given shape, such as a rectangle.

If w >= g with total mass v = sum g, a row is with probability v drawn from g/v, and else from the rest. Tell the
adversary every row of the second kind: M ~ Bin(m, v) of the m other unknown rows are left, drawn from g/v, and by
joint convexity

    delta(epsilon) <= sum over M of Pr[M] delta_M(epsilon),        delta_0 = 1,

with no failure case (theorem `undisclosed-rows`). delta_M falls in M, so that a run of M counts by its first member.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from fractions import Fraction

import numpy as np

from tacit.coupled.noiseless.answer import shown
from tacit.coupled.noiseless.lattice import SumLaw, sum_law, sum_laws
from tacit.coupled.noiseless.row_laws import RowLaw, as_typed
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up

MOST_NODES = 48
KINDS = ("normal", "rectangle", "rectangles", "triangle")
_ROUND = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Minorant:
    """g at the places first, first + 1, ... of the grid: below the law's weights, of total mass v.

    `words` name the function of the value that the distribution must exceed, so that a reader could draw it.
    """

    kind: str
    first: int
    weights: tuple[Fraction, ...] = field(repr=False)
    low: Fraction
    high: Fraction
    words: str

    @property
    def mass(self) -> Fraction:
        """v."""
        return sum(self.weights, Fraction(0))

    @property
    def law(self) -> tuple[Fraction, ...]:
        """g/v."""
        v = self.mass
        return tuple(w / v for w in self.weights)

    @property
    def log_concave(self) -> bool:
        """Is g log-concave? Then so are all its sums."""
        w = self.weights
        return all(w) and all(w[k] ** 2 >= w[k - 1] * w[k + 1] for k in range(1, len(w) - 1))

    @property
    def quality(self) -> float:
        """v times the variance of g/v, which is roughly the variance that a row adds to the sum."""
        w = np.array([float(x) for x in self.weights])
        k = np.arange(len(w), dtype=np.float64)
        total = float(np.sum(w))
        mean = float(w @ k) / total
        return float(w @ (k - mean) ** 2)


def rectangle(law: RowLaw, low: object, high: object) -> Minorant:
    """The tallest rectangle over [low, high] below the distribution: every value there has at least the same weight."""
    a, b = as_typed("rectangle", low), as_typed("rectangle", high)
    if not law.low <= a < b <= law.high:
        raise InvalidParameter(
            parameter="rectangle",
            value=f"{float(a):g},{float(b):g}",
            must=f"lie inside the support, from {float(law.low):g} to {float(law.high):g}, low end first",
        )
    first, last = math.ceil((a - law.low) / law.step), math.floor((b - law.low) / law.step)
    if last <= first:
        raise InvalidParameter(
            parameter="rectangle",
            value=f"{float(a):g},{float(b):g}",
            must="hold two values of the grid at least",
            hint="one value alone hides nothing",
        )
    height = min(law.weights[first : last + 1])
    if height == 0:
        raise InvalidParameter(
            parameter="rectangle",
            value=f"{float(a):g},{float(b):g}",
            must="hold only values that can occur",
            hint="some value of the grid in between has probability 0: there is no rectangle",
        )
    return flat(law, first, last - first + 1, height)


def flat(law: RowLaw, first: int, length: int, height: Fraction) -> Minorant:
    """A rectangle of this many values, each of this weight."""
    low = law.low + first * law.step
    high = low + (length - 1) * law.step
    mass = shown(float(height * length), 4)
    words = (
        f"gives each value from {float(low):g} to {float(high):g} a probability of at least {shown(float(height), 4)} "
        f"(a rectangle of mass {mass})"
    )
    return Minorant(
        kind="rectangle", first=first, weights=(height,) * length, low=low, high=high, words=words
    )


def minorants_of(law: RowLaw, kind: str) -> list[Minorant]:
    """The most promising shapes of a kind below the distribution, by spread, widest first; the caller compares them
    by epsilon.
    """
    if kind not in KINDS:
        raise UnknownName(what="shape", name=str(kind), known=KINDS)
    if kind == "rectangle":
        found = [flat(law, a, n, h) for a, n, h in _rectangles(law.weights)]
    elif kind == "rectangles":
        found = _stairs(law)
    else:
        found = _peaked(law, kind)
    if not found:
        raise InvalidParameter(
            parameter="rows",
            value=law.name,
            must=f"have a {kind} of two neighbouring values at least below its weights",
            hint="no two neighbouring values of the grid can both occur: there is nothing to hide in",
        )
    return sorted(found, key=lambda m: -m.quality)[:4]


def _rectangles(weights: tuple[Fraction, ...]) -> list[tuple[int, int, Fraction]]:
    """(First place, length, height): for each height the longest runs at least so high (stack of open runs)."""
    found: list[tuple[float, int, int, Fraction]] = []
    stack: list[tuple[int, Fraction]] = []
    for k, w in enumerate((*weights, Fraction(0))):
        first = k
        while stack and stack[-1][1] > w:
            first, height = stack.pop()
            if height and k - first > 1:
                length = k - first
                found.append((float(height) * length * (length**2 - 1), first, length, height))
        if not stack or stack[-1][1] < w:
            stack.append((first, w))
    return [(a, n, h) for _, a, n, h in sorted(found, key=lambda f: -f[0])[:6]]


def _stairs(law: RowLaw, steps: int = 3) -> list[Minorant]:
    """Rectangles on the remainder of earlier ones: together a staircase below the distribution."""
    left, taken = list(law.weights), []
    for _ in range(steps):
        following = _rectangles(tuple(left))
        if not following:
            break
        # The first is the one of the largest spread.
        first, length, height = following[0]
        taken.append((first, length, height))
        for k in range(first, first + length):
            left[k] -= height
    return [stairs(law, taken)] if taken else []


def stairs(law: RowLaw, taken: list[tuple[int, int, Fraction]]) -> Minorant:
    """Several rectangles, (first place, length, height) each, added up."""
    start, stop = min(a for a, _, _ in taken), max(a + n for a, n, _ in taken)
    total = [Fraction(0)] * (stop - start)
    for first, length, height in taken:
        for k in range(first, first + length):
            total[k - start] += height

    def at(place: int) -> float:
        return float(law.low + place * law.step)

    told = ", plus ".join(f"{shown(float(h), 4)} from {at(a):g} to {at(a + n - 1):g}" for a, n, h in taken)
    mass = shown(float(sum(total, Fraction(0))), 4)
    return Minorant(
        kind="rectangles",
        first=start,
        weights=tuple(total),
        low=law.low + start * law.step,
        high=law.low + (stop - 1) * law.step,
        words=f"gives every value at least {told} (a staircase of rectangles of mass {mass})",
    )


def _peaked(law: RowLaw, kind: str) -> list[Minorant]:
    """Triangles or truncated normal shapes of several widths around the heaviest value, as tall as fits."""
    floats = np.array([float(w) for w in law.weights])
    top = len(floats) - 1
    peak = int(np.median(np.flatnonzero(floats[1:-1] == np.max(floats[1:-1])) + 1)) if top > 1 else 0
    found = []
    for first, last in sorted({(a, top - a) for a in (0, 1, 2, top // 20, top // 10, top // 5)}):
        if last - first < 2 or not first <= peak <= last:
            continue
        for width in np.unique(np.round(top * np.geomspace(0.05, 2.0, 33))):
            wide = max(int(width), 2 if kind == "triangle" else 1)
            places, shape = _shape(kind, first, last, Fraction(peak), (Fraction(wide), Fraction(wide)))
            if len(places) > 1 and (height := float(np.min(floats[places] / shape))) > 0:
                found.append((_spread(height * shape), wide, first, last))
    ranked = sorted(found, key=lambda f: -f[0])[:4]
    made = (
        peaked(law, kind, first, last, Fraction(peak), (Fraction(wide), Fraction(wide)))
        for _, wide, first, last in ranked
    )
    return [shape for shape in made if shape is not None]


def _shape(
    kind: str, first: int, last: int, peak: Fraction, widths: tuple[Fraction, Fraction]
) -> tuple[np.ndarray, np.ndarray]:
    """(Places from first to last, the shape there): 1 at the peak, with a width to the left and one to the right."""
    k = np.arange(first, last + 1)
    away = k - float(peak)
    wide = np.where(away < 0, float(widths[0]), float(widths[1]))
    shape = 1 - np.abs(away) / wide if kind == "triangle" else np.exp(-((away / wide) ** 2) / 2)
    inside = np.flatnonzero(shape > 1e-9)
    return k[inside], shape[inside]


def peaked(
    law: RowLaw, kind: str, first: int, last: int, peak: Fraction, widths: tuple[Fraction, Fraction]
) -> Minorant | None:
    """The triangle or normal shape in rationals, as tall as fits exactly below the weights; None if none fits."""
    places, shape = _shape(kind, first, last, peak, widths)
    exact = [Fraction(round(float(x) * _ROUND), _ROUND) for x in shape]
    if len(exact) < 2 or not all(exact):
        return None
    start = int(places[0])
    scale = min(law.weights[start + j] / x for j, x in enumerate(exact))
    # A short scale keeps the rationals short.
    scale = Fraction(math.floor(scale * _ROUND), _ROUND)
    if scale <= 0:
        return None
    weights = tuple(scale * x for x in exact)
    low, high = law.low + start * law.step, law.low + int(places[-1]) * law.step
    centre, height = float(law.low + peak * law.step), shown(float(scale) * (1 + 1e-12), 4)
    left, right = (float(w * law.step) for w in widths)
    if kind == "triangle":
        what = (
            f"the triangle that is {height} at {centre:g} and 0 at {centre - left:g} and {centre + right:g}"
        )
    else:
        what = f"the normal shape {height} exp(-(x - {centre:g})^2 / (2 {left:g}^2))"
    return Minorant(
        kind=kind,
        first=start,
        weights=weights,
        low=low,
        high=high,
        words=f"lies above {what}, for values from {float(low):g} to {float(high):g} (mass "
        f"{shown(float(sum(weights, Fraction(0))), 4)})",
    )


def _spread(weights: np.ndarray) -> float:
    k = np.arange(len(weights), dtype=np.float64)
    mean = float(weights @ k) / float(np.sum(weights))
    return float(weights @ (k - mean) ** 2)


def undisclosed(minorant: Minorant, hidden: int, delta: float) -> tuple[list[tuple[float, SumLaw]], float]:
    """(The distributions of the undisclosed sum with the probabilities of their numbers of rows, the probability that
    hides nothing).
    """
    v = minorant.mass
    if v == 1:
        return [(1.0, sum_law(minorant.law, hidden, delta=delta))], 0.0
    few = 1e-3 * delta
    number = sum_law((1 - v, v), hidden, delta=few)
    masses, base = number.high, number.start
    below = np.cumsum(masses) * (1 + 1e-12)
    lowest = int(np.searchsorted(below + number.outside, few))
    lowest = max(lowest, 1 - base)
    if lowest >= len(masses):
        return [], 1.0
    certain = (float(below[lowest - 1]) if lowest > 0 else 0.0) + number.outside
    middle = base + float(np.argmax(masses))
    last = min(len(masses) - 1, int(middle - base + 4 * math.sqrt(float(v * (1 - v)) * hidden)) + 1)
    step = max(1, (last - lowest) // MOST_NODES, math.floor(2e-3 * middle))
    starts = [*range(lowest, last + 1, step), len(masses)]
    shares = [math.fsum(masses[a:b]) * (1 + 1e-12) for a, b in itertools.pairwise(starts)]
    laws = sum_laws([minorant.law], [(base + a,) for a in starts[:-1]], delta=delta)
    return list(zip(shares, laws, strict=True)), up(certain) * (1 + 1e-12)
