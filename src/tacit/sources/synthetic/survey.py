"""A public survey of people who do not exist: 200,000 of them with several hospital visits each.

One row for each visit; a person's own facts are the same on all rows of that person.
Made by vectorised draws from numpy's
seeded generator in a second or two.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats, Integers
from tacit.exact.data_classes import dataclass
from tacit.sources.facts import marked_file as marked
from tacit.sources.schema import Schema, category, date, flag, integer, number

if TYPE_CHECKING:
    import pyarrow

# The made-up country of the survey: its regions, its illnesses, who falls ill of what, and when.
#
# Every number here is invented. They are chosen so that the table behaves as real ones do: cities are younger and
# richer, illness grows with age, winters cough, some diagnoses are rare, a few people come very often.


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Share of the people, mean age, income relative to the country, share of insured people."""

    name: str
    share: float
    age: float
    income: float
    insured: float


def _region(name: str, share: float, age: float, income: float, insured: float) -> Region:
    return Region(name=name, share=share, age=age, income=income, insured=insured)


REGIONS: tuple[Region, ...] = (
    _region("Kingsbridge", 0.205, 37.5, 1.27, 0.95),
    _region("Greyhaven", 0.138, 38.5, 1.14, 0.94),
    _region("Millbrook", 0.112, 40.0, 1.03, 0.94),
    _region("Ashford", 0.095, 41.0, 0.98, 0.92),
    _region("Eastmarch", 0.083, 42.5, 0.92, 0.90),
    _region("Juniper Coast", 0.075, 44.5, 1.06, 0.93),
    _region("Lowlands", 0.068, 43.0, 0.90, 0.91),
    _region("Ironvale", 0.060, 42.0, 0.85, 0.88),
    _region("Brackwater", 0.052, 43.5, 0.87, 0.88),
    _region("Coldharbour", 0.042, 45.5, 0.83, 0.87),
    _region("Highmoor", 0.032, 46.5, 0.81, 0.86),
    _region("Dunmere", 0.022, 47.0, 0.80, 0.85),
    _region("Northreach", 0.011, 45.0, 0.88, 0.84),
    _region("Fenwick Isles", 0.005, 49.0, 0.78, 0.83),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A code with its frequency at 20 and at 80 (per thousand visits), the ratio of women to men, of winter to
    summer, and the length of stay.

    Between the ages the rate goes geometrically. `stay` is the mean number of nights, `cost` of a night in EUR.
    """

    code: str
    young: float
    old: float
    women: float = 1.0
    winter: float = 1.0
    stay: float = 1.0
    cost: float = 420.0
    childhood: float = 1.0


def _d(
    code: str, young: float, old: float, women: float = 1.0, winter: float = 1.0, stay: float = 1.0,
    cost: float = 420.0, childhood: float = 1.0,
) -> Diagnosis:  # fmt: skip
    return Diagnosis(
        code=code, young=young, old=old, women=women, winter=winter, stay=stay, cost=cost, childhood=childhood
    )


# Codes in the manner of a classification of diseases: a letter and two digits; their meaning is not used.
DIAGNOSES: tuple[Diagnosis, ...] = (
    _d("J06", 95, 30, winter=2.6, stay=0.1, cost=160, childhood=2.4),
    _d("J11", 45, 30, winter=5.0, stay=0.6, cost=240),
    _d("J18", 8, 60, winter=2.2, stay=5.5, cost=480),
    _d("J45", 22, 14, winter=0.8, stay=1.2, childhood=2.0),
    _d("J44", 1, 48, women=0.7, winter=1.6, stay=4.8, cost=470),
    _d("J20", 30, 26, winter=2.4, stay=0.3, cost=190),
    _d("I10", 6, 95, stay=0.4, cost=210),
    _d("I21", 0.6, 34, women=0.55, winter=1.15, stay=6.2, cost=900),
    _d("I25", 0.5, 52, women=0.6, stay=3.9, cost=760),
    _d("I48", 0.7, 46, stay=2.8, cost=520),
    _d("I50", 0.3, 66, stay=6.8, cost=510),
    _d("I63", 0.5, 38, stay=8.4, cost=690),
    _d("E10", 4, 3, stay=2.2, cost=430, childhood=1.5),
    _d("E11", 2, 58, women=0.85, stay=1.4, cost=300),
    _d("E78", 2, 40, stay=0.1, cost=170),
    _d("M54", 40, 42, women=1.1, stay=0.6, cost=230, childhood=0.1),
    _d("M17", 1, 44, women=1.5, stay=3.4, cost=640, childhood=0.02),
    _d("M16", 0.6, 30, women=1.3, stay=4.6, cost=690),
    _d("M81", 0.2, 24, women=4.5, stay=0.6, cost=260),
    _d("K21", 14, 20, stay=0.3, cost=220),
    _d("K35", 16, 3, stay=2.9, cost=610, childhood=1.4),
    _d("K80", 10, 22, women=1.9, stay=2.8, cost=590),
    _d("K52", 38, 16, winter=1.3, stay=1.1, cost=280, childhood=2.2),
    _d("F32", 32, 14, women=1.7, winter=1.2, stay=9.5, cost=330),
    _d("F41", 30, 10, women=1.6, stay=1.5, cost=260),
    _d("F10", 14, 8, women=0.4, stay=4.2, cost=380, childhood=0.01),
    _d("N39", 24, 40, women=4.0, winter=0.9, stay=1.3, cost=300),
    _d("N20", 10, 9, women=0.6, winter=0.7, stay=1.6, cost=540),
    _d("O80", 46, 0.001, women=4000.0, stay=2.3, cost=560, childhood=0.001),
    _d("S52", 20, 26, women=1.1, winter=1.1, stay=0.8, childhood=2.6),
    _d("S72", 0.5, 54, women=1.9, winter=1.2, stay=11.0, cost=620),
    _d("S06", 20, 14, women=0.7, stay=1.4, cost=460, childhood=1.6),
    _d("L20", 18, 4, winter=1.4, stay=0.1, cost=150, childhood=3.0),
    _d("H25", 0.3, 62, women=1.2, stay=0.1, cost=480),
    _d("C50", 0.8, 20, women=90.0, stay=2.9, cost=980),
    _d("C61", 0.05, 24, women=0.0005, stay=2.6, cost=940),
    _d("C34", 0.1, 16, women=0.75, stay=5.8, cost=1020),
    _d("G35", 2.6, 1.0, women=2.2, stay=2.1, cost=870),
    _d("G20", 0.02, 14, women=0.7, stay=4.4, cost=510),
    _d("D57", 0.7, 0.15, stay=3.6, cost=620),
    _d("E84", 0.35, 0.03, stay=6.5, cost=780, childhood=2.0),
    _d("Q21", 0.3, 0.06, stay=4.1, cost=990, childhood=3.5),
)


SEED = 20240229
PEOPLE = 200_000
FIRST, LAST = np.datetime64("2021-01-01"), np.datetime64("2023-12-31")
DAYS = int((LAST - FIRST) / np.timedelta64(1, "D")) + 1
SEXES = ("female", "male")
INCOME_BOUND = 150_000
BANDS = 18
"""Age bands of five years in which the mix of diagnoses is the same."""


def survey_schema() -> Schema:
    """A custodian's declarations about the survey: bounds that are known without looking."""
    return Schema(
        {
            "region": category([r.name for r in REGIONS]),
            "age": integer(0, 110),
            "sex": category(list(SEXES)),
            "income": number(0, INCOME_BOUND, spacing=1),
            "insured": flag(),
            "diagnosis": category(),
            "emergency": flag(),
            "visited": date("2021-01-01", "2023-12-31"),
            "nights": integer(0, 60),
            "cost": number(0, 40_000, spacing=1),
        }
    )


def survey(*, people: int = PEOPLE, seed: int = SEED) -> pyarrow.Table:
    """The survey as an Arrow table, one row a visit."""
    import pyarrow

    if isinstance(people, bool) or not isinstance(people, int) or not 1 <= people <= 20_000_000:
        raise InvalidParameter(parameter="people", value=people, must="lie between 1 and 20,000,000")
    draw = np.random.default_rng(seed)
    region = draw.choice(len(REGIONS), size=people, p=_shares([r.share for r in REGIONS]))
    sex = (draw.random(people) < 0.492).astype(np.int64)
    age = _ages(draw, region, sex)
    income = _incomes(draw, region, sex, age)
    insured = draw.random(people) < _insured(region, income, age)
    frailty = draw.gamma(2.2, 1 / 2.2, size=people)
    # Illness grows with age, first years excepted; those without insurance come less often.
    rate = frailty * (1.2 + 0.55 * np.exp((age - 35) / 24) + 1.1 * (age < 4)) * np.where(insured, 1.0, 0.7)
    visits = 1 + np.minimum(draw.poisson(rate), 59)
    # Identities that say nothing about the order of the rows.
    identity = draw.permutation(np.arange(100_000, 100_000 + people, dtype=np.int64))
    of = np.repeat(np.arange(people), visits)
    day = _days(draw, len(of))
    now = age[of] + day // 365.25
    code, emergency, nights, cost = _illness(draw, now, sex[of], day, frailty[of])
    order = np.lexsort((identity[of], day))
    told = draw.random(people) > 0.06
    columns: dict[str, Any] = {
        "person_id": pyarrow.array(identity[of][order]),
        "region": _dictionary_column(region[of][order], [r.name for r in REGIONS]),
        "age": pyarrow.array(np.minimum(now, 109).astype(np.int32)[order]),
        "sex": _dictionary_column(sex[of][order], SEXES),
        "income": pyarrow.array(income[of][order], mask=~told[of][order]),
        "insured": pyarrow.array(insured[of][order]),
        "diagnosis": _dictionary_column(code[order], [d.code for d in DIAGNOSES]),
        "emergency": pyarrow.array(emergency[order]),
        "visited": pyarrow.array((FIRST + day.astype("timedelta64[D]"))[order]),
        "nights": pyarrow.array(nights.astype(np.int32)[order]),
        "cost": pyarrow.array(cost[order]),
    }
    return marked(pyarrow.table(columns))


def write_survey(path: Path, *, people: int = PEOPLE, seed: int = SEED) -> int:
    """Writes the survey as Parquet; returns its number of rows."""
    import pyarrow.parquet

    table = survey(people=people, seed=seed)
    pyarrow.parquet.write_table(table, path)
    return int(table.num_rows)


def _shares(weights: Any) -> Floats:
    held = np.asarray(weights, dtype=np.float64)
    return np.asarray(held / held.sum())


def _dictionary_column(codes: Integers, names: Any) -> Any:
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes.astype(np.int8)), pyarrow.array(list(names))
    )


