"""Sparse histograms: noise on every cell of a huge domain, without visiting the empty ones.

Noise on all p cells and a threshold give back few cells. The occupied ones are noised one by one. The number of
passing empty cells is one binomial draw, their places are uniform, and their values follow the distribution of the
noise given that it passes. The output has the same distribution as noise on every cell (theorem `sparse-histogram`),
at the cost of the output alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified, TooManyCells
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import add_exact, check_fields, integer_array, narrowed, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, bisected, exact_parameter, precision, up, upper
from tacit.guarantees import Bound
from tacit.mechanisms.base import L1, L2, Mechanism, confidence_level
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.sparse_keys import (
    Impossible,
    NoiseTails,
    domain_size,
    draw_empty,
    key_integers,
    pack_keys,
    tails,
)
from tacit.noise import Binomial, DiscreteGaussian, DiscreteLaplace, OneSidedGeometric
from tacit.noise.distributions.base import CHUNK, Uniform, joined
from tacit.noise.source import Source, default_source

__all__ = ["SparseHistogram", "SparseReleased", "SparseTable", "hall_threshold", "noise_floor"]

# Noise of cells that are never visited: how many pass a threshold, and the values of those that do, exactly.

Law = DiscreteLaplace | DiscreteGaussian
MARGIN = 2.0**-40


def tail_ball(law: Law, least: int) -> Ball:
    """A ball around Pr[noise >= least]."""
    return law.survival_ball(least)


def count_passing(law: Law, cells: int, least: int, source: Source) -> int:
    """The number of `cells` independent draws that are at least `least`: binomial, exactly."""
    if cells == 0:
        return 0
    return int(_passing(law, cells, least).sample(source=source))


@lru_cache(maxsize=64)
def _passing(law: Law, cells: int, least: int) -> Binomial:
    """Kept, since its tables serve every later release of the same kind."""
    return Binomial(trials=cells, probability_of_one=law.survival_real(least))


def passing_noise(law: Law, count: int, least: int, source: Source) -> AnyArray:
    """`count` draws of the distribution given that it is at least `least`.

    Laplace, least >= 1: least + geometric, since the tail has no memory. Gaussian far out: least + geometric of rate
    least / noise_std^2, kept with chance exp(-(x - least)^2 / (2 noise_std^2)), which is the ratio of the two
    distributions.
    Otherwise draws of the distribution itself, until they pass (at least one in seven does).
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    if isinstance(law, DiscreteLaplace) and least >= 1:
        return least + OneSidedGeometric(noise_scale=law.noise_scale).sample(size=count, source=source)
    far = isinstance(law, DiscreteGaussian) and Fraction(least) ** 2 >= law.parameter and least >= 1
    parts: list[AnyArray] = []
    missing = count
    while missing > 0:
        tries = min(CHUNK, 2 * missing + 16)
        if far:
            assert isinstance(law, DiscreteGaussian)
            beyond = OneSidedGeometric(noise_scale=law.parameter / least).sample(size=tries, source=source)
            kept = least + beyond[_keep(beyond, law.parameter, source)]
        else:
            drawn = law.sample(size=tries, source=source)
            kept = drawn[np.asarray(drawn >= least, dtype=np.bool_)]
        parts.append(kept[:missing])
        missing -= parts[-1].size
    return joined(parts)


def _keep(beyond: AnyArray, variance: Fraction, source: Source) -> npt.NDArray[np.bool_]:
    """Coins with chance exp(-x^2 / (2 variance)): floats settle all but one in 2^39, balls the rest."""
    words = source.words(beyond.size)
    x = beyond.astype(np.float64)
    chance = np.exp(-x * x / (2.0 * float(variance)))
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    keep: npt.NDArray[np.bool_] = uniform < chance
    for i in np.flatnonzero(np.abs(uniform - chance) < MARGIN):
        keep[i] = _exactly(int(beyond[i]), int(words[i]), variance, source)
    return keep


def _exactly(x: int, word: int, variance: Fraction, source: Source) -> bool:
    exponent = Fraction(x * x) / (2 * variance)

    def chance() -> Any:
        return (-ball(exponent)).exp()

    return Uniform(value=word, bits=64, source=source).below(chance)


MOST_FALSE = 1 << 20
"""The default for the expected number of empty cells above the floor."""

MOST_CELLS = 1 << 26
Rule = Literal["hall", "known", "floor"]


