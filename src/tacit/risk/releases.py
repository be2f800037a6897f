"""The price of a curator's release: its error, a lower bound for every mechanism, and their ratio.

Everything here is a closed formula of public numbers, quick enough to stand beside every preview. Bounds are per
cell. Each is below the worst expected absolute error, averaged over the cells, of every mechanism with the same
promise: pure epsilon, (epsilon, delta), rho or mu.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter, up
from tacit.guarantees import Neighbours
from tacit.mechanisms.base import epsilon_parameter
from tacit.risk.minimax import LARGEST, triples
from tacit.risk.minimax import SAFE_BOUND as RELEASES_SAFE

# What no mechanism can go below where privacy is (epsilon, delta), Gaussian or zero-concentrated.
#
# For a count on 0..n and a promise under which counts that are t apart keep 1 - TV >= overlap(t), the worst expected
# absolute error is at least
#
#     s sum_k (1 - (2k-1)/(floor(n/s)+1)) overlap(s (2k-1)),   k = 1, 2, ..., 2k - 1 <= floor(n/s),
#
# for every whole step s (theorem `count-trade-off`). For pure epsilon and a long range the sum is 1/sinh(epsilon),
# and for mu-Gaussian DP about the error of Gaussian noise, sqrt(2/pi)/mu: both are attained.

SAFE = 1 - 1e-9
TERMS = 4096
NEGLIGIBLE = 1e-9


class ReleaseOverlap(ABC):
    """A lower bound on the overlap (1 - TV) of the distributions of answers to counts this far apart."""

    @abstractmethod
    def at(self, distance: int) -> float:
        """For an odd distance."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """A distance beyond which next to nothing is in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateOverlap(ReleaseOverlap):
    """(epsilon, delta): at 2k - 1 twice q^(k-1) (a + c) - c, q = e^-epsilon, a = (1 - delta)/(1 + e^epsilon),
    c = delta/(e^epsilon - 1), where that is above 0."""

    epsilon: float
    delta: float = 0.0

    def at(self, distance: int) -> float:
        steps = (distance + 1) // 2 - 1
        a = (1 - self.delta) / (1 + math.exp(self.epsilon))
        c = self.delta / math.expm1(self.epsilon)
        # The difference may cancel: what rounding can add is taken off before.
        return max(0.0, 2 * (math.exp(-self.epsilon * steps) * (a + c) * (1 - 1e-12) - c))

    @property
    def reach(self) -> float:
        return 2 * (1 + min(-math.log(NEGLIGIBLE), math.log1p(1 / max(self.delta, 1e-300))) / self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianOverlap(ReleaseOverlap):
    """mu-Gaussian DP: 2 Phi(-t mu/2)."""

    mu: float

    def at(self, distance: int) -> float:
        return math.erfc(distance * self.mu / 2 / math.sqrt(2)) * (1 - 1e-12)

    @property
    def reach(self) -> float:
        return 13 / self.mu


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedOverlap(ReleaseOverlap):
    """rho-zCDP: 1 - sqrt(1 - e^(-rho t^2)), since the divergence of order 1 is at most rho t^2."""

    rho: float

    def at(self, distance: int) -> float:
        near = math.exp(-self.rho * distance * distance)
        # 1 - sqrt(1 - x) = x/(1 + sqrt(1 - x)), without cancelling.
        return near / (1 + math.sqrt(1 - near)) * (1 - 1e-12)

    @property
    def reach(self) -> float:
        return math.sqrt(-math.log(NEGLIGIBLE) / self.rho)


def count_trade_off(overlap: ReleaseOverlap, n: int | None) -> float:
    """The lower bound of a count on 0..n; without an n, of ranges of every length. Theorem `count-trade-off`."""
    total, moment, step = _sums(overlap, n)
    if n is None:
        return SAFE * step * total
    return SAFE * max(0.0, step * (total - moment / (n // step + 1)))


def least_count(overlap: ReleaseOverlap, share: float) -> tuple[float, int]:
    """This share of the bound without an n, and an n from which a count reaches it."""
    total, moment, step = _sums(overlap, None)
    if not total:
        return 0.0, 1
    units = max(moment / ((1 - share) * total), overlap.reach / step + 2)
    return SAFE * share * step * total, step * math.ceil(units)


def _sums(overlap: ReleaseOverlap, n: int | None) -> tuple[float, float, int]:
    """Sum of the overlaps at the odd multiples of a step, the same weighted by the multiples, and the step."""
    longest = overlap.reach if n is None else min(float(n), overlap.reach)
    step = max(1, math.ceil(longest / TERMS) | 1)  # odd: then its odd multiples are odd
    last = math.floor(longest / step) if n is None else min(n // step, math.ceil(longest / step))
    odd = range(1, last + 1, 2)
    values = [overlap.at(step * k) for k in odd] or ([overlap.at(1)] if n is None else [])
    ends = list(odd) or [1]
    return (
        math.fsum(values),
        math.fsum(k * v for k, v in zip(ends, values, strict=False)) * (1 + 1e-12),
        step,
    )


RELEASES = ("count", "histogram", "margins", "mean", "sum")
# Where n is not known the bound is this share of its limit, and holds from some n on.
SHARE = 0.9
TRIPLES = "histogram-triples"
SMALLEST = 1e-9
# Below this share of the limit, a short range is looked at as well.
GOOD, SHORT = 0.95, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePrice:
    """Per cell: the mechanism's error, a lower bound for every mechanism, and their ratio.

    `lower_bound` and `ratio` are None if no bound is known, and `reason` then says why. `least_n` is the
    smallest number of units for which the bound holds; None if it holds for the worst case over data of any
    size.
    """

    error: float
    lower_bound: float | None = None
    ratio: float | None = None
    theorem: str | None = None
    least_n: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For plans, certificates and reports: plain JSON values."""
        return {
            "error": self.error,
            "lower_bound": self.lower_bound,
            "ratio": self.ratio,
            "lower_bound_theorem": self.theorem,
            "least_n": self.least_n,
            "reason": self.reason,
        }

    record = formerly("record")


def quick_count(n: int | None, epsilon: float) -> float:
    """A lower bound of R*(n, epsilon), the smallest worst error of a count on 0..n, in closed form.

    The larger of 1/sinh(epsilon) - 1/((n+1) sinh(epsilon/2)^2) and max over t <= n of t/(e^(epsilon t) + 1);
    without an n the limit 1/sinh(epsilon), which is exact. Theorem `count-closed-form`.
    """
    limit = 1 / math.sinh(epsilon)
    if n is None:
        return RELEASES_SAFE * limit
    if n < 1:
        return 0.0
    # The difference may cancel: what rounding can add is taken off before.
    best = limit * (1 - 1e-12) - 1 / ((n + 1) * math.sinh(epsilon / 2) ** 2)
    # The best real step is 1.2785/epsilon; any whole step is valid.
    for t in {min(n, math.floor(1.2785 / epsilon)), min(n, math.ceil(1.2785 / epsilon))}:
        best = max(best, t / (math.exp(epsilon * t) + 1))
    if best < GOOD * limit:
        # Multiples of s are a count with s epsilon: R*(n, epsilon) >= s R*(n/s, s epsilon).
        step = max(1, min(math.ceil(n / SHORT), math.floor(0.3 / epsilon)))
        best = max(best, step * _short_range(min(n // step, SHORT), step * epsilon))
    return RELEASES_SAFE * max(0.0, best)


@lru_cache(maxsize=1024)
def _short_range(n: int, epsilon: float) -> float:
    """The certificate of `optimal-count-remap` for two simple priors; a shorter range is a valid one."""
    import numpy as np

    from tacit.risk.certificate import GeometricKernel, Loss, bayes_floor

    kernel = GeometricKernel(n=n, epsilon=epsilon)
    x = np.arange(n + 1)
    peaked = np.exp(-0.5 * epsilon * np.abs(x - n / 2))
    ends = np.where((x == 0) | (x == n), 1 / epsilon, 1.0)
    return max(bayes_floor(kernel, Loss(name="absolute"), prior) for prior in (peaked, ends))


def release_price(
    problem: str,
    *,
    error: float,
    epsilon: Exact | None = None,
    neighbours: Neighbours,
    delta: Exact = 0,
    rho: Exact | None = None,
    mu: Exact | None = None,
    cells: int = 1,
    attributes: int = 1,
    n: int | None = None,
    at_most: int = 1,
    low: float = 0.0,
    high: float = 1.0,
) -> ReleasePrice:
    """The price of a count, histogram, margins, sum or mean, from public numbers only.

    `error` is the mechanism's own worst expected absolute error per cell; `n` the number of units (people, or
    rows where rows are protected) if it is public, its largest value under add-or-remove; `cells` the number of
    released numbers, `attributes` the number of margins that they form; `at_most` the largest number of rows of
    one unit in a cell; `low` and `high` the least and largest contribution of a row to a sum. A count is of the
    units with a property that each may or may not have. Theorems `count-closed-form`, `embedded-counts`; with a
    delta, and for a promise in rho (zCDP) or mu (Gaussian DP) in place of epsilon, `count-trade-off`.
    """
    if problem not in RELEASES:
        raise UnknownName(what="problem", name=str(problem), known=RELEASES)
    if not (isinstance(error, (int, float)) and math.isfinite(error) and error > 0):
        raise InvalidParameter(parameter="error", value=error, must="be a finite number above 0")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter(parameter="low", value=low, must=f"be finite and below high = {high}")
    promise = _promise(epsilon, delta, rho, mu)
    cells = whole("cells", cells, least=1)
    attributes = whole("attributes", attributes, least=1)
    rows = whole("at_most", at_most, least=1)
    known = None if n is None else whole("n", n, least=1)
    reason: str | None
    if isinstance(promise, str):
        reason = promise
    elif problem == "mean" and (known is None or neighbours is not Neighbours.REPLACE_ONE):
        reason = "a mean over an unknown number of units has no bound known to us"
    elif problem == "mean" and (cells > 1 or rows > 1):
        reason = "a mean over groups, or over units with several rows, has no bound known to us"
    else:
        reason = None
    if reason is not None or isinstance(promise, str):
        return ReleasePrice(error=float(error), reason=reason)
    value, least_n, theorem = _per_cell(
        problem, promise, neighbours, cells, attributes, known, rows * low, rows * high
    )
    if problem in ("count", "histogram", "margins"):
        value *= rows
        theorem = theorem if rows == 1 else "embedded-counts"
    if value <= 0:
        return ReleasePrice(error=float(error), reason="too few units for a bound that says anything")
    if value > error:
        return ReleasePrice(
            error=float(error),
            lower_bound=value,
            theorem=theorem,
            least_n=least_n,
            reason="the error given is below what any mechanism has in the worst case: it is not the worst case",
        )
    return ReleasePrice(
        error=float(error), lower_bound=value, ratio=error / value, theorem=theorem, least_n=least_n
    )


def _promise(
    epsilon: Exact | None, delta: Exact, rho: Exact | None, mu: Exact | None
) -> float | ReleaseOverlap | str:
    """A pure epsilon, the remainder of another promise, or the reason for a missing bound."""
    given = {
        name: value for name, value in (("epsilon", epsilon), ("mu", mu), ("rho", rho)) if value is not None
    }
    least = exact_parameter("delta", delta, positive=False)
    if len(given) != 1 or not 0 <= least < 1 or (least and epsilon is None):
        raise InvalidParameter(
            parameter="epsilon",
            value=sorted(given),
            must="be given, or rho, or mu; a delta in [0, 1) with epsilon",
        )
    name, value = next(iter(given.items()))
    level = float(epsilon_parameter(value))
    if level > LARGEST or level < SMALLEST:
        return f"no bound is computed for {name} above {LARGEST:g} or below {SMALLEST:g}"
    if name == "epsilon":
        return ApproximateOverlap(epsilon=level, delta=up(least)) if least else level
    return GaussianOverlap(mu=level) if name == "mu" else ConcentratedOverlap(rho=level)


def _least(promise: float | ReleaseOverlap) -> tuple[float, int]:
    """A share of the bound of a count without an n, and the n from which on it holds."""
    if isinstance(promise, ReleaseOverlap):
        return least_count(promise, SHARE)
    # (n_j + 1) >= (1/(1 - SHARE)) sinh(e)/sinh(e/2)^2 = 2 coth(e/2)/(1 - SHARE) in every share.
    return RELEASES_SAFE * SHARE / math.sinh(promise), math.ceil(2 / (1 - SHARE) / math.tanh(promise / 2))


def _count(promise: float | ReleaseOverlap, n: int | None) -> float:
    return count_trade_off(promise, n) if isinstance(promise, ReleaseOverlap) else quick_count(n, promise)


def _per_cell(
    problem: str,
    promise: float | ReleaseOverlap,
    neighbours: Neighbours,
    cells: int,
    attributes: int,
    n: int | None,
    low: float,
    high: float,
) -> tuple[float, int | None, str]:
    """The bound for one row per unit and cell, the n from which on it holds, and the theorem."""
    replace = neighbours is Neighbours.REPLACE_ONE
    grouped = problem in ("count", "histogram") and cells > 1
    pure = not isinstance(promise, ReleaseOverlap)
    name = "histogram-pairs" if grouped else "count-closed-form" if problem == "count" else "embedded-counts"
    name = name if pure else "count-trade-off"
    # Each entry: so many counts of their own among so many equal shares of the units, and what each is worth.
    ways: list[tuple[int, int, float]] = []
    if problem == "count" and cells == 1:
        ways = [(1, 1, 1.0)]
    elif problem in ("count", "histogram"):
        ways = [(2 * (cells // 2), max(1, cells // 2), 1.0)] if replace else [(cells, cells, 1.0)]
    elif problem == "margins":
        # All but one cell of each margin; where a margin has one cell, its other one is not released.
        free = attributes if cells == attributes else cells - attributes
        widest = 1 if cells == attributes else free if cells < 2 * attributes else free - attributes + 1
        ways = [(free, max(1, widest) if replace else max(1, free), 1.0)]
    else:
        most = max(abs(low), abs(high))
        ways = [(cells, cells, high - low if replace else most)]
        if replace and cells >= 2:
            ways.append((2 * (cells // 2), cells // 2, most))
    if n is None and replace:
        counts, shares, worth = max(ways, key=lambda way: way[0] * way[2])
        # Groups of three are worth more and need ten times as many units, so they are for a known n only.
        value, each = _least(promise)
        return value * counts * worth / cells, shares * each, name
    best = 0.0
    for counts, shares, worth in ways:
        for used in _used(shares, n, promise):
            value = _count(promise, None if n is None else n // used)
            best = max(best, counts * used / shares * worth * value)
    three = 0.0
    if grouped and replace and n is not None and cells >= 3 and not isinstance(promise, ReleaseOverlap):
        three = triples(cells, n, promise)
    name, best = (TRIPLES, three) if three > best else (name, best)
    best = best / (n if problem == "mean" and n is not None else 1)
    return RELEASES_SAFE * best / cells, n, name


def _used(shares: int, n: int | None, promise: float | ReleaseOverlap) -> set[int]:
    """The number of shares with any units: a few units do more on some shares than spread over all."""
    if n is None:
        return {shares}
    # Of other promises: the epsilon at which as much is in common at a distance.
    epsilon = 2 * 20.7 / promise.reach if isinstance(promise, ReleaseOverlap) else promise
    return {max(1, min(shares, n, math.ceil(n * epsilon / units))) for units in (3, 15)} | {min(shares, n)}
