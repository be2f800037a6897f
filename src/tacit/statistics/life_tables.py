"""Life tables from noisy cells: survival, hazards, incidence by cause, restricted mean and median, with intervals.

With e_cj events of cause c and c_j censored people in bin j, b people beyond the last bin, and e_j = sum_c e_cj:

    Y_j  = sum over k >= j of (e_k + c_k) + b      at risk when bin j begins
    Y'_j = Y_j - c_j / 2                           the actuarial correction
    S(t) = prod over j <= t of (1 - e_j / Y'_j),   Lambda(t) = sum e_j / Y'_j,
    F_c(t) = sum over j <= t of S(j-1) e_cj / Y'_j.

All are smooth functions of the cells that do not change when all cells are multiplied, so that a sample of independent
people and independent noise of variance v have, to first order, the covariance J diag(x + v) J', J the derivatives by
the cells x. Noisy cells estimate x without bias; making them non-negative first would bias the curve.
Theorem `survival-intervals`. Post-processing; no code here sees a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms.spreads import normal_factor

FEWEST = 10.0
"""A curve ends before a bin with fewer people at risk than these, or than `CLEAR` standard deviations of the noise."""
CLEAR = 4.0
DRAWS = 20_000
"""The number of draws for the quantile of the largest of several normal numbers; the draws are always the same."""

Band = tuple[Floats, Floats, Floats]
"""Value, low and high of every bin; NaN where the curve has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeTable:
    """The noisy cells of one group, with the variance of their noise, and the edges of the bins.

    `events` has one row for each cause; `within(k, level)` bounds the noise in a sum of k cells.
    """

    events: Floats
    censored: Floats
    beyond: float
    edges: Floats
    noise_variance: float
    within: Callable[[int, float], float]

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self.censored.size

    @property
    def cells(self) -> Floats:
        """All cells: events cause by cause, censored, beyond."""
        return np.concatenate([self.events.ravel(), self.censored, [self.beyond]])

    @property
    def at_risk(self) -> Floats:
        """Y_j: the number at risk when each bin begins."""
        leaving = self.events.sum(axis=0) + self.censored
        return np.cumsum(leaving[::-1])[::-1] + self.beyond

    @property
    def exposed(self) -> Floats:
        """Y'_j, as if people censored in a bin were at risk for half of it."""
        return self.at_risk - self.censored / 2

    @property
    def end(self) -> int:
        """The number of published bins: those before the first with too few people at risk, or with almost nobody
        left.
        """
        rise, left = self._exposed_by_cells(), self.exposed - self.events.sum(axis=0)
        spread = np.sqrt(self.noise_variance * (rise**2).sum(axis=1))
        short = self.exposed < np.maximum(FEWEST, CLEAR * spread)
        gone = left < np.maximum(1.0, spread)
        ended = np.flatnonzero(short | gone)
        return int(ended[0]) if ended.size else self.bins

    # --- derivatives by the cells -------------------------------------------------------------------------
    def _exposed_by_cells(self) -> Floats:
        k = self.bins
        later = np.triu(np.ones((k, k)))
        return np.hstack([*[later] * len(self.events), later - np.eye(k) / 2, np.ones((k, 1))])

    def _events_by_cells(self, n: int) -> Floats:
        by = np.zeros((n, self.cells.size))
        for cause in range(len(self.events)):
            by[np.arange(n), cause * self.bins + np.arange(n)] = 1.0
        return by

    def _middle(self, n: int) -> tuple[Floats, Floats]:
        """People under observation in the middle of the first n bins, when half of their events are over."""
        by = self._exposed_by_cells()[:n] - self._events_by_cells(n) / 2
        return self.exposed[:n] - self.events.sum(axis=0)[:n] / 2, by

    def _hazards(self, n: int) -> tuple[Floats, list[Floats]]:
        """e_cj / Y'_j of the first n bins, and their derivatives by the cells, cause by cause."""
        k, causes = self.bins, len(self.events)
        rise, exposed = self._exposed_by_cells()[:n], self.exposed[:n]
        hazards = self.events[:, :n] / exposed
        slopes = []
        for cause in range(causes):
            own = np.zeros((n, rise.shape[1]))
            own[np.arange(n), cause * k + np.arange(n)] = 1.0
            slopes.append((own - hazards[cause][:, None] * rise) / exposed[:, None])
        return hazards, slopes

    def _spread(self, slopes: Floats) -> Floats:
        """The covariance of functions with these derivatives: of sampling and of noise."""
        return np.asarray((slopes * (self.cells + self.noise_variance)) @ slopes.T)

    def _std(self, slopes: Floats) -> Floats:
        """The standard deviation, with the noise of its own estimate added; never below that of the noise."""
        noise = self.noise_variance * (slopes**2).sum(axis=-1)
        sampling = (slopes**2 * self.cells).sum(axis=-1) + np.sqrt(
            self.noise_variance * (slopes**4).sum(axis=-1)
        )
        return np.asarray(np.sqrt(np.maximum(sampling, 0.0) + noise))

    # --- what is published --------------------------------------------------------------------------------
    def survival(self, level: float) -> tuple[Band, Band]:
        """S at the end of each bin: with an interval for each bin by itself, and with a band for all at once."""
        n = self.end
        losses, slopes = self._losses(n)
        std = self._std(slopes)
        return tuple(
            self._filled(_survival(losses, std, factor, 1 / self.exposed[:n]))
            for factor in (normal_factor(1 - level), largest_quantile(self._spread(slopes), std, level))
        )  # type: ignore[return-value]

    def _losses(self, n: int) -> tuple[Floats, Floats]:
        """-log S at the end of the first n bins, with its derivatives."""
        hazards, by_cause = self._hazards(n)
        total = hazards.sum(axis=0)
        slopes = np.sum(by_cause, axis=0) / (1 - total)[:, None]
        return np.cumsum(-np.log1p(-total)), np.cumsum(slopes, axis=0)

    def hazard(self, level: float) -> Band:
        """The cumulative hazard of Nelson and Aalen, with those who have an event at risk for half of its bin.

        e / (Y' - e/2) is the -log(1 - e/Y') of a constant hazard up to a twelfth of the cube of e/Y'.
        """
        n = self.end
        hazards, by_cause = self._hazards(n)
        total = hazards.sum(axis=0)
        value = np.cumsum(total / (1 - total / 2))
        slopes = np.cumsum(np.sum(by_cause, axis=0) / ((1 - total / 2) ** 2)[:, None], axis=0)
        low, high = _positive(value, self._std(slopes), normal_factor(1 - level), 1 / self.exposed[:n])
        return self._filled(_rising(value, low, high))

    def incidence(self, cause: int, level: float) -> Band:
        """The share that has had an event of this cause by the end of each bin."""
        n = self.end
        hazards, by_cause = self._hazards(n)
        losses, loss_slopes = self._losses(n)
        before = np.concatenate([[1.0], np.exp(-losses)[:-1]])
        lost = np.vstack([np.zeros((1, loss_slopes.shape[1])), -loss_slopes[:-1]])
        value = np.cumsum(before * hazards[cause])
        slopes = np.cumsum(before[:, None] * (by_cause[cause] + hazards[cause][:, None] * lost), axis=0)
        low, high = _positive(value, self._std(slopes), normal_factor(1 - level), 1 / self.exposed[:n])
        value, low, high = _rising(value, low, high)
        return self._filled((np.clip(value, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)))

    def restricted_mean(self, bins: int, level: float) -> tuple[float, float, float]:
        """The mean time until an event or the end of these bins, whichever is first; empty if the curve ends
        before.

        Within a bin the curve lies between its two ends. The value assumes a straight curve; the interval includes
        every other shape.
        """
        if self.end < bins:
            return np.nan, np.nan, np.nan
        losses, slopes = self._losses(bins)
        width = np.diff(self.edges[: bins + 1])
        weights = width / 2 + np.append(width[1:] / 2, 0.0)
        curve = np.exp(-losses)
        value = width[0] / 2 + float(weights @ curve)
        std = float(self._std(-(weights * curve) @ slopes))
        shown = np.clip(np.minimum.accumulate(curve), 0.0, 1.0)
        bent = float(width @ -np.diff(shown, prepend=1.0)) / 2
        half = normal_factor(1 - level) * std + bent
        most = float(self.edges[bins] - self.edges[0])
        value = float(np.clip(value, 0.0, most))
        return value, max(value - half, 0.0), min(value + half, most)

    def median(self, level: float) -> tuple[float, float, float]:
        """The bin in which half of the people have had an event, with all times that the intervals do not exclude.

        If the interval of S misses S at the end of one fixed bin with at most this probability, so does this
        interval. It ends with the first bin whose interval lies below 1/2, and begins with the first bin whose
        interval does not lie above 1/2.
        """
        (value, low, high), _ = self.survival(level)
        ends = self.edges[1:]
        reached = np.flatnonzero(value <= 0.5)
        first, last = np.flatnonzero(low <= 0.5), np.flatnonzero(high <= 0.5)
        start = float(self.edges[first[0]]) if first.size else float(self.edges[self.end])
        stop = float(ends[last[0]]) if last.size else np.inf
        if not reached.size:
            return np.nan, start, np.inf
        j = int(reached[0])
        before, after = (float(value[j - 1]) if j else 1.0), float(value[j])
        share = (before - 0.5) / (before - after) if before > after else 1.0
        middle = float(self.edges[j] + share * (ends[j] - self.edges[j]))
        return middle, min(start, middle), max(stop, middle)

    def numbers_at_risk(self, level: float) -> Band:
        """Y_j at the start of each bin, of the people in the table; the interval covers the noise alone."""
        k, causes = self.bins, len(self.events)
        half = np.array([self.within((causes + 1) * (k - j) + 1, level) for j in range(k)])
        value = self.at_risk
        low, high = np.maximum(np.floor(value - half), 0.0), np.maximum(np.ceil(value + half), 0.0)
        shown = np.maximum(np.rint(value), 0.0)
        return shown, np.minimum(low, shown), np.maximum(high, shown)

    def _filled(self, band: Band) -> Band:
        """The bins after the end get no value."""
        missing = self.bins - band[0].size
        value, low, high = (np.concatenate([x, np.full(missing, np.nan)]) for x in band)
        return value, low, high


