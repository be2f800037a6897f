"""Maximum a posteriori with a little noise: ordinary differential privacy, whatever the data are (6.1, last remark).

The scores of a hypothesis are sums over rows of rounded log-likelihoods; replacing a row moves each of them by at most
the range of ln f_j/f_1 over the values. Permute-and-flip on the scores is epsilon-DP. No law of the rows is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tacit.coupled.noiseless.decisions import RESOLUTION, log_scores, same_places
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.exact.checks import positive
from tacit.guarantees.arguments import listed
from tacit.mechanisms import PermuteAndFlip, Score

if TYPE_CHECKING:
    from tacit.noise.source import Source

__all__ = ["NoisyMap", "noisy_map"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMap:
    """The mechanism and the scores of every value of the grid, a row a hypothesis, in parts of a natural logarithm."""

    laws: tuple[RowLaw, ...]
    scores: tuple[tuple[int, ...], ...]
    mechanism: PermuteAndFlip

    def totals(self, values: ArrayLike) -> list[Fraction]:
        """The score of each hypothesis; values off the grid count as the nearest one, missing ones as the lowest."""
        low, step, top = float(self.laws[0].low), float(self.laws[0].step), len(self.scores[0]) - 1
        places = np.rint((np.nan_to_num(np.asarray(values, dtype=np.float64), nan=low) - low) / step)
        counts = np.bincount(np.clip(places, 0, top).astype(np.int64).ravel(), minlength=top + 1)
        return [Fraction(int(counts @ np.array(row)), RESOLUTION) for row in self.scores]

    def choose(self, values: ArrayLike, *, source: Source | None = None) -> int:
        """Which hypothesis, privately."""
        return self.mechanism.choose(self.totals(values), source=source).index


def noisy_map(hypotheses: Sequence[str | RowLaw], *, epsilon: float, grid: object = None) -> NoisyMap:
    """epsilon-DP for replaced rows. Values without a chance under the laws count as their neighbours."""
    laws = [row_law(h, grid=grid) for h in listed("hypotheses", hypotheses)]
    same_places(laws)
    rows = []
    for law in laws:
        found = log_scores(law, laws[0])
        near = sorted(found)
        rows.append(tuple(found[min(near, key=lambda p: abs(p - k))] for k in range(len(law.weights))))
    widest = max(max(row) - min(row) for row in rows)
    mechanism = PermuteAndFlip(
        epsilon=positive("epsilon", epsilon), sensitivity=Score(Fraction(max(widest, 1), RESOLUTION))
    )
    return NoisyMap(laws=tuple(laws), scores=tuple(rows), mechanism=mechanism)
