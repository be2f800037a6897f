"""Synthetic rows through the curator: price, record, replay, certificate, refusals, engines and files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from synthesis.toys import chain, margins_of
from tacit.noise.source import SeededSource
from tacit.sources.margins import MarginsWanted, _by_engine, read_margins
from tacit.sources.schema import Schema
from tacit.sources.tables import open_table

ROWS, SIZES = chain(600)
NAMES = [f"c{i}" for i in range(6)]
FRAME = pd.DataFrame(ROWS, columns=NAMES)
SCHEMA = {n: tacit.integer(0, s - 1, missing=0) for n, s in zip(NAMES, SIZES, strict=True)}
BUDGET = tacit.Approximate(epsilon=3.0, delta=1e-5)


def curator(frame=FRAME, schema=SCHEMA, protect=None, **words) -> tacit.Curator:
    return tacit.Curator(frame, protect=protect or tacit.rows(), schema=schema, budget=BUDGET, **words)


def test_the_price_is_known_before_and_charged_once() -> None:
    asked = tacit.synthesis.synthetic_table(NAMES, rounds=5)
    with curator() as held:
        plan = held.preview(asked, epsilon=1.0, delta=1e-6, rows=600)
        assert held.spent.epsilon == 0
        first = held.release(asked, epsilon=1.0, delta=1e-6)
        assert held.spent.epsilon == plan.charge.bound.epsilon
        assert 0.9999 < held.spent.epsilon <= 1.0
        again = held.release(asked, epsilon=1.0, delta=1e-6)
        assert held.spent.epsilon == plan.charge.bound.epsilon
        assert again.replayed
        assert again.certificate == first.certificate
        assert again.synthetic.to_csv() == first.synthetic.to_csv()
        assert again.synthetic.rows.equals(first.synthetic.rows)
    assert first.publishable
    assert not first.made_up
    assert "synthesis-account" in first.certificate["theorems"]
    said = first.certificate["synthetic"]
    assert said["rows"] == len(first.synthetic.rows)
    assert len(said["measured"]) == 6 + 5
    kinds = [e["event"]["kind"] for e in first.certificate["event"]]
    assert kinds == ["gaussian", "repeated", "repeated", "gaussian"]


def test_the_function_is_the_release() -> None:
    with curator(source=SeededSource(seed=4)) as held:
        made = tacit.synthesise(held, columns=NAMES, epsilon=1.5, delta=1e-6, rounds=4, draw=200)
        assert len(made.rows) == 200
        assert made.weight == pytest.approx(made.total / 200)
        assert abs(made.total - 600) < 200
        assert not made.publishable
        assert made.metadata["publishable"] == "false"
        assert len(made.certificate) == 64
        with pytest.raises(tacit.errors.InvalidParameter):
            tacit.synthesise(held, columns=NAMES)


def test_an_order_of_two_and_a_rho() -> None:
    with tacit.Curator(
        FRAME, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Concentrated(rho=0.5)
    ) as held:
        made = held.release(tacit.synthesis.synthetic_table(NAMES, order=2, rounds=3), rho=0.3)
        assert 0.299 < held.spent.rho <= 0.3
        assert all(len(m["margin"]) <= 2 for m in made.certificate["synthetic"]["measured"])


def test_files_say_that_rows_are_synthetic(tmp_path) -> None:
    import pyarrow.parquet

    with curator() as held:
        release = held.release(tacit.synthesis.synthetic_table(NAMES, rounds=2), epsilon=1.0, delta=1e-6)
        made = release.synthetic
    path = made.write(tmp_path / "rows.parquet")
    told = {k.decode(): v.decode() for k, v in pyarrow.parquet.read_schema(path).metadata.items()}
    assert told["synthetic"] == "true"
    assert told["certificate"] == release.certificate["digest"]
    assert told["made_up"] == "false"
    assert made.write(tmp_path / "rows.csv").read_text() == made.to_csv()
    for bad in (tmp_path / "rows.csv", tmp_path / "rows.txt", tmp_path / "no" / "rows.csv"):
        with pytest.raises(tacit.errors.InvalidParameter):
            made.write(bad)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"columns": ["c0"]}, "at least two"),
        ({"columns": ["c0", "nowhere"]}, "nowhere"),
        ({"columns": ["c0", "word"]}, "declared values"),
        ({"columns": ["c0", "real"]}, "bins"),
        ({"columns": ["c0", "c1"], "cells": 9}, "c0 and c1"),
        ({"columns": NAMES, "impossible": [{"c0": [0, 1, 2, 3]}]}, "some row possible"),
        ({"columns": NAMES, "impossible": [{"c0": [9]}]}, "as they are declared"),
        ({"columns": NAMES, "impossible": [{"z": [9]}]}, "name columns"),
        ({"columns": NAMES, "rounds": 0}, "rounds"),
        ({"columns": NAMES, "order": 4}, "order"),
        ({"columns": NAMES, "errors": 0.95}, "errors"),
    ],
)
def test_bad_questions_are_one_sentence_and_cost_nothing(words, said) -> None:
    schema = {**SCHEMA, "word": tacit.category(), "real": tacit.number(0, 1, spacing=0.25)}
    frame = FRAME.assign(word="a", real=0.5)
    with curator(frame, schema) as held:
        with pytest.raises(tacit.errors.TacitError, match=said) as problem:
            held.release(tacit.synthesis.synthetic_table(**words), epsilon=1.0, delta=1e-6)
        assert held.spent.epsilon == 0
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("price", "said"), [
    ({"epsilon": 1e-9, "delta": 1e-9}, "one-way margins"), ({"epsilon": 1.0}, "delta"), ({"mu": 1.0}, "rho"),
])  # fmt: skip
def test_prices_that_cannot_work_are_refused_before_the_charge(price, said) -> None:
    with curator() as held:
        with pytest.raises(tacit.errors.TacitError, match=said):
            held.release(tacit.synthesis.synthetic_table(NAMES), **price)
        assert held.spent.epsilon == 0


def test_impossible_combinations_never_occur() -> None:
    patterns = [{"c0": [0, 1], "c3": [4]}, {"c2": 1, "c4": 2}]
    with curator() as held:
        made = tacit.synthesise(
            held, columns=NAMES, epsilon=1.0, delta=1e-6, rounds=4, impossible=patterns, errors=0.0
        )
        rows = made.rows
    assert not (rows["c0"].isin([0, 1]) & (rows["c3"] == 4)).any()
    assert not ((rows["c2"] == 1) & (rows["c4"] == 2)).any()


def test_missing_values_are_values_and_bins_are_filled() -> None:
    frame = FRAME.assign(
        word=np.where(np.arange(600) % 3 == 0, None, "a"), real=np.linspace(0, 100, 600), real2=1.0
    )
    schema = {
        "c0": SCHEMA["c0"],
        "word": tacit.category(["a", "b"]),
        "real": tacit.number(0, 100, spacing=0.5),
    }
    with curator(frame, schema) as held:
        made = tacit.synthesise(
            held, columns=["c0", "word", tacit.bins("real", 4)], epsilon=2.0, delta=1e-6, rounds=3
        )
    rows = made.rows
    assert 0.2 < rows["word"].isna().mean() < 0.45
    assert rows["real"].between(0, 100).all()
    assert rows["real"].nunique() > 50
    assert (
        made.answer("count", where="word is missing").low
        <= 200
        <= made.answer("count", where="word is missing").high
    )


def test_people_with_several_rows_cost_their_number_of_rows() -> None:
    frame = FRAME.assign(who=np.arange(600) // 3)
    unit = tacit.people("who", at_most=3)
    with curator(frame, SCHEMA, protect=unit) as held:
        many = held.preview(tacit.synthesis.synthetic_table(NAMES), epsilon=1.0, delta=1e-6)
    with curator() as held:
        one = held.preview(tacit.synthesis.synthetic_table(NAMES), epsilon=1.0, delta=1e-6)
    for part in ("ones", "measuring", "errors"):
        wide, narrow = (getattr(p.releases[0].assignment.schedule, part).noise_std for p in (many, one))
        assert wide == pytest.approx(3 * narrow, rel=1e-3)
    assert many.releases[0].assignment.schedule.choosing.sensitivity.exact == 3
    with curator(frame, SCHEMA, protect=unit) as held:
        release = held.release(tacit.synthesis.synthetic_table(NAMES, rounds=1), epsilon=1.0, delta=1e-6)
    assert "at most 3 of each person's rows" in release.certificate["synthetic"]["not_for"][-1]


def test_margins_are_the_same_by_either_road() -> None:
    """Counted from the keys of the rows, by the engine with what is left over, and by looking at every row."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"a": rng.choice(["x", "y", "other"], 200), "b": rng.integers(0, 3, 200), "w": rng.random(200) < 0.7}
    )
    frame.loc[::9, "a"] = None
    schema = Schema({"a": tacit.category(["x", "y"]), "b": tacit.integer(0, 2, missing=0), "w": tacit.flag()})
    from tacit.sources.axes import axis_of
    from tacit.sources.expressions import parse

    axes = tuple(axis_of(n, schema) for n in schema)
    margins = ((), (0,), (2,), (0, 1), (0, 2), (0, 1, 2))
    codes = np.column_stack(
        [frame["a"].map({"x": 0, "y": 1}).fillna(2), frame["b"], frame["w"].astype(int)]
    ).astype(int)
    table = open_table(frame, schema=schema, unit=tacit.rows())
    try:
        for where, kept in ((None, codes), (parse("b > 0"), codes[codes[:, 1] > 0])):
            asked = MarginsWanted(axes=axes, margins=margins, where=where)
            here = read_margins(table, asked).margins
            engine = _by_engine(table, asked, None)
            exact = margins_of(kept, asked.sizes, margins)
            for m in margins:
                assert (here[m] == exact[m]).all()
                assert (engine[m] == exact[m]).all()
    finally:
        table.close()


