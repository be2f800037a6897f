"""The made-up country of the survey: its regions, its illnesses, who falls ill of what, and when.

Every number here is invented. They are chosen so that the table behaves as real ones do: cities are younger and
richer, illness grows with age, winters cough, some diagnoses are rare, a few people come very often.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIAGNOSES", "REGIONS", "Diagnosis", "Region"]


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
    """A code; how common at 20 and how at 80 (per thousand visits); women against men; winter against summer; stay.

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