class ThresholdRule(TypedDict, total=False):
    """The argument of `SparseHistogram.with_rule` beside the noise and the domain: a threshold, or a rule for it."""

    threshold: int | None
    rule: Rule
    occupied: int | None
    impossible: Impossible | None


def _noise(noise: object) -> Laplace | Gaussian:
    if isinstance(noise, Laplace | Gaussian) and noise.step == 1:
        return noise
    raise InvalidParameter(
        parameter="noise",
        value=noise,
        must="be Laplace or Gaussian noise with spacing 1",
        hint="counts are integers",
    )


def hall_threshold(noise: Laplace | Gaussian, *, cells: int, occupied: int = 1) -> int:
    """floor(noise_scale ln(p/q)): Hall's (2/epsilon) ln p for q = 1, his threshold for a known q otherwise.

    With continuous Laplace noise this leaves p Pr[noise > t] = q/2 empty cells; for Gaussian noise it is the least
    integer t with that property.
    """
    law, q = _noise(noise).distribution, whole("occupied", occupied, least=1)
    p = domain_size(cells, "cells")
    if q > p:
        raise InvalidParameter(
            parameter="occupied", value=q, must=f"be at most the {p:,} cells of the domain"
        )
    if isinstance(noise, Laplace):
        scale = Fraction(noise.noise_scale)
        with precision(1024):
            # e is transcendental: the product is an integer for p = q only, and then the ball is exact.
            found = (ball(scale) * ball(Fraction(p, q)).log()).floor().unique_fmpz()
        if found is None:
            raise NotCertified(
                what="a threshold", reason="noise_scale ln(p/q) cannot be told from an integer"
            )
        return int(found)
    return _least_with(law, Fraction(q, 2 * p))


def noise_floor(noise: Laplace | Gaussian, *, cells: int, expected_false: int = MOST_FALSE) -> int:
    """The least t >= 0 that at most `expected_false` of p empty cells pass on average: p Pr[noise > t] <= that."""
    p = domain_size(cells, "cells")
    most = whole("expected_false", expected_false, least=1)
    return 0 if p <= 2 * most else _least_with(_noise(noise).distribution, Fraction(most, p))