def _survival(losses: Floats, std: Floats, factor: float, one: Floats) -> Band:
    """S = exp(-loss), monotone and within [0, 1], with its interval."""
    low, high = _positive(losses, std, factor, one)
    value = np.minimum.accumulate(np.clip(np.exp(-losses), 0.0, 1.0))
    ends = np.exp(-high), np.exp(-low)
    return value, np.minimum(ends[0], value), np.maximum(ends[1], value)


def _positive(value: Floats, std: Floats, factor: float, one: Floats) -> tuple[Floats, Floats]:
    """The interval of a non-negative number: on a logarithmic scale if it is clearly above 0.

    Otherwise it rests on few events, each worth `one`. The upper end is then Wilson's, which tests each value
    by that value's own spread.
    """
    reach = factor * std
    clear = value > reach
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        spread = np.exp(np.where(clear, reach / np.where(clear, value, 1.0), 0.0))
    low = np.where(clear, value / spread, np.maximum(value - reach, 0.0))
    wilson = value + one * factor**2 / 2 + factor * np.sqrt(std**2 + (one * factor / 2) ** 2)
    return low, np.where(clear, value * spread, np.maximum(wilson, 0.0))


def _rising(value: Floats, low: Floats, high: Floats) -> Band:
    """A value that never falls, with its interval."""
    shown = np.maximum.accumulate(np.maximum(value, 0.0)) if value.size else value
    return shown, np.minimum(low, shown), np.maximum(high, shown)


