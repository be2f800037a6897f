"""Any discrete law whose cumulative probabilities can be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count as count_from

import flint

from tacit.errors import NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball
from tacit.exact.checks import settle, whole
from tacit.noise.distributions.base import DiscreteDistribution
from tacit.noise.distributions.finite import draw_inverted
from tacit.noise.lazy_inversion import Inverter
from tacit.noise.source import Source

__all__ = ["ComputableDistribution"]

_NO_MOMENTS = "the law is given by its cumulative probabilities only"


@dataclass(frozen=True, slots=True)
class _FromCumulative:
    cumulative: Callable[[int], Ball]
    start: int

    def survival(self, k: int) -> Ball:
        return 1 - self.cumulative(self.start + k - 1)

    def survivals(self) -> Iterator[Ball]:
        return (self.survival(k) for k in count_from(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputableDistribution(DiscreteDistribution):
    """The law on start, start + 1, ... whose Pr[X <= k] lies in the ball `cumulative(k)`.

    Assumptions: the balls enclose a true distribution function at every precision and shrink as
    python-flint's precision grows. Then draws are exact. A law that breaks this is refused
    (`NotCertified`) as soon as a draw cannot be decided.
    """

    cumulative_ball: Callable[[int], Ball]
    start: int = 0
    name: str = "computable law"
    _inverter: Inverter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        settle(self, start=whole("start", self.start, least=-(1 << 62)))
        law = _FromCumulative(self.cumulative_ball, self.start)
        object.__setattr__(self, "_inverter", Inverter(law))

    def _draw(self, count: int, source: Source) -> AnyArray:
        return draw_inverted(self._inverter, count, source) + self.start

    def probability_ball(self, k: int) -> Ball:
        if k < self.start:
            return flint.arb(0)
        below = flint.arb(0) if k == self.start else self.cumulative_ball(k - 1)
        return self.cumulative_ball(k) - below

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= self.start else 1 - self.cumulative_ball(k - 1)

    def mean_ball(self) -> Ball:
        raise NotCertified(what="the mean", reason=_NO_MOMENTS)

    def variance_ball(self) -> Ball:
        raise NotCertified(
            what="the variance", reason="the law is given by its cumulative probabilities only"
        )