def _ages(draw: np.random.Generator, region: Integers, sex: Integers) -> Floats:
    """Ages of a country that grows old: children and adults, and women who outlive men."""
    middle = np.array([r.age for r in REGIONS])[region]
    adult = np.abs(draw.normal(middle + 4.5, 19.0)) + 1.5 * (sex == 0) * draw.random(len(region))
    child = draw.uniform(0, 18, size=len(region))
    age = np.where(draw.random(len(region)) < 0.17, child, adult)
    # Few live past ninety: the tail is folded back.
    return np.asarray(np.floor(np.where(age > 92, 92 - 0.35 * (age - 92), age)))


def _incomes(draw: np.random.Generator, region: Integers, sex: Integers, age: Floats) -> Floats:
    """Log-normal; rises to the early fifties, falls to pensions; children have next to none."""
    place = np.array([r.income for r in REGIONS])[region]
    career = np.exp(-(((age - 51) / 27) ** 2))
    level = np.where(age < 18, 250.0, np.where(age >= 66, 19_500.0, 15_500 + 25_500 * career))
    gap = np.where((sex == 0) & (age >= 18), 0.84, 1.0)
    spread = np.where(age < 18, 0.9, np.where(age >= 66, 0.42, 0.55))
    drawn = level * place * gap * np.exp(spread * draw.standard_normal(len(region)))
    return np.asarray(np.round(drawn))


