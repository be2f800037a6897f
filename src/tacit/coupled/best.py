"""The best simulator for all cells at once: blocks without a common input are solved separately, and only if they
matter.

delta is the largest over the blocks. The average of a block's real distributions is a simulator with an exact delta
at no cost. A block is finished if its delta is no larger than the certain need of another block. The rest are
solved, the worst first, by `program.solve`. Blocks with the same distributions are solved once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from tacit.coupled.mechanisms import Cell, Simulator, ideal
from tacit.coupled.numbers import Distribution, Level, distance, mixed, smallest_factor
from tacit.errors import NotCertified
from tacit.exact.data_classes import dataclass

# The best simulator of one block of cells, by a linear program, with both ends of its delta certified.
#
# Unknown are the simulator's answers q_a(t), and delta:
#
#     minimise delta  subject to, in every cell c,
#         sum_t max(0, P_c(t) - E Q_c(t)) <= delta,   sum_t max(0, Q_c(t) - E P_c(t)) <= delta,   Q_c = sum_a w_c(a)
#         q_a.
#
# The floats of the solver prove nothing. *Upper end:* its q, made rational and normalised, is a simulator, and its
# delta is evaluated exactly. *Lower end* (theorem `best-simulator`): for all weights 0 <= l_c(t) <= m_c and 0 <=
# l'_c(t) <= m'_c with sum of all m_c + m'_c = 1 every simulator has
#
#     delta >= sum_c sum_t P_c(t) (l_c(t) - E l'_c(t)) + sum_a min_t sum_c w_c(a) (l'_c(t) - E l_c(t));
#
# the solver's dual, clipped and rescaled in rationals, is such weights, however inexact it was.

Weights = dict[tuple[int, Any], Fraction]
_COARSE, _FINE = 10**4, 1 << 44
_MOST_FACTOR = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class ProgramBlock:
    """Cells that share simulator inputs, directly or through others, and share none with further cells.

    Inputs with proportional weights in all cells count as one, since only the mean of the simulator's answers
    to them matters. `members` has the scrubbed data of each input.
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


def evaluate(block: ProgramBlock, answers: dict[Any, Distribution], factor: Fraction) -> Fraction:
    """The exact delta of a simulator at E = factor: the largest over the cells and both directions."""
    return max(distance(c.real, mixed(c.scrubbed, answers), factor) for c in block.cells)


def lower_end(block: ProgramBlock, forward: Weights, backward: Weights, factor: Fraction) -> Fraction:
    """A lower bound on every simulator's delta, by weights of any size; see the module's formula. At least 0."""
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


def solve(blocks: Sequence[ProgramBlock], low_factor: Fraction, high_factor: Fraction) -> list[Solved]:
    """Solve several blocks in one call of the solver; each gets its own certificate."""
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


def _rational(block: ProgramBlock, q: dict[tuple[Any, Any], float]) -> Iterable[dict[Any, Distribution]]:
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
    blocks: Sequence[ProgramBlock], factor: float
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


_SIZES = (1, 4, 16, 64, 256)
CLEAR = 1.000001
NEARLY = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, eq=False)
class BestSimulator:
    """A simulator, its exact delta (at the lower end of e^epsilon), and a lower bound for all simulators (at the
    upper).

    `block` and `solved` prove the lower end; `hardest` attains the upper one.
    """

    simulator: Simulator
    low: Fraction
    high: Fraction
    block: ProgramBlock | None
    solved: Solved | None
    hardest: ProgramBlock | None


def blocks_of(cells: Sequence[Cell]) -> list[ProgramBlock]:
    """The connected parts: two cells belong together if some scrubbed data can come from both."""
    parent = list(range(len(cells)))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    first: dict[Any, int] = {}
    for k, cell in enumerate(cells):
        for a in cell.scrubbed:
            other = first.setdefault((cell.pair, a), k)
            if other != k:
                parent[root(k)] = root(other)
    parts: dict[int, list[Cell]] = {}
    for k, cell in enumerate(cells):
        parts.setdefault(root(k), []).append(cell)
    return [_block(members) for members in parts.values()]


