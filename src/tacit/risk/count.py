"""Optimal counts: the best possible mechanism for a count on 0..n, with a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected, exact_parameter, up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism, Released, confidence_level, epsilon_parameter, one_value
from tacit.mechanisms.laplace import TruncatedGeometric
from tacit.noise import FiniteDistribution
from tacit.noise.source import Source, default_source
from tacit.risk.certificate import (
    Certificate,
    GeometricKernel,
    Loss,
    as_loss,
    criterion_parameter,
    epsilon_level,
    height_risks,
    inflate,
    range_parameter,
)
from tacit.risk.finite import OptimalFinite, optimal_finite, solve_program
from tacit.risk.remap import (
    FRACTION_BITS,
    TOLERANCE,
    UNIT,
    Remap,
    is_compact,
    refuse_prior,
    solve_compact,
    truncated_geometric_risk,
)

LONGEST_MATRIX = 3_000
LONGEST_FULL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalCount(Mechanism):
    """Truncated geometric noise on a count, then a remap that makes the loss as small as privacy allows.

    Guarantee: Pure(epsilon), exactly: the noise is sampled exactly, and the remap sees only its output, so that
    an inexact solver costs accuracy and never privacy. The certificate states the largest loss of accuracy.
    Assumptions: a unit changes the count by at most 1; n is public. Theorem `optimal-count-remap`.
    Source: Ghosh, Roughgarden, Sundararajan 2012; Gupte, Sundararajan 2010; Hall 2012, sections 1.3.5, 2.3.3.
    """

    n: int
    epsilon: Exact
    loss: Loss
    remap: Remap = field(repr=False)
    certificate: Certificate

    @property
    def _noise(self) -> TruncatedGeometric:
        return TruncatedGeometric(epsilon=self.epsilon, low=0, high=self.n)

    @property
    def _kernel(self) -> GeometricKernel:
        return GeometricKernel(n=self.n, epsilon=float(epsilon_parameter(self.epsilon)))

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def theorems(self) -> tuple[str, ...]:
        return (*self._noise.theorems, "optimal-count-remap")

    @property
    def event(self) -> Event:
        """Discrete Laplace noise; the cut and the remap are post-processing."""
        return events.DiscreteLaplaceEvent(epsilon=float(self.bound.epsilon), sensitivity=1)

    @property
    def heights(self) -> Floats:
        """The mean output after each output of the geometric."""
        h = self.remap.floats(self.n)
        for y, weights in self.remap.choices:
            h[y] = float(np.arange(self.n + 1) @ np.array(weights, dtype=float)) / sum(weights)
        return h

    def _spread(self) -> Floats:
        """The distribution of the answer, for each output of the geometric."""
        h = self.remap.floats(self.n)
        low = np.floor(h).astype(np.int64)
        y = np.arange(self.n + 1)
        spread = np.zeros((self.n + 1, self.n + 1))
        spread[y, low] = 1 - (h - low)
        spread[y, np.minimum(low + 1, self.n)] += h - low
        for output, weights in self.remap.choices:
            spread[output] = np.array(weights, dtype=float) / sum(weights)
        return spread

    @property
    def matrix(self) -> Floats:
        """Pr[say r | count x] as floats, for reading and drawing."""
        if self.n > LONGEST_MATRIX:
            raise InvalidParameter(
                parameter="n",
                value=self.n,
                must=f"be at most {LONGEST_MATRIX} for the whole matrix",
                hint="use heights",
            )
        x = np.arange(self.n + 1)
        return np.asarray(self._kernel.probabilities(x, x) @ self._spread())

    @property
    def noise_distribution(self) -> dict[str, Any]:
        law = {
            **self._noise.noise_distribution,
            "distribution": "remapped truncated geometric",
            "fraction_bits": FRACTION_BITS,
        }
        law["heights"] = None if self.remap.heights is None else [str(h) for h in self.remap.heights]
        law["choices"] = {str(y): [str(w) for w in weights] for y, weights in self.remap.choices}
        return law

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """The remapped noisy count; a count outside 0..n is clamped first."""
        source = source if source is not None else default_source()
        count = one_value(values, "optimal count")
        noisy = self._noise.release(count, source=source).values
        y = int(np.asarray(noisy).ravel()[0])
        # One word is drawn whether or not it is needed, so that the number of words does not tell the output.
        coin = int(source.words(1)[0]) >> (64 - FRACTION_BITS)
        drawn = dict(self.remap.choices).get(y)
        if drawn is not None:
            said = int(FiniteDistribution(weights=drawn).sample(source=source))
        elif self.remap.heights is None:
            said = y
        else:
            low, share = divmod(self.remap.heights[y], UNIT)
            said = low + (coin < share)
        out = np.full(np.asarray(count).shape, said, dtype=np.int64)
        return Released(values=out, spacing=Fraction(1), publishable=source.publishable)

    def expected_error(self, *, count: int | None = None) -> float:
        """The expected loss at a count, rounded up; without one, the largest over all counts."""
        if self.remap.heights is None:
            return truncated_geometric_risk(self.n, float(epsilon_parameter(self.epsilon)), self.loss)
        risks = self.risks()
        if count is None:
            return float(risks.max())
        return float(risks[min(max(whole("count", count, least=0), 0), self.n)])

    def risks(self) -> Floats:
        """The expected loss at every count, rounded up."""
        if not self.remap.choices:
            return height_risks(self._kernel, self.loss, self.remap.floats(self.n))
        table = self.loss.matrix(self.n)
        return np.asarray((self.matrix * table).sum(axis=1) * inflate(1.0, self.n))

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least t with Pr[|said - x| <= t] >= confidence for every count x."""
        level = float(confidence_level(confidence))
        matrix = self.matrix
        x = np.arange(self.n + 1)
        distance = np.abs(x[:, None] - x)

        def holds(t: int) -> bool:
            return bool((matrix * (distance <= t)).sum(axis=1).min() >= level + 1e-12)

        return float(bisected(holds, -1, self.n)[1])