def largest_quantile(covariance: Floats, std: Floats, level: float) -> float:
    """z with Pr[max |Z_i| <= z] = level for normal Z with this covariance, in units of these standard deviations."""
    moving = std > 0
    covariance, std = covariance[np.ix_(moving, moving)], std[moving]
    if std.size <= 1:
        return normal_factor(1 - level)
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    largest = np.abs(_normals(std.size) @ root.T).max(axis=1)
    return max(float(np.quantile(largest, level, method="higher")), normal_factor(1 - level))


@lru_cache(maxsize=4)
def _normals(count: int) -> Floats:
    """Normal numbers by a counter and a hash (splitmix64): the same on every machine and in every version."""
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        x = (np.arange(1, DRAWS * count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return np.asarray(ndtri(((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)).reshape(DRAWS, count)


# --- two groups ---------------------------------------------------------------------------------------------
def compared(one: LifeTable, two: LifeTable, level: float) -> dict[str, tuple[float, float, float]]:
    """The hazard ratio of the first group to the second, of Mantel and Haenszel, and the log-rank statistic.

    With d_gj events, M_gj = Y'_gj - d_gj / 2 the people under observation in the middle of bin j, and M_j their sum:
    the ratio is sum_j d_1j M_2j / M_j over sum_j d_2j M_1j / M_j, and their difference is the log-rank numerator
    sum_j (d_1j - d_j M_1j / M_j). Both are smooth functions of the cells. z is the difference over its standard
    deviation, and its interval holds 0 unless the test at this level says that the hazards differ.
    """
    nothing = (np.nan, np.nan, np.nan)
    n = min(one.end, two.end)
    if n == 0:
        return {"hazard ratio": nothing, "log-rank z": nothing}
    sums, slopes = [], []
    for own, other, first in ((one, two, True), (two, one, False)):
        d, (y, rise), (z, other_rise) = own.events.sum(axis=0)[:n], own._middle(n), other._middle(n)
        share = z / (y + z)
        sums.append(float(d @ share))
        by_own = share @ own._events_by_cells(n) - (d * share / (y + z)) @ rise
        by_other = (d * (1 - share) / (y + z)) @ other_rise
        slopes.append(np.concatenate([by_own, by_other] if first else [by_other, by_own]))
    noise = np.concatenate([np.full(t.cells.size, t.noise_variance) for t in (one, two)])
    cells = np.concatenate([one.cells, two.cells])

    def std(slope: Floats) -> float:
        return float(np.sqrt(max(slope**2 @ (cells + noise), slope**2 @ noise)))

    factor = normal_factor(1 - level)
    spread = std(slopes[0] - slopes[1])
    statistic = (sums[0] - sums[1]) / spread if spread > 0 else np.nan
    told = {"log-rank z": (statistic, statistic - factor, statistic + factor), "hazard ratio": nothing}
    clear = all(
        s > CLEAR * np.sqrt(slope**2 @ noise) and s > 0 for s, slope in zip(sums, slopes, strict=True)
    )
    if clear:
        log, half = np.log(sums[0] / sums[1]), factor * std(slopes[0] / sums[0] - slopes[1] / sums[1])
        told["hazard ratio"] = tuple(float(np.exp(x)) for x in (log, log - half, log + half))  # type: ignore[assignment]
    return told
