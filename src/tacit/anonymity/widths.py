"""Privacy as the width of an interval (Agrawal, Srikant 2000), and its weaknesses. A measure, not a guarantee.

A value x is published as y = x + noise. The measure is the width of an interval around y that contains x with a given
confidence: 2 a c for uniform noise on [-a, a] at confidence c, 2 z s for normal noise of standard deviation s. The
privacy loss ignores two things that an outsider knows: the range of x, and other releases of the same x.
`width_left` is the
shortest interval that contains x with this confidence, for an x uniform on its range, given all published values. It
can be 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import listed, positive, probability
from tacit.exact.rounding import exact_parameter

NOISES = ("normal", "uniform")


def interval_width(*, noise: str, scale: float, confidence: float) -> float:
    """The measure of Agrawal and Srikant: `scale` is half the width of uniform noise, or the std of normal noise."""
    size, level = _checked(noise, scale, confidence)
    return 2 * size * (level if noise == "uniform" else _quantile((1 + level) / 2))


def width_left(
    released: Sequence[float], *, low: float, high: float, noise: str, scale: float, confidence: float
) -> float:
    """The remaining width after all releases of one value, if it is uniform on [low, high] beforehand."""
    size, level = _checked(noise, scale, confidence)
    first, last = (float(exact_parameter(n, v, positive=False)) for n, v in (("low", low), ("high", high)))
    seen = [float(exact_parameter("released", v, positive=False)) for v in listed("released", released)]
    if first >= last or not seen:
        raise InvalidParameter(
            parameter="released", value=len(seen), must="be one value at least, with low below high"
        )
    if noise == "uniform":
        ends = max(first, max(seen) - size), min(last, min(seen) + size)
        if ends[0] > ends[1]:
            raise InvalidParameter(
                parameter="released",
                value="values too far apart",
                must="be possible for one value and this noise",
            )
        return level * (ends[1] - ends[0])
    # The posterior is normal around the mean, cut at the range: the shortest interval by halving its lower mass.
    centre, std = sum(seen) / len(seen), size / math.sqrt(len(seen))
    below, above = _cdf((first - centre) / std), _cdf((last - centre) / std)
    mass = above - below
    if mass <= 0:
        # Far outside of the range: nearly all of the posterior lies at the nearer end.
        return 0.0

    def width(skipped: float) -> float:
        a = centre + std * _quantile(min(max(below + skipped * mass, 1e-300), 1 - 1e-16))
        b = centre + std * _quantile(min(max(below + (skipped + level) * mass, 1e-300), 1 - 1e-16))
        return min(b, last) - max(a, first)

    a, b = 0.0, 1 - level
    for _ in range(80):
        left, right = a + (b - a) / 3, b - (b - a) / 3
        a, b = (a, right) if width(left) <= width(right) else (left, b)
    return max(0.0, min(width(a), width((a + b) / 2), width(b)))


def _checked(noise: str, scale: float, confidence: float) -> tuple[float, float]:
    if noise not in NOISES:
        raise UnknownName(what="noise", name=str(noise), known=NOISES)
    return positive("scale", scale), probability("confidence", confidence, below_one=True)


def _cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))
