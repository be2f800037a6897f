"""Bandwidth and order from public numbers, and what the circle and the cut cost at most: Hall 2012, 4.3."""

from __future__ import annotations

import math

from tacit.errors import InvalidParameter
from tacit.exact.balls import Ball, ball, upper
from tacit.exact.checks import whole
from tacit.exact.rationals import exact_parameter

__all__ = ["fourier_bandwidth", "fourier_order", "truncation_bound", "wrapping_bound"]


def fourier_bandwidth(*, size: int, dimension: int = 1, factor: float = 0.15) -> float:
    """h = factor size^(-1/(4 + d)), in sides of the box: Hall (4.3). 0.15 suits two humps that fill the box."""
    n, d = whole("size", size, least=1), whole("dimension", dimension, least=1)
    return float(float(exact_parameter("factor", factor)) * float(n) ** (-1 / (4 + d)))


def fourier_order(*, bandwidth: float, tail: float | None = None, size: int | None = None) -> int:
    """The least order m whose cut is small, for a bandwidth on the circle of length one.

    By default m = ceil(1.2 / (pi h)): lambda_m = e^(-2.88), 0.056; what is cut off is below the sampling error.
    With a `tail`, the least m with lambda_{m+1} <= tail; with a `size`, tail = size^(-1/2): this is m of order
    sqrt(log n) / h, within Hall's (4.12), which asks for (log n) / h.
    """
    h = exact_parameter("bandwidth", bandwidth)
    if h > 4 or h < 2.0**-20:
        raise InvalidParameter(parameter="bandwidth", value=bandwidth, must="lie between 2^-20 and 4")
    if tail is not None and size is not None:
        raise InvalidParameter(parameter="tail", value=tail, must="be given without a size")
    if size is not None:
        tail = whole("size", size, least=1) ** -0.5
    if tail is None:
        return max(1, math.ceil(1.2 / (math.pi * float(h)) - 1e-9))
    level = exact_parameter("tail", tail)
    if level >= 1:
        return 1
    return max(1, math.ceil(math.sqrt(-math.log(float(level)) / 2) / (math.pi * float(h)) - 1 - 1e-9))


def wrapping_bound(*, bandwidth: float, margin: float) -> float:
    """At least the integral over [0, 1] of (Gaussian kernel - periodic kernel)^2, for a row in [margin, 1 - margin].

    (2 phi_h(margin) / (1 - e^(-(1 + 2 margin) / (2 h^2))))^2, phi_h(x) = e^(-x^2/(2h^2)) / (sqrt(2 pi) h).
    The form of Hall's Prop. 4.3.2 with its constants; it falls faster than any power of h where margin^2 >= h.
    Theorem `fourier-series-density`.
    """
    h, at = exact_parameter("bandwidth", bandwidth), exact_parameter("margin", margin, positive=False)
    if not 0 <= at < 0.5:
        raise InvalidParameter(parameter="margin", value=margin, must="be at least 0 and below 1/2")

    def formula() -> Ball:
        width, rim = ball(h), ball(at)
        top = (-(rim**2) / (2 * width**2)).exp() / ((2 * ball(1).pi()).sqrt() * width)
        ratio = (-(1 + 2 * rim) / (2 * width**2)).exp()
        return (2 * top / (1 - ratio)) ** 2

    return upper(formula)


def truncation_bound(*, order: int, bandwidth: float, dimension: int = 1) -> float:
    """At least the integral of (periodic estimate - its cut at `order`)^2, for any rows: Hall's Prop. 4.3.3.

    (L + T)^d - L^d with L = 1 + 2 sum_{j <= m} lambda_j^2 and T = 2 lambda_{m+1}^2 / (1 - e^(-4 pi^2 h^2 (2m + 3))).
    Theorem `fourier-series-density`.
    """
    m, d = whole("order", order, least=1), whole("dimension", dimension, least=1)
    h = exact_parameter("bandwidth", bandwidth)
    if m > 1 << 17 or d > 64:
        raise InvalidParameter(parameter="order", value=m, must="be at most 2^17, in at most 64 dimensions")

    def formula() -> Ball:
        rate = -4 * (ball(1).pi() * ball(h)) ** 2
        kept = 1 + 2 * sum(((rate * j * j).exp() for j in range(1, m + 1)), ball(0))
        tail = 2 * (rate * (m + 1) ** 2).exp() / (1 - (rate * (2 * m + 3)).exp())
        return (kept + tail) ** d - kept**d

    return upper(formula)