def test_wide_tables_say_before_what_they_leave_out() -> None:
    schema = Schema({f"c{i}": tacit.integer(0, 2, missing=0) for i in range(60)})
    asked = tacit.synthesis.synthetic_table(list(schema)).on(schema, tacit.rows())
    assert "34,220 margins of three columns" in asked.details["left_out"]
    assert all(len(m) == 2 for m in asked.details["candidates"])
    with curator(pd.DataFrame({n: [0] for n in schema}), dict(schema)) as held:
        plan = held.preview(tacit.synthesis.synthetic_table(list(schema)), epsilon=1.0, delta=1e-6, rows=1000)
    assert "34,220 margins" in str(plan)


def test_an_empty_table_gives_rows_and_no_error() -> None:
    with curator(FRAME.iloc[:0]) as held:
        made = tacit.synthesise(held, columns=NAMES, epsilon=1.0, delta=1e-6, rounds=2)
    assert made.total >= 1
    assert json.dumps(made.measurements)


@pytest.mark.parametrize(
    "odd", [{"c0": 2**62}, {"c0": -5, "c1": 99}, {"c2": None}, {"c4": None, "c5": 2**40}]
)
def test_one_odd_row_changes_nothing_but_the_noise(odd) -> None:
    """Types, columns, keys, the price and the words are those of the table without it; no error tells of it."""
    asked = tacit.synthesis.synthetic_table(NAMES, rounds=2)
    told = []
    for extra in ([], [odd]):
        frame = pd.concat([FRAME.astype("Int64"), pd.DataFrame(extra, columns=NAMES, dtype="Int64")])
        with curator(frame) as held:
            release = held.release(asked, epsilon=1.0, delta=1e-6)
        rows = release.synthetic.rows
        certificate = release.certificate
        said = [certificate[n] for n in ("event", "mechanism", "sensitivity", "theorems", "price", "choice")]
        told.append(
            (list(rows.dtypes), list(rows.columns), said, sorted(certificate), release.columns["margin"])
        )
    assert told[0] == told[1]


