"""Releases of one plan that agree: the same noise and charge, one number for a shared total, words and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import errors
from tacit.curator.agreement import agreed
from tacit.curator.charging import price
from tacit.curator.planning import make_plan
from tacit.noise import SeededSource
from tacit.statistics import table

KEYS = {
    "sex": tacit.category(["f", "m"], missing="m"),
    "age": tacit.category(["y", "o"]),
    "region": tacit.category(["n", "s", "w"]),
    "grade": tacit.integer(0, 9),
    "town": tacit.category(),
}
rng = np.random.default_rng(1)
FRAME = pd.DataFrame({
    "sex": rng.choice(["f", "m"], 400), "age": rng.choice(["y", "o"], 400, p=[0.95, 0.05]),
    "region": rng.choice(["n", "s", "w"], 400), "grade": rng.integers(0, 10, 400), "id": np.arange(400),
    "town": "x",
})  # fmt: skip


def opened(frame=FRAME, unit=None, budget=None, **more):
    budget = budget or tacit.Approximate(epsilon=500, delta=1e-3)
    return tacit.Curator(frame, protect=unit or tacit.rows(), schema=KEYS, budget=budget, ledger=None, **more)


def asked(*statistics, agree=True, **more):
    return [tacit.query(s, agree=agree, **more) for s in statistics]


THREE = (table("sex", "region"), table("age", "sex", importance={"cells": 2, "total": 1}), tacit.count())


def test_shared_totals_are_one_number_with_one_interval():
    names = ["sex", "region"], ["age", "sex"], []
    with opened(source=SeededSource(seed=3)) as curator:
        for prices in ({"epsilon": 0.3}, {"epsilon": 0.3, "delta": 1e-6}):
            found = curator.release(asked(*THREE), **prices)
            one, two, three = (r.table for r in found)
            one, two = (
                {tuple(row[["value", "low", "high"]]) for _, row in t[(t[n] == "all").all(axis=1)].iterrows()}
                for t, n in ((one, ["region", "sex"]), (two, ["age", "sex"]))
            )
            assert one == two == {tuple(three.iloc[0][["value", "low", "high"]])}
            by_sex = [
                r.table[(r.table["sex"] != "all") & (r.table[o] == "all")][["sex", "value", "low", "high"]]
                for r, o in zip(found, ("region", "age"), strict=False)
            ]
            assert (by_sex[0].to_numpy() == by_sex[1].to_numpy()).all()
            for r, columns in zip(found, names, strict=True):
                told = r.table
                cells = told[(told[columns] != "all").all(axis=1)] if columns else told
                assert cells["value"].sum() == three["value"][0]
                assert (told["value"] >= 0).all()
                assert (told["low"] <= told["value"]).all()


def test_the_noise_and_the_charge_are_those_without_the_word():
    with opened(source=SeededSource(seed=5)) as one, opened(source=SeededSource(seed=5)) as other:
        together = one.release(asked(*THREE), epsilon=1)
        apart = other.release(asked(*THREE, agree=False), epsilon=1)
        assert one.spent == other.spent
    for a, b in zip(together, apart, strict=True):
        assert a.planned.assignment.events == b.planned.assignment.events
        assert a.guarantee == b.guarantee
        for name, values in a.noisy.parts.items():
            np.testing.assert_array_equal(values, b.noisy.parts[name])
        # Narrower, or the same: they rest on more noise.
        assert (a.planned.expected.within or 0) <= (b.planned.expected.within or 0) + 1.5
    assert together[0].certificate["plan"]["digest"] != apart[0].certificate["plan"]["digest"]


def test_a_record_gives_the_same_numbers_again_and_free():
    with opened() as curator:
        first = curator.release(asked(*THREE), epsilon=1)
        spent = curator.spent
        again = curator.release(asked(*THREE), epsilon=1)
        assert curator.spent == spent
        assert all(r.replayed for r in again)
    for a, b in zip(first, again, strict=True):
        assert a.to_csv() == b.to_csv()
        assert a.certificate == b.certificate


def test_fifty_releases_cover_cells_and_totals():
    """350 totals and 600 cells of 50 releases: at most 12% missed, which has a chance of 1e-9 at 5%."""
    true = {
        (s, r): int(((FRAME["sex"] == s) & (FRAME["region"] == r)).sum())
        for s in "fm"
        for r in ("n", "s", "w")
    }
    caught = []
    with opened(source=SeededSource(seed=8), unit=tacit.rows()) as curator:
        plan = curator.preview(asked(*THREE), epsilon=1)
        for i in range(50):
            found = curator.release(plan, key=str(i))[0].table
            for _, row in found.iterrows():
                sexes = "fm" if row["sex"] == "all" else row["sex"]
                regions = ("n", "s", "w") if row["region"] == "all" else (row["region"],)
                caught.append(row["low"] <= sum(true[s, r] for s in sexes for r in regions) <= row["high"])
    assert len(caught) == 600
    assert np.mean(caught) >= 0.92


def test_certificates_say_what_agrees_and_what_is_assumed():
    with opened() as curator:
        found = curator.release(asked(*THREE), epsilon=1)
        alone = curator.release(THREE[0], epsilon=1)
    said = found[0].certificate
    assert said["intervals"]["agrees_with"] == ["table-age-sex", "count"]
    assert said["intervals"]["declared"] == [
        "every row that one of table-sex-region, table-age-sex and count counts is counted by all of them, as it has "
        "a declared key in age and region"
    ]
    assert said["asked"]["agree"] is True
    assert "agreeing-tables" in said["theorems"]
    assert "agrees_with" not in alone.certificate["intervals"]
    assert "agree" not in alone.certificate["asked"]
    assert "together" in str(found[0].planned.expected.about)
    assert said["price_of_privacy"]["lower_bound"] is None


def test_nothing_is_assumed_where_every_row_has_its_keys():
    with opened() as curator:
        plan = curator.preview(asked(table("sex"), tacit.count()), epsilon=1)
        same = curator.preview(asked(table("sex", "age"), table("age")), epsilon=1)
    assert not plan.releases[0].rests
    # Both lose the rows without an age: they count the same ones.
    assert not same.releases[0].rests


def test_a_public_number_of_rows_is_kept():
    unit = tacit.rows(neighbours="replace-one")
    schema = {"sex": KEYS["sex"], "grade": tacit.integer(0, 9, missing=0)}
    with tacit.Curator(
        FRAME, protect=unit, schema=schema, budget=tacit.Pure(epsilon=9), ledger=None
    ) as curator:
        found = curator.release(asked(table("sex"), tacit.histogram("grade", 5), tacit.count()), epsilon=1)
    assert found[2].table["value"][0] == 400 == found[1].table["value"].sum()
    assert found[0].table["high"].iloc[-1] == 400 == found[0].table["low"].iloc[-1]


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        (asked(table("sex")), "two releases"),
        (asked(table("sex"), tacit.mean("grade")), "tables and counts"),
        (asked(table("sex"), tacit.count(where="age = 'y'")), "same filter"),
        (asked(table(tacit.bins("grade", [0, 5, 9])), tacit.histogram("grade", 3)), "same keys or bins"),
        (asked(table("sex"), tacit.count(by="town")), "declared keys"),
        ([*asked(table("sex")), tacit.query(tacit.count(), agree=True, noise="bounded")], "bounded noise"),
        (
            [
                *asked(table("sex")),
                tacit.query(tacit.count(by="age"), agree=True, public=tacit.public_totals(total=400)),
            ],
            "public totals",
        ),
        ([*asked(table("sex")), tacit.query(tacit.count(), agree=True, within=3)], "no accuracy"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_refusals(queries, why):
    with opened() as curator, pytest.raises(errors.InvalidParameter, match=why):
        curator.preview(queries, epsilon=1, delta=1e-6)


def test_more_refusals():
    ring = (table("sex", "age"), table("age", "region"), table("region", "sex"))
    with opened() as curator:
        with pytest.raises(errors.NoLaw, match="ring"):
            curator.preview(asked(*ring), epsilon=1)
        curator.preview([*asked(*ring[:2]), tacit.query(ring[2])], epsilon=1)
        with pytest.raises(errors.InvalidParameter, match="assumptions"):
            curator.preview(asked(*THREE), epsilon=1, given={"random_data": 0.05, "rows": 300})
        with pytest.raises(errors.InvalidParameter, match="agree"):
            tacit.query(THREE[0], agree="yes")
    people = tacit.people("id", at_most=3, groups=1)
    with opened(unit=people) as curator:
        with pytest.raises(errors.InvalidParameter, match="whatever their groups"):
            curator.preview(asked(table("sex"), tacit.count(by="sex")), epsilon=1)
        curator.preview(asked(table("sex"), tacit.contingency(["sex"])), epsilon=1)
    persons = asked(table("sex"), tacit.count(by="sex", of="people"))
    with (
        opened(unit=tacit.people("id", at_most=3)) as curator,
        pytest.raises(errors.InvalidParameter, match="of rows"),
    ):
        curator.preview(persons, epsilon=1)


def test_a_folder_verifies_and_a_forged_one_does_not(tmp_path):
    from tacit.cli import main

    FRAME.to_csv(tmp_path / "p.csv", index=False)
    plan = tmp_path / "p.toml"
    plan.write_text(
        """data = { path = "p.csv" }