def _block(members: Sequence[Cell]) -> ProgramBlock:
    outputs = tuple(dict.fromkeys(t for c in members for t in c.real))
    columns: dict[Any, list[tuple[int, Fraction]]] = {}
    for k, cell in enumerate(members):
        for a, w in cell.scrubbed.items():
            columns.setdefault(a, []).append((k, w))
    if len(columns) == 1:
        (only,) = columns
        return ProgramBlock(tuple(members), (only,), outputs, {only: (only,)})
    alike: dict[Any, list[Any]] = {}
    for a, column in columns.items():
        alike.setdefault(tuple((k, w / column[0][1]) for k, w in column), []).append(a)
    groups = {same[0]: tuple(same) for same in alike.values()}
    name = {a: first for first, same in groups.items() for a in same}
    merged = []
    for cell in members:
        weights: dict[Any, Fraction] = {}
        for a, w in cell.scrubbed.items():
            weights[name[a]] = weights.get(name[a], Fraction(0)) + w
        merged.append(replace(cell, scrubbed=weights))
    return ProgramBlock(tuple(merged), tuple(groups), outputs, groups)


def best_delta(
    cells: Sequence[Cell], level: Level, *, blocks: Sequence[ProgramBlock] | None = None
) -> BestSimulator:
    """The smallest delta that some simulator reaches at this epsilon, between two certified ends."""
    parts = blocks if blocks is not None else blocks_of(cells)
    kinds: dict[Any, list[ProgramBlock]] = {}
    seen: dict[int, Any] = {}
    for part in parts:
        kinds.setdefault(_kind(part, seen), []).append(part)
    answers: dict[Any, Distribution | ProgramBlock] = {}
    waiting: list[tuple[Fraction | float, list[ProgramBlock]]] = []
    floats: dict[int, dict[Any, float]] = {}
    for alike in kinds.values():
        plain, simple = _simple(alike[0], level.low, floats)
        _keep(answers, alike, simple)
        waiting.append((plain, alike))
    # Ties of floats are told apart exactly: what comes after the first one that is small enough is no larger.
    waiting.sort(key=lambda pair: (float(pair[0]), pair[0]), reverse=True)
    low, high = Fraction(0), Fraction(0)
    where: ProgramBlock | None = None
    hardest: ProgramBlock | None = None
    proof: Solved | None = None
    done = 0
    while done < len(waiting) and waiting[done][0] > high:
        size = _SIZES[min(done.bit_length(), len(_SIZES) - 1)]
        batch = [w for w in waiting[done : done + size] if w[0] > high]
        for (plain, alike), found in zip(batch, _solve([a[0] for _, a in batch], level), strict=True):
            if found.high < plain:
                _keep(answers, alike, found.answers)
            own = min(Fraction(plain), found.high)
            if own > high or hardest is None:
                high, hardest = own, alike[0]
            if proof is None or found.low > low:
                low, where, proof = found.low, alike[0], found
        done += len(batch)

    def answer(pair: str, scrubbed: Any) -> Distribution:
        found = answers[pair, scrubbed]
        if isinstance(found, ProgramBlock):
            (found,) = average_of(found).values()
            answers[pair, scrubbed] = found
        return MappingProxyType(dict(found))

    simulator = Simulator(name="the best simulator", answer=answer)
    return BestSimulator(simulator, low, high, where, proof, hardest)


def _solve(blocks: Sequence[ProgramBlock], level: Level) -> list[Solved]:
    """`program.solve`; if a rounding error above 0 remains, it tries a simulator for a slightly smaller E."""
    found = solve(blocks, level.low, level.high)
    for k, one in enumerate(found):
        if 0 < one.high < NEARLY:
            again = solve([blocks[k]], level.low * (1 - NEARLY), level.high)[0]
            high = evaluate(blocks[k], again.answers, level.low)
            if high < one.high:
                found[k] = replace(one, answers=again.answers, high=high)
    return found


