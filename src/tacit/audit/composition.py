"""Several releases together: losses on one grid, every rounding upwards, one exact multiplication of integers.

A curve h(t) = sup_S P(S) - t Q(S) is convex and falls from 1 at t = 0. On the grid t_i = e^{i step} it is
replaced by the straight lines between its points, by the line from (0, 1) to its first point, and by its last
value from there on. That function lies above h, and it is the curve of another pair. Where its slope rises by
q, Q has an outcome of mass q and P one of mass t_i q. The rest of P is an outcome of infinite loss. If the
curve of a pair is larger, it stays larger in every composition, also an adaptive one (Zhu, Dong and Wang 2022,
Thm 10; this rounding follows Doroshenko and others 2022).

P's masses are kept as integers, in units of 2^-BITS, rounded up. Losses add up when releases are composed, so that the
masses are multiplied as polynomials, in integers and so exactly; the product is rounded up again. Losses
far out move up: those at the top become infinite, those at the bottom the smallest kept one. All this makes
delta larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tacit.audit.curves import Curve, Unconfirmed, both_orders, exact
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    from flint import arb


BITS = 192
LONGEST = 1 << 18
FAR = 100
"""The largest finite loss; any larger loss counts as infinite."""


INSIDE, LONGEST_INSIDE = 1e-24, 1 << 14
"""The mass cut off from a composition inside of a sample or a mixture, and its number of points."""


class TooLong(Unconfirmed):
    """The grid would have more points than this program takes."""

    def __init__(self, why: str = "its losses range too far for the grid of this program") -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """P's masses at the losses (lowest + i) * step, and at an infinite loss, in units of 2^-BITS; upper bounds."""

    lowest: int
    masses: Sequence[int]
    infinite: int


def _units(value: arb) -> int:
    """An upper bound in units, never below 0."""
    return max(0, int((value * (1 << BITS)).upper().ceil().unique_fmpz()))


def on_grid(h: Curve, step: arb, *, negligible: float, longest: int = LONGEST) -> Losses:
    """The losses of the pair of straight lines above the curve; the grid ends where the curve is negligible."""
    for_ever = h(exact(FAR))
    last = _end(lambda points: h(points * step) - for_ever, negligible, longest)
    first = -_end(lambda points: h(-points * step) - 1 + (-points * step).exp(), negligible, longest)
    places = _convex([((i * step).exp(), h(i * step)) for i in range(first, last + 1)])
    masses = [0] * (last - first + 1)
    left = (places[0][2] - 1) / places[0][1]
    for (i, t, value), (_, after, next_value) in pairwise(places):
        right = (next_value - value) / (after - t)
        masses[i] = _units(t * (right - left))
        left = right
    i, t, value = places[-1]
    masses[i] = _units(t * (0 - left))
    return Losses(lowest=first, masses=masses, infinite=_units(value))


def _end(left: Callable[[int], arb], negligible: float, longest: int) -> int:
    """The number of points, a power of two, after which at most this much of the curve remains."""
    points = 1
    while float(left(points).upper()) > negligible:
        points *= 2
        if points > longest:
            raise TooLong
    return points


def _convex(points: list[tuple[arb, arb]]) -> list[tuple[int, arb, arb]]:
    """The points on the lower convex hull: h is convex and below all of them, so that it is below the hull as well.

    The middles of balls decide which points are left out. Any choice gives lines above h.
    """
    kept: list[tuple[int, arb, arb]] = []
    for i, (t, v) in enumerate(points):
        if not v.is_finite():  # lines between the others lie above h as well
            continue
        while len(kept) >= 2:
            (_, a, u), (_, b, w) = kept[-2:]
            if ((w - u) * (t - b)).mid() <= ((v - w) * (b - a)).mid():
                break
            kept.pop()
        kept.append((i, t, v))
    return kept


def composed(parts: Iterable[tuple[Losses, int]], *, negligible: float) -> Losses:
    """All of the parts together, each with its number of runs."""
    out = Losses(lowest=0, masses=[1 << BITS], infinite=0)
    for losses, times in parts:
        # What is cut off of a power counts as often as the power is run: 2 negligible in all.
        power, far = losses, int(Fraction(negligible) * (1 << BITS) / times)
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
    infinite_mass = a.infinite * (sum(b.masses) + b.infinite) + sum(a.masses) * b.infinite
    infinite = -(-infinite_mass >> BITS) + moved
    return Losses(lowest=a.lowest + b.lowest + bottom, masses=kept, infinite=infinite)


def epsilon_at(losses: Losses, step: arb, delta: float) -> arb | None:
    """The smallest epsilon >= 0 with infinite + sum of p (1 - e^{epsilon - loss}) over larger losses <= delta.

    None if the infinite losses alone are more than delta.
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


def together(event: Mapping[str, Any], neighbours: str, step: arb) -> tuple[Curve, Curve] | None:
    """The curves of a composition that is sampled, or chosen by a coin, as a whole."""
    found = [(both_orders(one, neighbours, step), n) for one, n in _members(event)]
    known = [(pair, n) for pair, n in found if pair is not None]
    if not known:
        return None
    for doubled in range(17):  # the first grid that is not too long
        width = step * 2**doubled
        try:
            grids = [
                [(on_grid(pair[i], width, negligible=INSIDE, longest=LONGEST_INSIDE), n) for pair, n in known]
                for i in (0, 1)
            ]
            first, last = (composed(parts, negligible=INSIDE) for parts in grids)
        except TooLong:
            continue
        return curve_of(first, width), curve_of(last, width)
    raise TooLong


def _members(event: Mapping[str, Any], times: int = 1) -> Iterable[tuple[Mapping[str, Any], int]]:
    if event["kind"] == "repeated":
        yield from _members(event["event"], times * int(event["times"]))
    elif event["kind"] == "composed":
        for one in event["events"]:
            yield from _members(one, times)
    else:
        yield event, times


def curve_of(losses: Losses, step: arb) -> Curve:
    """h(x) = infinite + the sum of p (1 - e^{x - loss}) over losses above x."""
    n, wide = len(losses.masses), float(step)
    mass, weighed = [exact(0)] * (n + 1), [exact(0)] * (n + 1)  # from each loss on: p, and p e^{-loss}
    for i in range(n - 1, -1, -1):
        p = exact(Fraction(losses.masses[i], 1 << BITS))
        mass[i] = mass[i + 1] + p
        weighed[i] = weighed[i + 1] + p * (-(losses.lowest + i) * step).exp()
    infinite_mass = exact(Fraction(losses.infinite, 1 << BITS))

    def h(x: arb) -> arb:
        near = min(max(float(x.mid()) / wide, -(2.0**40)), 2.0**40)
        first = math.floor(near) + 1 - losses.lowest
        # The sum over any other losses is smaller: next to one of them both sides are tried.
        sums = [mass[i] - x.exp() * weighed[i] for i in {min(max(first + d, 0), n) for d in (-1, 0, 1)}]
        return infinite_mass + max(sums, key=lambda b: float(b.upper()))

    return h
