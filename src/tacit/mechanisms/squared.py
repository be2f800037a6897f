"""(epsilon, delta) forms of the K-norm and the exponential mechanism, by squaring the metric (Hall 2012, 1.5).

Noise of density proportional to e^(-gauge(x)^2 / (2 s^2)): gauge/s has the chi distribution with d degrees of freedom,
and the loss of a move of gauge 1 is at most (gauge + 1/2)/s^2. So it is (epsilon, delta)-private if

    Pr[chi_d > epsilon s - 1/(2s)] <= delta.

For an ellipsoid this is Gaussian noise, whose exact curve is better. On a finite set of outputs the
probabilities are e^(-distance^2 / (2 s^2)) over their sum, which moves with the data too. The curve is summed
from the probabilities themselves, over all declared neighbours. Theorem `squared-metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, probability, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, bisected, exact_parameter, precision, upper
from tacit.guarantees import Approximate
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.gaussian import delta_parameter
from tacit.noise import Categorical
from tacit.noise.source import Source, default_source

MOST_OUTPUTS = 2000
_SLACK = 1e-12


def chi_delta(*, dimension: int, noise_scale: float, epsilon: float) -> float:
    """Pr[chi_d > epsilon s - 1/(2s)], rounded up: the delta of squared K-norm noise for moves of gauge 1."""
    d = whole("dimension", dimension, least=1)
    edge = epsilon * noise_scale - 0.5 / noise_scale
    if edge <= 0:
        return 1.0

    def tail() -> Any:
        s, e = ball(Fraction(noise_scale)), ball(Fraction(epsilon))
        level = e * s - 1 / (2 * s)
        return (level * level / 2).gamma_upper(ball(Fraction(d, 2)), regularized=True)

    return min(1.0, upper(tail))


def squared_norm_scale(*, dimension: int, epsilon: Exact, delta: Exact) -> float:
    """The smallest scale s (to 12 digits, from above) with which squared K-norm noise is (epsilon, delta)-private.

    For a symmetric body and moves of gauge 1. Its energy is s^2 epsilon^2 / (d + 1) times that of K-norm noise.
    """
    d = whole("dimension", dimension, least=1)
    price, miss = float(epsilon_parameter(epsilon)), float(delta_parameter(delta))
    low, high = 1e-6 / price, (math.sqrt(d) + 100) * (1 + 1 / price)

    def fits(scale: float) -> bool:
        return chi_delta(dimension=d, noise_scale=scale, epsilon=price) <= miss

    return bisected(fits, low, high, relative=1e-12)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredExponential:
    """Pr[z] proportional to e^(-distance(state, z)^2 / (2 noise_scale^2)), for finitely many states and outputs.

    `distances` has a row a state and a column an output; `neighbours` are the pairs of states that one unit can turn
    into each other. The guarantee is (epsilon, delta) at each epsilon, by `delta`, with the normalising sums counted.
    The draw is exact. Source: Hall 2012, 1.5, who proposes it without a proof. Theorem `squared-metrics`.
    """

    distances: tuple[tuple[Exact, ...], ...]
    neighbours: tuple[tuple[int, int], ...]
    noise_scale: Exact

    def __post_init__(self) -> None:
        rows = tuple(
            tuple(exact_parameter("distances", v, positive=False) for v in row) for row in self.distances
        )
        width = len(rows[0]) if rows else 0
        if len(rows) < 2 or not 1 <= width <= MOST_OUTPUTS or any(len(row) != width for row in rows):
            raise InvalidParameter(
                parameter="distances",
                value=f"{len(rows)} rows",
                must=f"be a table of two states or more and 1 to {MOST_OUTPUTS} outputs",
            )
        if any(v < 0 for row in rows for v in row):
            raise InvalidParameter(parameter="distances", value="a negative one", must="be at least 0")
        pairs = tuple(
            (whole("neighbours", a, least=0), whole("neighbours", b, least=0)) for a, b in self.neighbours
        )
        if not pairs or any(max(a, b) >= len(rows) or a == b for a, b in pairs):
            raise InvalidParameter(
                parameter="neighbours",
                value=len(pairs),
                must=f"be pairs of different states below {len(rows)}",
            )
        exact_parameter("noise_scale", self.noise_scale)
        set_fields(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "distances", rows)
        object.__setattr__(self, "neighbours", pairs)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        distances: Sequence[Sequence[Exact]],
        neighbours: Sequence[tuple[int, int]],
    ) -> SquaredExponential:
        """About the smallest scale with this (epsilon, delta); the returned scale was checked."""
        price, miss = float(epsilon_parameter(epsilon)), float(delta_parameter(delta))
        table = tuple(tuple(row) for row in distances)
        pairs = tuple((a, b) for a, b in neighbours)

        def made(scale: float) -> SquaredExponential:
            return cls(distances=table, neighbours=pairs, noise_scale=scale)

        widest = max((float(v) for row in table for v in row), default=1.0) or 1.0
        low, high = 0.0, widest
        while made(high).delta(price) > miss:
            low, high = high, 2 * high
            if high > 1e9 * widest:
                raise InvalidParameter(
                    parameter="delta",
                    value=delta,
                    must=f"be above {_SLACK:g}: the sums of the curve are floats",
                )
        return made(bisected(lambda scale: made(scale).delta(price) <= miss, low, high, relative=1e-6)[1])

    def _law(self, state: int) -> Categorical:
        spread = 2 * Fraction(self.noise_scale) ** 2
        squares = [Fraction(v) ** 2 for v in self.distances[state]]
        least = min(squares)
        return Categorical(log_weights=[(least - v) / spread for v in squares])

    def probabilities(self, state: int) -> Floats:
        """The distribution of the output at a state, for reading and for the curve."""
        law = self._law(self._state(state))
        with precision(128):
            return np.array([float(law.probability_ball(i).mid()) for i in range(len(self.distances[0]))])

    def _state(self, state: object) -> int:
        found = whole("state", state, least=0)
        if found >= len(self.distances):
            raise InvalidParameter(
                parameter="state", value="a state out of range", must=f"lie in 0..{len(self.distances) - 1}"
            )
        return found

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon over all neighbours and both orders, rounded up."""
        factor = math.exp(non_negative("epsilon", epsilon))
        laws = {s: self.probabilities(s) for s in {s for pair in self.neighbours for s in pair}}
        worst = 0.0
        for a, b in self.neighbours:
            for p, q in ((laws[a], laws[b]), (laws[b], laws[a])):
                worst = max(worst, float(np.maximum(p - factor * q, 0.0).sum()))
        return min(1.0, worst + (1 + factor) * _SLACK)

    def bound(self, epsilon: float) -> Approximate:
        """(epsilon, delta) at this epsilon."""
        return Approximate(epsilon=epsilon, delta=probability("delta", self.delta(epsilon)))

    def expected_error(self) -> float:
        """The largest expected distance of the output over the states."""
        return max(
            float(self.probabilities(s) @ np.array([float(v) for v in row]))
            for s, row in enumerate(self.distances)
        )

    def choose(self, state: int, *, source: Source | None = None) -> int:
        """One output for the true state, drawn exactly."""
        law = self._law(self._state(state))
        return int(law.sample(source=source if source is not None else default_source()))
