"""Optimal mechanisms on any finite set of states with a neighbour relation: a matrix of exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Approximate, Pure
from tacit.mechanisms.base import Mechanism, epsilon_parameter, one_value, shown
from tacit.mechanisms.grid import Released
from tacit.noise import FiniteDistribution
from tacit.noise.source import Source, default_source
from tacit.risk.certificate import Certificate
from tacit.risk.exact import Edges, Rows, private_matrix
from tacit.risk.loss_functions import Loss, as_loss
from tacit.risk.parameters import criterion_parameter, epsilon_level, prior_parameter
from tacit.risk.program import solve_program

__all__ = ["OptimalFinite", "optimal_finite"]

MOST_ENTRIES = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalFinite(Mechanism):
    """A matrix Q(state, output) of integers over one total, private by exact inequalities, near the best there is.

    Guarantee: Pure(epsilon), or Approximate(epsilon, delta), for the neighbours it was made for; sampled exactly.
    Theorem `finite-program`, `exact-matrix`. Source: Hall 2012, section 1.3.5 and his remark on other structures.
    """

    epsilon: Exact
    delta: Exact
    neighbours: tuple[tuple[int, int], ...] = field(repr=False)
    rows: Rows = field(repr=False)
    loss: Loss
    certificate: Certificate

    @property
    def bound(self) -> Pure | Approximate:
        epsilon = up(epsilon_parameter(self.epsilon))
        if self.delta == 0:
            return Pure(epsilon=epsilon)
        return Approximate(epsilon=epsilon, delta=up(exact_parameter("delta", self.delta)))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("finite-program", "exact-matrix")

    @property
    def states(self) -> int:
        """How many states there are; they are numbered from 0."""
        return len(self.rows)

    @property
    def matrix(self) -> Floats:
        """Q(state, output) as floats, for reading; the exact ones are rows / their sum."""
        total = sum(self.rows[0])
        return np.array([[float(Fraction(v, total)) for v in row] for row in self.rows])

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "finite matrix",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "delta": shown(exact_parameter("delta", self.delta, positive=False)),
            "total": str(sum(self.rows[0])),
            "rows": [[str(v) for v in row] for row in self.rows],
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One output for the true state, drawn from its row."""
        source = source if source is not None else default_source()
        state = one_value(values, "optimal")
        index = int(state.ravel()[0])
        if not 0 <= index < self.states:
            raise InvalidParameter(
                parameter="values", value="a state out of range", must=f"lie in 0..{self.states - 1}"
            )
        drawn = FiniteDistribution(weights=self.rows[index]).sample(size=state.shape, source=source)
        return Released(values=drawn, spacing=Fraction(1), publishable=source.publishable)

    def expected_error(self, *, count: int | None = None) -> float:
        """The expected loss at a state, rounded up; without one, the largest."""
        table = self.loss.matrix(self.states - 1)
        chosen = range(self.states) if count is None else [whole("count", count, least=0)]
        total = sum(self.rows[0])
        return max(
            up(
                sum(
                    (Fraction(v) * Fraction(w) for v, w in zip(self.rows[x], table[x].tolist(), strict=True)),
                    Fraction(0),
                )
                / total
            )
            for x in chosen
        )


def optimal_finite(
    *,
    loss: str | Loss | Sequence[Sequence[float]] | npt.NDArray[Any],
    neighbours: Edges,
    epsilon: Exact,
    delta: Exact = 0,
    criterion: str = "minimax",
    prior: Any = None,
) -> OptimalFinite:
    """The best (epsilon, delta)-private mechanism on states 0..k-1 with these neighbours, by the full program.

    `loss` is a matrix with a row a state and a column an output; `neighbours` lists the pairs of states that
    one unit's data can turn into each other.
    """
    exact_epsilon = epsilon_parameter(epsilon)
    exact_delta = exact_parameter("delta", delta, positive=False)
    if not 0 <= exact_delta < 1:
        raise InvalidParameter(parameter="delta", value=delta, must="lie in [0, 1)")
    epsilon_level(epsilon)
    criterion_parameter(criterion)
    what = as_loss(loss)
    if what.table is None:
        raise InvalidParameter(
            parameter="loss", value=what.name, must="be a matrix here", hint="the states need not be counts"
        )
    table = what.table
    states = table.shape[0]
    edges = _edges(neighbours, states)
    if table.size * max(1, len(edges)) > MOST_ENTRIES * 300:
        raise InvalidParameter(
            parameter="loss",
            value=f"a {states} by {table.shape[1]} matrix with {len(edges)} pairs of neighbours",
            must="be smaller for the full program",
            hint="a loss that grows outwards on a count has a compact form: optimal_count",
        )
    weights = None
    if criterion == "bayes":
        weights = np.full(states, 1 / states) if prior is None else prior_parameter(prior, states)
    answer = solve_program(table, edges, float(exact_epsilon), float(exact_delta), weights)
    refuge = int(np.argmin(table.max(axis=0)))
    # A delta below the solver's accuracy is better served by a matrix that needs none.
    levels = [exact_delta, Fraction(0)] if exact_delta > 0 else [exact_delta]
    found = [
        _with_certificate(
            private_matrix(answer.matrix, edges, exact_epsilon, level, refuge),
            edges,
            epsilon,
            delta,
            what,
            criterion,
            answer.prior,
            answer.lower_bound,
        )
        for level in levels
    ]
    return min(found, key=lambda mechanism: mechanism.certificate.risk)


def _with_certificate(
    rows: Rows,
    edges: Edges,
    epsilon: Exact,
    delta: Exact,
    loss: Loss,
    criterion: str,
    prior: Floats,
    floor: float,
) -> OptimalFinite:
    empty = Certificate(criterion=criterion, method="", risk=0.0, lower_bound=0.0, prior=prior)
    bare = OptimalFinite(
        epsilon=epsilon, delta=delta, neighbours=tuple(edges), rows=rows, loss=loss, certificate=empty
    )
    risks = [bare.expected_error(count=x) for x in range(len(rows))]
    risk = max(risks)
    if criterion == "bayes":
        risk = up(
            sum((Fraction(a) * Fraction(b) for a, b in zip(risks, prior.tolist(), strict=True)), Fraction(0))
        )
    certificate = Certificate(
        criterion=criterion,
        method="full linear program",
        risk=risk,
        lower_bound=min(risk, floor),
        prior=prior,
        theorem="finite-program",
    )
    return OptimalFinite(
        epsilon=epsilon, delta=delta, neighbours=tuple(edges), rows=rows, loss=loss, certificate=certificate
    )


def _edges(neighbours: Edges, states: int) -> list[tuple[int, int]]:
    """The pairs, checked and each once."""
    found: dict[tuple[int, int], None] = {}
    for pair in neighbours:
        a, b = (whole("neighbours", v, least=0) for v in pair)
        if a >= states or b >= states or a == b:
            raise InvalidParameter(
                parameter="neighbours", value=(a, b), must=f"be two different states below {states}"
            )
        found[(min(a, b), max(a, b))] = None
    return list(found)
