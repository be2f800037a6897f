"""The best simulator for all cells at once: blocks that share no input are solved apart, and only where they matter.

delta is the largest over the blocks. The average of a block's real distributions is a simulator whose delta is
exact and costs nothing; a block where it is no worse than what another block needs anyway is done. The rest are
solved, the worst first, by `program.solve`. Blocks with the same distributions are solved once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from tacit.coupled.cells import Cell, ideal
from tacit.coupled.divergence import distance, smallest_factor
from tacit.coupled.mechanisms import Simulator
from tacit.coupled.numbers import Distribution, Level
from tacit.coupled.program import Block, Solved, evaluate, solve

__all__ = ["Best", "average_of", "best_delta", "blocks_of", "given_delta", "given_factor", "pure_of"]

_SIZES = (1, 4, 16, 64, 256)
CLEAR = 1.000001
NEARLY = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """A simulator, its exact delta (at the lower end of e^epsilon), and what no simulator is below (at the upper).

    `block` and `solved` prove the lower end; `hardest` is where the upper one is reached.
    """

    simulator: Simulator
    low: Fraction
    high: Fraction
    block: Block | None
    solved: Solved | None
    hardest: Block | None


def blocks_of(cells: Sequence[Cell]) -> list[Block]:
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


def _block(members: Sequence[Cell]) -> Block:
    outputs = tuple(dict.fromkeys(t for c in members for t in c.real))
    columns: dict[Any, list[tuple[int, Fraction]]] = {}
    for k, cell in enumerate(members):
        for a, w in cell.scrubbed.items():
            columns.setdefault(a, []).append((k, w))
    if len(columns) == 1:
        (only,) = columns
        return Block(tuple(members), (only,), outputs, {only: (only,)})
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
    return Block(tuple(merged), tuple(groups), outputs, groups)


def best_delta(cells: Sequence[Cell], level: Level, *, blocks: Sequence[Block] | None = None) -> Best:
    """The smallest delta that some simulator reaches at this epsilon, between two certified ends."""
    parts = blocks if blocks is not None else blocks_of(cells)
    kinds: dict[Any, list[Block]] = {}
    seen: dict[int, Any] = {}
    for part in parts:
        kinds.setdefault(_kind(part, seen), []).append(part)
    answers: dict[Any, Distribution | Block] = {}
    waiting: list[tuple[Fraction | float, list[Block]]] = []
    floats: dict[int, dict[Any, float]] = {}
    for alike in kinds.values():
        plain, simple = _simple(alike[0], level.low, floats)
        _keep(answers, alike, simple)
        waiting.append((plain, alike))
    # Ties of floats are told apart exactly: what comes after the first one that is small enough is no larger.
    waiting.sort(key=lambda pair: (float(pair[0]), pair[0]), reverse=True)
    low, high = Fraction(0), Fraction(0)
    where: Block | None = None
    hardest: Block | None = None
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
        if isinstance(found, Block):
            (found,) = average_of(found).values()
            answers[pair, scrubbed] = found
        return MappingProxyType(dict(found))

    simulator = Simulator(name="the best simulator", answer=answer)
    return Best(simulator, low, high, where, proof, hardest)


def _solve(blocks: Sequence[Block], level: Level) -> list[Solved]:
    """`program.solve`; where a rounding error above 0 is left, a simulator for a little less than E is tried."""
    found = solve(blocks, level.low, level.high)
    for k, one in enumerate(found):
        if 0 < one.high < NEARLY:
            again = solve([blocks[k]], level.low * (1 - NEARLY), level.high)[0]
            high = evaluate(blocks[k], again.answers, level.low)
            if high < one.high:
                found[k] = replace(one, answers=again.answers, high=high)
    return found


def _simple(
    block: Block, factor: Fraction, floats: dict[int, dict[Any, float]]
) -> tuple[Fraction | float, dict[Any, Distribution] | None]:
    """What the delta of a simulator is at most that needs no program, and the simulator; None for the average.

    For one input: whatever lies between max P/E and E min P, if it can add up to 1, has delta 0 (theorem
    `best-simulator`). Else the average of the real distributions. Its delta is summed in floats first: each of the
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


def pure_of(block: Block, factor: Fraction) -> Distribution | None:
    """A distribution between max P/E and E min P everywhere, for one input; None if there is none."""
    rows = [cell.real for cell in block.cells]
    floor = {t: max(p.get(t, Fraction(0)) for p in rows) / factor for t in block.outputs}
    roof = {t: min(p.get(t, Fraction(0)) for p in rows) * factor for t in block.outputs}
    least, most = sum(floor.values(), Fraction(0)), sum(roof.values(), Fraction(0))
    if any(floor[t] > roof[t] for t in floor) or not least <= 1 <= most:
        return None
    share = (1 - least) / (most - least) if most > least else Fraction(0)
    return {t: floor[t] + share * (roof[t] - floor[t]) for t in block.outputs}


def _kind(block: Block, seen: dict[int, Any]) -> Any:
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
    answers: dict[Any, Distribution | Block],
    alike: Sequence[Block],
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


def _all(block: Block) -> list[Any]:
    return [a for same in block.members.values() for a in same]


def average_of(block: Block) -> dict[Any, Distribution]:
    """For each input the average of the real distributions in which it can occur, weighted by its chance there."""
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
    """The exact delta against one simulator, and the cell where it is reached."""
    worst, where = Fraction(-1), cells[0]
    for cell in cells:
        found = distance(cell.real, ideal(cell, simulator), factor)
        if found > worst:
            worst, where = found, cell
    return worst, where


def given_factor(cells: Sequence[Cell], simulator: Simulator, delta: Fraction) -> Fraction | None:
    """The exact smallest e^epsilon against one simulator at this delta; None if there is none."""
    most = Fraction(1)
    for cell in cells:
        other = ideal(cell, simulator)
        for p, q in ((cell.real, other), (other, cell.real)):
            found = smallest_factor(p, q, delta)
            if found is None:
                return None
            most = max(most, found)
    return most
