"""Tables for models: a yes-or-no outcome, and columns with declared bounds and categories, never learned from rows.

Bounds are round numbers that somebody who knows the questionnaire would write down. Adult has its published split;
the others are split by a public generator with a fixed seed, four fifths to train on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _adult
import numpy as np

DATA = next(
    (p for p in (_adult.ROOT.parent / "shared/data", Path("/work/shared/data")) if p.exists()), Path("data")
)

ADULT: dict[str, Any] = {
    "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16), "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356), "hours-per-week": (1, 99),
    **{name: words.split() for name, words in _adult.CATEGORIES.items()},
}  # fmt: skip
YRBSS: dict[str, Any] = {
    "age": (12, 18), "gender": ["female", "male"], "grade": ["9", "10", "11", "12", "other"],
    "hispanic": ["hispanic", "not"], "height": (1.2, 2.2), "weight": (25, 185),
    "race": [
        "American Indian or Alaska Native", "Asian", "Black or African American",
        "Native Hawaiian or Other Pacific Islander", "White",
    ],
    "helmet_12m": ["always", "did not ride", "most of time", "never", "rarely", "sometimes"],
    "text_while_driving_30d": ["0", "1-2", "3-5", "6-9", "10-19", "20-29", "30", "did not drive"],
    "hours_tv_per_school_day": ["<1", "1", "2", "3", "4", "5+", "do not watch"],
    "school_night_hours_sleep": ["<5", "5", "6", "7", "8", "9", "10+"],
}  # fmt: skip
RANDHIE: dict[str, Any] = {
    "lncoins": (0, 5), "idp": (0, 1, 2), "lpi": (0, 8), "fmde": (0, 9), "physlm": (0, 1, 2), "disea": (0, 60),
    "hlthg": (0, 1, 2), "hlthf": (0, 1, 2), "hlthp": (0, 1, 2),
}  # fmt: skip
NLSWORK: dict[str, Any] = {
    "year": (68, 88), "birth_yr": (40, 55), "age": (14, 46), "race": (1, 3, 3), "msp": (0, 1, 2), "nev_mar": (0, 1, 2),
    "grade": (0, 18, 19), "collgrad": (0, 1, 2), "not_smsa": (0, 1, 2), "c_city": (0, 1, 2), "south": (0, 1, 2),
    "ind_code": (1, 12, 12), "occ_code": (1, 13, 13), "wks_ue": (0, 76), "ttl_exp": (0, 30), "tenure": (0, 26),
    "hours": (1, 168), "wks_work": (0, 104), "ln_wage": (0, 6),
}  # fmt: skip
RWM5YR: dict[str, Any] = {
    "year": (1984, 1988, 5), "age": (25, 64), "hhninc": (0, 20), "kids": (0, 1, 2), "educ": (7, 18),
    "married": (0, 1, 2),
    "female": (0, 1, 2), "outwork": (0, 1, 2), "self": (0, 1, 2), "edlevel": (1, 4, 4),
}  # fmt: skip
FLIGHTS: dict[str, Any] = {
    "month": (1, 12, 12), "day": (1, 31), "sched_dep_time": (0, 2400), "sched_arr_time": (0, 2400),
    "distance": (0, 5000),
    "hour": (0, 24), "origin": ["EWR", "JFK", "LGA"],
    "carrier": ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"],
}  # fmt: skip
PANEL: dict[str, Any] = {
    "coins": (0, 100), "site": (1, 6, 6), "xage": (0, 65), "female": (0, 1, 2), "black": (0, 1), "income": (0, 30_000),
    "ndisease": (0, 60), "physlm": (0, 1), "educdec": (0, 26), "num": (1, 14), "year": (1, 5, 5), "hlthg": (0, 1, 2),
}  # fmt: skip


def table(name: str) -> tuple[dict[str, Any], tuple[Any, Any], tuple[Any, Any]]:
    """Declared columns, (rows, outcomes) to train on and to test with; missing values stay."""
    import pandas as pd

    if name == "adult":
        frame = pd.read_csv(DATA / "adult/adult_raw.csv", skipinitialspace=True)
        y = (frame["income"] == ">50K").to_numpy().astype(int)
        test = (frame["split"] == "test").to_numpy()
        return _split(ADULT, frame, y, test)
    if name == "yrbss":
        frame = pd.read_csv(DATA / "health/yrbss.csv")
        known = frame["physically_active_7d"].notna()
        return _split(YRBSS, frame[known], (frame["physically_active_7d"][known] >= 5).to_numpy().astype(int))
    if name == "randhie":
        frame = pd.read_csv(DATA / "health/randhie_statsmodels.csv")
        return _split(RANDHIE, frame, (frame["mdvis"] > 0).to_numpy().astype(int))
    if name == "nlswork":
        frame = _parquet("nlswork")
        frame = frame[frame["union"].notna()]
        return _split(NLSWORK, frame, frame["union"].to_numpy().astype(int))
    if name == "rwm5yr":
        frame = _parquet("rwm5yr")
        return _split(RWM5YR, frame, (frame["docvis"] > 0).to_numpy().astype(int))
    if name == "flights":
        frame = _parquet("nycflights13_flights")
        frame = frame[frame["arr_delay"].notna()].iloc[::8]
        return _split(FLIGHTS, frame, (frame["arr_delay"] > 15).to_numpy().astype(int))
    frame = _parquet("randhie_panel")
    return _split(PANEL, frame, (frame["meddol"] > 0).to_numpy().astype(int))


def _parquet(name: str) -> Any:
    import duckdb

    return duckdb.connect().sql(f"select * from '{DATA}/userlevel/{name}.parquet'").df()


def _split(columns: dict[str, Any], frame: Any, y: Any, test: Any = None) -> Any:
    if test is None:
        test = np.random.default_rng(20261117).random(len(frame)) < 0.2
    picked = frame[list(columns)].copy()
    for name, declared in columns.items():
        if isinstance(declared, list):
            picked[name] = picked[name].astype("object").where(picked[name].notna(), None).map(_word)
    return columns, (picked[~test], y[~test]), (picked[test], y[test])


def _word(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else str(value)
