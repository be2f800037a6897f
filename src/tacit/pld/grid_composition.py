"""The composition on one grid of losses: every part by connect-the-dots, multiplied by bounded Fourier sums."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT
from tacit.pld.certified import CertifiedCurve
from tacit.pld.coarse import roundoff, window
from tacit.pld.fourier import Piece, compose, cutoff_frequency
from tacit.pld.grid import gridded
from tacit.pld.moments import log_one_minus, row_moments, tilted
from tacit.pld.pairs.base import Pair, batch_pld, grouped

__all__ = ["MOST_NODES", "GridComposition"]

MOST_NODES = 1 << 22
_MOST_BANDED = 1 << 44
_MOST_CELLS = 1 << 22
_TOTAL_CELLS = 12_000_000
_CHUNK = 2_000_000
_ROWS = 128


def _slices(parts: list[tuple[Pair, int]]) -> list[list[tuple[Pair, int]]]:
    return [g[i : i + _ROWS] for g in grouped(parts) for i in range(0, len(g), _ROWS)]


class GridComposition:
    """Parts with counts, on grids of any step."""

    def __init__(self, parts: list[tuple[Pair, int]], exact: bool) -> None:
        self.parts, self.exact = parts, exact
        self.total = float(sum(n for _, n in parts))

    def solve(
        self, step: float, tilt: float, epsilon: float, delta: float, variance: float
    ) -> CertifiedCurve:
        """Grid every part, tilt, bound the window, multiply; `variance` is about that of the tilted loss."""
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
