"""People who do not exist, in the shape of tables that many know: their columns, types, ranges, labels and gaps.

The shapes are those of R's example tables: SLID and Vocab (carData), MedExp and Males (Ecdat), lung and colon
(survival). Every row is drawn here.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

NA = None


def write_csv(path: Path | str, rows: list[dict[str, Any]], *, semicolon: bool = False) -> None:
    """As `write.csv` of R's does it, or `write.csv2`: texts in quotes, row names in a nameless column, NA."""
    mark, point = (";", ",") if semicolon else (",", ".")

    def cell(value: Any) -> str:
        if value is None:
            return "NA"
        return f'"{value}"' if isinstance(value, str) else str(value).replace(".", point)

    lines = [mark.join(f'"{name}"' for name in ["", *rows[0]])]
    lines += [mark.join([f'"{i}"', *map(cell, row.values())]) for i, row in enumerate(rows, 1)]
    Path(path).write_text("\n".join([*lines, ""]), encoding="utf-8")


def slid(people: int = 4000) -> list[dict[str, Any]]:
    """A survey of labour and income: hourly wages, for many of whom there are none."""
    draw = random.Random(11)
    return [
        {
            "wages": round(min(draw.lognormvariate(2.6, 0.5), 49.9), 2) if draw.random() < 0.56 else NA,
            "education": round(draw.uniform(0, 20), 1) if draw.random() < 0.97 else NA,
            "age": draw.randint(16, 95),
            "sex": draw.choice(["Female", "Male"]),
            "language": draw.choice(["English", "English", "English", "French", "Other", NA]),
        }
        for _ in range(people)
    ]


def medexp(people: int = 3000) -> list[dict[str, Any]]:
    """Visits and expenses for health; one word for how somebody feels."""
    draw = random.Random(12)
    return [
        {
            "med": round(draw.lognormvariate(3.5, 1.5), 2),
            "lc": round(draw.choice([0, 3.26, 3.93, 4.56]), 2),
            "idp": draw.choice(["no", "yes"]),
            "physlim": round(draw.choice([0.0, 0.0, 1.0, 0.1442]), 4),
            "ndisease": round(draw.uniform(0, 58.6), 5),
            "health": draw.choice(["excellent", "excellent", "good", "good", "fair", "poor"]),
            "linc": round(draw.uniform(0, 10.3), 6),
            "age": round(draw.uniform(0, 64), 5),
            "sex": draw.choice(["female", "male"]),
            "child": draw.choice(["no", "yes"]),
            "black": draw.choice(["no", "no", "no", "yes"]),
        }
        for _ in range(people)
    ]


def lung(people: int = 1500) -> list[dict[str, Any]]:
    """Patients of a cancer group: where they were treated, how long they were followed, 2 for who died."""
    draw = random.Random(13)
    return [
        {
            "inst": draw.choice([1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 15, 16, 21, 22, 26, 32, 33, NA]),
            "time": draw.randint(5, 1022),
            "status": draw.choice([1, 2, 2]),
            "age": draw.randint(39, 82),
            "sex": draw.choice([1, 1, 2]),
            "ph.ecog": draw.choice([0, 1, 1, 2, 3, NA]),
            "ph.karno": draw.choice([50, 60, 70, 80, 90, 100, NA]),
            "pat.karno": draw.choice([30, 50, 60, 70, 80, 90, 100, NA]),
            "meal.cal": draw.choice([96, 384, 825, 975, 1150, 1225, 2600, NA]),
            "wt.loss": draw.choice([-24, -5, 0, 4, 11, 16, 34, 68, NA]),
        }
        for _ in range(people)
    ]


def institutions() -> list[dict[str, Any]]:
    """A public list: where the hospitals are."""
    places = ["north", "south", "west"]
    return [{"inst": i, "region": places[i % 3], "beds": 100 + 10 * i} for i in range(1, 34)]


def colon(people: int = 900) -> list[dict[str, Any]]:
    """Patients of a trial, two rows each: the recurrence (etype 1) and the death (etype 2)."""
    draw = random.Random(14)
    found = []
    for who in range(1, people + 1):
        same = {
            "id": who, "study": 1, "rx": draw.choice(["Obs", "Lev", "Lev+5FU"]), "sex": draw.randint(0, 1),
            "age": draw.randint(18, 85), "obstruct": draw.randint(0, 1), "perfor": 0, "adhere": draw.randint(0, 1),
            "nodes": draw.choice([1, 2, 3, 5, 9, 33, NA]), "differ": draw.choice([1, 2, 2, 3, NA]),
            "extent": draw.choice([2, 3, 3, 4]), "surg": draw.randint(0, 1), "node4": draw.randint(0, 1),
        }  # fmt: skip
        for etype in (1, 2):
            found.append(
                {**same, "status": draw.randint(0, 1), "time": draw.randint(8, 3329), "etype": etype}
            )
    return found


def vocab(people: int = 3000, *, year: int = 2014) -> list[dict[str, Any]]:
    """A yearly survey: years of education, and words known of ten."""
    draw = random.Random(year)
    found = []
    for _ in range(people):
        education = min(20, max(0, round(draw.gauss(13, 3))))
        known = min(10, max(0, round(draw.gauss(2 + education / 3, 1.8))))
        found.append(
            {
                "year": year,
                "sex": draw.choice(["Female", "Male"]),
                "education": education,
                "vocabulary": known,
            }
        )
    return found


def males(path: Path | str, people: int = 545) -> None:
    """Young men in eight years each, as Stata keeps them: numbers with labels, and places that are not known."""
    import pandas as pd
    import pyreadstat

    draw = random.Random(15)
    rows = []
    for i in range(people):
        school, ethn = draw.randint(3, 16), draw.choice([1, 1, 1, 2, 3])
        for year in range(1980, 1988):
            rows.append(
                {
                    "nr": 13 + 23 * i, "year": year, "school": school, "exper": year - 1979 + draw.randint(0, 4),
                    "union": int(draw.random() < 0.24), "ethn": ethn, "maried": int(draw.random() < 0.44),
                    "health": int(draw.random() < 0.02), "wage": round(draw.gauss(1.65, 0.5), 6),
                    "industry": draw.randint(1, 12), "occupation": draw.randint(1, 9),
                    "residence": draw.choice([1, 2, 3, 4]) if draw.random() < 0.71 else None,
                }
            )  # fmt: skip
    yes_no = {0: "no", 1: "yes"}
    labels: dict[str, dict[int, str]] = {
        "union": yes_no, "maried": yes_no, "health": yes_no, "ethn": {1: "other", 2: "black", 3: "hisp"},
        "residence": {1: "rural_area", 2: "north_east", 3: "northern_central", 4: "south"},
    }  # fmt: skip
    pyreadstat.write_dta(pd.DataFrame(rows), str(path), variable_value_labels=labels)
