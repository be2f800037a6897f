"""Sparse histories of people who do not exist, as of films that were rated: items by Zipf's law, a value, a day.

And what somebody might know of one of them: a few entries, some of them wrong, dates by about two weeks. The same seed
gives the same histories with the same version of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Integers
from tacit.exact.checks import whole

__all__ = ["HISTORIES_SEED", "Histories", "Known", "enough", "histories", "known_entries"]

HISTORIES_SEED = 20061002
MEDIAN_ENTRIES, SPREAD = 15, 0.8
VALUES = (1, 2, 3, 4, 5)
VALUE_SHARES = (0.05, 0.10, 0.29, 0.33, 0.23)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histories:
    """One line an entry, sorted by person; persons and items are numbered from 0."""

    person: Integers
    item: Integers
    value: Integers
    day: Integers
    people: int
    items: int
    days: int

    def lines(self, who: int) -> slice:
        """The lines of one person."""
        return slice(*np.searchsorted(self.person, [who, who + 1]).tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What is known of some people: for each a row of items, values and days."""

    item: Integers
    value: Integers
    day: Integers


def _items(generator: np.random.Generator, count: int, items: int) -> Integers:
    """Items with probabilities proportional to 1 / rank."""
    steps = np.cumsum(1.0 / np.arange(1, items + 1))
    found = np.searchsorted(steps, generator.random(count) * steps[-1], side="right")
    return np.asarray(found, dtype=np.int64)


def histories(
    *, people: int = 100_000, items: int = 10_000, days: int = 2000, seed: int = HISTORIES_SEED
) -> Histories:
    """Log-normal numbers of entries with a median of 15, at least one; an item at most once for each person."""
    n, k, span = whole("people", people), whole("items", items), whole("days", days)
    generator = np.random.default_rng(whole("seed", seed, least=0))
    sizes = np.maximum(1, np.rint(MEDIAN_ENTRIES * np.exp(SPREAD * generator.standard_normal(n))))
    # Some draws repeat an item: as many more are made that the median of different ones is still 15.
    drawn = np.rint(sizes * 1.12).astype(np.int64)
    person = np.repeat(np.arange(n, dtype=np.int64), drawn)
    item = _items(generator, person.size, k)
    _, first = np.unique(person * k + item, return_index=True)
    person, item = person[first], item[first]
    value = generator.choice(VALUES, size=person.size, p=VALUE_SHARES).astype(np.int64)
    day = generator.integers(0, span, size=person.size, dtype=np.int64)
    return Histories(person=person, item=item, value=value, day=day, people=n, items=k, days=span)


def known_entries(
    table: Histories,
    who: npt.ArrayLike,
    *,
    entries: int = 8,
    wrong: int = 2,
    error_days: int = 14,
    seed: int = 1,
) -> Known:
    """Eight entries of each, of which two are of items that the person does not have; dates are off by up to 14 days.

    `enough` lists the people who have so many entries.
    """
    generator = np.random.default_rng(whole("seed", seed, least=0))
    chosen = np.asarray(who, dtype=np.int64)
    shape = (chosen.size, entries)
    item, value, day = (np.empty(shape, dtype=np.int64) for _ in range(3))
    right = entries - wrong
    for row, person in enumerate(chosen.tolist()):
        lines = np.arange(table.person.size)[table.lines(person)]
        taken = generator.choice(lines, size=right, replace=False)
        own = set(table.item[lines].tolist())
        others: list[int] = []
        while len(others) < wrong:
            guess = int(_items(generator, 1, table.items)[0])
            if guess not in own:
                others.append(guess)
        item[row] = [*table.item[taken].tolist(), *others]
        value[row, :right], value[row, right:] = table.value[taken], generator.choice(VALUES, size=wrong)
        off = generator.integers(-error_days, error_days + 1, size=right)
        day[row, :right] = table.day[taken] + off
        day[row, right:] = generator.integers(0, table.days, size=wrong)
    return Known(item=item, value=value, day=day)


def enough(table: Histories, entries: int = 8) -> Integers:
    """The people with at least so many entries."""
    counts = np.bincount(table.person, minlength=table.people)
    return np.flatnonzero(counts >= entries).astype(np.int64)
