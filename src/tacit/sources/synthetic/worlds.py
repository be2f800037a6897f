"""A town of people who do not exist: birth date, sex, five-digit postal code, and a diagnosis.

Every code has the same number of people, drawn independently from a declared age pyramid; birthdays are uniform in the
year. `town_cells` has the probability of each (age, sex, day of the year), so that expected values can be computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Integers
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.sources.facts import marked_file as marked

if TYPE_CHECKING:
    import pyarrow

# Bits of people who do not exist, as of a genome: each site has a share in the population, people are independent.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Genomes:
    """The shares in the population, and a row of bits for each person of the study and for each of the others."""

    shares: npt.NDArray[np.float64]
    study: npt.NDArray[np.uint8]
    others: npt.NDArray[np.uint8]


def genomes(*, people: int = 200, others: int = 200, sites: int = 10_000, seed: int = 1) -> Genomes:
    """Shares uniform on [.05, .5]; people of the study and others are drawn alike."""
    generator = np.random.default_rng(whole("seed", seed, least=0))
    m, n, k = whole("sites", sites), whole("people", people), whole("others", others)
    shares = generator.uniform(0.05, 0.5, m)
    bits = (generator.random((n + k, m), dtype=np.float32) < shares.astype(np.float32)).astype(np.uint8)
    return Genomes(shares=shares, study=bits[:n], others=bits[n:])


# Sparse histories of people who do not exist, as of films that were rated: items by Zipf's law, a value, a day.
#
# And what somebody might know of one of them: a few entries, some of them wrong, dates by about two weeks. The same
# seed gives the same histories with the same version of numpy.

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
    """An attacker's knowledge about some people: for each a row of items, values and days."""

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
    """Eight entries of each person, of which two are of items that the person does not have; dates are off by up to
    14 days.

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
    """The people with at least this many entries."""
    counts = np.bincount(table.person, minlength=table.people)
    return np.flatnonzero(counts >= entries).astype(np.int64)


TOWN_SEED = 19970818
PER_CODE = 7500
FIRST_CODE = 13000
LAST_YEAR = 2025
DAYS = 365
"""Days of a year: nobody is born on 29 February."""

DIAGNOSES = {
    "none": 0.55,
    "hypertension": 0.17,
    "depression": 0.10,
    "diabetes": 0.09,
    "cancer": 0.07,
    "HIV": 0.02,
}

_BANDS = (
    # ages, weight of one year, share of women
    (0, 17, 1.10, 0.488),
    (18, 24, 1.35, 0.495),
    (25, 44, 1.30, 0.500),
    (45, 64, 1.25, 0.508),
    (65, 79, 0.75, 0.545),
    (80, 99, 0.22, 0.630),
)


def age_pyramid() -> npt.NDArray[np.float64]:
    """The declared shares: a row for each age from 0 to 99, columns for women and men; the sum is 1."""
    table = np.zeros((100, 2))
    for low, high, weight, women in _BANDS:
        table[low : high + 1] = (weight * women, weight * (1 - women))
    return np.asarray(table / table.sum(), dtype=np.float64)


def town_cells() -> tuple[npt.NDArray[np.float64], int]:
    """The probability of one (birth date, sex) by age and sex, flattened, and the number of days with each."""
    return age_pyramid().ravel() / DAYS, DAYS


def town(*, codes: int = 14, per_code: int = PER_CODE, seed: int = TOWN_SEED) -> pyarrow.Table:
    """The people of the town, sorted by code; columns name, birth, sex, code, diagnosis."""
    import pyarrow as pa

    k, n = whole("codes", codes), whole("per_code", per_code)
    generator = np.random.default_rng(whole("seed", seed, least=0))
    cell = generator.choice(200, size=k * n, p=age_pyramid().ravel())
    age, sex = cell // 2, cell % 2
    day = generator.integers(0, DAYS, size=k * n)
    months = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    starts = np.concatenate([[0], np.cumsum(months)])
    month = np.searchsorted(starts, day, side="right")
    since = (LAST_YEAR - age - 1970) * 12 + (month - 1)
    birth = since.astype("datetime64[M]").astype("datetime64[D]") + (day - starts[month - 1])
    ill = generator.choice(len(DIAGNOSES), size=k * n, p=tuple(DIAGNOSES.values()))
    return marked(
        pa.table(
            {
                "name": pa.array([f"person {i}" for i in range(k * n)]),
                "birth": pa.array(birth),
                "sex": pa.DictionaryArray.from_arrays(pa.array(sex), pa.array(["female", "male"])).cast(
                    pa.string()
                ),
                "code": pa.array(np.repeat(np.arange(FIRST_CODE, FIRST_CODE + k), n).astype(str)),
                "diagnosis": pa.DictionaryArray.from_arrays(pa.array(ill), pa.array(list(DIAGNOSES))).cast(
                    pa.string()
                ),
            }
        )
    )
