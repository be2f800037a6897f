"""The way from noisy integers to a statistic and its error: post-processing without privacy cost.

A form has three answers. `value` is the statistic. `gradient` is its derivative by each part, for first-order
errors. `enclose` is the range of the statistic while each part ranges over an interval: if the intervals hold all
parts at once with some probability, the range holds the statistic with at least that probability.
Ratios have a fourth, `pivot(r)`: coefficients c_i with sum c_i part_i = 0 if and only if the statistic is r. The
noise of sum c_i noisy_i is known exactly, so the r at which it is not surprising form an exact confidence set.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass

Parts = Mapping[str, npt.ArrayLike]


def reals(values: Any) -> Floats:
    """Integers of any size as floats."""
    return np.asarray(values).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A function of the noisy parts."""

    def value(self, parts: Parts) -> Floats:
        """The statistic."""
        raise NotImplementedError

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        """Its derivative by each part, at the noisy parts."""
        raise NotImplementedError

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """Its range while each part lies between low and high."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(Form):
    """spacing * part: counts and sums. The error is the noise itself."""

    part: str
    spacing: Fraction = Fraction(1)

    def value(self, parts: Parts) -> Floats:
        return reals(parts[self.part]) * float(self.spacing)

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        return {self.part: np.full(np.shape(parts[self.part]), float(self.spacing))}

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        return self.value(low), self.value(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Form):
    """low + spacing * part / rows, with a public number of rows. No rows: the middle of the range."""

    part: str
    rows: str
    low: float
    width: float
    spacing: Fraction

    def value(self, parts: Parts) -> Floats:
        n = reals(parts[self.rows])
        ratio = np.divide(
            reals(parts[self.part]) * float(self.spacing),
            n,
            where=n > 0,
            out=np.full(n.shape, self.width / 2),
        )
        return np.asarray(self.low + np.clip(ratio, 0.0, self.width))

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        n = np.maximum(reals(parts[self.rows]), 1.0)
        return {self.part: float(self.spacing) / n, self.rows: np.zeros(n.shape)}

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        return self.value(low), self.value(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Form):
    """low + width * above / (above + below): means and proportions. Always within the declared bounds.

    If above + below is not positive (the noise hides the few rows), it is the middle of the range.
    """

    low: float
    width: float
    above: str = "above"
    below: str = "below"

    def _share(self, above: Any, below: Any, blank: float = 0.5) -> Floats:
        a, b = np.maximum(reals(above), 0.0), np.maximum(reals(below), 0.0)
        total = a + b
        share: Floats = np.divide(a, total, where=total > 0, out=np.full(total.shape, blank))
        return share

    def value(self, parts: Parts) -> Floats:
        return np.asarray(self.low + self.width * self._share(parts[self.above], parts[self.below]))

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        share = self._share(parts[self.above], parts[self.below])
        total = np.maximum(reals(parts[self.above]) + reals(parts[self.below]), 1.0)
        return {
            self.above: self.width * (1 - share) / total,
            self.below: -self.width * share / total,
        }

    def pivot(self, value: Floats) -> dict[str, Floats]:
        """With s the share that stands for the value: (1 - s) above - s below = 0."""
        share = (np.asarray(value) - self.low) / self.width
        return {self.above: 1 - share, self.below: -share}

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """The share grows with `above` and falls with `below`."""
        least = self._share(low[self.above], high[self.below], 0.0)
        most = self._share(high[self.above], low[self.below], 1.0)
        return np.asarray(self.low + self.width * least), np.asarray(self.low + self.width * most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(Form):
    """numerator / denominator, each with its spacing: a ratio of sums. No value if the noise hides the divisor."""

    numerator: str
    denominator: str
    scale: float

    def value(self, parts: Parts) -> Floats:
        top, bottom = reals(parts[self.numerator]), reals(parts[self.denominator])
        blank = np.full(bottom.shape, np.nan)
        quotient: Floats = np.divide(top * self.scale, bottom, where=bottom != 0, out=blank)
        return quotient

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        value, bottom = self.value(parts), reals(parts[self.denominator])
        bottom = np.where(bottom == 0, np.nan, bottom)
        return {self.numerator: self.scale / bottom, self.denominator: -value / bottom}

    def pivot(self, value: Floats) -> dict[str, Floats]:
        """scale * numerator - r * denominator = 0."""
        r = np.asarray(value, dtype=np.float64)
        return {self.numerator: np.full(r.shape, self.scale), self.denominator: -r}

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """Corners, if the divisor keeps its sign; the whole line if it does not."""
        a, b = reals(low[self.denominator]), reals(high[self.denominator])
        safe = (a > 0) | (b < 0)
        divisors = [np.where(safe, d, 1.0) for d in (a, b)]
        corners = [reals(n[self.numerator]) * self.scale / d for n in (low, high) for d in divisors]
        least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
        return np.where(safe, least, -np.inf), np.where(safe, most, np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Form):
    """The variance (divisor n) from the three Bernstein parts b0, b1, b2 of the squares, T = b0 + b1 + b2.

    With y = (value - low) / width: mean y = (b2 + b1/2) / T, mean y^2 = b2 / T, and the variance is
    width^2 (mean y^2 - (mean y)^2), which lies in [0, width^2 / 4].
    """

    width: float
    names: tuple[str, str, str] = ("squares_below", "products", "squares_above")

    def _shares(self, parts: Parts) -> tuple[Floats, Floats, Floats]:
        b = [np.maximum(reals(parts[n]), 0.0) for n in self.names]
        total = b[0] + b[1] + b[2]
        out = [np.divide(x, total, where=total > 0, out=np.full(total.shape, 1 / 3)) for x in b]
        return out[0], out[1], out[2]

    def value(self, parts: Parts) -> Floats:
        _, p1, p2 = self._shares(parts)
        return np.asarray(self.width**2 * np.clip(p2 - (p2 + p1 / 2) ** 2, 0.0, 0.25))

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        _, p1, p2 = self._shares(parts)
        mean = p2 + p1 / 2
        total = np.maximum(sum(reals(parts[n]) for n in self.names), 1.0)
        scale = self.width**2 / total
        # d(p2 - mean^2)/db_i = (e_i2 - 2 mean (e_i2 + e_i1/2) - p2 + 2 mean^2) / T
        shift = 2 * mean**2 - p2
        return {
            self.names[0]: scale * shift,
            self.names[1]: scale * (shift - mean),
            self.names[2]: scale * (shift + 1 - 2 * mean),
        }

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        """Interval arithmetic: each share grows with its own part and falls with the others."""
        a = [np.maximum(reals(low[n]), 0.0) for n in self.names]
        b = [np.maximum(reals(high[n]), 0.0) for n in self.names]

        def share(top: Any, rest: Any, blank: float) -> Floats:
            total = top + rest
            out: Floats = np.divide(top, total, where=total > 0, out=np.full(np.shape(total), blank))
            return out

        square_low, square_high = share(a[2], b[0] + b[1], 0.0), share(b[2], a[0] + a[1], 1.0)
        # mean y = (b2 + b1/2)/T grows with b2, falls with b0, and is monotone in b1.
        means = [
            (share(x2 + x1 / 2, x0 + x1 / 2, blank))
            for x2, x0, blank in ((a[2], b[0], 0.0), (b[2], a[0], 1.0))
            for x1 in (a[1], b[1])
        ]
        mean_low, mean_high = np.minimum(means[0], means[1]), np.maximum(means[2], means[3])
        scale = self.width**2
        least = np.clip(square_low - mean_high**2, 0.0, 0.25)
        most = np.clip(square_high - mean_low**2, 0.0, 0.25)
        # y (1 - y) >= 0 gives mean y^2 <= mean y, so the variance is at most mean y (1 - mean y).
        top = np.where(
            mean_low > 0.5,
            mean_low * (1 - mean_low),
            np.where(mean_high < 0.5, mean_high * (1 - mean_high), 0.25),
        )
        return np.asarray(scale * least), np.asarray(scale * np.minimum(most, top))


@dataclass(frozen=True, slots=True, kw_only=True)
class Root(Form):
    """The square root of another form: a standard deviation."""

    of: Form

    def value(self, parts: Parts) -> Floats:
        return np.sqrt(self.of.value(parts))

    def gradient(self, parts: Parts) -> dict[str, Floats]:
        value = self.value(parts)
        half = np.divide(0.5, value, where=value > 0, out=np.full(value.shape, np.inf))
        return {name: g * half for name, g in self.of.gradient(parts).items()}

    def enclose(self, low: Parts, high: Parts) -> tuple[Floats, Floats]:
        least, most = self.of.enclose(low, high)
        return np.sqrt(least), np.sqrt(most)
