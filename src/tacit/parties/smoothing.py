"""From computational to statistical privacy in concrete numbers (Groce 2014, Thm 4.2), and why little is gained.

A mechanism F with outputs on a grid and error of moment err that no efficient test tells from an (epsilon, delta)
private G with advantage above eta becomes (epsilon, delta') private, statistically, if uniform noise on a box of
radius c is added. On a grid of spacing s with a cut z > 0, and sigma_v = E |F^ - q|^v (sup norm) of the output F^,

    delta' = (1 + e^epsilon) [((2z + s)/(2c + s))^d eta + sigma_v / z^v] + e^epsilon eta + delta

for every z: the best one is taken (theorem `smoothing`). Integers need no added noise at all: c = 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.balls import ball, upper
from tacit.exact.checks import non_negative, positive, probability, whole
from tacit.exact.rounding import up
from tacit.guarantees import Always, Approximate, BoundedAdversary, Guarantee
from tacit.guarantees.conditions import Indistinguishability

__all__ = ["black_box_delta", "smoothed", "smoothed_delta", "smoothed_delta_printed"]

STEPS = 200


def smoothed_delta(
    *,
    epsilon: float,
    advantage: float,
    dimension: int,
    error: float,
    delta: float = 0.0,
    moment: float = 1.0,
    radius: float = 0.0,
    spacing: float = 1.0,
) -> float:
    """The delta' of the sharper form, rounded up; `error` is sigma_v of the output with the added noise in it."""
    e, eta, d = (
        non_negative("epsilon", epsilon),
        probability("advantage", advantage),
        whole("dimension", dimension),
    )
    err, v, start = positive("error", error), positive("moment", moment), probability("delta", delta)
    c, s = non_negative("radius", radius), positive("spacing", spacing)
    if (Fraction(c) / Fraction(s)).denominator != 1:
        raise InvalidParameter(
            parameter="radius", value=radius, must="be a multiple of the spacing",
            hint="else the box has fewer grid points than the formula divides by",
        )  # fmt: skip

    def size(log_z: float) -> float:
        """ln of the bracket, in floats: any z is valid, so that it only has to be near the best."""
        first = d * (math.log(2 * math.exp(log_z) + s) - math.log(2 * c + s)) + (
            math.log(eta) if eta else -math.inf
        )
        second = math.log(err) - v * log_z
        high = max(first, second)
        return high + math.log(math.exp(first - high) + math.exp(second - high))

    low, high = -50.0, 600.0 / max(v, 1.0)
    for _ in range(STEPS):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if size(a) <= size(b) else (a, high)
    z = math.exp((low + high) / 2)

    def formula() -> Any:
        grown = (1 + ball(e).exp()) * (
            ((2 * ball(z) + ball(s)) / (2 * ball(c) + ball(s))) ** d * ball(eta)
            + ball(err) / ball(z) ** ball(v)
        )
        return grown + ball(e).exp() * ball(eta) + ball(start)

    return min(1.0, upper(formula))


def smoothed_delta_printed(
    *, epsilon: float, advantage: float, dimension: int, error: float, delta: float = 0.0
) -> float:
    """The same with the constants of the printed proof: c = eta^(1/4d), v = 1, for d c <= err.

    (e^epsilon + 1)(3^d sqrt(eta) + 2 err eta^(1/4d)) + e^epsilon eta + delta.
    """
    e, eta, d = (
        non_negative("epsilon", epsilon),
        probability("advantage", advantage),
        whole("dimension", dimension),
    )
    err, start = positive("error", error), probability("delta", delta)
    root = Fraction(1, 4 * d)

    def radius() -> Any:
        return ball(eta) ** ball(root) if eta else ball(0)

    if d * upper(radius) > err:
        raise InvalidParameter(
            parameter="error", value=error, must="be at least the added noise, d eta^(1/4d)",
            hint="smoothed_delta has no such condition",
        )  # fmt: skip

    def formula() -> Any:
        inner = ball(3) ** d * ball(eta).sqrt() + 2 * ball(err) * radius()
        return (ball(e).exp() + 1) * inner + ball(e).exp() * ball(eta) + ball(start)

    return min(1.0, upper(formula))


def black_box_delta(
    *, delta: float = 0.0, advantage: float, queries: int, bits: int, inverted: float
) -> float:
    """The delta of a mechanism whose one-way function is replaced by a random one, rounded up.

    delta + a + 2 (q + 1) / ((2^n - q) p), for a reduction that inverts with q queries and a probability above p
    = `inverted` whoever breaks the privacy by more than `advantage` (theorem `black-box-oracle`; Groce 2014, Thm 4.1).
    """
    start, a = probability("delta", delta), probability("advantage", advantage)
    q, n, p = whole("queries", queries, least=0), whole("bits", bits), probability("inverted", inverted)
    if p <= 0 or n > 1 << 16 or q >= 1 << n:
        raise InvalidParameter(
            parameter="queries",
            value=queries,
            must="be fewer than 2^bits, with inverted above 0 and bits up to 65536",
        )
    broken = Fraction(2 * (q + 1), (1 << n) - q) / Fraction(p)
    return up(min(Fraction(1), Fraction(start) + Fraction(a) + broken))


def smoothed(
    guarantee: Guarantee,
    *,
    dimension: int,
    error: float,
    moment: float = 1.0,
    radius: float = 0.0,
    spacing: float = 1.0,
) -> Guarantee:
    """The statistical guarantee of a mechanism that has a computational one of the kind SIM, and a bounded error."""
    condition = guarantee.condition
    if not isinstance(condition, BoundedAdversary):
        raise NoLaw(operation="smoothing", reason="the guarantee does not rest on a bounded adversary")
    if condition.definition is Indistinguishability.IND:
        raise NoLaw(
            operation="smoothing an IND guarantee",
            reason="the proof compares with a private stand-in, and whether IND has one is an open question",
        )
    parameters = guarantee.bound.parameters
    if guarantee.bound.kind not in ("pure", "approximate"):
        raise NoLaw(
            operation=f"smoothing a {guarantee.bound.kind} bound", reason="read it at one epsilon first"
        )
    epsilon, delta = float(parameters["epsilon"]), float(parameters.get("delta", 0.0))
    found = smoothed_delta(
        epsilon=epsilon, delta=delta, advantage=condition.advantage, dimension=dimension, error=error, moment=moment,
        radius=radius, spacing=spacing,
    )  # fmt: skip
    return Guarantee(bound=Approximate(epsilon=epsilon, delta=found), unit=guarantee.unit, condition=Always())