def test_a_folder_of_synthetic_rows_verifies_and_a_changed_row_does_not(
    tmp_path, monkeypatch, capsys
) -> None:
    from tacit.cli import main

    FRAME.to_csv(tmp_path / "people.csv", index=False)
    columns = "\n".join(
        f'[schema.{n}]\nkind = "integer"\nlow = 0\nhigh = {s - 1}\n'
        for n, s in zip(NAMES, SIZES, strict=True)
    )
    (tmp_path / "plan.toml").write_text(
        '[data]\npath = "people.csv"\n[protect]\nunit = "rows"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n'
        f'{columns}\n[[release]]\nname = "people"\nkind = "synthetic_table"\nrounds = 3\n'
        f"columns = {json.dumps(NAMES)}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["synthesise", "plan.toml", "--out", "out", "--rows", "rows.parquet", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["charged"]
    assert (tmp_path / "out/rows/people.csv").read_text().count("\n") == said["rows"] + 1
    told = json.loads((tmp_path / "out/rows/people.csv-metadata.json").read_text())
    assert told["synthetic"] is True
    assert told["certificate"] == said["certificate"]
    ledger = next(tmp_path.glob("*.ledger"))
    assert main(["verify", "out", "--ledger", str(ledger)]) == 0, capsys.readouterr().out
    text = (tmp_path / "out/rows/people.csv").read_text().splitlines()
    text[1], text[2] = text[2], text[1] + "1"
    (tmp_path / "out/rows/people.csv").write_text("\n".join(text) + "\n")
    assert main(["verify", "out"]) == 1
    capsys.readouterr()
    assert main(["synthesise", "plan.toml", "--out", "out"]) == 2
    assert main(["release", "plan.toml", "--out", "again"]) == 0
    page = (tmp_path / "again/report.html").read_text()
    assert "Synthetic rows" in page
    assert "total variation at most, for all margins at once with 95% confidence" in page
    assert "Do not use the synthetic rows" in page
    assert "rows a cell" in page
    assert 'href="rows/people.csv"' in page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of synthetic rows with a public margin, a weight column and fewer rows than the table."""
    from tacit.cli import main

    place = tmp_path_factory.mktemp("forged")
    FRAME.to_csv(place / "people.csv", index=False)
    columns = "\n".join(
        f'[schema.{n}]\nkind = "integer"\nlow = 0\nhigh = {s - 1}\n'
        for n, s in zip(NAMES, SIZES, strict=True)
    )
    (place / "plan.toml").write_text(
        '[data]\npath = "people.csv"\n[protect]\nunit = "rows"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n'
        f'{columns}\n[[release]]\nname = "people"\nkind = "synthetic_table"\nrounds = 3\ndraw = 300\n'
        f'weight_column = "w"\ncolumns = {json.dumps(NAMES)}\n'
    )
    import os

    before = Path.cwd()
    os.chdir(place)
    try:
        assert main(["synthesise", "plan.toml", "--out", "out", "--json"]) == 0
    finally:
        os.chdir(before)
    return place / "out"


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(rows=301),
        lambda s: s.update(stand_for=0),
        lambda s: s.update(stand_for="600"),
        lambda s: s["columns"].pop(),
        lambda s: s["measured"][0].update(noise_std=1.0),
        lambda s: s["measured"][-1].update(noise_std=1.0),
        lambda s: s["measured"][-1].update(cells=3),
        lambda s: s["measured"][-1].update(margin=["c9"]),
        lambda s: s["measured"].pop(),
        lambda s: s["not_for"].pop(),
        lambda s: s.update(public=["c0"]),
        lambda s: s.update(privacy="perfect"),
        lambda s: s["filled_by_noise"].update({"c0": 0.2}),
        lambda s: s.pop("sha256"),
    ],
)  # fmt: skip
def test_forged_words_about_synthetic_rows_are_seen_without_a_ledger(folder, tmp_path, change) -> None:
    """Every digest is made again; what follows from plan, schedule and rows is compared."""
    from support.forged import false, forge

    place = tmp_path / "out"
    shutil.copytree(folder, place)
    assert false(place) == []
    forge(place, "people", lambda said: change(said["synthetic"]))
    assert any("synthetic rows" in f or "cannot be read" in f for f in false(place))