def _insured(region: Integers, income: Floats, age: Floats) -> Floats:
    place = np.array([r.insured for r in REGIONS])[region]
    poor = (income < 14_000) & (age >= 18) & (age < 66)
    return np.asarray(np.where(age < 18, 0.985, np.where(poor, place - 0.13, np.minimum(place + 0.02, 0.99))))


def _days(draw: np.random.Generator, n: int) -> Integers:
    """Days of three years: busier in winter and at the start of a week, a growing tendency."""
    day = np.arange(DAYS)
    season = 1 + 0.16 * np.cos(2 * np.pi * (day - 20) / 365.25)
    weekday = np.array([1.15, 1.12, 1.08, 1.05, 1.02, 0.80, 0.78])[(day + 4) % 7]
    edges = np.cumsum(_shares(season * weekday * (1 + 0.05 * day / DAYS)))
    return np.minimum(np.searchsorted(edges, draw.random(n)), DAYS - 1)


def _illness(
    draw: np.random.Generator, age: Floats, sex: Integers, day: Integers, frailty: Floats
) -> tuple[Integers, npt.NDArray[np.bool_], Integers, Floats]:
    """Diagnosis by age, sex and season; then emergency or not, duration, and cost."""
    band = np.minimum(age // 5, BANDS - 1).astype(np.int64)
    winter = ((day % 365.25) // 30.4375).astype(np.int64) % 12
    group = (band * 2 + sex) * 12 + winter
    code = _pick(_mix(), group, draw.random(len(age)))
    stay = np.array([d.stay for d in DIAGNOSES])[code] * (0.75 + age / 160)
    emergency = draw.random(len(age)) < np.clip(0.16 + 0.05 * stay, 0, 0.72)
    long = stay * np.where(emergency, 1.25, 0.85) * (0.7 + 0.3 * frailty)
    nights = np.minimum(draw.poisson(long * draw.gamma(1.6, 1 / 1.6, size=len(age))), 60)
    rate = np.array([d.cost for d in DIAGNOSES])[code]
    extra = 130 * np.exp(0.5 * draw.standard_normal(len(age)))
    cost = np.round(rate * (nights + 0.55) * np.exp(0.22 * draw.standard_normal(len(age))) + extra)
    return code, emergency, nights, cost


def _mix() -> Floats:
    """Cumulative shares of the diagnoses: one row for each age band, sex and month."""
    age = np.arange(BANDS) * 5 + 2.5
    month = np.cos(2 * np.pi * (np.arange(12) - 0.5) / 12)
    rates = np.empty((BANDS, 2, 12, len(DIAGNOSES)))
    for k, d in enumerate(DIAGNOSES):
        ramp = np.clip((age - 20) / 60, -0.15, 1.1)
        at = d.young ** (1 - ramp) * d.old**ramp * np.where(age < 15, d.childhood, 1.0)
        if d.code == "O80":
            at = at * ((age > 15) & (age < 48))
        season = np.sqrt(d.winter) ** month
        by_sex = np.array([2 * d.women, 2.0]) / (1 + d.women)
        rates[:, :, :, k] = at[:, None, None] * by_sex[None, :, None] * season[None, None, :]
    flat = rates.reshape(-1, len(DIAGNOSES))
    return np.asarray(np.cumsum(flat / flat.sum(axis=1, keepdims=True), axis=1))


def _pick(cumulative: Floats, group: Integers, uniform: Floats) -> Integers:
    """A draw from the group's own row, all at once: rows laid end to end are one increasing sequence."""
    kinds = cumulative.shape[1]
    line = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    found = np.searchsorted(line, uniform + group, side="right") - group * kinds
    return np.asarray(np.clip(found, 0, kinds - 1))
