"""How often one row would change the largest of several sums, by simulation: an upper confidence limit.

Tables are drawn from the laws that are assumed, never from data. The limit is wrong with probability at most `wrong`;
theorem `simulated-stability` says what follows for an answer that is published only where limit + wrong is small.

Rows are drawn one by one from the cryptographic source. A word of 64 bits is compared with the cumulative weights,
rounded: that moves the law of a row by less than (values) 2^-64, which is added to the limit once a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, precision
from tacit.exact.rounding import up
from tacit.noise.source import Source, default_source

__all__ = ["MOST_ROWS_DRAWN", "changes", "drawn_counts", "limit_of"]

MOST_ROWS_DRAWN = 10**9
_BLOCK = 1 << 20
_WIDER = 1 + 2.0**-30


def drawn_counts(weights: Sequence[Fraction], rows: int, tables: int, source: Source) -> np.ndarray:
    """How often each value occurs among so many rows, in each of so many tables."""
    ends, total = [], Fraction(0)
    for w in weights[:-1]:
        total += w
        ends.append(min(int(total * (1 << 64)), (1 << 64) - 1))
    edges = np.array(ends, dtype=np.uint64)
    out = np.zeros((tables, len(weights)), dtype=np.int64)
    at_once = max(1, _BLOCK // rows)
    for first in range(0, tables, at_once):
        some = min(at_once, tables - first)
        # In pieces, so that a table of many rows is never held at once.
        for begin in range(0, rows, _BLOCK):
            size = min(_BLOCK, rows - begin)
            values = np.searchsorted(edges, source.words(some * size), side="right")
            place = np.repeat(np.arange(some), size) * len(weights) + values
            found = np.bincount(place, minlength=some * len(weights))
            out[first : first + some] += found.reshape(some, len(weights))
    return out


def changes(
    laws: Sequence[RowLaw],
    scores: Sequence[Mapping[int, int]],
    offsets: Sequence[int],
    hidden: int,
    draws: int,
    *,
    wrong: float,
    source: Source | None = None,
) -> dict[str, float]:
    """How often one row would have changed the estimate: an upper limit over all rows, too low with chance `wrong`.

    The limit of the largest count is the largest limit, and so no lower than that of the worst row: nothing is divided
    among the rows and the laws. `delta` is what the theorem claims, the limit and `wrong` together.
    """
    if draws * hidden * len(laws) > MOST_ROWS_DRAWN:
        raise InvalidParameter(
            parameter="draws",
            value=draws,
            must=f"make at most {MOST_ROWS_DRAWN} rows: draws times rows times laws",
            hint="the bound beside it needs no simulation",
        )
    places = list(laws[0].support)
    matrix = np.array([[s[p] for p in places] for s in scores], dtype=np.int64)
    worst = 0
    for law in laws:
        counts = drawn_counts([law.weights[p] for p in places], hidden, draws, source or default_source())
        sums = counts @ matrix.T + np.array(offsets)
        before = np.argmax(sums, axis=1)
        changed = [int(np.sum(np.argmax(sums + matrix[:, q], axis=1) != before)) for q in range(len(places))]
        worst = max(worst, *changed)
    rounding = max(law.rounding for law in laws) + Fraction(len(places), 1 << 64)
    limit = Fraction(limit_of(worst, draws, wrong)) + hidden * rounding
    return {
        "upper": min(1.0, up(limit)),
        "delta": min(1.0, up(limit + Fraction(wrong))),
        "wrong": wrong,
        "draws": draws,
        "changed": worst,
    }


def limit_of(seen: int, draws: int, wrong: float) -> float:
    """Clopper and Pearson's upper limit: a p with Pr[Bin(draws, p) <= seen] <= wrong, which is proved, not believed."""
    from scipy.special import betaincinv

    if seen >= draws:
        return 1.0
    found = float(betaincinv(seen + 1, draws - seen, 1 - wrong))
    with precision(128):
        while found < 1:
            # Pr[Bin(m, p) <= c] = I_{1-p}(m - c, c + 1)
            tail = (1 - ball(found)).beta_lower(ball(draws - seen), ball(seen + 1), regularized=True)
            if bool(tail <= ball(wrong)):
                return found
            found *= _WIDER
    return 1.0
