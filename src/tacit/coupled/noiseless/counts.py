"""Exact counts: each row is 1 with a probability of its own, of which only an interval is known.

Rows are independent, row i is 1 with probability p_i in [a, b]. The laws of the count given the protected row are
affine in each p_j, and divergences are jointly convex, so the worst case has every p_j at a or b: k of the m other rows
at a and m - k at b, for some k (theorem `count-corners`). A run of corners k1 <= k <= k2 is covered by disclosing the
rows in which they differ: Bin(k1, a) + Bin(m - k2, b). Runs are halved while they need more than some corner does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, shown
from tacit.coupled.noiseless.floors import least_epsilon
from tacit.coupled.noiseless.lattice import SumLaw, sum_law, sum_laws
from tacit.coupled.noiseless.row_laws import as_typed, bernoulli
from tacit.coupled.noiseless.shifts import Found, Shifted, worst
from tacit.coupled.noiseless.simulators import chosen
from tacit.coupled.noiseless.sums import ALONE, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.errors import InvalidParameter

__all__ = ["exact_count"]

_RUNS = 24
_NEAR, _NEAR_OF_MANY = 1.0002, 1.002
_MANY = 20_000
MOST_LAWS = 4000
FAIR = {0: 0.5, 1: 0.5}


def exact_count(probability: object, *, n: int, delta: float, unknown_rows: int | None = None) -> ExactAnswer:
    """The epsilon, at this delta, of publishing how many of n rows are 1.

    `probability` is one number, the known chance of a 1 in every row, or (a, b): each row has a chance of its own in
    between. `unknown_rows` of the rows are unknown to the adversary, the protected one among them.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    a, b = _interval(probability)
    hidden = unknown - 1
    runs = _Runs(a, b, hidden, target)
    floor = max(least_epsilon(sum_law(bernoulli(p).weights, hidden, delta=target), 1, target) for p in {a, b})
    simulator = runs.simulator()
    found = runs.worst(simulator)
    pair = runs.worst({0: 1.0})
    if math.isinf(found.factor):
        both = (
            f"between two values of a row it is {shown(pair.floor)}, and " if math.isinf(pair.factor) else ""
        )
        raise delta_out_of_reach(
            "count",
            target,
            found.floor,
            hint=f"{both}with this delta no simulator at all has an epsilon below "
            f"{math.floor(floor * 1000) / 1000:g}; allow a larger delta, or assume more unknown rows",
            ours=a < b,
        )
    same = {p: runs.alone(p) for p in (a, b)}
    chance = f"{float(a):g}" if a == b else f"its own, between {float(a):g} and {float(b):g}"
    return ExactAnswer(
        statistic="count",
        epsilon=found.epsilon,
        epsilon_pair=pair.epsilon if math.isfinite(pair.factor) else None,
        delta=target,
        assumptions=(
            f"every row is counted independently of the others, with a probability of {chance}",
            known_rows_clause(size, unknown),
            ALONE,
        ),
        theorem="shifted-sums" if a == b else "count-corners",
        simulator=_named(simulator),
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, each counted with a probability of {chance}",
        details={
            "probability": [float(a), float(b)],
            "epsilon_floor": floor,
            "epsilon_pair_homogeneous": max(f.epsilon for f in same.values()),
        },
    )


def _interval(probability: Any) -> tuple[Fraction, Fraction]:
    """(a, b) inside (0, 1), the smaller first."""
    if isinstance(probability, tuple | list):
        if len(probability) != 2:
            raise InvalidParameter(
                parameter="probability", value=f"{len(probability)} numbers", must="be one number or two"
            )
        a, b = (as_typed("probability", p) for p in probability)
    else:
        a = b = as_typed("probability", probability)
    if not 0 < a <= b < 1:
        raise InvalidParameter(
            parameter="probability",
            value=f"{float(a):g}" if a == b else f"{float(a):g},{float(b):g}",
            must="lie strictly between 0 and 1, the smaller first",
            hint="a row that is settled hides nothing",
        )
    return a, b


