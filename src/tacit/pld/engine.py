"""Composed privacy loss, certified from both sides, for one direction of neighbouring.

Above: the curve of a larger product (gridded, or smoothed), with every error added. Below: the same numbers, by
`docs/theory/grid-from-below.md`. Both errors are of second order in the step, which shrinks until the ends are near.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT, Floats
from tacit.exact.rounding import Interval, bisected
from tacit.exact.threads import one_thread
from tacit.pld.distributions import AtomicPLD, Gridded, gridded
from tacit.pld.fourier import CertifiedCurve, Piece, compose, cutoff_frequency, inverted, read
from tacit.pld.pairs.base import Pair, batch_pld, grouped, stretches
from tacit.pld.product import MOST_ON_GRID, coarsened, transform_for
from tacit.pld.transforms import LogMoments, log_one_minus, row_moments, tilted

# Windows of a grid, and cells whose round-off is too large.


def window(
    shifts: list[float],
    rises: Floats,
    step: float,
    epsilon: float,
    reach: float,
    support: tuple[int, int],
) -> tuple[tuple[int, int], float]:
    """Nodes outside which the tilted mass is below 1e-14 on each side: Chernoff, at the best shift."""
    goal = math.log(1e14)
    high = min((rise + goal) / shift for shift, rise in zip(shifts, rises, strict=True) if shift > 0)
    low = max((rise + goal) / shift for shift, rise in zip(shifts, rises, strict=True) if shift < 0)
    first = max(math.floor(min(low, reach) / step) - 2, support[0] - 2)
    last = min(math.ceil(max(high, epsilon + 8 * step) / step) + 2, support[1] + 2)
    return (first, max(last, first + 8)), 2.1e-14


def roundoff(grid: Gridded, cells: Floats, bottoms: Floats, counts: Floats) -> tuple[float, float]:
    """(ln K, tilted mass below round-off): per row, relative excess is traded against unresolved mass."""
    rows = len(counts)
    best = np.full(rows, np.inf)
    gain, unresolved = np.zeros(rows), np.zeros(rows)
    worst = np.max(grid.kappa, axis=1)
    for threshold in (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2):
        safe = grid.kappa <= threshold
        kappa = np.max(np.where(safe, grid.kappa, 0.0), axis=1)
        mass = np.sum(np.where(safe, 0.0, cells), axis=1)
        better = kappa + mass < best
        best = np.where(better, kappa + mass, best)
        gain, unresolved = np.where(better, kappa, gain), np.where(better, mass, unresolved)
        if bool(np.all(worst <= threshold)):
            break
    return float(counts @ gain), float(counts @ (unresolved * (1 + 1e-6) + bottoms))


# The composition on one grid of losses: every part by connect-the-dots, multiplied by bounded Fourier sums.

MOST_NODES = 1 << 22
_MOST_BANDED = 1 << 44
_MOST_CELLS = 1 << 22
_TOTAL_CELLS = 12_000_000
_CHUNK = 2_000_000
_ROWS = 128


def _slices(parts: list[tuple[Pair, int]]) -> list[list[tuple[Pair, int]]]:
    return [list(run) for group in grouped(parts) for run in stretches(group, _ROWS)]


class GridComposition:
    """Parts with counts, on grids of any step."""

    def __init__(self, parts: list[tuple[Pair, int]], exact: bool) -> None:
        self.parts, self.exact = parts, exact
        self.total = float(sum(n for _, n in parts))

    def solve(
        self, step: float, tilt: float, epsilon: float, delta: float, variance: float
    ) -> CertifiedCurve:
        """Grids every part, tilts, bounds the window and multiplies. `variance` is an estimate of that of the
        tilted loss.
        """
        right, left = max(delta * 1e-8 / self.total, 1e-305), 1e-11 / self.total
        spread = math.sqrt(self.total) * step / 2
        sigma = max(math.sqrt(variance), step)
        shifts = [sign * factor / sigma for sign in (1, -1) for factor in (2.0, 4.0, 6.0, 8.0, 12.0)]
        rises = np.zeros(len(shifts))
        pieces: list[Piece] = []
        cells = 0
        log_scale, scale_error, slack, log_gain, unresolved = 0.0, 0.0, 0.0, 0.0, 0.0
        log_kept_high, log_kept_low = 0.0, 0.0
        ends = [0, 0]
        for members in _slices(self.parts):
            whole = batch_pld([pair for pair, _ in members])
            low, high = whole.extent(right, left)
            nodes = (high - low) / step + 2
            if nodes > _MOST_CELLS or cells + nodes * len(members) > _TOTAL_CELLS:
                raise NotCertified(
                    what="a composed guarantee",
                    reason=f"losses from {low:g} to {high:g} do not fit a grid of step {step:g}",
                    hint="ask for a Rényi or concentrated bound, or group equal events into counts",
                )
            rows = max(1, min(len(members), int(_CHUNK / nodes)))
            for i in range(0, len(members), rows):
                chosen = members[i : i + rows]
                law = whole if rows >= len(members) else batch_pld([pair for pair, _ in chosen])
                grid = gridded(law, step, low, high)
                counts = np.array([n for _, n in chosen], dtype=np.float64)
                count = grid.masses.shape[1]
                cells += count * len(chosen)
                losses = np.arange(grid.start, grid.start + count, dtype=np.float64) * step
                log_a = row_moments(grid.masses, losses, tilt)
                for k, shift in enumerate(shifts):
                    rises[k] += float(counts @ (row_moments(grid.masses, losses, tilt + shift) - log_a))
                weights = tilted(grid.masses, losses, tilt, log_a)
                means = weights @ losses
                variances = np.maximum(weights @ losses**2 - means**2, 0.0) * (1 - 1e-6)
                furthest = float(np.max(np.abs(losses)))
                unit = UNIT * (16 + 4 * tilt * furthest + 4 * float(np.max(np.abs(log_a))))
                pieces.append(
                    Piece(start=grid.start, weights=weights, counts=counts, variances=variances, unit=unit)
                )
                number = float(counts.sum())
                log_scale += float(counts @ log_a)
                scale_error += 8 * UNIT * float(counts @ np.abs(log_a))
                slack += number * grid.slack
                log_kept_high += float(counts @ log_one_minus(grid.infinite_high))
                log_kept_low += float(counts @ log_one_minus(grid.infinite_low))
                ends[0] += grid.start * int(number)
                ends[1] += (grid.start + count - 1) * int(number)
                if self.exact:
                    gain, mass = roundoff(
                        grid,
                        tilted(grid.cell_masses, losses[1:], tilt, log_a),
                        tilted(grid.bottom[:, None], losses[:1], tilt, log_a)[:, 0],
                        counts,
                    )
                    log_gain, unresolved = log_gain + gain, unresolved + mass
                    if not isinstance(grid.hidden, float):
                        hidden = np.sum(tilted(grid.hidden, losses[1:], tilt, log_a), axis=1)
                        unresolved += float(counts @ hidden) * (1 + 1e-6)
        far = (math.sqrt(2 * (math.log(1e9) - math.log(max(delta, 1e-305)))) + 3) * spread
        around, outside = window(shifts, rises, step, epsilon, epsilon - far, (ends[0], ends[1]))
        nodes_needed = around[1] - around[0]
        band = cutoff_frequency(pieces, step, max(2.0 * nodes_needed, 1e5 * min(len(self.parts), 300)))
        if nodes_needed > (MOST_NODES if band is None else _MOST_BANDED):
            raise NotCertified(
                what="a composed guarantee",
                reason=f"its losses spread too far for a grid of step {step:g}",
                hint="the Rényi and zCDP accountants give an upper end of any size",
            )
        composed = compose(pieces, step, tilt, (log_scale, scale_error), around, outside, band)
        variance = math.expm1(2 * self.total * math.log(math.cosh(step / 2))) if spread < 5 else math.inf
        return CertifiedCurve(
            composed=composed,
            slack=slack * (1 + 1e-9),
            infinite_high=min(1.0, -math.expm1(log_kept_high) * (1 + 1e-12)),
            infinite_low=-math.expm1(log_kept_low) * (1 - 1e-12),
            log_gain=log_gain,
            unresolved=unresolved,
            spread=spread,
            deviation=math.sqrt(variance) * (1 + 1e-9),
            exact=self.exact,
        )


_CLEARLY, _COARSE, _PLAINLY = 0.8, 0.05, 1.0
_FEW = 16
_SKEWED = 4.0
"""A tilt that multiplies the variance by more than this has found rare large losses."""
_SAMPLE = 48


class CompositionEngine:
    """The composition of pairs with counts: enclosures of delta(epsilon) and epsilon(delta)."""

    approximates: ClassVar[bool] = True

    def __init__(self, parts: list[tuple[Pair, int]]) -> None:
        self.parts = coarsened(parts)
        # Runs of near parts cost far more than the grid does.
        self.gathered = len(self.parts) < len(parts)
        parts = self.parts
        self.total = float(sum(n for _, n in parts))
        self.exact = all(p.exact and p.exact_in_products for p, _ in parts)
        self._rough: dict[float, LogMoments] = {}
        self._characteristic = transform_for(parts, self.exact)

    def _moments(self, right: float) -> LogMoments:
        """Log-moments on each part's own coarse grid; an even sample represents many parts."""
        if right not in self._rough and self._characteristic is not None:
            if (rough := self._characteristic.rough()) is not None:
                self._rough[right] = rough
            else:
                self._characteristic = None
        if right not in self._rough:
            number = len(self.parts)
            chosen = range(number) if number <= _SAMPLE else np.linspace(0, number - 1, _SAMPLE).astype(int)
            factor = number / len(chosen)
            rows = []
            for i in chosen:
                losses, masses = self.parts[i][0].pld().coarse(right, 1e-10 / self.total)
                rows.append((losses, masses, self.parts[i][1] * factor))
            self._rough[right] = LogMoments(rows)
        return self._rough[right]

    def _floor(self) -> float:
        """About the least K(tilt) - tilt K'(tilt) that is worth a tilt.

        With an atom on top it falls to the logarithm of the atom's mass, however large the tilt. From half of
        that mass on a larger tilt shows nothing new, and needs a finer grid.
        """
        rough = self._moments(1e-300)
        _, _, variance = rough.moments(0.0)
        tilt = math.exp(16.0) / max(math.sqrt(variance), 1e-300)
        k, mean, _ = rough.moments(tilt)
        return k - tilt * mean + math.log(2)

    def _tilt_for_delta(self, delta: float) -> tuple[float, float]:
        """(tilt, epsilon) with K(tilt) - tilt K'(tilt) = ln delta, about.

        delta is at most about e^(K - tilt K') / (tilt + 1). Below an atom the exponent hardly falls, and this
        factor alone separates a much smaller delta from the atom's mass.
        """
        rough = self._moments(1e-300)
        wanted = min(math.log(delta) + 2.0, -1e-3)
        target = max(wanted, self._floor())

        def gap(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            k, mean, _ = rough.moments(tilt)
            exponent = k - tilt * mean
            return min(exponent - target, exponent - max(0.0, math.log1p(tilt) - 2.0) - wanted)

        _, mean, variance = rough.moments(0.0)
        scale = -math.log(max(math.sqrt(variance), 1e-300))
        low, high = scale - 12.0, scale + 16.0
        if gap(low) <= 0:
            return 0.0, mean
        tilt = math.exp(bisected(lambda log_tilt: not gap(log_tilt) > 0, low, high, halvings=30)[0])
        return tilt, rough.moments(tilt)[1]

    def _nearer(self, delta: float, tilt: float, guess: float) -> tuple[float, float, float]:
        """(tilt, epsilon, slope of ln delta there), by a first estimate if rare large losses hide them.

        At the saddle point of delta the tilted law of rarely sampled noise has a second hump far beyond epsilon.
        """
        rough = self._moments(1e-300)
        if tilt <= 0 or rough.moments(tilt)[2] <= _SKEWED * rough.moments(0.0)[2]:
            return tilt, guess, tilt
        if (found := rough.crossing(delta, guess)) is None:
            return tilt, guess, tilt
        if self._characteristic is not None:
            self._characteristic.for_rare()
        near, slope = found
        return self._tilt_for_epsilon(near)[0], near, max(slope, tilt)

    def _tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """(tilt, ln delta) with K'(tilt) = epsilon, about; the tilt is never negative."""
        rough = self._moments(1e-300)
        _, mean, variance = rough.moments(0.0)
        if mean >= epsilon:
            return 0.0, math.log(0.5)
        scale = -math.log(max(math.sqrt(variance), 1e-300))
        floor = self._floor()

        def enough(log_tilt: float) -> bool:
            k, mean, _ = rough.moments(math.exp(log_tilt))
            return not (mean < epsilon and k - math.exp(log_tilt) * mean > floor)

        tilt = math.exp(bisected(enough, scale - 12.0, scale + 16.0, halvings=30)[0])
        k = rough.moments(tilt)[0]
        return tilt, min(k - tilt * epsilon - 2.0, math.log(0.5))

    # -- one grid --------------------------------------------------------------------------------

    def _solve(self, step: float, tilt: float, epsilon: float, delta: float) -> CertifiedCurve:
        """The composed curve around epsilon, by the transform while it serves, else on a grid of this step."""
        spread = math.sqrt(self.total) * step / 2
        tilt = min(tilt, 0.5 / spread)
        if self._characteristic is not None:
            if (smoothed := self._characteristic.solve(spread, tilt, epsilon, delta)) is not None:
                return smoothed
            self._characteristic = None
        variance = self._moments(1e-300).moments(tilt)[2]
        return GridComposition(self.parts, self.exact).solve(step, tilt, epsilon, delta, variance)

    @one_thread()
    def pld(self) -> AtomicPLD:
        """The gridded upper pair of the composition as atoms, for use as one pair inside another."""
        self._characteristic = None
        tilt, guess = self._tilt_for_delta(1e-9)
        step = self._first_step(tilt, 1e-3)
        solved = None
        for _ in range(60):
            solved = self._try(step, 0.0, guess, 1e-12)
            if solved is not None and solved.composed.size <= MOST_NODES:
                break
            step *= 1.6
        if solved is None:
            raise NotCertified(what="the law of a composition", reason="its losses spread too far for a grid")
        masses, error = solved.composed.masses()
        losses = (np.arange(len(masses), dtype=np.float64) + solved.composed.base) * step
        p = np.maximum(masses, 0.0) + error
        q = p * np.exp(-np.maximum(losses, -700.0))
        rest = max(0.0, 1.0 - float(q.sum()))
        return AtomicPLD.single(
            losses=losses,
            p=p,
            q=q,
            infinite=Interval(low=0.0, high=min(1.0, solved.infinite_high + solved.composed.outside)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, rest)),
            slack=solved.slack,
        )

    # -- answers ---------------------------------------------------------------------------------

    def _first_step(self, tilt: float, tolerance: float) -> float:
        # The transform costs the same at any step: a second try is saved.
        second = math.sqrt(tolerance / (4 * (tilt + 1))) * (1.0 if self._characteristic is None else 0.6)
        return 2 / math.sqrt(self.total) * max(second, tolerance / 16)

    @one_thread()
    def epsilon(self, delta: float, tolerance: float, known: float = 0.0) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with H_epsilon(P||Q) <= delta, for 0 < delta < 1.

        If it is clearly below `known`, the search ends there.
        """
        tilt, guess = self._tilt_for_delta(delta)
        if guess < delta and self._at_zero() <= delta:
            return Interval(low=0.0, high=0.0)
        if known > 0 and guess < _CLEARLY * known and self._at_most(known, delta):
            return Interval(low=0.0, high=known)
        # Small and large answers are wanted to a relative accuracy.
        tolerance = min(tolerance * max(1.0, abs(guess) / 10), max(abs(guess), 1e-12) * 1e-2)
        tolerance = max(tolerance, 1e-2 * guess) if self.gathered else tolerance
        tilt, guess, slope = self._nearer(delta, tilt, guess)
        best: Interval | None = None
        step = self._first_step(slope, tolerance)
        last, shrunk, enough = math.inf, 1.0, 4
        for _ in range(4):
            solved = self._try(step, tilt, guess, delta)
            if solved is None:
                break
            found = inverted(solved, delta, guess)
            before = math.inf if best is None else best.width
            if best is not None:
                found = Interval(low=max(found.low, best.low), high=min(found.high, best.high))
            best = found
            stuck = self.exact and best.width > 0.8 * before and math.isfinite(before)
            if best.width <= tolerance or solved.infinite_high > delta or stuck:
                break
            if self._rounded(solved, found.high, delta, slope) > 0.5 * best.width:
                # A smaller step shows no more; on a grid sums are rounded less.
                enough = 2 if len(self.parts) <= _FEW else 4
                break
            # A smoothed curve lies tolerance/8 above the true one from the first step on.
            near = self._characteristic is not None or self.gathered or last - best.high < tolerance
            if not self.exact and near:
                break
            last = best.high
            # Second order in the step, but for deltas at the mass of an atom.
            slow = math.isfinite(before) and best.width > shrunk * before
            order = 1.0 if slow else 0.5
            least = 0.1 if slow else 0.02
            shrunk = min(0.5, max(least, (0.7 * tolerance / best.width) ** order)) if self.exact else 0.5
            step *= shrunk
        missed = best is None or best.width > enough * tolerance
        if self._characteristic is not None and self.exact and missed and self.total < MOST_ON_GRID:
            self._characteristic = None  # the grid of losses may do better; both hold
            grid, best = self.epsilon(delta, tolerance), best or Interval(low=0.0, high=math.inf)
            return Interval(low=max(grid.low, best.low), high=min(grid.high, best.high))
        if best is None:
            return self._coarse(lambda s: inverted(self._solve(s, tilt, guess, delta), delta, guess), step)
        return best

    @one_thread()
    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon(P||Q)."""
        tilt, log_delta = self._tilt_for_epsilon(epsilon)
        delta = math.exp(max(log_delta, -700.0))
        # A width in epsilon is (tilt + 1) times as wide in delta, relatively.
        tolerance = min(tolerance, 2e-3 / (tilt + 1))
        best: Interval | None = None
        step = self._first_step(tilt, tolerance)
        for _ in range(4):
            solved = self._try(step, tilt, epsilon, delta)
            if solved is None:
                break
            found = read(solved, epsilon)
            before = math.inf if best is None else best.width
            if best is not None:
                found = Interval(low=max(found.low, best.low), high=min(found.high, best.high))
            best = found
            if best.width > 0.8 * before:
                break
            wanted = tolerance * (tilt + 1) * best.high
            if not self.exact or best.width <= wanted:
                break
            step *= min(0.5, math.sqrt(0.7 * wanted / best.width))
        if best is None:
            return self._coarse(lambda s: read(self._solve(s, tilt, epsilon, delta), epsilon), step)
        return best

    def _at_most(self, epsilon: float, delta: float) -> bool:
        """Whether a coarse look shows H_epsilon(P||Q) <= delta."""
        tilt, log_delta = self._tilt_for_epsilon(epsilon)
        if self._bounded_by_moments(epsilon, delta, tilt):
            return True
        step = self._first_step(tilt, _COARSE * epsilon)
        solved = self._try(step, tilt, epsilon, math.exp(max(log_delta, -700.0)))
        return solved is not None and solved.above(epsilon) <= delta

    def _rounded(self, solved: CertifiedCurve, epsilon: float, delta: float, slope: float) -> float:
        """About the width in epsilon caused by rounding, for any step."""
        if self._characteristic is None or not self._characteristic.rare or math.isinf(epsilon):
            return 0.0
        low, high = solved.composed.finite_part(epsilon)  # type: ignore[arg-type]
        return (high - low) / (delta * slope)

    def _bounded_by_moments(self, epsilon: float, delta: float, most: float) -> bool:
        """Whether one moment shows H_epsilon(P||Q) <= delta: (1 - e^(epsilon - l))+ <= e^(c (l - epsilon))."""
        if self._characteristic is None or not most > 0:
            return False
        rough = self._moments(1e-300)
        wanted = math.log(delta) - _PLAINLY

        def enough(log_tilt: float) -> bool:
            return rough.log_moment(math.exp(log_tilt)) - math.exp(log_tilt) * epsilon <= wanted

        if not enough(math.log(most)):
            return False
        # The least tilt that shows it asks for the fewest nodes.
        tilt = math.exp(bisected(enough, math.log(most) - 16.0, math.log(most), halvings=12)[1])
        found = self._characteristic.moment(tilt) if self._characteristic is not None else None
        if found is None:
            return False
        log_moment, infinite = found
        return math.exp(min(log_moment - tilt * epsilon, 700.0)) * (1 + 1e-12) + infinite <= delta

    def _at_zero(self) -> float:
        """A bound on H_0 of the composition: total variations add."""
        return math.fsum(n * pair.hockey_stick(0.0).high for pair, n in self.parts) * (1 + 1e-12)

    def _try(self, step: float, tilt: float, epsilon: float, delta: float) -> CertifiedCurve | None:
        try:
            return self._solve(step, tilt, epsilon, delta)
        except NotCertified:
            return None

    def _coarse(self, answer: object, step: float) -> Interval:
        """If the grid for the wanted accuracy is too large, the finest grid that fits."""
        assert callable(answer)
        for attempt in range(60):
            # Far too fine grids are left faster and faster: each try costs.
            step *= 1.6 if attempt < 3 else min(1.6 ** (attempt - 1), 100.0)
            try:
                found = answer(step)
                assert isinstance(found, Interval)
                return found
            except NotCertified:
                if attempt == 59:
                    raise
        raise AssertionError  # pragma: no cover


