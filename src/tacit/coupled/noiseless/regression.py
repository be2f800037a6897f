"""Exact least squares by moments over disjoint parts (Groce 2014, 6.4): the (epsilon, delta), and the fit itself.

Part 0 publishes means of the columns (for a constant), part k the k-th normal equation. Parts have disjoint rows that
are fixed in advance, so that the largest epsilon and delta of a part hold for all together (Thm 6.8). Products are
recorded on a declared grid. Assume a prism (theorem `prism-sums`, with boxes by `regression-parts`), or, for one
regressor, that the distributions and the slope are known.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, shown, within_reach
from tacit.coupled.noiseless.prisms import (
    MOST_POINTS,
    PairLaw,
    Prism,
    pair_epsilon,
    plane_epsilon,
    prism_epsilon,
    sides,
)
from tacit.coupled.noiseless.row_laws import RowLaw, laplace, normal, uniform
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import flag, listed, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up

# Boxes below the density of a row's products: what least squares needs, and where a prism is found for it.
#
# Rows are centred: g_1..g_d with symmetric distributions that fall from their middle, and h = b_0 + sum b_j
# g_j + error with
# |b_j| at most declared. Part 0 publishes the means of (g_1, .., g_d, h), part k those of (g_k g_1, .., g_k g_d, g_k
# h): the k-th normal equation, d + 1 averages of d + 1 numbers. With u = g_k^2 the products have the density
#
#     p(u, u_j, z) = f_k(sqrt u) prod_j f_j(u_j / sqrt u) f_e( (z - sum b_j u_j - b_k u)/sqrt u - b_0 ) / u^{(d+1)/2}
#
# (mean over both signs of g_k, which are alike in the bound), and theorem `regression-parts` bounds it from below on
# a box. Every product is recorded on a grid; a grid point whose rounding cell lies in the box has at least height x
# cell.

_TEXT = re.compile(
    r"\s*(uniform|normal|laplace)\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*"
    r"(?:,\s*clamp\s*=\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)\s*)?\)\s*"
)
_PIECES = 48
_SAFE = 1 - 1e-9
HINT = 'such as "uniform(-1, 1)", "normal(0, 1, clamp=(-2.5, 2.5))" or "laplace(0, 1, clamp=(-3, 3))"'


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDensity:
    """A symmetric density around `centre` that falls outwards, cut at `centre` +- `half`, with the tails at the
    ends.
    """

    name: str
    kind: str
    centre: float
    scale: float
    half: float

    def at(self, distance: np.ndarray) -> np.ndarray:
        """The density at this distance from the middle; 0 from the ends on."""
        z = np.abs(distance)
        if self.kind == "uniform":
            inside = np.full_like(z, 1 / (2 * self.half))
            return np.where(z <= self.half, inside, 0.0)
        if self.kind == "normal":
            inside = np.exp(-((z / self.scale) ** 2) / 2) / (self.scale * math.sqrt(2 * math.pi))
        else:
            inside = np.exp(-z / self.scale) / (2 * self.scale)
        return np.where(z < self.half, inside, 0.0)

    @property
    def variance(self) -> float:
        """Not below the variance of the recorded value."""
        if self.kind == "uniform":
            return self.half**2 / 3
        return self.scale**2 * (1 if self.kind == "normal" else 2)


def density(text: object) -> RowDensity:
    """Reads a distribution; refuses unbounded, constant and asymmetric ones."""
    match = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) < 200 else None
    try:
        if match is None:
            raise ValueError
        kind, (first, second) = match[1], (float(match[2]), float(match[3]))
        ends = None if match[4] is None else (float(match[4]), float(match[5]))
    except ValueError:
        raise InvalidParameter(
            parameter="rows", value=str(text)[:60], must="name the law of a column", hint=HINT
        ) from None
    name = " ".join(str(text).split())
    if kind == "uniform":
        if ends is not None or not first < second:
            raise InvalidParameter(
                parameter="rows",
                value=name,
                must="have low below high, and no clamp",
                hint="a constant column leaves no prism: nothing hides a row",
            )
        return RowDensity(
            name=name, kind=kind, centre=(first + second) / 2, scale=1.0, half=(second - first) / 2
        )
    if not second > 0:
        raise InvalidParameter(
            parameter="rows",
            value=name,
            must="have a positive scale",
            hint="a constant column leaves no prism: nothing hides a row",
        )
    if ends is None:
        raise InvalidParameter(
            parameter="rows",
            value=name,
            must="be clamped",
            hint="a row that may take any value, however large, shows through every sum: no privacy is possible",
        )
    half = ends[1] - first
    if not ends[0] < first < ends[1] or abs((first - ends[0]) - half) > 1e-9 * half:
        raise InvalidParameter(
            parameter="rows", value=name, must="be clamped at two ends that are equally far from its middle"
        )
    return RowDensity(name=name, kind=kind, centre=first, scale=second, half=half)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignBox:
    """Intervals, one a coordinate, on which the density of the products is at least `height`."""

    intervals: tuple[tuple[float, float], ...]
    height: float

    @property
    def mass(self) -> float:
        """Height times volume."""
        return self.height * math.prod(b - a for a, b in self.intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Regressors and error with their distributions, and bounds on the coefficients of the centred columns."""

    regressors: tuple[RowDensity, ...]
    error: RowDensity
    slopes: tuple[float, ...]
    level: float = 0.0
    points: int = 100

    def __post_init__(self) -> None:
        refuse_if(not self.regressors, "regressors", 0, "be one at least")
        if len(self.slopes) != len(self.regressors):
            raise InvalidParameter(
                parameter="slopes",
                value=len(self.slopes),
                must="be one a regressor: a bound on its coefficient",
            )
        for value in (*self.slopes, self.level):
            refuse_if(not (math.isfinite(value) and value >= 0), "slopes", value, "be bounds of at least 0")
        if whole("points", self.points, least=2) % 2:
            raise InvalidParameter(
                parameter="points", value=self.points, must="be even, so that the middle lies on the grid"
            )

    @property
    def dimension(self) -> int:
        """The number of regressors."""
        return len(self.regressors)

    @property
    def response_half(self) -> float:
        """The largest distance of the centred response from 0."""
        return (
            self.error.half
            + self.level
            + sum(b * g.half for b, g in zip(self.slopes, self.regressors, strict=True))
        )

    def half_widths(self, part: int) -> tuple[float, ...]:
        """Half the range of each published product of a part."""
        if part == 0:
            return (*(g.half for g in self.regressors), self.response_half)
        own = self.regressors[part - 1].half
        return (
            *(own * g.half / (2 if j == part - 1 else 1) for j, g in enumerate(self.regressors)),
            own * self.response_half,
        )

    def lows(self, part: int) -> tuple[float, ...]:
        """The low end of each range."""
        return tuple(
            0.0 if part and j == part - 1 else -half for j, half in enumerate(self.half_widths(part))
        )

    def steps(self, part: int) -> tuple[float, ...]:
        """The grid on which each product is recorded."""
        return tuple(2 * half / self.points for half in self.half_widths(part))

    def box(self, part: int, intervals: Sequence[tuple[float, float]]) -> DesignBox:
        """The height on a box that is symmetric in all coordinates except the square; an error outside the support."""
        given = tuple((float(a), float(b)) for a, b in intervals)
        lows, halves = self.lows(part), self.half_widths(part)
        refuse_if(
            len(given) != self.dimension + 1, "prism", len(given), f"have {self.dimension + 1} intervals"
        )
        for (a, b), low, half in zip(given, lows, halves, strict=True):
            slack = 1e-9 * half
            if not (low - slack <= a < b <= low + 2 * half + slack):
                raise InvalidParameter(
                    parameter="prism",
                    value=f"{a:g},{b:g}",
                    must=f"lie inside the support, from {low:g} to {low + 2 * half:g}, low end first",
                )
        reach = [max(abs(a), abs(b)) for a, b in given]
        height = self._flat(reach) if part == 0 else self._square(part - 1, given[part - 1], reach)
        refuse_if(not height > 0, "prism", 0.0, "hold only values that can occur: its height is 0")
        return DesignBox(intervals=given, height=height)

    def _flat(self, reach: Sequence[float]) -> float:
        """Part 0: the density of (g, h) at the far corner."""
        far = reach[-1] + self.level + sum(b * r for b, r in zip(self.slopes, reach, strict=False))
        values = [float(g.at(np.array(r))) for g, r in zip(self.regressors, reach, strict=False)]
        return math.prod(values) * float(self.error.at(np.array(far))) * _SAFE

    def _square(self, own: int, interval: tuple[float, float], reach: Sequence[float]) -> float:
        """Part k: the least over pieces [u1, u2] of the square's interval, each factor at its worse end."""
        low, high = max(interval[0], 0.0), interval[1]
        if low <= 0:
            return 0.0
        cuts = np.geomspace(low, high, _PIECES + 1)
        u1, u2 = cuts[:-1], cuts[1:]
        root1, root2 = np.sqrt(u1), np.sqrt(u2)
        value = self.regressors[own].at(root2 * (1 - 1e-12)) / u2 ** ((self.dimension + 1) / 2)
        far = reach[-1] / root1 + self.slopes[own] * root2 + self.level
        for j, g in enumerate(self.regressors):
            if j != own:
                value = value * g.at(reach[j] / root1 * (1 - 1e-12))
                far = far + self.slopes[j] * reach[j] / root1
        value = value * self.error.at(far * (1 - 1e-12))
        return float(np.min(value)) * _SAFE

    def prism(self, part: int, box: DesignBox) -> Prism:
        """The box on the grid of recorded products."""
        steps, lows = self.steps(part), self.lows(part)
        count = sides(box.intervals, lows, steps)
        if min(count) < 2:
            raise InvalidParameter(
                parameter="prism", value=min(count), must="hold two points of the grid a side, at least",
                hint="declare more points",
            )  # fmt: skip
        cells = math.prod(n * s for n, s in zip(count, steps, strict=True))
        mass = min(Fraction(1), Fraction(box.height * cells * _SAFE))
        return Prism(mass=mass, points=count, half_ranges=(self.points // 2,) * (self.dimension + 1))

    def best_box(self, part: int) -> DesignBox:
        """A good box, found by moving its sides. Any box is valid; a better one has a smaller epsilon."""
        return _best_box(self, part)

    def _searched(self, part: int) -> DesignBox:
        starts = itertools.product(
            (0.6, 0.3, 0.1, 0.03), (0.5,) if part else (0.0,), (1.0, 0.5, 0.2) if part else (0.0,)
        )
        cost, box = min((self._descent(part, *start) for start in starts), key=lambda found: found[0])
        if box is None or math.isinf(cost):
            raise InvalidParameter(
                parameter="slopes",
                value=max(self.slopes),
                must="leave a box in which every value can occur",
                hint="declare smaller bounds on the coefficients, or a wider error",
            )
        return box

    def _descent(self, part: int, start: float, lower: float, own: float) -> tuple[float, DesignBox | None]:
        """Moves one side, all sides, or all sides with the low end of the square, as long as epsilon falls."""
        halves, d = self.half_widths(part), self.dimension
        share = [own if part and j == part - 1 else start for j in range(d + 1)]
        best = self._tried(part, halves, share, lower)
        if math.isinf(best[0]):
            return best
        others = [j for j in range(d + 1) if not part or j != part - 1]
        moves: list[tuple[list[int], int]] = [([j], 0) for j in range(d + 1)] + [(others, 0)]
        if part:
            moves += [([], 1), (others, 2)]
        for _ in range(40):
            before = best[0]
            for factor in (0.8, 0.93, 0.98, 0.995, 1.005, 1.02, 1.07, 1.25):
                for places, power in moves:
                    trial = [min(1.0, s * factor) if j in places else s for j, s in enumerate(share)]
                    down = min(0.95, lower * factor**power)
                    found = self._tried(part, halves, trial, down)
                    if found[0] < best[0]:
                        best, share, lower = found, trial, down
            if not best[0] < before * (1 - 1e-3):
                break
        return best

    def _tried(
        self, part: int, halves: Sequence[float], share: Sequence[float], lower: float
    ) -> tuple[float, DesignBox | None]:
        """(The cost of the box for one row: the squared norm of half range/standard deviation; the box)."""
        intervals = [(-h * s, h * s) for h, s in zip(halves, share, strict=True)]
        if part:
            top = 2 * halves[part - 1] * share[part - 1]
            intervals[part - 1] = (top * lower, top)
        try:
            box = self.box(part, intervals)
        except InvalidParameter:
            return math.inf, None
        cost = sum(12 * h**2 / (b - a) ** 2 for h, (a, b) in zip(halves, box.intervals, strict=True))
        return cost / min(1.0, box.mass), box


@lru_cache(maxsize=64)
def _best_box(design: Design, part: int) -> DesignBox:
    """The box is kept, since a curve asks for the same one at every delta."""
    return design._searched(part)


# Regression on one regressor with known distributions: the exact distribution of a recorded pair of products,
# as rationals.
#
# Columns are recorded on a fine grid; the products (g, h) or (g^2, g h) of a row are rounded to a coarse one, on
# which the distribution of the sums is computed (`plane`). The coarse grid is the finest that keeps the sums
# on few enough
# points.

_FINE = 60
_SPAN = 16.0


def recorded(law: RowDensity) -> RowLaw:
    """The centred column on a grid of a 60th of its half range."""
    half = Fraction(repr(law.half))
    step = half / _FINE
    if law.kind == "uniform":
        return uniform(-half, half, grid=step)
    make = normal if law.kind == "normal" else laplace
    return make(0, Fraction(repr(law.scale)), clamp=(-half, half), grid=step)


@lru_cache(maxsize=16)
def places(design: Design, part: int, slope: float, coarse: tuple[int, int]) -> NDArray[np.int64]:
    """[i, j] -> the recorded pair of products of the i-th value of the regressor and the j-th value of the error.

    In exact arithmetic. The published sum is added up from this table, so that its distribution is the claimed one.
    """
    g, e = recorded(design.regressors[0]), recorded(design.error)
    b = Fraction(repr(slope))
    lows, widths = _ranges(part, g.high, e.high + abs(b) * g.high)
    out = np.zeros((len(g.weights), len(e.weights), 2), dtype=np.int64)
    for i in range(len(g.weights)):
        x = g.low + i * g.step
        for j in range(len(e.weights)):
            y = b * x + e.low + j * e.step
            pair = (x, y) if part == 0 else (x * x, x * y)
            for axis in (0, 1):
                out[i, j, axis] = _rounded((pair[axis] - lows[axis]) / widths[axis] * coarse[axis])
    out.flags.writeable = False
    return out


def pair_law(design: Design, part: int, slope: float, coarse: tuple[int, int]) -> tuple[PairLaw, Fraction]:
    """(The distribution of the recorded pair on this many steps a coordinate; its distance from the named one, for
    one row).
    """
    g, e = recorded(design.regressors[0]), recorded(design.error)
    where = places(design, part, slope, coarse)
    out: dict[tuple[int, int], Fraction] = {}
    for i, p in enumerate(g.weights):
        row: dict[tuple[int, int], Fraction] = {}
        for j, q in enumerate(e.weights):
            place = (int(where[i, j, 0]), int(where[i, j, 1]))
            row[place] = row.get(place, Fraction(0)) + q
        for place, q in row.items():
            out[place] = out.get(place, Fraction(0)) + p * q
    return PairLaw(weights=out, half_ranges=(coarse[0] // 2, coarse[1] // 2)), g.rounding + e.rounding


def known_means(
    design: Design, part: int, slope: float, coarse: tuple[int, int], columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(Means of the recorded products of centred columns (g, h), the steps they are recorded in).

    The regressor and the error around the known line are put on the grids of `recorded` first.
    """
    g, e = recorded(design.regressors[0]), recorded(design.error)
    i = _nearest(columns[:, 0], g)
    j = _nearest(columns[:, 1] - slope * (float(g.low) + i * float(g.step)), e)
    total = places(design, part, slope, coarse)[i, j].sum(axis=0, dtype=np.int64)
    lows, widths = _ranges(part, g.high, e.high + abs(Fraction(repr(slope))) * g.high)
    steps = np.array([float(w) / c for w, c in zip(widths, coarse, strict=True)])
    return np.array([float(x) for x in lows]) + steps * (total / len(columns)), steps


def _nearest(values: NDArray[np.float64], law: RowLaw) -> NDArray[np.int64]:
    found = np.rint((values - float(law.low)) / float(law.step))
    return np.clip(found, 0, len(law.weights) - 1).astype(np.int64)


def _ranges(
    part: int, own: Fraction, limit: Fraction
) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    if part == 0:
        return (-own, -limit), (2 * own, 2 * limit)
    return (Fraction(0), -own * limit), (own * own, 2 * own * limit)


def _rounded(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def known_part(
    design: Design,
    part: int,
    slope: float,
    hidden: int,
    delta: float,
    *,
    steps: tuple[int, int] | None = None,
    most_points: int = MOST_POINTS,
) -> tuple[float, float, dict[str, Any]]:
    """(epsilon of a part, the least delta at any epsilon, the grid in details)."""
    first, second = steps or _steps(design, part, slope, hidden, most_points)
    law, rounding = pair_law(design, part, slope, (first, second))
    # Both worlds are off by this much at most: 60 is far above 1 + e^epsilon for every epsilon up to 4.
    loss = up(rounding * hidden)
    epsilon, floor = plane_epsilon(law, hidden=hidden, delta=delta - 60 * loss, most_points=2 * most_points)
    return (epsilon if epsilon <= 4 else math.inf), floor, {"steps": [first, second]}


def _steps(design: Design, part: int, slope: float, hidden: int, most_points: int) -> tuple[int, int]:
    """The finest even numbers of steps with which the sums stay on this many points."""
    rough, _ = pair_law(design, part, slope, (20, 20))
    spreads = [_spread(rough.weights, axis) / 20 for axis in (0, 1)]
    # Both windows are about _SPAN standard deviations of the sum; their product is kept below the limit.
    room = math.sqrt(0.7 * most_points) / (_SPAN * math.sqrt(hidden))
    first, second = (max(2, 2 * math.floor(min(room / s, design.points) / 2)) for s in spreads)
    return first, second


def _spread(weights: Mapping[tuple[int, int], Fraction], axis: int) -> float:
    mean = sum((k[axis] * w for k, w in weights.items()), Fraction(0))
    return math.sqrt(float(sum(((k[axis] - mean) ** 2 * w for k, w in weights.items()), Fraction(0))))


ASSUMPTIONS = ("known", "prism")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Coefficients of the columns as they were given, their standard errors, and the answer's (epsilon, delta)."""

    intercept: float | None
    slopes: tuple[float, ...]
    standard_errors: tuple[float, ...]
    answer: ExactAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRegression:
    """The rows behind each mean, their grids, and the resulting promise."""

    design: Design
    sizes: tuple[int, ...]
    constant: bool
    answer: ExactAnswer
    slope: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the distribution is assumed to be known.
        Then products are recorded on the grids that the claim is about."""
        return bool(self.answer.details["assume"] == "known")

    def steps(self, part: int) -> NDArray[np.float64]:
        """The grids on which the products of a part are recorded."""
        if not self.known:
            return np.array(self.design.steps(part))
        coarse = np.array(self.coarse(part), dtype=np.float64)
        return 2 * np.array(self.design.half_widths(part)) / coarse

    def coarse(self, part: int) -> tuple[int, int]:
        """With a known distribution: the number of steps in which each of the two products is recorded."""
        first, second = self.answer.details["parts"][self.parts.index(part)]["steps"]
        return int(first), int(second)

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers of the parts; part 0 is that of the constant."""
        d = self.design.dimension
        return tuple(range(d + 1)) if self.constant else tuple(range(1, d + 1))

    def moments(self, regressors: ArrayLike, response: ArrayLike) -> list[NDArray[np.float64]]:
        """The published means, a vector a part: centred, clamped, multiplied, recorded on the grid, added up."""
        g, h = np.asarray(regressors, dtype=np.float64), np.asarray(response, dtype=np.float64)
        d, n = self.design.dimension, sum(self.sizes)
        if g.shape not in ((n, d), (n,)) or h.shape != (n,):
            raise InvalidParameter(
                parameter="rows",
                value=g.shape[0] if g.ndim else 0,
                must=f"be {n} rows of {d} regressors and a response",
            )
        g = g.reshape(n, d)
        middle = np.array([x.centre for x in self.design.regressors])
        half = np.array([x.half for x in self.design.regressors])
        # A value that is missing counts as the middle: nothing but its row may tell.
        g = np.clip(np.nan_to_num(g - middle, nan=0.0), -half, half)
        limit = self.design.response_half
        h = np.clip(np.nan_to_num(h - self.design.error.centre, nan=0.0), -limit, limit)
        out, start = [], 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            rows = slice(start, start + size)
            columns = np.column_stack([g[rows], h[rows]])
            start += size
            if self.known:
                out.append(known_means(self.design, part, self.slope, self.coarse(part), columns)[0])
                continue
            products = columns if part == 0 else columns * g[rows, part - 1 : part]
            steps, lows = np.array(self.design.steps(part)), np.array(self.design.lows(part))
            recorded = np.clip(np.rint((products - lows) / steps), 0, self.design.points).astype(np.int64)
            out.append(lows + steps * (recorded.sum(axis=0, dtype=np.int64) / size))
        return out

    def fit(self, regressors: ArrayLike, response: ArrayLike) -> Fitted:
        """Solves the normal equations from the published means; reads nothing else from the rows.

        Standard errors take the declared variance of the error, and include the differences between the parts and the
        rounding.
        """
        means = self.moments(regressors, response)
        d = self.design.dimension
        first = means[0] if self.constant else np.zeros(d + 1)
        lines = means[1:] if self.constant else means
        size = d + 1 if self.constant else d
        matrix, right = np.zeros((size, size)), np.zeros(size)
        if self.constant:
            matrix[0] = [1.0, *first[:d]]
            right[0] = first[d]
        for k, line in enumerate(lines):
            matrix[k + size - d] = [first[k], *line[:d]] if self.constant else line[:d]
            right[k + size - d] = line[d]
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            inverse = np.full((size, size), math.nan)
        found = inverse @ right
        covariance = inverse @ self._spread(found, first, lines) @ inverse.T
        middles = np.array([x.centre for x in self.design.regressors])
        slopes = found[size - d :]
        intercept = None
        if self.constant:
            # Back from centred columns: the constant moves by the slopes times the middles.
            back = np.eye(size)
            back[0, 1:] = -middles
            covariance = back @ covariance @ back.T
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if self.constant:
            intercept = float(found[0] + self.design.error.centre - slopes @ middles)
        return Fitted(
            intercept=intercept,
            slopes=tuple(float(b) for b in slopes),
            standard_errors=tuple(float(e) for e in errors),
            answer=self.answer,
        )

    def _spread(self, found: Any, first: Any, lines: Any) -> NDArray[np.float64]:
        """The covariance of the equations' errors: the model's error, the constant over two parts, the rounding."""
        d, size = self.design.dimension, len(found)
        variance = self.design.error.variance
        out = np.zeros((size, size))
        slopes = found[size - d :]
        n0 = self.sizes[0]
        if self.constant:
            out[0, 0] = variance / n0 + self._rounding(0, slopes, n0)
        for k, line in enumerate(lines):
            n = self.sizes[k + size - d]
            square = max(float(line[k]), 0.0)
            value = variance * square / n + self._rounding(k + 1, slopes, n)
            if self.constant:
                value += found[0] ** 2 * max(square - float(first[k]) ** 2, 0.0) * (1 / n0 + 1 / n)
            out[k + size - d, k + size - d] = value
        return out

    def _rounding(self, part: int, slopes: Any, n: int) -> float:
        moved = np.abs(np.append(slopes, 1.0)) * self.steps(part)
        if self.known:
            # So few steps that rounding may lean one way in every row: half a step each, not averaged out.
            return float(np.sum(moved) / 2) ** 2
        return float(moved @ moved) / 12 / n


def exact_regression(
    regressors: str | Sequence[str],
    error: str,
    *,
    n: int | None = None,
    sizes: Sequence[int] | None = None,
    delta: float,
    slopes: Sequence[float] | float = 0.0,
    level: float = 0.0,
    constant: bool = True,
    unknown_rows: int | None = None,
    assume: str = "prism",
    prisms: Sequence[Sequence[tuple[float, float]] | None] | None = None,
    points: int = 100,
) -> ExactRegression:
    """The epsilon, at this delta, of publishing exact least squares of n rows.

    `regressors` and `error` are distributions; `slopes` bound the coefficients (for `assume="known"`: are the
    coefficient) and
    `level` the constant of the centred columns. `sizes` are the numbers of rows of the parts. Otherwise n is
    divided so that the parts need about the same epsilon. `prisms` are boxes, one for each part (None: the best
    box found).
    """
    target = probability("delta", delta, below_one=True)
    refuse_if(not target > 1e-100, "delta", delta, "be above 0: an exact answer is never private with 0")
    laws = [
        density(x)
        for x in ([regressors] if isinstance(regressors, str) else listed("regressors", regressors))
    ]
    bounds = [slopes] * len(laws) if isinstance(slopes, int | float) else list(listed("slopes", slopes))
    design = Design(
        regressors=tuple(laws),
        error=density(error),
        slopes=tuple(abs(float(b)) for b in bounds),
        level=float(level),
        points=points,
    )
    parts = tuple(range(len(laws) + 1)) if flag("constant", constant) else tuple(range(1, len(laws) + 1))
    if assume not in ASSUMPTIONS:
        raise UnknownName(what="assumption", name=str(assume), known=ASSUMPTIONS)
    boxes: list[DesignBox | None] = [None] * len(parts)
    if assume == "prism":
        given = [None] * len(parts) if prisms is None else list(listed("prisms", prisms))
        refuse_if(len(given) != len(parts), "prisms", len(given), f"be {len(parts)}, one a part")
        boxes = [
            design.best_box(p) if b is None else design.box(p, b) for p, b in zip(parts, given, strict=True)
        ]
    elif len(laws) != 1 or level != 0:
        raise NoLaw(
            operation="a regression with known laws",
            reason="the law of more than two sums at once is not computed, nor one with a constant",
            hint='assume "prism"',
        )
    shared = _sizes(design, parts, boxes, n, sizes)
    known = 0 if unknown_rows is None else sum(shared) - whole("unknown_rows", unknown_rows)
    if known < 0:
        raise InvalidParameter(
            parameter="unknown_rows", value=unknown_rows, must=f"be at most the number of rows, {sum(shared)}"
        )
    told, worst = [], 0.0
    pair: float | None = 0.0
    for part, box, size in zip(parts, boxes, shared, strict=True):
        hidden = size - 1 - known
        if hidden < 1:
            raise InvalidParameter(
                parameter="unknown_rows",
                value=unknown_rows,
                must=f"leave two rows unknown in every part, also if all {known} known ones are in one of {size}",
            )
        if box is None:
            epsilon, _, details = known_part(design, part, float(bounds[0]), hidden, target)
            pair = None
        else:
            prism = design.prism(part, box)
            epsilon, _ = prism_epsilon(prism, hidden=hidden, delta=target)
            if pair is not None:
                apart = pair_epsilon(prism, hidden=hidden, delta=target)
                pair = max(pair, apart) if math.isfinite(apart) else None
            details = {"prism": [list(x) for x in box.intervals], "mass": float(prism.mass)}
        if math.isinf(epsilon):
            rows = [n - 1 - known for n in shared]
            smallest = _within_reach(design, parts, boxes, rows, float(bounds[0]), target)
            raise delta_out_of_reach(f"regression (part {part} of {size} rows)", target, smallest, ours=True)
        worst = max(worst, epsilon)
        told.append({"part": part, "rows": size, "epsilon": epsilon, **details})
    answer = _answer(design, told, assume, (worst, pair), target, sum(shared), known, bounds)
    slope = float(bounds[0]) if assume == "known" else 0.0
    return ExactRegression(design=design, sizes=shared, constant=constant, answer=answer, slope=slope)


def _within_reach(
    design: Design,
    parts: Sequence[int],
    boxes: Sequence[DesignBox | None],
    rows: Sequence[int],
    slope: float,
    delta: float,
) -> float:
    """About the smallest delta that some epsilon reaches in every part, from above."""

    def reached(at: float) -> bool:
        for part, box, hidden in zip(parts, boxes, rows, strict=True):
            if box is None:
                epsilon, _, _ = known_part(design, part, slope, hidden, at)
            else:
                epsilon, _ = prism_epsilon(design.prism(part, box), hidden=hidden, delta=at)
            if math.isinf(epsilon):
                return False
        return True

    # With a known distribution one look takes long: to a factor of e.
    return within_reach(reached, delta, steps=1.0 if None in boxes else 0.1)


def _sizes(
    design: Design, parts: Sequence[int], boxes: Sequence[DesignBox | None], n: object, sizes: Any
) -> tuple[int, ...]:
    if (n is None) == (sizes is None):
        raise InvalidParameter(parameter="n", value=n, must="be given, or sizes, not both")
    if sizes is not None:
        found = tuple(whole("sizes", x, least=2) for x in listed("sizes", sizes))
        refuse_if(len(found) != len(parts), "sizes", len(found), f"be {len(parts)}, one a part")
        return found
    rows = whole("n", n, least=2 * len(parts))
    if any(b is None for b in boxes):
        costs = [1.0 + 0.6 * (p > 0) for p in parts]
    else:
        # The squared strength falls like 1/rows: shares in proportion to it make the parts alike.
        costs = [design.prism(p, b).strength(10**9) ** 2 for p, b in zip(parts, boxes, strict=True) if b]
    shared = [max(2, math.floor(rows * c / sum(costs))) for c in costs]
    shared[-1] += rows - sum(shared)
    return tuple(shared)


def _answer(
    design: Design,
    told: list[dict[str, Any]],
    assume: str,
    epsilons: tuple[float, float | None],
    delta: float,
    rows: int,
    known: int,
    slopes: Any,
) -> ExactAnswer:
    names = ", ".join(f"x{j + 1} ~ {g.name}" for j, g in enumerate(design.regressors))
    bounds = ", ".join(f"{float(b):g}" for b in slopes)
    model = f"{names}, independent, and response = slopes times centred regressors + error, error ~ {design.error.name}"
    if assume == "known":
        grids = [f"{name} {recorded(law).describe()}" for name, law in
                 (("regressor", design.regressors[0]), ("error", design.error))]  # fmt: skip
        first = (
            f"the rows are independent draws of a law that is known: {model}, with slope {bounds}; centred, "
            f"{' and '.join(grids)}, and the products of part {_steps_told(told)}"
        )
    else:
        first = (
            f"the rows are independent draws of one law whose recorded products lie above prisms, {_prisms_told(told)}"
            f", as they do if {model}, with slopes of at most {bounds} in size"
        )
    knows = (
        f"an adversary knows none of the {rows} rows"
        if not known
        else f"an adversary knows at most {known} of the {rows} rows, and they are independent of the others"
    )
    return ExactAnswer(
        statistic="least-squares regression by moments over disjoint parts",
        epsilon=epsilons[0],
        epsilon_pair=epsilons[1],
        delta=delta,
        assumptions=(
            first,
            knows,
            "which rows are in which part was fixed in advance",
            "nothing else that depends on these rows is published",
        ),
        theorem="regression-parts",
        simulator="the other rows, with the middle of the range in place of each product of the protected one",
        rows=rows,
        unknown_rows=rows - known,
        family=f"independent rows, {'known law' if assume == 'known' else 'prisms'}: {model}; slopes {bounds}",
        details={"assume": assume, "parts": told, "points": design.points},
    )


def _steps_told(told: list[dict[str, Any]]) -> str:
    return ", of part ".join(f"{t['part']} in {t['steps'][0]} and {t['steps'][1]} steps" for t in told)


def _prisms_told(told: list[dict[str, Any]]) -> str:
    """The box and its mass, part after part."""
    return ", ".join(
        f"in part {t['part']} of mass {shown(t['mass'], 4)} over "
        + " x ".join(f"[{a:.4g}, {b:.4g}]" for a, b in t["prism"])
        for t in told
    )
