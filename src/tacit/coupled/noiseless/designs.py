"""Boxes below the density of a row's products: what least squares needs, and where a prism is found for it.

Rows are centred: g_1..g_d with symmetric laws that fall from their middle, and h = b_0 + sum b_j g_j + error with
|b_j| at most declared. Part 0 publishes the means of (g_1, .., g_d, h), part k those of (g_k g_1, .., g_k g_d, g_k h):
the k-th normal equation, d + 1 averages of d + 1 numbers. With u = g_k^2 the products have the density

    p(u, u_j, z) = f_k(sqrt u) prod_j f_j(u_j / sqrt u) f_e( (z - sum b_j u_j - b_k u)/sqrt u - b_0 ) / u^{(d+1)/2}

(mean over both signs of g_k, which are alike in the bound), and theorem `regression-parts` bounds it from below on a
box. Every product is recorded on a grid; a grid point whose rounding cell lies in the box has at least height x cell.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.coupled.noiseless.prisms import Prism, sides
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole

__all__ = ["Box", "Density", "Design", "density"]

_TEXT = re.compile(
    r"\s*(uniform|normal|laplace)\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*"
    r"(?:,\s*clamp\s*=\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)\s*)?\)\s*"
)
_PIECES = 48
_SAFE = 1 - 1e-9
HINT = 'such as "uniform(-1, 1)", "normal(0, 1, clamp=(-2.5, 2.5))" or "laplace(0, 1, clamp=(-3, 3))"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Density:
    """A symmetric density around `centre` that falls outwards, cut at `centre` +- `half`; the tails sit on the ends."""

    name: str
    kind: str
    centre: float
    scale: float
    half: float

    def at(self, distance: np.ndarray) -> np.ndarray:
        """The density so far from the middle; 0 from the ends on."""
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


def density(text: object) -> Density:
    """Read a law; unbounded, constant and lopsided ones are refused."""
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
        return Density(
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
    return Density(name=name, kind=kind, centre=first, scale=second, half=half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Intervals, one a coordinate, on which the density of the products is at least `height`."""

    intervals: tuple[tuple[float, float], ...]
    height: float

    @property
    def mass(self) -> float:
        """Height times volume."""
        return self.height * math.prod(b - a for a, b in self.intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Regressors and error with their laws, and bounds on the coefficients of the centred columns."""

    regressors: tuple[Density, ...]
    error: Density
    slopes: tuple[float, ...]
    level: float = 0.0
    points: int = 100

    def __post_init__(self) -> None:
        if not self.regressors:
            raise InvalidParameter(parameter="regressors", value=0, must="be one at least")
        if len(self.slopes) != len(self.regressors):
            raise InvalidParameter(
                parameter="slopes",
                value=len(self.slopes),
                must="be one a regressor: a bound on its coefficient",
            )
        for value in (*self.slopes, self.level):
            if not (math.isfinite(value) and value >= 0):
                raise InvalidParameter(parameter="slopes", value=value, must="be bounds of at least 0")
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
        """How far the centred response can be from 0."""
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

    def box(self, part: int, intervals: Sequence[tuple[float, float]]) -> Box:
        """The height on a box that is symmetric in all coordinates but the square; refused outside of the support."""
        given = tuple((float(a), float(b)) for a, b in intervals)
        lows, halves = self.lows(part), self.half_widths(part)
        if len(given) != self.dimension + 1:
            raise InvalidParameter(
                parameter="prism", value=len(given), must=f"have {self.dimension + 1} intervals"
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
        if not height > 0:
            raise InvalidParameter(
                parameter="prism", value=0.0, must="hold only values that can occur: its height is 0"
            )
        return Box(intervals=given, height=height)

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

    def prism(self, part: int, box: Box) -> Prism:
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

    def best_box(self, part: int) -> Box:
        """A good box, found by moving its sides; any box is right, a better one is smaller in epsilon."""
        return _best_box(self, part)

    def _searched(self, part: int) -> Box:
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

    def _descent(self, part: int, start: float, lower: float, own: float) -> tuple[float, Box | None]:
        """Move one side, all sides, or all sides with the low end of the square, as long as it helps."""
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
    ) -> tuple[float, Box | None]:
        """(What the box costs for one row: the squared norm of half range/standard deviation; the box)."""
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
def _best_box(design: Design, part: int) -> Box:
    """Kept: a curve asks for the same box at every delta."""
    return design._searched(part)