def _least_with(law: Any, chance: Fraction) -> int:
    """The least t >= 0 with Pr[noise > t] <= chance."""
    return max(0, int(law.quantile(1 - chance)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseHistogram(Mechanism):
    """The cells of a histogram whose noisy count is above a threshold; the others are 0 and are not listed.

    Output: {(i, theta_i + Z_i) : theta_i + Z_i > threshold} over all `domain` cells but the impossible ones, Z_i
    independent with the distribution of `noise`. Guarantee: that of the noise, since dropping cells is
    post-processing; the
    sampling is exact and takes time and memory for the occupied cells and the output only.
    Assumptions: the domain, the threshold and the impossible cells are public; the counts' sensitivity is the
    noise's: in L1 2 under replace-one and 1 under add-or-remove, times the rows of a unit. Theorem `sparse-histogram`.
    Source: Hall 2012, eq. (2.3), (2.4); Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    threshold_is_fixed: ClassVar[bool] = False
    noise: Laplace | Gaussian
    domain: int
    threshold: int
    impossible: Impossible | None = None

    def __post_init__(self) -> None:
        _noise(self.noise)
        object.__setattr__(self, "domain", domain_size(self.domain))
        if self.impossible is not None:
            if not isinstance(self.impossible, Impossible):
                raise InvalidParameter(
                    parameter="impossible", value=self.impossible, must="be Impossible(...)"
                )
            object.__setattr__(self, "impossible", self.impossible.listed(self.domain))
            self.impossible.within_reach(self.domain)
        check_fields(self, threshold=partial(whole, least=None))
        if self.cells < 1:
            raise InvalidParameter(
                parameter="impossible",
                value=self.domain - self.cells,
                must="leave at least one possible cell",
            )
        if isinstance(self.noise, Gaussian) and self.noise.dimension < min(self.cells, self.domain):
            raise InvalidParameter(
                parameter="dimension",
                value=self.noise.dimension,
                must=f"be at least the {self.cells:,} noised cells",
            )
        if self.expected_false > MOST_CELLS:
            raise TooManyCells(
                cells=int(min(self.expected_false, 1e300)), limit=MOST_CELLS,
                hint=f"empty cells would pass the threshold: raise it to {noise_floor(self.noise, cells=self.cells)}"
                " or more",
            )  # fmt: skip

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        sensitivity: L1 | L2,
        domain: int,
        **how: Unpack[ThresholdRule],
    ) -> SparseHistogram:
        """Laplace noise for a pure epsilon and an L1 sensitivity, Gaussian noise for (epsilon, delta) and an L2 one.

        For units with many keys Gaussian noise is smaller. threshold=, rule=, occupied= and impossible= as for
        `with_rule`.
        """
        noise: Laplace | Gaussian
        if isinstance(sensitivity, L2):
            noise = Gaussian.for_target(
                epsilon=epsilon, delta=delta, sensitivity=sensitivity, dimension=domain_size(domain)
            )
        else:
            if exact_parameter("delta", delta, positive=False) != 0:
                raise InvalidParameter(
                    parameter="delta", value=delta, must="be 0 for an L1 sensitivity: Laplace noise has no delta",
                    hint="give an L2 sensitivity for Gaussian noise",
                )  # fmt: skip
            noise = Laplace.for_target(epsilon=epsilon, sensitivity=sensitivity)
        return cls.with_rule(noise=noise, domain=domain, **how)

    @classmethod
    def with_rule(
        cls,
        *,
        noise: Laplace | Gaussian,
        domain: int,
        threshold: int | None = None,
        rule: Rule = "hall",
        occupied: int | None = None,
        impossible: Impossible | None = None,
    ) -> SparseHistogram:
        """The threshold by a public rule: "hall" (noise_scale ln p), "known" (noise_scale ln(p/q), q = occupied, a
        public number), or "floor": low, so that a choice made after the noise has values to choose from."""
        p = domain_size(domain)
        if impossible is not None and not isinstance(impossible, Impossible):
            raise InvalidParameter(
                parameter="impossible", value=type(impossible).__name__, must="be Impossible(...)"
            )
        if not isinstance(rule, str) or rule not in ("hall", "known", "floor"):
            raise InvalidParameter(parameter="rule", value=rule, must="be hall, known or floor")
        if occupied is not None:
            occupied = whole("occupied", occupied, least=1)
        cells = p - (impossible.within(p)[1] if impossible is not None else 0)
        if threshold is None and cells >= 1:
            if rule == "known":
                if occupied is None:
                    raise InvalidParameter(
                        parameter="occupied", value=None, must="be a public number of occupied cells for this rule",
                        hint="where it is not public use rule='floor' and choose after the noise",
                    )  # fmt: skip
                threshold = hall_threshold(noise, cells=cells, occupied=occupied)
            elif rule == "floor":
                threshold = noise_floor(noise, cells=cells)
            else:
                threshold = hall_threshold(noise, cells=cells)
        return cls(
            noise=noise, domain=p, threshold=0 if threshold is None else threshold, impossible=impossible
        )

    @property
    def cells(self) -> int:
        """The number of cells that can be occupied: the domain without the impossible ones."""
        return self.domain - (0 if self.impossible is None else self.impossible.within(self.domain)[1])

    @property
    def bound(self) -> Bound:
        return self.noise.bound

    @property
    def event(self) -> Event:
        """The noise's own event: all cells were noised, whether or not they were visited."""
        return self.noise.event

    @property
    def exact_epsilon(self) -> Fraction | None:
        return self.noise.exact_epsilon

    @property
    def exact_rho(self) -> Fraction | None:
        return self.noise.exact_rho

    @property
    def theorems(self) -> tuple[str, ...]:
        chosen = "false-discovery" if self.exact_epsilon is None else "estimated-risk"
        return ("sparse-histogram", self.noise.theorems[0], chosen)

    def published(
        self, keys: npt.ArrayLike, counts: npt.ArrayLike, *, false_share: Exact, source: Source | None = None
    ) -> tuple[AnyArray, AnyArray, int]:
        """Outstanding cells, chosen after the noise: by estimated risk (Laplace), by false discoveries (Gaussian)."""
        found = self.release(keys, counts, source=source)
        pure = self.exact_epsilon is not None
        table = found.by_estimated_risk() if pure else found.by_false_discovery(false_share)
        return table.keys, table.values, table.threshold

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            **self.noise.noise_distribution,
            "threshold": self.threshold,
            "domain": str(self.domain),
            "cells": str(self.cells),
        }

    @property
    def expected_false(self) -> float:
        """The expected number of released cells if all cells were empty."""
        return upper(lambda: tail_ball(self.noise.distribution, self.threshold + 1) * self.cells)

    # -- release ---------------------------------------------------------------------------------------

    def release(
        self, keys: npt.ArrayLike, counts: npt.ArrayLike, *, source: Source | None = None
    ) -> SparseReleased:
        """Noise, threshold, and the empty cells that pass by chance. The keys are sorted, so that their order
        reveals nothing.
        """
        source = source if source is not None else default_source()
        occupied, true = self._checked(keys, counts)
        noisy = add_exact(true, self.noise.distribution.sample(size=true.size, source=source))
        passed = np.asarray(noisy > self.threshold, dtype=np.bool_)
        least = self.threshold + 1
        number = count_passing(self.noise.distribution, self.cells - int(occupied.size), least, source)
        places = draw_empty(
            number, domain=self.domain, occupied=occupied, impossible=self.impossible, source=source
        )
        number = int(places.size)
        values = passing_noise(self.noise.distribution, number, least, source)
        kept = occupied[passed]
        at = np.searchsorted(kept, places)
        return SparseReleased(
            keys=np.insert(kept, at, places) if number else kept,
            values=_joined(noisy[passed], at, values),
            mechanism=self,
            publishable=source.publishable,
        )

    def _checked(self, keys: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[AnyArray, AnyArray]:
        occupied, true = pack_keys(keys, self.domain), integer_array(counts, name="counts")
        if true.shape != occupied.shape:
            raise InvalidParameter(
                parameter="counts",
                value=f"{true.size} numbers",
                must=f"be one for each of the {occupied.size} keys",
            )
        if occupied.size > self.cells:
            raise InvalidParameter(
                parameter="keys", value=f"{occupied.size} keys", must=f"be at most the {self.cells:,} possible cells"
            )  # fmt: skip
        refuse_if(true.size and int(true.min()) < 0, "counts", "a negative count", "be at least 0")
        if self.impossible is not None:
            listed = self.impossible.within(self.domain)[0]
            both = np.intersect1d(occupied, listed, assume_unique=True) if listed.size else occupied[:0]
            if both.size or bool(self.impossible.holds(occupied).any()):
                raise InvalidParameter(
                    parameter="keys", value="a key of an impossible cell", must="be possible",
                    hint="rows in cells that were declared impossible are not counted: drop them first",
                )  # fmt: skip
        return occupied, true

    # -- errors ----------------------------------------------------------------------------------------

    def cell_error(self, count: int) -> float:
        """E |released - true| of a cell with this true count; an unreleased cell counts as 0."""
        from tacit.mechanisms.sparse_keys import threshold_risk

        true = whole("count", count, least=0)
        return float(threshold_risk(self.noise, self.threshold, np.array([true]))[0])

    def expected_error(self, *, occupied: int) -> float:
        """The largest E sum_i |released_i - true_i| over all histograms with at most `occupied` cells in use.

        q sup_c r(c) + (p - q) r(0), r the error of one cell. For continuous noise and his threshold Hall's Prop. 2.4.3
        bounds it by (2q+1)/epsilon (ln p + 1).
        """
        from tacit.mechanisms.sparse_keys import worst_cell

        q = whole("occupied", occupied, least=0)
        if q > self.cells:
            raise InvalidParameter(parameter="occupied", value=q, must=f"be at most {self.cells:,}")
        empty, worst = self.cell_error(0), worst_cell(self.noise, self.threshold)
        return up(Fraction(q) * Fraction(worst) + Fraction(self.cells - q) * Fraction(empty))

    def max_error(self, *, confidence: Exact = 0.95) -> float:
        """The bound on all cells' errors at once: threshold + t if all the noise stays within t.

        A released cell is off by its noise; an unreleased cell had a true count of at most threshold - noise.
        """
        t = self.noise.max_error(confidence=confidence_level(confidence), dimension=self.cells)
        return max(self.threshold, 0) + t


def _joined(kept: AnyArray, at: Any, values: AnyArray) -> AnyArray:
    """Both kinds of cells in one array, whose type follows from the released values alone."""
    if kept.dtype == object or values.dtype == object:
        kept, values = kept.astype(object), values.astype(object)
    return narrowed(np.insert(kept, at, values) if values.size else kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseReleased:
    """The cells above the threshold, with their noisy counts, by increasing key. All that follows is free.

    The methods below use these values and public numbers only (post-processing).
    """

    keys: AnyArray
    values: AnyArray
    mechanism: SparseHistogram
    publishable: bool
    numerical_delta: float = 0.0

    @property
    def key_integers(self) -> npt.NDArray[Any]:
        """The keys as numbers: uint64, or Python integers beyond 2^64 cells."""
        return key_integers(self.keys)

    def above(self, threshold: int) -> SparseTable:
        """The cells whose noisy count is above a higher threshold."""
        return above(self, threshold)

    def by_false_discovery(self, rate: Exact = 0.1) -> SparseTable:
        """At most this share of the cells that are kept is expected to be empty."""
        return by_false_discovery(self, rate)

    def by_estimated_risk(self, estimate: Literal["fitted", "unbiased"] = "fitted") -> SparseTable:
        """The threshold with the least estimated absolute error: under a fitted prior, or by an unbiased estimate."""
        return by_estimated_risk(self, estimate)

    def shrunk(self, loss: Literal["absolute", "squared"] = "absolute") -> SparseTable:
        """Each cell's posterior median (or mean) under a prior fitted to the noisy counts."""
        return shrunk(self, loss)


# What to keep of a sparse release, chosen after the noise: post-processing, at no further price.
#
# Every choice looks at the released values only, which are those above the release's own threshold, its floor. Cells
# below the floor were never made: of them the number is known, and the distribution that their noise has where
# they are empty.

Estimate = Literal["fitted", "unbiased"]
REACH = 45.0
STEPS_A_SCALE = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseTable:
    """Cells and their estimated counts; every other cell is 0. `choice` says how they were chosen."""

    keys: AnyArray
    values: npt.NDArray[Any]
    choice: str
    threshold: int
    publishable: bool
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def key_integers(self) -> npt.NDArray[Any]:
        """The keys as numbers: uint64, or Python integers beyond 2^64 cells."""
        return key_integers(self.keys)


def above(
    released: SparseReleased, threshold: int, *, choice: str = "threshold", **details: float
) -> SparseTable:
    """The cells with a noisy count above the threshold, which is at or above the release's own."""
    floor = released.mechanism.threshold
    if isinstance(threshold, bool) or not isinstance(threshold, int | np.integer) or threshold < floor:
        raise InvalidParameter(
            parameter="threshold", value=threshold, must=f"be an integer of at least {floor}",
            hint="cells below the release's own threshold were never made",
        )  # fmt: skip
    keep = np.asarray(released.values > threshold, dtype=np.bool_)
    return SparseTable(
        keys=released.keys[keep],
        values=released.values[keep],
        choice=choice,
        threshold=int(threshold),
        publishable=released.publishable,
        details=details,
    )


def by_false_discovery(released: SparseReleased, rate: Exact = 0.1) -> SparseTable:
    """Benjamini and Hochberg's threshold: the least t with p Pr[noise > t] <= rate * #{noisy count > t}.

    At most a share `rate` of the kept cells is expected to be empty, for all true counts, since the
    noise of different cells is independent (theorem `false-discovery`). Not below the release's own threshold.
    """
    level = exact_parameter("rate", rate)
    refuse_if(level >= 1, "rate", rate, "lie strictly between 0 and 1")
    mechanism, law = released.mechanism, tails(released.mechanism.noise)
    ordered = np.sort(released.values.astype(np.float64))
    # Between two released values the count is constant and the tail falls: t = value - 1 is the least of its kind.
    candidates = np.unique(np.append(ordered - 1, mechanism.threshold))
    passing = ordered.size - np.searchsorted(ordered, candidates, side="right")
    met = mechanism.cells * law.upper(candidates + 1) <= float(level) * passing
    threshold = int(candidates[int(np.argmax(met))]) if met.any() else int(candidates[-1]) + 1
    return above(released, threshold, choice="false discovery rate", rate=float(level))


def estimated_risks(
    released: SparseReleased, estimate: Estimate = "fitted"
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Thresholds, and an estimate of each one's sum of absolute errors, all less one common unknown constant.

    "fitted": the risk under a prior fitted to the released values (see shrinkage), for either noise. "unbiased", for
    Laplace noise with q = e^(-1/noise_scale): with D the second difference, x -> r(x) - q/(1-q)^2 Dr(x) has the
    expectation r(c) at c + noise, r the error of the threshold rule. Cells below the floor contribute x + 2
    q^(t+1-x)/(1-q) each. The first term is the same for all t, and the second is replaced by its expectation
    over empty cells (theorem `estimated-risk`). It is right on average and noisier: the fitted one chooses
    better.
    """
    refuse_if(estimate not in ("fitted", "unbiased"), "estimate", estimate, "be fitted or unbiased")
    mechanism = released.mechanism
    law, floor = tails(mechanism.noise), mechanism.threshold
    step = max(1, int(law.scale / STEPS_A_SCALE))
    top = _quiet_level(law, mechanism.cells)
    thresholds = np.arange(floor, max(floor + 1, top + 1), step, dtype=np.int64)
    if estimate == "fitted":
        return thresholds, fit(released).threshold_risks(thresholds)
    if not isinstance(mechanism.noise, Laplace):
        raise InvalidParameter(
            parameter="estimate", value=estimate, must="be fitted for Gaussian noise",
            hint="only the discrete Laplace law has a short inverse",
        )  # fmt: skip
    cap = int(thresholds[-1] + REACH * law.scale) + 2
    values, times = np.unique(np.minimum(released.values, cap).astype(np.int64), return_counts=True)
    missing = mechanism.cells - int(released.values.size)
    risks = np.array([_estimate(law, int(t), floor, values, times, missing) for t in thresholds])
    return thresholds, risks


def _estimate(law: NoiseTails, t: int, floor: int, values: Any, times: Any, missing: int) -> float:
    q = float(np.exp(-law.rate))
    seen = float(((_unbiased(law, t, values) - values) * times).sum())
    last = min(floor, t - 1)
    # sum over z <= last of Pr[z] q^-z
    pieces = (max(last, 0) + q ** (2 * max(-last, 0)) / (1 - q * q)) * (1 - q) / (1 + q)
    unseen = pieces * 2 * q ** (t + 1) / (1 - q)
    if floor == t:
        unseen += float(law.probability(t) * (_unbiased(law, t, np.array([t]))[0] - t))
    below = float(1 - law.upper(floor + 1))
    return seen + missing * unseen / below


def _unbiased(law: NoiseTails, t: int, x: Any) -> Floats:
    """r(x) - q/(1-q)^2 (r(x+1) - 2 r(x) + r(x-1))."""
    q = float(np.exp(-law.rate))
    here, right, left = (law.risk(t, np.asarray(x) + d) for d in (0, 1, -1))
    return np.asarray(here - q / (1 - q) ** 2 * (right - 2 * here + left))


def _quiet_level(law: NoiseTails, cells: int) -> int:
    """A level that the noise of any empty cell exceeds with probability at most 1/1000: thresholds above it cannot
    help.
    """
    wanted = 1e-3 / cells
    low, high = 0, 1
    while float(law.upper(high + 1)) > wanted:
        low, high = high, 2 * high
    return bisected(lambda level: not float(law.upper(level + 1)) > wanted, low, high)[1]


def by_estimated_risk(released: SparseReleased, estimate: Estimate = "fitted") -> SparseTable:
    """The threshold whose estimated sum of absolute errors is least."""
    thresholds, risks = estimated_risks(released, estimate)
    return above(
        released, int(thresholds[int(np.argmin(risks))]), choice=f"least estimated risk ({estimate})"
    )


# Empirical Bayes: a prior of the cells' counts fitted to the noisy ones, and each cell's posterior (free of charge).
#
# The prior is a mixture of point masses at 0 and on a grid of counts, fitted by maximum likelihood (EM). Cells below
# the release's floor enter by their number, with the chance of being below it; cells so far above 0 that no noise
# explains them keep their noisy value.

ROUNDS = 400
POINTS_A_SCALE = 6
TOLERANCE = 1e-3
UNSEEN_SCALES = 4
PSEUDO_CELLS = 64.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedPrior:
    """Point masses `weights` at `counts`, and `far` beyond them all; `cells` cells in total."""

    distribution: NoiseTails
    cells: int
    counts: Floats
    weights: Floats
    far: float
    quiet: int

    def posterior(self, noisy: Any) -> Floats:
        """The weights of the counts given each noisy value: one row each."""
        likely = self.distribution.probability(
            np.asarray(noisy, dtype=np.float64)[:, None] - self.counts[None, :]
        )
        joint = likely * self.weights
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(joint, total, where=total > 0, out=np.zeros_like(joint)))

    def threshold_risks(self, thresholds: npt.NDArray[np.int64]) -> Floats:
        """The expected sum of absolute errors of each threshold under the prior (far cells err by E|Z| under all)."""
        risk = self.distribution.risk(thresholds[:, None], self.counts[None, :])
        return np.asarray(self.cells * (risk @ self.weights))


def fit(released: SparseReleased) -> FittedPrior:
    """The prior that makes the released values, and the number of cells that were not, most likely."""
    mechanism = released.mechanism
    law, floor = tails(mechanism.noise), mechanism.threshold
    quiet = max(_quiet_level(law, mechanism.cells), floor + 1)
    step = max(1, int(law.scale / POINTS_A_SCALE))
    # Counts so small that they are hardly ever above the floor look like 0 and are left to it.
    lowest = max(step, int(floor - UNSEEN_SCALES * law.scale))
    counts = np.append(0.0, np.arange(lowest, quiet + int(20 * law.scale) + step, step).astype(np.float64))
    # Values are gathered in bins of one grid step; the bin's middle stands for them.
    near = released.values[np.asarray(released.values <= quiet, dtype=np.bool_)].astype(np.float64)
    places, times = np.unique(np.floor((near - floor - 1) / step), return_counts=True)
    middles = floor + 1 + places * step + (step - 1) / 2
    likely = law.probability(middles[:, None] - counts[None, :])
    low = 1 - law.upper(floor + 1 - counts)
    high = law.upper(quiet + 1 - counts)
    rows = np.vstack([likely, low[None, :], high[None, :]])
    # Binned likelihoods are per value, the two tails per cell: the scale of a row does not matter to EM.
    rows = np.hstack([rows, np.append(np.zeros(rows.shape[0] - 1), 1.0)[:, None]])
    distant = released.values.size - near.size
    seen = np.append(times.astype(np.float64), [mechanism.cells - released.values.size, distant])
    # As if this many more empty cells had been seen: in a small table a few large draws are then not a prior.
    seen = seen + PSEUDO_CELLS * np.append(rows[:-2, 0] * step, [low[0], high[0]])
    present = seen > 0
    rows, seen = rows[present], seen[present]
    share = seen / seen.sum()
    others = min(0.1, (released.values.size + 1) / mechanism.cells)
    weights = np.full(rows.shape[1], others / (rows.shape[1] - 1))
    weights[0] = 1 - others
    for _ in range(ROUNDS):
        mixed = np.maximum(rows @ weights, 1e-300)
        new = weights * (rows.T @ (share / mixed))
        moved = float(np.abs(new - weights).sum()) * mechanism.cells
        weights = new
        if moved < TOLERANCE:
            break
    weights = weights / weights.sum()
    return FittedPrior(
        distribution=law,
        cells=mechanism.cells,
        counts=counts,
        weights=weights[:-1],
        far=float(weights[-1]),
        quiet=quiet,
    )


def shrunk(released: SparseReleased, loss: Literal["absolute", "squared"] = "absolute") -> SparseTable:
    """The posterior median of each released cell, which has the least expected absolute error; or the mean."""
    refuse_if(loss not in ("absolute", "squared"), "loss", loss, "be absolute or squared")
    prior = fit(released)
    near = np.asarray(released.values <= prior.quiet, dtype=np.bool_)
    noisy, where = np.unique(released.values[near].astype(np.float64), return_inverse=True)
    posterior = prior.posterior(noisy)
    values: npt.NDArray[Any] = released.values.copy()
    if loss == "squared":
        estimates: npt.NDArray[Any] = posterior @ prior.counts
        values = values.astype(np.float64)
    else:
        middle = np.argmax(np.cumsum(posterior, axis=1) >= 0.5, axis=1)
        estimates = prior.counts[middle].astype(np.int64)
    values[near] = estimates[where.ravel()]
    keep = np.asarray(values > 0, dtype=np.bool_)
    return SparseTable(
        keys=released.keys[keep],
        values=values[keep],
        choice="posterior median" if loss == "absolute" else "posterior mean",
        threshold=released.mechanism.threshold,
        publishable=released.publishable,
        details={"share_of_empty_cells": float(prior.weights[0])},
    )
