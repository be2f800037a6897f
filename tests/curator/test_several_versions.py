"""Several versions of one table under one ledger: what is refused, and what one person moves in each of them."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import NoLaw
from tacit.guarantees import rows
from tacit.statistics import base as planner

SCHEMA = {
    "g": tacit.category(["a", "b", "c"]), "town": tacit.category(), "x": tacit.integer(0, 9), "y": tacit.flag(),
}  # fmt: skip


def crowd(seed=3):
    rng = random.Random(seed)
    return [
        {
            "id": who,
            "g": rng.choice("abc"),
            "town": rng.choice("pqrs"),
            "x": rng.randrange(10),
            "y": rng.randrange(2),
        }
        for who in range(60)
        for _ in range(rng.randrange(8))
    ]


LIVES = [
    [],
    [{"id": 900, "g": "a", "town": "p", "x": 2, "y": 1}] * 3,
    [{"id": 900, "g": "b", "town": "new", "x": None, "y": None}],
    [{"id": 900.5, "g": "c", "town": None, "x": 2.5, "y": 0}],
    [{"id": "kim", "g": None, "town": "here", "x": 1, "y": 1}],
]
# Two rows of a person in one group, and for unknown keys the person besides.
QUESTIONS = {
    "known keys": (tacit.count(by="g"), 2), "people": (tacit.count(by="g", of="people"), 1),
    "unknown keys": (tacit.count(by="town"), 3), "sparse": (tacit.sparse_histogram(["g", "x", "y"]), 2),
    "sum": (tacit.sum("x", by="g"), 18),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_in_every_version_one_person_moves_what_is_noised_by_no_more_than_stated(name, tmp_path, monkeypatch):
    """What mechanisms are given, in a release as a user makes it: files that pandas writes, one curator a version."""
    statistic, most = QUESTIONS[name]
    seen = []
    real = planner.run

    def spied(*given, **more):
        cells = real(*given, **more)
        seen.append([{a: np.array(v) for a, v in c.values.items()} | {"keys": c.keys} for c in cells])
        return cells

    monkeypatch.setattr(planner, "run", spied)
    states = []
    for version, life in enumerate(LIVES):
        path = tmp_path / f"{version}.csv"
        pd.DataFrame([*crowd(), *life]).to_csv(path, index=False)
        table = tacit.Curator(
            tacit.files(str(path)), schema=SCHEMA, protect=tacit.people("id", at_most=2, groups=1),
            budget=tacit.Approximate(epsilon=1e6, delta=0.5), ledger=tmp_path / "one.ledger", table="t",
            version=str(version),
        )  # fmt: skip
        with table as survey:
            price = {"epsilon": 1.0} | ({"delta": 1e-3} if name in ("unknown keys", "sparse") else {})
            survey.release(statistic, **price)
        states.append(seen[-1])
    assert len(states) == len(LIVES)
    base = moved_keys(states[0])
    for state in states[1:]:
        now = moved_keys(state)
        assert sum(abs(now.get(k, 0) - base.get(k, 0)) for k in {*now, *base}) <= most


def moved_keys(state):
    out = {}
    for cells in state:
        keys = cells.pop("keys")
        for aggregate, values in cells.items():
            names = range(values.size) if keys is None else zip(*keys, strict=True)
            for place, value in zip(names, values.ravel().tolist(), strict=True):
                out[str(aggregate), str(place)] = value
        cells["keys"] = keys
    return out


def test_a_second_version_of_a_random_sample_is_refused(tmp_path):
    """The exact counts of two versions differ by the rows that changed."""
    each, asked = rows(neighbours="add-or-remove"), tacit.count(by="g")
    price, given = {"epsilon": 1, "delta": 1e-6}, {"sampling": "binomial", "rate": 0.1}
    schema = {"g": tacit.category(["a", "b"])}

    def opened(n, version, condition):
        limit = tacit.Guarantee(bound=tacit.Approximate(**price), unit=each, condition=condition)
        return tacit.Curator(
            pd.DataFrame({"g": ["a"] * n + ["b"] * 200}), schema=schema, protect=each, budget=limit,
            ledger=tmp_path / "sample.ledger" if version else None, table="t", version=version or "0",
        )  # fmt: skip

    with opened(300, "", tacit.guarantees.Always()) as survey:
        condition = survey.preview(asked, given=given, **price).charge.condition
    with opened(300, "1", condition) as survey:
        assert survey.release(asked, given=given, **price).table["value"].tolist() == [300, 200]
    with opened(301, "2", condition) as survey, pytest.raises(NoLaw, match="second release"):
        survey.release(asked, given=given, **price)


def test_a_second_version_of_a_sample_of_fixed_size_is_refused(tmp_path):
    each, asked = rows(neighbours="replace-one"), tacit.count(by="g")
    price, given = {"epsilon": 2, "delta": 1e-5}, {"sampling": "fixed", "n": 20_000}
    schema = {"g": tacit.category(["a", "b"])}

    def opened(n, version, condition):
        limit = tacit.Guarantee(bound=tacit.Approximate(**price), unit=each, condition=condition)
        return tacit.Curator(
            pd.DataFrame({"g": ["a"] * n + ["b"] * (20_000 - n)}), schema=schema, protect=each, budget=limit,
            ledger=tmp_path / "fixed.ledger" if version else None, table="t", version=version or "0",
        )  # fmt: skip

    with opened(9000, "", tacit.guarantees.Always()) as survey:
        condition = survey.preview(asked, given=given, **price).charge.condition
    with opened(9000, "1", condition) as survey:
        survey.release(asked, given=given, **price)
    with opened(9001, "2", condition) as survey, pytest.raises(NoLaw, match="second release"):
        survey.release(asked, given=given, **price)