# One pair: its curve in ball arithmetic, inverted to adjacent floats.


class ClosedForm:
    """The curve of one pair."""

    approximates: ClassVar[bool] = False

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon."""
        return self.pair.hockey_stick(epsilon)

    def epsilon(self, delta: float, tolerance: float, known: float = 0.0) -> Interval:
        """The adjacent floats between which the curve crosses delta."""
        return _invert(self.pair, delta)


@lru_cache(maxsize=4096)
def _invert(pair: Pair, delta: float) -> Interval:
    """The adjacent floats between which the closed-form curve crosses delta."""
    if pair.measured:
        high = _crossed(lambda e: pair.hockey_stick(e).high, delta, pair.starts_near(delta))
        below = (high * (1 - 10.0**-k) for k in range(8, 0, -1)) if pair.exact and math.isfinite(high) else ()
        low = next((e for e in below if pair.hockey_stick(e).low > delta), 0.0)
        return Interval(low=low, high=high)

    def search(over: Callable[[float], bool]) -> tuple[float, float]:
        """Neighbours (a, b) with over(a) and not over(b); (0, 0) if over(0) is false."""
        if not over(0.0):
            return 0.0, 0.0
        low, high = 0.0, 1.0
        while over(high):
            low, high = high, high * 2
            if math.isinf(high):
                return low, high
        return bisected(lambda e: not over(e), low, high, relative=4e-16)

    top = search(lambda e: pair.hockey_stick(e).high > delta)[1]
    bottom = search(lambda e: pair.hockey_stick(e).low > delta)[0] if pair.exact else 0.0
    return Interval(low=min(bottom, top), high=top)


def _crossed(upper: Callable[[float], float], delta: float, near: float | None = None) -> float:
    """A point where an expensive curve is at most delta, within 1e-9 of the last point where it is not.

    `near` is the first guess, within a thousandth. False position on ln(upper / delta), which is nearly a
    parabola, with Illinois halving of the end that stays.
    """

    def height(epsilon: float) -> float:
        """Above 0 if and only if the curve is above delta; equal logarithms do not decide."""
        value = upper(epsilon)
        if value > delta:
            return max(math.log(value) - math.log(delta), 1e-300)
        return min(math.log(value) - math.log(delta), 0.0) if value > 0 else -math.inf

    low, high = (0.0, 1.0) if near is None else (near * 0.999, near * 1.001)
    above = height(low)
    if above <= 0 < low:
        low, high, above = 0.0, low, height(0.0)
    if above <= 0:
        return low
    while (under := height(high)) > 0:
        low, above, high = high, under, high * 2
        if math.isinf(high):
            return high
    stayed = 0
    while high - low > 1e-9 * high:
        share = above / (above - under) if math.isfinite(under) and abs(stayed) < 4 else 0.5
        width = high - low
        # Almost half the wanted width away from both ends, so that the other end follows a guess that is right.
        middle = min(max(low + share * width, low + 4e-10 * high), high - 4e-10 * high)
        found = height(middle)
        if found > 0:
            low, above = middle, found
            stayed = max(stayed, 0) + 1
            under = under / 2 if stayed > 1 else under
        else:
            high, under = middle, found
            stayed = min(stayed, 0) - 1
            above = above / 2 if stayed < -1 else above
    return high
