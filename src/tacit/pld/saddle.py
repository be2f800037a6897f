"""Where to look at a composition of very many parts: the tilt, and the shifts that bound the window.

Nothing here is claimed: a bad saddle costs time or width, never truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.pld.moments import LogMoments

__all__ = ["OUTSIDE", "SaddlePoint", "saddle_point"]

OUTSIDE = math.log(1e11)
"""All but e^-OUTSIDE of the tilted law is to lie in the window."""
_SHIFTS = (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
_VISIBLE = 1e-5
"""Round-off below this share of delta does not show in epsilon."""
_CALMER = (1.0, 0.9, 0.8, 0.7, 0.55, 0.4, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaddlePoint:
    """A tilt, the deviation there, and the two shifts with the narrowest window."""

    tilt: float
    sigma: float
    up: float
    down: float


def saddle_point(rough: LogMoments, spread: float, tilt: float, epsilon: float, total: float) -> SaddlePoint:
    """The tilt, at most the given one, with a narrow window that still sees epsilon well.

    Rarely sampled noise has moments that explode: at the saddle point of delta the tilted law may lie far beyond
    epsilon, or have a second, distant hump. A somewhat smaller tilt sees the same tail, e^-lost as large. With
    `total` releases sums are right to about total times 1e-14 only: then little may be lost.
    """
    most = math.log(_VISIBLE / (total * 1e-14))
    variance_added = spread**2
    first = rough.log_moment(tilt)
    best: tuple[float, SaddlePoint] | None = None
    for factor in _CALMER if tilt > 0 else (1.0,):
        c = tilt * factor
        k, _, variance = rough.moments(c)
        sigma = math.sqrt(variance + variance_added)

        def end(t: float, c: float = c, k: float = k) -> float:
            smooth = t * variance_added * (c + 0.5 + t / 2)
            return (rough.log_moment(c + t) - k + smooth + OUTSIDE) / t

        # Smaller shifts need fewer nodes: the least one whose window is nearly the narrowest.
        highs, lows = [end(f / sigma) for f in _SHIFTS], [end(-f / sigma) for f in _SHIFTS]
        near = 0.1 * max(min(highs) - max(lows), 0.0)
        high, up = next((h, f / sigma) for h, f in zip(highs, _SHIFTS, strict=True) if h <= min(highs) + near)
        low, down = next((h, f / sigma) for h, f in zip(lows, _SHIFTS, strict=True) if h >= max(lows) - near)
        lost = (tilt - c) * epsilon - (first - k)
        cost = math.log(max(high - low, 1e-300)) + max(0.0, lost - 3.0) / 12 + max(0.0, lost - most)
        if best is None or cost < best[0]:
            best = cost, SaddlePoint(tilt=c, sigma=sigma, up=up, down=down)
    assert best is not None
    return best[1]