def _simple(
    block: ProgramBlock, factor: Fraction, floats: dict[int, dict[Any, float]]
) -> tuple[Fraction | float, dict[Any, Distribution] | None]:
    """An upper bound on the best delta that needs no linear program, with its simulator (None: the average).

    For one input: any distribution between max P/E and E min P, if one adds up to 1, has delta 0 (theorem
    `best-simulator`). Else the average of the real distributions. Floats sum its delta first: each of the
    terms is within (cells + 8) units of 2^-53 times 1 + E, so that with the addend below it is an upper bound.
    """
    if len(block.inputs) > 1 or factor > 1 << 20:
        average = average_of(block)
        return evaluate(block, average, factor), average
    rows = []
    for cell in block.cells:
        if id(cell.real) not in floats:
            floats[id(cell.real)] = {t: float(p) for t, p in cell.real.items()}
        rows.append(floats[id(cell.real)])
    e, count = float(factor), len(rows)
    q = {t: sum([p.get(t, 0.0) for p in rows]) / count for t in block.outputs}
    worst = 0.0
    for p in rows:
        forward = sum(m for t, w in p.items() if (m := w - e * q[t]) > 0)
        backward = sum(m for t, w in q.items() if (m := w - e * p.get(t, 0.0)) > 0)
        worst = max(worst, forward, backward)
    if all(max(p.get(t, 0.0) for p in rows) <= CLEAR * e * e * min(p.get(t, 0.0) for p in rows) for t in q):
        pure = pure_of(block, factor)
        if pure is not None:
            return Fraction(0), {block.inputs[0]: pure}
    if worst <= NEARLY:
        average = average_of(block)
        return evaluate(block, average, factor), average
    return worst + (1 + e) * (len(q) + count + 4) * 2.0**-48, None


def pure_of(block: ProgramBlock, factor: Fraction) -> Distribution | None:
    """A distribution between max P/E and E min P everywhere, for one input; None if the two cross."""
    rows = [cell.real for cell in block.cells]
    floor = {t: max(p.get(t, Fraction(0)) for p in rows) / factor for t in block.outputs}
    roof = {t: min(p.get(t, Fraction(0)) for p in rows) * factor for t in block.outputs}
    least, most = sum(floor.values(), Fraction(0)), sum(roof.values(), Fraction(0))
    if any(floor[t] > roof[t] for t in floor) or not least <= 1 <= most:
        return None
    share = (1 - least) / (most - least) if most > least else Fraction(0)
    return {t: floor[t] + share * (roof[t] - floor[t]) for t in block.outputs}


def _kind(block: ProgramBlock, seen: dict[int, Any]) -> Any:
    """Blocks of one input are the same problem if their distributions are."""
    if len(block.inputs) > 1:
        return id(block)
    found = set()
    for cell in block.cells:
        if id(cell.real) not in seen:
            seen[id(cell.real)] = frozenset(cell.real.items())
        found.add(seen[id(cell.real)])
    return frozenset(found)


def _keep(
    answers: dict[Any, Distribution | ProgramBlock],
    alike: Sequence[ProgramBlock],
    found: dict[Any, Distribution] | None,
) -> None:
    if found is None:
        answers.update({(b.cells[0].pair, a): alike[0] for b in alike for a in _all(b)})
        return
    if len(alike) == 1:
        own = alike[0]
        answers.update({(own.cells[0].pair, a): found[i] for i in own.inputs for a in own.members[i]})
        return
    (only,) = found.values()
    answers.update({(b.cells[0].pair, a): only for b in alike for a in _all(b)})


def _all(block: ProgramBlock) -> list[Any]:
    return [a for same in block.members.values() for a in same]


def average_of(block: ProgramBlock) -> dict[Any, Distribution]:
    """For each input the average of its possible real distributions, weighted by their probabilities there."""
    if len(block.inputs) == 1 and len(block.cells) == 1:
        return {block.inputs[0]: block.cells[0].real}
    sums: dict[Any, dict[Any, Fraction]] = {a: {} for a in block.inputs}
    weights: dict[Any, Fraction] = dict.fromkeys(block.inputs, Fraction(0))
    for cell in block.cells:
        for a, w in cell.scrubbed.items():
            weights[a] += w
            row = sums[a]
            for t, p in cell.real.items():
                row[t] = row.get(t, Fraction(0)) + w * p
    return {a: {t: p / weights[a] for t, p in row.items()} for a, row in sums.items()}


def given_delta(cells: Sequence[Cell], simulator: Simulator, factor: Fraction) -> tuple[Fraction, Cell]:
    """The exact delta against one simulator, and the cell that attains it."""
    worst, where = Fraction(-1), cells[0]
    for cell in cells:
        found = distance(cell.real, ideal(cell, simulator), factor)
        if found > worst:
            worst, where = found, cell
    return worst, where


def given_factor(cells: Sequence[Cell], simulator: Simulator, delta: Fraction) -> Fraction | None:
    """The exact smallest e^epsilon against one simulator at this delta; None if no factor is enough."""
    most = Fraction(1)
    for cell in cells:
        other = ideal(cell, simulator)
        for p, q in ((cell.real, other), (other, cell.real)):
            found = smallest_factor(p, q, delta)
            if found is None:
                return None
            most = max(most, found)
    return most


