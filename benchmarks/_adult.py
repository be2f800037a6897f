"""UCI Adult as numbers: public ranges and public lists of categories, never learned from the rows.

The file is read from TACIT_ADULT, or from ../shared/data/adult/adult_raw.csv.
"""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PLACES = [place / "data/adult/adult_raw.csv" for place in (ROOT.parent / "shared", Path("/work/shared"))]
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "hours-per-week": (1, 99),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
}
"""The ranges of UCI's description; amounts of capital are taken by their logarithms, log(1 + v)."""
CATEGORIES = {
    "workclass": "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters "
    "Preschool Prof-school Some-college",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated "
    "Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France "
    "Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan "
    "Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South "
    "Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
RADIUS = 3.0
"""Eight categories set one place to 1 each, which is a length of 2.83; rows with large numbers are cut a little."""


def place() -> Path | None:
    """The file, or None where there is none."""
    given = os.environ.get("TACIT_ADULT")
    found = [p for p in ([Path(given)] if given else PLACES) if p.exists()]
    return found[0] if found else None


def adult(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels (1: more than 50K a year) of "train" or "test", as the data set itself divides them."""
    path = place()
    assert path is not None
    with path.open(newline="") as file:
        people = [row for row in csv.DictReader(file) if row["split"] == split]
    columns = []
    for name, (low, high) in NUMBERS.items():
        values = np.array([float(p[name]) for p in people])
        if name.startswith("capital"):
            values, low, high = np.log1p(values), math.log1p(low), math.log1p(high)
        columns.append(np.clip((values - low) / (high - low), 0.0, 1.0))
    for name, text in CATEGORIES.items():
        given = np.array([p[name] for p in people])
        columns += [(given == word).astype(float) for word in text.split()]
    return np.column_stack(columns), np.array([int(p["income"] == ">50K") for p in people])
