"""Compose many distinct privacy-loss distributions by their characteristic functions, at a few dozen frequencies.

An independent normal loss of variance s^2 is added to the composed loss X (Z M with M lognormal of mean 1). The curve
only rises by that, and comes down again by `docs/theory/grid-from-below.md`, whose factor M need only have mean 1 and
ln E M^r <= r (r - 1) s^2/2. Under the tilted distribution E k(X - e), k(x) = e^(-cx)(1 - e^-x)+, is a sum over the
frequencies of an inversion that holds all but 1e-11 of X (transforms.py); each part's transform comes from a few nodes
with bounded error (quadrature.py, transforms.py), and most frequencies are proved to be negligible (transforms.py).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from tacit.exact.arrays import Floats
from tacit.pld.pairs.base import Pair, stretches
from tacit.pld.quadrature import Quadrature, QuadratureRange, quadrature_of
from tacit.pld.transforms import (
    FourierInversion,
    LogMoments,
    SaddlePoint,
    SmoothedCurve,
    Tilted,
    TooWide,
    saddle_point,
)

_ROWS = 256
_ALL, _SAMPLE, _LARGEST = 512, 128, 16
_MOST_NODES = 1 << 21
"""The number of nodes of all rows together, if rows have more than 2048 each."""
_ROUGH_NODES = 320
_SHORTER = 3
"""The number of halvings of shifts that would need densities beyond the range of floats."""
_WITNESSES, _WITNESS_ATOMS = 512, 16384


def _by_key(
    parts: list[tuple[Pair, int]],
) -> list[tuple[tuple[Hashable, ...] | None, list[tuple[Pair, int]]]]:
    """Groups of parts that get nodes together, each in the order of its parts."""
    groups: dict[tuple[Hashable, ...] | None, list[tuple[Pair, int]]] = {}
    for part in parts:
        groups.setdefault(part[0].quadrature_key(), []).append(part)
    return list(groups.items())


class CharacteristicComposition:
    """Parts of kinds that have nodes, in chunks of near parameters; at most one normal part aside."""

    def __init__(self, parts: list[tuple[Pair, int]], exact: bool) -> None:
        self.exact = exact
        self.total = float(sum(n for _, n in parts))
        self.normal = 0.0
        others = []
        for pair, count in parts:
            if (squared := pair.gaussian_squared) is not None:
                self.normal += float(squared) * count
            else:
                others.append((pair, count))
        self.members = others
        grouped = _by_key(others)
        self.known = all(key is not None for key, _ in grouped)
        cut = [(key, list(run)) for key, group in grouped for run in stretches(group, _ROWS)]
        self.chunks = [run for _, run in cut]
        self.atomic = [key is None or not run[0][0].has_density for key, run in cut]
        self.nodes: list[Quadrature] = []
        self.reach = QuadratureRange(low=0.0, high=0.0, frequency=0.0)
        self._rough: LogMoments | None = None
        self._sample: CharacteristicComposition | None = None
        self.rare = False
        """Whether rare large losses hide the answer: then windows are wider and sums are rounded less.

        Other compositions keep their numbers to the last digit: plans are made again from them.
        """

    @staticmethod
    def of(parts: list[tuple[Pair, int]], exact: bool) -> CharacteristicComposition | None:
        """The composition, if all parts are of kinds that have nodes."""
        composition = CharacteristicComposition(parts, exact)
        return composition if composition.known else None

    def witnesses(self, frequency: float) -> list[Quadrature]:
        """Some of the parts that have atoms, with those listed."""
        chunks = [chunk for chunk, atomic in zip(self.chunks, self.atomic, strict=True) if atomic]
        reach = replace(self.reach, frequency=max(frequency, self.reach.frequency), listed=True)
        found, due = [], 1.0
        for chunk in chunks:
            one = quadrature_of(chunk[:1], reach)
            if one is not None:
                due += min(_WITNESSES, _WITNESS_ATOMS / one.losses.size) / len(chunks)
                nodes = quadrature_of(chunk[:: max(1, len(chunk) // int(due))], reach) if due >= 1 else None
                due -= int(due)
                found += [] if nodes is None else [nodes]
        return found

    def for_rare(self) -> None:
        """Switches to the settings that find rare large losses."""
        self.rare = True
        if self._sample is not None and self._sample is not self:
            self._sample.rare = True

    # -- where to look -----------------------------------------------------------------------------

    def _sampled(self) -> CharacteristicComposition:
        """A small sample of the parts: the largest of each kind, and an even selection of the others."""
        if len(self.members) <= _ALL:
            return self
        chosen: list[tuple[Pair, int]] = []
        for _, members in _by_key(self.members):
            rest, largest = members[:-_LARGEST], members[-_LARGEST:]
            even = rest[:: max(1, len(rest) // _SAMPLE)]
            chosen += [(pair, max(1, round(n * len(rest) / len(even)))) for pair, n in even] + largest
        sample = CharacteristicComposition(chosen, self.exact)
        sample.normal = self.normal
        return sample

    def rough(self) -> LogMoments | None:
        """Log-moments of a sample, which only guide a search."""
        self._sample = self._sampled()
        rows: list[tuple[Floats, Floats, float]] = []
        for chunk in self._sample.chunks:
            nodes = None
            for high in (4.0, 10.0, 40.0):
                finer = quadrature_of(chunk, QuadratureRange(low=-1.0, high=high, frequency=1.0))
                if finer is None or (nodes is not None and finer.losses.shape[1] > _ROUGH_NODES):
                    break
                nodes = finer
            if nodes is None:
                return None
            rows += [
                (loss, mass, float(n))
                for loss, mass, n in zip(nodes.losses, nodes.masses, nodes.counts, strict=True)
            ]
        if self.normal > 0:
            x, mu = np.linspace(-12, 12, 97), math.sqrt(self.normal)
            rows.append((mu * mu / 2 + mu * x, np.exp(-x * x / 2) / (4 * math.sqrt(2 * math.pi)), 1.0))
        self._rough = LogMoments(rows)
        return self._rough

    def _last_alive(self, spread: float, saddle: SaddlePoint, epsilon: float, delta: float) -> float:
        """The last frequency that is not negligible in the sample."""
        guess, sample = 20 / saddle.sigma, self._sample
        if sample is None or not sample.members or not sample.prepare(saddle, guess):
            return guess
        tilted = Tilted(sample, spread, saddle)
        window = tilted.window(epsilon, delta)
        if window is None:
            return guess
        gap = 2 * math.pi / (window[1] - window[0])
        alive, _ = tilted.alive(gap)
        return guess if alive is None else len(alive) * gap * 1.16

    def moment(self, tilt: float) -> tuple[float, float] | None:
        """Upper bounds on ln E_P e^(tilt L) over finite losses L, and on the mass at infinity."""
        saddle = SaddlePoint(tilt=tilt, sigma=1.0, up=0.01 * tilt, down=0.01 * tilt)
        if not self.prepare(saddle, 0.0):
            return None
        tilted = Tilted(self, 0.0, saddle)
        size = abs(tilted.log_scale) + tilted.scale_error + 1
        return tilted.log_scale + tilted.scale_error + 1e-12 * size, -math.expm1(tilted.kept[0]) * (1 + 1e-12)

    # -- the answer --------------------------------------------------------------------------------

    def prepare(self, saddle: SaddlePoint, frequency: float) -> bool:
        """Nodes for this tilt and frequencies up to this one; False if there would be too many."""
        low, high = saddle.tilt - saddle.down * 1.01, saddle.tilt + saddle.up * 1.01
        most = max(2048, min(1 << 15, _MOST_NODES // max(1, len(self.members))))
        reach = QuadratureRange(low=low, high=high, frequency=frequency, most=most)
        old = self.reach
        if (
            self.nodes
            and old.low <= reach.low
            and old.high >= reach.high
            and old.frequency >= reach.frequency
        ):
            return True
        made = []
        for chunk in self.chunks:
            nodes = quadrature_of(chunk, reach)
            if nodes is None:
                return False
            made.append(nodes)
        self.nodes, self.reach = made, reach
        return True

    def solve(self, spread: float, tilt: float, epsilon: float, delta: float) -> SmoothedCurve | None:
        """The curve around epsilon, smoothed by `spread`; None if this method cannot certify it."""
        assert self._rough is not None
        saddle = saddle_point(self._rough, spread, tilt, epsilon, delta, self.total, self.rare)
        for _ in range(_SHORTER if self.rare else 0):
            if self.prepare(saddle, 0.0):
                break
            saddle = replace(saddle, up=saddle.up / 2, down=saddle.down / 2)
        last = self._last_alive(spread, saddle, epsilon, delta)
        found: float | tuple[FourierInversion, tuple[float, float]] | None = last
        for _ in range(3):
            if not isinstance(found, float):
                break
            if not self.prepare(saddle, found):
                return None
            try:
                found = Tilted(self, spread, saddle).inversion(epsilon, delta)
            except TooWide:
                return None
        if found is None or isinstance(found, float):
            return None
        inversion, kept = found
        return SmoothedCurve(
            composed=inversion,  # type: ignore[arg-type]
            slack=0.0,
            infinite_high=min(1.0, -math.expm1(kept[0]) * (1 + 1e-12)),
            infinite_low=max(0.0, -math.expm1(kept[1]) * (1 - 1e-12)),
            log_gain=0.0,
            unresolved=0.0,
            spread=spread * (1 + 1e-12),
            deviation=math.sqrt(math.expm1(min(spread**2, 600.0))) * (1 + 1e-9),
            exact=self.exact,
        )