# The smallest epsilon of the best simulator at a given delta, between two certified ends.
#
# Every step finds a simulator, whose smallest e^epsilon is exact and an upper end, or a proof that the factor is too
# small, a lower end. For delta = 0 and one input there is a closed form (theorem `best-simulator`):
#
#     e^epsilon = max( sum_t max_v P_v(t),  1 / sum_t min_v P_v(t),  sqrt(max_t max_v P_v(t) / min_v P_v(t)) ).

CLOSE = Fraction(1, 10**7)
"""The largest relative distance of the two ends of e^epsilon."""
_STEPS, _PASSES, _LARGEST = 60, 60, 1 << 32


def best_factor(cells: Sequence[Cell], delta: Fraction) -> tuple[Fraction, Fraction | None]:
    """The smallest e^epsilon for which some simulator meets delta; the upper end is None if no finite one was
    found.

    It settles the hardest block first; then it looks for blocks that need more.
    """
    blocks = blocks_of(cells)
    low = high = Fraction(1)
    for _ in range(_PASSES):
        found = best_delta(cells, Level.of_factor(high), blocks=blocks)
        if found.high <= delta or found.hardest is None:
            return low, high
        below, above = _one(found.hardest, delta, high)
        low = max(low, below)
        if above is None:
            return low, None
        if above <= high:
            # The solver's accuracy is reached: what is left is closed by a factor that is a little larger.
            high = high * (1 + CLOSE)
        high = max(high, above)
    return low, None


def _one(block: ProgramBlock, delta: Fraction, start: Fraction) -> tuple[Fraction, Fraction | None]:
    """The same for one block; the search begins at the factor `start`. Only proofs move the lower end."""
    if delta == 0 and len(block.inputs) == 1:
        return _closed(block)
    low, high, trial = Fraction(1), _factor(block, average_of(block), delta), start
    for _ in range(_STEPS):
        found = solve([block], trial, trial)[0]
        reached = _factor(block, found.answers, delta)
        before = high
        if reached is not None and (high is None or reached < high):
            high = reached
        too_small = found.low > delta
        if too_small:
            low = max(low, trial)
        if high is None:
            if not too_small or trial >= _LARGEST:
                return low, None
            trial = min(trial * max(trial, Fraction(2)), Fraction(_LARGEST))
            continue
        if high - low <= CLOSE * high or (not too_small and high == before):
            break
        trial = _between(low, high)
    return low, high


def _closed(block: ProgramBlock) -> tuple[Fraction, Fraction | None]:
    """The closed form, with the square root between two rationals; None if an output settles the value."""
    rows = [cell.real for cell in block.cells]
    most = {t: max(p.get(t, Fraction(0)) for p in rows) for t in block.outputs}
    least = {t: min(p.get(t, Fraction(0)) for p in rows) for t in block.outputs}
    if any(least[t] == 0 for t in most):
        # No finite factor: any lower end is right.
        return Fraction(_LARGEST), None
    whole = max(sum(most.values(), Fraction(0)), 1 / sum(least.values(), Fraction(0)))
    ratio = max(most[t] / least[t] for t in most)
    if whole * whole >= ratio:
        return whole, whole
    bits = 80
    scaled = math.isqrt((ratio.numerator << 2 * bits) // ratio.denominator)
    low, high = max(whole, Fraction(scaled, 1 << bits)), Fraction(scaled + 1, 1 << bits)
    if low * low == ratio:
        high = low
    assert pure_of(block, high) is not None
    return low, high


def _factor(block: ProgramBlock, answers: dict[Any, Distribution], delta: Fraction) -> Fraction | None:
    most = Fraction(1)
    for cell in block.cells:
        other = mixed(cell.scrubbed, answers)
        for p, q in ((cell.real, other), (other, cell.real)):
            found = smallest_factor(p, q, delta)
            if found is None:
                return None
            most = max(most, found)
    return most


def _between(low: Fraction, high: Fraction) -> Fraction:
    """A short fraction between the two; ends that are far apart are approached by doubling."""
    middle = (low + high) / 2 if high < 4 * low else low * 2
    short = middle.limit_denominator(1 << 30)
    return short if low < short < high else middle
