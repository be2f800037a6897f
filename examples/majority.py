"""A vote with a majority, and how many votes would have to change before another one could turn it.

    tacit distance examples/majority.py --values 0,1 --rows 7 --proposed 0

checks the distance on all tables of up to seven votes: it moves by at most 1 if one vote is replaced, and is 0 wherever
one vote decides.
"""

from collections.abc import Sequence


def statistic(rows: Sequence[int]) -> int:
    """1 if more than half of the votes are 1."""
    return int(2 * sum(rows) > len(rows))


def distance(rows: Sequence[int]) -> int:
    """Votes that can change before the next one may turn the majority."""
    half = len(rows) // 2
    return max(sum(rows) - half - 1, half - sum(rows), 0)
