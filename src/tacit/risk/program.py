"""The full linear program of Hall 1.3.5: any loss, any finite set of neighbours, (epsilon, delta).

    minimise sum_x prior(x) sum_r L(x, r) Q(x, r)        (Bayes), or its largest term (minimax)
    subject to rows of Q that sum to 1, Q >= 0, and for neighbours x, x' and every r
        Q(x, r) - e^epsilon Q(x', r) <= S(x, x', r),  S >= 0,  sum_r S(x, x', r) <= delta.
Its solver is HiGHS; the lower bound is computed anew from the solver's multipliers, by weak duality, so that
it holds whatever the solver did (theorem `finite-program`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import NotCertified
from tacit.exact.arrays import Floats
from tacit.risk.exact import Edges

__all__ = ["Answer", "solve_program"]

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
    """Solve for a prior, or minimax where there is none; `equal_risks` asks for the same risk at every state."""
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
