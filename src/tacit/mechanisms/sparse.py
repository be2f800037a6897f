"""Sparse histograms: noise on every cell of a huge domain, without visiting the empty ones.

Noise on all p cells and a threshold give back few cells. The occupied ones are noised one by one; how many empty
cells pass is one binomial draw, where they lie is uniform, and their values follow the law of the noise given that
it passes: the same law as noise on every cell (theorem `sparse-histogram`), at the cost of the output alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified, TooManyCells
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import ball, precision, upper
from tacit.exact.checks import settle, whole
from tacit.exact.integers import add_exact, integer_array, narrowed
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Bound
from tacit.mechanisms.base import Mechanism, confidence_level
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.sensitivity import L1, L2
from tacit.mechanisms.sparse_keys import Impossible, domain_size, draw_empty, key_integers, pack_keys
from tacit.mechanisms.sparse_noise import count_passing, passing_noise, tail_ball
from tacit.noise.source import Source, default_source

if TYPE_CHECKING:
    from tacit.mechanisms.sparse_choices import SparseTable

__all__ = ["MOST_FALSE", "SparseHistogram", "SparseReleased", "hall_threshold", "noise_floor"]

MOST_FALSE = 1 << 20
"""How many empty cells are expected above the floor, at most, where nothing else is asked."""

MOST_CELLS = 1 << 26
Rule = Literal["hall", "known", "floor"]


class ThresholdRule(TypedDict, total=False):
    """What `SparseHistogram.with_rule` takes beside the noise and the domain: a threshold, or a rule for it."""

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
    independent with the law of `noise`. Guarantee: that of the noise, since dropping cells is post-processing; the
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
        settle(self, threshold=whole("threshold", self.threshold, least=None))
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
    def for_epsilon(
        cls,
        *,
        epsilon: Exact,
        sensitivity: L1,
        domain: int,
        **how: Unpack[ThresholdRule],
    ) -> SparseHistogram:
        """Laplace noise for a pure epsilon; threshold=, rule=, occupied= and impossible= as for `with_rule`."""
        noise = Laplace.for_epsilon(epsilon=epsilon, sensitivity=sensitivity)
        return cls.with_rule(noise=noise, domain=domain, **how)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        sensitivity: L2,
        domain: int,
        **how: Unpack[ThresholdRule],
    ) -> SparseHistogram:
        """Gaussian noise for (epsilon, delta): for units with many keys it is smaller than Laplace noise.

        threshold=, rule=, occupied= and impossible= as for `with_rule`.
        """
        noise = Gaussian.for_target(
            epsilon=epsilon, delta=delta, sensitivity=sensitivity, dimension=domain_size(domain)
        )
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
        """How many cells can be occupied: the domain without the impossible ones."""
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
        """What stands out, chosen after the noise: by estimated risk (Laplace), by false discoveries (Gaussian)."""
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
        """How many of the cells would be released on average if all of them were empty."""
        return upper(lambda: tail_ball(self.noise.distribution, self.threshold + 1) * self.cells)

    # -- release ---------------------------------------------------------------------------------------

    def release(
        self, keys: npt.ArrayLike, counts: npt.ArrayLike, *, source: Source | None = None
    ) -> SparseReleased:
        """Noise, threshold, and the empty cells that pass by chance; keys sorted, so that order tells nothing."""
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
        if true.size and int(true.min()) < 0:
            raise InvalidParameter(parameter="counts", value="a negative count", must="be at least 0")
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
        """E |released - true| of a cell with this true count, where a cell that is not released counts as 0."""
        from tacit.mechanisms.sparse_risk import threshold_risk

        true = whole("count", count, least=0)
        return float(threshold_risk(self.noise, self.threshold, np.array([true]))[0])

    def expected_error(self, *, occupied: int) -> float:
        """The largest E sum_i |released_i - true_i| over all histograms with at most `occupied` cells in use.

        q sup_c r(c) + (p - q) r(0), r the error of one cell. For continuous noise and his threshold Hall's Prop. 2.4.3
        bounds it by (2q+1)/epsilon (ln p + 1).
        """
        from tacit.mechanisms.sparse_risk import worst_cell

        q = whole("occupied", occupied, least=0)
        if q > self.cells:
            raise InvalidParameter(parameter="occupied", value=q, must=f"be at most {self.cells:,}")
        empty, worst = self.cell_error(0), worst_cell(self.noise, self.threshold)
        return up(Fraction(q) * Fraction(worst) + Fraction(self.cells - q) * Fraction(empty))

    def max_error(self, *, confidence: Exact = 0.95) -> float:
        """What all cells' errors stay within at once: threshold + t where all the noise stays within t.

        A cell that is released is off by its noise; one that is not had a true count of at most threshold - noise.
        """
        t = self.noise.max_error(confidence=confidence_level(confidence), dimension=self.cells)
        return max(self.threshold, 0) + t


def _joined(kept: AnyArray, at: Any, values: AnyArray) -> AnyArray:
    """Both kinds of cells in one array, whose type follows from what is released alone."""
    if kept.dtype == object or values.dtype == object:
        kept, values = kept.astype(object), values.astype(object)
    return narrowed(np.insert(kept, at, values) if values.size else kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseReleased:
    """The cells above the threshold, with their noisy counts, by increasing key. All that follows is free.

    What is made of it by the methods below uses no more than these values and public numbers (post-processing).
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
        """Only the cells whose noisy count is above a higher threshold."""
        from tacit.mechanisms.sparse_choices import above

        return above(self, threshold)

    def by_false_discovery(self, rate: Exact = 0.1) -> SparseTable:
        """At most this share of the cells that are kept is expected to be empty."""
        from tacit.mechanisms.sparse_choices import by_false_discovery

        return by_false_discovery(self, rate)

    def by_estimated_risk(self, estimate: Literal["fitted", "unbiased"] = "fitted") -> SparseTable:
        """The threshold with the least estimated absolute error: under a fitted prior, or by an unbiased estimate."""
        from tacit.mechanisms.sparse_choices import by_estimated_risk

        return by_estimated_risk(self, estimate)

    def shrunk(self, loss: Literal["absolute", "squared"] = "absolute") -> SparseTable:
        """Each cell's posterior median (or mean) under a prior fitted to the noisy counts."""
        from tacit.mechanisms.shrinkage import shrunk

        return shrunk(self, loss)
