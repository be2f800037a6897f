"""Histograms over unknown keys, by stability: only occupied cells get noise, and only large ones are released.

Keys of no unit never appear, so the domain may be unbounded. The price is delta, the probability of releasing a
cell which one unit alone occupies. It is computed exactly for every possible change by one unit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import flint
import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import add_exact, check_fields, integer_array, narrowed, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, bisected, exact_parameter, up, upper
from tacit.guarantees import Approximate
from tacit.mechanisms.base import L1, L2, Mechanism, epsilon_value
from tacit.mechanisms.gaussian import Gaussian, delta_parameter
from tacit.mechanisms.laplace import Laplace
from tacit.noise.source import Source, default_source

__all__ = ["KeysOfAUnit", "StableHistogram", "StableReleased"]

MOST_KEYS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysOfAUnit:
    """The cells that one unit can occupy alone: at most `keys` cells, at most `each` in one of them, `total` in all.

    A count of people: keys = total = t, each = 1. A count of rows of people with m rows: keys = t, each = total = m.
    It is one version of the unit's data, the same under replace-one and add-or-remove.
    """

    keys: int = 1
    each: int = 1
    total: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, keys=partial(whole, least=1), each=partial(whole, least=1))
        most = self.keys * self.each
        total = most if self.total is None else whole("total", self.total, least=1)
        object.__setattr__(self, "total", min(total, most))
        object.__setattr__(self, "keys", min(self.keys, int(self.total or 1)))
        refuse_if(self.keys > MOST_KEYS, "keys", self.keys, f"be at most {MOST_KEYS}")

    def spread(self, keys: int) -> tuple[tuple[int, int], ...]:
        """The worst way to use exactly this many cells, as (count, number of cells with it): as uneven as possible.

        -ln(1 - Pr[count + noise > threshold]) is convex in the count up to the threshold, so its sum is largest at an
        extreme point: one cell after the other filled to `each`, 1 in the others.
        """
        assert self.total is not None
        rest = min(self.total, keys * self.each) - keys
        if self.each == 1 or rest == 0:
            return ((1, keys),)
        full, over = divmod(rest, self.each - 1)
        parts = [
            (self.each, full),
            (1 + over, 1 if full < keys else 0),
            (1, keys - full - (1 if full < keys else 0)),
        ]
        return tuple((c, n) for c, n in parts if n > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StableHistogram(Mechanism):
    """Noise on the occupied cells, and a release of those with a noisy count above the threshold; keys need not
    be known.

    Guarantee: with d the largest probability of releasing any cell which a unit occupies alone, delta(epsilon)
    = d + (1 - d) delta_noise(epsilon), and d is computed exactly: 1 - prod_k Pr[v_k + Z <= threshold], largest
    over the possible changes by a unit (`unit`). With Laplace noise (sensitivity / noise_scale, d), which is
    reached. Assumptions: the noise's sensitivity and `unit` are true of the counts. The threshold is fixed in
    advance and is at least the largest count of a unit alone. Theorem `stability-threshold`. Source: Korolova,
    Kenthapadi, Mishra, Ntoulas 2009; Bun, Nissim, Stemmer 2016.
    """

    threshold_is_fixed: ClassVar[bool] = True

    noise: Laplace | Gaussian
    threshold: int
    unit: KeysOfAUnit = KeysOfAUnit()
    epsilon: Exact | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian) or self.noise.step != 1:
            raise InvalidParameter(
                parameter="noise", value=self.noise, must="be Laplace or Gaussian noise with spacing 1"
            )
        if not isinstance(self.unit, KeysOfAUnit):
            raise InvalidParameter(parameter="unit", value=self.unit, must="be KeysOfAUnit(...)")
        set_fields(self, threshold=whole("threshold", self.threshold, least=self.unit.each))
        if isinstance(self.noise, Gaussian) == (self.epsilon is None):
            raise InvalidParameter(
                parameter="epsilon", value=self.epsilon, must="be given for Gaussian noise, and only for it",
                hint="Laplace noise has its own epsilon; of Gaussian noise's curve one point is stated",
            )  # fmt: skip
        if self.epsilon is not None:
            check_fields(self, epsilon=epsilon_value)
        self._consistent()

    def _consistent(self) -> None:
        """The cells that a unit can occupy alone are one possible move of the counts, which the noise must cover."""
        unit, sensitivity = self.unit, self.noise.sensitivity
        assert unit.total is not None
        full, rest = divmod(unit.total, unit.each)
        if isinstance(sensitivity, L1):
            enough = sensitivity.steps(Fraction(1)) >= unit.total
        else:
            enough = sensitivity.squared_steps(Fraction(1)) >= full * unit.each**2 + rest**2
        if not enough:
            raise InvalidParameter(
                parameter="sensitivity", value=sensitivity, must=f"cover a unit that adds {unit.total} in all",
                hint="the sensitivity is for all cells of a unit together; under replace-one for two versions of it",
            )  # fmt: skip

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L1 | L2, unit: KeysOfAUnit | None = None
    ) -> StableHistogram:
        """The least threshold for (epsilon, delta); Laplace noise for an L1 sensitivity, Gaussian for an L2 one.

        Gaussian noise takes half of delta, the threshold the rest.
        """
        keys, limit = unit if unit is not None else KeysOfAUnit(), delta_parameter(delta)
        if not isinstance(keys, KeysOfAUnit):
            raise InvalidParameter(parameter="unit", value=type(unit).__name__, must="be KeysOfAUnit(...)")
        if isinstance(sensitivity, L2):
            noise: Laplace | Gaussian = Gaussian.for_target(
                epsilon=epsilon, delta=limit / 2, sensitivity=sensitivity, dimension=MOST_KEYS
            )
            stated: Exact | None = exact_parameter("epsilon", epsilon)
        else:
            noise, stated = Laplace.for_target(epsilon=epsilon, sensitivity=sensitivity), None
        make = _maker(cls, noise, keys, stated)
        if not isinstance(noise, Gaussian):
            limits = limit
        else:
            limits = -up(-(Fraction(limit) - Fraction(noise.delta(up(exact_parameter("epsilon", epsilon))))))
        low, high = keys.each - 1, keys.each
        while make(high).key_delta > limits:
            low, high = high, 2 * high + 1
        return make(bisected(lambda threshold: not make(threshold).key_delta > limits, low, high)[1])

    @property
    def key_delta(self) -> float:
        """The largest probability that a unit's own cells show, over the number of its cells, rounded up."""
        law, unit, t = self.noise.distribution, self.unit, self.threshold

        def hidden(keys: int) -> Ball:
            out = flint.arb(1)
            for count, cells in unit.spread(keys):
                # Pr[count + Z <= t] = 1 - Pr[Z >= t + 1 - count]
                out = out * (1 - law.survival_ball(t + 1 - count)) ** cells
            return out

        if unit.each == 1 or unit.total == unit.keys * unit.each:
            # More cells with the same count each only add to it.
            return min(1.0, upper(partial(_shown, hidden, unit.keys)))
        return min(1.0, max(upper(partial(_shown, hidden, n)) for n in range(1, unit.keys + 1)))

    @property
    def bound(self) -> Approximate:
        if isinstance(self.noise, Gaussian):
            assert self.epsilon is not None
            epsilon = up(exact_parameter("epsilon", self.epsilon))
            d, e = Fraction(self.key_delta), Fraction(self.noise.delta(epsilon))
            return Approximate(epsilon=epsilon, delta=up(d + (1 - d) * e))
        return Approximate(epsilon=self.noise.bound.epsilon, delta=self.key_delta)

    @property
    def event(self) -> Event:
        """The noise, composed with a (0, d) mechanism: the pair that dominates both (theorem `stability-threshold`)."""
        return events.ComposedEvent(
            events=(self.noise.event, events.ApproximateEvent(epsilon=0.0, delta=self.key_delta))
        )

    @property
    def exact_epsilon(self) -> None:
        """None, because an occupied cell may appear, so that there is no pure epsilon."""
        return None

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("stability-threshold",)

    def published(
        self,
        keys: npt.NDArray[Any],
        counts: npt.NDArray[Any],
        *,
        false_share: Exact,
        source: Source | None = None,
    ) -> tuple[npt.NDArray[Any], AnyArray, int]:
        """Cells above the threshold, which is fixed in advance, and their counts."""
        kept = self.release(counts, source=source)
        return keys[kept.positions], kept.values, self.threshold

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            **self.noise.noise_distribution,
            "threshold": self.threshold,
            "keys_of_a_unit": self.unit.keys,
            "each": self.unit.each,
            "total": self.unit.total,
        }

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> StableReleased:
        """The released ones of the occupied cells, and their noisy counts. Every count is at least 1.

        The caller sorts the released cells (by key), because their order of arrival may reveal something.
        """
        source = source if source is not None else default_source()
        true = integer_array(counts, name="counts")
        if true.ndim != 1 or (true.size and int(true.min()) < 1):
            raise InvalidParameter(
                parameter="counts", value="an array with empty cells", must="be one count of at least 1 a cell",
                hint="cells that nobody occupies must not be seen by this mechanism at all",
            )  # fmt: skip
        noisy = add_exact(true, self.noise.distribution.sample(size=true.size, source=source))
        passed = np.flatnonzero(np.asarray(noisy > self.threshold, dtype=np.bool_))
        # The type follows from what is released: a cell that stays hidden must not widen it.
        return StableReleased(
            positions=passed, values=narrowed(noisy[passed]), mechanism=self, publishable=source.publishable
        )

    def expected_error(self, *, occupied: int) -> float:
        """The largest E sum |released - true| over histograms with this many occupied cells: q sup_c r(c)."""
        from tacit.mechanisms.sparse_keys import worst_cell

        q = whole("occupied", occupied, least=0)
        return up(Fraction(q) * Fraction(worst_cell(self.noise, self.threshold)))

    def cell_error(self, count: int) -> float:
        """E |released - true| of a cell with this true count."""
        from tacit.mechanisms.sparse_keys import threshold_risk

        true = whole("count", count, least=1)
        return float(threshold_risk(self.noise, self.threshold, np.array([true]))[0])

    def showing(self, count: int) -> float:
        """The chance that a cell with this true count is released, rounded up."""
        true = whole("count", count, least=1)
        return float(self.noise.distribution.survival(self.threshold + 1 - true)[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StableReleased:
    """The places (among the occupied cells that were given) that are released, and their noisy counts."""

    positions: npt.NDArray[np.intp]
    values: AnyArray
    mechanism: StableHistogram
    publishable: bool
    numerical_delta: float = 0.0


def _shown(hidden: Callable[[int], Ball], keys: int) -> Ball:
    return 1 - hidden(keys)


def _maker(
    cls: type[StableHistogram], noise: Laplace | Gaussian, unit: KeysOfAUnit, epsilon: Exact | None
) -> Callable[[int], StableHistogram]:
    def make(threshold: int) -> StableHistogram:
        if threshold.bit_length() > 4096:
            raise NotCertified(what="a threshold", reason="no threshold in reach meets delta")
        return cls(noise=noise, threshold=threshold, unit=unit, epsilon=epsilon)

    return make