def path(n: int) -> list[tuple[int, int]]:
    """The neighbours of a count: 0-1, 1-2, ..., (n-1)-n."""
    return [(x, x + 1) for x in range(n)]


def optimal_count(
    *,
    n: int,
    epsilon: Exact,
    loss: str | Loss | Sequence[Sequence[float]] | npt.NDArray[Any] = "absolute",
    criterion: str = "minimax",
    prior: Any = None,
    delta: Exact = 0,
    tolerance: float = TOLERANCE,
) -> OptimalCount | OptimalFinite:
    """The best mechanism for a count on 0..n: minimax, or Bayes for a prior (uniform if none is given).

    A loss that grows outwards is solved in its compact form; any other loss, and any delta above 0, by the full
    linear program. The result carries its risk, a lower bound for every private mechanism, and the gap.
    """
    n, level = range_parameter(n), epsilon_level(epsilon)
    criterion_parameter(criterion)
    what = as_loss(loss)
    what.fit(n)
    if exact_parameter("delta", delta, positive=False) != 0 or not is_compact(what, criterion):
        return _by_full_program(n, epsilon, delta, what, criterion, prior)
    remap, certificate = solve_compact(n, level, what, criterion, prior, tolerance)
    return OptimalCount(n=n, epsilon=epsilon, loss=what, remap=remap, certificate=certificate)


def _by_full_program(
    n: int, epsilon: Exact, delta: Exact, loss: Loss, criterion: str, prior: Any
) -> OptimalFinite:
    if n > LONGEST_FULL:
        raise InvalidParameter(
            parameter="n",
            value=n,
            must=f"be at most {LONGEST_FULL} for the full linear program",
            hint="this loss, or a delta above 0, has no compact form",
        )
    if criterion == "minimax":
        refuse_prior(prior)
    table = Loss(name=loss.name if loss.table is None else "matrix", table=loss.matrix(n))
    return optimal_finite(
        loss=table, neighbours=path(n), epsilon=epsilon, delta=delta, criterion=criterion, prior=prior
    )


# The risk body, and rules that cost the same everywhere (Hall 2012, section 2.3.3).

LONGEST = 60


def risk_body(*, epsilon: Exact, loss: Any = "absolute") -> Floats:
    """The corners of the set of risk vectors (R_0, R_1) for a count on 0..1, in order around it.

    For two outputs a = Q(0, 0) and b = Q(1, 0) determine Q, and privacy is four lines in the square: a <=
    e^epsilon b, b <= e^epsilon a, and the same for 1-a and 1-b. Its corners map to the body's.
    """
    shrink = float(np.exp(-float(epsilon_parameter(epsilon))))
    table = as_loss(loss).matrix(1)
    refuse_if(table.shape != (2, 2), "loss", f"shape {table.shape}", "be 2 by 2 for the body in a plane")
    high = 1 / (1 + shrink)
    corners = np.array([[0.0, 0.0], [high, 1 - high], [1.0, 1.0], [1 - high, high]])
    risks = [
        [a * table[0, 0] + (1 - a) * table[0, 1], b * table[1, 0] + (1 - b) * table[1, 1]] for a, b in corners
    ]
    return np.array(risks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equalizer:
    """The smallest risk of a rule with the same risk at every count, and the minimax risk beside it."""

    risk: float
    minimax: float
    matrix: Floats

    @property
    def is_minimax(self) -> bool:
        """Whether an equalizer rule is among the best (to the solver's accuracy)."""
        return self.risk <= self.minimax * (1 + 1e-6) + 1e-9


def equalizer(*, n: int, epsilon: Exact, loss: Any = "absolute") -> Equalizer:
    """The best rule among those whose expected loss is the same at every count, by the full program.

    Floats from the solver: for reading, not for a release.
    """
    n = whole("n", n, least=1)
    refuse_if(n > LONGEST, "n", n, f"be at most {LONGEST} for the full linear program")
    what: Loss = as_loss(loss)
    what.fit(n)
    table = what.matrix(n)
    level = float(epsilon_parameter(epsilon))
    equal = solve_program(table, path(n), level, 0.0, None, equal_risks=True)
    best = solve_program(table, path(n), level, 0.0, None)
    return Equalizer(
        risk=float((equal.matrix * table).sum(axis=1).max()),
        minimax=float((best.matrix * table).sum(axis=1).max()),
        matrix=equal.matrix,
    )
