"""Risk bodies of a count: all pairs of risks at two counts that private mechanisms can have, between two polygons.

The risk vectors (R_0, ..., R_n) of all (epsilon, delta)-private mechanisms are a convex polyhedron (Hall 2012, 2.3.3).
Its shadow on two counts x, y is a polygon. A direction u gives a linear program: a mechanism that is furthest in this
direction, and by weak duality a line that no mechanism crosses (theorem `risk-bodies`). The mechanisms' points span an
inner polygon, the lines bound an outer one; directions are taken across the edges of the inner polygon until no edge
can be moved outwards.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter
from tacit.mechanisms.base import epsilon_parameter
from tacit.risk.certificate import as_loss, epsilon_level
from tacit.risk.count import path
from tacit.risk.finite import private_matrix, solve_program

LARGEST = 40
"""The largest range whose full program is solved once a direction."""
CLOSE = 1e-6
"""An edge is settled when no mechanism is further out by more than this share of the largest loss."""
MOST_DIRECTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskBody:
    """The shadow of the risk body on two counts, between two convex polygons, counter-clockwise.

    `inner`: risks of private mechanisms, and so all their mixtures. `outer`: corners of lines that no private mechanism
    crosses. `gap` is the largest distance by which an edge of the inner polygon might move outwards; if `settled`, the
    body is exact to the solver's accuracy.
    """

    n: int
    epsilon: float
    delta: float
    counts: tuple[int, int]
    inner: Floats
    outer: Floats
    gap: float
    settled: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "n": self.n,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "counts": list(self.counts),
            "inner": self.inner.tolist(),
            "outer": self.outer.tolist(),
            "gap": self.gap,
            "settled": self.settled,
        }


class _Support:
    """Solves one direction: the mechanism furthest along u, and a bound for all mechanisms."""

    def __init__(self, table: Floats, epsilon: Fraction, delta: Fraction, counts: tuple[int, int]) -> None:
        self.table, self.epsilon, self.delta, self.counts = table, epsilon, delta, counts
        self.edges = path(table.shape[0] - 1)
        self.lines: list[tuple[float, float, float]] = []

    def at(self, u: tuple[float, float]) -> tuple[float, float]:
        """The risks of a private mechanism far along u; the line u R <= most is kept."""
        states = self.table.shape[0]
        top = float(self.table.max())
        cost = np.zeros_like(self.table)
        lift = 0.0
        for x, weight in zip(self.counts, u, strict=True):
            # Minimise -u R: a constant in the row makes all its costs non-negative.
            room = max(weight, 0.0) * top
            cost[x] += room - weight * self.table[x]
            lift += room
        prior = np.full(states, 1 / states)
        found = solve_program(cost, self.edges, float(self.epsilon), float(self.delta), prior)
        # The floor of the mean cost, times the number of states, is lift - (largest u R).
        most = lift - found.lower_bound * states * (1 - 2.0**-50)
        self.lines.append((u[0], u[1], most + 1e-12 * (1 + abs(most))))
        refuge = int(np.argmin(self.table.max(axis=0)))
        best: tuple[float, float] | None = None
        for level in {self.delta, Fraction(0)}:
            rows = private_matrix(found.matrix, self.edges, self.epsilon, level, refuge)
            total = sum(rows[0])
            point = tuple(
                float(
                    sum(
                        (
                            Fraction(v) * Fraction(w)
                            for v, w in zip(rows[x], self.table[x].tolist(), strict=True)
                        ),
                        Fraction(0),
                    )
                    / total
                )
                for x in self.counts
            )
            if best is None or u[0] * point[0] + u[1] * point[1] > u[0] * best[0] + u[1] * best[1]:
                best = (point[0], point[1])
        assert best is not None
        return best


def risk_shadow(
    *, n: int, epsilon: Exact, delta: Exact = 0, counts: tuple[int, int] | None = None, loss: Any = "absolute"
) -> RiskBody:
    """The pairs of risks at two counts (by default 0 and n) of all (epsilon, delta)-private mechanisms for a count."""
    size = whole("n", n, least=1)
    if size > LARGEST:
        raise InvalidParameter(
            parameter="n", value=size, must=f"be at most {LARGEST}: each direction is a full linear program"
        )
    exact, lost = epsilon_parameter(epsilon), exact_parameter("delta", delta, positive=False)
    epsilon_level(epsilon)
    if not 0 <= lost < 1:
        raise InvalidParameter(parameter="delta", value=delta, must="lie in [0, 1)")
    pair = (0, size) if counts is None else tuple(whole("counts", c, least=0) for c in counts)
    if len(pair) != 2 or pair[0] == pair[1] or max(pair) > size:
        raise InvalidParameter(
            parameter="counts", value=list(pair), must=f"be two different counts of 0..{size}"
        )
    what = as_loss(loss)
    what.fit(size)
    table = what.matrix(size)
    support = _Support(table, exact, lost, (pair[0], pair[1]))
    scale = max(float(table.max()), 1e-300)
    points = [support.at(u) for u in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    inner = _hull(points)
    asked: set[tuple[float, float]] = set()
    gap = math.inf
    while len(support.lines) < MOST_DIRECTIONS:
        edges = [(inner[i], inner[(i + 1) % len(inner)]) for i in range(len(inner)) if len(inner) > 1]
        new = []
        for a, b in edges:
            u = _outward(a, b)
            key = (round(u[0], 12), round(u[1], 12))
            if key not in asked:
                asked.add(key)
                new.append((u, a))
        if not new:
            break
        moved = False
        for u, a in new:
            point = support.at(u)
            if u[0] * (point[0] - a[0]) + u[1] * (point[1] - a[1]) > CLOSE * scale:
                points.append(point)
                moved = True
        inner = _hull(points)
        if not moved:
            break
    outer = _intersection(support.lines)
    gap = max(
        (
            max(u * x + v * y for x, y in outer) - max(u * x + v * y for x, y in inner)
            for u, v, _ in support.lines
        ),
        default=0.0,
    )
    return RiskBody(
        n=size,
        epsilon=float(exact),
        delta=float(lost),
        counts=(pair[0], pair[1]),
        inner=np.array(inner),
        outer=np.array(outer),
        gap=max(0.0, gap),
        settled=gap <= 10 * CLOSE * scale,
    )


Point = tuple[float, float]


def _outward(a: Point, b: Point) -> tuple[float, float]:
    """The unit normal to the right of a -> b: outwards, for a counter-clockwise polygon."""
    across, up = b[1] - a[1], a[0] - b[0]
    size = math.hypot(across, up)
    return across / size, up / size


def _hull(points: list[Point]) -> list[Point]:
    """The convex hull, counter-clockwise, without points on its edges (Andrew's monotone chain)."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered

    def half(run: list[Point]) -> list[Point]:
        out: list[Point] = []
        for p in run:
            while len(out) > 1 and _turn(out[-2], out[-1], p) <= 1e-15:
                out.pop()
            out.append(p)
        return out[:-1]

    return half(ordered) + half(ordered[::-1])


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _intersection(lines: list[tuple[float, float, float]]) -> list[Point]:
    """The corners of the set u x + v y <= w for all lines: a large square, cut by each."""
    far = 4 * max(1.0, *(abs(w) for *_, w in lines))
    corners: list[Point] = [(-far, -far), (far, -far), (far, far), (-far, far)]
    for u, v, w in lines:
        kept: list[Point] = []
        for i, here in enumerate(corners):
            following = corners[(i + 1) % len(corners)]
            a, b = u * here[0] + v * here[1] - w, u * following[0] + v * following[1] - w
            if a <= 0:
                kept.append(here)
            if (a < 0 < b) or (b < 0 < a):
                share = a / (a - b)
                kept.append(
                    (here[0] + share * (following[0] - here[0]), here[1] + share * (following[1] - here[1]))
                )
        corners = kept
    return corners
