"""The best simulator of one block of cells, by a linear program, with both ends of its delta certified.

Unknown are the simulator's answers q_a(t), and delta:

    minimise delta  subject to, in every cell c,
        sum_t max(0, P_c(t) - E Q_c(t)) <= delta,   sum_t max(0, Q_c(t) - E P_c(t)) <= delta,   Q_c = sum_a w_c(a)
        q_a.

The floats of the solver prove nothing. *Upper end:* its q, made rational and normalised, is a simulator, and its
delta is evaluated exactly. *Lower end* (theorem `best-simulator`): for all weights 0 <= l_c(t) <= m_c and 0 <=
l'_c(t) <= m'_c with sum of all m_c + m'_c = 1 every simulator has

    delta >= sum_c sum_t P_c(t) (l_c(t) - E l'_c(t)) + sum_a min_t sum_c w_c(a) (l'_c(t) - E l_c(t));

the solver's dual, clipped and rescaled in rationals, is such weights, however inexact it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.cells import Cell
from tacit.coupled.divergence import distance, mixed
from tacit.coupled.numbers import Distribution
from tacit.errors import NotCertified

__all__ = ["Block", "Solved", "evaluate", "lower_end", "solve"]

Weights = dict[tuple[int, Any], Fraction]
_COARSE, _FINE = 10**4, 1 << 44
_MOST_FACTOR = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Cells that share simulator inputs, directly or through others, and no others do.

    Inputs whose weights are proportional in all cells are one: only the mean of the simulator's answers to them counts.
    `members` says which scrubbed data an input stands for.
    """

    cells: tuple[Cell, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    members: dict[Any, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A simulator of a block with its exact delta, and weights that bound the delta of every simulator from below."""

    answers: dict[Any, Distribution]
    high: Fraction
    low: Fraction
    forward: Weights
    backward: Weights


def evaluate(block: Block, answers: dict[Any, Distribution], factor: Fraction) -> Fraction:
    """The exact delta of a simulator at E = factor: the largest over the cells and both directions."""
    return max(distance(c.real, mixed(c.scrubbed, answers), factor) for c in block.cells)


def lower_end(block: Block, forward: Weights, backward: Weights, factor: Fraction) -> Fraction:
    """What no simulator's delta is below, by weights of any size; see the module's formula. At least 0."""
    most: dict[tuple[int, int], Fraction] = {}
    for side, weights in enumerate((forward, backward)):
        for (c, _), weight in weights.items():
            most[c, side] = max(most.get((c, side), Fraction(0)), weight)
    scale = sum(most.values(), Fraction(0))
    if scale == 0:
        return Fraction(0)
    gain: dict[tuple[int, Any], Fraction] = {}
    out = Fraction(0)
    for (c, t), weight in forward.items():
        out += block.cells[c].real.get(t, Fraction(0)) * weight
        gain[c, t] = gain.get((c, t), Fraction(0)) - factor * weight
    for (c, t), weight in backward.items():
        out -= block.cells[c].real.get(t, Fraction(0)) * factor * weight
        gain[c, t] = gain.get((c, t), Fraction(0)) + weight
    by_input: dict[Any, dict[Any, Fraction]] = {a: {} for a in block.inputs}
    for (c, t), value in gain.items():
        for a, w in block.cells[c].scrubbed.items():
            row = by_input[a]
            row[t] = row.get(t, Fraction(0)) + w * value
    for row in by_input.values():
        untouched = len(row) < len(block.outputs)
        out += min([*row.values(), Fraction(0)] if untouched else row.values())
    return max(Fraction(0), out / scale)


def solve(blocks: Sequence[Block], low_factor: Fraction, high_factor: Fraction) -> list[Solved]:
    """Solve several blocks in one call of the solver; each is certified by itself."""
    # What the solver is asked need not be what is certified: beyond this factor its floats would be of no use.
    primal, dual = _floats(blocks, float(min(low_factor, Fraction(_MOST_FACTOR))))
    out = []
    for block, q, (forward, backward) in zip(blocks, primal, dual, strict=True):
        high, answers = min(
            ((evaluate(block, a, low_factor), a) for a in _rational(block, q)), key=lambda pair: pair[0]
        )
        low, f, b = max(
            ((lower_end(block, f, b, high_factor), f, b) for f, b in _weights(forward, backward)),
            key=lambda triple: triple[0],
        )
        if low > high:
            raise NotCertified(
                what="the best simulator", reason="its two ends contradict each other: please report it"
            )
        out.append(Solved(answers=answers, high=high, low=low, forward=f, backward=b))
    return out


def _rational(block: Block, q: dict[tuple[Any, Any], float]) -> Iterable[dict[Any, Distribution]]:
    """The solver's simulator as rationals, coarse (often exact) and fine."""
    for most in (_COARSE, _FINE):
        answers: dict[Any, Distribution] = {}
        for a in block.inputs:
            row = {t: _near(q[a, t], most) for t in block.outputs}
            whole = sum(row.values(), Fraction(0))
            answers[a] = (
                {t: p / whole for t, p in row.items() if p} if whole else {block.outputs[0]: Fraction(1)}
            )
        yield answers


def _weights(forward: dict[Any, float], backward: dict[Any, float]) -> Iterable[tuple[Weights, Weights]]:
    for most in (_COARSE, _FINE):
        yield (
            {k: p for k, v in forward.items() if (p := _near(v, most))},
            {k: p for k, v in backward.items() if (p := _near(v, most))},
        )


def _near(value: float, most: int) -> Fraction:
    if not value > 0:
        return Fraction(0)
    if most == _FINE:
        return Fraction(round(value * _FINE), _FINE)
    return Fraction(value).limit_denominator(most)


def _floats(
    blocks: Sequence[Block], factor: float
) -> tuple[list[dict[tuple[Any, Any], float]], list[tuple[dict[Any, float], dict[Any, float]]]]:
    """One sparse program for all blocks: minimise the sum of their deltas, which are independent."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    rows: list[int] = []
    columns: list[int] = []
    entries: list[float] = []
    right: list[float] = []
    same: list[tuple[int, int]] = []
    cost: list[float] = []
    plans: list[tuple[dict[tuple[Any, Any], int], dict[tuple[int, Any], tuple[int, int]]]] = []
    unknowns = constraints = equalities = 0
    for block in blocks:
        place = {
            (a, t): unknowns + k
            for k, (a, t) in enumerate((a, t) for a in block.inputs for t in block.outputs)
        }
        own = unknowns + len(place)
        unknowns = own + 1
        cost += [0.0] * len(place) + [1.0]
        for a in block.inputs:
            same += [(equalities, place[a, t]) for t in block.outputs]
            equalities += 1
        duals: dict[tuple[int, Any], tuple[int, int]] = {}
        for c, cell in enumerate(block.cells):
            weights = [(a, float(w)) for a, w in cell.scrubbed.items()]
            first, second = constraints, constraints + 1
            constraints += 2
            right += [0.0, 0.0]
            rows += [first, second]
            columns += [own, own]
            entries += [-1.0, -1.0]
            for t in block.outputs:
                p = float(cell.real.get(t, 0))
                for side, (sign, level) in enumerate(((-factor, -p), (1.0, factor * p))):
                    rows += [constraints] * (len(weights) + 1) + [first + side]
                    columns += [place[a, t] for a, _ in weights] + [unknowns, unknowns]
                    entries += [sign * w for _, w in weights] + [-1.0, 1.0]
                    right.append(level)
                    duals[c, t] = (constraints - side, constraints + 1 - side)
                    constraints += 1
                    unknowns += 1
                    cost.append(0.0)
        plans.append((place, duals))
    left = csr_array((entries, (rows, columns)), shape=(constraints, unknowns))
    sums = csr_array(
        (np.ones(len(same)), ([i for i, _ in same], [j for _, j in same])), shape=(equalities, unknowns)
    )
    result = linprog(
        cost, A_ub=left, b_ub=right, A_eq=sums, b_eq=np.ones(equalities), bounds=(0, None), method="highs"
    )
    if result.x is None or not np.all(np.isfinite(result.x)):
        raise NotCertified(what="the best simulator", reason=f"the solver stopped: {result.message}")
    x, y = result.x, -np.asarray(result.ineqlin.marginals)
    primal = [{key: float(x[j]) for key, j in place.items()} for place, _ in plans]
    dual = [
        (
            {key: float(y[j]) for key, (j, _) in duals.items()},
            {key: float(y[j]) for key, (_, j) in duals.items()},
        )
        for _, duals in plans
    ]
    return primal, dual
