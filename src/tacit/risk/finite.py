"""Optimal mechanisms on any finite set of states with a neighbour relation: a matrix of exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, lower, up
from tacit.guarantees import Approximate, Pure
from tacit.mechanisms.base import Mechanism, Released, epsilon_parameter, one_value, shown
from tacit.noise import FiniteDistribution
from tacit.noise.source import Source, default_source
from tacit.risk.certificate import (
    Certificate,
    Loss,
    as_loss,
    criterion_parameter,
    epsilon_level,
    prior_parameter,
)

# From a solver's floats to a matrix of integers that is private beyond doubt.
#
# The entries become integers over one common total for each row; every inequality of privacy is then checked
# in integers against a rational number that is certainly not above e^epsilon. What the repair costs is
# accuracy, and it is counted, because the risk is computed from the repaired matrix (theorem `exact-matrix`).

Edges = Sequence[tuple[int, int]]
Rows = tuple[tuple[int, ...], ...]

SCALE_BITS = 60
MIX_BITS = 40


def factor_below(epsilon: Fraction) -> Fraction:
    """A rational number that is at most e^epsilon, and close to it."""
    return Fraction(lower(lambda: ball(epsilon).exp()))


def private_matrix(matrix: Floats, edges: Edges, epsilon: Fraction, delta: Fraction, refuge: int) -> Rows:
    """Integer rows with one common sum, (epsilon, delta)-private for these neighbours, near the given matrix.

    `refuge` is the output that receives the mass moved by the repair.
    """
    factor = factor_below(epsilon)
    whole = 1 << SCALE_BITS
    rows = [[int(v * whole) for v in np.clip(row, 0.0, 1.0).tolist()] for row in matrix]
    if delta == 0:
        rows = _raise_to_private(rows, edges, factor)
        rows = _level(rows, factor, refuge)
    else:
        rows = [_to_total(row, whole, refuge) for row in rows]
        rows = _mix(rows, edges, factor, delta, refuge, whole)
    _check(rows, edges, factor, delta)
    return tuple(tuple(row) for row in rows)


def _raise_to_private(rows: list[list[int]], edges: Edges, factor: Fraction) -> list[list[int]]:
    """The smallest larger matrix whose columns change by at most the factor between neighbours."""
    top, bottom = factor.numerator, factor.denominator
    changed = True
    while changed:
        changed = False
        for i, j in [*edges, *((b, a) for a, b in reversed(edges))]:
            source, target = rows[i], rows[j]
            for r, value in enumerate(source):
                need = -(-value * bottom // top)
                if target[r] < need:
                    target[r] = need
                    changed = True
    return rows


def _level(rows: list[list[int]], factor: Fraction, refuge: int) -> list[list[int]]:
    """Equal row sums: the missing mass goes to one output, as a column that is itself private.

    With spread = largest - smallest sum and room >= spread / (factor - 1), all amounts lie in
    [room, room + spread], so no two of them differ by more than the factor.
    """
    sums = [sum(row) for row in rows]
    spread = max(sums) - min(sums)
    room = -(-spread * factor.denominator // (factor.numerator - factor.denominator)) if spread else 0
    total = max(max(sums) + room, 1)
    for row, own in zip(rows, sums, strict=True):
        row[refuge] += total - own
    return rows


def _to_total(row: list[int], whole: int, refuge: int) -> list[int]:
    """The row scaled down to at most the total; the missing part goes to its largest entry."""
    own = sum(row)
    scaled = [v * whole // own for v in row] if own else row
    scaled[max(range(len(row)), key=lambda r: scaled[r]) if own else refuge] += whole - sum(scaled)
    return scaled


def _mix(
    rows: list[list[int]], edges: Edges, factor: Fraction, delta: Fraction, refuge: int, whole: int
) -> list[list[int]]:
    """Mix with a constant answer until the excess over the factor is at most delta."""
    excess = _excess(rows, edges, factor)
    if excess <= delta * whole:
        return rows
    share = 1 - delta * whole / excess
    k = -(-share.numerator * (1 << MIX_BITS) // share.denominator)
    mixed = [[v * ((1 << MIX_BITS) - k) for v in row] for row in rows]
    for row in mixed:
        row[refuge] += k * whole
    return mixed


def _excess(rows: list[list[int]], edges: Edges, factor: Fraction) -> Fraction:
    """The largest sum over the outputs of (P - factor P')+, over ordered pairs of neighbours."""
    worst = Fraction(0)
    for a, b in edges:
        for i, j in ((a, b), (b, a)):
            total = sum(
                max(0, v * factor.denominator - w * factor.numerator)
                for v, w in zip(rows[i], rows[j], strict=True)
            )
            worst = max(worst, Fraction(total, factor.denominator))
    return worst


def _check(rows: list[list[int]], edges: Edges, factor: Fraction, delta: Fraction) -> None:
    total = sum(rows[0])
    sound = all(min(row) >= 0 and sum(row) == total for row in rows)
    if not sound or _excess(rows, edges, factor) > delta * total:
        raise NotCertified(
            what="the optimal matrix", reason="the repaired matrix fails an inequality of privacy"
        )


# The full linear program of Hall 1.3.5: any loss, any finite set of neighbours, (epsilon, delta).
#
#     minimise sum_x prior(x) sum_r L(x, r) Q(x, r)        (Bayes), or its largest term (minimax)
#     subject to rows of Q that sum to 1, Q >= 0, and for neighbours x, x' and every r
#         Q(x, r) - e^epsilon Q(x', r) <= S(x, x', r),  S >= 0,  sum_r S(x, x', r) <= delta.
# Its solver is HiGHS; the lower bound is computed anew from the solver's multipliers, by weak duality, so that
# it holds whatever the solver did (theorem `finite-program`).

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The solver's matrix, the prior of its multipliers, and a lower bound that needs no trust in it."""

    matrix: Floats
    prior: Floats
    lower_bound: float


def solve_program(
    table: Floats,
    edges: Edges,
    epsilon: float,
    delta: float,
    prior: Floats | None,
    *,
    equal_risks: bool = False,
) -> Answer:
    """Solves for a prior, or minimax without one; `equal_risks` asks for the same risk at every state."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

    states, outputs = table.shape
    directed = np.array([*edges, *((b, a) for a, b in edges)], dtype=np.int64).reshape(-1, 2)
    pairs, size = len(directed), states * outputs
    shrink = float(np.exp(-epsilon))
    scale = float(table.max()) or 1.0
    # Privacy, divided by e^epsilon so that large epsilons do not spoil the scaling.
    row = np.arange(pairs * outputs)
    r = np.tile(np.arange(outputs), pairs)
    first, second = (np.repeat(directed[:, k], outputs) * outputs + r for k in (0, 1))
    ones = np.ones(row.size)
    privacy = coo_matrix(
        (
            np.concatenate([shrink * ones, -ones]),
            (np.concatenate([row, row]), np.concatenate([first, second])),
        ),
        shape=(row.size, size),
    ).tocsr()
    risk = coo_matrix(
        (table.ravel() / scale, (np.repeat(np.arange(states), outputs), np.arange(size))),
        shape=(states, size),
    ).tocsr()
    extra = row.size if delta > 0 else 0
    blocks, right = [privacy], [np.zeros(row.size)]
    if delta > 0:
        blocks = [hstack([privacy, -csr_matrix((ones, (row, row)), shape=(row.size, row.size))])]
        sums = coo_matrix((ones, (row // outputs, row)), shape=(pairs, row.size))
        blocks.append(hstack([csr_matrix((pairs, size)), sums]))
        right.append(np.full(pairs, delta * shrink))
    objective = np.zeros(size + extra + 1)
    equal = [
        hstack(
            [
                coo_matrix(
                    (np.ones(size), (np.arange(size) // outputs, np.arange(size))), shape=(states, size)
                ),
                csr_matrix((states, extra)),
            ]
        )
    ]
    equal_right = [np.ones(states)]
    worst = hstack([risk, csr_matrix((states, extra))])
    if prior is None:
        objective[-1] = 1.0
        (equal if equal_right and equal_risks else blocks).append(worst)
        (equal_right if equal_risks else right).append(np.zeros(states))
    else:
        objective[:size] = (prior[:, None] * table / scale).ravel()
    last = np.zeros((sum(b.shape[0] for b in blocks), 1))
    last_equal = np.zeros((sum(b.shape[0] for b in equal), 1))
    if prior is None:
        (last_equal if equal_risks else last)[-states:] = -1.0
    result = linprog(
        objective,
        A_ub=hstack([vstack(blocks), csr_matrix(last)]).tocsr(),
        b_ub=np.concatenate(right),
        A_eq=hstack([vstack(equal), csr_matrix(last_equal)]).tocsr(),
        b_eq=np.concatenate(equal_right),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if result.x is None:
        raise NotCertified(
            what="the optimal mechanism",
            reason=f"the solver found no solution ({str(result.message).strip()})",
            hint="the gap is not known: try a smaller range or a larger epsilon",
        )
    matrix = np.maximum(result.x[:size].reshape(states, outputs), 0.0)
    multipliers = np.maximum(-np.asarray(result.ineqlin.marginals), 0.0)
    own = np.full(states, 1 / states) if equal_risks else multipliers[-states:] if prior is None else prior
    own = own / own.sum() if own.sum() > 0 else np.full(states, 1 / states)
    weights = multipliers[: row.size].reshape(pairs, outputs) * scale
    return Answer(
        matrix=matrix, prior=own, lower_bound=weak_duality(table, directed, shrink, delta, own, weights)
    )


def weak_duality(
    table: Floats,
    directed: npt.NDArray[np.int64],
    shrink: float,
    delta: float,
    prior: Floats,
    weights: Floats,
) -> float:
    """sum_x min_r [prior L + multipliers of privacy]: below the Bayes risk, for any non-negative multipliers.

    With a delta the multipliers of one pair may reach at most the price kappa of its delta, which is their
    maximum, and kappa delta is subtracted.
    """
    cost = prior[:, None] * table
    size = np.abs(cost)
    for (i, j), weight in zip(directed, weights, strict=True):
        cost[i] += shrink * weight
        cost[j] -= weight
        size[i] += shrink * weight
        size[j] += weight
    price = float(weights.max(axis=1).sum()) * delta * shrink if delta > 0 and weights.size else 0.0
    rounding: float = (int(directed.shape[0]) + 64) * 2.0**-50 * float(size.max(axis=1).sum())
    value = float(cost.min(axis=1).sum()) - price * (1 + 2.0**-40) - rounding
    return value if value > 0 else 0.0


MOST_ENTRIES = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalFinite(Mechanism):
    """A matrix Q(state, output) of integers over one total, private by exact inequalities, near the best possible one.

    Guarantee: Pure(epsilon), or Approximate(epsilon, delta), for its declared neighbours; sampled exactly.
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
        """The number of states. They are numbered from 0."""
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
    refuse_if(not 0 <= exact_delta < 1, "delta", delta, "lie in [0, 1)")
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
