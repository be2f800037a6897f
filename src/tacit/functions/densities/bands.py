"""Bands about a released curve: for the noise, for the sample, or for both; everything from what is public.

The noise's distribution is public, so its band is a computation: normal quantiles at one point, simulation for all
points at once. How much the curve would change with another sample is estimated from the released curve alone, which
is post-processing; no band says how far smoothing has moved the curve from the density that the rows come from.
Theorem `density-bands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, whole
from tacit.functions.densities.noises import public_normals
from tacit.mechanisms.base import confidence_level

if TYPE_CHECKING:
    from tacit.functions.densities.released import ReleasedDensity

__all__ = ["COVERS", "Band", "band_of", "order_statistic", "sampling_root"]

COVERS = {
    "noise": "the same curve without noise",
    "sampling": "the curve's mean over samples of this size, had there been no noise; from the released curve",
    "both": "the curve's mean over samples of this size; from the released curve and the noise's distribution",
}
CERTAINTY = 0.999
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """low <= . <= high with the stated confidence, at each point or at all of them at once.

    `factor` is the width in standard deviations. Where it comes from `draws` simulated curves it is an order statistic
    that is not below the true quantile with probability `certainty`; draws = 0 means that it is exact.
    """

    points: Floats
    center: Floats
    low: Floats
    high: Floats
    std: Floats
    factor: float
    confidence: float
    simultaneous: bool
    covers: str
    draws: int
    certainty: float

    @property
    def words(self) -> str:
        """What the band is for, in a sentence."""
        where = "all points at once" if self.simultaneous else "each point by itself"
        return f"{100 * self.confidence:g}% band for {COVERS[self.covers]}; {where}"


def order_statistic(draws: int, confidence: float, certainty: float = CERTAINTY) -> int:
    """The least k with Pr[k-th smallest of the draws >= their quantile] >= certainty: a binomial tail."""
    from scipy.special import bdtr

    k = np.arange(1, draws + 1)
    # The k-th smallest is below the quantile only if at least k draws are: Pr[Bin(draws, confidence) >= k].
    sure = bdtr(k - 1, draws, confidence) >= certainty
    if not bool(sure.any()):
        raise InvalidParameter(
            parameter="draws", value=draws, must="be enough for this confidence",
            hint=f"about {int(10 / (1 - confidence))} or more",
        )  # fmt: skip
    return int(k[sure][0])


def sampling_root(released: ReleasedDensity, points: Floats, cells: int) -> Floats:
    """R (points, cells) with R R' = covariance of the curve over samples, taking the released curve for the truth.

    The curve is a mean of bumps B(x, row): its covariance is (E B B' - E B E B') / size.
    """
    family = released.family
    grid = released.on_grid(cells)
    axes = np.meshgrid(*[grid.middles(k) for k in range(grid.domain.dimension)], indexing="ij")
    middles = np.stack([a.ravel() for a in axes], axis=1)
    weight = grid.probabilities.ravel()
    used = weight > 0
    bumps = family.synthesis(points) @ family.features_at(middles[used]).T
    p = weight[used]
    centred = bumps - (bumps @ p)[:, None]
    return np.asarray(centred * np.sqrt(p / released.size)[None, :])


def band_of(
    released: ReleasedDensity,
    points: npt.ArrayLike,
    *,
    confidence: float,
    simultaneous: bool,
    covers: str,
    draws: int,
    seed: int,
    cells: int,
) -> Band:
    """The band; see `ReleasedDensity.band`."""
    level, draws = float(confidence_level(confidence)), whole("draws", draws)
    together = flag("simultaneous", simultaneous)
    if not isinstance(covers, str) or covers not in COVERS:
        raise InvalidParameter(parameter="covers", value=covers, must=f"be one of {', '.join(COVERS)}")
    at = released.family.box.inside(points)
    center = released(at)
    rows = released.family.synthesis(at) / released.size
    variance, factor_of_sample = np.zeros(at.shape[0]), np.zeros((at.shape[0], 0))
    if covers != "sampling":
        variance = variance + (rows**2) @ released.noise.stds(rows.shape[1]) ** 2
    if covers != "noise":
        factor_of_sample = sampling_root(released, at, cells)
        variance = variance + (factor_of_sample**2).sum(axis=1)
    std = np.sqrt(variance)
    exact = released.noise.quantile(level) if covers != "sampling" else _normal_quantile(level)
    used = 0
    if not together and exact is not None:
        factor = exact
    else:
        largest = _simulated(released, rows, factor_of_sample, std, covers, draws, seed, together)
        rank = order_statistic(draws, level)
        factor = float(np.sort(largest, axis=0)[rank - 1].max())
        used = draws
    return Band(
        points=at, center=center, low=center - factor * std, high=center + factor * std, std=std, factor=factor,
        confidence=level, simultaneous=together, covers=covers, draws=used, certainty=CERTAINTY if used else 1.0,
    )  # fmt: skip


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _simulated(
    released: ReleasedDensity,
    rows: Floats,
    sample: Floats,
    std: Floats,
    covers: str,
    draws: int,
    seed: int,
    together: bool,
) -> Floats:
    """|simulated error| / std: its largest over the points for each draw, or all of it."""
    m = rows.shape[1]
    scale = np.where(std > 0, std, 1.0)
    step = max(1, BLOCK // max(m, sample.shape[1], rows.shape[0], 1))
    parts = []
    for number, start in enumerate(range(0, draws, step)):
        count = min(step, draws - start)
        error = np.zeros((count, rows.shape[0]))
        if covers != "sampling":
            error += released.noise.draws(count, m, (seed << 20) + 4 * number) @ rows.T
        if covers != "noise":
            error += public_normals((count, sample.shape[1]), (seed << 20) + 4 * number + 2) @ sample.T
        size = np.abs(error) / scale
        parts.append(size.max(axis=1) if together else size)
    return np.concatenate(parts)
