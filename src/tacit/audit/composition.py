"""Several releases together: losses on one grid, every rounding upwards, one exact multiplication of integers.

A curve h(t) = sup_S P(S) - t Q(S) is convex and falls from 1 at t = 0. On the grid t_i = e^{i step} it is replaced by
the straight lines between its points, by the line from (0, 1) to its first one, and by its last value from there on.
That function lies above h, and it is the curve of another pair: where its slope rises by q, Q has an outcome of mass q
and P one of mass t_i q, and P alone has what is left at the end, whose loss is infinite. A pair whose curve lies above
stays above in every composition, also where mechanisms are chosen as one goes (Zhu, Dong and Wang 2022, Thm 10;
this way of rounding is the one of Doroshenko and others 2022).

P's masses are kept as integers, in units of 2^-BITS, rounded up. Losses add up when releases are composed, so that the
masses are multiplied as polynomials, in integers and so exactly; the product is rounded up again. What lies far out is
moved up: from the top to an infinite loss, at the bottom to the lowest one that is kept. All this makes delta larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tacit.audit.curves import Curve, exact

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BITS", "Losses", "TooLong", "composed", "epsilon_at", "on_grid"]

BITS = 192
LONGEST = 1 << 17
FAR = 100
"""A loss beyond which only infinite ones lie; others there would count as infinite as well."""


class TooLong(Exception):
    """The grid would have more points than this program takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """P's masses at the losses (lowest + i) * step, and at an infinite loss, in units of 2^-BITS; upper bounds."""

    lowest: int
    masses: Sequence[int]
    infinite: int


def _units(value: arb) -> int:
    """An upper bound in units, never below 0."""
    return max(0, int((value * (1 << BITS)).upper().ceil().unique_fmpz()))


def on_grid(h: Curve, step: arb, *, negligible: float) -> Losses:
    """The losses of the pair of straight lines above the curve; the grid ends where the curve is negligible."""
    for_ever = h(exact(FAR))
    last = _end(lambda points: h(points * step) - for_ever, negligible)
    first = -_end(lambda points: h(-points * step) - 1 + (-points * step).exp(), negligible)
    places = _convex([((i * step).exp(), h(i * step)) for i in range(first, last + 1)])
    masses = [0] * (last - first + 1)
    left = (places[0][2] - 1) / places[0][1]
    for (i, t, value), (_, after, next_value) in pairwise(places):
        right = (next_value - value) / (after - t)
        masses[i] = _units(t * (right - left))
        left = right
    _, t, value = places[-1]
    masses[-1] = _units(t * (0 - left))
    return Losses(lowest=first, masses=masses, infinite=_units(value))


def _end(left: Callable[[int], arb], negligible: float) -> int:
    """The number of points, a power of two, after which no more than this is left of the curve."""
    points = 1
    while float(left(points).upper()) > negligible:
        points *= 2
        if points > LONGEST:
            raise TooLong
    return points


def _convex(points: list[tuple[arb, arb]]) -> list[tuple[int, arb, arb]]:
    """The points on the lower convex hull: h is convex and below all of them, so that it is below the hull as well.

    Which points are left out is decided by the middles of balls. Any choice gives lines above h.
    """
    kept: list[tuple[int, arb, arb]] = []
    for i, (t, v) in enumerate(points):
        while len(kept) >= 2:
            (_, a, u), (_, b, w) = kept[-2:]
            if ((w - u) * (t - b)).mid() <= ((v - w) * (b - a)).mid():
                break
            kept.pop()
        kept.append((i, t, v))
    return kept


def composed(parts: Iterable[tuple[Losses, int]], *, negligible: float) -> Losses:
    """All of the parts together, each as often as it says."""
    out = Losses(lowest=0, masses=[1 << BITS], infinite=0)
    far = int(negligible * (1 << BITS))
    for losses, times in parts:
        power = losses
        while times:
            if times & 1:
                out = _product(out, power, far)
            times >>= 1
            if times:
                power = _product(power, power, far)
    return out


def _product(a: Losses, b: Losses, far: int) -> Losses:
    from flint import fmpz_poly

    both = (fmpz_poly(list(a.masses)) * fmpz_poly(list(b.masses))).coeffs()
    masses = [int(-(-c >> BITS)) for c in both]
    moved, top = 0, len(masses)
    while top > 1 and moved + masses[top - 1] <= far:
        top -= 1
        moved += masses[top]
    low, bottom = 0, 0
    while bottom < top - 1 and low + masses[bottom] <= far:
        low += masses[bottom]
        bottom += 1
    kept = masses[bottom:top]
    kept[0] += low
    if len(kept) > LONGEST:
        raise TooLong
    return Losses(lowest=a.lowest + b.lowest + bottom, masses=kept, infinite=a.infinite + b.infinite + moved)


def epsilon_at(losses: Losses, step: arb, delta: float) -> arb | None:
    """The smallest epsilon >= 0 with infinite + sum of p (1 - e^{epsilon - loss}) over larger losses <= delta.

    None where the infinite losses alone are more than delta.
    """
    allowed = exact(delta) * (1 << BITS) - losses.infinite
    if not allowed >= 0:
        return None
    mass, weighed = 0, exact(0)  # over the losses above the present one: p, and p e^{-loss}
    for i in range(len(losses.masses) - 1, -1, -1):
        loss = (losses.lowest + i) * step
        if loss <= 0 or mass - loss.exp() * weighed > allowed:
            break
        mass += losses.masses[i]
        weighed += losses.masses[i] * (-loss).exp()
    if not mass - allowed > weighed:  # at epsilon = 0 already
        return exact(0)
    return ((mass - allowed) / weighed).log()
