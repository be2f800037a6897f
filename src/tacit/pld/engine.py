"""Composed privacy loss, certified from both sides, for one direction of neighbouring.

Above: the curve of a larger product (gridded, or smoothed), with every error added. Below: the same numbers, by
`docs/theory/grid-from-below.md`. Both errors are of second order in the step, which shrinks until the ends are near.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.rounding import Interval
from tacit.exact.threads import one_thread
from tacit.pld.certified import CertifiedCurve, inverted, read
from tacit.pld.choice import MOST_ON_GRID, transform_for
from tacit.pld.coarsening import coarsened
from tacit.pld.distributions import AtomicPLD
from tacit.pld.grid_composition import MOST_NODES, GridComposition
from tacit.pld.moments import LogMoments
from tacit.pld.pairs.base import Pair

__all__ = ["Engine"]

_CLEARLY, _COARSE = 0.8, 0.05
_SAMPLE = 48


class Engine:
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
        """Log-moments on each part's own coarse grid; of many parts, an even sample stands for all."""
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

        With an atom on top it falls to the logarithm of the atom's mass, however large the tilt: from half of that
        mass on a larger tilt shows nothing new, and asks for a finer grid.
        """
        rough = self._moments(1e-300)
        _, _, variance = rough.moments(0.0)
        tilt = math.exp(16.0) / max(math.sqrt(variance), 1e-300)
        k, mean, _ = rough.moments(tilt)
        return k - tilt * mean + math.log(2)

    def _tilt_for_delta(self, delta: float) -> tuple[float, float]:
        """(tilt, epsilon) with K(tilt) - tilt K'(tilt) = ln delta, about.

        delta is about e^(K - tilt K') / (tilt + 1) or less: below an atom the exponent hardly falls, and what is
        far below the atom's mass lies near it by this factor alone.
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
        for _ in range(30):
            middle = (low + high) / 2
            if gap(middle) > 0:
                low = middle
            else:
                high = middle
        tilt = math.exp(low)
        return tilt, rough.moments(tilt)[1]

    def _tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """(tilt, ln delta) with K'(tilt) = epsilon, about; the tilt is never negative."""
        rough = self._moments(1e-300)
        _, mean, variance = rough.moments(0.0)
        if mean >= epsilon:
            return 0.0, math.log(0.5)
        scale = -math.log(max(math.sqrt(variance), 1e-300))
        low, high = scale - 12.0, scale + 16.0
        floor = self._floor()
        for _ in range(30):
            middle = (low + high) / 2
            k, mean, _ = rough.moments(math.exp(middle))
            if mean < epsilon and k - math.exp(middle) * mean > floor:
                low = middle
            else:
                high = middle
        tilt = math.exp(low)
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

        Where it is clearly below `known`, that is all that is found out.
        """
        tilt, guess = self._tilt_for_delta(delta)
        if guess < delta and self._at_zero() <= delta:
            return Interval(low=0.0, high=0.0)
        if known > 0 and guess < _CLEARLY * known and self._at_most(known, delta):
            return Interval(low=0.0, high=known)
        # Small and large answers are wanted to a relative accuracy.
        tolerance = min(tolerance * max(1.0, abs(guess) / 10), max(abs(guess), 1e-12) * 1e-2)
        tolerance = max(tolerance, 1e-2 * guess) if self.gathered else tolerance
        best: Interval | None = None
        step = self._first_step(tilt, tolerance)
        last, shrunk = math.inf, 1.0
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
        missed = best is None or best.width > 4 * tolerance
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
        step = self._first_step(tilt, _COARSE * epsilon)
        solved = self._try(step, tilt, epsilon, math.exp(max(log_delta, -700.0)))
        return solved is not None and solved.above(epsilon) <= delta

    def _at_zero(self) -> float:
        """A bound on H_0 of the composition: total variations add."""
        return math.fsum(n * pair.hockey_stick(0.0).high for pair, n in self.parts) * (1 + 1e-12)

    def _try(self, step: float, tilt: float, epsilon: float, delta: float) -> CertifiedCurve | None:
        try:
            return self._solve(step, tilt, epsilon, delta)
        except NotCertified:
            return None

    def _coarse(self, answer: object, step: float) -> Interval:
        """Where the grid for the wanted accuracy is too large, the finest that fits."""
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
