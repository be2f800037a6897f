"""The span of sets of people, in exact whole numbers and without their zeros: what an audit of sums keeps.

The reduced echelon form, each row a multiple of itself that is whole. Only rows that share people with a new set are
touched, so that 10^5 people in sets of a dozen cost no more than as many small systems.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

__all__ = ["Echelon"]

Row = dict[int, int]


class Echelon:
    """Rows by the place of their pivot; no other row has anything there."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self._rows_with: dict[int, set[int]] = {}

    def after(self, members: Iterable[int]) -> dict[int, Row]:
        """The rows that the set of these people would change or add, by their pivots; none if it adds nothing."""
        new: Row = dict.fromkeys(members, 1)
        for pivot in [place for place in new if place in self.rows]:
            new = _without(new, self.rows[pivot], pivot)
        if not new:
            return {}
        pivot = min(new)
        touched = self._rows_with.get(pivot, ())
        return {at: _without(self.rows[at], new, pivot) for at in touched} | {pivot: new}

    def keep(self, changed: dict[int, Row]) -> None:
        """Takes what `after` gave."""
        for pivot, row in changed.items():
            before = self.rows.get(pivot, {})
            for place in before.keys() - row.keys():
                self._rows_with[place].discard(pivot)
            for place in row.keys() - before.keys():
                self._rows_with.setdefault(place, set()).add(pivot)
            self.rows[pivot] = row


def _without(row: Row, other: Row, place: int) -> Row:
    """A multiple of the row plus one of the other, in smallest whole numbers, with nothing at this place."""
    mine, theirs = row[place], other[place]
    made = {at: theirs * value for at, value in row.items()} if theirs != 1 else dict(row)
    for at, value in other.items():
        left = made.get(at, 0) - mine * value
        if left:
            made[at] = left
        else:
            del made[at]
    common = gcd(*made.values())
    return {at: value // common for at, value in made.items()} if common > 1 else made
