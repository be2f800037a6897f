"""Composed privacy loss, certified from both sides, for one direction of neighbouring.

Above: connect-the-dots on a grid, tails cut pessimistically, convolution by bounded Fourier sums.
Below: the same numbers. With Z the true and Z~ = Z M the gridded likelihood ratio, M has mean 1 given Z and
is a product of two-point factors a step apart, so E(zM - T)_+ exceeds (z - T)_+ by a bump around T, which
chords of the (convex) true curve bound: see `docs/theory/grid-from-below.md`. Both errors are of second
order in the step, so that grids stay small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import NotCertified
from tacit.guarantees.losses.grid import Gridded, gridded
from tacit.guarantees.losses.laws import AtomicLaw, LossLaw
from tacit.guarantees.losses.pair import Pair
from tacit.guarantees.losses.transform import Composed, LogMoments, compose
from tacit.guarantees.rounding import Interval

__all__ = ["Engine"]

_MOST_NODES = 1 << 22
_MOST_CELLS = 1 << 22
_TOTAL_CELLS = 1 << 26
_SAMPLE = 48


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """A composition around one target, with the error accounts that both curves need."""

    composed: Composed
    slack: float
    infinite_high: float
    infinite_low: float
    log_gain: float
    doubtful: float
    spread: float
    """s: the standard deviation that bounds the gridding factor M."""
    deviation: float
    """Square root of the bound on the variance of M."""
    exact: bool

    def _between(self, epsilon: float, end: int) -> float:
        step = self.composed.step
        node = math.floor(epsilon / step)
        share = min(max(math.expm1(epsilon - node * step) / math.expm1(step), 0.0), 1.0)
        left = self.composed.finite_part(node)[end]
        right = self.composed.finite_part(node + 1)[end]
        mixed = left + share * (right - left)
        # Rounding of the interpolation itself, against whichever side is being certified.
        return mixed * (1 + 1e-14) if end == 1 else mixed * (1 - 1e-14)

    def finite_above(self, epsilon: float) -> float:
        """Upper bound on the finite part of the true curve."""
        cut = max(0.0, self.infinite_high - self.infinite_low)
        return min(1.0, self._between(epsilon - self.slack, 1) + cut)

    def above(self, epsilon: float) -> float:
        """Upper bound on the true curve at e^epsilon."""
        return min(1.0, (self._between(epsilon - self.slack, 1) + self.infinite_high) * (1 + 1e-15))

    def below(self, epsilon: float, reach: float) -> float:
        """Lower bound on the true curve at e^epsilon, with chords of `reach` standard deviations."""
        if not self.exact:
            return 0.0
        floor = max(self.infinite_low, -math.expm1(min(epsilon, 0.0)) * (1 - 1e-15), 0.0) + 0.0
        s, c = self.spread, reach
        if s <= 0 or c / s <= 2 or self.log_gain > 0.5:
            return floor
        node = math.floor((epsilon + self.log_gain) / self.composed.step)
        doubt = self.composed.weigh(self.doubtful, node)
        seen = (self._between(epsilon + self.log_gain, 0) - doubt) * math.exp(-self.log_gain)
        if seen <= 0:
            return floor
        # All in units of T = e^epsilon: t0 = e^(-cs), t1 = e^(cs) and so on.
        left, right = -math.expm1(-c * s), math.expm1(c * s)
        a0, a1 = self.deviation / 2 / left, self.deviation / 2 / right
        if a0 + a1 >= 0.9:
            return floor
        far = math.sqrt(2 * (math.log(1e9) - math.log(seen)))
        bump_left, bump_right = _chernoff_call(c, s), _chernoff_put(c, s)
        t00, t000 = math.exp(-far * s), math.exp(-(far + 1) * s)
        rest = bump_left * self.finite_above(epsilon - (far + 1) * s) / (t00 - t000)
        above_left = self.finite_above(epsilon - c * s)
        rest += bump_right * above_left / left
        rest += math.exp(far * s) * _chernoff_call(far, s) if far > c else bump_left
        value = seen - a0 * above_left - a1 * self.finite_above(epsilon + c * s) - rest * (1 + 1e-12)
        return max(floor, value / (1 - a0 - a1) * (1 - 1e-13) + self.infinite_low)


def _chernoff_call(c: float, s: float) -> float:
    """Bound on E(uM - 1)_+ for u = e^(-cs), as E M^r <= e^(r(r-1)s^2/2): (x-1)_+ <= x^r (r-1)^(r-1)/r^r."""
    r = max(0.5 + c / s, 1.0 + 1e-9)
    shape = (r - 1) * math.log(r - 1) - r * math.log(r)
    return math.exp(-r * c * s + r * (r - 1) * s * s / 2 + shape) * (1 + 1e-9)


def _chernoff_put(c: float, s: float) -> float:
    """Bound on E(1 - uM)_+ for u = e^(cs): (1-x)_+ <= x^(-r) r^r/(r+1)^(r+1)."""
    r = max(c / s - 0.5, 1e-9)
    shape = r * math.log(r) - (r + 1) * math.log(r + 1)
    return math.exp(-r * c * s + r * (r + 1) * s * s / 2 + shape) * (1 + 1e-9)


class Engine:
    """The composition of pairs with counts: enclosures of delta(epsilon) and epsilon(delta)."""

    def __init__(self, parts: list[tuple[Pair, int]]) -> None:
        self.parts = parts
        self.laws: list[LossLaw] = [pair.law() for pair, _ in parts]
        self.counts = [n for _, n in parts]
        self.total = float(sum(self.counts))
        self.exact = all(p.exact and p.exact_in_products for p, _ in parts)
        self._rough: LogMoments | None = None

    # -- where to look ---------------------------------------------------------------------------

    def _moments(self, right: float) -> LogMoments:
        """Log-moments on each part's own coarse grid; of many parts, an even sample stands for all."""
        if self._rough is None:
            number = len(self.laws)
            chosen = range(number) if number <= _SAMPLE else np.linspace(0, number - 1, _SAMPLE).astype(int)
            factor = number / len(chosen)
            rows = []
            for i in chosen:
                low, high = self.laws[i].extent(right, 1e-10 / self.total)
                step = max(high - low, 1e-3 * abs(high), 1e-12) / 600
                grid = gridded(self.laws[i], step, low, high)
                losses = np.arange(grid.start, grid.start + len(grid.masses), dtype=np.float64) * step
                rows.append((losses, grid.masses, self.counts[i] * factor))
            self._rough = LogMoments(rows)
        return self._rough

    def _tilt_for_delta(self, delta: float) -> tuple[float, float, float]:
        """(tilt, epsilon, variance) with K(tilt) - tilt K'(tilt) = ln delta, about."""
        rough = self._moments(self._right_tail(delta))
        target = math.log(delta) + 2.0

        def gap(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            k, mean, _ = rough.moments(tilt)
            return k - tilt * mean - target

        _, mean, variance = rough.moments(0.0)
        scale = -math.log(max(math.sqrt(variance), 1e-300))
        low, high = scale - 12.0, scale + 16.0
        if gap(low) <= 0:
            return 0.0, mean, variance
        for _ in range(40):
            middle = (low + high) / 2
            if gap(middle) > 0:
                low = middle
            else:
                high = middle
        tilt = math.exp(low)
        _, mean, variance = rough.moments(tilt)
        return tilt, mean, variance

    def _tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """(tilt, ln delta) with K'(tilt) = epsilon, about; the tilt is never negative."""
        rough = self._moments(1e-300)
        k, mean, variance = rough.moments(0.0)
        if mean >= epsilon:
            return 0.0, math.log(0.5)
        scale = -math.log(max(math.sqrt(variance), 1e-300))
        low, high = scale - 12.0, scale + 16.0
        for _ in range(40):
            middle = (low + high) / 2
            if rough.moments(math.exp(middle))[1] < epsilon:
                low = middle
            else:
                high = middle
        tilt = math.exp(low)
        k = rough.value(tilt)
        return tilt, min(k - tilt * epsilon - 2.0, math.log(0.5))

    def _right_tail(self, delta: float) -> float:
        return max(delta * 1e-8 / self.total, 1e-305)

    # -- one grid --------------------------------------------------------------------------------

    def _solve(self, step: float, tilt: float, epsilon: float, delta: float) -> _Solved:
        right, left = self._right_tail(delta), 1e-11 / self.total
        grids: list[tuple[Gridded, int]] = []
        cells = 0
        for law, count in zip(self.laws, self.counts, strict=True):
            low, high = law.extent(right, left)
            if (high - low) / step > _MOST_CELLS:
                raise NotCertified(
                    what="a composed guarantee",
                    reason=f"losses from {low:g} to {high:g} do not fit a grid of step {step:g}",
                    hint="ask the accountant of concentrated or Rényi bounds for an upper end",
                )
            grid = gridded(law, step, low, high)
            cells += len(grid.masses)
            if cells > _TOTAL_CELLS:
                raise NotCertified(
                    what="a composed guarantee",
                    reason="the grids of so many different events do not fit in memory",
                    hint="group equal events, so that they are counted instead of listed",
                )
            grids.append((grid, count))
        moments = LogMoments(
            [
                (np.arange(g.start, g.start + len(g.masses), dtype=np.float64) * step, g.masses, float(n))
                for g, n in grids
            ]
        )
        log_a = moments.parts(tilt)
        spread = math.sqrt(self.total) * step / 2
        window, outside = self._window(moments, grids, tilt, log_a, step, epsilon, spread, delta)
        composed = compose(grids, step, tilt, log_a, window, outside)
        log_gain, doubtful = self._doubt(grids, tilt, log_a, step)
        infinite_high = -math.expm1(sum(n * math.log1p(-min(g.infinite_high, 1 - 1e-16)) for g, n in grids))
        infinite_low = -math.expm1(sum(n * math.log1p(-min(g.infinite_low, 1 - 1e-16)) for g, n in grids))
        variance = math.expm1(2 * self.total * math.log(math.cosh(step / 2))) if spread < 5 else math.inf
        return _Solved(
            composed=composed,
            slack=sum(n * g.slack for g, n in grids) * (1 + 1e-9),
            infinite_high=min(1.0, infinite_high * (1 + 1e-12)),
            infinite_low=infinite_low * (1 - 1e-12),
            log_gain=log_gain,
            doubtful=doubtful,
            spread=spread,
            deviation=math.sqrt(variance) * (1 + 1e-9),
            exact=self.exact,
        )

    def _window(
        self,
        moments: LogMoments,
        grids: list[tuple[Gridded, int]],
        tilt: float,
        log_a: np.ndarray,
        step: float,
        epsilon: float,
        spread: float,
        delta: float,
    ) -> tuple[tuple[int, int], float]:
        """Nodes outside which the tilted mass is below 1e-14, by Chernoff with a handful of tilts."""
        counts = moments.counts
        here = float(np.dot(counts, log_a))
        _, _, variance = self._moments(1e-300).moments(tilt)
        sigma = max(math.sqrt(variance), step)
        goal = math.log(1e14)
        best_high, best_low = math.inf, -math.inf
        factors = (2.0, 4.0, 6.0, 8.0, 12.0) if moments.losses.size < 400_000 else (6.0, 8.0)
        for factor in factors:
            shift = factor / sigma
            rise = moments.value(tilt + shift) - here
            best_high = min(best_high, (rise + goal) / shift)
            fall = moments.value(tilt - shift) - here
            best_low = max(best_low, -(fall + goal) / shift)
        support_low = sum(n * g.start for g, n in grids)
        support_high = sum(n * (g.start + len(g.masses) - 1) for g, n in grids)
        far = (math.sqrt(2 * math.log(1e9 / max(delta, 1e-305))) + 3) * spread
        low = max(min(best_low, epsilon - far), (support_low - 1) * step)
        high = min(best_high, (support_high + 1) * step)
        first, last = math.floor(low / step) - 2, math.ceil(max(high, low + 8 * step) / step) + 2
        if last - first > _MOST_NODES:
            raise NotCertified(
                what="a composed guarantee",
                reason=f"its losses spread over {high - low:g}, too far for a grid of step {step:g}",
                hint="the Rényi and concentrated accountants give an upper end of any size",
            )
        return (first, last), 2.02e-14

    def _doubt(
        self, grids: list[tuple[Gridded, int]], tilt: float, log_a: np.ndarray, step: float
    ) -> tuple[float, float]:
        """Per part, trade relative excess against doubted mass; both summed with the counts."""
        log_gain = doubtful = 0.0
        if not self.exact:
            return 0.0, 0.0
        for (grid, count), a in zip(grids, log_a, strict=True):
            nodes = np.arange(grid.start + 1, grid.start + len(grid.masses)) * step
            bottom = grid.bottom * math.exp(min(tilt * grid.start * step - float(a), 700.0))
            worst = float(np.max(grid.kappa, initial=0.0))
            if worst < 1e-13:
                log_gain += count * worst
                doubtful += count * bottom
                continue
            tilted = grid.cell_masses * np.exp(np.minimum(tilt * nodes - float(a), 700.0))
            best = (math.inf, 0.0, 0.0)
            for threshold in (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
                safe = grid.kappa <= threshold
                kappa = float(np.max(grid.kappa[safe], initial=0.0))
                mass = float(np.sum(tilted[~safe]))
                best = min(best, (kappa + mass, kappa, mass))
            log_gain += count * best[1]
            doubtful += count * (best[2] * (1 + 1e-6) + bottom)
        return log_gain, doubtful

    def law(self) -> AtomicLaw:
        """The gridded upper pair of the composition as atoms, for use as one pair inside another."""
        tilt, guess, _ = self._tilt_for_delta(1e-9)
        step = self._first_step(tilt, 1e-3)
        solved = None
        for _ in range(24):
            solved = self._try(step, 0.0, guess, 1e-12)
            if solved is not None:
                break
            step *= 4
        if solved is None:
            raise NotCertified(what="the law of a composition", reason="its losses spread too far for a grid")
        masses, error = solved.composed.masses()
        losses = (np.arange(len(masses), dtype=np.float64) + solved.composed.base) * step
        p = np.maximum(masses, 0.0) + error
        q = p * np.exp(-np.maximum(losses, -700.0))
        rest = max(0.0, 1.0 - float(q.sum()))
        return AtomicLaw(
            losses=losses,
            p=p,
            q=q,
            infinite=Interval(low=0.0, high=min(1.0, solved.infinite_high + solved.composed.outside)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, rest)),
            slack=solved.slack,
        )

    # -- answers ---------------------------------------------------------------------------------

    def _first_step(self, tilt: float, tolerance: float) -> float:
        second = math.sqrt(tolerance / (4 * (tilt + 1)))
        return 2 / math.sqrt(self.total) * max(second, tolerance / 16)

    def epsilon(self, delta: float, tolerance: float) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with H_epsilon(P||Q) <= delta, for 0 < delta < 1."""
        tilt, guess, _ = self._tilt_for_delta(delta)
        # Small answers are wanted to a relative accuracy.
        tolerance = min(tolerance, max(abs(guess), 1e-12) * 1e-2)
        best: Interval | None = None
        step = self._first_step(tilt, tolerance)
        for _ in range(4):
            # A steeper tilt than the grid can show has no use.
            solved = self._try(step, min(tilt, 60.0 / step), guess, delta)
            if solved is None:
                break
            found = self._invert(solved, delta, guess)
            if best is not None:
                found = Interval(low=max(found.low, best.low), high=min(found.high, best.high))
            best = found
            if not self.exact or best.width <= tolerance or math.isinf(best.high):
                break
            step *= min(0.5, math.sqrt(0.7 * tolerance / best.width))
        if best is None:
            return self._coarse(
                lambda s: self._invert(self._solve(s, min(tilt, 60 / s), guess, delta), delta, guess), step
            )
        return best

    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon(P||Q)."""
        tilt, log_delta = self._tilt_for_epsilon(epsilon)
        delta = math.exp(max(log_delta, -700.0))
        # A width in epsilon is (tilt + 1) times as wide in delta, relatively.
        tolerance = min(tolerance, 2e-3 / (tilt + 1))
        best: Interval | None = None
        step = self._first_step(tilt, tolerance)
        for _ in range(4):
            solved = self._try(step, min(tilt, 60.0 / step), epsilon, delta)
            if solved is None:
                break
            found = self._read(solved, epsilon)
            if best is not None:
                found = Interval(low=max(found.low, best.low), high=min(found.high, best.high))
            best = found
            wanted = tolerance * (tilt + 1) * best.high
            if not self.exact or best.width <= wanted:
                break
            step *= min(0.5, math.sqrt(0.7 * wanted / best.width))
        if best is None:
            return self._coarse(
                lambda s: self._read(self._solve(s, min(tilt, 60 / s), epsilon, delta), epsilon), step
            )
        return best

    def _try(self, step: float, tilt: float, epsilon: float, delta: float) -> _Solved | None:
        try:
            return self._solve(step, tilt, epsilon, delta)
        except NotCertified:
            return None

    def _coarse(self, answer: object, step: float) -> Interval:
        """Where the grid for the wanted accuracy is too large, the finest that fits."""
        assert callable(answer)
        last: NotCertified | None = None
        for _ in range(60):
            step *= 1.6
            try:
                found = answer(step)
                assert isinstance(found, Interval)
                return found
            except NotCertified as error:
                last = error
        assert last is not None
        raise last

    def _reach(self, solved: _Solved, epsilon: float) -> float:
        return max((3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0), key=lambda c: solved.below(epsilon, c))

    def _read(self, solved: _Solved, epsilon: float) -> Interval:
        high = solved.above(epsilon)
        low = solved.below(epsilon, self._reach(solved, epsilon)) if self.exact else 0.0
        return Interval(low=min(low, high), high=high)

    def _invert(self, solved: _Solved, delta: float, guess: float) -> Interval:
        composed = solved.composed
        step = composed.step
        if solved.infinite_high > delta:
            high = math.inf
        else:
            bottom, top = composed.base, composed.base + composed.size
            if solved.above((bottom + 1) * step) <= delta:
                bottom = min(bottom, 0) - 1
            while top - bottom > 1:
                middle = (bottom + top) // 2
                if solved.above(middle * step) <= delta:
                    top = middle
                else:
                    bottom = middle
            high = _chord(solved, bottom, top, delta)
        if high <= 0:
            return Interval(low=0.0, high=0.0)
        if not self.exact:
            return Interval(low=0.0, high=high)
        if solved.infinite_low > delta:
            return Interval(low=math.inf, high=math.inf)
        start = min(high, guess) if math.isinf(high) else high
        reach = self._reach(solved, start - solved.spread)
        width = solved.spread * 0.01 + 1e-15
        while solved.below(start - width, reach) <= delta:
            width *= 2
            if start - width < min(0.0, composed.base * step):
                return Interval(low=0.0, high=high)
        good, bad = start - width, start
        for _ in range(30):
            centre = (good + bad) / 2
            if solved.below(centre, reach) > delta:
                good = centre
            else:
                bad = centre
        return Interval(low=max(0.0, min(good, high)), high=high)


def _chord(solved: _Solved, bottom: int, top: int, delta: float) -> float:
    """Where the chord between two nodes crosses delta: the curve is convex in e^epsilon, hence below it."""
    step = solved.composed.step
    left, right = solved.above(bottom * step), solved.above(top * step)
    if not left > delta >= right:
        return top * step
    share = (left - delta) / (left - right)
    value = bottom * step + math.log1p(share * math.expm1(step))
    return min(value * (1 + 4e-16) + 1e-300 + 1e-15 * abs(value), top * step)