protect = { unit = "rows" }
schema.sex = { kind = "category", keys = ["f", "m"] }
schema.age = { kind = "category", keys = ["y", "o"] }
budget = { epsilon = 1 }
release = [
  { kind = "table", rows = "sex", columns = "age", agree = true, name = "ages" },
  { kind = "count", by = "sex", agree = true, name = "sexes" }]
"""
    )
    out = tmp_path / "out"
    assert main(["release", str(plan), "--out", str(out)]) == 0
    assert "agree with those of ages" in (out / "report.html").read_text()
    from tacit.curator.verifying import verify_release

    ledger = str(tmp_path / "p.ledger")
    assert verify_release(out, ledger=ledger).ok
    place = out / "certificates" / "sexes.json"
    said = json.loads(place.read_text())
    said["intervals"]["agrees_with"] = []
    place.write_text(json.dumps(said))
    wrong = [str(f) for f in verify_release(out, ledger=ledger).findings if f.holds is False]
    assert any("claims what plan.toml gives (another intervals)" in w for w in wrong)


def test_noise_of_another_law_has_no_interval_here():
    from dataclasses import replace

    with opened() as curator:
        plan = curator.preview(asked(table("sex"), tacit.count()), epsilon=1, delta=1e-6)
        bounded = curator.preview(tacit.query(tacit.count(), noise="bounded"), epsilon=1, delta=1e-6)
    odd = replace(plan.releases[1], assignment=bounded.releases[0].assignment)
    with pytest.raises(errors.InvalidParameter, match="independent Laplace or Gaussian"):
        agreed(replace(plan, releases=(plan.releases[0], odd)), [])


def test_a_question_that_is_asked_twice_has_two_draws():
    """Independent noise is what the weights of the fit and the intervals rest on."""
    with opened(source=SeededSource(seed=4)) as curator:
        one = tacit.count(by="grade")
        found = curator.release([tacit.query(one, agree=True, name=n) for n in "ab"], epsilon=1)
        spent = curator.spent
    noisy = [r.noisy.parts["count"] for r in found]
    assert (noisy[0] != noisy[1]).any()
    assert spent.epsilon == 1
    assert list(found[0].table["value"]) == list(found[1].table["value"])


def test_agreement_is_a_function_of_the_record_alone():
    schema = tacit.Schema(KEYS)
    plan = make_plan(
        asked(*THREE), schema=schema, unit=tacit.rows(), budget=tacit.Pure(epsilon=9), total=price(epsilon=1)
    )
    with opened(source=SeededSource(seed=2)) as curator:
        found = curator.release(asked(*THREE), epsilon=1)
    again = agreed(plan, [r.noisy for r in found])
    assert sorted(again) == [0, 1, 2]
    for place, r in enumerate(found):
        np.testing.assert_array_equal(again[place].value, r.estimate.value)
        assert np.shape(again[place].value) == np.shape(r.estimate.low)
