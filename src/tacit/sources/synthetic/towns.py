"""A town of people who do not exist: birth date, sex, five-digit postal code, and a diagnosis.

Every code has the same number of people, drawn independently from a declared age pyramid; birthdays are uniform in the
year. `town_cells` has the probability of each (age, sex, day of the year), so that what is expected can be computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.exact.checks import whole
from tacit.sources.made_up import marked

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PER_CODE", "TOWN_SEED", "age_pyramid", "town", "town_cells"]

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
    """The probability of one (birth date, sex) by age and sex, flattened, and how many days have each."""
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