def _named(simulator: dict[int, float]) -> str:
    share = simulator.get(1, 0.0)
    how = "a fair bit" if share == 0.5 else f"a bit that is 1 with probability {share:g}"
    return f"the count of the other rows, plus {how}"


class _Runs:
    """Bounds over all corners, by runs of them; laws are kept, since several simulators are tried."""

    def __init__(self, a: Fraction, b: Fraction, hidden: int, delta: float) -> None:
        self.a, self.b, self.hidden, self.delta = a, b, hidden, delta
        self.weights = [bernoulli(a).weights, bernoulli(b).weights]
        self.kept: dict[tuple[int, int], SumLaw] = {}

    def _laws(self, runs: Sequence[tuple[int, int]]) -> list[SumLaw]:
        """S with k1 rows at a and m - k2 at b, for each run (k1, k2)."""
        new = [run for run in dict.fromkeys(runs) if run not in self.kept]
        if new:
            counts = [(k1, self.hidden - k2) for k1, k2 in new]
            laws = sum_laws(self.weights, counts, delta=self.delta)
            self.kept.update(zip(new, laws, strict=True))
        return [self.kept[run] for run in runs]

    def _found(self, law: SumLaw, simulator: dict[int, float]) -> Found:
        # A sum of independent bits is log-concave: both ends of {0, 1} are all there is.
        return worst(Shifted([(1.0, law)], 0, 1, simulator), [0, 1], self.delta, log_concave=True)

    def alone(self, p: Fraction) -> Found:
        """All rows with this probability, between the two values of a row."""
        return self._found(sum_law(bernoulli(p).weights, self.hidden, delta=self.delta), {0: 1.0})

    def simulator(self) -> dict[int, float]:
        """The coin that is best at the two homogeneous corners and in the middle; fair where they are mirror images."""
        corners = sorted({(k, k) for k in (0, self.hidden // 2, self.hidden)})
        laws = self._laws(corners) if self.a < self.b else self._laws([(self.hidden, self.hidden)])
        return chosen(
            1,
            lambda s: max(self._found(law, s).factor for law in laws),
            even=self.a + self.b == 1,
        )

    def worst(self, simulator: dict[int, float]) -> Found:
        """The factor that is enough at every corner."""
        if self.a == self.b:
            return self._found(self._laws([(self.hidden, self.hidden)])[0], simulator)
        # If a + b = 1 and the coin is fair, or there is none, the corner m - k is the mirror image of k.
        even = self.a + self.b == 1 and simulator in (FAIR, {0: 1.0})
        last = -(-self.hidden // 2) if even else self.hidden
        edges = sorted({round(last * j / _RUNS) for j in range(_RUNS + 1)})
        corners = [self._found(law, simulator) for law in self._laws([(k, k) for k in edges])]
        # What some corner needs; runs that need no more are settled.
        needed = corners[0]
        for corner in corners[1:]:
            needed = needed.or_worse(corner)
        settled, open_runs = needed, _between(edges)
        while open_runs and math.isfinite(needed.factor):
            following: list[tuple[int, int]] = []
            enough = 1 + (needed.factor - 1) * (_NEAR if self.hidden <= _MANY else _NEAR_OF_MANY)
            for run, law in zip(open_runs, self._laws(open_runs), strict=True):
                found = self._found(law, simulator)
                if found.factor <= enough or run[0] == run[1] or len(self.kept) > MOST_LAWS:
                    settled = settled.or_worse(found)
                    continue
                middle = (run[0] + run[1]) // 2
                following += [(run[0], middle), (middle + 1, run[1])]
            open_runs = following
        return settled


def _between(edges: list[int]) -> list[tuple[int, int]]:
    """Runs that hold every corner that is not an edge."""
    return [(x + 1, y - 1) for x, y in itertools.pairwise(edges) if y - x > 1]
